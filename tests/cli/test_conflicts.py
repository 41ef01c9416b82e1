"""Options that a run would ignore are refused, each of them."""

import pytest

from tests.running import run_many, run_program

#: An option and its value, for every option that the run of the second line ignores.
WITH_EXACT = """
--scheme=classic --perms=64 --seed=2 --recall=0.9 --bands=3 --rows=2 --buckets=5 --verify=estimate
--max-bucket=3
""".split()
WITH_SAME = """
--measure=jaccard --exact --verify=exact --max-bucket=3 --histogram --recall=0.9 --bands=3
--rows=2 --buckets=5
""".split()
CLUSTERS_WITH_SAME = """
--exact --linkage=single --max-bucket=3 --recall=0.9 --bands=3 --rows=2 --buckets=5
""".split()
WITHOUT_DOCUMENTS = """
--include=x --exclude=x --gitignore --max-depth=2 --hidden --follow --max-bytes=1000
--format-seconds=3 --format-memory=1GB --text-field=x --id-field=x --check-content
""".split()


@pytest.mark.parametrize(
    ("command", "options", "where"),
    [
        (["pairs", "d", "--exact"], WITH_EXACT, "with --exact"),
        (["clusters", "--exact"], [o for o in WITH_EXACT if "verify" not in o], "with --exact"),
        (["report", "--exact"], [o for o in WITH_EXACT if "verify" not in o], "with --exact"),
        (
            ["pairs", "d", "--measure", "containment"],
            [*(o for o in WITH_EXACT if o[:6] not in ("--seed", "--reca")), "--histogram"],
            "with --measure containment",
        ),
        (
            ["query", "d", "--measure", "containment"],
            ["--recall=0.9", "--bands=3", "--rows=2", "--buckets=5"],
            "with --measure containment",
        ),
        (["pairs", "d", "--same", "text"], WITH_SAME, "with --same text"),
        (["clusters", "--same", "bytes"], CLUSTERS_WITH_SAME, "with --same bytes"),
        (["pairs", "d", "--no-store"], ["--wait=1"], "with --no-store"),
        (["pairs", "d"], ["--unmatched"], "without --against OTHER"),
        (
            ["pairs", "d", "--against", "d", "--unmatched"],
            ["--collapse-copies"],
            "with --unmatched",
        ),
        (["pairs"], WITHOUT_DOCUMENTS, "without DOCS"),
        (["pairs", "d"], ["--step=0.1", "--examples=2", "--plot=p.png"], "without --histogram"),
        (["shingle", "d"], ["--format=csv", "--header", "-o=x"], "without --show"),
        (
            ["pairs", "d", "--tokens", "ids"],
            ["--text-field=a", "--id-field=a"],
            "with --tokens ids",
        ),
    ],
)
def test_each_option_that_would_be_ignored_is_refused(command, options, where, tmp_path):
    (tmp_path / "d").mkdir()
    lines = [([*command, option], None) for option in options]
    for option, (code, out, err) in zip(options, run_many(lines, tmp_path), strict=True):
        assert (code, out) == (2, b""), option
        name = "--output" if option == "-o=x" else option.partition("=")[0]
        why = "has no effect" if where.startswith("without") else "cannot be combined"
        assert f"{name} {why} {where}" in err.decode().replace("\n  ", " "), option
    assert not (tmp_path / ".lshdup").exists()


def test_a_dumb_terminal_gets_no_colours(tmp_path):
    (tmp_path / "a").write_text("some words of a text")
    (tmp_path / "b").write_text("some words of another text")
    for terminal, is_painted in (("xterm", True), ("dumb", False)):
        env = {"TERM": terminal, "LSHDUP_NO_STORE": "1"}
        for command in (["pairs", "a", "b", "-t", "0.1"], ["show", "a", "b"]):
            printed = run_program(command, cwd=tmp_path, columns=80, env=env).stdout
            assert b"text" in printed or b"similarity" in printed
            assert (b"\x1b" in printed) == is_painted, command
