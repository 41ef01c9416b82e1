"""Answers that a script relies on: exit codes of --check, lists of names, and what is skipped."""

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


def test_names_with_control_characters_end_in_no_traceback(run, folders):
    for name in ODD:
        Path(os.fsdecode(os.fsencode(folders) + b"/" + name)).write_text("one and the same text")
    there = run("clusters --files-from - --emit drop -0", stdin=b"\0".join(ODD)).out
    assert set(there.split(b"\0")[:-1]) < set(ODD)
    for separator in (b"\0", b"\n"):
        for command in ("pairs", "shingle"):
            names = separator.join([*ODD, b"\x01\xff"])
            result = run(command, "--files-from", "-", stdin=names, code=2)
            assert "defect" not in result.err
            assert "\x1b" not in result.err
    windows = run("pairs --files-from -", stdin=b"docs/a\r\ndocs/b\r\n", code=2).err
    assert "did you mean docs/a?" in windows
