"""Band table -> clusters of documents, without a list of pairs; clusters.py defines clusters.

m documents of one template share a bucket and make m (m - 1) / 2 candidate pairs. Here every bucket
has a list of its *leaders*, the documents in it that represent themselves, and a document is
compared with leaders only: m documents of one template cost m - 1 comparisons.

Documents are taken in order of preference, component by component. A component is the documents
that buckets connect; no cluster is larger.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import SetSource, cut_offsets, offsets_of
from lshdup.base.run import Run, run_in_parts
from lshdup.compare import verification
from lshdup.compare.clusters import Clusters, Edges
from lshdup.compare.scored_pairs import hold_pairs, pack_unordered, unpack_pairs
from lshdup.compare.verification import BLOCK_BYTES
from lshdup.kernels import clusters as kernels
from lshdup.lsh.candidates import Components, PairArrays

#: The size of the leaders' sets that are in memory, for a component larger than a block.
HELD_BYTES = 128 << 20

#: Pairs of single linkage come in pieces. The first is small: its joins make later pairs needless.
_FIRST_PIECE, _PIECE = 1 << 12, 1 << 20

_NONE = kernels.NONE


def cluster_buckets(
    run: Run, components: Components, ordered: NDArray[np.int64], edges: Edges
) -> tuple[Clusters, int]:
    """Return the clusters, and the number of similarities computed.

    components : the documents that share buckets, in the order of `ordered` within a component.
    ordered : int64 array, the documents to cluster, the most preferred first (`rank_documents`).

    Determinism: the clusters are those of `cluster_pairs` for the pairs of the same buckets, at any
    number of jobs. Cost: a step a document and band, and a comparison with each leader before it
    in its buckets: linear where documents are similar, m² / 2 in a bucket of m that are not. A set
    is fetched once, unless the leaders of a component exceed HELD_BYTES. Memory: HELD_BYTES, a
    block of sets, and 8 bytes a band for each document that shares a bucket.
    """
    search = _LeaderSearch(run, components, edges)
    search.search()
    compared, leader, score = search.compared, search.leader, search.similarity
    if edges.linkage == "single":
        parent = leader.copy()
        compared += _connect_clusters(run, components, parent, leader, edges)
        # The similarity to a root is known where it is the leader that was found.
        score = np.where(parent == leader, score, np.nan)
        leader = parent
    clusters = Clusters.empty(run, len(edges.sizes))
    clusters.assign(ordered, ordered, 1.0)
    clusters.assign(components.documents, run.arrays.take(components.documents, leader), score)
    return clusters, compared


def _by_position(
    run: Run, documents: NDArray[np.uint32], keys: NDArray[np.uint64], n: int
) -> NDArray[np.uint64]:
    """Return the keys of pairs of n documents as ascending keys of their positions."""
    if not len(keys):
        return keys
    position = run.arrays.places(documents, n)
    a, b = (position[each] for each in unpack_pairs(keys))
    return np.sort(pack_unordered(a, b)[(a != _NONE) & (b != _NONE)])


class _SetsInMemory:
    """Sets by position: that of position p is values[starts[p]:starts[p] + sizes[p]]."""

    def __init__(self, run: Run, documents: NDArray[np.uint32], source: SetSource) -> None:
        self.values = np.empty(0, np.uint64)
        self.starts: NDArray[np.int64] = run.arrays.zeros(len(documents), np.int64)
        self.sizes: NDArray[np.int64] = run.arrays.zeros(len(documents), np.int64)
        self._documents = documents
        self._source = source

    def fetch(self, positions: NDArray[np.uint32], used: int) -> None:
        """Fetch the sets of positions behind the first `used` values."""
        documents = self._documents[positions].astype(np.int64)
        order = np.argsort(documents)
        sets = self._source(documents[order])
        end = used + len(sets.values)
        if used == 0:
            self.values = sets.values  # Every source returns a copy.
        else:
            if end > len(self.values):
                grown = np.empty(max(end, HELD_BYTES // 8), np.uint64)
                grown[:used] = self.values[:used]
                self.values = grown
            self.values[used:end] = sets.values
        self.starts[positions[order]] = used + sets.offsets[:-1]
        self.sizes[positions[order]] = sets.sizes

    def keep(self, positions: NDArray[np.uint32], used: int) -> int:
        """Move the sets of positions behind the first `used` values; return their end."""
        # In ascending order of starts, so that no set overwrites one that is still to be moved.
        for position in positions[np.argsort(self.starts[positions])].tolist():
            start, size = int(self.starts[position]), int(self.sizes[position])
            self.values[used : used + size] = self.values[start : start + size]
            self.starts[position] = used
            used += size
        return used


class _LeaderSearch:
    """The search for the leader of each position.

    leader, similarity : uint32 and float64 arrays of shape (m,), filled by `search`.
    compared : number of similarities computed.
    """

    def __init__(self, run: Run, components: Components, edges: Edges) -> None:
        arrays, documents = run.arrays, components.documents
        m = len(documents)
        self.leader: NDArray[np.uint32] = arrays.full(m, _NONE, np.uint32)
        self.similarity: NDArray[np.float64] = arrays.full(m, 1.0, np.float64)
        self.compared = 0
        self._edges, self._bucket = components.edges, components.bucket
        self._near = components.bucket, components.digests, components.least
        self._run, self._threshold = run, edges.threshold
        self._expected = arrays.take(np.asarray(edges.sizes), documents)
        self._apart = _by_position(run, documents, edges.apart, len(edges.sizes))
        self._sets = _SetsInMemory(run, documents, edges.source)
        # The leaders of each bucket, as linked lists: see `kernels.assign_leaders`.
        self._heads = arrays.full(components.count, _NONE, np.uint32)
        self._tails = arrays.empty(components.count, np.uint32)
        self._following = arrays.empty(components.bucket.shape, np.uint32)
        self._origins, skips = components.origins, len(components.origins) > 0
        self._turns = arrays.empty(components.count * skips, np.uint32)
        self._others = arrays.empty((m * skips, components.bucket.shape[1]), np.uint32)

    def search(self) -> None:
        """Search component by component: as many at a time as make a block, or one larger one."""
        edges = self._edges
        # The elements of the sets before each component, and of all.
        ends = self._run.arrays.take(offsets_of(self._expected, self._run.arrays), edges)
        for some in cut_offsets(ends, BLOCK_BYTES // 8):
            first, last = some.start, some.stop
            positions = np.arange(edges[first], edges[last], dtype=np.uint32)
            if ends[last] - ends[first] <= BLOCK_BYTES // 8:
                self._assign_block(positions, 0, edges[first : last + 1] - edges[first])
            else:
                self._search_large(positions)
            self._run.progress("groups", int(edges[last]), len(self.leader))

    def _search_large(self, rest: NDArray[np.uint32]) -> None:
        """Search one component that is larger than a block, in rounds.

        A round ends when the sets of its leaders exceed HELD_BYTES. The other positions are then
        compared with these leaders, and the next round goes on with those that are not similar.
        """
        while len(rest):
            done, used = self._find_leaders(rest)
            led, rest = rest[:done], rest[done:]
            if len(rest):
                self._compare_with_leaders(rest, used)
                buckets = self._bucket[led]
                self._heads[buckets[buckets != _NONE]] = _NONE
                rest = rest[self.leader[rest] == _NONE]

    def _find_leaders(self, rest: NDArray[np.uint32]) -> tuple[int, int]:
        """Assign leaders block by block until the leaders' sets exceed HELD_BYTES.

        Returns the number of positions done, and of values of the leaders' sets.
        """
        used, done = 0, 0
        while done < len(rest) and used <= HELD_BYTES // 8:
            block = self._block(rest, done)
            self._assign_block(block, used)
            # The other positions can only follow a leader of this block: one after the other.
            self.compared += self._assign(block, since=int(block[0]), add=True)
            used = self._sets.keep(block[self.leader[block] == block], used)
            done += len(block)
            self._run.progress("groups", int(block[-1]) + 1, len(self.leader))
        return done, used

    def _compare_with_leaders(self, rest: NDArray[np.uint32], used: int) -> None:
        """Assign the leaders found so far to positions; fetch only sets that may be similar."""
        near = np.empty(len(rest), np.uint8)
        kernels.have_leaders(
            rest, self._origins, self._expected, self._threshold, *self._near, self._heads,
            self._following, self._others, near,
        )  # fmt: skip
        candidates, done = rest[near != 0], 0
        while done < len(candidates):
            block = self._block(candidates, done)
            self._assign_block(block, used)
            done += len(block)

    def _block(self, positions: NDArray[np.uint32], start: int) -> NDArray[np.uint32]:
        """Return the positions from index `start` on whose sets make a block; at least one."""
        sizes = self._expected[positions[start : start + BLOCK_BYTES // 8]]
        fitting = int(np.searchsorted(np.cumsum(sizes), BLOCK_BYTES // 8, side="right"))
        return positions[start : start + max(1, fitting)]

    def _assign_block(
        self, block: NDArray[np.uint32], used: int, edges: NDArray[np.int64] | None = None
    ) -> None:
        """Fetch the sets of a block behind `used` values, and assign leaders on all threads.

        edges : int64 array, indices of the block where components begin, if it has whole ones;
            otherwise only leaders that are known are assigned.
        """
        self._sets.fetch(block, used)
        cuts = np.arange(len(block) + 1) if edges is None else edges
        compared: list[int] = []

        def work(part: slice) -> None:
            chosen = block[cuts[part.start] : cuts[part.stop]]
            compared.append(self._assign(chosen, since=0, add=edges is not None))

        run_in_parts(len(cuts) - 1, self._run.jobs, work, least=256 if edges is None else 64)
        self.compared += sum(compared)

    def _assign(self, positions: NDArray[np.uint32], *, since: int, add: bool) -> int:
        sets = self._sets
        return kernels.assign_leaders(
            sets.values, sets.starts, sets.sizes, positions, self._origins, since, add,
            self._threshold, self._apart, *self._near, self._heads, self._tails, self._following,
            self._turns, self._others, self.leader, self.similarity,
        )  # fmt: skip


# --- single linkage ---


def _connect_clusters(
    run: Run,
    components: Components,
    parent: NDArray[np.uint32],
    leader: NDArray[np.uint32],
    edges: Edges,
) -> int:
    """Join clusters that have a pair; return the number of similarities computed.

    parent : uint32 array of shape (m,), the leader of each position; becomes the first position
        that is connected with it.
    """
    documents = components.documents
    position = run.arrays.places(documents, len(edges.sizes))
    compared = 0

    def pieces() -> Iterator[PairArrays]:
        nonlocal compared
        for left, right in _unconnected_pairs(components, leader, parent):
            compared += len(left)
            yield documents[left], documents[right]

    # Both iterators are lazy: the joins of a piece are done before the next piece is made.
    similar = verification.verify_jaccard(run, pieces(), edges.sizes, edges.source, edges.threshold)
    for left, right, _ in similar:
        joined = ~hold_pairs(edges.apart, left, right)
        kernels.join_pairs(position[left[joined]], position[right[joined]], parent)
    kernels.find_roots(parent)
    return compared


def _unconnected_pairs(
    components: Components, leader: NDArray[np.uint32], parent: NDArray[np.uint32]
) -> Iterator[PairArrays]:
    """Yield pairs of positions that share a bucket and are not connected yet.

    Pairs of two leaders are not among them: they are not similar. Nor are those of one origin.

    parent : the forest of connected positions, which changes while pairs are yielded.
    """
    is_leader = leader == np.arange(len(leader))
    clusters = np.add.reduceat(is_leader, components.edges[:-1], dtype=np.int64)
    # Positions in components of several clusters.
    in_question = np.flatnonzero(np.repeat(clusters > 1, np.diff(components.edges)))
    size = _FIRST_PIECE
    for band in range(components.bucket.shape[1]):
        kernels.find_roots(parent)
        positions = in_question[components.bucket[in_question, band] != _NONE]
        origins = components.origins[positions] if len(components.origins) else 0 * positions
        order = np.lexsort((parent[positions], origins, components.bucket[positions, band]))
        entries, origins = positions[order].astype(np.uint32), origins[order]
        numbers = components.bucket[entries, band]
        bucket_ends, run_ends = _run_ends(numbers), _run_ends(numbers, origins, parent[entries])
        own_ends = _run_ends(numbers, origins) if len(components.origins) else run_ends
        state = np.zeros(2, np.int64)
        while state[0] < len(entries):
            left, right = np.empty(size, np.uint32), np.empty(size, np.uint32)
            n = kernels.unconnected_pairs(
                entries, own_ends, run_ends, bucket_ends, band, components.bucket,
                components.digests, components.least, leader, parent, state, left, right,
            )  # fmt: skip
            if n:
                yield left[:n], right[:n]
                size = min(2 * size, _PIECE)


def _run_ends(*columns: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return for each index the end of the run of equal values in all columns."""
    n = len(columns[0])
    differs = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    ends = np.append(np.flatnonzero(differs) + 1, n)
    return np.repeat(ends, np.diff(ends, prepend=0))
