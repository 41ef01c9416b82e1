"""What folders hold besides texts: no crash, no wrong answer, nothing skipped in silence."""

import contextlib
import gzip
import os
import pty
import random
import re
import socket
import subprocess
import sys
import threading
import time
import unicodedata
from collections import Counter
from functools import partial
from importlib.util import find_spec
from string import ascii_letters

import numpy as np
import pytest

from benchmarks import measure
from lshdup.base.params import ShingleParams
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.collection import batches
from lshdup.collection.collect import collect
from lshdup.errors import InputError
from lshdup.kernels.helpers import mix64_array
from lshdup.shingling import normalization
from lshdup.shingling.normalization import normal_form
from lshdup.shingling.shingler import Shingler
from lshdup.sources import files
from lshdup.sources.text_batches import read_batch
from lshdup.text import html
from lshdup.text.decoding import decode
from lshdup.text.text_batch import TextBatch
from tests import reference
from tests.conftest import ROOT, part, write_files
from tests.documents import find, list_tokens, reasons
from tests.shingling.test_text import SPICY

TEXT = (
    "Größe und Maß, 漢字 and naïve café: ΟΔΟΣ, ที่นี่, one two three four five six "
    "seven eight nine ten."
)
OTHER = TEXT + " eleven"


def reference_set(text):
    return set(reference.shingle_list(text))


_ATTRIBUTES = [b"a%d" % i for i in range(50_000)]

#: name -> (bytes, the text that is compared, or why nothing is). A text without tokens is compared
#: with nothing.
CONTENTS = {
    "plain": (TEXT, TEXT), "other": (OTHER, OTHER), "one word": (b"word", "word"),
    "empty": (b"", ""), "blank": (b" \n\t\r\n\x0c", ""), "punctuation": ("…!?.,;:—()[]{}«»¿", ""),
    "controls": (b"\x01\x02\x1b[31m\x7f", "\x1b[31m"),
    "one line": (b"a line that does not end " * 200_000, "a line that does not end " * 12),
    "one long word": (b"x" * 100_000, "x" * 100_000),
    "han without an end": ("漢" * 300_000, "漢" * 4),
    "thai without an end": ("กำ" * 100_000, "กำ" * 4),
    "nul first": (b"\0" + TEXT.encode(), Reason.BINARY),
    "nul at the end of the window": (b"x" * 8191 + b"\0 y", Reason.BINARY),
    "nul behind the window": (b"x" * 8192 + b"\0 y", "x" * 8192 + " y"),
    "nul far behind": (b"x y " * 5000 + b"\0", "x y " * 3),
    "gz": (gzip.compress(TEXT.encode() * 100), TEXT * 100),
    "zst": (b"\x28\xb5\x2f\xfd\x04\x00" + bytes(range(1, 99)), Reason.DAMAGED),
    "pdf": (b"%PDF-1.7\n", Reason.SPOILT if find_spec("kreuzberg") else Reason.NO_READER),
    "zip": (b"PK\x03\x04" + bytes(50), Reason.FORMAT),
    "marks": ("a" + "\u0316\u0301" * 2000 + " b", "a" + "\u0316" * 2000 + "\u0301" * 2000 + " b"),
    "arabic ligatures": ("\ufdfa" * 2000, "\ufdfa" * 20),
    "html": (b"<!doctype html><p>one<div hidden>no</div><p>two<!-- no -->", "one two"),
    "hidden body": (b"<html><body hidden>no", ""), "hidden page": (b"<html hidden>no", ""),
    "deep html": (b"<html>" + b"<div>x " * 9000, "x x x x"),
    "scripts": (b"<html><script>" + b"if (a<b) no();" * 200_000 + b"</script>yes", "yes"),
    "comments": (b"<html>" + b"<!-- no -->" * 200_000 + b"yes", "yes"),
    "options": (b"<html><select>" + b"<option>o</option>" * 40_000, "o o o o"),
    "too deep": (b"<html>" + b"<div>x " * 50_000, Reason.MARKUP),
    "too many attributes": (b"<html><p %s>x" % b" ".join(_ATTRIBUTES), Reason.MARKUP),
    "surrogate in utf-16": (b"\xff\xfea\0\0\xd8b\0", Reason.UNDECODABLE),
    "surrogate in utf-32": (b"\xff\xfe\0\0a\0\0\0\xff\xdf\0\0", Reason.UNDECODABLE),
    "odd utf-16": (b"\xff\xfea\0b", Reason.UNDECODABLE),
    "odd utf-16 be": (b"\xfe\xff\0a\0", Reason.UNDECODABLE),
    "odd utf-32": (b"\xff\xfe\0\0a\0\0\0b\0\0", Reason.UNDECODABLE),
    "bom but not utf-8": (b"\xef\xbb\xbfabc \xff def", Reason.UNDECODABLE),
    "bom twice": (b"\xef\xbb\xbf\xef\xbb\xbf" + TEXT.encode(), TEXT),
    "bom inside": (TEXT.encode() + b"\xef\xbb\xbf", TEXT), "half a bom": (b"\xef\xbb", None),
    **{
        f"{codec} bom{kind}": (bom + body.encode(codec), body)
        for codec, bom in (
            ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
            ("utf-32-le", b"\xff\xfe\0\0"), ("utf-32-be", b"\0\0\xfe\xff"),
        )
        for kind, body in ((" alone", ""), (" and text", TEXT))
    },
    # Whatever these are taken for, it is said: read as another encoding, or skipped. Never taken
    # for UTF-8.
    "mixed": (TEXT.encode() + "Größe und Maß\n".encode("latin-1") * 5, None),
    "cesu-8": ("ab \ud83d\ude00 cd".encode("utf-8", "surrogatepass"), None),
    "surrogate in utf-8": (b"ab \xed\xa0\x80 cd", None), "cut utf-8": (TEXT.encode()[:3], None),
    "overlong": (b"ab \xc0\xaf cd", None), "beyond unicode": (b"ab \xf4\x90\x80\x80 cd", None),
    "noise": (bytes(range(1, 256)) * 3, None),
}  # fmt: skip
CONTENTS = {
    name: (data.encode() if isinstance(data, str) else data, text)
    for name, (data, text) in CONTENTS.items()
}
KNOWN = [name for name, (_, text) in CONTENTS.items() if text is not None]


@pytest.mark.parametrize("name", CONTENTS)
def test_a_document_is_what_it_is_or_is_said_to_be_left_out(name):
    data, text = CONTENTS[name]  # one that takes forever ends the run: see conftest.HUNG
    # Between others, which it must not change, as the batches of a run have it.
    batch = TextBatch.of(
        range(3), [TEXT.encode(), data, OTHER.encode()], [b"a", name.encode(), b"b"]
    )
    made = Shingler(ShingleParams()).shingle(batch)
    sets = dict(zip(made.indices.tolist(), (set(each.tolist()) for each in made.sets), strict=True))
    skipped = {index: reason for index, reason, _ in made.skipped}
    assert sets[0] == reference_set(TEXT)
    assert sets[2] == reference_set(OTHER)
    if text is None:
        assert 1 in skipped or 1 in dict(made.guesses)
    elif isinstance(text, Reason):
        assert skipped == {1: text}
    else:
        assert sets[1] == reference_set(text)
        assert not skipped
        assert not made.guesses


def test_a_folder_of_everything(run, tmp_path):
    """Pairs are those of brute force over all texts; other files are counted, and named by -v."""
    folder = tmp_path / "all"
    (folder / "sub/deeper").mkdir(parents=True)
    contents = {name: CONTENTS[name] for name in KNOWN}
    write_files(folder, {name: data for name, (data, _) in contents.items()})
    odd = [b"new\nline", b"tab\t", b"\xff\xfe", b"-rf", b"=1+1", b"n" * 255, b"a\rb", b" "]
    odd += [b"\x1b[2J\x1b]0;x\x07", "gpj.\u202eexe".encode()]
    write_files(folder / "sub", dict.fromkeys(odd, TEXT))
    (folder / ".hidden").write_text(TEXT)
    os.symlink("plain", folder / "link")
    os.symlink("..", folder / "sub/loop")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as s, contextlib.chdir(folder):
        s.bind("socket")
    with open(folder / "sparse", "wb") as file:
        file.truncate(3 << 30)
    skipped = {name: str(text) for name, (_, text) in contents.items() if isinstance(text, Reason)}
    compared = {name: text for name, (_, text) in contents.items() if name not in skipped}
    texts = {b"all/" + name.encode(): text for name, text in compared.items()}
    texts |= {b"all/sub/" + name: TEXT for name in odd}
    names = sorted(texts)
    sets = {text: reference_set(text) for text in set(texts.values())}
    expected = reference.all_pairs([sets[texts[name]] for name in names], 0.7)
    result = run("pairs all -t 0.7 -0 -v --recall 0.9999", code=2)
    cells = iter(result.out.split(b"\0")[:-1])
    rows = zip(cells, cells, cells, cells, strict=True)
    found = {(names.index(a), names.index(b)): float(s) for a, b, s, _ in rows}
    assert found == {(i, j): s for i, j, s in expected}
    skipped |= {name: "no tokens" for name, text in compared.items() if not reference_set(text)}
    skipped |= {".hidden": "hidden", "sparse": "too large"}
    skipped |= dict.fromkeys(("link", "sub/loop"), "symbolic link")
    skipped |= dict.fromkeys(("pipe", "socket"), "not a regular file")
    lines = result.err.splitlines()
    for name, reason in skipped.items():
        said = f"lshdup: all/{name}: {reason}"
        assert [line for line in lines if line.startswith(said)], (said, lines)
    counts = Counter(skipped.values())
    empty = counts.pop("no tokens")
    (summary,) = [line for line in lines if line.startswith("lshdup: skipped: ")]
    counted = (Reason(reason).counted(n) for reason, n in sorted(counts.items()))
    assert summary == f"lshdup: skipped: {', '.join(counted)}"
    assert f"{empty} documents without tokens" in result.err
    assert f"lshdup: {len(texts)} documents" in result.err
    assert result.err.replace("\n", "").isprintable()
    # Without those that a person must hear of, the exit code is 0.
    for name, reason in skipped.items():
        if reason in ("too large", "undecodable", "too much markup", "damaged", "damaged document"):
            os.remove(folder / name)
    assert run("pairs all -t 0.7 -0 --recall 0.9999").out == result.out


# --- the file system ------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which may become deeper than Python's own removal of folders can go."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    subprocess.run(["rm", "-rf", "--", tmp_path / "deep"], check=True)


def dig(name, depth, text):
    """Folders inside each other, below `deep`, with a file each, by paths that stay short."""
    os.mkdir("deep")
    at = os.open("deep", os.O_RDONLY)
    for level in range(depth):
        os.mkdir(name, dir_fd=at)
        at, above = os.open(name, os.O_RDONLY, dir_fd=at), at
        os.close(above)
        file = os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=at)
        os.write(file, f"{text} {level % 2}".encode())
        os.close(file)
    os.close(at)


def test_folders_a_thousand_deep(here):
    dig("d", 1000, "text")
    documents, skipped = find("deep")
    assert set(documents.names) == {b"deep" + b"/d" * level + b"/f" for level in range(1, 1001)}
    assert len(documents) == 1000
    assert skipped == []
    assert len(read_batch(documents, np.arange(1000)).skipped) == 0


def test_paths_that_are_too_long_for_the_system_are_reported(run, here):
    dig("d" * 200, 30, TEXT)
    path = lambda level: b"deep" + (b"/" + b"d" * 200) * level  # noqa: E731
    documents, skipped = find("deep")
    most = max(level for level in range(31) if len(path(level) + b"/f") < 4096)
    assert sorted(documents.names) == sorted(path(level) + b"/f" for level in range(1, most + 1))
    # What is below the first folder whose path is too long cannot be named, so it is that folder
    # that is reported.
    assert [(each.name, each.reason) for each in skipped] == [(path(most + 1), Reason.UNREADABLE)]
    assert "start lshdup in a folder further down" in skipped[0].detail
    result = run("pairs deep --no-store", code=2)
    assert len(result.rows) == most * (most - 1) // 2
    os.symlink("d" * 200, "deep/link")
    assert {each.reason for each in find("deep", follow=True)[1]} == {Reason.UNREADABLE}


LABELS = "punycode idna unicode_escape utf-7 rot13 hex utf-16 no-such-thing".split()


@pytest.mark.parametrize("label", [*LABELS, "x" * 1500])
def test_pages_declare_encodings_of_pages(label):
    """Some codecs of Python take a square of the time; an unknown label is as good as none."""
    body = "Ein Märchen für große Käfer, die über die Brücke gehen und süße Äpfel mögen. " * 400
    declaring, plain = (
        decode(f"<html><head>{head}</head><body>{body}-</body></html>".encode("cp1252"), b"a.html")
        for head in (f'<meta charset="{label}">', "")
    )
    assert (declaring.reason, declaring.encoding) == (None, "cp1252")
    assert declaring.utf8 == plain.utf8
    assert plain.utf8.decode().strip() == f"{body}-"


def outcome(made):
    """The names of what was collected, and why other documents were not."""
    return list(made.documents.names), reasons([each.skipped for each in made.skipped])


@pytest.mark.parametrize("by_kernels", {files.KERNELS_KNOW_THE_SYSTEM, False})
def test_files_that_change_between_listing_and_reading(here, monkeypatch, by_kernels):
    monkeypatch.setattr(files, "KERNELS_KNOW_THE_SYSTEM", by_kernels)
    names = ("gone", "grown", "endless", "shrunk", "same", "pipe", "folder")
    write_files(here, dict.fromkeys(names, TEXT))
    documents, _ = find(*names, max_bytes=1000)
    for name in ("gone", "pipe", "folder"):
        os.remove(name)
    os.mkfifo("pipe")
    os.mkdir("folder")
    for name, text in (("grown", OTHER), ("endless", "x" * 1001), ("shrunk", "little")):
        (here / name).write_text(text)
    made = collect(Run.quiet(4), documents, ShingleParams(), keep=1 << 30)
    texts = {b"grown": OTHER, b"pipe": "", b"same": TEXT, b"shrunk": "little"}
    why = {b"gone": Reason.VANISHED, b"endless": Reason.TOO_LARGE, b"folder": Reason.UNREADABLE}
    assert outcome(made) == (list(texts), why)
    assert [set(each.tolist()) for each in made.sets] == list(map(reference_set, texts.values()))
    (endless,) = [each.skipped for each in made.skipped if each.skipped.name == b"endless"]
    assert "grew to more than 1000 bytes" in endless.detail


@pytest.mark.parametrize(
    ("name", "first", "before", "after", "reason"),
    [
        ("ids", "a 1 2 3\n", "b 1 2 3\n", "b 1", Reason.CHANGED),
        ("rows.jsonl", '{"text": "a b c"}\n', '{"text": "d e f"}', '{"tex', Reason.CHANGED),
        ("rows.jsonl", '{"text": "a b c"}\n', '{"text": 5}', "", Reason.NOT_TEXT),
    ],
)
def test_a_row_that_cannot_be_read(here, name, first, before, after, reason):
    """Why, if its file is what was listed; else that it has changed."""
    (here / name).write_text(first + before)
    documents, _ = find(name, id_lists=name == "ids")
    if after:
        (here / name).write_text(first + after)
    params = ShingleParams(tokens="ids" if name == "ids" else "word")
    made = collect(Run.quiet(4), documents, params, keep=1 << 30)
    names = [b"a", b"b"] if name == "ids" else [b"rows.jsonl:1", b"rows.jsonl:2"]
    found, why = outcome(made)
    assert why[names[1]] == reason
    assert found == names[:1] or after == '{"tex'  # of a changed file no row is read


# --- memory and time ------------------------------------------------------------------------------

ENGLISH = """the of and to a in is it that was for on are as with his they at be this have from or
one had by word but not what all were we when your can said there use an each which she""".split()

ONE_AT_A_TIME = """
import sys
from lshdup.collection import batches
from lshdup.cli.main import main
batches.BYTES_AT_ONCE = 0
main(sys.argv[1:])
"""


def peak_of(folder, *arguments):
    """The most memory of a command that has one large document under way at any time."""
    return measure.run(sys.executable, "-c", ONE_AT_A_TIME, *arguments, cwd=folder).peak


@pytest.mark.long
def test_large_documents_take_little_memory_however_many_threads(tmp_path):
    """Of four large documents: the scratch memory of one, the sets of all."""
    text = " ".join([f"{i * 7919 % 1_000_003:06}" for i in range(3_000_000)]).encode()
    write_files(tmp_path, {name: name.encode() + text for name in "abcd"})
    (tmp_path / "small").write_text("small")
    peaks = [peak_of(tmp_path, "shingle", *names, "-j4", "-q") for names in (["small"], "abcd")]
    sets = 4 * 8 * 1_000_003
    assert peaks[1] - peaks[0] < 12 * len(text) + sets, (peaks, len(text))


def drawn(alphabet, n):
    return random.Random(n).choices(alphabet, k=n)


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "tokens", "tags", "options"),
    [
        (lambda: " ".join(drawn(ENGLISH, 3_000_000)), 3_000_000, 0, ()),
        (lambda: " ".join(drawn(ascii_letters, 4_000_000)), 4_000_000, 0, ()),
        (lambda: "".join(drawn(ascii_letters, 9_000_000)), 9_000_000, 0, ("--tokens", "char")),
        (lambda: "<html><body>" + "<b>x</b> " * 800_000, 800_000, 1_600_000, ()),
    ],
    ids=["English", "letters", "tokens of a byte", "page"],
)
def test_a_document_takes_the_memory_that_the_page_says(tmp_path, text, tokens, tags, options):
    """docs/explanation/guarantees.md: and no less than half of it, or the page would be wrong."""
    text = text()
    write_files(tmp_path, {"d": text, "small": "<html>small" if tags else "small"})
    peaks = [
        peak_of(tmp_path, "index", name, "-j1", "-q", "--store", f"of {name}", *options)
        for name in ("small", "d")
    ]
    said = 4 * len(text) + 40 * tokens + 250 * tags
    assert said / 2 < peaks[1] - peaks[0] < said


def test_a_document_for_which_the_memory_is_not_enough_is_left_out(here, monkeypatch):
    write_files(here, {"a": TEXT, "b": b"x" * (5 << 20)})
    documents, _ = find("a", "b")

    def read(documents, indices, buffer):
        if documents.sizes[indices].max() > 1 << 20:
            raise MemoryError
        return read_batch(documents, indices, buffer)

    monkeypatch.setattr(batches, "read_batch", read)
    made = collect(Run.quiet(4), documents, ShingleParams())
    assert outcome(made) == ([b"a"], {b"b": Reason.TOO_LARGE})


def test_large_documents_wait_for_each_other(here, monkeypatch):
    """What is under way at any time has at most BYTES_AT_ONCE bytes, or is one document."""
    monkeypatch.setattr(batches, "BYTES_AT_ONCE", 100)
    monkeypatch.setattr(batches, "BATCH_BYTES", 0)
    monkeypatch.setattr(batches, "_FEW", 0)
    sizes = [5000, 9000, 90, 5, 6000, 1, 7000, 100, 30, 50, 8000, 1]
    names = [f"{i:02}" for i in range(len(sizes))]
    write_files(here, {name: "x" * size for name, size in zip(names, sizes, strict=True)})
    documents, _ = find(*names)
    monkeypatch.setattr(batches, "batches", lambda _, __, todo: iter(todo.reshape(-1, 1)))
    under_way, most = [], []

    def read(documents, indices, buffer):
        size = int(documents.sizes[indices[0]])
        under_way.append(size)
        most.append(list(under_way))
        time.sleep(0.01)
        batch = read_batch(documents, indices, buffer)
        under_way.remove(size)
        return batch

    monkeypatch.setattr(batches, "read_batch", read)
    made = collect(Run.quiet(4), documents, ShingleParams(), keep=1 << 30)
    assert len(made.documents) == 12
    assert all(len(each) == 1 or sum(each) <= 100 for each in most), most
    assert max(map(len, most)) > 1


@pytest.mark.parametrize("ending", ["txt", "PDF"])
def test_few_documents_are_read_without_threads_but_for_office_documents(here, monkeypatch, ending):
    write_files(here, {f"{number}.{ending}": f"some text {number}" for number in range(100)})
    documents, _ = find(".")
    threads = set()

    def read(*given):
        threads.add(threading.current_thread())
        return read_batch(*given)

    monkeypatch.setattr(batches, "read_batch", read)
    made = collect(Run.quiet(2), documents, ShingleParams(), keep=1 << 30)
    assert len(made.documents) + len(made.skipped) == 100
    assert (threading.main_thread() in threads) == (ending == "txt")


def test_floods_of_marks_are_normalised_like_any_text():
    cases = [
        "a" + "\u0316\u0301" * 500,
        "e\u0301" + "\u0301\u0316" * 300 + "x" + "\u0316\u0301" * 40,
        "\u0f71\u0f73\u0f75\u0f81\u0344\uff9e\u3099" * 60,
        "q" + "".join(chr(c) for c in range(0x300, 0x370)) * 5,
        "\uac00" + "\u11a8\u0301\u0316" * 100,
        ("a" * 50 + "\u0301") * 600 + "漢" * 40_000 + "\u0301\u0316" * 100 + " end",
    ]
    for text in cases:
        assert normal_form(text.encode(), ShingleParams()) == reference.normal_form(text).encode()
    long = "a" + "\u0316\u0301" * 200_000  # what Python does by itself takes ten minutes: it hangs
    found = normal_form(long.encode(), ShingleParams()).decode()
    assert found == "á" + "\u0316" * 200_000 + "\u0301" * 199_999


def test_every_mark_may_flood_and_no_border_joins():
    flood = normalization._flood_pattern(normalization._FLOOD)
    border = normalization._border_pattern()
    nfkd = partial(unicodedata.normalize, "NFKD")
    nfkc = partial(unicodedata.normalize, "NFKC")
    letters = [nfkd(c)[0] for c in "aeoÅ\u0915\u1100\uac00\u30ab\u0d46\u09c7\u0061\u0301"]
    for point in part(range(0x110000), 5):
        c = chr(point)
        form = nfkd(c) if not 0xD800 <= point < 0xE000 else "x"
        if all(map(unicodedata.combining, form)):
            assert flood.fullmatch(c * normalization._FLOOD), hex(point)
        if border.match(c):
            assert not unicodedata.combining(form[0])
            assert point % 37 or all(nfkc(a + c) == a + nfkc(c) for a in letters)


def test_a_text_is_the_same_in_pieces(monkeypatch):
    monkeypatch.setattr(normalization, "_PIECE", 3)
    rng = random.Random(4)
    for _ in range(2000):
        text = "".join(rng.choices(SPICY, k=rng.randint(0, 40)))
        assert normal_form(text.encode(), ShingleParams()) == reference.normal_form(text).encode()


def test_a_normal_form_that_outgrows_its_text_is_reported(monkeypatch):
    monkeypatch.setattr(normalization, "_ALWAYS_FITS", 1000)
    flood, shingler = ("\ufdfa" * 1000).encode(), Shingler(ShingleParams())
    made = shingler.shingle(TextBatch.of(range(3), [b"a b", flood, b"c d"]))
    assert made.indices.tolist() == [0, 2]
    assert [(index, reason) for index, reason, _ in made.skipped] == [(1, Reason.TOO_LARGE)]
    for read in (
        lambda: shingler.shingle_texts([flood]),
        lambda: [*list_tokens(flood, ShingleParams())],
    ):
        with pytest.raises(InputError, match="too long"):
            read()


def test_pages_are_walked_in_linear_time():
    """A walk of quadratic time would hang; apart from the parser, which has limits of its own."""
    for page in (b"<span>x ", b"<p>x <b>y</b>", b"<li>x", b"<div>x</div>"):
        text = html.visible_text(b"<html>" + page * 100_000, quotes=True)
        assert len(text.split()) == 100_000 * (2 if b"y" in page else 1)


def test_pages_of_as_many_tags_as_may_be_are_parsed(monkeypatch):
    for name, most in {"_MOST_TAGS": 3, "_FEW_TAGS": 0, "_MEAN_DEPTH": 10}.items():
        monkeypatch.setattr(html, name, most)
    assert html.find_obstacle(b"<html><p>x</p>") == ""
    for before in (b"", b"<!-- a comment -->", b"<script>1 < 2</script>"):
        assert html.find_obstacle(b"<html>" + before + b"<p>x</p><p>") == "4 tags"


def test_crowded_words_are_sorted():
    """Some hundred words whose hashes begin with the same twelve bits: one bucket of 4096."""
    letters = np.arange(19, dtype=np.uint64) + 97
    blocks = np.zeros(1, np.uint64)
    for place in range(5):
        blocks = (blocks[:, None] | (letters << np.uint64(8 * place))[None, :]).ravel()
    x = mix64_array(blocks ^ np.uint64(reference.PUBLIC[0]))
    chosen = blocks[(x >> np.uint64(52)) == np.uint64(0xABC)]
    words = [int(block).to_bytes(5, "little").decode() for block in chosen]
    (found,) = Shingler(ShingleParams(k=1)).shingle_texts([" ".join(words).encode()])
    assert found.tolist() == sorted(reference.token_hash(word) for word in words)
    assert len({value >> 52 for value in found.tolist()}) == 1
    assert len(words) > 400


EVIL = [
    *(b"\x1b[2J\x1b[31mred", b"\x1b]0;title\x07", b"bell\x07", b"a\rb"),
    *("gpj.\u202eexe".encode(), "\u200f\u2066x".encode(), b"\x9b31m\xff", b"n\nl"),
]
OPTIONS = ["", *(f"--format {name}" for name in ("tsv", "csv", "jsonl", "table")), "-0"]


@pytest.mark.parametrize("options", part(OPTIONS, 3))
def test_no_name_does_anything_to_a_terminal(tmp_path, options):
    files = dict.fromkeys(EVIL, TEXT.encode()) | {b"\x1b[5mutf-16": b"\xff\xfex"}
    write_files(tmp_path, files)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "lshdup", "pairs", ".", "-v", "--no-store"]
    env = {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "TERM": "xterm", "NO_COLOR": "1"}
    streams = {"cwd": tmp_path, "env": os.environ | env, "stdout": slave, "stderr": slave}
    with subprocess.Popen([*command, *options.split()], **streams) as process:
        os.close(slave)
        shown_ = b""
        with contextlib.suppress(OSError):
            while part := os.read(master, 1 << 16):
                shown_ += part
    os.close(master)
    assert process.returncode == 2
    text = shown_.decode("utf-8")  # raises if a byte came through
    assert "red" in text
    assert "\\x1b[5mutf-16: undecodable" in text
    assert re.sub("[\r\n\t\0]", "", text).isprintable()
    assert "a\rb" not in text
