"""Completion in real shells, typed into a terminal: the name that a shell completes is the argument
the program gets. Shells that are not there are skipped.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from lshdup.base.ragged import StringTable
from lshdup.cli.types import MOST_CANDIDATES, find_names
from lshdup.sources.document_list import DocumentList
from tests.conftest import ROOT

NAMES = [
    b"d/plain.txt",
    b"d/b\xffd.txt",
    b"d/sub/one.txt",
    "d/größe.txt".encode(),
    b"d/x\ty.txt",
    b"d/two words.txt",
]

#: Makes the terminal on standard input the one that the shell is run from: fish will have nothing
#: less.
WITH_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def needed(shell):
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not here")
    return path


@pytest.fixture
def place(tmp_path, run):
    """A store of oddly named documents, and a program `lshdup` that prints its arguments, unless it
    is asked to complete.
    """
    for name in NAMES:
        path = os.path.join(os.fsencode(tmp_path), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"some text in " + name)
    run("index", "d")
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin/lshdup"
    shim.write_text(
        f'#!/bin/sh\n[ -n "$_LSHDUP_COMPLETE" ] && exec {sys.executable} -m lshdup "$@"\n'
        "printf '<%s>' \"$@\"; echo '<end>'\n"
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
        setup = b'eval "$(_LSHDUP_COMPLETE=bash_source lshdup)"; echo rea""dy\n'
    elif request.param == "fish":
        typed = Typed([path, "--no-config", "-i"], place)
        setup = (
            b"set -g fish_autosuggestion_enabled 0; _LSHDUP_COMPLETE=fish_source lshdup | "
            b'source; echo rea""dy\n'
        )
    else:
        typed = Typed([path, "-f", "-i"], place)
        setup = (
            b'autoload -U compinit; compinit -u -D; eval "$(_LSHDUP_COMPLETE=zsh_source '
            b'lshdup)"; echo rea""dy\n'
        )
    os.write(typed.ours, setup)
    assert b"ready" in typed.read(until=b"ready")
    yield typed
    typed.close()


def test_in_a_shell(shell):
    assert shell.run("lshdup sho\td/pl\t d/grö\t".encode()) == [
        b"show",
        b"d/plain.txt",
        "d/größe.txt".encode(),
    ]
    assert shell.run(b"lshdup pairs --format ta\t --colla\t") == [
        b"pairs",
        b"--format",
        b"table",
        b"--collapse-copies",
    ]


# --- what the shells are told ---------------------------------------------------------------------


def completions(run, *words, **more):
    environment = {"_LSHDUP_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words))}
    environment["COMP_WORDS"] = " ".join(["lshdup", *words])
    return run(env={**environment, **more.pop("env", {})}, **more).out.decode().splitlines()


def test_names_of_the_store(run, place):
    names = completions(run, "query", "d/")
    assert names == [
        f"plain,{name}"
        for name in ("d/größe.txt", "d/plain.txt", "d/sub/one.txt", "d/two words.txt")
    ]
    assert completions(run, "query", "nothing") == ["file,nothing"]
    assert completions(run, "query", "--store", "elsewhere", "d/") == ["file,d/"]
    elsewhere = {"cwd": place / "bin", "env": {"LSHDUP_STORE": "../.lshdup"}}
    assert completions(run, "query", "../d/tw", **elsewhere) == ["plain,../d/two words.txt"]
    (place / ".lshdup").rename(place / "real")
    (place / ".lshdup").symlink_to("real")  # a link is followed only where it is typed
    assert completions(run, "query", "d/") == ["file,d/"]
    assert completions(run, "query", "--store", ".lshdup", "d/") == names
    (place / ".lshdup").unlink()
    (place / "real").rename(place / ".lshdup")
    (place / ".lshdup/signatures.npz").write_bytes(b"junk")
    assert completions(run, "query", "d/") == ["file,d/"]


def test_candidates_are_few_and_have_the_beginning_of_all():
    names = StringTable.from_strings(
        [b"a/%05d" % number for number in range(10_000)] + [b"b", b"c\xff", b"c\xff\xff", b"d"]
    )
    nothing = np.zeros(len(names), np.int64)
    documents = DocumentList(names, nothing, nothing)
    candidates = find_names(documents, b"a/0")
    assert len(candidates) == MOST_CANDIDATES
    assert candidates[:2] == [b"a/00000", b"a/00001"]
    assert candidates[-1] == b"a/09999"
    assert find_names(documents, b"a/00012") == [b"a/00012"]
    assert find_names(documents, b"c\xff") == [b"c\xff", b"c\xff\xff"]
    assert find_names(documents, b"e") == find_names(documents, b"a/1") == []
