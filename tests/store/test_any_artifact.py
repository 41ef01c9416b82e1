"""Any artifact may be damaged, and any run that writes one be killed or have no room, at any step:
old artifacts stay whole, no answer changes, and the next run needs no help.
"""

import io
import json
import random
import shutil
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from tests.conftest import WHOLE, part
from tests.running import clean_environment, run_program

#: A command that makes each artifact.
MADE_BY = {
    "shingles": "shingle d",
    "signatures": "signatures d",
    "bands": "index d",
    "pairs": "pairs d -t 0.5",
    "clusters": "clusters d -t 0.5",
    "samples": "pairs d --measure containment -t 0.5 --memory 16MB",
    "passages": "passages d --least 5",
}

#: Commands that use artifacts, without DOCS where one can.
READING = (
    *("pairs -t 0.5", "clusters -t 0.5", "query d/00.txt -t 0.5"),
    *("show d/00.txt -t 0.5", "folders -t 0.5", "report -o -", "passages --least 5"),
    *("pairs --measure containment -t 0.5 --memory 16MB", "pairs -t 0.7 --exact", "index"),
    *("signatures", "accuracy --runs 1 --perms 8", "shingle --show d/00.txt"),
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder with documents, some of them alike, and a store with all artifacts."""
    here, chance = tmp_path_factory.mktemp("artifacts"), random.Random(1)
    (here / "d").mkdir()
    for group in range(7):
        words = [f"word{chance.randrange(10**6)}" for _ in range(40)]
        for number in range(3):
            text = " ".join(["other", *words[number * 4 :]])
            (here / f"d/{group}{number}.txt").write_text(text)
    for line in MADE_BY.values():
        printed(line, here)
    assert {path.stem for path in here.glob(".lshdup/*.npz")} == set(MADE_BY)
    return here


@pytest.fixture
def here(stored, tmp_path):
    """A copy of that folder; times are kept, by which documents are known."""
    return shutil.copytree(stored, tmp_path / "here", copy_function=shutil.copy2)


def printed(line, here, code=0):
    done = run_program([*line.split(), "-q"], cwd=here)
    assert done.returncode == code, done
    assert b"Traceback" not in done.stderr
    return done.stdout


def artifacts(store):
    return {path.name: path.read_bytes() for path in store.glob("*.npz")}


def sampled(data):
    """The fingerprints of the sets whose samples an artifact has."""
    with np.load(io.BytesIO(data)) as members:
        return set(members["fingerprints"].tolist())


def remains(store):
    usual = {".gitignore", ".lock", "CACHEDIR.TAG", "manifest.json"}
    return {path.name for path in store.iterdir() if path.suffix != ".npz"} - usual


# --- damage ---------------------------------------------------------------------------------------


def damages(data):
    """What may become of a file: less, nothing, zeros, a changed bit here and there."""
    chance, size = random.Random(len(data)), len(data)
    yield from (b"", data[: size // 2], data[:-1], bytes(size), data + data)
    for at in chance.sample(range(size), 30 if WHOLE else 3):
        yield data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


@pytest.mark.parametrize("kind", part(MADE_BY, 4))
def test_a_damaged_artifact_changes_no_answer(here, kind):
    """A command that continues answers as before, or names the artifact; one with DOCS mends it."""
    path = here / f".lshdup/{kind}.npz"
    whole, saved = path.read_bytes(), here / "saved"
    shutil.copytree(here / ".lshdup", saved, copy_function=shutil.copy2)
    expected = {line: printed(line, here) for line in READING}
    mended = {line: printed(line, here) for line in ("pairs d -t 0.5", MADE_BY[kind])}
    refused = 0
    for number, data in enumerate(damages(whole)):
        for line in READING if WHOLE else READING[number % 3 :: 3]:
            shutil.rmtree(here / ".lshdup")
            shutil.copytree(saved, here / ".lshdup", copy_function=shutil.copy2)
            path.write_bytes(data)
            done = run_program(line.split(), cwd=here)
            assert b"Traceback" not in done.stderr, (line, done)
            if done.returncode == 2:
                refused += 1
                assert f"{kind}.npz".encode() in done.stderr, (line, done)
                assert done.stdout == b""
            else:
                assert done.returncode == 0, (line, done)
                assert done.stdout == expected[line], line
        for mending in ("pairs d -t 0.5", MADE_BY[kind]):
            path.write_bytes(data)
            assert printed(mending, here) == mended[mending], data
        assert printed(line, here) == expected[line]
    if kind in ("signatures", "bands"):  # Others are ignored, and made again.
        assert refused > 5


# --- killed, and without room ---------------------------------------------------------------------

#: Runs the program again and again, each time in a child that is killed at a step, or may write
#: files of so many bytes. A step is what changes a file system.
DISTURBING = """
import errno, json, os, resource, signal, sys
import lshdup.sources.reading, lshdup.store.memo, lshdup.base.memory
from lshdup.cli.main import program

lshdup.sources.reading.BATCH_DOCUMENTS, lshdup.store.memo.PATIENCE = 5, 0.0
lshdup.base.memory.MOST_IN_MEMORY = 0

def killed_at(left):
    def counting(own):
        def call(*arguments, **options):
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return own(*arguments, **options)
        return call
    for name in ("fsync", "replace", "mkdir", "unlink", "utime"):
        setattr(os, name, counting(getattr(os, name)))

for line in sys.stdin:
    how, number, arguments = json.loads(line)
    said, errors = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors, 2)
        if how == "killed":
            killed_at(number)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
        sys.argv = ["lshdup", *arguments]
        program()
    os.close(errors)
    with open(said) as file:
        text = file.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]), flush=True)
"""


class Disturbed:
    """The runs of DISTURBING, in a folder."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-c", DISTURBING],
            cwd=folder,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate(timeout=60)

    def run(self, how, number, line):
        """Exit code, and what was said."""
        self._process.stdin.write(json.dumps([how, number, line.split()]).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@pytest.mark.parametrize(("kind", "how"), part(product(MADE_BY, ["killed", "no room"]), 7))
def test_a_disturbed_run_leaves_whole_artifacts_and_the_next_needs_no_help(here, kind, how):
    """Over a store of all artifacts, of documents that have changed since, or over none."""
    store, line = here / ".lshdup", MADE_BY[kind]
    for path in sorted(here.glob("d/*1.txt")):
        path.write_text(path.read_text() + " and so on")
    expected = (
        printed(f"{line} --no-store", here)
        if kind not in ("shingles", "signatures", "bands")
        else b""
    )
    before = {False: {}, True: artifacts(store)}
    shutil.copytree(store, here / "saved", copy_function=shutil.copy2)
    printed(line, here)
    after = {True: artifacts(store)}
    shutil.rmtree(store)
    printed(line, here)
    after[False] = artifacts(store)
    sizes = [0, 1, *range(100, max(map(len, after[True].values())), 300 if WHOLE else 4000)]
    with Disturbed(here) as disturbed:
        for is_over in (True, False):
            for number in sizes if how == "no room" else part(range(1, 200), 7):
                shutil.rmtree(store, ignore_errors=True)
                if is_over:
                    shutil.copytree(here / "saved", store, copy_function=shutil.copy2)
                code, said = disturbed.run(how, number, line)
                now = artifacts(store) if store.exists() else {}
                for name, data in now.items():
                    whole = before[is_over].get(name), after[is_over].get(name)
                    # Samples of the sets that were read so far are kept beside the older ones.
                    if name != "samples.npz" or data in whole:
                        assert data in whole, name
                    else:
                        old, new = ((sampled(each) if each else set()) for each in whole)
                        assert old <= sampled(data) <= old | new
                # Sets that are not of the current run are in the memo.
                assert set(now) >= set(before[is_over]) & set(after[is_over])
                if how == "no room":
                    assert code == 0 or (
                        code == 2 and "File too large" in said and len(said.splitlines()) <= 3
                    ), said
                    assert remains(store) <= {"memo"} if store.exists() else True
                elif not code:
                    break  # there are no more steps
                else:
                    assert code == -9
                assert printed(line, here) == expected
                assert artifacts(store) == after[is_over]
                assert remains(store) <= {"memo"}
