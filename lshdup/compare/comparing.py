"""The comparison: one side or two, a measure, a method -> scored pairs.

Arrays only: what is compared is in sides.py. Pairs are of documents that stand for their exact
duplicates; expand_duplicates.py has the others.

The method is chosen in `compare`, and nowhere else: fingerprints for documents that are the same,
the exact join, or bands.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import BandParams, PairParams
from lshdup.base.ragged import RaggedSets, distinct
from lshdup.base.run import Run
from lshdup.compare.expand_duplicates import NO_KEYS
from lshdup.compare.results import Index, Matches, Neighbours, PairsFound
from lshdup.compare.scored_pairs import Columns, contains, gather_pairs, pack_pairs
from lshdup.compare.sides import LEVELS, Side, Sides
from lshdup.compare.verification import BLOCK_BYTES, Verifier, containment, jaccard
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import band_keys, sort_keys
from lshdup.lsh.candidates import (
    Candidates,
    Sieve,
    candidate_pairs,
    candidates_of_each,
    documents_to_compare,
)

_I64 = NDArray[np.int64]


def compare(
    run: Run, sides: Sides, params: BandParams, method: PairParams, plan: BandPlan | None = None
) -> PairsFound:
    """Return all scored pairs of the sides at or above a threshold.

    Pairs of one side have the lower number first, or of containment the inner document. Pairs of
    two sides are (left, right), whichever is inside the other. No pair is of one origin.

    params : threshold and recall.
    plan : the bands, if bands are the method.

    Errors: what the sources of sets raise.
    """
    if len(sides.apart.keys):
        whole = sides.leave_out(run, NO_KEYS)
        return separate_pairs(run, sides, compare(run, whole, params, method, plan))
    if method.same:
        return _find_same(run, sides, method.same)
    run.progress("candidates", 0, 0)
    if method.is_join:
        return _join(run, sides, params.threshold, method.measure)
    assert plan is not None
    members = documents_to_compare(run, sides.duplicate_of, sides.sizes)
    met = meet(run, sides, members, plan, method.max_bucket)
    return verify(run, met, sides, params.threshold)


def separate_pairs(run: Run, sides: Sides, found: PairsFound) -> PairsFound:
    """Return pairs without those that the sides leave out.

    found : pairs of one document of all exact duplicates; in the result they are of one of each
        class of the sides.
    """
    if not len(sides.apart.keys):
        return found
    sizes = sides.sizes if np.iscomplexobj(found.pairs.values) else None
    across = sides.identical(found.pairs)
    pairs = sides.apart.separate(run, found.pairs, across=across, sizes=sizes)
    estimated, whole = found.estimated, sides.apart.whole
    if len(estimated):
        keys = pack_pairs(whole[pairs.left], whole[pairs.right])
        estimated = np.sort(pairs.keys[contains(estimated, keys)])
    return replace(found, pairs=pairs, estimated=estimated)


def meet(run: Run, sides: Sides, members: _I64, plan: BandPlan, max_bucket: int = 0) -> Candidates:
    """Return the candidate pairs of one band table over all sides.

    members : ascending int64 array, the documents in the table.
    """
    each = [side for side in (sides.left, sides.right) if side is not None]
    keys: NDArray[np.uint64] = run.arrays.empty((plan.bands, len(sides.sizes)), np.uint64)
    at = 0
    for side in each:
        assert side.signatures is not None
        end = at + len(side.sizes)
        keys[:, at:end] = band_keys(run, np.asarray(side.signatures), plan)
        at = end
    table = sort_keys(run, keys, members)
    sieve = Sieve.of(plan, plan.threshold, *(side.signatures for side in each))
    met = candidate_pairs(run, table, max_bucket, sides.origins, sieve)
    sides.expect(met.documents)
    return met


def verify(
    run: Run, met: Candidates, sides: Sides, threshold: float, *, estimates: bool = False
) -> PairsFound:
    """Verify candidate pairs: return the pairs whose similarity is at least the threshold.

    met : candidate pairs; they are overwritten.
    sides : their documents.
    estimates : of `Verifier`.
    """
    verifier = Verifier(run, sides, threshold, estimates=estimates)
    pairs = gather_pairs(run, verifier.verify(met.pieces))
    estimated = verifier.list_estimated()
    return PairsFound(pairs, verifier.candidates, met.buckets, estimated, verifier.by_estimate)


def _find_same(run: Run, sides: Sides, same: str) -> PairsFound:
    """Return the pairs across origins that are the same; those within an origin are duplicates."""
    from lshdup.compare.medoids import pairs_of_rows  # Imported here to keep `query` fast.

    members = documents_to_compare(run, sides.duplicate_of, sides.sizes)
    if not len(sides.origins):
        members = members[:0]
    keys = sides.keys[members]
    order = np.argsort(keys, kind="stable")
    members = members[order]
    _, counts = distinct(keys)
    rows = np.arange(len(members))
    met = pairs_of_rows(rows, rows + 1, np.repeat(np.cumsum(counts), counts))
    numbers, least = members.astype(np.uint32), LEVELS.index(same)

    def confirmed() -> Iterator[Columns]:
        for a, b in met:
            left, right = numbers[a], numbers[b]
            are_same = sides.prints.compare(left, right) >= least  # They may share the key only.
            yield left[are_same], right[are_same], np.ones(int(are_same.sum()))

    return PairsFound(gather_pairs(run, confirmed()), -1)


def _join(run: Run, sides: Sides, threshold: float, measure: str) -> PairsFound:
    """Return all pairs, none missed, by a join of the sets."""
    from lshdup.compare.exact_join import join_sets  # Imported here to keep `query` fast.

    members = documents_to_compare(run, sides.duplicate_of, sides.sizes)
    sets, rows, origins = sides.gather(run, members)
    found = join_sets(run, sets, rows, threshold, measure, origins)
    if measure == "jaccard" or sides.right is not None:
        found = ((np.minimum(a, b), np.maximum(a, b), scores) for a, b, scores in found)
    pairs = gather_pairs(run, found, np.float64 if measure == "jaccard" else np.complex128)
    if rows is not members:
        pairs = replace(pairs, keys=pack_pairs(members[pairs.left], members[pairs.right]))
    return PairsFound(pairs, -1)


def find_matches(run: Run, left: Side, right: Side, index: Index, threshold: float) -> Matches:
    """Find the documents of a side that are near each document of another side.

    left : with its signatures. right : the documents of the index.

    Cost: that of `candidates_of_each`, and a look at each candidate; none for the other documents.
    """
    assert left.signatures is not None
    assert right.signatures is not None
    keys, split = band_keys(run, left.signatures, index.plan), len(left.sizes)
    looked_up, met = candidates_of_each(index.table, keys, jobs=run.jobs)
    firsts, at = np.unique(met, return_inverse=True)
    every, _ = index.expand(firsts)
    wanted = np.sort(every)
    near = replace(
        right,
        sizes=np.asarray(right.sizes[wanted]),
        fingerprints=np.asarray(right.fingerprints[wanted]),
        source=lambda rows: right.source(wanted[rows]),
        signatures=right.signatures[wanted],
        find_existing=lambda rows: _place(wanted, right.find_existing(wanted[rows])),
    )
    places = np.searchsorted(wanted, index.duplicate_of[wanted]) + split
    own = np.append(np.arange(split), places)
    verifier = Verifier(run, Sides.of(run, left, near, duplicate_of=own), threshold, estimates=True)
    first = np.searchsorted(wanted, firsts)[at] + split
    pairs = looked_up.astype(np.uint32), first.astype(np.uint32)
    found = [(pairs[0][:0], pairs[1][:0], np.zeros(0)), *verifier.verify([pairs])]
    one, other, similarity = map(np.concatenate, zip(*found, strict=True))
    are_estimated = contains(verifier.list_estimated(), pack_pairs(one, other))
    documents, place = index.expand(wanted[other - np.uint32(split)])
    return Matches(one.astype(np.int64)[place], documents, similarity[place], are_estimated[place])


def _place(documents: _I64, one: int) -> int:
    return int(np.searchsorted(documents, one)) if one >= 0 else -1


def find_neighbours(
    run: Run,
    shingles: NDArray[np.uint64],
    near: _I64,
    sides: Sides,
    threshold: float,
    measure: str = "jaccard",
    *,
    itself: int,
) -> Neighbours:
    """Find the documents of one side that are at least `threshold` similar to one document.

    Parameters
    ----------
    shingles : uint64 array, shingle set of the document.
    near : ascending int64 array, the documents that may be: its candidates, or for containment
        all documents that are compared.
    sides : one side.
    threshold : smallest similarity, or containment.
    measure : one of MEASURES.
    itself : number of the document if it is of the side: it is not in the answer; else -1.

    Cost: one pass over the sets of `near`, a block in memory at a time.

    """
    one = RaggedSets.from_sizes(shingles, np.array([len(shingles)], np.int64))
    score = jaccard if measure == "jaccard" else containment
    scores: list[NDArray[np.generic]] = [score(run, one, near[:0], near[:0])]
    number, done = np.cumsum(8 * np.asarray(sides.sizes[near])) // BLOCK_BYTES, 0
    blocks = np.split(near, np.flatnonzero(np.diff(number)) + 1)
    for block in blocks:
        pool = RaggedSets.concatenate([one, sides.sets(block)])
        rows = np.arange(1, len(pool))
        scores.append(score(run, pool, np.zeros_like(rows), rows))
        done += len(block)
        if len(blocks) > 1:  # One block is done in a moment, also for each of many queries.
            run.progress("candidates", done, len(near))
    found = np.concatenate(scores)
    keep = found.real >= threshold
    return Neighbours.of(near[keep], found[keep], sides.duplicate_of, itself)
