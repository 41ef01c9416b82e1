"""What a run may not read or write; root runs without its right to do everything."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys

import pytest

from tests.conftest import Result, write_files
from tests.running import run_program, start_warm

#: The capabilities by which root reads and writes whatever its permissions say, and how a process
#: does without (prctl.h, capability.h).
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """A keyword argument of `run_program` by which a run has only the rights of permissions."""
    if os.geteuid():
        return {}
    libc = ctypes.CDLL(None)

    def drop():
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)

    closed = tmp_path_factory.mktemp("closed") / "file"
    closed.touch(0)
    command = [sys.executable, "-c", "import sys; open(sys.argv[1])", closed]
    process = subprocess.run(command, preexec_fn=drop, capture_output=True, check=False)
    if b"PermissionError" not in process.stderr:
        pytest.skip("root cannot do without its rights here")
    return {"warm": start_warm(preexec_fn=drop)}


@pytest.fixture
def here(tmp_path):
    """A few documents."""
    text = "one two three four five six seven eight nine ten eleven"
    write_files(tmp_path / "d", {name: f"{text} {name}" for name in "abc"})
    yield tmp_path
    for folder, _, _ in os.walk(tmp_path):  # so that it can be removed
        os.chmod(folder, 0o700)


@pytest.fixture
def run(here, ordinary):
    def run(*arguments, code=0):
        result = Result(run_program(arguments, cwd=here, stdin=b"", **ordinary))
        assert result.code == code, result
        return result

    return run


@pytest.fixture
def read_only(run, here):
    """Its store, which nobody may write to; and what `pairs` says of it."""
    expected = run("pairs d -t 0.7").out
    assert expected.count(b"\n") == 3
    store = here / ".lshdup"
    for path in store.iterdir():
        path.chmod(0o444)
    store.chmod(0o555)
    return store, expected


def refused(result, store):
    """Whether a run says in two lines that the store cannot be written."""
    lines = result.err.splitlines()
    return f"the store {store} cannot be written: " in lines[0] and len(lines) == 2


def contents(store):
    return {path.name: path.read_bytes() for path in store.iterdir()}


def test_what_may_not_be_read(run, here):
    write_files(here, {"d/listed/x": "text", "d/file": "text"})
    (here / "d/closed").mkdir(mode=0)
    (here / "d/listed").chmod(0o444)  # its names can be seen, and nothing of the files
    (here / "d/unlisted").mkdir(mode=0o111)
    (here / "d/file").chmod(0)
    result = run("pairs d -t 0.7", code=2)
    assert len(result.rows) == 3
    for name in ("closed", "file", "unlisted", "listed/x"):
        assert f"d/{name}: unreadable (Permission denied)" in result.err
    assert "4 unreadable" in result.err
    assert "d/file: Permission denied" in run("query d/file", code=2).err
    assert "Permission denied" in run("pairs --files-from d/file", code=2).err
    assert "Permission denied" in run("pairs d/closed/x", code=2).err
    # The others are compared all the same.
    named = run("pairs d/a d/file d/b -t 0.7 --no-store", code=2)
    assert len(named.rows) == 1
    assert "d/file: unreadable (Permission denied)" in named.err


def test_a_store_that_may_only_be_read(run, read_only):
    store, expected = read_only
    before = contents(store)
    assert run("pairs", "-t", "0.7").out == expected
    assert len(run("query", "d/a", "-t", "0.7").rows) == 2
    assert len(run("query", "d/a", "-t", "0.3").rows) == 2  # a table of its own
    for command in ("pairs d", "index d", "shingle d", "signatures d", "index -t 0.9"):
        result = run(command, code=2)
        assert refused(result, ".lshdup"), result
        assert "Permission denied" in result.err
        assert "--store DIR" in result.err
    assert run("pairs d -t 0.7 --no-store").out == expected
    assert contents(store) == before


def test_pairs_that_cannot_be_kept_are_said_all_the_same(run, here, read_only):
    store, expected = read_only
    store.chmod(0o755)
    (store / "pairs.npz").unlink()
    store.chmod(0o555)
    result = run("pairs", "-t", "0.7")
    assert result.out == expected
    assert "pairs.npz is not kept: the store .lshdup cannot be written" in result.err


@pytest.mark.parametrize("mode", [0, 0o200])
def test_artifacts_that_may_not_be_read(run, here, read_only, mode):
    store, expected = read_only
    store.chmod(0o755)
    (store / "signatures.npz").chmod(mode)
    for command in ("pairs", "query d/a"):
        result = run(command, code=2)
        assert "signatures.npz cannot be read: Permission denied" in result.err
        assert len(result.err.splitlines()) == 2, result
    (store / ".lock").chmod(0o644)
    result = run("pairs", "d", "-t", "0.7")  # the folder may be written: it is rebuilt
    assert result.out == expected
    assert "rebuilt" in result.err


def test_a_store_that_may_not_be_entered(run, here, read_only):
    store, _ = read_only
    store.chmod(0)
    for command in ("pairs", "pairs d", "query d/a", "index"):
        result = run(command, code=2)
        assert "Permission denied" in result.err
        assert "Traceback" not in result.err
        assert len(result.err.splitlines()) <= 2, result


def test_output_that_may_not_be_written(run, here):
    (here / "closed").mkdir(mode=0o555)
    command = ("pairs", "d", "--no-store", "-t", "0.7", "-o", "closed/out")
    assert "closed/out cannot be written" in run(*command, code=2).err
    (here / "closed").chmod(0o755)
    (here / "closed/out").write_text("old")
    (here / "closed/out").chmod(0o400)
    run(*command)  # as a rename: the folder's rights count
    assert len((here / "closed/out").read_text().splitlines()) == 3
    assert stat.S_IMODE((here / "closed/out").stat().st_mode) == 0o400
    assert os.listdir(here / "closed") == ["out"]


def test_a_file_system_that_is_read_only(run, here, small_disk):
    """Another file system than that of the documents, on which nobody writes, not even root."""
    expected = run("pairs", "d", "-t", "0.7").out
    shutil.copytree(here / ".lshdup", small_disk / "store")
    store = str(small_disk / "store")
    assert run("pairs", "d", "-t", "0.7", "--store", store).out == expected
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert run("pairs", "-t", "0.7", "--store", store).out == expected
    assert len(run("query", "d/a", "-t", "0.7", "--store", store).rows) == 2
    for command in ("index d", "pairs d"):
        result = run(command, "--store", store, code=2)
        assert refused(result, store), result
        assert "Read-only file system" in result.err
