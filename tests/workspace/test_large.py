"""Hundreds of thousands of rows: killed again and again, and with a fraction of the memory.

`LSHDUP_TEST_ROWS` sets how many rows there are. Which commands are tried is drawn by the commit.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'lshdup[parquet]'")

from benchmarks import rows
from tests.conftest import drawn

pytestmark = pytest.mark.long

N = int(os.environ.get("LSHDUP_TEST_ROWS", "300000"))
KILLS = 50

#: Bytes of private memory with which a bounded run must do: a third of what others need. At this
#: number of rows the program and its libraries take most of it.
LIMIT = 500 << 20

#: Bytes that ten times as many rows may take more: `passages` holds its answer, and allocators keep
#: some of what was freed.
GROWTH = 192 << 20

#: Everything is added to the memo from the first second on, so that little is done between kills.
SCRIPT = """
import sys
import lshdup.store.memo
lshdup.store.memo.PATIENCE = 0.5
from lshdup.cli.main import program
program()
"""

#: Commands that print no listing.
STEPS = "index", "signatures"

ARTIFACTS = ("signatures.npz", "bands.npz", "pairs.npz", "clusters.npz")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where rows are, each number of them once."""
    return tmp_path_factory.mktemp("rows")


@pytest.fixture(scope="module")
def folder(home):
    return rows.corpus(home, "short", N, 1)


def start(command, folder, store, out, **options):
    """Start a command over all rows."""
    arguments = [*command.split(), folder, "--text-field", "text", "--id-field", "id"]
    arguments += ["--store", store, "-v"]
    arguments += ["-o", out] if command not in STEPS else []
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)], stderr=subprocess.PIPE, **options
    )


def finish(process):
    """Return what a command that succeeds says."""
    _, err = process.communicate()
    assert process.returncode == 0, err
    return err.decode()


def artifacts(store):
    return {name: (store / name).read_bytes() for name in ARTIFACTS if (store / name).exists()}


def peak_of(process):
    """Return the most bytes of anonymous memory that a process had, when it has ended."""
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        if found := re.search(r"RssAnon:\s+(\d+) kB", status):
            peak = max(peak, int(found[1]) << 10)
        time.sleep(0.02)
    process.communicate()
    return peak


@pytest.mark.parametrize("command", drawn(["pairs", "clusters"], 1))
def test_killed_at_random_instants(folder, tmp_path, command):
    """Killed runs end with the bytes of an undisturbed one, and read nothing that the memo has."""
    finish(start(command, folder, tmp_path / "warm", tmp_path / "out"))
    begun = time.monotonic()
    finish(start(command, folder, tmp_path / "whole", tmp_path / "whole.tsv"))
    lasts = time.monotonic() - begun
    expected = artifacts(tmp_path / "whole")
    rng = np.random.default_rng(7)
    kills = round_ = resumed = 0
    while kills < KILLS // 2:
        store, out = tmp_path / f"store{round_}", tmp_path / f"{round_}.tsv"
        round_ += 1
        for share in (*rng.uniform(0, 1, 4), 9.0):
            finished = sum(1 for _ in store.glob("memo/*.npz")) - 1
            is_signed = (store / "signatures.npz").exists()  # A kill may leave the segments then.
            process = start(command, folder, store, out)
            try:
                _, err = process.communicate(timeout=lasts * share)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                _, err = process.communicate()
                kills += 1
            else:
                assert process.returncode == 0, err
            # A kill may come before the line, but not before the first document is read anew.
            if finished > 0 and (b"documents ->" in err or process.returncode == 0):
                said = b"of an interrupted run are not read again"
                assert (b"; 0 documents read" if is_signed else said) in err
                resumed += not is_signed
            if process.returncode == 0:
                break
        assert out.read_bytes() == (tmp_path / "whole.tsv").read_bytes()
        assert artifacts(store) == expected
        shutil.rmtree(store)
    assert resumed


@pytest.mark.parametrize("command", drawn(["pairs", "clusters"], 1))
def test_little_memory(folder, tmp_path, command):
    """A run that plans for little memory takes less, also under a limit, and gives the same."""
    natural = peak_of(start(command, folder, tmp_path / "whole", tmp_path / "whole.tsv"))
    little = os.environ | {"LSHDUP_MEMORY": "16MB"}
    process = start(command, folder, tmp_path / "s", tmp_path / "tsv", env=little)
    # What the libraries take is a third at this number of rows.
    assert peak_of(process) < natural * 2 / 3
    finish(start(command, folder, tmp_path / "l", tmp_path / "l.tsv", env=little, preexec_fn=limit))
    for store, out in (("s", "tsv"), ("l", "l.tsv")):
        assert (tmp_path / out).read_bytes() == (tmp_path / "whole.tsv").read_bytes()
        assert artifacts(tmp_path / store) == artifacts(tmp_path / "whole")
    unbounded = start(command, folder, tmp_path / "u", tmp_path / "u.tsv", preexec_fn=limit)
    unbounded.communicate()
    assert N < 300_000 or unbounded.returncode == 2


@pytest.mark.parametrize(
    ("command", "on_top"), [("pairs", 200 << 20), ("pairs --measure containment", 400 << 20)]
)
def test_memory_bounds_what_is_anonymous(folder, tmp_path, command, on_top):
    """The program and its buffers come on top: 200 to 400 MB, as docs/explanation/scale.md says."""
    process = start(f"{command} --memory 200MB", folder, tmp_path / "s", tmp_path / "out.tsv")
    assert peak_of(process) <= (200 << 20) + on_top
    assert process.returncode == 0


def limit():
    """Limit the private memory of this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


#: Commands whose memory is bounded.
BOUNDED = """
index
signatures
pairs
pairs --exact
clusters
pairs --measure containment
passages
""".strip().splitlines()


@pytest.mark.parametrize("command", drawn(BOUNDED, 3))
def test_memory_does_not_grow_with_the_rows(home, tmp_path, command):
    """A run over ten times as many rows takes hardly more memory, if it plans for little."""
    little, peaks = os.environ | {"LSHDUP_MEMORY": "16MB"}, []
    for number in (100_000, max(1_000_000, N)):
        folder = rows.corpus(home, "short", number, 1)
        out = tmp_path / f"{number}.tsv"
        peaks.append(peak_of(start(command, folder, tmp_path / str(number), out, env=little)))
        assert command in STEPS or out.stat().st_size
    assert peaks[1] < peaks[0] + GROWTH


#: Where a control group of this test is made: groups of version 1, or of version 2.
GROUPS = {"memory/memory.limit_in_bytes": "memory", "memory.max": ""}


@pytest.fixture
def group():
    """A control group of this system; skipped where none can be made."""
    for limit, top in GROUPS.items():
        folder = Path("/sys/fs/cgroup", top, f"lshdup-{os.getpid()}")
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / Path(limit).name).exists():
                yield folder, folder / Path(limit).name
                return
        finally:
            folder.rmdir()
    pytest.skip("no control group of memory can be made here")


@pytest.mark.parametrize("command", drawn(["pairs", "clusters"], 1))
def test_a_quarter_of_the_memory(home, tmp_path, command, group):
    """In a control group of a quarter of the memory of a million rows: the same bytes."""
    folder = rows.corpus(home, "short", 1_000_000, 1)
    process = start(command, folder, tmp_path / "whole", tmp_path / "whole.tsv")
    _, process.returncode, used = os.wait4(process.pid, 0)  # Its few messages fit into the pipe.
    finish(process)
    within, limit = group
    limit.write_text(str(used.ru_maxrss * 1024 // 4))
    little = os.environ | {"LSHDUP_MEMORY": "16MB"}

    def enter():
        (within / "cgroup.procs").write_text(str(os.getpid()))

    finish(start(command, folder, tmp_path / "q", tmp_path / "q.tsv", env=little, preexec_fn=enter))
    assert (tmp_path / "q.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert artifacts(tmp_path / "q") == artifacts(tmp_path / "whole")
