"""Files that are replaced: whole or not at all, and nothing left of a run that was killed."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from lshdup.utils import atomic
from lshdup.utils.atomic import replace_file
from tests.conftest import ROOT


@pytest.fixture(params=["nameless", "named"])
def way(request, monkeypatch):
    """With and without files that have no name until they are complete."""
    if request.param == "named":
        monkeypatch.setattr(atomic, "_nameless", lambda _: None)
    return request.param


def test_replaced_when_complete(way, tmp_path):
    path = tmp_path / "out"
    for content in (b"first", b"second"):
        with replace_file(path) as file:
            file.write(content)
            assert not path.exists() or path.read_bytes() == b"first"
            assert (len(os.listdir(tmp_path)) > path.exists()) == (way == "named")
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == ["out"]
    assert not atomic._under_way


def test_permissions_and_links_stay(way, tmp_path):
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


def test_abandoned(way, tmp_path):
    (tmp_path / "out").write_bytes(b"old")

    def fail():
        with replace_file(tmp_path / "out") as file:
            file.write(b"new")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 (it has no message)
        fail()
    assert [os.listdir(tmp_path), (tmp_path / "out").read_bytes()] == [["out"], b"old"]


def test_a_folder_that_is_not_there(way, tmp_path):
    with pytest.raises(FileNotFoundError), replace_file(tmp_path / "no/out"):
        pass


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no files without a name")
def test_a_killed_run_leaves_nothing(tmp_path):
    descriptor = atomic._nameless(tmp_path)
    if descriptor is None:
        pytest.skip("this file system has no files without a name")
    os.close(descriptor)
    (tmp_path / "out").write_bytes(b"old")
    script = (
        "import os, signal, sys; from pathlib import Path; from lshdup.utils.atomic import replace_file\n"
        "with replace_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'x' * 100_000); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", script, tmp_path / "out"]
    process = subprocess.run(command, cwd=ROOT, check=False)
    assert process.returncode == -signal.SIGKILL
    assert [os.listdir(tmp_path), (tmp_path / "out").read_bytes()] == [["out"], b"old"]
