"""What a new user stumbles over: each message names the value, the cause, and what to type next."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lshdup.base import atomic
from lshdup.base.atomic import PARTS, describe_kept, note_kept, replace_file
from lshdup.base.params import DocumentParams
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.wording import chance, count_of
from lshdup.cli import main
from lshdup.cli.console import Console, use_color
from lshdup.errors import ArtifactError, InputError, LshdupError
from lshdup.sources.finding import find_documents
from lshdup.sources.records import field_names, no_field
from lshdup.sources.rewriting import check_target
from tests.conftest import ROOT, failing, write_files
from tests.documents import write_rows
from tests.running import clean_environment, in_terminal, open_terminal, run_program

TEXT = "some words that are the same in each of these three documents, but for number"


@pytest.fixture
def here(here):
    """Three near-duplicates in docs, and a file of rows."""
    texts = [f"{TEXT} {number}" for number in range(3)]
    write_files(".", {f"docs/{number}.txt": text for number, text in enumerate(texts)})
    rows = [{"content": each, "id": n, "meta": {"language": "en"}} for n, each in enumerate(texts)]
    write_rows(here / "rows.jsonl", rows)
    return here


def test_a_wrong_column_names_those_there_are(here, run):
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    write_rows(here / "rows.parquet", rows)
    has = "it has no column '{}', but content, id, meta, meta.language; "
    text = run("pairs rows.parquet --text-field langauge", code=2).err
    assert has.format("langauge") + "did you mean --text-field meta.language?" in text
    name = run("pairs rows.parquet --text-field content --id-field nothing", code=2).err
    assert has.format("nothing") + "--id-field names another" in name


def test_names_of_fields_are_bounded_and_can_be_printed():
    odd = ["\ud800", "\x1b[31m", "x" * 10**6, *map(str, range(1000))]
    names = field_names((name, "") for name in odd)
    assert names[:2] == ("\\ud800", "\\x1b[31m")
    assert len(names) == 100
    message = no_field("text", names, "--text-field")
    assert len(message) < 250
    assert message.isprintable()
    empty = "no field 'text', but none; --text-field names another"
    assert no_field("text", (), "--text-field") == empty


def test_every_reason_can_be_counted():
    for reason in Reason:
        assert reason.counted(1) == f"1 {reason}"
        assert reason.counted(3000).startswith("3,000 ")
    assert Reason.NO_TEXT.counted(3000) == "3,000 rows without text"
    assert Reason.LINK.counted(2) == "2 symbolic links"
    assert Reason.NOT_JSON.counted(2) == "2 rows that are no JSON objects"
    assert Reason.BINARY.counted(2) == "2 binary"
    begin = ("row", "symbolic link", "damaged document", "repeated name")
    singular = [each for each in Reason if str(each).startswith(begin)]
    assert all(each.counted(2) != f"2 {each}" for each in singular)
    assert count_of(2, "document is", "documents are") == "2 documents are"


def test_a_file_of_no_rows_can_still_be_written(here):
    Path("none.jsonl").write_text("")
    documents = find_documents(Run.quiet(), [b"none.jsonl"], DocumentParams())
    targets = check_target(documents, Path("out.jsonl"), read=False)[1]
    assert [*map(str, targets)] == ["out.jsonl"]


def test_a_chance_below_a_bound_looks_so():
    assert chance(0.98999, below=0.99) == "98.999 %"
    assert chance(0.9, below=0.99) == "90 %"


def test_what_an_interrupt_leaves_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_kept", set())
    assert describe_kept() == "nothing of this run was kept"
    with replace_file(tmp_path / "a") as file:
        file.write(b"x")
        assert describe_kept() == "nothing of this run was kept"
    assert describe_kept() == "what was finished is kept, whole"
    note_kept(PARTS)
    assert "the same command goes on from there" in describe_kept()
    note_kept(PARTS, kept=False)
    assert describe_kept() == "what was finished is kept, whole"


def test_when_there_are_colours(monkeypatch):
    off = ({"NO_COLOR": "1"}, {"TERM": "dumb"})
    for variables in ({}, {"NO_COLOR": ""}, *off):
        for name in ("NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert use_color(None, is_terminal=True) == (variables not in off)
        assert not use_color(None, is_terminal=False)
        assert use_color(True, is_terminal=False)
        assert not use_color(False, is_terminal=True)


def test_lines_are_folded_between_words_on_a_terminal(monkeypatch):
    ours, theirs = open_terminal(50, 40)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        with Console(progress=False) as console:
            words = "a message of many words that has no room in one line"
            names = ("one/name.txt", "another")
            console.error(LshdupError(words, f"see {'a' * 60} there", names))
            console.say("漢字 " * 20)
            console.say("end")
        read = b""
        while not read.endswith(b"end\r\n"):  # a terminal gives what it has, not all
            read += os.read(ours, 1 << 16)
        written = read.decode().replace("\r\n", "\n")
    os.close(ours)
    assert written.startswith(
        "lshdup: \x1b[31merror\x1b[0m: a message of many words that has no\n  room in one "
        "line\n  one/name.txt\n  another\n"
        f"  see\n    {'a' * 60}\n    there\n"
    )
    wide = written.splitlines()[7:-1]
    assert len(wide) == 3
    assert all(len(line.encode("gb18030")) <= 50 for line in wide)
    assert "漢字漢" not in written


def test_a_library_that_is_missing_is_said_to_be(here, monkeypatch):
    from lshdup.sources import parquet

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="need pyarrow"):
        parquet.import_pyarrow()


@pytest.mark.parametrize(
    ("package", "command"),
    [("pyarrow", "pairs rows.parquet docs"), ("matplotlib", "curve --bands 5 --plot x.svg"),
     ("llvmlite", "pairs docs")],
)  # fmt: skip
def test_a_library_that_is_there_and_does_not_load_is_not_to_be_installed(here, package, command):
    """What is missing is another one, of the system."""
    Path("broken", package).mkdir(parents=True)
    words = "raise ImportError('libx.so: cannot be mapped', name=__name__)"
    Path("broken", package, "__init__.py").write_text(words)
    Path("rows.parquet").write_bytes(b"PAR1" * 4)
    path = {"PYTHONPATH": f"{Path('broken').resolve()}:{ROOT}", "XDG_CACHE_HOME": "empty"}
    done = run_program(command.split(), cwd=here, env=path)
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert package in said
    assert "does not load: libx.so" in said
    assert "pip install" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (MemoryError("9 GB"), "not enough memory: 9 GB", "use fewer --perms, or fewer documents"),
        (BlockingIOError(), "no further thread or process can be started here", "raise the limit"),
        (RuntimeError("can't start new thread"), "no further thread or process", "raise the limit"),
        (OSError(28, "No space left on device", "f"), "No space left on device: f", ""),
        (OSError(5, "Input/output error"), "Input/output error", ""),
        (ModuleNotFoundError("gone", name="numba"), "gone", "pip install 'lshdup[kernels]'"),
        (ModuleNotFoundError(name="llvmlite"), "llvmlite, which compil", "pip install llvmlite"),
        (ImportError("x.so", name="a.b"), "a is installed and does not load: x.so", "install"),
        (ImportError("libx.so"), "a package is installed and does not load", "install it again"),
    ],
)
def test_errors_that_are_no_defects(capsys, error, message, hint):
    told = main.explain(error)
    assert told.message.startswith(message)
    assert told.hint.startswith(hint)
    assert bool(told.hint) == bool(hint)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't start new thread"), OSError(12, "Cannot allocate memory"),
     OSError("Could not find/load shared object file 'libllvmlite.so'"),
     BlockingIOError(11, "Resource temporarily"),
     ImportError("_multiarray_umath.so: failed to map segment from shared object")],
)  # fmt: skip
def test_a_limit_of_addresses_is_named(monkeypatch, refused, error):
    monkeypatch.setattr("lshdup.cli.main.lshdup.main", failing(error))
    monkeypatch.setattr("lshdup.cli.main.address_space", lambda: 200 << 20)
    assert refused("pairs").splitlines() == [
        "lshdup: error: not enough memory: this process may take 200 MB of addresses"
        " raise the limit, as `ulimit -v` shows it"
    ]


def test_defects_show_where_they_are(capsys):
    missing = ModuleNotFoundError("no module", name="other")
    for error in (missing, ImportError("none", name="lshdup.cli"), RuntimeError("another one")):
        try:
            raise error
        except Exception as raised:
            told = main.explain(raised)
        assert told.message == "this is a defect of lshdup"
        assert "Traceback" in capsys.readouterr().err


def test_a_reason_is_said_once():
    from lshdup.text.office_worker import _detail

    assert _detail(ValueError("PDF is locked: PDF is locked")) == b"PDF is locked"
    assert _detail(ValueError("PDF is locked: page 1")) == b"PDF is locked: page 1"


def test_a_file_that_cannot_be_read_is_not_damaged():
    from lshdup.store import npz

    with pytest.raises(ArtifactError, match="cannot be read: Input/output"):
        npz.load(Path("/proc/self/mem"), "bands", "")


def test_what_the_system_refuses_is_named(here):
    """Limits of sizes and of addresses, and a folder that is gone; a full disk is a scene."""
    program = [sys.executable, "-m", "lshdup", "pairs", str(here / "docs"), "-t", "0.5", "-q"]
    program += ["--no-store"]
    cases = {
        'ulimit -f 0; exec "$@" -o big': "File too large: big",
        'ulimit -f 0; exec "$@" > big': "File too large: standard output",
        'ulimit -v 110000; exec "$@"': "not enough memory: this process may take 107 MB of "
        "addresses",
        'mkdir gone; cd gone; rmdir ../gone; exec "$@"': "the current folder is gone",
    }
    for shell, line in cases.items():
        command = ["bash", "-c", shell, "bash", *program]
        done = subprocess.run(command, cwd=here, env=clean_environment(), capture_output=True)
        assert done.returncode == 2, shell
        assert done.stderr.decode().startswith(f"lshdup: error: {line}\n"), shell


def test_a_page_is_not_for_a_terminal(here):
    code, out, err = in_terminal("report docs -o -", cwd=here)
    assert (code, out) == (2, b"")
    hint = "name a file with -o, for instance -o report.html"
    assert err == f"lshdup: error: the page is not for a terminal\n  {hint}\n"
