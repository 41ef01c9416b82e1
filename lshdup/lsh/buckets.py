"""Band table -> its buckets of two or more documents, and the documents that they connect.

Most documents share no bucket. What comes after the table needs the others only, so the keys of the
table are looked at once, one band after the other.
"""

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of, slices_of
from lshdup.base.ragged import StringTable, offsets_of
from lshdup.base.run import Run, run_in_parts
from lshdup.kernels import bands as kernels
from lshdup.kernels.clusters import find_roots, join_buckets
from lshdup.lsh.band_table import BandTable


@dataclass(frozen=True)
class Buckets:
    """The largest bucket of a band table, and the buckets skipped for their size.

    largest : number of documents in the largest bucket.
    example : the first of them.
    skipped : number of buckets above the limit.
    documents : number of documents in at least one skipped bucket.
    pairs : number of pairs in skipped buckets, once for each bucket; other bands may meet them.
    """

    largest: int = 0
    example: int = 0
    skipped: int = 0
    documents: int = 0
    pairs: int = 0


NO_BUCKETS = Buckets()

#: A bucket of more documents, or with more pairs, is said before the work: it may take minutes and
#: gigabytes.
_MANY_DOCUMENTS, _MANY_PAIRS = 1000, 1 << 28


def say_large_bucket(
    run: Run, buckets: Buckets, names: StringTable, *, clustering: bool = False
) -> None:
    """Say what the largest bucket means for time and memory, if it has many documents.

    names : of all documents. clustering : whether clusters are made of it, or pairs.
    """
    size, pairs = buckets.largest, buckets.largest * (buckets.largest - 1) // 2
    if buckets.skipped or (size <= _MANY_DOCUMENTS and pairs < _MANY_PAIRS):
        return
    means = (
        f"quick to group if they are alike; if not, up to {pairs:,} pairs are compared"
        if clustering
        else f"their {pairs:,} pairs are candidates, 16 bytes each if they are found"
    )
    run.say(
        f"a bucket has {size:,} documents: {means}; one is {os.fsdecode(names[buckets.example])};"
        " --ignore-common X or --template FILE compares without what they share, --max-bucket N"
        " leaves such buckets out"
    )


@dataclass(frozen=True)
class SharedBuckets:
    """The buckets of n documents that have pairs.

    counts : the largest bucket, and the skipped ones.
    members, ends : for each band the documents of its buckets, bucket by bucket, and where each
        bucket ends in them: uint32 arrays.
    root : uint32 array of shape (n,), for each document the smallest one that buckets connect it
        with.
    """

    counts: Buckets
    members: list[NDArray[np.uint32]]
    ends: list[NDArray[np.uint32]]
    root: NDArray[np.uint32]

    @classmethod
    def of(
        cls, run: Run, table: BandTable, max_bucket: int = 0, split: int = kernels.NO_SPLIT
    ) -> "SharedBuckets":
        """Return the buckets of a table.

        max_bucket : larger buckets are skipped; 0: none.
        split : if set, only buckets with documents below and from it on count.

        Cost: a step a document and band. Memory, of the run: 6 bytes a document of the table
        and thread, 4 to 6 bytes a document and shared bucket.
        """
        arrays, (bands, m) = run.arrays, table.order.shape
        members: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32)] * bands
        ends = members.copy()
        tallies = np.zeros((bands, 5), np.int64)
        skipped: NDArray[np.bool_] = arrays.zeros(table.documents if max_bucket else 0, np.bool_)

        def look(part: slice) -> None:
            room, stops = arrays.empty(m, np.uint32), arrays.empty(m // 2, np.uint32)
            for band in range(part.start, part.stop):
                tally = tallies[band]
                n = kernels.shared_buckets(
                    table.keys[band], table.order[band], split, max_bucket, room, stops, tally
                )
                ends[band] = arrays.copy(stops[:n])
                members[band] = arrays.copy(room[: int(stops[n - 1]) if n else 0])
                skipped[room[m - int(tally[4]) :]] = True

        run_in_parts(bands, run.jobs, look, least=1)
        largest, example = tallies[tallies[:, 0].argmax(), :2].tolist() if bands else (0, 0)
        _, _, buckets, pairs, _ = tallies.sum(axis=0).tolist()
        root: NDArray[np.uint32] = arrays.compute(table.documents, np.uint32, rows_of)
        for each, stops in zip(members, ends, strict=True):
            join_buckets(each, stops, root)
        find_roots(root)
        counts = Buckets(largest, example, buckets, int(np.count_nonzero(skipped)), pairs)
        return cls(counts, members, ends, root)


@dataclass(frozen=True)
class Components:
    """Documents that share a bucket, by *position*: component by component.

    A component is the documents that buckets connect.

    documents : uint32 array of shape (m,), by position.
    edges : int64 array of shape (components + 1,), the positions where components begin.
    bucket : uint32 array of shape (m, bands), number of the bucket of each position, or NO_BUCKET.
    count : number of buckets.
    """

    documents: NDArray[np.uint32]
    edges: NDArray[np.int64]
    bucket: NDArray[np.uint32]
    count: int

    @classmethod
    def of(
        cls, run: Run, shared: SharedBuckets, ordered: NDArray[np.int64] | None = None
    ) -> "Components":
        """Arrange the documents of buckets.

        ordered : int64 array, the documents to arrange, as they come within a component; None: all,
            ascending.
        """
        arrays, root, n = run.arrays, shared.root, len(shared.root)
        shares: NDArray[np.bool_] = arrays.zeros(n, np.bool_)
        for each in shared.members:
            shares[each] = True
        if ordered is None:
            found = arrays.find(shares)
        else:
            there = arrays.where(len(ordered), lambda some: shares[ordered[some]])
            found = arrays.take(ordered, there)
        order = arrays.order(len(found), [lambda at: root[found[at]]])
        documents: NDArray[np.uint32] = arrays.compute(
            len(found), np.uint32, lambda some: found[order[some]]
        )
        edges = np.zeros(1, np.int64)
        if len(documents):
            begins = arrays.full(len(documents) + 1, value=True, dtype=np.bool_)
            for some in slices_of(len(documents) - 1):
                later = slice(some.start + 1, some.stop + 1)
                begins[later] = root[documents[later]] != root[documents[some]]
            edges = arrays.find(begins)
        position: NDArray[np.uint32] = arrays.full(n, kernels.NO_BUCKET, np.uint32)
        for some in slices_of(len(documents)):
            position[documents[some]] = rows_of(some)
        shape = len(documents), len(shared.members)
        bucket = arrays.full(shape, kernels.NO_BUCKET, np.uint32)
        starts = offsets_of(np.array([len(each) for each in shared.ends], np.int64)).tolist()
        for band, (each, ends) in enumerate(zip(shared.members, shared.ends, strict=True)):
            kernels.number_buckets(each, ends, position, band, starts[band], bucket)
        return cls(documents, edges, bucket, starts[-1])

    def list_documents(self, run: Run) -> NDArray[np.int64]:
        """Return the documents: ascending int64 array."""
        listed: NDArray[np.int64] = run.arrays.empty(len(self.documents), np.int64)
        listed[:] = self.documents
        listed.sort()
        return listed

    def blocks(self, most: int) -> Iterator[slice]:
        """Yield the positions of components of `most` documents together, or of a larger one."""
        at, edges = 0, self.edges
        while at < len(edges) - 1:
            to = max(at + 1, int(np.searchsorted(edges, edges[at] + most, side="right")) - 1)
            yield slice(int(edges[at]), int(edges[to]))
            at = to
