"""Completion in the shells that are here: the name it completes is what the program gets."""

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
from tests.conftest import ROOT, write_files
from tests.running import write_client

NAMES = [
    *(b"d/plain.txt", b"d/b\xffd.txt", b"d/sub/one.txt", "d/größe.txt".encode()),
    *(b"d/x\ty.txt", b"d/two words.txt"),
]

#: Makes the terminal on standard input the one that the shell is run from: fish will have nothing
#: less.
WITH_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)

#: How each shell begins, and what makes it complete.
SHELLS = {
    "bash": ("--norc --noprofile -i", 'eval "$(_LSHDUP_COMPLETE=bash_source lshdup)"'),
    "zsh": (
        "-f -i",
        'autoload -U compinit; compinit -u -D; eval "$(_LSHDUP_COMPLETE=zsh_source lshdup)"',
    ),
    "fish": (
        "--no-config -i",
        "set -g fish_autosuggestion_enabled 0; _LSHDUP_COMPLETE=fish_source lshdup | source",
    ),
}


@pytest.fixture
def place(tmp_path, run):
    """A store of odd names, and a program that prints its arguments, unless it is to complete."""
    write_files(tmp_path, {name: b"some text in " + name for name in NAMES})
    run("index", "d")
    (tmp_path / "bin").mkdir()
    write_client(tmp_path / "completing")
    shim = tmp_path / "bin/lshdup"
    shim.write_text(
        f'#!/bin/sh\n[ -n "$_LSHDUP_COMPLETE" ] && exec {tmp_path}/completing "$@"\n'
        "printf '<%s>' \"$@\"; echo '<end>'\n"
    )
    shim.chmod(0o755)
    return tmp_path


class Typed:
    """An interactive shell in a terminal."""

    def __init__(self, command, place):
        environment = dict.fromkeys(("HOME", "ZDOTDIR", "XDG_CONFIG_HOME"), str(place))
        environment |= {"PATH": f"{place}/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        environment |= {"TERM": "xterm", "LANG": "C.UTF-8", "PS1": "> ", "HISTFILE": ""}
        environment |= {"INPUTRC": "/dev/null"}
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", WITH_TERMINAL, *command],
            stdin=theirs, stdout=theirs, stderr=theirs,
            cwd=place, env=environment, start_new_session=True,
        )  # fmt: skip
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


@pytest.mark.parametrize("name", SHELLS)
def test_in_a_shell(name, place):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not here")
    arguments, setup = SHELLS[name]
    typed = Typed([path, *arguments.split()], place)
    try:
        os.write(typed.ours, f'{setup}; echo rea""dy\n'.encode())
        assert b"ready" in typed.read(until=b"ready")
        got = typed.run("lshdup sho\td/pl\t d/grö\t --format ta\t --inl\t".encode())
        assert [each.decode() for each in got] == [
            *("show", "d/plain.txt", "d/größe.txt", "--format", "table", "--inline")
        ]
    finally:
        typed.close()


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
