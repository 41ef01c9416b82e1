"""Files that are replaced: whole or not at all, and nothing of a killed run stays for ever."""

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from lshdup.base import atomic
from lshdup.base.atomic import PREFIX, SUFFIX, Folder, remove_own_temporary_files, replace_file
from tests.conftest import ROOT, write_files


def write(path, content):
    """Replace a file."""
    with replace_file(path) as file:
        file.write(content)


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
    write(path, b"content")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    old = os.umask(0o027)
    try:
        write(path, b"1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link.symlink_to("out")
    write(link, b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert (link.is_symlink(), path.read_bytes()) == (True, b"2")


def test_abandoned(tmp_path, monkeypatch):
    """By an error, by an interrupt that removes what is being written, without a folder."""
    monkeypatch.setattr(atomic, "_changing", threading.RLock())  # An interrupt never lets go.
    (tmp_path / "out").write_bytes(b"old")

    def fail(removed):
        with replace_file(tmp_path / "out") as file:
            file.write(b"new")
            if removed:
                assert len(os.listdir(tmp_path)) == 2
                remove_own_temporary_files()
                assert os.listdir(tmp_path) == ["out"]
            else:
                raise KeyError

    for removed, error in ((False, KeyError), (True, FileNotFoundError)):
        with pytest.raises(error):
            fail(removed)
        assert [os.listdir(tmp_path), (tmp_path / "out").read_bytes()] == [["out"], b"old"]
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "no/out", b"")


def started(path, then):
    """A process that has begun to replace a file, and then waits or is killed."""
    script = f"""
import os, signal, sys, time
from pathlib import Path
from lshdup.base.atomic import replace_file
with replace_file(Path(sys.argv[1])) as file:
    file.write(b'x' * 100_000); file.flush(); print(1, flush=True); {then}"""
    command = [sys.executable, "-c", script, path]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout.read(2) == b"1\n"
    return process


def test_a_killed_run_leaves_the_old_file_and_the_next_removes_the_rest(tmp_path):
    """1.0.0 left the temporary file for a day."""
    (tmp_path / "out").write_bytes(b"old")
    with started(tmp_path / "out", "os.kill(os.getpid(), signal.SIGKILL)") as process:
        assert process.wait() == -signal.SIGKILL
    assert (tmp_path / "out").read_bytes() == b"old"
    (left,) = set(os.listdir(tmp_path)) - {"out"}
    assert re.fullmatch(r"\.lshdup-\w{8}\.tmp", left)
    write(tmp_path / "other", b"new")
    assert sorted(os.listdir(tmp_path)) == ["other", "out"]


def test_the_temporary_file_of_a_live_run_stays(tmp_path):
    with started(tmp_path / "out", "time.sleep(60)") as process:
        (left,) = os.listdir(tmp_path)
        two_days_ago = time.time() - 2 * 86_400
        os.utime(tmp_path / left, (two_days_ago, two_days_ago))
        write(tmp_path / "other", b"new")
        assert sorted(os.listdir(tmp_path)) == [left, "other"]
        process.kill()


def test_without_locks_a_temporary_file_stays_for_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "hold", lambda descriptor: False)
    left = tmp_path / f"{PREFIX}01234567{SUFFIX}"
    left.write_bytes(b"of a run that may be alive")
    for age, stays in ((86_000, True), (86_500, False)):
        os.utime(left, (time.time() - age,) * 2)
        with replace_file(tmp_path / "out"):
            assert left.exists() == stays


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """By another run, between the two calls that make it and lock it."""
    locked = []

    def hold(descriptor):
        locked.append(descriptor)
        if len(locked) < 3:
            (left,) = tmp_path.iterdir()
            left.unlink()
        if len(locked) == 2:
            raise BlockingIOError  # the other run is about to remove it
        return True

    monkeypatch.setattr(atomic, "hold", hold)
    write(tmp_path / "out", b"whole")
    assert [os.listdir(tmp_path), (tmp_path / "out").read_bytes()] == [["out"], b"whole"]
    assert len(locked) == 3


def test_only_files_of_ours_are_opened(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "in/link").symlink_to("../mine")
    (tmp_path / "in/dangling").symlink_to("../none")
    (tmp_path / "in/below").symlink_to("..")
    os.link(tmp_path / "mine", tmp_path / "in/hard")
    os.mkfifo(tmp_path / "in/pipe")
    (tmp_path / "in/folder").mkdir()
    folder = Folder(tmp_path / "in")
    moving = partial(folder.move, folder=folder, new_name="moved")
    for name in ("link", "dangling", "hard", "pipe", "folder"):
        for use in (folder.open, folder.create, folder.open_lock, moving):
            with pytest.raises(OSError):  # noqa: PT011 (its number differs)
                use(name)
        if name != "folder":
            with folder.replace(name) as file:  # what is there is replaced, not written
                file.write(b"new")
            with folder.open(name) as file:
                assert file.read() == b"new"
    with pytest.raises(NotADirectoryError):
        Folder(tmp_path / "in", "below")
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["in", "mine"]
    (tmp_path / "typed").symlink_to("in")
    with Folder(tmp_path / "typed").open("link") as file:
        assert file.read() == b"new"


def test_only_temporary_files_are_removed(tmp_path):
    others = [f"{PREFIX}abcd{SUFFIX}", f"x{PREFIX}abcd_123{SUFFIX}", f"{PREFIX}abcd_123", "notes"]
    write_files(tmp_path, dict.fromkeys([*others, f"{PREFIX}abcd_123{SUFFIX}"], "x"))
    (tmp_path / f"{PREFIX}ffffffff{SUFFIX}").symlink_to("notes")
    (tmp_path / f"{PREFIX}00000000{SUFFIX}").mkdir()
    Folder(tmp_path).remove_temporary_files()
    left = [*others, f"{PREFIX}ffffffff{SUFFIX}", f"{PREFIX}00000000{SUFFIX}"]
    assert sorted(os.listdir(tmp_path)) == sorted(left)


def test_another_thread_does_not_go_on_when_an_interrupt_ends_the_process(tmp_path):
    """Its file is gone, which it would take for a full disk, and drop what the store keeps."""
    script = """if True:
        import os, threading, time
        from lshdup.base import atomic

        synced, sync = threading.Event(), os.fsync
        os.fsync = lambda file: (synced.set(), time.sleep(0.2), sync(file))

        def save():
            try:
                with atomic.Folder(atomic.Path()).replace("x") as file:
                    file.write(b"1")
            finally:
                print("went on", flush=True)

        threading.Thread(target=save, daemon=True).start()
        synced.wait()
        atomic.remove_own_temporary_files()
        time.sleep(0.6)
        os._exit(130)
    """
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr, os.listdir(tmp_path)) == (130, b"", b"", [])
