"""Damaged artifacts and disturbed runs change no answer, and the next run needs no help."""

import random
import shutil
from itertools import product

import numpy as np
import pytest

from tests.conftest import WHOLE, part
from tests.running import run_program
from tests.store.disturbed import Disturbed, artifacts, remains

#: A command that makes each artifact.
MADE_BY = {
    "shingles": "shingle d", "signatures": "signatures d", "bands": "index d",
    "pairs": "pairs d -t 0.5", "clusters": "clusters d -t 0.5", "passages": "passages d --least 5",
}  # fmt: skip

#: Commands that use artifacts, without DOCS where one can.
READING = (
    *("pairs -t 0.5", "clusters -t 0.5", "query d/00.txt -t 0.5"),
    *("show d/00.txt -t 0.5", "folders -t 0.5", "report -o -", "passages --least 5"),
    *("pairs --measure containment -t 0.5 --memory 16MB", "pairs -t 0.7 --exact", "index"),
    *("signatures", "accuracy --runs 1 --perms 8", "shingle --show d/00.txt"),
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Documents, some of them alike, a store with all artifacts, and what commands print of it."""
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
    there = tmp_path_factory.mktemp("read")
    shutil.copytree(here, there, copy_function=shutil.copy2, dirs_exist_ok=True)
    return here, {line: printed(line, there) for line in (*READING, *MADE_BY.values())}


@pytest.fixture
def here(stored, tmp_path):
    """A copy of that folder; times are kept, by which documents are known."""
    return shutil.copytree(stored[0], tmp_path / "here", copy_function=shutil.copy2)


def printed(line, here, code=0):
    done = run_program([*line.split(), "-q"], cwd=here)
    assert done.returncode == code, done
    assert b"Traceback" not in done.stderr
    return done.stdout


# --- damage ---------------------------------------------------------------------------------------


def damages(data):
    """What may become of a file: less, nothing, zeros, a changed bit here and there."""
    chance, size = random.Random(len(data)), len(data)
    yield from (b"", data[: size // 2], data[:-1], bytes(size), data + data)
    for at in chance.sample(range(size), 30 if WHOLE else 3):
        yield data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


@pytest.mark.parametrize("kind", part(MADE_BY, 4))
def test_a_damaged_artifact_changes_no_answer(here, stored, kind):
    """A command that continues answers as before, or names the artifact; one with DOCS mends it."""
    path, saved, refused = here / f".lshdup/{kind}.npz", here / "saved", 0
    whole = path.read_bytes()
    shutil.copytree(here / ".lshdup", saved, copy_function=shutil.copy2)
    expected = stored[1] | {"report -o -": printed("report -o -", here)}  # It names its folder.
    for number, data in enumerate(part(damages(whole), 2)):
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
            assert printed(mending, here) == expected[mending], data
        assert printed(line, here) == expected[line]
    if kind in ("signatures", "bands"):  # Others are ignored, and made again.
        assert refused > 5


# --- killed, and without room ---------------------------------------------------------------------

HOWS = ("killed", "interrupted", "no room")

#: What a run says that was interrupted.
INTERRUPTED = {
    f"lshdup: interrupted; {kept}\n"
    for kept in (
        *("nothing of this run was kept", "what was finished is kept, whole"),
        "what was read is kept, and the same command goes on from there",
    )
}


@pytest.mark.parametrize(("kind", "how"), part(product(MADE_BY, HOWS), 7))
def test_a_disturbed_run_leaves_whole_artifacts_and_the_next_needs_no_help(here, kind, how):
    """Over a store of all artifacts, of documents that have changed since, or over none."""
    store, line = here / ".lshdup", MADE_BY[kind]
    for path in sorted(here.glob("d/*1.txt")):
        path.write_text(path.read_text() + " and so on")
    prints = kind not in ("shingles", "signatures", "bands")
    expected = printed(f"{line} --no-store", here) if prints else b""
    before = {False: {}, True: artifacts(store)}
    shutil.copytree(store, here / "saved", copy_function=shutil.copy2)
    printed(line, here)
    after = {True: artifacts(store)}
    shutil.rmtree(store)
    printed(line, here)
    after[False] = artifacts(store)
    numbers = [*part(range(1, 200), 10)]
    if how == "no room":
        numbers = [0, 1, *range(100, max(map(len, after[True].values())), 300 if WHOLE else 4000)]
    elif WHOLE:  # and at instants that are no step
        numbers[:0] = np.random.default_rng(1).uniform(0, 0.15, 40).tolist()
    ended = set()  # where there are no more steps
    with Disturbed(here) as disturbed:
        for is_over, number in product((True, False), numbers):
            if is_over in ended:
                continue
            shutil.rmtree(store, ignore_errors=True)
            if is_over:
                shutil.copytree(here / "saved", store, copy_function=shutil.copy2)
            code, said = disturbed.run(how, number, f"{line} -q")
            now = artifacts(store) if store.exists() else {}
            for name, data in now.items():
                assert data in (before[is_over].get(name), after[is_over].get(name)), name
            # Sets that are not of the current run are in the memo.
            assert set(now) >= set(before[is_over]) & set(after[is_over])
            if how != "no room" and not code and isinstance(number, int):
                ended.add(is_over)
            assert code in {"killed": (0, -9), "interrupted": (0, 130), "no room": (0, 2)}[how]
            assert code or how == "no room" or number != 1  # every run has a first step
            if code == 2:
                assert "File too large" in said
                assert len(said.splitlines()) <= 3
            elif code == 130:  # One that comes before the program can say anything ends it too.
                assert said in INTERRUPTED or (not said and isinstance(number, float))
            if how != "killed" and store.exists():
                assert remains(store) <= {"memo"}
            assert printed(line, here) == expected
            assert artifacts(store) == after[is_over]
            assert remains(store) <= {"memo"}
