"""What the store survives: other runs, kills, full disks, flipped bits; runs are resumed."""

import contextlib
import itertools
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest

import lshdup.base.memory
import lshdup.sources.text_batches
import lshdup.store.memo
import lshdup.store.npz
import lshdup.workspace.loading
from lshdup.base.params import ClusterParams, DocumentParams, PairParams
from lshdup.base.run import Run
from lshdup.collection.set_source import SetReader, side_of
from lshdup.errors import ArtifactError, InputError
from lshdup.store import npz, results_io
from lshdup.store.store import Store
from lshdup.workspace.comparing import load_comparison, load_or_find_pairs
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.loading import make_shingles
from lshdup.workspace.request import Request
from tests.conftest import RUN, WHOLE, failing, killed_behind_segments, many, open_workspace, part
from tests.running import clean_environment, run_program
from tests.store.disturbed import Disturbed, artifacts, at_most, remains

KINDS = ("signatures", "bands", "pairs")


@pytest.fixture(autouse=True)
def unsynced(here, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power cut will meet these artifacts


def make_documents(folder, n, words=60):
    """Files in threes that are 0.93 alike, and not like the others: any bands find all pairs."""
    chance = random.Random(n)
    folder.mkdir()
    for i in range(0, n, 3):
        text = [f"word{chance.randrange(1_000_000)}" for _ in range(words)]
        for j in range(3):
            made = ["other", *text[1:]] if j == 1 else [*text[:-1], "other"] if j == 2 else text
            (folder / f"{i + j:05}.txt").write_text(" ".join(made))


def steps(store, said=None, documents=(b"d",), **given):
    """`lshdup pairs d` in this process: every pair with its similarity."""
    workspace = open_workspace(store, (said if said is not None else []).append)
    request = Request(documents, DocumentParams(), given)
    indexed = load_or_build_index(workspace, request, save=False)
    found = load_or_find_pairs(workspace, indexed, PairParams()).pairs
    names = list(indexed.collection.documents.names)
    rows = zip(*(column.tolist() for column in found.part(0, len(found))), strict=True)
    return [(names[a], names[b], s) for a, b, s in rows]


# --- one writer at a time -------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_readers_are_not(run, here):
    make_documents(here / "d", 30)
    expected = run("pairs", "d").out
    (here / ".lshdup/pairs.npz").unlink()
    with Store(here / ".lshdup").writing():
        for command in (["pairs", "d"], ["index"], ["shingle", "d"], ["signatures"]):
            result = run(*command, code=2)
            assert f"another lshdup run (process {os.getpid()}) is writing to .lshdup" in result.err
            assert len(result.err.splitlines()) == 2
        assert run("query", "d/00000.txt").lines
        reader = run("pairs")
        assert reader.out == expected
        assert "pairs.npz is not kept: another lshdup run" in reader.err
        assert run("pairs", "d", "--no-store").out == expected
    assert not (here / ".lshdup/pairs.npz").exists()
    run("pairs", "d")
    assert (here / ".lshdup/pairs.npz").exists()


def test_two_runs_at_once_both_end_cleanly(run, here):
    make_documents(here / "d", 300)
    expected = run("pairs", "d", "--no-store").out
    for seed in ("0", "1"):
        command = ["pairs", "d", "--seed", seed]
        with ThreadPoolExecutor() as both:
            pair = both.map(lambda _: run_program(command, cwd=here), range(2))  # noqa: B023
        ends = {(done.returncode, done.stdout) for done in pair if not is_refused(done)}
        assert ends == {(0, expected)}
        for kind in KINDS:
            npz.load(Path(f".lshdup/{kind}.npz"), kind, "mend")
        assert run(*command).out == expected


def is_refused(done):
    return done.returncode == 2 and b"another lshdup run" in done.stderr


def test_a_second_writer_waits_if_it_is_told_to_and_a_killed_one_holds_nothing(run, here):
    for folder in ("d", "e"):
        make_documents(here / folder, 30)
    script = """
import time; from pathlib import Path; from lshdup.store.store import Store
with Store(Path('.lshdup')).writing():
    print(1, flush=True)
    time.sleep(60)"""
    command = [sys.executable, "-c", script]
    with (
        subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE) as process,
        ThreadPoolExecutor() as thread,
    ):
        process.stdout.readline()
        assert f"(process {process.pid})" in run("index", "d", "--wait", "0.2", code=2).err
        assert "LSHDUP_WAIT=SECONDS" in run("pairs", "d", code=2).err
        waits = {"LSHDUP_WAIT": "60"}
        waiting = [
            thread.submit(run, "pairs", "d", *others, "-q", env=waits)
            for others in ([], ["--against", "e"])
        ]
        assert not wait(waiting, timeout=0.5).done
        process.kill()
        assert all(each.result(timeout=50).rows for each in waiting)
    assert Store(here / ".lshdup").current() == "signatures"


def test_no_mix_of_old_and_new_artifacts_gives_another_answer(here):
    """Artifacts of the collection before and of the one after, in any mix, with any times."""
    make_documents(here / "d", 30)
    make_documents(here / "e", 60, words=50)
    answers = [steps("old", documents=(b"d",)), steps("new", documents=(b"e",))]
    folders = [here / "old", here / "new"]
    for mix in range(1 << len(KINDS)):
        for order in (KINDS, KINDS[::-1]):
            shutil.rmtree("mix", ignore_errors=True)
            shutil.copytree("old", "mix")
            for time_, kind in enumerate(order):
                path = shutil.copy(folders[mix >> KINDS.index(kind) & 1] / f"{kind}.npz", "mix")
                os.utime(path, (time_, time_))
            assert steps("mix", documents=()) in answers


# --- resumed --------------------------------------------------------------------------------------


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(lshdup.sources.text_batches, "BATCH_DOCUMENTS", 20)
    monkeypatch.setattr(lshdup.store.memo, "PATIENCE", 0.0)


def interrupted_after(monkeypatch, batches, **given):
    """A run that is interrupted when it has written so many batches to the memo."""
    add, left = lshdup.store.memo.Memo.add, [batches]

    def count(self, part):
        add(self, part)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lshdup.store.memo.Memo, "add", count)
        with pytest.raises(KeyboardInterrupt):
            steps(".lshdup", **given)


@pytest.mark.parametrize("room", [512 << 20, 0], ids=["sets kept", "sets not kept"])
def test_resumed(here, monkeypatch, small_batches, room):
    monkeypatch.setattr(lshdup.workspace.loading, "SET_BYTES", room)
    make_documents(here / "d", 150)
    (here / "d/00050.txt").write_bytes(b"\0 binary")
    (here / "d/00100.txt").write_text("")
    expected = steps("undisturbed")
    for batches in (1, 8):
        interrupted_after(monkeypatch, batches)
        said = []
        assert steps(".lshdup", said) == expected
        resumed = min(20 * batches, 150) - (batches > 2)  # less the binary one
        assert [line for line in said if "resumed" in line] == [
            f"resumed: {resumed} documents of an interrupted run are not read again"
        ]
        assert artifacts(".lshdup") == artifacts("undisturbed")
        assert not remains(".lshdup")
        shutil.rmtree(".lshdup")


def test_more_segments_than_a_process_may_open(here, monkeypatch, small_batches):
    """Each mapped part holds a file descriptor."""
    make_documents(here / "d", 300)
    interrupted_after(monkeypatch, 14)
    Path(".lshdup/memo/other.npz").write_bytes(b"of nobody")
    said = []
    with at_most(len(os.listdir("/proc/self/fd")) + 9, resource.RLIMIT_NOFILE):
        steps(".lshdup", said)
    assert "resumed: 280 documents of an interrupted run are not read again" in said


def test_a_damaged_segment_is_ignored(here, monkeypatch, small_batches):
    make_documents(here / "d", 120)
    expected = steps("undisturbed")
    interrupted_after(monkeypatch, 4)
    parts = sorted((here / ".lshdup/memo").iterdir())
    chance, ignored, times = random.Random(1), 0, many(30) // 2
    for _ in range(times):
        path = chance.choice(parts)
        data = path.read_bytes()
        shorter = data[: chance.randrange(len(data))]
        damaged = flip(data, chance) if chance.random() < 0.5 else shorter
        shutil.rmtree("damaged", ignore_errors=True)
        shutil.copytree(".lshdup", "damaged")
        (here / "damaged/memo" / path.name).write_bytes(damaged)
        said = []
        assert steps("damaged", said) == expected
        assert artifacts("damaged") == artifacts("undisturbed")
        ignored += not any("80 documents" in line for line in said)
    assert ignored > 0.8 * times
    said = []  # segments of other parameters are none
    assert steps(".lshdup", said, perms=64) == steps("new", perms=64)
    assert not any("resumed" in line for line in said)


def test_killed_runs_over_rows_are_resumed(run, here):
    """Of two files, the second of which the interrupted run had begun."""
    make_documents(here / "d", 300)
    texts = [path.read_text() for path in sorted(Path("d").iterdir())]
    for side in range(2):
        rows = (json.dumps({"text": text}) for text in texts[side::2])
        Path(f"{side}.jsonl").write_text("\n".join(rows))
    names = ("0.jsonl", "1.jsonl")
    killed_behind_segments("pairs", *names, batch=20, parts=10)
    result = run("pairs", *names)
    assert "resumed: 200 documents of an interrupted run are not read again" in result.err
    assert "100 documents read, 200 unchanged" in result.err
    assert result.out == run("pairs", *names, "--store", "undisturbed").out
    assert result.out.count(b"\n") > 125
    assert artifacts(".lshdup") == artifacts("undisturbed")


def test_short_runs_write_no_segment(here, monkeypatch):
    monkeypatch.setattr(lshdup.store.memo.Memo, "add", failing(AssertionError("a segment")))
    make_documents(here / "d", 30)
    steps(".lshdup")


# --- the disk is full -----------------------------------------------------------------------------


def shingled(store, said, **given):
    make_shingles(open_workspace(store, said.append), Request((b"d",), DocumentParams(), given))


@pytest.mark.usefixtures("small_batches", "small_disk")
def test_a_full_file_system_leaves_old_artifacts_whole(run, here, monkeypatch):
    """Over documents that all changed, on a disk that is really full, more or less."""
    monkeypatch.setattr(lshdup.base.memory, "MOST_IN_MEMORY", 0)
    make_documents(here / "d", 240)
    steps("disk/store")
    old = artifacts("disk/store")
    for path in Path("d").iterdir():
        path.write_text(path.read_text() + " and so on")
    shutil.copytree("disk/store", "saved")
    steps("disk/store")
    new, refused = artifacts("disk/store"), 0
    for pages in [0, *part([1, 2, 3, 4, *range(5, 100, 4), *range(100, 450, 50)], 3), 450]:
        shutil.rmtree("disk/store")
        shutil.copytree("saved", "disk/store")
        with open("disk/filler", "wb") as filler:
            status = os.statvfs("disk")
            filled = max(1, (status.f_bavail - pages) * status.f_bsize)
            os.posix_fallocate(filler.fileno(), 0, filled)
        try:
            steps("disk/store")
        except ArtifactError as error:
            refused += "No space left on device" in error.message
            if refused == 1:
                result = run("pairs", "d", "--store", "disk/store", "-q", code=2)
                assert "No space left on device" in result.err
                assert len(result.err.splitlines()) == 2
        now = artifacts("disk/store")
        assert set(now) == set(old) == set(new)
        assert all(now[name] in (old[name], new[name]) for name in now)
        assert remains("disk/store") <= {"memo"}  # documents that were finished
        os.remove("disk/filler")
    assert refused > 3
    assert now == new


#: What cannot be written, with files of how many bytes, and what is said.
FULL = [
    ("pairs d", 0, "name another with --store DIR"),
    ("pairs d", 10, "name another with --store DIR"),
    ("pairs d", 20_000, "--store DIR"),
    ("shingle d", 5000, "--store DIR"),
    ("pairs d --no-store --baseline k --update-baseline", 99, "k cannot be written: File too"),
    ("pairs d --no-store -o out.tsv", 99, "out.tsv"),
    ("report d --no-store -o page.html", 99, "page.html"),
    ("clusters rows.jsonl --no-store --write w.jsonl", 9, "w.jsonl"),
    ("clusters rows.jsonl --no-store --write w.jsonl --removed gone", 90, "gone"),
    ("curve --bands 5 --rows 4 --plot c.svg", 99, "c.svg"),
]


def test_a_full_disk_in_one_line(here):
    """With the name of what cannot be written, and what helps."""
    make_documents(here / "d", 150)
    Path("rows.jsonl").write_text('{"text": "one two three four"}\n' * 3)
    with Disturbed(here) as disturbed:
        for line, size, message in part(FULL, 2):
            code, said = disturbed.run("no room", size, f"{line} -q")
            assert code == 2, (line, said)
            assert "File too large" in said
            assert message in said
            assert said.count("\n") <= 2, said
            shutil.rmtree(".lshdup", ignore_errors=True)
            assert {path.name for path in here.iterdir()} == {"d", "rows.jsonl"}


@pytest.mark.parametrize("kind", ["pairs", "clusters"])
def test_candidates_are_verified_while_the_bands_are_saved(here, monkeypatch, kind):
    """Nothing is answered, and nothing that follows from the bands is saved, unless they are."""
    make_documents(here / "d", 300)
    verifying, save, fails = threading.Event(), results_io.save_index, []
    read = SetReader.__call__
    monkeypatch.setattr(SetReader, "__call__", lambda *each: verifying.set() or read(*each))

    def save_late(*each):
        assert verifying.wait(60)
        if fails:
            raise ArtifactError("no room", "make some")
        save(*each)

    monkeypatch.setattr(results_io, "save_index", save_late)

    def answer():
        request = Request((b"d",), DocumentParams(), {})
        workspace = open_workspace(".lshdup", print)
        with workspace.saving:
            method, clustering = PairParams(), kind == "clusters"
            opened = load_comparison(workspace, request, method, clustering=clustering)
            assert workspace.store.is_held
            found = opened.find_clusters(ClusterParams()) if clustering else opened.find_pairs()
            assert not workspace.store.is_held
            return found

    assert answer()
    expected = set(artifacts(".lshdup"))
    shutil.rmtree(".lshdup")
    fails.append(1)
    with pytest.raises(ArtifactError, match="no room"):
        answer()
    assert expected - set(artifacts(".lshdup")) == {"bands.npz", f"{kind}.npz"}
    fails.clear()
    assert answer()
    assert set(artifacts(".lshdup")) == expected


def test_no_room_for_a_segment(here, monkeypatch, small_batches):
    make_documents(here / "d", 300)
    expected = steps("undisturbed")
    written = max(map(len, artifacts("undisturbed").values()))
    much = {"much": np.zeros(written, np.uint64)}
    monkeypatch.setattr(lshdup.store.memo, "collection_arrays", lambda *_: much)
    said, added = [], []
    add = lshdup.store.memo.Memo.add
    monkeypatch.setattr(lshdup.store.memo.Memo, "add", lambda *each: added.append(add(*each)))
    with at_most(written, resource.RLIMIT_FSIZE):
        assert steps(".lshdup", said) == expected
    assert len(added) == 300 // 20  # No batch waits for a segment that cannot be written.
    assert [line for line in said if "cannot be resumed" in line] == said
    assert len(said) == 1
    assert artifacts(".lshdup") == artifacts("undisturbed")
    assert not remains(".lshdup")


# --- flipped bits ---------------------------------------------------------------------------------


def member(path, name):
    """Where the values of a member are in the file: start and end."""
    array = npz.load(path, path.stem, "mend").arrays[name]
    at = path.read_bytes().index(array.tobytes())
    return at, at + array.nbytes


def flip(data, chance, at=None):
    """The bytes with one bit flipped, of a byte that may be given."""
    at = chance.randrange(len(data)) if at is None else at
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


@pytest.mark.parametrize(
    "name",
    ["shingles values", "shingles offsets", "signatures signatures", "bands order", "bands firsts"],
)
def test_flipped_bits_never_change_an_answer(here, monkeypatch, name):
    """What decides an answer is checked where it is used, also of a file of any size."""
    kind, name = name.split()
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    make_documents(here / "d", 60)
    expected = steps(".lshdup")
    if kind == "shingles":
        shingled(".lshdup", [])
    path, pairs = here / f".lshdup/{kind}.npz", here / ".lshdup/pairs.npz"
    data, places = path.read_bytes(), range(*member(path, name))
    chance, times, refused = random.Random(2), many(100), 0
    for _ in range(times):
        pairs.unlink(missing_ok=True)
        path.write_bytes(flip(data, chance, chance.choice(places)))
        try:
            assert steps(".lshdup", documents=()) == expected
        except ArtifactError as error:
            refused += f"{kind}.npz is damaged" in error.message
    assert refused > times / 2
    pairs.unlink(missing_ok=True)
    if kind == "shingles":  # only `shingle` makes it anew
        shingled(".lshdup", [])
    assert steps(".lshdup") == expected  # named documents make it anew
    assert steps(".lshdup", documents=()) == expected


def one_band(here, kind, kept):
    """An artifact of a store in which a neighbour is met in one band or not at all; the answer."""
    make_documents(here / "d", 6, words=20)
    if kept:
        shingled(".lshdup", [])
    steps(".lshdup", perms=16, threshold=0.7, bands=1, rows=1)
    path, expected = here / f".lshdup/{kind}.npz", queried()
    assert len(expected[0]) == 2
    return path, path.read_bytes(), expected


#: A member of each artifact that a query needs.
NEEDED = {"shingles": "values", "signatures": "fingerprints", "bands": "order"}


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("shingles", True), *itertools.product(["signatures", "bands"], [True, False])],
)
def test_a_query_of_flipped_bits_is_right_or_refused(here, kind, kept):
    """Any bit of any artifact, and a bit of every byte that a query may need.

    kept : whether there are the sets of the documents, which are read again otherwise.
    """
    path, data, expected = one_band(here, kind, kept)
    chance, refused, step = random.Random(3), 0, 5 if WHOLE else 50
    places = [*range(*member(path, NEEDED[kind]), step)]
    places += chance.sample(range(len(data)), many(500))
    for at in places:
        path.write_bytes(flip(data, chance, at))
        try:
            assert queried() == expected
        except (ArtifactError, InputError):
            refused += 1
    # Without good sets the documents are read again.
    assert kind == "shingles" or refused > (20 if WHOLE else 2)


@pytest.mark.parametrize(
    "name", ["shingles values", "signatures signatures", "signatures names_offsets", "bands order"]
)
def test_a_flipped_bit_that_a_query_only_maps_costs_it_a_neighbour_at_most(here, monkeypatch, name):
    """As if the arrays were too large to be verified: no similarity that is printed is wrong."""
    kind, name = name.split()
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    path, data, expected = one_band(here, kind, kind == "shingles")
    right, chance, compared = set(zip(*expected, strict=True)), random.Random(3), 0
    names = name == "names_offsets"  # The name that is asked for may be another, and be missing.
    refusal = (ArtifactError, InputError) if names else ArtifactError
    first, last = member(path, name)
    for at in range(first, last, 1 if last - first < 100 else 5 if WHOLE else 20):
        path.write_bytes(flip(data, chance, at))
        with contextlib.suppress(refusal):
            found, wanted = set(zip(*queried(), strict=True)), right
            if names:  # The names may be others, of documents that are there.
                found, wanted = ({each[1] for each in pairs} for pairs in (found, right))
            assert found == wanted if kind == "shingles" else found <= wanted
            compared += 1
    assert compared


def test_a_member_that_no_query_needs_may_be_damaged(here, monkeypatch):
    """A query reads few bytes of large arrays: that is why it is quick."""
    make_documents(here / "d", 1200, words=3)
    steps(".lshdup", perms=16)
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    path = here / ".lshdup/signatures.npz"
    data = bytearray(path.read_bytes())
    expected = queried()
    for name in ("signatures", "file_mtimes", "fingerprints"):
        data[member(path, name)[1] - 1] ^= 1  # of the last document
    path.write_bytes(data)
    assert queried() == expected
    with pytest.raises(ArtifactError, match=r"signatures\.npz is damaged"):
        steps(".lshdup", documents=())


def test_a_lower_threshold_is_queried_in_arrays_that_are_only_mapped(here, monkeypatch):
    """Arrays of more than 4 MB are: half a million documents."""
    make_documents(here / "d", 300)
    steps(".lshdup")
    expected = queried(threshold=0.3)
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    assert queried(threshold=0.3) == expected


def test_a_document_that_is_not_in_its_own_bucket_is_noticed(here, monkeypatch):
    """Its other bands would find its neighbours, but nobody knows what else is wrong."""
    make_documents(here / "d", 30)
    steps(".lshdup")
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    path = here / ".lshdup/bands.npz"
    data = path.read_bytes()
    order = npz.load(path, "bands", "mend").arrays["order"]
    start, _ = member(path, "order")
    places = np.flatnonzero(order == 0).tolist()  # the first document, band by band
    for place in part(places, 4):
        path.write_bytes(flip(data, random.Random(place), start + 4 * place))
        with pytest.raises(ArtifactError, match=r"bands\.npz is damaged"):
            queried()


def queried(name=b"d/00000.txt", **given):
    """What `lshdup query` prints of a document of the store."""
    from lshdup.workspace.index import find_near, read_query
    from lshdup.workspace.lookup import look_up

    workspace = open_workspace(".lshdup")
    request = Request((), DocumentParams(), given)
    indexed = load_or_build_index(workspace, request, save=False, verify=False)
    collection = indexed.collection
    asked = look_up(name, collection)
    if asked.index < 0:
        message = "a file that is not in the store"
        raise InputError(message)
    missing = []
    side = side_of(Run.quiet().but(skipped=missing.append), collection)
    near = find_near(RUN, side, read_query(collection, asked), 0.5, indexed)
    assert not missing
    assert not len(collection.documents.changed(near.documents))
    return collection.documents.typed_names(near.documents), near.similarity.tolist()
