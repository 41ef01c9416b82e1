"""More Parquet files than stay open: as one file, and no row is decoded more than twice."""

import gc
import os
import pickle
import random
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lshdup.base.memory import Arrays
from lshdup.base.params import DocumentParams, PairParams
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.collection.set_source import set_source
from lshdup.errors import ArtifactError
from lshdup.sources import parquet, readers
from lshdup.sources.records import RecordError
from lshdup.sources.text_batches import batches, read_batch
from lshdup.workspace.comparing import load_or_find_pairs
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.loading import load_signatures
from lshdup.workspace.request import Request
from tests.conftest import open_workspace
from tests.documents import find, read
from tests.sources.test_records import answer, pa, texts_of, write, wrong_rows

FILES, N = 9, 360

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def small(monkeypatch):
    """Nothing is kept in memory, and texts are decoded and verified a few at a time."""
    monkeypatch.setattr("lshdup.workspace.loading.SET_BYTES", 0)
    monkeypatch.setattr("lshdup.compare.verification.BLOCK_BYTES", 1 << 13)
    monkeypatch.setattr("lshdup.sources.text_batches.BATCH_DOCUMENTS", 16)
    monkeypatch.setattr(parquet, "_SLAB_ROWS", 7)


@pytest.fixture
def decoded(monkeypatch):
    """How many values of each column were decoded, and how often files were opened."""
    counts, lock = Counter(), threading.Lock()

    def count(function, name, number):
        wrapped = getattr(parquet, function)

        def wrapper(*args, **named):
            made = wrapped(*args, **named)
            with lock:
                counts[name(args, named)] += number(made)
            return made

        monkeypatch.setattr(parquet, function, wrapper)

    count("texts_of", lambda args, _: args[1][0][0], lambda made: len(made[2]))
    count("_find_column", lambda args, _: f"opened {args[2] == '--text-field'}", lambda _: 1)
    return counts


def fill(here, texts=None):
    """The same rows in a folder of files, whose neighbours are alike; in one file; and each in a
    file of its own.
    """
    texts = texts_of(N) if texts is None else texts
    ids = [f"{number:03}" for number in range(len(texts))]
    (here / "many").mkdir()
    for file in range(FILES):
        write(here / "many" / f"{file}.parquet", texts[file::FILES], id=ids[file::FILES])
    write(here / "one.parquet", texts, id=ids)
    (here / "plain").mkdir()
    for name, text in zip(ids, texts, strict=True):
        (here / "plain" / name).write_bytes(text.encode())
    return texts


FIELDS = {"id_field": "id", "text_field": "text"}


def expected(here):
    """The pairs of the plain files, by names of rows; one looks like a PDF, but not as a row."""
    (here / "plain" / f"{N // 3 + 1:03}").write_bytes(b"a text with in it")
    return [(a[6:], b[6:], similarity) for a, b, similarity in answer("plain", store=None)[0]]


@pytest.mark.parametrize("store", ["s", None])
def test_a_folder_is_what_one_file_would_be(here, small, decoded, store):
    fill(here)
    pairs = expected(here)
    assert len(pairs) > N // 4
    assert answer("one.parquet", store=None, **FIELDS)[0] == pairs
    decoded.clear()
    assert readers._OPEN_FILES < FILES
    found, skipped, read, _ = answer("many", store=store, jobs=1, **FIELDS)
    assert (found, skipped, read) == (pairs, {}, N)
    # The sets do not fit: the rows that share a bucket are decoded once more. (By one thread; of
    # several, one that the machine holds up decodes again what the others have left behind.)
    assert decoded["id"] == N < decoded["text"] <= 2 * N
    assert decoded["opened True"] <= 3 * FILES  # for ids, for texts, for texts again
    if store:
        assert not (here / store / "shingles.npz").exists()
        decoded.clear()
        assert answer("many", store=store, jobs=1, **FIELDS)[:3] == (pairs, {}, 0)
        assert decoded["text"] == 0
        (here / store / "pairs.npz").unlink()
        assert answer("many", store=store, jobs=1, **FIELDS)[:3] == (pairs, {}, 0)
        assert 0 < decoded["text"] <= 2 * N
        decoded.clear()
        lower = {"threshold": 0.3}  # The pairs that are known do not answer this.
        more = answer("many", store=store, jobs=1, given=lower, **FIELDS)[0]
        assert 0 < decoded["text"] <= 2 * N
        assert more == answer("many", store=None, given=lower, **FIELDS)[0]


def test_any_rows_by_any_thread(here, small):
    texts = fill(here)
    documents, _ = find("many", **FIELDS)
    in_order = [texts[int(name)] for name in documents.names]
    assert wrong_rows(documents, in_order, threads=6, times=8, most=90) == []


def test_sets_that_were_not_expected_or_have_no_room(here, small, monkeypatch):
    fill(here)
    request = Request((b"many",), DocumentParams(**FIELDS), {})
    collection = load_signatures(open_workspace(None), request)
    every = set_source(Run.quiet(2), collection)(np.arange(N))
    empty, no_room = Arrays.empty, ("no room", "")

    def little_room(arrays, shape, dtype, *make):
        if dtype is np.uint64 and shape > 3:  # the elements of three sets
            raise ArtifactError(*no_room)
        return empty(arrays, shape, dtype, *make)

    for make in (empty, little_room):
        monkeypatch.setattr(Arrays, "empty", make)
        source = set_source(Run.quiet(2), collection)
        source.expect(np.array([3, 7, 20]))
        for wanted in ([3, 20], [7], [4, 7], [0], [N - 1], [], [3, 7, 20]):
            sets = source(np.array(wanted, np.int64))
            assert [each.tolist() for each in sets] == [every[at].tolist() for at in wanted]


def test_a_file_changes_between_two_runs(here, small):
    # No copies, of which only the first is read again.
    fill(here, [f"{text} {number}" for number, text in enumerate(texts_of(N))])
    ids = [f"{number:03}" for number in range(N)]
    every = answer("one.parquet", store=None, **FIELDS)[0]
    given, skipped = {"threshold": 0.5, "markup": "visible"}, []
    request = Request((b"many",), DocumentParams(**FIELDS), given)
    load_or_build_index(open_workspace("s"), request)
    workspace = open_workspace("s", lambda _: None, skipped.append)
    indexed = load_or_build_index(workspace, replace(request, documents=()), save=False)
    others = texts_of(N, seed=5)
    write(here / "many" / "4.parquet", [*others[4::FILES], "more"], id=[*ids[4::FILES], "x"])
    write(here / "many" / "5.parquet", others[5 : N // 2 : FILES], id=ids[5 : N // 2 : FILES])
    (here / "many" / "7.parquet").unlink()
    found = load_or_find_pairs(workspace, indexed, PairParams()).pairs
    name = indexed.collection.documents.names.__getitem__
    sides = found.left.tolist(), found.right.tolist()
    pairs = {(name(a), name(b)) for a, b in zip(*sides, strict=True)}
    lost = {os.fsencode(each) for file in (4, 5, 7) for each in ids[file::FILES]}
    assert pairs == {(a, b) for a, b, _ in every if not {a, b} & lost}
    assert len(pairs) > N // 12
    said = {each.name: each.reason for each in skipped}
    assert {each for pair in every for each in pair[:2]} & lost <= said.keys() <= lost
    reasons = {4: Reason.CHANGED, 5: Reason.CHANGED, 7: Reason.VANISHED}
    assert {int(each) % FILES: reason for each, reason in said.items()} == reasons


def test_another_file_of_the_same_name_is_read_anew(here, small, decoded):
    texts = fill(here)
    documents, _ = find("many", **FIELDS)

    def by_id():
        made = {int(documents.names[at]): text for at, text in read(documents)[0].items()}
        return [made[number].decode() for number in range(N)]

    for _ in range(3):
        assert by_id() == texts
    now = [f"another {at}" if at % FILES == 3 else text for at, text in enumerate(texts)]
    ids = [f"{number:03}" for number in range(3, N, FILES)]
    write(here / "many" / "3.parquet", now[3::FILES], id=ids)
    decoded.clear()
    for _ in range(3):
        assert by_id() == now
    assert decoded["text"] <= 3 * N


@pytest.mark.parametrize("batch", [20, 512])
def test_a_damaged_row_group_costs_only_its_rows(here, small, monkeypatch, batch):
    """What was good before is good for verification, too, whatever is read together."""
    monkeypatch.setattr("lshdup.sources.text_batches.BATCH_DOCUMENTS", batch)
    rng = random.Random(1)
    texts = [" ".join(str(rng.randrange(10**6)) for _ in range(40)) for _ in range(111)]
    for number in range(1, 111, 2):
        texts[number] = texts[number - 1] + " more"
    write(here / "a.parquet", texts)
    before = answer("a.parquet", store=None)[0]
    metadata = parquet.import_pyarrow()[1].ParquetFile("a.parquet").metadata
    chunk = metadata.row_group(1).column(0)
    data = bytearray((here / "a.parquet").read_bytes())
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    data[at : at + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    (here / "a.parquet").write_bytes(data)
    pairs, skipped, _, _ = answer("a.parquet", store=None)
    lost = {f"a.parquet:{number}".encode() for number in range(38, 75)}
    assert pairs == [pair for pair in before if not {*pair[:2]} & lost]
    assert len(pairs) > 30
    assert skipped == dict.fromkeys(lost, Reason.DAMAGED)


@pytest.mark.parametrize("said", [80, 120])
def test_a_row_group_with_other_rows_than_it_says(here, said):
    """What follows is never taken for its rows."""
    write(here / "a.parquet", [str(number) for number in range(300)])
    true = parquet.import_pyarrow()[1].ParquetFile("a.parquet")
    groups = [true.metadata.row_group(at) for at in range(true.metadata.num_row_groups)]
    sizes = [group.num_rows for group in groups]
    sizes[1] = said * sizes[1] // 100
    claimed = [SimpleNamespace(num_rows=size) for size in sizes]
    metadata = SimpleNamespace(num_row_groups=len(sizes), row_group=claimed.__getitem__)
    file = SimpleNamespace(metadata=metadata, iter_batches=true.iter_batches)

    def decoded_sizes(*groups):
        for ((_, offsets, _),) in parquet._decode(file, [[["text"]]], 10, *groups):
            yield len(offsets) - 1

    read = []
    with pytest.raises(RecordError, match="has not as many rows as it says"):
        read.extend(decoded_sizes())
    assert sizes[0] <= sum(read) <= sum(sizes[:2])
    assert sum(decoded_sizes(range(2, len(sizes)))) == sum(sizes[2:])


def test_of_a_decoded_row_group_the_last_bytes_are_kept(monkeypatch):
    monkeypatch.setattr(parquet, "_KEPT_BYTES", 150)
    slab = np.zeros(60, np.uint8), np.zeros(6, np.int64), np.zeros(5, bool)
    group = parquet._RowGroup(lambda: iter([[slab]] * 9))
    for row in range(45):
        assert group.find_slab(row)[0] == row // 5 * 5
        assert group.held == min(row // 5 + 1, 2) * 60


def test_memory_and_descriptors_are_given_back(here, decoded):
    """At once, without garbage collection; of any number of files, those of a few are held."""
    (here / "d").mkdir()
    for file in range(20):
        texts = [f"{file} {row} " + "x" * 10_000 for row in range(30)]
        write(here / "d" / f"{file:02}.parquet", texts)
    folder = "/proc/self/fd"
    descriptors = (lambda: len(os.listdir(folder))) if Path(folder).is_dir() else (lambda: 0)
    gc.collect()
    first, held = descriptors(), pa.total_allocated_bytes()
    documents, _ = find("d", text_field="text")
    gc.disable()
    try:
        for _ in range(3):
            for indices in batches(Run.quiet(), documents, np.arange(600)):
                assert len(read_batch(documents, indices).indices) == len(indices)
                assert descriptors() - first <= readers._OPEN_FILES + 1
                assert pa.total_allocated_bytes() - held < 20 * 300_000 / 2
        assert decoded["text"] == 3 * 600
        again = pickle.loads(pickle.dumps(documents))
        assert len(read_batch(again, np.arange(5)).indices) == 5
        del documents, again
        assert descriptors() == first
        assert pa.total_allocated_bytes() - held < 100_000
    finally:
        gc.enable()
