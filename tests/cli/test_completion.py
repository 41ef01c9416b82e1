"""Completion in real shells, typed into a terminal: what the shell hands to the program is what the name is.

Shells that are not there are skipped, unless LSHDUP_REQUIRE names `shells`.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

from lshdup.store.name_table import NameTable, load
from tests.conftest import ROOT

NAMES = [
    b"d/two words.txt",
    b"d/it's $HOME.txt",
    b"d/b\xffd.txt",
    b"d/sub/c:d=e.txt",
    "d/größe.txt".encode(),
    b"d/x\ty.txt",
]

#: Makes the terminal on standard input the one that the shell is run from: fish will have nothing less.
WITH_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


def needed(shell):
    path = shutil.which(shell)
    if path is None:
        if "shells" in os.environ.get("LSHDUP_REQUIRE", ""):
            pytest.fail(f"{shell} is not here")
        pytest.skip(f"{shell} is not here")
    return path


@pytest.fixture
def place(tmp_path, run):
    """A store of oddly named documents, and a program `lshdup` that prints its arguments, unless it is asked to complete."""
    for name in NAMES:
        path = os.path.join(os.fsencode(tmp_path), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"some text in " + name)
    run("index", "d")
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin/lshdup"
    shim.write_text(
        f'#!/bin/sh\n[ "$1" = completion ] && exec {sys.executable} -m lshdup "$@"\nprintf \'<%s>\' "$@"; echo \'<end>\'\n'
    )
    shim.chmod(0o755)
    return tmp_path


class Typed:
    """An interactive shell in a terminal."""

    def __init__(self, command, place):
        environment = {
            "PATH": f"{place}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(place),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }
        environment |= {
            "PS1": "> ",
            "HISTFILE": "",
            "ZDOTDIR": str(place),
            "XDG_CONFIG_HOME": str(place),
            "INPUTRC": "/dev/null",
        }
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", WITH_TERMINAL, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=place,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)

    def read(self, until=None, most=20.0):
        """What comes until a pattern is there, or nothing more for a while after something."""
        out = b""
        end = time.monotonic() + most
        while time.monotonic() < end:
            if not select.select([self.ours], [], [], 0.3)[0]:
                if until is None and out:
                    break
                continue
            try:
                out += os.read(self.ours, 1 << 16)
            except OSError:
                break
            if until is not None and re.search(until, out):
                break
        return out

    def run(self, line):
        """Type a line with tabs in it; returns the arguments the program got."""
        *parts, last = line.split(b"\t")
        for part in parts:
            os.write(self.ours, part)
            self.read()
            os.write(self.ours, b"\t")
            self.read()
        os.write(self.ours, last + b"\n")
        out = self.read(until=rb"<end>\r?\n")
        found = re.findall(rb"(<.*>)<end>", out)
        assert found, out
        return found[-1][1:-1].split(b"><")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request, place):
    path = needed(request.param)
    if request.param == "bash":
        typed = Typed([path, "--norc", "--noprofile", "-i"], place)
        setup = b'eval "$(lshdup completion bash)"; echo rea""dy\n'
    elif request.param == "fish":
        typed = Typed([path, "--no-config", "-i"], place)
        setup = (
            b'set -g fish_autosuggestion_enabled 0; lshdup completion fish | source; echo rea""dy\n'
        )
    else:
        typed = Typed([path, "-f", "-i"], place)
        setup = (
            b'autoload -U compinit; compinit -u -D; eval "$(lshdup completion zsh)"; echo rea""dy\n'
        )
    os.write(typed.ours, setup)
    assert b"ready" in typed.read(until=b"ready")
    yield typed
    typed.close()


def test_in_a_shell(shell):
    assert shell.run(b"lshdup query d/two\t") == [b"query", b"d/two words.txt"]
    assert shell.run(b"lshdup sho\tit\t two\\ w\t") == [
        b"show",
        b"d/it's $HOME.txt",
        b"d/two words.txt",
    ]
    assert shell.run(b"lshdup query d/b\t") == [b"query", b"d/b\xffd.txt"]
    assert shell.run(b"lshdup query d/su\tc\t") == [b"query", b"d/sub/c:d=e.txt"]
    assert shell.run(b"lshdup query sub/c\t") == [b"query", b"d/sub/c:d=e.txt"]
    assert shell.run(b"lshdup query words.txt\t") == [b"query", b"d/two words.txt"]
    assert shell.run(b"lshdup shingle --show tw\t") == [b"shingle", b"--show", b"d/two words.txt"]
    assert shell.run(b"lshdup pairs --format ta\t --colla\t") == [
        b"pairs",
        b"--format",
        b"table",
        b"--collapse-copies",
    ]


def test_fish(place):
    fish = needed("fish")

    def complete(line):
        environment = {
            "PATH": f"{place}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(place),
            "LANG": "C.UTF-8",
        }
        script = 'lshdup completion fish | source; complete -C "$argv"'
        process = subprocess.run(
            [fish, "--no-config", "-c", script, line],
            capture_output=True,
            cwd=place,
            env=environment,
            check=True,
        )
        assert not process.stderr, process.stderr
        return [each.split(b"\t")[0] for each in process.stdout.splitlines()]

    assert complete(b"lshdup query d/two") == [b"d/two words.txt"]
    assert complete(b"lshdup query 'd/two w") == [b"d/two words.txt"]
    assert complete(b"lshdup show d/two\\ words.txt it") == [b"d/it's $HOME.txt"]
    assert complete(b"lshdup query d/sub/c:") == [b"d/sub/c:d=e.txt"]
    assert "d/größe.txt".encode() in complete(b"lshdup query d/")
    assert complete(b"lshdup pairs --format js") == [b"json", b"jsonl"]
    assert b"pairs" in complete(b"lshdup ")
    assert b"d/" in complete(b"lshdup index d")


# --- what the shells are told ----------------------------------------------------------------------------------------------------


def told(run, line, **more):
    return [
        tuple(each.split("\t")[:2])
        for each in run("completion", "bash", "--complete", line, **more).lines
    ]


def test_names_are_completed_folder_by_folder(run, place):
    names = told(run, "lshdup query d/")
    assert ("name", "d/sub/") in names
    assert ("name", "d/two words.txt") in names
    assert len(names) == 5  # not the one with a tab
    assert told(run, "lshdup query ") == [("name", "d/")]
    assert told(run, "lshdup query größe") == [("name", "d/größe.txt")]
    assert told(run, "lshdup query nothing") == [("file", "nothing")]
    assert told(run, "lshdup query --store elsewhere d/") == [("file", "d/")]
    assert told(
        run, "lshdup query ../d/tw", cwd=place / "bin", env={"LSHDUP_STORE": "../.lshdup"}
    ) == [("name", "../d/two words.txt")]
    assert told(run, "lshdup query tw", cwd=place / "bin", env={"LSHDUP_STORE": "../.lshdup"}) == [
        ("name", "../d/two words.txt")
    ]
    (place / ".lshdup/signatures.npz").write_bytes(b"junk")
    assert told(run, "lshdup query tw") == [("file", "tw")]


def test_names_are_had_without_numpy(place):
    asked = "main(['completion', 'bash', '--complete', 'lshdup show d/t'])"
    script = (
        f"import sys; from lshdup.cli.main import main\ntry: {asked}\nexcept SystemExit: pass\n"
    )
    script += "print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=place,
        env=environment,
        check=True,
    )
    *found, modules = process.stdout.splitlines()
    assert found == ["name\td/two words.txt\t"]
    assert {name.split(".")[0] for name in modules.split()}.isdisjoint(
        {"numpy", "numba", "rich", "tqdm"}
    )


def test_the_table_of_names(place, monkeypatch):
    monkeypatch.chdir(place)
    table, way = load(place / ".lshdup")
    assert (sorted(table), way) == (sorted(NAMES), b"")
    assert isinstance(table, NameTable)
    assert load(place / "nowhere") is None
