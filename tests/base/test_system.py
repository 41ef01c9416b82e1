"""What Windows and macOS lack is taken away: the main commands do the same without it."""

import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lshdup.base import system
from tests.conftest import ROOT, part, write_files
from tests.running import clean_environment
from tests.store.disturbed import at_most

#: What a system lacks: attributes of modules, and whole modules.
MACOS = {"os": "posix_fallocate sched_getaffinity preadv"}
WINDOWS = {
    "os": "posix_fallocate statvfs sched_getaffinity preadv pread pwrite getuid geteuid"
    " sysconf O_NONBLOCK O_NOFOLLOW O_DIRECTORY O_CLOEXEC",
    "mmap": "MADV_DONTNEED", "select": "poll", "sys": "fcntl resource",
}  # fmt: skip

#: Starts the program without something. The listing by the C library is Linux's, too.
_PROGRAM = """
import importlib, sys
import ctypes, mmap, platform, shutil, signal, socket, subprocess, tempfile, zipfile
import click, numpy
usage = shutil.disk_usage(".")
shutil.disk_usage = lambda _: usage  # Windows has a call of its own for it.
for each in sys.argv.pop(1).split(";"):
    module, _, names = each.partition("=")
    for name in names.split():
        if module == "sys":
            sys.modules[name] = None
        else:
            vars(importlib.import_module(module)).pop(name, None)
from lshdup.sources import files
assert files.KERNELS_KNOW_THE_SYSTEM
files.KERNELS_KNOW_THE_SYSTEM = False
from lshdup.cli.main import program
program()
"""


def run_without(lacking, *arguments, folder):
    taken = ";".join(f"{module}={names}" for module, names in lacking.items())
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, taken, *arguments],
        cwd=folder, capture_output=True, env=clean_environment(), timeout=240,
    )  # fmt: skip


@pytest.mark.parametrize("lacking", [MACOS, WINDOWS], ids=["macos", "windows"])
def test_the_main_commands(tmp_path, lacking, run):
    (tmp_path / "sample_corpus").symlink_to(ROOT / "sample_corpus")
    rows = (f'{{"text": "one two three four {i // 2}"}}\n' for i in range(8))
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    for command in (
        *part(["pairs sample_corpus -t 0.7", "clusters sample_corpus"], 2), "query MIT.txt",
        *part(["pairs rows.jsonl --no-store", "passages sample_corpus --least 100"], 2),
        "clusters rows.jsonl --store s --write out.jsonl",
    ):  # fmt: skip
        words = command.split()
        there, here = run_without(lacking, *words, folder=tmp_path), run(*words, cwd=tmp_path)
        assert there.returncode == here.code == 0, there.stderr.decode()
        assert there.stdout == here.out, command
        assert there.stdout or "--write" in command, command
    assert (tmp_path / "out.jsonl").read_text().count("\n") == 4


def test_office_documents_and_mails_are_refused_politely_without_processes(tmp_path):
    mail = "From: a@example.org\nTo: b@example.org\nSubject: x\n\nA text of a mail.\n"
    write_files(tmp_path, {"a.eml": mail, "b.txt": "one two three four"})
    said = run_without(WINDOWS, "pairs", ".", "-v", "--no-store", folder=tmp_path).stderr.decode()
    assert "office documents and mails are read on Linux and macOS only" in said
    assert "Traceback" not in said


def test_positioned_reads_and_writes_from_many_threads(tmp_path, monkeypatch):
    for name in ("pread", "preadv", "pwrite"):
        monkeypatch.delattr(os, name, raising=False)
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    blocks = [bytes([i]) * 1000 for i in range(64)]
    wrong = []

    def work(first):
        for i in range(first, 64, 4):
            system.pwrite(file, blocks[i], 1000 * i)
            into = bytearray(1000)
            got = system.pread_into(file, memoryview(into), 1000 * i)
            if got != 1000 or bytes(into) != blocks[i]:
                wrong.append(i)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong
    assert system.pread(file, 64_000, 0) == b"".join(blocks)
    os.close(file)


def test_backslashes_are_slashes_where_they_separate_names(monkeypatch):
    assert system.with_slashes(rb"a\b/c") == rb"a\b/c"
    monkeypatch.setattr(os, "sep", "\\")
    assert system.with_slashes(rb"a\b/c") == b"a/b/c"


def test_the_memory_of_a_system_that_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "sysconf")
    assert system.machine_memory(tmp_path / "none", tmp_path) == 8 << 30


def test_a_limit_of_addresses_is_known_where_nothing_more_can_be_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    with at_most(1 << 46, resource.RLIMIT_AS):
        assert system.address_space() == 1 << 46
    monkeypatch.delattr(system, "resource")
    assert system.address_space() == 0


def test_calls_that_not_every_system_has_stand_in_one_module():
    calls = "os.pread os.pwrite os.statvfs os.getuid os.sysconf select.poll( "
    calls += "fcntl posix_fallocate madvise"
    for path in {*(ROOT / "lshdup").rglob("*.py")} - {Path(system.__file__)}:
        text = path.read_text("utf-8")
        found = [call for call in calls.split() if call in text]
        assert not found or (path.name, found) == ("office_processes.py", ["select.poll("]), path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory is not told here")
def test_free_memory_goes_back_to_the_system():
    code = """
import numpy as np
from lshdup.base.system import trim_memory

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

blocks = [np.ones(8000) for _ in range(2000)]
held = blocks[::100]
del blocks
before = anonymous()
trim_memory()
print(before - anonymous())
"""
    freed = int(subprocess.check_output([sys.executable, "-c", code], text=True))
    assert freed > 100_000  # of 128,000 kB


def test_processes_are_bounded_where_both_calls_for_it_are_there(monkeypatch):
    assert system.can_bound_processes()
    with monkeypatch.context() as windows:
        windows.delattr("select.poll")
        assert not system.can_bound_processes()
    monkeypatch.delattr(system, "resource")
    assert not system.can_bound_processes()
