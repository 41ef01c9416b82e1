"""Answers that a script relies on: exit codes of --check, lists of names, and what is skipped."""

import json
import os
from pathlib import Path

import pytest

from lshdup.base.skipped import Reason, Skipped
from lshdup.cli.console import Console
from lshdup.cli.main import main
from lshdup.errors import LshdupError


@pytest.fixture
def folders(tmp_path):
    """Two near-duplicates, a text that is like no other, one text alone, and none."""
    texts = {
        "docs/a": "the quick brown fox jumps over the lazy dog and runs away from it",
        "docs/b": "The quick brown fox jumps over the lazy dog and runs away from it!",
        "docs/c": "nothing of the kind is said in this text of ours at all",
        "one/a": "the quick brown fox jumps over the lazy dog and runs away from it",
        "far/x": "nothing of the kind is said in this text of ours at all",
        "far/y": "an entirely different line that stands for itself alone here",
        "blank/empty": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "none").mkdir()
    return tmp_path


# --- --check --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["pairs", "clusters", "pairs --exact", "clusters --exact"])
def test_check_answers_yes_no_or_not_at_all(run, folders, command):
    command += " --no-store"
    check = [*command.split(), "--check", "-q"]
    assert run(*check, "docs", code=1).out
    assert not run(*check, "far", code=0).out
    for nothing, why in {
        "none": "there is no file in none\n  name files, or folders that hold some",
        "one": "1 document with shingles, of 1 file in one\n  name more files or folders",
        "blank": "0 documents with shingles, of 1 file in blank; 1 document without\n  "
        "-v names them; name files that hold text",
    }.items():
        result = run(*check, nothing, code=2)
        assert result.err.startswith(f"lshdup: error: nothing was checked: {why}\n")
        assert "warning" not in result.err
        assert run(*command.split(), nothing, "-q", code=0).err.startswith("lshdup: warning: ")
    pattern = run(*check, "docs", "--include", "*.md", code=2).err
    assert "3 excluded by --include\n  look at --include\n" in pattern


def test_check_against_the_documents_of_nobody(run, folders):
    check = ["pairs", "--check", "-q"]
    assert run(*check, "one", "--against", "docs", code=1).out
    assert not run(*check, "one", "--against", "far", code=0).out
    for docs, other, why in (
        ("none", "docs", "there is no file in none"),
        ("docs", "none", "OTHER has no document with shingles"),
        ("blank", "docs", "0 documents with shingles, of 1 file in blank"),
        ("docs", "blank", "OTHER has no document with shingles"),
        ("one", "one", "DOCS and OTHER are one and the same document"),
    ):
        err = run(*check, docs, "--against", other, code=2).err
        assert err.startswith(f"lshdup: error: nothing was checked: {why}"), (docs, other)
    run("pairs", "one", "--against", "one", code=0)


def test_check_of_one_mailbox(run, tmp_path):
    """A file of messages is one document, and one document is compared with nothing."""
    (tmp_path / "box").write_text("From a\nFrom: a@b\nTo: c@d\nSubject: x\n\none two three four\n")
    assert "nothing was checked: 1 document" in run("pairs", "box", "--check", code=2).err


def test_an_input_that_cannot_be_read_outweighs_what_was_found(run, folders):
    assert run("pairs", "docs", "gone", "--check", code=2).out
    assert run("clusters", "docs", "gone", "--check", code=2).out


def test_check_of_a_query(run, folders):
    run("index", "docs", "blank", "-q")
    (folders / "unlike").write_text("these are the words of a stranger from far away")
    (folders / "bad").write_bytes(b"binary \0 and so no text")
    assert run("query", "docs/a", "--check", "-q", code=1).out
    assert run("query", "-", "--check", "-q", stdin=b"", code=2).err == (
        "lshdup: error: - was not checked: it has no tokens\n  name a document that holds text\n"
    )
    assert run("query", "unlike", "--check", "-q", code=0).out == b""
    assert run("query", "unlike", "docs/b", "--check", "-q", code=1).out
    for word in ("gone", "none", "bad", "blank/empty"):
        run("query", word, "--check", "-q", code=2)
    assert run("query", "docs/a", "gone", "--check", "-q", code=2).out
    (folders / "docs/c").unlink()
    assert "cannot be read" in run("query", "docs/c", "--check", "-q", code=2).err
    run("query", "blank/empty", code=0)


def test_check_of_a_query_with_nothing_to_compare_with(run, folders):
    for docs, code in (("blank", 2), ("one", 1)):
        run("index", docs, "-q")
        run("query", "docs/a", "--check", "-q", code=code)
    alone = run("query", "one/a", "--check", "-q", code=2).err
    assert "the store holds no other document with tokens" in alone


# --- other exit codes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError("1 TB"), "not enough memory: 1 TB"),
        (RuntimeError("can't start new thread"), "no further thread or process can be started"),
        (BlockingIOError(11, "Resource temporarily"), "no further thread or process can be"),
    ],
)
def test_what_the_machine_lacks_is_trouble(monkeypatch, capsys, error, line):
    monkeypatch.setattr("lshdup.cli.main.lshdup.main", lambda *_, **__: _raise(error))
    with pytest.raises(SystemExit) as end:
        main(["pairs"])
    assert end.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"lshdup: error: {line}")
    assert len(said) == 2


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        BlockingIOError(11, "Resource temporarily"),
        OSError("Could not find/load shared object file 'libllvmlite.so'"),
        OSError(12, "Cannot allocate memory"),
        ImportError("_multiarray_umath.so: failed to map segment from shared object"),
    ],
)
def test_a_limit_of_addresses_is_named(monkeypatch, capsys, error):
    monkeypatch.setattr("lshdup.cli.main.lshdup.main", lambda *_, **__: _raise(error))
    monkeypatch.setattr("lshdup.cli.main.address_space", lambda: 200 << 20)
    with pytest.raises(SystemExit):
        main(["pairs"])
    assert capsys.readouterr().err.splitlines() == [
        "lshdup: error: not enough memory: this process may take 200 MB of addresses",
        "  raise the limit, as `ulimit -v` shows it",
    ]


def _raise(error):
    raise error


def test_the_exit_code_follows_from_errors_first():
    quiet, check = Console(), Console(check=True)
    assert (quiet.exit_code(3), check.exit_code(3), check.exit_code(0)) == (0, 1, 0)
    for console in (quiet, check):
        console.error(LshdupError("x"))
    assert (quiet.exit_code(3), check.exit_code(3), check.exit_code(0)) == (2, 2, 2)
    skipping = Console(check=True)
    skipping.report_skipped(Skipped(b"x", Reason.HIDDEN))
    assert skipping.exit_code(3) == 1
    skipping.report_skipped(Skipped(b"x", Reason.UNREADABLE))
    assert skipping.exit_code(3) == 2


# --- lists of names -------------------------------------------------------------------------------

ODD = [
    b"docs/new\nline",
    b"docs/tab\t",
    b"docs/\x01\x1b[31m",
    b"docs/\xff",
    b"docs/cr\r",
    b"docs/ ",
]


def test_a_list_with_nul_is_read_as_one(run, folders):
    names = sorted(os.fsencode(name) for name in ("docs/a", "docs/b", "docs/c"))
    found = b"".join(name + b"\0" for name in names)
    for command in ("pairs", "clusters", "index", "signatures", "shingle"):
        run(command, "--files-from", "-", stdin=found)
    (folders / "my list").write_bytes(found)
    by_name = run("pairs", "docs").out
    assert run("pairs", "--files-from", "my list").out == by_name
    assert run("pairs", "--files-from", "-", stdin=found.replace(b"\0", b"\n")).out == by_name


def test_the_form_of_a_list_says_nothing_about_the_output(run, folders):
    found = b"docs/a\0docs/b\0"
    pair = {"a": "docs/a", "b": "docs/b", "similarity": 1.0}
    lines = run("pairs", "--files-from", "-", "--format", "jsonl", stdin=found).out
    assert pair.items() <= json.loads(lines).items()
    assert run("pairs", "--files-from", "-", stdin=found).out.startswith(b"docs/a\tdocs/b\t1.0")
    nul = run("pairs", "--files-from", "-", "-0", stdin=b"docs/a\ndocs/b\n").out
    assert nul.startswith(b"docs/a\0docs/b\0" + b"1.0\0")


def test_names_with_control_characters_end_in_no_traceback(run, folders):
    for name in ODD:
        Path(os.fsdecode(os.fsencode(folders) + b"/" + name)).write_text("one and the same text")
    there = run("clusters", "--files-from", "-", "--emit", "drop", "-0", stdin=b"\0".join(ODD)).out
    assert set(there.split(b"\0")[:-1]) < set(ODD)
    for separator in (b"\0", b"\n"):
        for command in ("pairs", "shingle"):
            names = separator.join([*ODD, b"\x01\xff"])
            result = run(command, "--files-from", "-", stdin=names, code=2)
            assert "defect" not in result.err
            assert "\x1b" not in result.err
    windows = run("pairs", "--files-from", "-", stdin=b"docs/a\r\ndocs/b\r\n", code=2).err
    assert "did you mean docs/a?" in windows


def test_a_list_that_names_nothing(run, folders):
    err = run("pairs", "--files-from", "-", stdin=b"", code=2).err
    assert err.startswith("lshdup: error: --files-from - names no documents\n")
    missing = run("pairs", "--files-from", "gone\tlist", code=2).err
    assert missing.startswith("lshdup: error: --files-from gone\\tlist: No such file")


# --- what is skipped ------------------------------------------------------------------------------


def test_what_patterns_skip_is_counted_once_and_named_on_request(run, folders):
    for number in range(50):
        (folders / f"docs/{number}.md").write_text(f"text {number} of many others that are here")
    (folders / "docs/.dot").write_text("hidden")
    command = ["pairs", "docs", "--include", "[a-z]", "--exclude", "c"]
    plain, named, all_named = (run(*command, *more).err for more in ([], ["-v"], ["-vv"]))
    for err in (plain, named, all_named):
        count = "lshdup: skipped: 1 excluded by --exclude, 50 excluded by --include, 1 hidden\n"
        assert err.count(count) == err.count("50 excluded") == 1
    assert "docs/7.md" not in plain + named
    assert "docs/.dot: hidden" not in plain
    assert "docs/.dot: hidden" in named
    for line in ("docs/7.md: excluded by --include\n", "docs/c: excluded by --exclude\n"):
        assert line not in named
    assert sum(line.startswith("lshdup: docs/") for line in all_named.splitlines()) == 52
    environment = {"LSHDUP_VERBOSE": "2"}
    assert run(*command, env=environment).err.count("docs/7.md") == 1
    for yes in ("1", "true", "yes"):
        assert "docs/.dot: hidden" in run(*command, env={"LSHDUP_VERBOSE": yes}).err
    assert "docs/.dot: hidden" not in run(*command, env={"LSHDUP_VERBOSE": "no"}).err


def test_the_summary_counts_skipped_files(run, folders):
    (folders / "docs/binary").write_bytes(b"\0\1\2")
    (folders / "docs/.dot").write_text("hidden")
    for command in ("pairs", "clusters", "shingle", "index"):
        assert "lshdup: skipped: 1 binary, 1 hidden\n" in run(command, "docs").err
    against = run("pairs", "far", "--against", "docs").err
    assert "lshdup: skipped of OTHER: 1 binary, 1 hidden\n" in against


# --- commands that are suggested ------------------------------------------------------------------


def test_a_first_run_that_fails_names_the_command_that_was_typed(run, tmp_path):
    """With its options, and the word DOCS where they belong; a secret is not repeated."""
    for typed, suggested in {
        "pairs -t 0.7 --exact": "pairs DOCS -t 0.7 --exact",
        "clusters --emit drop -0": "clusters DOCS --emit drop -0",
        "signatures --perms 64": "signatures DOCS --perms 64",
        "report -o r.html --hash-key geheim": "report DOCS -o r.html",
        "shingle -k 4": "shingle DOCS -k 4",
        "query x --store s": "index DOCS --store s",
        "query x": "index DOCS",
    }.items():
        err = run(*typed.split(), code=2).err
        assert f"\n  run `lshdup {suggested}` (files or folders)" in err
        assert "geheim" not in err


def test_a_store_that_does_not_suit_names_the_command_that_was_typed(run, folders):
    run("index", "docs", "-q")
    other = run("pairs", "--tokens", "char", code=2).err
    assert "\n  run `lshdup pairs DOCS --tokens char`\n" in other
    perms = run("timing", "--perms", "64", "--seed", "7", "--no-store", code=2).err
    assert "`lshdup timing DOCS --perms 64 --seed 7 --no-store`" in perms
    run("shingle", "docs", "-q", "--store", "sets")
    conflict = run("signatures", "--store", "sets", "-k", "2", code=2).err
    assert "\n  run `lshdup signatures DOCS --store sets -k 2`\n" in conflict


def test_a_document_is_no_duplicate_of_itself_by_another_name(run, folders):
    """The store may have absolute names, and names that lead out of its folder and in again."""
    docs = folders / "docs"
    (folders / "link").symlink_to("docs")
    words = ("c", "./c", "../docs/c", str(docs / "c"), "../link/c", "../one/../docs/c")
    for named in (str(docs), "../docs", "../link", f"{docs}/../link", "../one/../docs", "."):
        run("index", named, "-q", "--store", "s", cwd=docs)
        for word in words:
            result = run("query", word, "--check", "--store", "s", cwd=docs, code=0)
            assert not result.out, (named, word)
        assert run("query", "b", "--check", "--store", "s", cwd=docs, code=1).out
        (docs / "s").rename(folders / f"s{len(list(folders.iterdir()))}")
