"""Band table -> groups of documents, without a list of pairs. Called by pipeline.py; what a group is, clusters.py says.

Documents are met in the order in which they are preferred, cluster by cluster, a cluster being what buckets connect. Each bucket has a list
of its representatives (*leaders*), and a document is compared with those only: where all are alike, that is one comparison a document.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import grouping as kernels
from lshdup.kernels import union_find
from lshdup.lsh.band_table import BandTable
from lshdup.lsh.candidates import Buckets, PairArrays, connect_buckets
from lshdup.matching import similarity
from lshdup.matching.clusters import Groups, groups_of_positions
from lshdup.matching.similarity import BLOCK_BYTES
from lshdup.utils.parallel import run_in_parts
from lshdup.utils.ragged import SetSource, offsets_of

#: Sets of leaders for so many bytes are held, where buckets connect more than a block.
HELD_BYTES = 128 << 20

#: Pairs that may connect two groups are looked at in pieces, the first small: what it connects need not be looked at again.
_FIRST_PIECE, _PIECE = 1 << 12, 1 << 20

_NONE = kernels.NONE


def cluster_buckets(
    table: BandTable,
    ordered: NDArray[np.int64],
    sizes: NDArray[np.int64],
    source: SetSource,
    threshold: float,
    *,
    linkage: str = "representative",
    max_bucket: int = 0,
    jobs: int = 1,
    on_buckets: Callable[[Buckets], None] = lambda _: None,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> tuple[Groups, Buckets, int]:
    """Groups, the buckets, and how many similarities were looked at.

    ordered : int64 array, those that are compared, the most preferred first (`rank_documents`).
    sizes : int64 array of shape (n,), elements of each
    set. max_bucket : larger buckets are left out; 0: none is. on_buckets : told about the buckets before the work.
    progress : told documents done, and in all.

    Determinism: the same as `cluster_pairs` of the pairs of the same buckets, at any number of jobs.
    Cost: a step a document and band, and a
    comparison with each representative in a document's buckets up to its own: linear where documents are alike, m²/2 in a bucket of m that
    are not. Every set is fetched once, unless representatives that buckets connect outgrow HELD_BYTES. Memory: those, one
    block of sets, and 8 bytes a band for each document that shares a bucket.
    """
    n = table.keys.shape[1]
    buckets, root = connect_buckets(table, max_bucket)
    on_buckets(buckets)
    shelves = _Shelves.of(table, ordered, root, max_bucket)
    search = _Search(shelves, sizes[shelves.documents], source, threshold, jobs, progress)
    search.run()
    looked_at = search.compared
    groups = groups_of_positions(
        ordered, np.arange(len(ordered), dtype=np.uint32), np.ones(len(ordered)), n
    )  # each alone
    leader, score = search.leader, search.similarity
    if linkage == "single":
        parent = leader.copy()
        looked_at += _unite(shelves, parent, leader, sizes, source, threshold, jobs)
        score = np.where(
            parent == leader, score, np.nan
        )  # roots are leaders: those before whom nobody was
        leader = parent
    groups.representative[shelves.documents] = shelves.documents[leader]
    groups.similarity[shelves.documents] = score
    return groups, buckets, looked_at


@dataclass(frozen=True)
class _Shelves:
    """Documents that share a bucket with another one, by *position*: cluster by cluster, and within one by preference.

    documents : int64 array of shape (m,), by position. edges : int64 array of shape (clusters + 1,), the positions where clusters begin.
    bucket : uint32 array of shape (m, bands), numbers of buckets, or _NONE. count : how many buckets.
    """

    documents: NDArray[np.int64]
    edges: NDArray[np.int64]
    bucket: NDArray[np.uint32]
    count: int

    @classmethod
    def of(
        cls, table: BandTable, ordered: NDArray[np.int64], root: NDArray[np.uint32], max_bucket: int
    ) -> "_Shelves":
        bands, n = table.keys.shape
        roots = root[ordered]
        shares = np.bincount(roots, minlength=n)[roots] > 1
        documents, roots = ordered[shares], roots[shares]
        order = np.argsort(roots, kind="stable")
        documents, roots = documents[order], roots[order]
        edges = (
            np.flatnonzero(np.concatenate([[True], roots[1:] != roots[:-1], [True]]))
            if len(roots)
            else np.zeros(1, np.int64)
        )
        position = np.full(n, _NONE, np.uint32)
        position[documents] = np.arange(len(documents), dtype=np.uint32)
        bucket = np.full((len(documents), bands), _NONE, np.uint32)
        count = 0
        for band in range(bands):
            count = kernels.number_buckets(
                table.keys[band], table.order[band], max_bucket, position, band, count, bucket
            )
        return cls(documents, edges, bucket, count)


class _Search:
    """Looks for the leader of each position. leader, similarity : uint32 and float64 arrays of shape (m,), filled by `run`."""

    def __init__(
        self,
        shelves: _Shelves,
        sizes: NDArray[np.int64],
        source: SetSource,
        threshold: float,
        jobs: int,
        progress: Callable[[int, int], None],
    ) -> None:
        m = len(shelves.documents)
        self.leader = np.full(m, _NONE, np.uint32)
        self.similarity = np.ones(m)
        self.compared = 0
        self._shelves, self._source, self._threshold, self._jobs, self._progress = (
            shelves,
            source,
            threshold,
            jobs,
            progress,
        )
        self._expected = sizes
        self._heads = np.full(shelves.count, _NONE, np.uint32)
        self._tails = np.empty(shelves.count, np.uint32)
        self._following = np.empty_like(shelves.bucket)
        # The sets at hand: that of position p is values[starts[p]:starts[p] + sizes[p]].
        self._values = np.empty(0, np.uint64)
        self._starts = np.zeros(m, np.int64)
        self._sizes = np.zeros(m, np.int64)

    def run(self) -> None:
        """Cluster by cluster, as many at a time as make a block; one that is larger by itself."""
        edges = self._shelves.edges
        ends = offsets_of(self._expected)[edges]
        at = 0
        while at < len(edges) - 1:
            to = max(
                at + 1, int(np.searchsorted(ends, ends[at] + BLOCK_BYTES // 8, side="right")) - 1
            )
            if ends[to] - ends[at] <= BLOCK_BYTES // 8:
                self._clusters(edges[at : to + 1])
            else:
                self._tangle(np.arange(edges[at], edges[to], dtype=np.uint32))
            at = to
            self._progress(int(edges[at]), len(self.leader))

    def _clusters(self, edges: NDArray[np.int64]) -> None:
        """Whole clusters, of which all sets are at hand."""
        some = np.arange(edges[0], edges[-1], dtype=np.uint32)
        self._fetch(some, 0)
        self._lead_in_parts(some, edges - edges[0], 64, grow=True)

    def _tangle(self, rest: NDArray[np.uint32]) -> None:
        """One cluster, a block at a time, beside the sets of its leaders. Once those are too many, who is left is compared with them, they
        are forgotten, and it goes on with whom they did not take.
        """
        while len(rest):
            used, done = 0, 0
            while done < len(rest) and used <= HELD_BYTES // 8:
                block = self._block(rest, done)
                self._fetch(block, used)
                self._lead_in_parts(block, np.arange(len(block) + 1), 256, grow=False)
                # Who is left can only follow a leader of this block, and so one after the other.
                self.compared += self._lead(block, since=int(block[0]), grow=True)
                used = self._keep(block[self.leader[block] == block], used)
                done += len(block)
                self._progress(int(block[-1]) + 1, len(self.leader))
            led, rest = rest[:done], rest[done:]
            if len(rest):
                near = np.empty(len(rest), np.uint8)
                kernels.have_leaders(
                    rest,
                    self._expected,
                    self._threshold,
                    self._shelves.bucket,
                    self._heads,
                    self._following,
                    near,
                )
                near_ones, done = rest[near != 0], 0
                while done < len(near_ones):
                    block = self._block(near_ones, done)
                    self._fetch(block, used)
                    self._lead_in_parts(block, np.arange(len(block) + 1), 256, grow=False)
                    done += len(block)
                kernels.clear_leaders(led, self._shelves.bucket, self._heads)
                rest = rest[self.leader[rest] == _NONE]

    def _block(self, some: NDArray[np.uint32], start: int) -> NDArray[np.uint32]:
        """Positions from `start` on whose sets make a block; one at least."""
        sizes = self._expected[some[start : start + BLOCK_BYTES // 8]]
        return some[
            start : start
            + max(1, int(np.searchsorted(np.cumsum(sizes), BLOCK_BYTES // 8, side="right")))
        ]

    def _fetch(self, some: NDArray[np.uint32], used: int) -> None:
        """Have the sets of these positions at hand, behind the first `used` values."""
        documents = self._shelves.documents[some]
        order = np.argsort(documents)
        sets = self._source(documents[order])
        end = used + len(sets.values)
        if used == 0:
            self._values = sets.values  # a copy that is ours: every source gives one
        else:
            if end > len(self._values):
                grown = np.empty(max(end, HELD_BYTES // 8), np.uint64)
                grown[:used] = self._values[:used]
                self._values = grown
            self._values[used:end] = sets.values
        self._starts[some[order]] = used + sets.offsets[:-1]
        self._sizes[some[order]] = sets.sizes

    def _keep(self, leaders: NDArray[np.uint32], used: int) -> int:
        """Move the sets of these leaders behind the first `used` values; returns where they end."""
        # In the order of their places, so that none is moved over one that is still to be moved.
        leaders = leaders[np.argsort(self._starts[leaders])]
        for position in leaders.tolist():
            start, size = int(self._starts[position]), int(self._sizes[position])
            self._values[used : used + size] = self._values[start : start + size]
            self._starts[position] = used
            used += size
        return used

    def _lead_in_parts(
        self, some: NDArray[np.uint32], cuts: NDArray[np.int64], least: int, *, grow: bool
    ) -> None:
        """`_lead` on all threads. cuts : int64 array, where `some` may be cut; with `grow`, between clusters."""
        compared: list[int] = []

        def work(part: slice) -> None:
            compared.append(
                self._lead(some[cuts[part.start] : cuts[part.stop]], since=0, grow=grow)
            )

        run_in_parts(len(cuts) - 1, self._jobs, work, least=least)
        self.compared += sum(compared)

    def _lead(self, some: NDArray[np.uint32], *, since: int, grow: bool) -> int:
        return kernels.assign_leaders(
            self._values, self._starts, self._sizes, some, since, grow, self._threshold, self._shelves.bucket, self._heads, self._tails,
            self._following, self.leader, self.similarity,
        )  # fmt: skip


def _unite(
    shelves: _Shelves,
    parent: NDArray[np.uint32],
    leader: NDArray[np.uint32],
    sizes: NDArray[np.int64],
    source: SetSource,
    threshold: float,
    jobs: int,
) -> int:
    """Join groups that share a pair: parent (uint32 array of shape (m,), each position's leader) becomes the first of all that are
    connected. Returns how many similarities were looked at.
    """
    position = np.zeros(len(sizes), np.uint32)
    position[shelves.documents] = np.arange(len(leader), dtype=np.uint32)
    looked_at = 0

    def pieces() -> Iterator[PairArrays]:
        nonlocal looked_at
        for left, right in _unconnected(shelves, leader, parent):
            looked_at += len(left)
            yield (
                shelves.documents[left].astype(np.uint32),
                shelves.documents[right].astype(np.uint32),
            )

    # What a piece connects is known before the next one is made: both are lazy.
    for left, right, _ in similarity.verify(pieces(), sizes, source, threshold, jobs):
        union_find.join_pairs(position[left], position[right], parent)
    union_find.find_roots(parent)
    return looked_at


def _unconnected(
    shelves: _Shelves, leader: NDArray[np.uint32], parent: NDArray[np.uint32]
) -> Iterator[PairArrays]:
    """Pairs of positions that share a bucket and are not connected when it is their turn, but for those of two leaders, which are known not
    to be similar; pieces of (left, right), uint32 arrays. parent : changes meanwhile.
    """
    # Only where buckets connect several groups.
    is_leader = leader == np.arange(len(leader))
    several = (
        np.add.reduceat(is_leader, shelves.edges[:-1], dtype=np.int64) > 1
        if len(leader)
        else np.zeros(0, bool)
    )
    tangled = np.flatnonzero(np.repeat(several, np.diff(shelves.edges)))
    size = _FIRST_PIECE
    for band in range(shelves.bucket.shape[1]):
        union_find.find_roots(parent)
        some = tangled[shelves.bucket[tangled, band] != _NONE]
        order = np.lexsort((parent[some], shelves.bucket[some, band]))
        entries = some[order].astype(np.uint32)
        ends_bucket = _differs_from_next(shelves.bucket[entries, band])
        bucket_ends, run_ends = (
            _next_end(ends_bucket),
            _next_end(ends_bucket | _differs_from_next(parent[entries])),
        )
        state = np.zeros(2, np.int64)
        while state[0] < len(entries):
            left, right = np.empty(size, np.uint32), np.empty(size, np.uint32)
            n = kernels.unconnected_pairs(
                entries,
                run_ends,
                bucket_ends,
                band,
                shelves.bucket,
                leader,
                parent,
                state,
                left,
                right,
            )
            if n:
                yield left[:n], right[:n]
                size = min(2 * size, _PIECE)


def _differs_from_next(values: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """For each place whether another value follows, or none."""
    differs = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=differs[:-1])
    return differs


def _next_end(is_end: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each place the one after the next that is an end."""
    ends = np.flatnonzero(is_end) + 1
    return ends[np.searchsorted(ends, np.arange(len(is_end)), side="right")]
