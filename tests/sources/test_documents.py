"""Finding and reading documents, and turning their bytes into text."""

import gzip
import itertools
import os
from dataclasses import replace

import numpy as np
import pytest

from lshdup.base.compression import TooLongError, unpacked
from lshdup.base.params import ShingleParams
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.shingling.shingler import Shingler
from lshdup.sources import files
from lshdup.sources.document_list import DocumentList, summarize_docs, typed_name
from lshdup.sources.text_batches import BATCH_BYTES, BATCH_DOCUMENTS, batches, read_batch
from lshdup.text.decoding import decode
from lshdup.text.text_batch import TextBatch
from tests import reference
from tests.documents import batch_texts, find, reasons


def found(*arguments, **params):
    documents, skipped = find(*arguments, **params)
    return list(documents.names), reasons(skipped)


@pytest.fixture
def tree(here):
    (here / "docs/sub").mkdir(parents=True)
    names = ("b.txt", "a.txt.copy3", "sub/c", ".hidden", "line\nbreak", "tab\t[x]")
    for name in ("-dash", *(f"docs/{each}" for each in names)):
        (here / name).write_text(f"text of {name}")
    (here / "docs/.git").mkdir()
    (here / "docs/.git/x").write_text("x")
    with open(b"docs/not-utf8-\xff", "wb") as file:
        file.write(b"text")
    return here


def test_names_are_as_typed():
    assert [typed_name(n) for n in (b"./a", b"docs//a/", b"-x", b"../y", b"/z//", b"l/../t")] == [
        b"a", b"docs/a", b"./-x", b"../y", b"/z", b"l/../t",
    ]  # fmt: skip


def test_id_lists(tree):
    (tree / "ids.txt").write_bytes(b"b 1 2 3\n\n  a 4  5\nb 9\nc\n")
    documents, skipped = find("ids.txt", id_lists=True)
    assert list(documents.names) == [b"b", b"a", b"c"]  # in the order of the lines
    texts = batch_texts(read_batch(documents, np.arange(3)))
    assert [text.split() for text in texts.values()] == [[b"1", b"2", b"3"], [b"4", b"5"], []]
    assert [(each.name, each.reason, each.detail) for each in skipped] == [
        (b"b", Reason.REPEATED, "line 4 of ids.txt")
    ]


@pytest.mark.parametrize("by_kernels", {files.KERNELS_KNOW_THE_SYSTEM, False})
def test_sizes_and_times_are_those_of_stat(tree, monkeypatch, by_kernels):
    """Whether kernels ask the system, where they know it, or Python does."""
    monkeypatch.setattr(files, "KERNELS_KNOW_THE_SYSTEM", by_kernels)
    os.utime("docs/a.txt.copy3", ns=(1, -5_000_000_001))
    os.symlink("b.txt", "docs/link")
    monkeypatch.setattr(files, "LOOKED_UP_AT_ONCE", 2)
    paths = [
        b"docs/b.txt", b"docs/a.txt.copy3", b"docs", b"docs/link", b"docs/none",
        b"docs/not-utf8-\xff", b"",
    ]  # fmt: skip
    for jobs, at_once in itertools.product((1, 2), (1, 3, 7)):
        lookup = files.Lookup(Run.quiet(jobs))
        for start in range(0, len(paths), at_once):
            lookup.add(paths[start : start + at_once])
        names, stats = lookup.finish()
        assert list(names) == sorted(paths)
        for name in (paths[0], paths[1], paths[5]):
            i, status = names.find(name), os.lstat(name)
            assert (stats.sizes[i], stats.mtimes[i]) == (status.st_size, status.st_mtime_ns)
        assert {names[i]: error and type(error) for i, error in stats.failed.items()} == {
            paths[2]: None, paths[3]: None,
            paths[4]: FileNotFoundError, paths[6]: FileNotFoundError,
        }  # fmt: skip


def documents_of(sizes):
    return DocumentList(StringTable.from_strings([b"x"] * len(sizes)), sizes, sizes)


def test_batches_cover_everything_once():
    large = [1, BATCH_BYTES + 1, 3, 4, BATCH_BYTES - 5, BATCH_BYTES - 5]
    sizes = np.array(large + [10] * 3 * BATCH_DOCUMENTS)
    todo = np.arange(1, len(sizes))
    parts = list(batches(Run.quiet(), documents_of(sizes), todo))
    assert np.concatenate(parts).tolist() == todo.tolist()
    assert all(len(part) <= BATCH_DOCUMENTS for part in parts)
    assert all(len(part) == 1 or sizes[part].sum() <= BATCH_BYTES for part in parts)
    for count in (0, 1, 70, 6 * BATCH_DOCUMENTS + 15):
        parts = list(batches(Run.quiet(2), documents_of(np.full(count, 10)), np.arange(count)))
        assert np.concatenate([np.arange(0), *parts]).tolist() == list(range(count))


def test_docs_are_said():
    documents = DocumentList(StringTable.from_strings([]), np.zeros(0), np.zeros(0))
    where = ((), ""), ((b"a", b"b/c"), " in a, b/c"), ((b"0", b"1", b"2", b"3"), " in 0, 1, 2, …")
    for docs, said in where:
        assert replace(documents, docs=docs).describe_docs() == said
    many = [b"d/%d/%d" % (n % 3, n) for n in range(1000)]
    assert summarize_docs([*many, b"/r/x", b"/r/y"]) == (b"/r/", b"d/")
    assert summarize_docs([*many, b"e"]) == (b"./",)
    assert summarize_docs([b"\xff", b"b", b"b"]) == (b"\xff", b"b")


# --- bytes -> text ---


def shingled(*texts, names=None, **params):
    batch = TextBatch.of(range(len(texts)), list(texts), names)
    made = Shingler(ShingleParams(**params)).shingle(batch)
    made.sets.sort()
    return made


TEXT = "Größe, 漢字 – naïve café ΟΔΟΣ"


def set_of(text):
    return sorted(set(reference.shingle_list(text)))


def test_a_mark_is_no_text_where_the_encoding_is_forced_either():
    marked = ("\ufeff" + TEXT).encode()
    assert decode(marked, b"a", ShingleParams(encoding="utf-8")).utf8 == TEXT.encode()
    forced, wide = ShingleParams(encoding="utf-16-le"), ("\ufeff" + TEXT).encode("utf-16-le")
    assert decode(wide, b"a", forced).utf8 == TEXT.encode()


def test_nul_far_behind_the_beginning_makes_no_binary_page():
    page = b"<html><body>" + b"word " * 2000 + b"%send</body></html>"
    assert decode(page % b"\0", b"a.html").reason is None
    assert decode(b"<html>\0" + page % b"", b"a.html").reason == Reason.BINARY


def test_detected_and_forced_encodings():
    latin = ("Die Größe der Bäume überraschte fünf müde Übersetzer. " * 5).encode("latin-1")
    made = shingled(latin)
    assert len(made.guesses) == 1
    assert made.sets[0].tolist() == set_of(latin.decode("latin-1"))
    assert made.guesses[0][1] == "cp1252"
    forced = shingled(latin, "\ufeffplain".encode("cp1253", "ignore"), encoding="cp1253")
    assert forced.guesses == []
    assert forced.sets[0].tolist() == set_of(latin.decode("cp1253"))
    ((_, reason, _),) = shingled(latin, encoding="utf-8").skipped
    assert (reason, reason.is_error) == (Reason.UNDECODABLE, True)


PAGE = (
    "<!DOCTYPE html><html><head><title>No</title><style>p{}</style></head><body>"
    "<script>no()</script>\n<h1>One</h1><p>two<b>th</b>ree</p><p>four<br>five</p>"
    "<ul><li>six<li>seven</ul><template>no</template><div hidden>no</div>\n"
    "<table><tr><td>eight</td><td>nine &amp; ten</td></tr></table>\u00fcber<!-- no -->"
    "</body></html>"
)
WORDS = ["one", "twothree", "four", "five", "six", "seven", "eight", "nine", "ten", "über"]


def test_pages_are_reduced_to_what_is_visible():
    for name in (b"a.html", b"a.HTM", b"a.txt", b"a"):
        made = shingled(PAGE.encode(), names=[name], k=1)
        assert made.sets[0].tolist() == sorted({reference.token_hash(word) for word in WORDS})


def test_max_bytes_of_what_is_read_is_exact_too(tree):
    rows = b'{"text": "%s"}\n'
    (tree / "rows.jsonl").write_bytes(rows % b"xx" + rows % b"xxx")
    bound = len(rows % b"xx") - 1
    assert found("rows.jsonl", max_bytes=bound)[0] == [b"rows.jsonl:1"]
    assert len(found("rows.jsonl", max_bytes=bound + 1)[0]) == 2
    for size in (10, 11):
        (tree / f"{size}.gz").write_bytes(gzip.compress(b"x " * (size // 2) + b"x" * (size % 2)))
    assert not found("10.gz", "11.gz", max_bytes=10)[0]  # what is packed is larger than that
    assert unpacked((tree / "10.gz").read_bytes(), 10) == b"x x x x x "
    with pytest.raises(TooLongError):
        unpacked((tree / "11.gz").read_bytes(), 10)
    listed, _ = find("docs/b.txt", max_bytes=20)
    for size, there in ((20, 1), (21, 0)):
        (tree / "docs/b.txt").write_bytes(b"x" * size)
        assert len(read_batch(listed, np.arange(1)).indices) == there
