"""What a new user stumbles over: each message names the value, the cause, and what to type next."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path

import pytest

from lshdup.base import atomic
from lshdup.base.atomic import PARTS, describe_kept, note_kept, replace_file
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped
from lshdup.base.wording import chance, count_of
from lshdup.cli import main, messages
from lshdup.cli.commands import COMMANDS
from lshdup.cli.console import Console, use_color
from lshdup.cli.help import GROUPS
from lshdup.errors import InputError, LshdupError, ParameterError
from lshdup.params import DocumentParams
from lshdup.sources.finding import find_documents
from lshdup.sources.records import field_names, no_field
from lshdup.sources.rewriting import check_target
from tests.conftest import ROOT, require
from tests.running import in_terminal, run_many, run_program

TEXT = "some words that are the same in each of these three documents, but for number"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Three near-duplicates in docs, an empty folder, and a file of rows."""
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "empty"):
        Path(folder).mkdir()
    for number in range(3):
        Path(f"docs/{number}.txt").write_text(f"{TEXT} {number}")
    rows = [
        {"content": f"{TEXT} {number}", "id": number, "meta": {"language": "en"}}
        for number in range(3)
    ]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def said(here, *commands, code=2, env=None):
    """What each command line says on standard error."""
    results = run_many([(command, None) for command in commands], here, env)
    for command, (actual, out, err) in zip(commands, results, strict=True):
        assert code is None or actual == code, (command, err)
        assert code != 2 or out == b"", command
        assert b"Traceback" not in err, command
    return [err.decode() for _, _, err in results]


def error(*lines):
    """An error and its hint, and nothing else: no usage, nothing before it."""
    first, *hint = lines
    return "".join([f"lshdup: error: {first}\n", *(f"  {line}\n" for line in hint)])


# --- names that are not there ---------------------------------------------------------------------


def test_many_names_that_are_not_there_take_no_time_to_guess_at(here):
    skipped = []
    find_documents(
        replace(Run.quiet(), skipped=skipped.append),
        [b"docs", *(f"docs/{n}.tx".encode() for n in range(50))],
        DocumentParams(),
    )
    assert len(skipped) == 50
    assert sum("did you mean" in each.detail for each in skipped) == 10


# --- commands and options -------------------------------------------------------------------------


def test_percentages_are_shares(here):
    docs = ("docs", "--no-store", "--format", "csv")
    same = [
        (("pairs", *docs, "-t", "55.5%"), ("pairs", *docs, "-t", "0.555")),
        (("pairs", *docs, "--recall=90 %"), ("pairs", *docs, "--recall", "0.9")),
        (("pairs", *docs, "--ignore-common", "40%"), ("pairs", *docs, "--ignore-common", "0.4")),
        (
            ("curve", "--threshold", "90%", "--format", "csv"),
            ("curve", "--threshold", "0.9", "--format", "csv"),
        ),
    ]
    for percent, share in same:
        first, second = run_many([([*percent], None), ([*share], None)], here)
        assert first[:2] == second[:2]
        assert first[0] == 0, first


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--num-perm", "64"], ["--perms", "64"]),
        (["--num-hashes=64"], ["--perms=64"]),
        (["--ngram", "2"], ["-k", "2"]),
        (["--ngram-size=2"], ["-k", "2"]),
        (["--num-bands", "30", "--rows-per-band", "3"], ["--bands", "30", "--rows", "3"]),
        (["--threads", "1"], ["--jobs", "1"]),
        (["--num-proc=1"], ["--jobs", "1"]),
        (["--workers", "1"], ["--jobs", "1"]),
        (["--json"], ["--format", "json"]),
        (["--csv"], ["--format", "csv"]),
        (["--column", "content"], ["--text-field", "content"]),
        (["--field=content"], ["--text-field", "content"]),
        (["--text-key", "content"], ["--text-field", "content"]),
        (["--similarity", "0.6"], ["-t", "0.6"]),
        (["--similarity-threshold=60%"], ["-t", "0.6"]),
        (["--min-similarity", "0.6"], ["-t", "0.6"]),
        (["--ignore", "*.txt"], ["--exclude", "*.txt"]),
        (["--reference", "docs"], ["--against", "docs"]),
        (["--no-cache"], ["--no-store"]),
        (["--print0"], ["-0"]),
        (["-r"], []),
        (["--recursive"], []),
    ],
)
def test_options_of_other_programs(here, words, meant):
    command = ["pairs", "rows.jsonl", "--no-store"]
    first, second = run_many([([*command, *each], None) for each in (words, meant)], here)
    assert first[:2] == second[:2]


# --- fields of rows -------------------------------------------------------------------------------


def test_a_wrong_column_names_those_there_are(here):
    pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
    pq.write_table(
        pa.Table.from_pylist(
            [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
        ),
        "rows.parquet",
    )
    text, name = said(
        here,
        "pairs rows.parquet --text-field langauge",
        "pairs rows.parquet --text-field content --id-field nothing",
    )
    assert (
        "it has no column 'langauge', but content, id, meta, meta.language; did you mean "
        "--text-field meta.language?" in text
    )
    assert (
        "it has no column 'nothing', but content, id, meta, meta.language; --id-field names another"
        in name
    )


def test_names_of_fields_are_bounded_and_can_be_printed(run, tmp_path):
    names = field_names(
        (name, "") for name in ["\ud800", "\x1b[31m", "x" * 10**6, *map(str, range(1000))]
    )
    assert names[:2] == ("\\ud800", "\\x1b[31m")
    assert len(names) == 100
    message = no_field("text", names, "--text-field")
    assert len(message) < 250
    assert message.isprintable()
    assert (
        no_field("text", (), "--text-field")
        == "no field 'text', but none; --text-field names another"
    )
    (tmp_path / "a.jsonl").write_text(
        '{"\\ud800": 1, "\\u001b[31m": 2}\n{"text": "a b c"}\n{"text": "a b c"}\n'
    )
    result = run("pairs", "a.jsonl", code=2)  # what was skipped, and why, is kept in the store
    assert result.rows == [["a.jsonl:2", "a.jsonl:3", "1.0", "bytes"]]
    assert "no field 'text', but \\ud800, \\x1b[31m" in result.err


# --- counts with their nouns ----------------------------------------------------------------------


def test_every_reason_can_be_counted():
    for reason in Reason:
        assert reason.counted(1) == f"1 {reason}"
        assert reason.counted(3000).startswith("3,000 ")
    assert Reason.NO_TEXT.counted(3000) == "3,000 rows without text"
    assert Reason.LINK.counted(2) == "2 symbolic links"
    assert Reason.NOT_JSON.counted(2) == "2 rows that are no JSON objects"
    assert Reason.BINARY.counted(2) == "2 binary"
    singular = [
        str(reason)
        for reason in Reason
        if re.match(r"(row|symbolic link|damaged document|repeated name)\b", reason)
    ]
    assert all(Reason(each).counted(2) != f"2 {each}" for each in singular)
    assert count_of(2, "document is", "documents are") == "2 documents are"


# --- clusters --write -----------------------------------------------------------------------------


def test_a_file_of_no_rows_can_still_be_written(here):
    Path("none.jsonl").write_text("")
    documents = find_documents(Run.quiet(), [b"none.jsonl"], DocumentParams())
    assert [
        str(target) for target in check_target(documents, Path("out.jsonl"), read=False)[1]
    ] == ["out.jsonl"]


# --- help -----------------------------------------------------------------------------------------


def test_help_is_grouped_and_fits(here):
    commands = [name for name in COMMANDS if name != "spark"] + ["spark pairs", "spark clusters"]
    lines = [([*command.split(), "--help"], 80) for command in commands]
    pages = {
        command: out.decode()
        for command, (_, out, _) in zip(commands, run_many(lines, here), strict=True)
    }
    for command, page in pages.items():
        text = page.partition("Examples:")[0]
        assert max(map(len, text.splitlines())) <= 80, command
        titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.M)
        assert titles == [title for title in GROUPS if title in titles], command
        assert {"Options", "Output", "Running"} <= {*titles} or command.split()[0] in (
            "index",
            "signatures",
            "shingle",
            "spark",
        ), command
        assert len(page.splitlines()) <= 190, command
        assert not re.search(r"\(tables? \d|\bR[1-5]\b|lecture|class experiment", text), command
    assert re.search(r"^Options:\n  -t, --threshold T ", pages["pairs"], re.M)
    top = run_many([(["--help"], 80)], here)[0][1].decode()
    assert not re.search(r"\(tables?|\(R[1-5]", top)


# --- patterns -------------------------------------------------------------------------------------


def test_patterns_of_folders(here):
    for name in ("a/old/x", "a/old/deep/y", "a/older", "b/old", "c.txt"):
        Path("t", name).parent.mkdir(parents=True, exist_ok=True)
        Path("t", name).write_text(TEXT)

    def found(*arguments, **patterns):
        warnings = []
        documents = find_documents(
            replace(Run.quiet(), warn=warnings.append),
            arguments or [b"t"],
            DocumentParams(**patterns),
        )
        return [name.decode().removeprefix("t/") for name in documents.names], warnings

    everything = ["a/old/deep/y", "a/old/x", "a/older", "b/old", "c.txt"]
    for pattern in ("old/", "./t/a/old", "t/a/old/", "/t/a/old", "*/a/old", "**/a/old/**"):
        assert found(exclude=(pattern,)) == (["a/older", "b/old", "c.txt"], []), pattern
    assert found(exclude=("old",)) == (["a/older", "c.txt"], [])
    assert found(exclude=("t",)) == found(exclude=("t/**",)) == ([], [])
    assert found(exclude=("t/*/*", "!older")) == (["a/older", "c.txt"], [])
    assert found(exclude=("t/**", "!c.txt")) == (["c.txt"], [])
    assert found(exclude=("t/", "!c.txt"))[0] == []  # an excluded folder is not looked into
    for top in (os.path.abspath("t"), "../" + here.name + "/t"):  # also a name from elsewhere
        names, warned = found(os.fsencode(top), exclude=("t/a", here.name))
        assert [os.path.relpath(name, top) for name in names] == ["b/old", "c.txt"]
        assert warned == [f"--exclude {here.name} matches nothing that was met"]
    os.chdir("t/b")
    assert found(b"../a", exclude=("/old", "a")) == (
        ["../a/older"],
        ["--exclude a matches nothing that was met"],
    )
    os.chdir(here)
    assert found(include=("old",)) == (["a/old/deep/y", "a/old/x", "b/old"], [])
    assert found(include=("./t/a/",), exclude=("deep",)) == (["a/old/x", "a/older"], [])
    for pattern in ("*l?/", "t/**/x"):
        assert found(include=(pattern, "y")) == (["a/old/deep/y", "a/old/x"], [])
    assert found(include=("*ld", "!x")) == (["a/old/deep/y", "b/old"], [])
    assert found(exclude=("odl", "*.md", ".git")) == (
        everything,
        [
            "--exclude odl matches nothing that was met; did you mean old?",
            "--exclude *.md matches nothing that was met",
            "--exclude .git matches nothing that was met",
        ],
    )
    Path("t/.git").mkdir()
    assert found(include=("*",), exclude=(".git", "*ld", "old")) == (["a/older", "c.txt"], [])
    assert found(include=("t/a/odl", "c.txt"))[1] == [
        "--include t/a/odl matches nothing that was met; did you mean t/a/old?"
    ]
    Path("t/#new\nest#").write_text(TEXT)
    assert found(include=("#*est#",)) == (["#new\nest#"], [])
    with pytest.raises(ParameterError, match="--exclude: invalid git pattern: '!'"):
        found(exclude=("old", "!"))


def test_a_file_that_is_named_itself_is_taken_whatever_the_patterns_say(here):
    Path("docs/sub").mkdir()
    Path("docs/sub/9.txt").write_text(TEXT)
    for named in ([b"docs", b"docs/sub/9.txt"], [b"docs/sub/9.txt", b"docs"]):
        skipped = []
        params = DocumentParams(include=("docs/0.txt",), exclude=("sub",))
        documents = find_documents(replace(Run.quiet(), skipped=skipped.append), named, params)
        assert list(documents.names) == [b"docs/0.txt", b"docs/sub/9.txt"]
        assert b"docs/sub/9.txt" not in {each.name for each in skipped}


# --- one style, and where a value came from -------------------------------------------------------


def test_help_before_a_command_is_that_of_the_command(here):
    lines = (
        ["-h", "pairs"], ["pairs", "-h"], ["--help", "pairs", "docs"], ["pairs", "--help"],
        ["help", "pairs"], ["-h"], ["help"],
    )  # fmt: skip
    before, after, *words, of_all, word = (
        out for _, out, _ in run_many([(each, None) for each in lines], here)
    )
    assert before == after
    assert words[0] == words[1] == words[2]
    assert of_all == word
    assert len({before, words[0], word}) == 3
    assert before.startswith(b"Usage: lshdup pairs [OPTIONS]")
    assert words[0].startswith(b"Usage: lshdup pairs [OPTIONS]")


# --- rows -----------------------------------------------------------------------------------------


def test_more_rows_than_are_named_are_rows(capsys):
    with Console() as console:
        for number in range(12):
            console.report_skipped(
                Skipped(b"r.jsonl:%d" % number, Reason.NOT_JSON, f"at character {number}")
            )
    assert capsys.readouterr().err.count("more rows could not be used; -v names them all") == 1


# --- counts, interrupts, terminals ----------------------------------------------------------------


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
    for variables, expected in (
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ):
        for name in ("NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert use_color(None, is_terminal=True) == expected
        assert not use_color(None, is_terminal=False)
        assert use_color(True, is_terminal=False)
        assert not use_color(False, is_terminal=True)


def test_lines_are_folded_between_words_on_a_terminal(monkeypatch):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 50, 0, 0))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        with Console(progress=False) as console:
            console.error(
                LshdupError(
                    "a message of many words that has no room in one line",
                    f"see {'a' * 60} there",
                    ("one/name.txt", "another"),
                )
            )
            console.say("漢字 " * 20)
            console.say("end")
        read = b""
        while not read.endswith(
            b"end\r\n"
        ):  # a terminal gives what it has, not all that was written
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


# --- messages that say what is so -----------------------------------------------------------------


def test_a_library_that_is_missing_is_said_to_be(here, monkeypatch):
    from lshdup.sources import parquet

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="need pyarrow"):
        parquet._import_pyarrow()


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("pyarrow", "pairs rows.parquet docs"),
        ("matplotlib", "curve --bands 5 --rows 4 --plot x.svg"),
        ("llvmlite", "pairs docs"),
    ],
)
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
        (
            ModuleNotFoundError("no numba", name="numba"),
            "no numba",
            "pip install 'lshdup[kernels]'",
        ),
        (
            ModuleNotFoundError(name="llvmlite"),
            "llvmlite, which compiles ke",
            "pip install llvmlite",
        ),
        (
            ImportError("libx.so", name="a.b"),
            "a is installed and does not load: libx.so",
            "install",
        ),
        (ImportError("libx.so"), "a package is installed and does not load", "install it again"),
    ],
)
def test_errors_that_are_no_defects(capsys, error, message, hint):
    told = main._explain(error)
    assert told.message.startswith(message)
    assert told.hint.startswith(hint)
    assert bool(told.hint) == bool(hint)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("no module", name="other"),
        ImportError("no such name", name="lshdup.cli"),
        RuntimeError("another one"),
    ],
)
def test_defects_show_where_they_are(capsys, error):
    try:
        raise error
    except Exception as raised:
        told = main._explain(raised)
    assert told.message == "this is a defect of lshdup"
    assert "Traceback" in capsys.readouterr().err


def test_a_reason_is_said_once():
    from lshdup.text.office_worker import _detail

    assert _detail(ValueError("PDF is locked: PDF is locked")) == b"PDF is locked"
    assert _detail(ValueError("PDF is locked: page 1")) == b"PDF is locked: page 1"


def test_a_file_that_cannot_be_read_is_not_damaged():
    from lshdup.store import npz

    with open("/proc/self/mem", "rb") as file, pytest.raises(OSError, match="Input/output"):
        npz.read(file, Path("x.npz"), "bands", "")


def test_what_the_system_refuses_is_named(here):
    """A limit of a file's size, a full disk, a folder that is gone."""
    program = [sys.executable, "-m", "lshdup", "pairs", str(here / "docs"), "-t", "0.5", "-q"]
    program += ["--no-store"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    cases = {
        'ulimit -f 0; exec "$@" -o big': "File too large: big",
        'ulimit -f 0; exec "$@" > big': "File too large: standard output",
        'exec "$@" > /dev/full': "No space left on device: standard output",
        'exec "$@" -o /dev/full': "No space left on device: /dev/full",
        'mkdir gone; cd gone; rmdir ../gone; exec "$@"': "the current folder is gone",
    }
    for shell, line in cases.items():
        done = subprocess.run(
            ["bash", "-c", shell, "bash", *program], cwd=here, env=environment, capture_output=True
        )
        assert done.returncode == 2, shell
        assert done.stderr.decode().startswith(f"lshdup: error: {line}\n"), shell


def test_a_page_is_not_for_a_terminal(here):
    code, out, err = in_terminal("report docs -o -", cwd=here)
    assert (code, out) == (2, b"")
    assert err == error(
        "the page is not for a terminal", "name a file with -o, for instance -o report.html"
    )


def test_what_a_filter_leaves():
    assert messages.describe_rest(1) == "only common shingles"
    assert messages.describe_rest(2) == "fewer than 2 shingles left"
