"""Which store a command uses, from which folder, and what it says of documents that are gone."""

import json
import os
from pathlib import Path
from string import ascii_lowercase

import pytest

TEXT = "one of several texts that are nearly the same but for a word or a number at the end"


@pytest.fixture
def here(tmp_path):
    """Three near-duplicates, and a text of its own, below docs."""
    (tmp_path / "docs/sub").mkdir(parents=True)
    for name in ("docs/a", "docs/b", "docs/sub/c"):
        (tmp_path / name).write_text(f"{TEXT} {name[-1]}")
    (tmp_path / "docs/own").write_text("nothing that any other of these documents says as well")
    return tmp_path


# --- stores in folders above ----------------------------------------------------------------------


def test_a_command_without_docs_uses_the_store_of_a_folder_above(run, here):
    run("pairs", "docs", "-q")
    sub = here / "docs/sub"
    listed = run("pairs", cwd=sub)
    assert listed.rows == [
        ["../a", "../b", listed.rows[0][2], ""],
        ["../a", "c", listed.rows[1][2], ""],
        ["../b", "c", listed.rows[2][2], ""],
    ]
    assert "lshdup: the store is ../../.lshdup\n" in listed.err
    assert "the last run: 4 documents in .. (" in listed.err
    assert {row[0] for row in run("pairs", "--exact", cwd=sub).rows} == {"../a", "../b"}
    for name in ("c", "sub/c", "./c", str(sub / "c")):
        near = {cell for row in run("query", name, cwd=sub).rows for cell in row if "." in cell[:1]}
        assert near == {"../a", "../b"}, name
    assert {row[2] for row in run("clusters", cwd=sub).rows} == {"../a", "../b", "c"}
    assert "a: ../a, of the store" in run("show", "a", cwd=sub).err
    shown = run("show", "../a", "c", cwd=sub, code=0)
    assert shown.lines[0].startswith("A  ../a: ")
    assert "the store is ../../.lshdup" in run("report", cwd=sub).err
    assert run("pairs", "--store", "../../.lshdup", cwd=sub).out == listed.out
    assert not (sub / ".lshdup").exists()
    dropped = run("clusters", "--emit", "drop", "-0", cwd=sub).out.split(b"\0")[:-1]
    assert len(dropped) == 2
    assert all((sub / os.fsdecode(name)).is_file() for name in dropped)
    (here / "c").write_text((here / "docs/own").read_text())
    run("pairs", "docs", "c", "-q")
    assert {row[0] for row in run("query", "c", cwd=sub).rows} == {"../a", "../b"}  # the nearer one


def test_two_files_are_shown_beside_a_damaged_store(run, here):
    run("index", "docs")
    table = here / ".lshdup/signatures.npz"
    table.write_bytes(table.read_bytes()[:100])
    shown = run("show", "docs/a", "docs/b")
    assert shown.lines[0].startswith("A  docs/a: ")
    assert "signatures.npz is damaged" in shown.err


def test_a_path_through_a_link_is_found_beside_files_that_are_gone(run, here):
    for folder, text in (("1", "what will be gone"), ("2", f"{TEXT} 2")):
        (here / f"docs/{folder}").mkdir()
        (here / f"docs/{folder}/x").write_text(text)
    (here / "link").symlink_to("docs")
    run("index", "link")
    (here / "docs/1/x").unlink()
    rows = run("query", "docs/2/x").rows
    assert rows == run("query", "link/2/x").rows
    assert len(rows) == 3


def test_a_document_that_is_gone_is_found_by_a_path_through_a_link(run, here):
    run("index", "docs")
    (here / "link").symlink_to("docs")
    (here / "docs/a").unlink()
    assert "docs/a cannot be read: vanished" in run("query", "link/a", code=2).err


def test_the_nearest_store_is_used_and_a_run_with_docs_makes_one_here(run, here):
    run("pairs", "docs", "-q")
    before = {path: path.read_bytes() for path in (here / ".lshdup").glob("*.npz")}
    sub = here / "docs/sub"
    made = run("pairs", ".", "-q", cwd=sub).err
    assert "nothing to compare" in made
    assert not run("pairs", "..", "-q", cwd=sub).err  # more documents of the same collection
    made = run("pairs", ".", cwd=here / "docs")
    assert "a new store, .lshdup, for this folder; ../.lshdup stays as it is\n" in made.err
    assert made.rows[0][:2] == ["a", "b"]
    nearest = run("pairs", cwd=here / "docs")
    assert "the store is" not in nearest.err
    assert nearest.out == made.out
    assert {path: path.read_bytes() for path in before} == before


def test_a_store_on_another_file_system_is_not_taken_from_above(run, here, monkeypatch):
    from lshdup.store.store import nearest_store

    run("pairs", "docs", "-q")
    monkeypatch.chdir(here / "docs")
    assert nearest_store() == Path("../.lshdup")
    monkeypatch.setattr(Path, "is_mount", lambda folder: folder == here / "docs")
    assert nearest_store() == Path(".lshdup")


def test_without_a_store_anywhere_it_says_where_it_looked(run, here):
    for command in ("pairs", "clusters", "index", "signatures"):
        err = run(command, cwd=here / "docs", code=2).err
        assert f"is looked for in {here / 'docs'} and above" in err
    assert "no document of the store and no file" in run("show", "x", "y", code=2).err
    (here / ".lshdup").mkdir()
    (here / ".lshdup/own.txt").write_text("a folder of that name which lshdup has not made")
    assert "there is no signatures.npz" in run("pairs", cwd=here / "docs", code=2).err


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_store_of_another_user_is_not_taken_from_above(run, here, monkeypatch):
    from lshdup.store.store import nearest_store

    run("pairs", "docs", "-q")
    monkeypatch.chdir(here / "docs")
    assert nearest_store() == Path("../.lshdup")
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert nearest_store() == Path(".lshdup")
    monkeypatch.chdir(here)
    assert nearest_store() == Path(".lshdup")


# --- documents that are gone or changed -----------------------------------------------------------


@pytest.fixture
def changed(run, here):
    """A store with sets, of which one document is gone, one has changed, and one is new."""
    run("shingle", "docs", "-q")
    run("pairs", "docs", "-t", "0.5", "-q")
    (here / "docs/b").unlink()
    (here / "docs/own").write_text("it says something else now")
    (here / "docs/new").write_text(TEXT)
    return here


@pytest.mark.parametrize(
    "command", ["pairs", "pairs --exact", "pairs --collapse-copies", "query docs/a", "report"]
)
def test_documents_of_the_answer_that_are_gone_are_said_before_it(run, changed, command):
    result = run(*command.split(), "-v")
    is_page = command == "report"  # which packs the names
    assert is_page or b"docs/b" in result.out
    said = "1 document of this answer changed or vanished since the last run; name DOCS to read"
    assert f"lshdup: warning: {said}" in result.err
    assert "lshdup: docs/b: deleted or changed since the last run\n" in result.err


@pytest.mark.parametrize("options", [[], ["docs/link"], ["--follow"]])
def test_a_document_that_became_a_link_is_no_document_any_more(run, here, options):
    """Of the same size and time as before: the file that it leads to may be the only one left."""
    for name in ("a", "b"):
        (here / "docs" / name).write_text(TEXT)
        os.utime(here / "docs" / name, ns=(10**18, 10**18))
    (here / "far").write_text(f"{TEXT} z")
    (here / "docs/link").symlink_to("../far")
    run("clusters", "docs", *options, "-q")
    kept = run("clusters", "--emit", "keep").lines
    whole = run("clusters", "--format", "csv").out
    assert b"docs/a" in whole
    assert (b"docs/link" in whole) == bool(options)
    (here / "docs/a").unlink()
    (here / "docs/a").symlink_to("b")
    assert "docs/a" in kept + run("clusters", "--emit", "drop", code=2).lines


def test_nothing_is_dropped_for_a_document_that_is_gone(run, here):
    """`clusters` leaves documents of its groups that changed out in any case, and ends with 2."""
    run("clusters", "docs", "-q")
    (here / "docs/a").unlink()
    unsafe = run("clusters", "--emit", "drop", code=2)
    assert unsafe.out == b""
    again = run("clusters", "docs", "--emit", "drop")
    assert again.lines == ["docs/sub/c"]
    kept = json.loads(run("clusters", "--format", "json").out)
    assert [row["name"] for row in kept] == ["docs/b", "docs/sub/c"]


# --- several collections in one store -------------------------------------------------------------


def test_a_store_takes_another_collection_and_forgets_none(run, here):
    run("index", "docs", "-q")
    (here / "other").mkdir()
    (here / "other/x").write_text(TEXT)
    before = {path: path.read_bytes() for path in (here / ".lshdup").glob("*.npz")}
    for command in ("accuracy", "timing"):  # they keep nothing
        run(command, "docs/a", "docs/b", "--perms", "16", "--runs", "1", "-q")
    run("pairs", "other", "--no-store", "-q")
    run("pairs", "other", "--store", "elsewhere", "-q")
    assert {path: path.read_bytes() for path in before} == before
    for command in ("shingle", "signatures", "index", "pairs", "clusters"):
        run(command, "other", "-q")
        assert "1 document in other" in run("pairs").err
        assert "0 documents read, 4 unchanged" in run("index", "docs").err


@pytest.mark.parametrize("kind", ["signatures", "shingles"])
def test_another_collection_after_one_artifact_is_damaged(run, here, kind):
    run("shingle", "docs", "-q")
    run("index", "docs", "-q")
    os.truncate(here / f".lshdup/{kind}.npz", 500)
    (here / "other").mkdir()
    (here / "other/x").write_text(TEXT)
    assert run("pairs", "other").out == run("pairs", "other", "--no-store").out
    expected = run("pairs", "docs", "--no-store").out
    assert run("pairs", "docs").out == expected


def test_docs_that_are_compared_with_others_are_the_last_run(run, here):
    run("index", "docs", "-q")
    (here / "new").write_text(TEXT)
    result = run("pairs", "new", "--against", "docs/sub")
    assert [row[:2] for row in result.rows] == [["new", "docs/sub/c"]]
    assert "0 documents read, 4 unchanged" in run("index", "docs").err


def test_exact_pairs_across_need_no_bands(run, here):
    """At 0.02 no bands of 128 rows keep the recall, which the exact join does not need."""
    arguments = ("pairs", "docs/a", "docs/own", "--against", "docs/sub", "-t", "0.02")
    assert run(*arguments, "--exact", "--no-store").rows[0][:2] == ["docs/a", "docs/sub/c"]
    err = run(*arguments, "--no-store", code=2).err
    assert "128 rows cannot meet a pair of similarity 0.02" in err
    assert "use --perms 228" in err
    assert run(*arguments, "--no-store", "--perms", "228").rows


# --- documents that change while their shingle sets stay ------------------------------------------


@pytest.mark.parametrize(
    ("options", "again"),
    [
        (
            ("--ignore-common", "0.5", "--min-tokens", "1"),
            ("clusters", "d", "--ignore-common", "0.5", "--min-tokens", "1"),
        ),
        ((), ("clusters", "d")),
        (("--check-content",), ("clusters",)),
        ((), ("pairs",)),
    ],
)
@pytest.mark.parametrize("same", ["bytes", "text"])
def test_a_text_that_changed_but_for_its_set_is_the_same_no_longer(
    run, tmp_path, options, again, same
):
    """Fingerprints of an earlier run listed the changed file for removal."""
    (tmp_path / "d").mkdir()
    line = "if alpha < beta return gamma delta now\n"
    for name in "ab":
        (tmp_path / "d" / name).write_text(line * 3)
    for number in range(6):
        own = " ".join(f"{word}{number}" for word in "xyzw")
        (tmp_path / f"d/q{number}").write_text(f"header words are common here {own}")
    changing = [option for option in options if option != "--check-content"]
    assert run("pairs", "d", "--same", same, "-q", *changing).rows
    before = (tmp_path / "d/b").stat()
    (tmp_path / "d/b").write_text(line.replace("<", ">") * (4 if same == "text" else 3))
    if "--check-content" in options and same == "bytes":  # The same size and time.
        os.utime(tmp_path / "d/b", ns=(before.st_atime_ns, before.st_mtime_ns))
    if again == ("pairs",):
        run("shingle", "d")
    elif not again[1:]:
        run("pairs", "d", "--same", same, *options)
    assert not run(*again, "--same", same).rows


def test_sets_that_were_read_again_have_the_times_of_their_files(run, here):
    run("index", "docs", "-q")
    os.utime(here / "docs/b", ns=(1, 1))
    run("shingle", "docs", "-q")
    assert {row[2] for row in run("clusters", code=0).rows} == {"docs/a", "docs/b", "docs/sub/c"}


def test_a_document_that_was_changed_behind_the_back_is_not_compared(run, here):
    """Of the same size and time, and with as many shingles."""
    run("index", "docs", "-q")
    status = os.stat(here / "docs/b")
    rotated = str.maketrans(ascii_lowercase, ascii_lowercase[13:] + ascii_lowercase[:13])
    (here / "docs/b").write_text((here / "docs/b").read_text().translate(rotated))
    os.utime(here / "docs/b", ns=(status.st_atime_ns, status.st_mtime_ns))
    found = run("pairs", "--exact", "-t", "0.5", code=2)
    assert "skipped: 1 changed while in use" in found.err
    assert [row[:2] for row in found.rows] == [["docs/a", "docs/sub/c"]]


# --- documents are never written ------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    ["pairs docs", "pairs", "clusters docs", "clusters", "query docs/b", "report docs",
     "show docs/a docs/b", "show docs/b docs/a", "show a b", "shingle --show docs/a"],
)  # fmt: skip
def test_no_output_replaces_a_document(run, here, words):
    run("index", "docs", "-q")
    os.link(here / "docs/a", here / "hard")
    os.symlink("docs/a", here / "soft")
    for output in ("docs/a", "./docs/a", "hard", "soft", str(here / "docs/a")):
        refused = run(*words.split(), "-o", output, code=2).err
        is_shown = words.startswith("shingle")
        what = "would replace --show docs/a" if is_shown else "is one of the documents that are"
        assert f"-o {output} {what}" in refused.replace("-o docs/a ", f"-o {output} ")
        assert (here / "docs/a").read_text() == f"{TEXT} a"
    (here / "docs/a").write_text("another text, of another size")
    assert f"-o hard {what}" in run(*words.split(), "-o", "hard", code=2).err


# --- what fails leaves nothing behind -------------------------------------------------------------


def snapshot(folder):
    """All names below a folder, when they were changed, and what the files hold."""
    return {
        (path, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *folder.rglob("*"))
    }


@pytest.mark.parametrize(
    "words",
    [
        *(f"{command} nosuch" for command in (
            "pairs", "clusters", "folders", "index", "passages", "report", "shingle", "signatures",
            "accuracy", "timing", "query", "show a",
        )),
        "pairs . --against nosuch", "clusters . --against nosuch", "passages . --against nosuch",
        "index . --template nosuch", "pairs . --template nosuch", "shingle . --template nosuch",
        "pairs --files-from nosuch", "pairs .. --store new/deep -o nosuch/x",
        "pairs . -o nosuch/x.tsv", "pairs . -o ..", "report . -o nosuch/x.html", "report . -o ..",
        "pairs . -o x.html", "pairs . -o x.parquet", "pairs . --histogram --plot x.html",
        "pairs . --ignore-common 0", "pairs . --perms 4 --recall 0.999", "pairs . --k 2.5",
        "pairs . --baseline nosuch", "pairs . --changed-since HEAD",
        "pairs nosuch --store new/deep",
        "clusters . --write x.jsonl", "passages . --write x.jsonl", "clusters . --removed x.jsonl",
        "shingle . --no-store", "signatures . --no-store", "pairs -",
    ],
)  # fmt: skip
def test_a_run_that_fails_before_the_work_leaves_nothing_behind(run, here, words):
    run("index", "docs", "-q")
    before = snapshot(here)
    run(*words.split(), cwd=here / "docs/sub", code=2)
    assert snapshot(here) == before
    assert not (here / "docs/sub/.lshdup").exists()


_INPUT_IS_OUTPUT = """
pairs docs --template form.txt -o form.txt | would replace --template form.txt
pairs docs --template forms -o forms/a.txt | would replace --template forms/a.txt
pairs docs --template forms -o hard.txt | hard.txt would replace --template forms/a.txt
pairs --files-from list -o list | would replace --files-from list
pairs docs --against other -o other/o.txt | would replace --against other/o.txt
clusters docs --against other/o.txt -o other/o.txt | would replace --against other/o.txt
pairs docs --baseline B --update-baseline -o B | -o and --baseline are both B
pairs docs --histogram --plot form.svg --template form.svg | --plot form.svg would replace
curve --plot new.svg -o new.svg --format tsv | -o and --plot are both new.svg
timing docs --plot new.svg -o ./new.svg --format tsv | are both new.svg
accuracy docs -o kept/signatures.npz --format tsv | is in the store
pairs docs -o kept/signatures.npz --format tsv | is in the store
pairs docs -o kept/new.tsv --format tsv | is in the store
curve -o kept/signatures.npz --format tsv | is in the store
clusters rows.jsonl --write kept/bands.npz | is in the store
report docs -o link/page.html | is in the store
passages docs -o docs/a | is one of the documents
folders docs -o docs/sub/c | is one of the documents
pairs docs -o docs/large.txt --max-bytes 1000 | is one of the documents
clusters rows.jsonl --write rows.jsonl | is one of the documents
clusters rows.jsonl rows2.jsonl --no-store --write . | . holds 18 files that this run does not write
pairs docs -o docs/new.tsv --hidden --follow | docs/new.tsv is one of the documents
"""


@pytest.mark.parametrize("line", _INPUT_IS_OUTPUT.strip().splitlines())
def test_no_output_is_an_input(run, here, line):
    """It is refused before the work: nothing is written, and no store is made."""
    words, said = line.split(" | ")
    run("index", "docs", "-q", "--store", "kept")
    for name in ("forms", "other"):
        (here / name).mkdir()
    for name in ("form.txt", "form.svg", "forms/a.txt", "other/o.txt"):
        (here / name).write_text(TEXT)
    (here / "docs/large.txt").write_text(TEXT * 1000)
    (here / "docs/new.tsv").write_text("a\tb\t1.0\n")
    (here / "list").write_text("docs\n")
    (here / "list0").write_bytes(b"docs\0")
    for name in ("rows.jsonl", "rows2.jsonl"):
        (here / name).write_text('{"text": "one two three"}\n{"text": "four"}\n')
    os.link(here / "forms/a.txt", here / "hard.txt")
    os.symlink("list0", here / "soft")
    os.symlink("kept", here / "link")

    def files():
        return {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}

    before = files()
    refused = run(*words.split(), code=2).err
    assert said in refused
    assert files() == before


def test_a_list_in_the_folder_of_documents_is_written_once(run, here):
    """The second run would compare it; with --exclude it is no document."""
    first = run("pairs", "docs", "-o", "docs/pairs.tsv", "--no-store")
    assert not first.out
    again = ["pairs", "docs", "-o", "docs/pairs.tsv", "--no-store"]
    assert "--exclude" in run(*again, code=2).err
    assert (here / "docs/pairs.tsv").stat().st_size
    run(*again, "--exclude", "pairs.tsv")


def test_an_output_that_is_a_link_is_followed(run, here):
    os.symlink("there.tsv", here / "link.tsv")
    run("pairs", "docs", "-t", "0.5", "-o", "link.tsv", "--no-store")
    assert (here / "link.tsv").is_symlink()
    assert (here / "there.tsv").read_text()


def test_a_document_that_is_gone_beside_a_link(run, here):
    """Whether another document has become the target of the link, only its file could tell."""
    (here / "elsewhere").write_text(f"{TEXT} b")
    (here / "docs/link").symlink_to("../elsewhere")
    (here / "docs/gone").write_text(f"{TEXT} c")
    run("index", "docs", "--follow", "-t", "0.5", "-q")
    (here / "docs/gone").unlink()
    found = run("pairs", "-t", "0.5", code=2)
    assert "docs/gone: vanished" in found.err
    assert any("docs/link" in row for row in found.rows)
