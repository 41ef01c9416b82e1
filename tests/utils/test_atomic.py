"""Files that are replaced: whole or not at all, and nothing of a killed run stays for ever."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from lshdup.utils.atomic import (
    PREFIX,
    SUFFIX,
    remove_own_temporary_files,
    remove_temporary_files,
    replace_file,
)
from tests.conftest import ROOT


def test_replaced_when_complete(tmp_path):
    path = tmp_path / "out"
    for content in (b"first", b"second"):
        with replace_file(path) as file:
            file.write(content)
            assert not path.exists() or path.read_bytes() == b"first"
            (temporary,) = set(os.listdir(tmp_path)) - {"out"}
            assert temporary.startswith(PREFIX)
            assert temporary.endswith(SUFFIX)
            assert stat.S_IMODE((tmp_path / temporary).stat().st_mode) == 0o600
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == ["out"]


def test_what_is_renamed_is_on_the_disk_before_and_its_name_after(tmp_path, monkeypatch):
    path, synced, fsync = tmp_path / "out", [], os.fsync

    def sync(descriptor):
        fsync(descriptor)
        synced.append((os.fstat(descriptor).st_ino, path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    with replace_file(path) as file:
        file.write(b"content")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    old = os.umask(0o027)
    try:
        with replace_file(path) as file:
            file.write(b"1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link.symlink_to("out")
    with replace_file(link) as file:
        file.write(b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert (link.is_symlink(), path.read_bytes()) == (True, b"2")


def test_abandoned(tmp_path):
    (tmp_path / "out").write_bytes(b"old")

    def fail():
        with replace_file(tmp_path / "out") as file:
            file.write(b"new")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 (it has no message)
        fail()
    assert [os.listdir(tmp_path), (tmp_path / "out").read_bytes()] == [["out"], b"old"]


def test_an_interrupt_removes_what_is_being_written(tmp_path):
    def write():
        with replace_file(tmp_path / "out"):
            assert len(os.listdir(tmp_path)) == 1
            remove_own_temporary_files()
            assert os.listdir(tmp_path) == []

    with pytest.raises(FileNotFoundError):
        write()
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError), replace_file(tmp_path / "no/out"):
        pass


def test_a_killed_run_leaves_the_old_file_and_the_next_removes_the_rest(tmp_path):
    (tmp_path / "out").write_bytes(b"old")
    script = (
        "import os, signal, sys; from pathlib import Path; from lshdup.utils.atomic "
        "import replace_file\n"
        "with replace_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'x' * 100_000); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", script, tmp_path / "out"]
    process = subprocess.run(command, cwd=ROOT, check=False)
    assert process.returncode == -signal.SIGKILL
    assert (tmp_path / "out").read_bytes() == b"old"
    (left,) = set(os.listdir(tmp_path)) - {"out"}
    with replace_file(tmp_path / "out") as file:
        file.write(b"new")
    assert left in os.listdir(tmp_path)  # It may belong to a run that is still there.
    two_days_ago = time.time() - 2 * 86_400
    os.utime(tmp_path / left, (two_days_ago, two_days_ago))
    with replace_file(tmp_path / "out") as file:
        file.write(b"newer")
    assert os.listdir(tmp_path) == ["out"]


def test_only_temporary_files_are_removed(tmp_path):
    others = [f"{PREFIX}abcd{SUFFIX}", f"x{PREFIX}abcd_123{SUFFIX}", f"{PREFIX}abcd_123", "notes"]
    for name in [*others, f"{PREFIX}abcd_123{SUFFIX}"]:
        (tmp_path / name).write_text("x")
    (tmp_path / f"{PREFIX}ffffffff{SUFFIX}").symlink_to("notes")
    (tmp_path / f"{PREFIX}00000000{SUFFIX}").mkdir()
    remove_temporary_files(tmp_path)
    left = [*others, f"{PREFIX}ffffffff{SUFFIX}", f"{PREFIX}00000000{SUFFIX}"]
    assert sorted(os.listdir(tmp_path)) == sorted(left)
