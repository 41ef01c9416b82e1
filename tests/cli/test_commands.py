"""The program as a person runs it: real processes, real folders, exact streams and exit codes."""

import json
import os
import re
import shlex
import subprocess
import sys

import click
import pytest

from lshdup.cli.main import lshdup
from lshdup.store.store import Store
from tests import reference, running
from tests.conftest import ROOT
from tests.running import in_terminal

COMMANDS = (
    "shingle", "signatures", "index", "query", "pairs", "clusters", "folders", "passages", "show",
    "report", "accuracy", "timing", "curve",
)  # fmt: skip


def brute_force(folder, threshold):
    """(a, b, similarity) as `pairs` must print them, from the reference's own reading of the
    folder.
    """
    sets = reference.folder_sets(folder)
    names = sorted(sets, key=os.fsencode)
    found = reference.all_pairs([sets[name] for name in names], threshold)
    return sorted(
        ((names[i], names[j], s) for i, j, s in found),
        key=lambda each: (-each[2], os.fsencode(each[0]), os.fsencode(each[1])),
    )


@pytest.fixture(scope="module")
def sample_pairs():
    here = os.getcwd()
    os.chdir(ROOT)
    try:
        found = brute_force("sample_corpus", 0.5)
        return {t: [each for each in found if each[2] >= t] for t in (0.5, 0.7, 0.9)}
    finally:
        os.chdir(here)


# --- pairs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9])
def test_pairs_are_those_of_brute_force(run, sample_pairs, threshold):
    expected = sample_pairs[threshold]
    for options, allowed in (
        (["--recall", "0.9999", "--perms", "256"], 0),
        (["--exact"], 0),
        ([], len(expected) // 100),
    ):
        found = [
            (a, b, float(s))
            for a, b, s, _ in run(
                "pairs", "sample_corpus", "-t", str(threshold), *options, "--no-store", cwd=ROOT
            ).rows
        ]
        assert set(found) <= set(expected)
        assert found == [each for each in expected if each in set(found)], "order"
        assert len(expected) - len(found) <= allowed
        if not allowed:
            assert found == expected


def test_the_exact_join_prints_the_same_at_any_number_of_jobs(run, sample_pairs):
    command = ["pairs", "sample_corpus", "-t", "0.5", "--exact", "--no-store", "--jobs"]
    one, *others = [run(*command, jobs, cwd=ROOT, env={"PYTHONHASHSEED": jobs}) for jobs in "124"]
    assert [(a, b, float(s)) for a, b, s, _ in one.rows] == sample_pairs[0.5]
    assert all(other.out == one.out for other in others)


def test_sample_corpus_covers_the_range(sample_pairs):
    similarities = [s for _, _, s in sample_pairs[0.5]]
    for low in (0.5, 0.6, 0.7, 0.8, 0.9):
        assert sum(low <= s < low + 0.1 for s in similarities) >= 5, low
    readme = [
        pair
        for pair in sample_pairs[0.5]
        if any(name.endswith(("README.md", "make.py")) for name in pair[:2])
    ]
    assert readme == []


@pytest.mark.parametrize(
    "options",
    [
        ["--tokens", "char"],
        ["--tokens", "terms"],
        ["--bag"],
        ["-k", "1", "--keep-case", "--no-normalize"],
    ],
)
def test_every_kind_of_shingle_through_every_route(run, corpus, options):
    exact = run("pairs", "sample_corpus", "-t", "0.8", *options, "--exact", "--no-store").rows
    found = run(
        "pairs", "sample_corpus", "-t", "0.8", *options, "--recall", "0.99999", "--perms", "512"
    ).rows
    assert found == exact
    assert run("pairs").rows == exact  # from the store
    assert len(exact) > 5


@pytest.mark.parametrize("scheme", ["fast", "classic"])
def test_every_scheme(run, corpus, scheme):
    one = run("pairs", "sample_corpus", "-t", "0.9", "--scheme", scheme).rows
    exact = run("pairs", "sample_corpus", "-t", "0.9", "--exact").rows
    assert set(map(tuple, one)) <= set(map(tuple, exact))
    assert len(one) >= 0.85 * len(exact)
    assert (
        run("pairs", "sample_corpus", "-t", "0.9", "--scheme", scheme).rows == one
    )  # again, from the store
    for jobs in ("1", "4"):
        other_order = {"PYTHONHASHSEED": jobs}  # of sets
        assert (
            run(
                "pairs",
                "sample_corpus",
                "-t",
                "0.9",
                "--scheme",
                scheme,
                "--no-store",
                "--jobs",
                jobs,
                env=other_order,
            ).rows
            == one
        )


def test_collapse_copies(run, tmp_path):
    (tmp_path / "d").mkdir()
    for i in range(6):
        (tmp_path / f"d/{i}").write_text("the same text in every one of these files")
    (tmp_path / "d/near").write_text("the same text in every one of these files too")
    everything = run("pairs", "d", "-t", "0.5").rows
    assert len(everything) == 6 * 5 // 2 + 6
    collapsed = run("pairs", "d", "-t", "0.5", "--collapse-copies").rows
    assert collapsed == [["d/0", f"d/{i}", "1.0", "bytes"] for i in range(1, 6)] + [
        ["d/0", "d/near", everything[-1][2], ""]
    ]
    assert run("query", "d/3").rows == [[f"d/{i}", "1.0", "bytes"] for i in (0, 1, 2, 4, 5)] + [
        ["d/near", everything[-1][2], ""]
    ]


def test_thousands_of_identical_files_are_linear(run, tmp_path):
    (tmp_path / "d").mkdir()
    for i in range(3000):
        (tmp_path / f"d/{i:04}").write_text("a text that is everywhere the same, word for word")
    assert len(run("pairs", "d", "--collapse-copies").rows) == 2999


COUNTING = """
import sys
from lshdup.cli import output
name_pairs = output.name_pairs
def counting(*arguments):
    for piece in name_pairs(*arguments):
        print("a piece", file=sys.stderr)
        yield piece
output.name_pairs = counting
from lshdup.cli.main import program
program()"""


def test_a_reader_that_leaves_ends_millions_of_pairs_at_once(run, tmp_path):
    (tmp_path / "d").mkdir()
    for i in range(6000):
        (tmp_path / f"d/{i:05}").write_text("one and the same text")
    run("index", "d")
    (tmp_path / "counting.py").write_text(COUNTING)
    program = f"PYTHONPATH={ROOT} {sys.executable} counting.py pairs"
    head = shell(f"{program} | head -2; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert head.returncode == 0, head.stderr
    assert head.stdout == b"d/00000\td/00001\t1.0\tbytes\nd/00000\td/00002\t1.0\tbytes\n"
    assert b"17,997,000 pairs" in head.stderr
    assert head.stderr.count(b"a piece") < 100  # of 2,200


def test_template_files_and_a_limit_on_buckets(run, tmp_path):
    """Sixty files of one template and three alike: all pairs without a limit; with one, what is
    skipped is said, and kept apart.
    """
    (tmp_path / "d").mkdir()
    words = [f"word{i}" for i in range(300)]
    for i in range(60):
        (tmp_path / f"d/t{i:02}").write_text(" ".join([*words[:150], f"number{i}", *words[150:]]))
    for i in range(3):
        (tmp_path / f"d/u{i}").write_text(" ".join([f"other{j}" for j in range(200)] + [f"end{i}"]))
    (tmp_path / "d/t60").write_bytes((tmp_path / "d/t00").read_bytes())  # copies count once
    everything = run("pairs", "d", "-t", "0.9")
    assert len(everything.rows) == 61 * 60 // 2 + 3
    assert "skipped" not in everything.err
    verbose = run("pairs", "-v")
    assert re.search(r"the largest bucket: \d\d documents, with d/t00", verbose.err)
    for _ in range(2):  # the second from pairs.npz
        limited = run("pairs", "--max-bucket", "20")
        assert [row[:2] for row in limited.rows] == [
            ["d/t00", "d/t60"],
            ["d/u0", "d/u1"],
            ["d/u0", "d/u2"],
            ["d/u1", "d/u2"],
        ]
        assert "warning: --max-bucket 20 skipped" in limited.err
        assert "60 documents: up to" in limited.err
        assert "not looked at" in limited.err
    assert run("pairs", "--max-bucket", "60").out == everything.out
    assert run("pairs").out == everything.out
    assert (
        run("pairs", "d", "-t", "0.9", "--max-bucket", "20", "--no-store", "--jobs", "1").out
        == limited.out
    )
    assert (
        "cannot be combined with --exact"
        in run("pairs", "d", "--exact", "--max-bucket", "5", code=2).err
    )
    assert b"no limit" in run("pairs", "--help").out


def test_check(run, tmp_path):
    (tmp_path / "a").write_text("one text here and now")
    (tmp_path / "b").write_text("another thing altogether")
    run("pairs", "a", "b", "--check", code=0)
    (tmp_path / "b").write_text("one text here and now")
    assert run("pairs", "a", "b", "--check", code=1).rows == [["a", "b", "1.0", "bytes"]]


# --- step by step ---------------------------------------------------------------------------------


def test_step_by_step_gives_the_same_answers(run, corpus, tmp_path):
    at_once = run("pairs", "sample_corpus", "-t", "0.7", "--no-store").out
    run("shingle", "sample_corpus")
    assert sorted(os.listdir(tmp_path / ".lshdup")) == [
        *(".gitignore", ".lock", "CACHEDIR.TAG", "manifest.json", "shingles.npz")
    ]
    run("signatures")
    run("index", "-t", "0.7")
    assert run("pairs", "-t", "0.7").out == at_once
    query = run("query", "sample_corpus/udhr/eng.txt").out
    import numpy as np

    for kind in ("shingles", "signatures", "bands"):
        with np.load(tmp_path / f".lshdup/{kind}.npz", allow_pickle=False) as plain:
            assert json.loads(plain["header"].tobytes())["kind"] == kind
            assert all(plain[member] is not None for member in plain.files)
    stepwise = {
        kind: (tmp_path / f".lshdup/{kind}.npz").read_bytes()
        for kind in ("shingles", "signatures", "bands")
    }
    run("shingle", "sample_corpus", "--store", "other")
    assert run("pairs", "sample_corpus", "-t", "0.7", "--store", "other").out == at_once
    assert run("query", "sample_corpus/udhr/eng.txt", "--store", "other").out == query
    assert {kind: (tmp_path / f"other/{kind}.npz").read_bytes() for kind in stepwise} == stepwise


def test_only_what_changed_is_read_again(run, corpus, tmp_path):
    first = run("pairs", "sample_corpus", "-t", "0.9")
    assert "unchanged" not in first.err
    again = run("pairs", "sample_corpus", "-t", "0.9")
    assert "0 documents read, 121 unchanged" in again.err
    assert again.out == first.out
    with (corpus / "udhr/fra.txt").open("a") as file:
        file.write("et un peu plus de texte encore\n")
    os.remove(corpus / "licences/ISC.txt.exact")
    (corpus / "new.txt").write_text((corpus / "licences/ISC.txt").read_text())
    changed = run("pairs", "sample_corpus", "-t", "0.9")
    assert "2 documents read, 119 unchanged" in changed.err
    assert changed.out == run("pairs", "sample_corpus", "-t", "0.9", "--no-store").out
    fresh = run("pairs", "sample_corpus", "-t", "0.9", "--store", "fresh")
    assert changed.out == fresh.out
    for kind in ("signatures", "bands"):
        assert (tmp_path / f".lshdup/{kind}.npz").read_bytes() == (
            tmp_path / f"fresh/{kind}.npz"
        ).read_bytes(), kind
    assert not (tmp_path / ".lshdup/shingles.npz").exists()
    assert "unchanged" not in run("shingle", "sample_corpus").err
    (corpus / "udhr/eng.txt").touch()
    assert "1 document read" in run("shingle", "sample_corpus").err


def test_unchanged_documents_are_not_even_opened(run, corpus):
    """The strongest way to see it: unreadable content that nobody notices, as size and time are the
    same.
    """
    first = run("pairs", "sample_corpus", "-t", "0.9").out
    path = corpus / "udhr/fra.txt"
    status = path.stat()
    path.write_bytes(b"\0" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run("pairs", "sample_corpus", "-t", "0.9").out == first


def test_left_out_files_are_remembered_and_counted_every_time(run, corpus):
    (corpus / "image").write_bytes(b"\x89PNG\0\0\0")
    (corpus / "paper").write_bytes(b"PK\x03\x04 ...")
    for _ in range(2):
        err = run("index", "sample_corpus").err
        assert "skipped: 1 binary, 1 format not supported" in err
    assert "0 documents read" in err


def test_a_stale_signature_file_is_made_anew(run, corpus):
    run("index", "sample_corpus", "--perms", "64")
    with (corpus / "udhr/fra.txt").open("a") as file:
        file.write("encore du texte\n")
    run("shingle", "sample_corpus")
    for perms in ("64", "128"):  # `shingle` has not said it: what was typed before does not count
        result = run("pairs", "-v", "-t", "0.9", *(["--perms", perms] if perms == "64" else []))
        assert "signatures.npz is made from shingles.npz" in result.err
        assert f"K = {perms}" in result.err
        fresh = run("pairs", "sample_corpus", "-t", "0.9", "--perms", perms, "--no-store")
        assert result.out == fresh.out
    assert "is made from shingles.npz" not in run("pairs", "-t", "0.9").err


def test_nothing_depends_on_threads_and_batches(corpus, tmp_path):
    """Artifacts and answers are the same bytes for any number of threads, any batch size,
    signatures in memory or in a file.
    """
    script = """
import sys, lshdup.sources.reading, lshdup.base.arrays
lshdup.sources.reading.BATCH_DOCUMENTS = int(sys.argv.pop(1))
lshdup.sources.reading.BATCH_BYTES = int(sys.argv.pop(1))
lshdup.base.arrays.MOST_IN_MEMORY = int(sys.argv.pop(1))
from lshdup.cli.main import main
main()"""
    seen = set()
    for jobs, documents, size, memory in (
        (1, 256, 1 << 21, 1 << 28),
        (2, 1, 1, 0),
        (4, 7, 1 << 30, 0),
        (4, 1000, 5000, 1 << 28),
    ):
        store = tmp_path / f"store-{jobs}-{documents}"
        parameters = [str(documents), str(size), str(memory)]
        command = [
            sys.executable,
            "-c",
            script,
            *parameters,
            "pairs",
            "sample_corpus",
            "-t",
            "0.5",
            "--jobs",
            str(jobs),
            "--store",
            str(store),
        ]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.run(command, capture_output=True, cwd=tmp_path, env=env, check=True)
        seen.add(
            (
                process.stdout,
                *(
                    (store / f"{kind}.npz").read_bytes()
                    for kind in ("signatures", "bands", "pairs")
                ),
            )
        )
    assert len(seen) == 1


def test_candidates_are_read_again(run, corpus, tmp_path):
    """No sets are kept, and signatures are in a file; the answers are the same, and changes are
    noticed.
    """
    script = """
import lshdup.base.arrays
lshdup.base.arrays.MOST_IN_MEMORY = 0
from lshdup.cli.main import main
main()"""

    def small(*arguments):
        command = [sys.executable, "-c", script, *arguments]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, capture_output=True, cwd=tmp_path, env=env, check=False)

    first = small("pairs", "sample_corpus", "-t", "0.9")
    assert not (tmp_path / ".lshdup/shingles.npz").exists()
    assert first.stdout == run("pairs", "sample_corpus", "-t", "0.9", "--no-store").out
    path = (
        corpus / "udhr/eng.txt.copy1"
    )  # a candidate of others: were it read again, it would be missed
    content, status = path.read_bytes(), path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert small("pairs", "sample_corpus", "-t", "0.9").stdout == first.stdout
    assert (
        small("pairs", "sample_corpus", "-t", "0.85").returncode == 2
    )  # another table: other candidates must be read
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert small("pairs", "sample_corpus", "-t", "0.9").stdout == first.stdout
    (tmp_path / ".lshdup/pairs.npz").write_bytes(b"junk")
    with (corpus / "udhr/fra.txt").open("a") as file:
        file.write("encore du texte\n")
    changed = small("pairs", "-t", "0.9")
    assert changed.returncode == 2
    assert b"udhr/fra.txt: changed while in use" in changed.stderr
    expected = [line for line in first.stdout.splitlines() if b"fra.txt\t" not in line]
    assert changed.stdout.splitlines() == expected


def test_sets_are_kept_where_a_reader_takes_long(run, tmp_path):
    """As many as one name in fifty is that of an office document."""
    (tmp_path / "d").mkdir()
    for i in range(98):
        (tmp_path / f"d/{i}.txt").write_text(f"document {i // 2} of some with words of its own {i}")
    (tmp_path / "d/report.PDF").write_text("words of no other document at all")
    run("pairs", "d", "--store", "few")
    assert not (tmp_path / "few/shingles.npz").exists()
    (tmp_path / "d/98.docx").write_text("document 48 of some with words of its own 98")
    expected = run("pairs", "d", "-t", "0.6", "--no-store").out
    run("pairs", "d")
    run("shingle", "d", "--store", "sets")
    kept, sets = (tmp_path / f"{store}/shingles.npz" for store in (".lshdup", "sets"))
    assert kept.read_bytes() == sets.read_bytes()
    for path in (tmp_path / "d").iterdir():
        path.write_text("changed")
    assert run("pairs", "-t", "0.6").out == expected  # no document is read


def test_bands_of_a_lower_threshold_are_made_anew(run, corpus):
    run("index", "sample_corpus", "-t", "0.9")
    for threshold in ("0.95", "0.5"):
        found = run("pairs", "-t", threshold).out
        assert found == run("pairs", "sample_corpus", "-t", threshold, "--no-store").out
    query = ("query", "sample_corpus/licences/MIT.txt")
    lower = run(*query, "-t", "0.5")
    assert "bands rebuilt from signatures.npz, as the stored ones were planned for 0.9" in lower.err
    run("index", "-t", "0.5")
    again = run(*query, "-t", "0.5")
    assert "rebuilt" not in again.err
    assert again.out == lower.out


def test_the_store_works_from_another_folder(run, corpus, tmp_path):
    run("index", "sample_corpus", "-t", "0.9", "--store", "st")
    expected = [[f"../{row[0]}", *row[1:]] for row in run("query", "eng.txt", "--store", "st").rows]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run("query", "eng.txt", "--store", "../st", cwd=elsewhere).rows == expected
    here = [[f"../{a}", f"../{b}", *c] for a, b, *c in run("pairs", "--store", "st").rows]
    assert run("pairs", "--store", str(tmp_path / "st"), cwd=elsewhere).rows == here


def test_the_last_run_is_continued_whichever_it_was(run, corpus):
    a, b = (
        run("pairs", "sample_corpus/licences", "-t", "0.9").rows,
        run("pairs", "sample_corpus/udhr", "-t", "0.9", "--no-store").rows,
    )
    assert a != b
    run("shingle", "sample_corpus/udhr")
    assert run("pairs", "-t", "0.9").rows == b
    run("index", "sample_corpus/licences")
    assert run("pairs", "-t", "0.9").rows == a
    run("shingle", "sample_corpus/udhr")
    # Nothing changed there, and yet it is the last run now.
    run("index", "sample_corpus/licences")
    assert run("pairs", "-t", "0.9").rows == a
    # shingles.npz still is of the others: documents are read again.
    exact = run("pairs", "sample_corpus/licences", "-t", "0.9", "--exact", "--no-store")
    assert run("pairs", "--exact", "-t", "0.9").out == exact.out


@pytest.mark.parametrize("options", [(), ("--template", "sample_corpus/licences/MIT.txt")])
def test_the_exact_join_of_the_last_run_reads_its_documents_again(run, corpus, tmp_path, options):
    run("index", "sample_corpus", "-t", "0.6", *options)
    assert not (tmp_path / ".lshdup/shingles.npz").exists()
    expected = run("pairs", "sample_corpus", "--exact", *options, "--no-store").rows
    assert run("pairs", "--exact").rows == expected
    run("shingle", "sample_corpus")
    run("index", "sample_corpus", "-t", "0.6", *options)
    assert run("pairs", "--exact").rows == expected  # from shingles.npz
    (tmp_path / ".lshdup/shingles.npz").unlink()
    (corpus / "udhr/fra.txt").unlink()
    with (corpus / "udhr/eng.txt").open("a") as file:
        file.write("and more\n")
    changed = run("pairs", "--exact", code=2)
    assert "sample_corpus/udhr/fra.txt: vanished" in changed.err
    assert "sample_corpus/udhr/eng.txt: changed while in use" in changed.err
    gone = {"sample_corpus/udhr/fra.txt", "sample_corpus/udhr/eng.txt"}
    rest = [row for row in expected if not gone.intersection(row[:2])]
    assert len(rest) < len(expected)
    assert changed.rows == rest


def test_steps_from_another_folder_leave_the_store_right(run, corpus, tmp_path):
    run("shingle", "sample_corpus")
    inner = tmp_path / "sample_corpus/udhr"
    run("index", "-t", "0.9", "--store", "../../.lshdup", cwd=inner)
    expected = run("query", "sample_corpus/udhr/eng.html").rows
    assert expected[0] == ["sample_corpus/udhr/eng.txt", "1.0", "text"]
    assert run("query", "eng.html", "--store", "../../.lshdup", cwd=inner).rows == [
        [name.removeprefix("sample_corpus/udhr/"), *rest] for name, *rest in expected
    ]
    (tmp_path / ".lshdup/shingles.npz").unlink()
    assert run("query", "sample_corpus/udhr/eng.html").rows == expected
    names = {
        name
        for a, b, *_ in run("pairs", "--store", "../../.lshdup", cwd=inner).rows
        for name in (a, b)
    }
    assert names
    assert all((inner / name).exists() for name in names)


def test_id_lists_of_the_same_shape_are_told_apart(run, tmp_path):
    for name, text in (("a", "d1 1 2 3 4\nd2 5 6 7 8\n"), ("b", "d1 1 2 3 4\nd2 1 2 3 4\n")):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, ns=(0, 0))
    assert run("pairs", "a", "--tokens", "ids").rows == []
    rows = run("pairs", "b", "--tokens", "ids").rows
    assert rows == [["d1", "d2", "1.0", "bytes"]]


# --- query ----------------------------------------------------------------------------------------


def test_query_by_name_tail_file_and_standard_input(run, corpus, tmp_path):
    run("index", "sample_corpus", "-t", "0.7")
    by_name = run("query", "sample_corpus/licences/Apache-1.1.txt").rows
    assert [name for name, *_ in by_name][:1] == ["sample_corpus/licences/Apache-1.1.txt.copy1"]
    assert run("query", "Apache-1.1.txt").rows == by_name
    assert run("query", "e-1.1.txt").rows == by_name
    text = (corpus / "licences/Apache-1.1.txt").read_bytes()
    (tmp_path / "outside.txt").write_bytes(text)
    itself = [["sample_corpus/licences/Apache-1.1.txt", "1.0", "bytes"]]
    assert sorted(run("query", "outside.txt").rows) == sorted(itself + by_name)
    assert sorted(run("query", "-", stdin=text).rows) == sorted(itself + by_name)
    recoded = [
        [name, similarity, "text" if same else ""] for name, similarity, same in itself + by_name
    ]
    found = run("query", "-", stdin=text.decode().encode("utf-16")).rows
    assert sorted(found) == sorted(recoded)
    several = run("query", "Apache-1.1.txt", "-", stdin=text).rows
    assert len(several) == 2 * len(by_name) + 1
    assert {row[3] for row in several} == {"sample_corpus/licences/Apache-1.1.txt", "-"}
    assert run("query", "-", stdin=b"").out == b""
    assert "is the end of 5 names" in run("query", "copy1", code=2).err
    assert "no document of the store" in run("query", "nothing-like-it", code=2).err
    partly = run("query", "nothing-like-it", "Apache-1.1.txt", code=2)
    assert len(partly.rows) == len(by_name)


def test_a_pair_exactly_at_the_threshold_is_in_every_answer(run, tmp_path):
    """7 words of 25: 0.28 * 25 is more than 7 as a double, but 7 / 25 is 0.28."""
    for folder in ("d", "e"):
        (tmp_path / folder).mkdir()
    words = [f"word{i}" for i in range(25)]
    (tmp_path / "d/a").write_text(" ".join(words[:7]))
    for name in ("d/b", "e/b"):
        (tmp_path / name).write_text(" ".join(words))
    bands = ("-k", "1", "--bands", "128", "--rows", "1")
    for threshold, found in (("0.28", 1), ("0.2800001", 0)):
        t = ("-t", threshold)
        assert len(run("pairs", "d", *bands, *t).rows) == found
        assert len(run("pairs", "d", "-k", "1", "--exact", *t).rows) == found
        assert len(run("pairs", "d/a", "--against", "e", *bands, *t, "--no-store").rows) == found
        assert len(run("clusters", "d", *bands, *t).rows) == 2 * found
        assert len(run("clusters", "d", "-k", "1", "--exact", *t).rows) == 2 * found
        run("index", "d", *bands, "-t", "0.28")
        assert len(run("query", "d/a", *t).rows) == found


def test_query_agrees_with_pairs(run, corpus):
    pairs = run("pairs", "sample_corpus", "-t", "0.6").rows
    for name in {pair[0] for pair in pairs[::7]}:
        expected = {(b if a == name else a, *rest) for a, b, *rest in pairs if name in (a, b)}
        assert set(map(tuple, run("query", name, "-t", "0.6").rows)) == expected


def test_query_of_a_changed_document_looks_up_its_present_text(run, corpus):
    run("index", "sample_corpus", "-t", "0.9")
    (corpus / "udhr/eng.html").write_bytes((corpus / "licences/ISC.txt").read_bytes())
    result = run("query", "udhr/eng.html")
    assert "has changed since it was indexed" in result.err
    assert [name for name, *_ in result.rows] == [
        "sample_corpus/licences/ISC.txt",
        "sample_corpus/licences/ISC.txt.exact",
    ]


def test_query_of_neighbours_that_vanished(run, corpus):
    run("index", "sample_corpus", "-t", "0.9")
    before = run("query", "udhr/eng.html").rows
    (corpus / "udhr/eng.txt.copy1").unlink()
    result = run("query", "udhr/eng.html", code=2)
    assert "eng.txt.copy1: vanished" in result.err
    assert result.rows == [row for row in before if not row[0].endswith("eng.txt.copy1")]


# --- the published collection ---------------------------------------------------------------------


def test_r5_hand_out(run, pages):
    shingles, duplicates = pages
    expected = {tuple(line.split(",")) for line in duplicates.read_text().split()}
    for options in ([], ["--perms", "10000", "--bands", "500"], ["--exact"]):
        rows = run(
            "pairs", str(shingles), "--tokens", "ids", "-t", "0.85", "--no-store", *options
        ).rows
        assert {(str(int(a[5:])), str(int(b[5:]))) for a, b, *_ in rows} == expected
    assert len(expected) == 50


def test_id_lists_through_the_store(run, tmp_path):
    (tmp_path / "ids").write_text("x 1 2 3 4\ny 1 2 3 5\nz 7 8 9\nempty\n")
    assert run("pairs", "ids", "--tokens", "ids", "-t", "0.5", "--recall", "0.99999").rows == [
        ["x", "y", "0.6", ""]
    ]
    near = ("-t", "0.5", "--recall", "0.99999")
    assert run("query", "y", *near).rows == [["x", "0.6", ""]]
    assert run("query", "-", *near, stdin=b"new 7 8 9 10").rows == [["z", "0.75", ""]]
    bad = run("pairs", "ids", "README", "--tokens", "ids", code=2)
    assert "README" in bad.err
    (tmp_path / "ids").write_text("x 1 2 3 4\ny 1 2 3 5\nz 7 eight 9\n")
    result = run("pairs", "ids", "--tokens", "ids", "-t", "0.5", "--recall", "0.99999", code=2)
    assert result.rows == [["x", "y", "0.6", ""]]
    assert "z: not integers" in result.err


# --- output ---------------------------------------------------------------------------------------


@pytest.fixture
def odd_names(tmp_path):
    names = [
        b"new\nline",
        b"tab\there",
        b"[bold]red[bold]",
        b"-rf",
        b"bytes-\xff\xfe",
        "ünï".encode(),
        b'quo"te,comma',
        b"\x1b[31mred",
    ]
    os.mkdir(tmp_path / "odd")
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), b"odd", name), "wb") as file:
            file.write(b"all of these have the same text")
    return [b"odd/" + name for name in sorted(names)]


def test_odd_names_byte_for_byte(run, odd_names, tmp_path):
    pairs = [(a, b) for i, a in enumerate(odd_names) for b in odd_names[i + 1 :]]
    assert "some names hold tabs or newlines" in run("pairs", "odd").err
    assert "some names" not in run("pairs", "odd", "-0").err
    assert run("pairs", "odd").out == b"".join(a + b"\t" + b + b"\t1.0\tbytes\n" for a, b in pairs)
    assert run("pairs", "odd", "-0").out == b"".join(
        a + b"\0" + b + b"\0" + b"1.0\0bytes\0" for a, b in pairs
    )
    parsed = json.loads(run("pairs", "odd", "--format", "json").out)
    assert [
        (os.fsencode(row["a"]), os.fsencode(row["b"]), row["similarity"]) for row in parsed
    ] == [(a, b, 1.0) for a, b in pairs]
    assert run("query", b"odd/bytes-\xff\xfe").out.count(b"\n") == 8  # 7 names, one with a newline
    table = run("pairs", "odd", "--format", "table").out
    assert b"\x1b" not in table
    assert b"[bold]red[bold]" in table
    assert b"\\x1b" in run("pairs", "odd", "--max-bytes", "1", "-v", code=2).err.encode()
    listed = run("pairs", "--files-from", "-", "-0", stdin=b"\0".join(odd_names)).out
    assert listed == run("pairs", "odd", "-0").out


def test_dash_names_in_the_current_folder_are_safe(run, tmp_path):
    for name in ("-n", "-e"):
        (tmp_path / name).write_text("one and the same text")
    assert run("pairs", ".").rows == [["./-e", "./-n", "1.0", "bytes"]]
    assert run("query", "./-n").rows == [["./-e", "1.0", "bytes"]]


def test_formats(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("one and the same text")
    assert json.loads(run("pairs", "a", "b", "--format", "json").out) == [
        {"a": "a", "b": "b", "similarity": 1.0, "same": "bytes"}
    ]
    assert run("pairs", "a", "--format", "json", "--no-store").out == b"[]\n"
    assert json.loads(run("pairs", "a", "b", "--format", "jsonl").out) == {
        "a": "a",
        "b": "b",
        "similarity": 1.0,
        "same": "bytes",
    }
    assert run("pairs", "a", "--format", "jsonl", "--no-store").out == b""
    assert run("pairs", "a", "b", "--format", "csv").out == b"a,b,similarity,same\na,b,1.0,bytes\n"
    assert run("pairs", "a", "b", "-o", "out.tsv").out == b""
    assert (tmp_path / "out.tsv").read_bytes() == b"a\tb\t1.0\tbytes\n"
    assert "exclude each other" in run("pairs", "a", "b", "-0", "--format", "csv", code=2).err
    assert "cannot be written" in run("pairs", "a", "b", "-o", "no/such/file", code=2).err
    assert not run("pairs", "a", "b", "-q").err


def test_output_goes_where_it_is_sent(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("one and the same text")
    (tmp_path / "target").write_text("old")
    (tmp_path / "target").chmod(0o600)
    (tmp_path / "link").symlink_to("target")
    run("pairs", "a", "b", "-o", "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "a\tb\t1.0\tbytes\n"
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o600
    run("pairs", "a", "b", "-o", "/dev/null")
    assert not os.path.isfile("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        run("pairs", "a", "b", "-o", "pipe")
        assert reader.communicate(timeout=10)[0] == b"a\tb\t1.0\tbytes\n"


def test_an_answer_is_printed_even_if_it_cannot_be_kept(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("one and the same text")
    run("index", "a", "b")
    with Store(tmp_path / ".lshdup").writing():
        result = run("pairs")
    assert result.rows == [["a", "b", "1.0", "bytes"]]
    assert "pairs.npz is not kept: another lshdup run" in result.err


def test_one_missing_document_does_not_stop_the_others(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("one and the same text")
    result = run("pairs", "--files-from", "-", stdin=b"a\ngone\nb\n", code=2)
    assert result.rows == [["a", "b", "1.0", "bytes"]]
    assert "gone: missing" in result.err


def test_options_that_would_be_ignored_are_refused(run, tmp_path):
    for name in ("a", "b.md"):
        (tmp_path / name).write_text("one and the same text")
    run("index", "a", "b.md")
    assert "--exclude has no effect without DOCS" in run("pairs", "--exclude", "*", code=2).err
    assert (
        "--recall cannot be combined with --exact"
        in run("pairs", "a", "b.md", "--exact", "--recall", "0.5", code=2).err
    )
    assert (
        "--format has no effect without --show"
        in run("shingle", "a", "--format", "json", code=2).err
    )
    assert run("pairs", ".", "--include", "*.md").rows == []
    assert run("pairs", "a", "b.md", "--include", "*.md").rows == [["a", "b.md", "1.0", "bytes"]]


def test_one_file_under_several_spellings_is_one_document(run, corpus, tmp_path):
    name = "sample_corpus/licences/ISC.txt"
    for arguments in (
        [name, tmp_path / name, f"./{name}"],
        [tmp_path / name, "sample_corpus/licences"],
        ["sample_corpus/licences", tmp_path / name],
    ):
        rows = run("pairs", *map(str, arguments), "-t", "0.99", "--no-store").rows
        assert not [
            row for row in rows if os.path.samefile(tmp_path / row[0], tmp_path / row[1])
        ], rows
    run("index", name, "sample_corpus/licences/ISC.txt.exact")
    assert (
        run("query", str(tmp_path / name)).rows
        == run("query", name).rows
        == [["sample_corpus/licences/ISC.txt.exact", "1.0", "bytes"]]
    )


def test_answers_from_the_store_tell_what_has_changed(run, corpus):
    run("index", "sample_corpus", "-t", "0.9")
    assert "changed or vanished" not in run("pairs").err
    (corpus / "licences/ISC.txt.exact").unlink()
    with (corpus / "udhr/eng.txt").open("a") as file:
        file.write("more")
    assert "2 documents of this answer changed or vanished" in run("pairs").err
    assert "1 document of this answer changed or vanished" in run("query", "licences/ISC.txt").err


def test_a_folder_that_is_no_store_is_left_alone(run, corpus, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/pairs.npz").write_text("precious")
    for folder in ("mine", "sample_corpus", ""):
        result = run("pairs", "sample_corpus", "--store", folder, code=2)
        assert "is no store of lshdup" in result.err
    assert (tmp_path / "mine/pairs.npz").read_text() == "precious"
    assert not (corpus / ".gitignore").exists()
    (tmp_path / "mine/signatures.npz").symlink_to("/dev/null")
    said = run("query", "x", "--store", "mine", code=2).err
    assert "mine/signatures.npz is a link, where a file of lshdup belongs" in said


def test_standard_input_and_output_by_their_usual_name(run, corpus):
    assert "standard input is no document here" in run("pairs", "sample_corpus", "-", code=2).err
    assert run("pairs", "sample_corpus", "-o", "-").out == run("pairs", "sample_corpus").out
    assert not (corpus.parent / "-").exists()


def test_named_files_that_cannot_be_documents(run, tmp_path):
    (tmp_path / "a").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    assert "pipe: unreadable (not a regular file)" in run("pairs", "a", "pipe", code=2).err


def test_defects_never_exit_with_the_code_for_pairs(tmp_path):
    script = (
        "import lshdup.cli.output, lshdup.cli.main\nlshdup.cli.output.Target.write_pieces = "
        "lambda *a: 1 / 0\nlshdup.cli.main.main(['curve'])"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, cwd=ROOT, check=False
    )
    assert process.returncode == 2
    assert b"ZeroDivisionError" in process.stderr
    assert b"defect of lshdup" in process.stderr


def shell(command, cwd):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    function = f'lshdup() {{ {shlex.quote(sys.executable)} -m lshdup "$@"; }}'
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{function}\n{command}"],
        capture_output=True,
        cwd=cwd,
        env=env,
        check=False,
    )


def test_pipes(run, corpus, tmp_path):
    head = shell(
        "LSHDUP_PERMS=512 lshdup pairs sample_corpus -t 0.02 --recall 0.5 | (exec <&-; sleep "
        "1); exit ${PIPESTATUS[0]}",
        tmp_path,
    )
    assert head.returncode == 0, head.stderr
    head = shell("lshdup pairs sample_corpus -t 0.3 | head -1", tmp_path)
    assert head.returncode == 0, head.stderr
    assert head.stdout.count(b"\n") == 1
    assert b"Traceback" not in head.stderr
    assert b"BrokenPipe" not in head.stderr
    for arguments in ("--help", "--version", "pairs --help"):
        gone = shell(f"lshdup {arguments} | exec <&-; exit ${{PIPESTATUS[0]}}", tmp_path)
        assert gone.returncode == 0, arguments
    echoed = shell("lshdup pairs sample_corpus -t 0.9 -0 | xargs -0 -n4 echo", tmp_path)
    assert echoed.stdout.decode().splitlines() == [
        " ".join(row) for row in run("pairs", "sample_corpus", "-t", "0.9").rows
    ]
    lines = shell(
        "lshdup pairs sample_corpus -t 0.9 --format jsonl | python3 -m json.tool --json-lines",
        tmp_path,
    )
    assert lines.returncode == 0
    assert lines.stdout.count(b'"similarity"') == len(echoed.stdout.splitlines())
    closed = shell("lshdup pairs sample_corpus -t 0.9 >&-", tmp_path)
    assert closed.returncode == 2
    assert b"standard output is closed" in closed.stderr
    mute = shell("lshdup pairs sample_corpus -t 0.9 2>&-", tmp_path)
    assert mute.returncode == 0
    assert mute.stdout.count(b"\n") == len(echoed.stdout.splitlines())
    full = shell("lshdup pairs sample_corpus -t 0.9 > /dev/full", tmp_path)
    assert full.returncode == 2
    assert b"Traceback" not in full.stderr


def test_a_table_on_a_terminal(corpus, tmp_path):
    code, shown, _ = in_terminal(["pairs", "sample_corpus", "-t", "0.95", "-q"], 200, tmp_path)
    assert code == 0
    assert re.search(rb"a +b +similarity", re.sub(rb"\x1b\[[0-9;]*m", b"", shown))


# --- trouble --------------------------------------------------------------------------------------


def test_usage_errors(run, tmp_path):
    (tmp_path / "a").write_text("text")
    (tmp_path / "b").write_text("other")
    for arguments, words in [
        (["pairs", "no-such-folder"], ["no-such-folder", "No such file"]),
        (["pairs", "a", "-t", "1.5"], ["--threshold is 1.5", "at most 1"]),
        (["pairs", "a", "-t", "0"], ["--threshold is 0", "above 0"]),
        (["pairs", "a", "--max-bytes", "0"], ["--max-bytes is 0", "from 1"]),
        (["pairs", "a", "--recall", "1"], ["--recall is 1"]),
        (["index", "a", "--perms", "0"], ["--perms is 0"]),
        (["pairs", "a", "--tokens", "ids", "-k", "2"], ["ids are shingles already"]),
        (["index", "a", "--hash", "poly31"], ["characters only"]),
        (["pairs", "a", "--encoding", "klingon"], ["klingon"]),
        (["pairs", "a", "--perms", "8", "-t", "0.1"], ["8 rows cannot meet", "--perms"]),
        (["index", "a", "--bands", "20", "--rows", "20"], ["400"]),
        (["pairs"], ["there is no signatures.npz in .lshdup", "lshdup pairs DOCS"]),
        (["signatures"], ["there is no shingles.npz"]),
        (["shingle"], ["no documents were named"]),
        (["query", "a"], ["there is no signatures.npz"]),
        (["pairs", "--no-store"], ["--no-store leaves nothing"]),
        (["shingle", "a", "--no-store"], ["--no-store forbids"]),
        (["pairs", "--files-from", "/dev/null"], ["names no documents"]),
        (["pairs", "--nonsense"], ["--nonsense"]),
        (
            ["accuracy", "a", "b", "--no-store", "--scheme", "linear"],
            ["different coefficients", "fewer --perms"],
        ),
    ]:
        result = run(*arguments, code=2)
        assert result.out == b""
        assert "Traceback" not in result.err
        for word in words:
            assert word in result.err, result


def test_conflicting_parameters_name_the_difference(run, corpus):
    run("shingle", "sample_corpus")
    result = run("pairs", "--tokens", "char", code=2)
    assert "made with --tokens word, not char" in result.err
    run("index")
    assert "--perms 128, not 64" in run("pairs", "--perms", "64", code=2).err
    run("pairs", "--perms", "128", "--tokens", "word")


def test_damaged_artifacts_are_refused_in_one_line(run, corpus, tmp_path):
    run("shingle", "sample_corpus")
    run("index", "sample_corpus")
    for kind in ("signatures", "bands"):
        path = tmp_path / f".lshdup/{kind}.npz"
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        result = run("pairs", code=2)
        assert f"{kind}.npz is damaged" in result.err
        assert len(result.err.splitlines()) == 2
        path.write_bytes(data)
    shingles = tmp_path / ".lshdup/shingles.npz"
    shingles.write_bytes(b"junk")
    run("query", "MIT.txt")  # needs none of them
    assert "rebuilt" in run("shingle", "sample_corpus").err
    run("index", "sample_corpus")
    (tmp_path / ".lshdup/bands.npz").write_bytes((tmp_path / ".lshdup/signatures.npz").read_bytes())
    assert "holds signatures, not bands" in run("pairs", code=2).err
    expected = run("pairs", "sample_corpus", "--no-store").out
    (tmp_path / ".lshdup/signatures.npz").write_bytes(b"junk")
    mended = run("pairs", "sample_corpus")
    assert mended.out == expected
    assert "rebuilt" in mended.err


def test_unreadable_files_are_counted_and_the_rest_goes_on(run, corpus):
    if os.geteuid() == 0:
        # Root reads everything: a folder in place of a listed file is what cannot be read.
        os.remove(corpus / "udhr/fra.txt")
        os.symlink("nowhere", corpus / "udhr/fra.txt")
        result = run("pairs", "sample_corpus", "-t", "0.9", "--follow", code=2)
        assert "sample_corpus/udhr/fra.txt: vanished" in result.err
    else:
        (corpus / "udhr/fra.txt").chmod(0)
        result = run("pairs", "sample_corpus", "-t", "0.9", code=2)
        assert "sample_corpus/udhr/fra.txt: unreadable" in result.err
    assert len(result.rows) > 10


def test_a_store_that_cannot_be_made(run, tmp_path):
    (tmp_path / "a").write_text("text")
    (tmp_path / "file").write_text("in the way")
    result = run("pairs", "a", "--store", "file/store", code=2)
    assert "cannot be written" in result.err
    assert "--no-store" in result.err


def test_empty_folders_and_single_documents(run, tmp_path):
    (tmp_path / "d").mkdir()
    assert run("pairs", "d").out == b""
    (tmp_path / "d/empty").write_text("")
    (tmp_path / "d/also").write_text(" \n")
    result = run("pairs", "d", "-t", "0.1", "--perms", "512")
    assert result.out == b""
    assert "2 documents without tokens" in result.err
    (tmp_path / "d/one").write_text("a b c d")
    assert run("pairs", "d").out == b""
    assert run("query", "one").out == b""
    assert run("query", "empty").out == b""
    assert run("pairs", "d", "--exact").out == b""


# --- help -----------------------------------------------------------------------------------------


def examples(text):
    return [
        line.strip()
        for line in text.split("Examples:")[1].splitlines()
        if line.strip().startswith("lshdup")
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_examples_that_run(run, corpus, tmp_path, command):
    short = run(command, "-h").out.decode()
    assert len(short.splitlines()) <= 40
    assert max(map(len, short.splitlines())) <= 80
    options = [each for each in lshdup.get_command(None, command).params if each.opts[0][0] == "-"]
    shown = sum(not each.hidden for each in options) - 1  # without -h
    assert f"\nAll {shown} options: " in short
    found = examples(run(command, "--help").out.decode())
    assert len(found) >= 2
    assert examples(short) == found[:2]
    for line in found:
        process = running.shell(line, tmp_path)
        assert process.returncode == 0, (line, process.stderr)
        assert process.stdout or command in ("shingle", "signatures", "index"), line


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_shows_its_default_or_variable(run, command):
    text = run(command, "--help").out.decode()
    variable = "LSHDUP_PERMS" if command == "curve" else "LSHDUP_STORE"
    assert f"[{variable}" in re.sub(r"\s+", " ", text)
    assert "default: " in text
    loaded = lshdup.get_command(None, command)
    context = click.Context(loaded, info_name=command)
    settings = loaded.settings()
    assert all(each.envvar in text for each in settings)
    options = [each for each in loaded.params if isinstance(each, click.Option)]
    for option in [each for each in options if each.show_envvar and not each.hidden]:
        long = next(name for name in option.opts if name.startswith("--"))
        assert option.envvar == "LSHDUP_" + long[2:].replace("-", "_").upper()
        assert f"[{option.envvar}" in option.get_help_record(context)[1]


def test_environment_variables(run, tmp_path):
    for name, text in (("a", "one two three four five"), ("b", "one two three four six")):
        (tmp_path / name).write_text(text)
    assert run("pairs", "a", "b").out == b""
    assert run(
        "pairs", "a", "b", env={"LSHDUP_THRESHOLD": "0.5", "LSHDUP_RECALL": "0.9999"}
    ).rows == [["a", "b", "0.5", ""]]
    run("pairs", "a", "b", env={"LSHDUP_STORE": "elsewhere"})
    assert (tmp_path / "elsewhere/bands.npz").exists()


def test_version_and_bare_call(run):
    assert re.fullmatch(rb"lshdup \d+\.\d+\.\d+\n", run("--version").out)
    assert b"pairs" in run("--help").out


def test_show_shingles(run, corpus):
    rows = run(
        "shingle", "--show", "-", "--tokens", "char", "-k", "3", "--hash", "poly31", stdin=b"abeabe"
    ).rows
    assert rows == [["96356", "abe"], ["97406", "bea"], ["100166", "eab"]]
    run("shingle", "sample_corpus")
    rows = run("shingle", "--show", "odd/short.txt").rows
    assert rows == [[f"{reference.shingle_list('Two words')[0]:016x}", "two words"]]
