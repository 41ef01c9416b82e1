"""Office documents: known by content, read in their own processes; a text is one cluster."""

import io
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from lshdup.base.forms import visible_text
from lshdup.base.params import FormatLimits, ShingleParams
from lshdup.base.skipped import Reason
from lshdup.cli.main import main
from lshdup.text import office_processes as office_text
from lshdup.text import office_worker
from lshdup.text.decoding import decode
from lshdup.text.office_types import ENCRYPTED, recognize_file_type
from tests import office, reference
from tests.conftest import ROOT, open_index, part, write_files
from tests.documents import zip_of

TEXT = (ROOT / "sample_corpus/udhr/eng.txt").read_text()[:7000]
TEXT = TEXT.encode("cp1252", "replace").decode("cp1252")
EXPECTED = reference.word_tokens(reference.normal_form(TEXT))
KINDS = "docx odt rtf epub pptx xlsx eml msg pdf doc xls".split()
WRITERS = {kind: getattr(office, kind) for kind in KINDS}

#: What stands in for the reader, but for its function.
DOUBLE = """
import os, signal, sys, threading, time
class ExtractionConfig:
    def __init__(self, **options): pass
PageConfig = PdfConfig = ConcurrencyConfig = ExtractionConfig
class Result:
    def __init__(self, content): self.content, self.pages = content, None
"""


@pytest.fixture
def doubled(monkeypatch, tmp_path_factory):
    """Replace the reader: its function has this body, which can do anything wrong."""
    folder = tmp_path_factory.mktemp("double")

    def doubled(*body, before=""):
        lines = "".join(f"    {line}\n" for line in body)
        function = f"{before}def extract_bytes_sync(data, mime, config):\n{lines}"
        (folder / "kreuzberg.py").write_text(DOUBLE + function)
        monkeypatch.syspath_prepend(folder)
        office_text.close()
        return str(folder)

    yield doubled
    office_text.close()


def tokens(utf8):
    return reference.word_tokens(reference.normal_form(visible_text(utf8).decode()))


def text_of(data, name=b"x", **settings):
    text = decode(data, name, **settings)
    assert text.reason is None, (text.reason, text.detail)
    return text.utf8


# --- recognised by content ------------------------------------------------------------------------


def test_kinds_are_told_by_content_alone():
    for kind, write in WRITERS.items():
        data = write("some words of text")
        assert decode(data, b"picture.png", ShingleParams(mail=True)).office == kind
        assert recognize_file_type(data) == ("" if kind == "eml" else kind)
        if data.startswith(b"PK"):  # also if it is cut
            assert recognize_file_type(data[: len(data) - 30]) == kind
    assert recognize_file_type(office.encrypted_docx()) == ENCRYPTED
    encrypted = office.doc("some words", encrypted=True)
    flags_end = encrypted.index(b"\xec\xa5\xc1\x00") + 12
    assert recognize_file_type(encrypted) == recognize_file_type(encrypted[:flags_end]) == ENCRYPTED
    assert recognize_file_type(encrypted[: flags_end - 1]) == "doc"


def test_other_zips_and_containers_are_none():
    members = {"a.txt": "x", "word/document.xml": "<x/>", "paper.docx": office.docx("some words")}
    members["mimetype"] = "application/x-other"
    for name, stored in product(members, ((), members)):
        data = office.zipped({name: members[name]}, stored)
        assert recognize_file_type(data) == ""
        text = decode(data, b"a.docx")
        assert (text.reason, text.detail) == (Reason.FORMAT, "a zip archive of unknown kind")
    compound = office.ole({"Contents": b"x"})
    assert decode(compound, b"").detail == "a compound file of unknown kind"
    cut = (b"PK\x03\x04", b"PK\x03\x04" + b"\xff" * 60, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    for junk in (*cut, office.docx("x")[-22:], compound):
        assert recognize_file_type(junk) == ""


@pytest.mark.parametrize("kind", ["epub", "odt", "ods"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_package_whose_declaration_is_not_its_first_member(kind, packed):
    write = office.epub if kind == "epub" else office.odt
    members = dict(sorted(office.unzipped(write("some words")).items()))
    if kind == "ods":
        members["mimetype"] = b"application/vnd.oasis.opendocument.spreadsheet"
    members = {"a": b"mimetype is no name here", **members}
    data = office.zipped(members, () if packed else members)
    assert not data[30:].startswith(b"mimetype")
    assert recognize_file_type(data) == recognize_file_type(b"PK\x03\x04 before it" + data) == kind
    if kind == "epub":
        assert decode(data, b"").utf8 == b"some words"
        del members["mimetype"]
        assert recognize_file_type(office.zipped(members)) == kind


def test_damaged_directories_are_harmless():
    """Whatever the directory of a zip says, something is answered, and soon."""
    members = dict(sorted(office.unzipped(office.epub("some words")).items()))
    data = office.zipped(members)
    for at in range(data.find(b"PK\x01\x02"), len(data)):
        for value in (b"\0", b"\xff"):
            assert recognize_file_type(data[:at] + value + data[at + 1 :]) in ("", "epub")
    bomb = office.zipped({"a": b"", "mimetype": b"application/epub+zip" + bytes(1 << 22)})
    assert recognize_file_type(bomb) == ""


# --- the same text --------------------------------------------------------------------------------


def test_every_format_gives_the_words_of_the_text(kreuzberg):
    for kind, write in WRITERS.items():
        title = {"xls": ["sheet1"], "xlsx": ["sheet1"], "eml": ["a", "subject"]}.get(kind, [])
        name = b"a.eml" if kind == "eml" else b"x"
        assert tokens(text_of(write(TEXT), name)) == [*title, *EXPECTED], kind


def test_what_is_no_text_does_not_enter(kreuzberg):
    title, header = {"title": "Meta title"}, {"header": "Running header"}
    documents = [office.docx(TEXT, **title, **header), office.odt(TEXT, **title)]
    documents += [office.epub(TEXT, **title, chapters=5)]
    documents += [office.pdf(TEXT, **title, **header, lines_a_page=12)]
    assert [tokens(text_of(each)) for each in documents] == [EXPECTED] * 4


@pytest.mark.parametrize("width", part([40, 55, 70, 90], 2))
def test_words_cut_at_line_ends_of_a_pdf_are_whole(kreuzberg, width):
    paragraphs = (office.hyphenated(paragraph, width) for paragraph in TEXT.splitlines())
    assert sum(line.endswith("-") for lines in paragraphs for line in lines) > 5
    assert tokens(text_of(office.pdf(TEXT, width=width, hyphenate=True))) == EXPECTED


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_STORED])
def test_a_package_that_cannot_be_opened_is_left_to_the_reader(method):
    """Whatever error `zipfile` raises."""
    data = zip_of([("word/document.xml", "<w:vanish/>" * 9)], compression=method)
    met = set()
    for at, value in product(range(len(data)), b"\0\1\x61\xff"):
        bad = data[:at] + bytes([value]) + data[at + 1 :]
        try:
            with zipfile.ZipFile(io.BytesIO(bad)) as package:
                package.read("word/document.xml")
        except Exception as error:
            met.add(type(error))
            assert office_worker.prepare(bad, "docx") == bad
    assert met >= {RuntimeError, NotImplementedError, zipfile.BadZipFile}
    assert method == zipfile.ZIP_STORED or met & {zlib.error, OSError}
    for cut in (b"", b"PK", data[:50]):
        assert office_worker.prepare(cut, "docx") == cut


def test_hyphens_of_words_stay_and_running_lines_are_those_of_most_pages():
    for text, expected in {
        "exam\x02ple": "example", "Anglo\x02Saxon 1\x022": "Anglo-Saxon 1-2",
        "a well-known one, well\x02known": "a well-known one, well-known",
        "an exam-\n|ple of": "an example\n\n\f of", "an exam\x02|ple of": "an example\n\f of",
        "well-known, well-|known": "well-known, well-\n\fknown",
        "exam-|Chapter 1-|2 -|two": "exam-\n\fChapter 1-\n\f2 -\n\ftwo",
    }.items():  # fmt: skip
        assert office_worker.clean("", "pdf", text.split("|")) == expected
    own = [f"{word} of one page" for word in "abcdefghi"]
    numbered = [f"Title\n{words}\nPage {n} of 9" for n, words in enumerate(own, 1)]
    assert office_worker.clean("", "pdf", numbered) == "\n\f".join(own)
    # Two pages show nothing; what differs is none; and a document that consists of the same page
    # again and again keeps it.
    differing = ["one\ntwo", "three\nfour", "five\nsix"]
    for pages in (["a\nb", "a\nc"], differing, ["a\nb", "", "c\nd"], ["a\nb"] * 5):
        assert office_worker.clean("", "pdf", pages) == "\n\f".join(pages)


def test_one_text_in_every_format_and_encoding_is_one_cluster(run, tmp_path, kreuzberg):
    files = {f"a.{kind}": write(TEXT) for kind, write in WRITERS.items()}
    latin = TEXT.encode("latin-1", "replace").decode("latin-1")
    files |= {f"{codec}.txt": latin.encode(codec) for codec in ("utf-8", "utf-16", "latin-1")}
    lines = "".join(f"<p>{line}" for line in TEXT.splitlines())
    files["a.html"] = f"<html><head><title>Meta</title></head>{lines}"
    write_files(tmp_path / "same", files | {"other.txt": "quite other words " * 30})
    rows = run("pairs same -t 0.9").rows
    assert len(rows) == len(files) * (len(files) - 1) // 2, rows
    assert {name for a, b, *_ in rows for name in (a, b)} == {f"same/{name}" for name in files}


def test_query_and_show_take_office_documents(run, tmp_path, kreuzberg):
    files = {"d/a.txt": TEXT, "secret.pdf": office.pdf(TEXT, password="x")}
    write_files(tmp_path, files | {"x.docx": office.docx("Only three words")})
    run("index d")
    assert run("query -", stdin=office.odt(TEXT)).rows == [["d/a.txt", "1.0", "text"]]
    assert [row[1] for row in run("shingle --show x.docx").rows] == ["only three words"]
    assert "secret.pdf is no text: encrypted" in run("query secret.pdf", code=2).err


def test_docx_and_pptx_words_are_those_a_reader_sees(kreuzberg):
    runs = b"".join(b"<w:r>%s</w:r>" % run for run in (
        b"<w:t>a1</w:t><w:tab/><w:t>b1</w:t><w:cr/><w:t>c1</w:t><w:br w:type='page'/>",
        b"<w:t>d1</w:t><w:noBreakHyphen/><w:t>e1</w:t>",
        b"<w:t> soft</w:t><w:softHyphen/><w:t>ly </w:t>",
        b"<w:rPr><w:b/></w:rPr><w:t>bo</w:t>", b"<w:t>ld</w:t>",
        b"<w:rPr><w:vanish/></w:rPr><w:t>HIDDEN</w:t>", b"<w:footnoteReference w:id='2'/>",
    ))  # fmt: skip
    runs += b"<w:del><w:r><w:delText>DELETED</w:delText></w:r></w:del>"
    of_slide = b"</a:p><a:p>".join((
        b'<a:r><a:rPr lang="en"><a:b/></a:rPr><a:t>on</a:t></a:r>'
        b'<a:r><a:rPr b="1"/><a:t>e wo</a:t></a:r><a:r><a:t>rd</a:t></a:r>',
        b"<a:r><a:t>last</a:t></a:r>",
    ))  # fmt: skip
    plain, slide = b'<w:r><w:t xml:space="preserve">MARK</w:t></w:r>', b"<a:r><a:t>MARK</a:t></a:r>"
    for write, place, old, new, words in (
        (office.docx, "word/document.xml", plain, runs, "a1 b1 c1 d1-e1 softly bold"),
        (office.pptx, "ppt/slides/slide1.xml", slide, of_slide, "one word last"),
    ):
        members = office.unzipped(write("MARK"))
        assert old in members[place]
        members[place] = members[place].replace(old, new)
        assert text_of(office.zipped(members)).decode().split() == words.split()


def test_rtf_words_are_those_a_reader_sees(kreuzberg):
    data = rb"{\rtf1\ansi be{\b fore}{\header HEAD{\b x}}{\footerl FOOT} two\~three four\_five "
    data += rb"soft\-ly{\v HIDDEN}{\*\bkmkstart a}\page new{\pict\bin3 }{}}{\deleted GONE} "
    data += rb"ca\'e9\u228?\par \trowd\cellx9 c1\cell c2\cell\row \pard{\footnote note} \{end\}"
    words = "before two three four five softly new caéä c1 c2 end note"
    assert tokens(text_of(data + rb"\par}")) == words.split()
    # What is not at the beginning of a group hides nothing.
    data = rb"{\rtf1 one {two \header three} four {\*\header five} six}"
    found = b"".join(office_worker._visible_rtf(data))
    assert found == rb"{\rtf1 one {two \header three} four {\*} six}"
    # One that ends in the middle is damaged.
    data = office.rtf(TEXT)
    assert decode(data + b"\0\n", b"").reason is None
    assert decode(data[: len(data) // 2], b"").reason is Reason.SPOILT


# --- what goes wrong ------------------------------------------------------------------------------


def test_damaged_and_encrypted_files_are_reported_and_the_rest_goes_on(run, tmp_path, kreuzberg):
    pdf, docx = office.pdf(TEXT), office.docx(TEXT)
    good = {"a.txt": TEXT, "b.pdf": pdf, "c.docx": docx, "open.pdf": office.pdf(TEXT, password="")}
    bad = {
        "damaged.pdf": pdf[:3000], "damaged.docx": docx[:1500],
        "damaged.odt": office.odt(TEXT)[:-30], "encrypted.docx": office.encrypted_docx(),
        "encrypted.pdf": office.pdf(TEXT, password="secret"),
    }  # fmt: skip
    write_files(tmp_path / "d", good | bad)
    first = run("pairs d", code=2)
    assert len(first.rows) == 6
    for name in bad:
        (line,) = [line for line in first.err.splitlines() if f"d/{name}:" in line]
        assert f"d/{name}: {name.partition('.')[0]}" in line
    again = run("pairs", "d", code=2)  # remembered, not read again, and reported all the same
    assert again.out == first.out
    assert "0 documents read" in again.err
    for made in (first, again):
        assert "skipped: 3 damaged documents, 2 encrypted" in made.err


LIMITS = FormatLimits(seconds=30.0, memory=256 << 20)

#: What a reader may do with a document, by the reason that is given for it.
TROUBLES = {
    # The first of them holds the interpreter.
    Reason.SLOW: ["x = 3 ** (10 ** 9)", "os.kill(os.getpid(), signal.SIGSTOP)", "time.sleep(60)"],
    Reason.CRASHED: [
        "os.kill(os.getpid(), signal.SIGSEGV)", "os.abort()", "os._exit(3)",
        "os.kill(os.getpid(), signal.SIGKILL)", "os.closerange(3, 100); time.sleep(60)",
    ],
    Reason.MEMORY: [
        "x = bytearray(300 << 20)", "x = [bytearray(1 << 20) for _ in range(300)]",
        "os.write(2, b'memory allocation of 8 bytes failed\\xff'); os.abort()",
    ],
    Reason.SPOILT: ["f = lambda n: f(n + 1); f(0)"],
    Reason.ENCRYPTED: ["raise RuntimeError('PDF is password-protected')"],
    Reason.NO_READER: ["raise ImportError('libthing.so is missing')"],
    None: [
        "print('x' * 100_000); os.write(1, b'y' * 100_000); return Result('one two')",
        "return Result('a\\ud800b')",  # not text
    ],
}  # fmt: skip


@pytest.mark.parametrize("reason", TROUBLES, ids=str)
def test_what_a_file_does_to_its_process_is_its_own_matter(doubled, monkeypatch, reason):
    """Files before and behind it are read; of troubles of one reason, every day tries some."""
    monkeypatch.setattr(office_text, "_END", 0.5)
    lines = part(TROUBLES[reason], 2)
    choice = (f"if data.endswith(b'{at}'): {line}" for at, line in enumerate(lines))
    doubled("if data.endswith(b'fine'): return Result('fine words')", *choice)
    limits = FormatLimits(0.5 if reason is Reason.SLOW else 30.0, LIMITS.memory)
    for at in range(len(lines)):
        assert text_of(b"%PDF-1.4 fine", limits=limits) == b"fine words"
        text = decode(b"%%PDF-1.4 %d" % at, b"", limits=limits)
        assert text.reason is reason, text
        assert text.detail or reason is None
        assert "\n" not in text.detail
    assert text_of(b"%PDF-1.4 fine", limits=limits) == b"fine words"


def test_a_process_that_others_have_used_up_is_not_blamed_on_the_next(doubled):
    doubled("kept.append(bytearray(50 << 20)); return Result('fine')", before="kept = []\n")
    assert [text_of(b"%PDF-1.4", limits=LIMITS) for _ in range(10)] == [b"fine"] * 10


def waiting_worker(doubled, seconds):
    """The process of a reader that has answered, and waits for the next document."""
    doubled("return Result('fine')")
    assert text_of(b"%PDF-1.4", limits=FormatLimits(seconds)) == b"fine"
    (worker,) = office_text._pool._waiting
    return worker._process


@pytest.mark.timeout(60, method="thread")
def test_a_process_that_does_not_read_is_killed(doubled):
    """Else to write to it would never end."""
    process = waiting_worker(doubled, 1.0)
    os.kill(process.pid, signal.SIGSTOP)
    document = b"%PDF-1.4" + bytes(1 << 20)
    assert decode(document, b"", limits=FormatLimits(1.0)).reason is Reason.SLOW
    assert process.poll() == -signal.SIGKILL


@pytest.mark.long
def test_a_process_that_waits_has_no_limit_of_time(doubled):
    """The limit is that of a file, and ends with it."""
    process = waiting_worker(doubled, 0.2)
    time.sleep(office_worker._GRACE + 0.5)
    assert process.poll() is None


def test_many_threads_at_once(doubled):
    """As many processes as threads; each answer is that of its question, whatever others meet."""
    crash = "if data.endswith(b'37'): os._exit(1)"
    digest = "return Result(hashlib.sha256(data).hexdigest() + 'x' * len(data))"
    doubled(crash, digest, before="import hashlib\n")
    documents = [b"%PDF-" + b"x" * (n * 3001 % 200_000) + str(n).encode() for n in range(120)]
    one = partial(office_text.extract, file_type="pdf", limits=FormatLimits(30))
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(one, documents))
    assert len(office_text._pool) <= 6
    assert together == [one(document) for document in documents]
    assert {text.reason for text in together} == {None, Reason.CRASHED}


@pytest.mark.long
def test_a_slow_document_that_is_one(run, tmp_path, kreuzberg):
    """Small files that unpack to very many paragraphs, or to more than the reader takes."""
    members, main = office.unzipped(office.docx("x")), "word/document.xml"
    paragraph = b'<w:p><w:r><w:t xml:space="preserve">x</w:t></w:r></w:p>'
    bomb = paragraph.replace(b">x<", b">" + b"x" * 110_000_000 + b"<")
    for name, many in (("slow.docx", paragraph * 800_000), ("bomb.docx", bomb)):
        data = office.zipped(members | {main: members[main].replace(paragraph, many)})
        assert len(data) < 1_000_000
        write_files(tmp_path / "d", {name: data})
    write_files(tmp_path / "d", {"a.txt": TEXT, "b.docx": office.docx(TEXT)})
    result = run("pairs d --format-seconds 0.5 --format-memory 500MB", code=2)
    assert len(result.rows) == 1
    assert re.search(r"slow\.docx.*took", result.err)
    assert re.search(r"bomb\.docx(.*: too large|: took)", result.err)
    # Neither is remembered: with other limits it may be read.
    assert "slow.docx" not in run("pairs d --exclude 'bomb*'").ok().err


def test_processes_end_with_the_program(doubled, tmp_path):
    """Idle ones with it, however it ends; one that hangs when its time is over."""
    folder = doubled("if b'hang' in data: time.sleep(600)", "return Result('words')")
    script = f"""
import sys, threading, time
sys.path.insert(0, {folder!r})
from lshdup.base.params import FormatLimits
from lshdup.text import office_processes as office_text
limits, hangs = FormatLimits(0.5), len(sys.argv) > 1
office_text.extract(b'%PDF', 'pdf', limits)
hanging = threading.Thread(target=office_text.extract, args=(b'hang', 'pdf', limits), daemon=True)
if hangs: hanging.start()
else: office_text._pool.take(FormatLimits(9), of_mails=False).extract(b'', 'pdf')
time.sleep(0.3); print('ready', flush=True); time.sleep(600 if hangs else 0)"""
    for arguments in ([], ["hang"]):
        command = [sys.executable, "-c", script, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as program:
            assert program.stdout.readline() == b"ready\n"
            children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
            assert arguments == [] or children
            if arguments:
                program.kill()
        while any(is_alive(child) for child in children):  # Else this test never ends.
            time.sleep(0.05)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_interrupted_while_a_document_hangs(doubled, tmp_path):
    folder = doubled("open('hangs', 'w').close(); time.sleep(600)")
    write_files(tmp_path / "d", {"a.pdf": "%PDF-1.4"})
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "LSHDUP_FORMAT_SECONDS": "30"}
    # As from an interactive shell, SIGINT is at its default.
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script += "from lshdup.cli.main import program\nprogram()"
    command = [sys.executable, "-c", script, "index", "d"]
    options = {"stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **options) as program:
        while not (tmp_path / "hangs").exists():
            assert program.poll() is None
            time.sleep(0.02)
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to all processes
        assert b"interrupted" in program.stderr.read()
        assert program.wait() == 130


# --- with and without the extra, and the next version ---------------------------------------------


@pytest.fixture
def indexed(here, doubled, monkeypatch):
    """Index five texts and more, by a reader of a version. A body that is given stays its body."""
    write_files("d", {f"{n}.txt": f"{TEXT[: 2000 + 300 * n]} {n}" for n in range(5)})

    def indexed(version, *body, store="s"):
        if body:
            doubled(*body)
        monkeypatch.setattr(office_text, "reader_version", lambda: version)
        skipped = []
        _, index, _ = open_index(store, [b"d"], skipped=skipped.append, save=False)
        return index.collection, {each.name: each.reason for each in skipped}

    return indexed


def assert_as_anew(indexed, version):
    """What is stored is what a run stores that knows nothing of others."""
    indexed(version, store="anew")
    for name in {each.name for at in ("s", "anew") for each in Path(at).glob("*.npz")}:
        assert Path("s", name).read_bytes() == Path("anew", name).read_bytes()


def test_without_the_extra_they_are_counted(indexed, monkeypatch, capsys):
    monkeypatch.setattr(office_text, "_has_reader", lambda: False)
    without = office_text.reader_version.__wrapped__()
    assert indexed(without, store="plain")[0].notes.reader == ""  # does not depend on the extra
    write_files("d", {"a.pdf": office.pdf(TEXT), "b.docx": office.docx(TEXT)})
    with pytest.raises(SystemExit) as done:
        main(["pairs", "d", "--store", "s", "-o", "pairs.tsv"])
    assert done.value.code == 0
    err = capsys.readouterr().err
    assert "skipped: 2 format not supported without lshdup[formats]" in err
    assert err.count("pip install 'lshdup[formats]'") == 1
    assert "2 office documents" in err


def test_another_reader_reads_office_documents_again_and_nothing_else(indexed):
    write_files("d", {"a.pdf": b"%PDF-1 a", "b.pdf": b"%PDF-1 bad"})
    bad = "if b'bad' in data: raise ValueError('bad')"
    first, out = indexed("1 kreuzberg 1", bad, "return Result('old words of it')")
    assert (first.read, out) == (7, {b"d/b.pdf": Reason.SPOILT})
    assert np.flatnonzero(first.columns["forms"]).tolist() == [5]
    assert indexed("1 kreuzberg 1")[0].read == 0
    assert indexed("1 kreuzberg 1", "return Result('new words of it')")[0].read == 0
    second, out = indexed("1 kreuzberg 2")
    assert (second.read, out) == (2, {})
    assert second.fingerprints[5] != first.fingerprints[5]
    assert np.array_equal(second.fingerprints[:5], first.fingerprints[:5])
    assert_as_anew(indexed, "1 kreuzberg 2")
    # When the office documents have gone, nothing tells that there were any.
    Path("d/a.pdf").unlink()
    Path("d/b.pdf").unlink()
    indexed("1 kreuzberg 2")
    assert_as_anew(indexed, "1")


def test_the_extra_becomes_available(indexed, monkeypatch):
    write_files("d", {"a.pdf": b"%PDF-1 a", "z.zip": office.zipped({"a": "b"})})
    with monkeypatch.context() as absent:
        absent.setattr(office_text, "_has_reader", lambda: False)
        assert indexed("1")[1] == {b"d/a.pdf": Reason.NO_READER, b"d/z.zip": Reason.FORMAT}
        assert indexed("1")[0].read == 0
    collection, out = indexed("1 kreuzberg 1", "return Result('now it has words')")
    assert (collection.read, out) == (1, {b"d/z.zip": Reason.FORMAT})
    assert np.flatnonzero(collection.columns["forms"]).tolist() == [5]


def test_trouble_of_the_moment_is_not_remembered(indexed):
    write_files("d", {"a.pdf": b"%PDF-1 a"})
    assert indexed("1 kreuzberg 1", "os._exit(1)")[1] == {b"d/a.pdf": Reason.CRASHED}
    collection, out = indexed("1 kreuzberg 1", "return Result('it was the moment')")
    assert (collection.read, out) == (1, {})
    assert_as_anew(indexed, "1 kreuzberg 1")


@pytest.mark.parametrize("error", ["Panic", "RuntimeError"])
def test_packages_are_read_without_the_reader_if_it_fails(doubled, error):
    """Valid EPUBs made the reader panic, and were called damaged."""
    message = "slice index starts at 3 but ends at 2"
    doubled(f"raise {error}('{message}')", before="class Panic(BaseException): pass\n")
    for kind in ("epub", "odt", "docx"):
        text = decode(WRITERS[kind](TEXT), b"")
        assert (text.reason, text.office) == (None, kind)
        assert tokens(text.utf8) == EXPECTED, kind
    chapters = decode(office.epub(TEXT, title="Meta title", chapters=5), b"")
    assert tokens(chapters.utf8) == EXPECTED
    assert decode(office.docx(TEXT)[:1500], b"").reason is Reason.SPOILT
    pdf = decode(office.pdf(TEXT), b"")
    assert pdf.reason is (Reason.CRASHED if error == "Panic" else Reason.SPOILT)
    assert pdf.detail == message


def test_pages_are_in_reading_order():
    words = [b"first", b"second", b"third"]
    members = office.unzipped(office.epub("first\nsecond\nthird", chapters=3))
    members = {name: members[name] for name in sorted(members, reverse=True)}
    assert office_worker.read_package(office.zipped(members), "epub").split() == words
    del members["OEBPS/content.opf"]
    assert sorted(office_worker.read_package(office.zipped(members), "epub").split()) == words
