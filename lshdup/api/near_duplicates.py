"""Near-duplicates in a collection of documents that does not change."""

import os
from dataclasses import replace
from typing import Unpack

import numpy as np

from lshdup import pipeline
from lshdup.api.minhash import MinHash
from lshdup.api.options import (
    Documents,
    Options,
    collect_documents,
    in_keywords,
    is_filtered,
    params_of,
    refuse_nothing,
    run_of,
)
from lshdup.api.rows import Groups, Rows
from lshdup.collection.set_source import side_of
from lshdup.compare.clusters import list_clusters
from lshdup.compare.comparing import find_neighbours
from lshdup.compare.keep_rules import preference
from lshdup.compare.sides import Sides
from lshdup.errors import ParameterError
from lshdup.lsh import band_plan
from lshdup.lsh.candidates import LSH, candidates_of, documents_to_compare
from lshdup.params import BandParams, ClusterParams, PairParams, Params

#: Columns of near-duplicates of one document.
_NEAR = ("name", "similarity")


class NearDuplicates:
    """Near-duplicates in a collection, verified.

    Parameters
    ----------
    documents, num_permutations, options : as for `MinHash`.
    threshold : smallest similarity of near-duplicates.
    num_bands : bands of the table; None: as few as keep the promised recall (`plan_bands`).
    recall : smallest chance to find a pair of exactly the threshold.
    measure : "jaccard", or "containment", the share of the smaller set that is in the larger one.
        That is exact: `num_bands` and `recall` mean nothing, and there are no clusters.

    >>> texts = {"a": "one two three four five", "c": "one two three four six", "d": "no"}
    >>> texts["b"] = texts["a"]
    >>> found = NearDuplicates(texts, 256, threshold=0.5, recall=0.999)
    >>> found.of("a")
    [('b', 1.0), ('c', 0.5)]
    >>> found.pairs()
    [('a', 'b', 1.0), ('a', 'c', 0.5), ('c', 'b', 0.5)]
    >>> found.clusters()
    [[('a', 1.0), ('b', 1.0), ('c', 0.5)]]
    >>> texts = {"whole": "one two three four five six seven", "part": "three four five six"}
    >>> NearDuplicates(texts, measure="containment").pairs()
    [('part', 'whole', 1.0)]

    """

    def __init__(
        self,
        documents: Documents,
        num_permutations: int = 128,
        num_bands: int | None = None,
        threshold: float = 0.8,
        *,
        recall: float = 0.99,
        measure: str = PairParams().measure,
        **options: Unpack[Options],
    ) -> None:
        with in_keywords():
            params = params_of(
                num_permutations, options, "num_bands", "threshold", "recall", "measure"
            )
            pairs = PairParams(measure=measure)
            bands = BandParams(threshold, recall, bands=num_bands or 0)
            is_banded = measure == "jaccard"
            self.plan = band_plan.plan_bands(num_permutations, bands) if is_banded else None
            self._find(documents, replace(params, bands=bands, pairs=pairs), options)

    def _find(self, documents: Documents, params: Params, options: Options) -> None:
        self.threshold, self._run = params.bands.threshold, run_of(options)
        self._named = [os.fsencode(documents)] if isinstance(documents, str | os.PathLike) else []
        in_one_pass = not is_filtered(options) and params.sketch.scheme != "linear"
        run = self._run
        source = (in_one_pass and self._named) or collect_documents(run, documents, params, options)
        self._answer = pipeline.find_near_duplicates(self._run, source, params)
        refuse_nothing(run, documents, self._answer.collection, params)
        self.minhash = MinHash.of_collection(run, self._answer.collection)

    def of(self, doc: str | int) -> Rows[tuple[str, float]]:
        """Return (name, exact similarity) of the near-duplicates, most similar first.

        Of containment: of the documents that are inside the document, or that it is inside of.
        Raise KeyError for an unknown name.
        """
        row, index = self.minhash.row(doc), self._answer.index
        collection, sets = self.minhash.collection, self.minhash.sets
        if not len(sets[row]):
            return Rows(_NEAR, ((), np.zeros(0)))
        side = side_of(self._run, collection, sets)
        run, measure = self._run, "containment" if index is None else "jaccard"
        sides = Sides.of(run, side, duplicate_of=None if index is None else index.duplicate_of)
        if index is None:
            met = documents_to_compare(run, sides.duplicate_of, sides.sizes)
        else:
            met = candidates_of(index.table, np.ascontiguousarray(index.table.keys[:, row]))
        near = find_neighbours(run, sets[row], met, sides, self.threshold, measure, itself=row)
        names = map(self.minhash.all_docs().__getitem__, near.documents.tolist())
        return Rows(_NEAR, (list(names), near.similarity.real))

    def pairs(self) -> Rows[tuple[str, str, float]]:
        """Return (name, name, exact similarity) of all pairs, in the order of `lshdup pairs`.

        Of containment, the first document is inside the second one.
        """
        none = np.zeros(0, np.uint32)
        parts = (none, none, np.zeros(0)), *self._answer.pairs.pieces()
        left, right, scores = map(np.concatenate, zip(*parts, strict=True))
        names = np.array(self.minhash.all_docs(), object)
        return Rows(("a", "b", "similarity"), (names[left], names[right], scores.real))

    def clusters(self) -> Groups[tuple[str, float]]:
        """Return the clusters of two or more, the largest first, as `lshdup clusters` does.

        Each is a sequence of (name, exact similarity to the first), which is kept: of files the one
        with the shortest path, of texts the first. Raise ParameterError for containment.
        """
        if self._answer.index is None:
            message = "containment makes no clusters: all pages that hold one template would chain"
            raise ParameterError(message, 'make them with measure="jaccard"')
        collection, keep = self.minhash.collection, "" if self._named else "path-order"
        params = ClusterParams(keep=keep)
        order = preference(self._run, collection.documents, collection.sizes, params, self._named)
        groups = pipeline.find_clusters(
            self._run,
            collection,
            self._answer.index,
            side_of(self._run, collection, self.minhash.sets),
            self.threshold,
            params,
            order,
        ).clusters
        listed = list_clusters(groups)
        offsets = np.searchsorted(listed.numbers, np.arange(1, groups.count + 2))
        names = np.array(self.minhash.all_docs(), object)[listed.documents]
        return Groups(Rows(_NEAR, (names, groups.similarity[listed.documents])), offsets)

    @staticmethod
    def near_duplicate_detector(
        documents: Documents,
        num_permutations: int,
        num_bands: int,
        s: float,
        doc: str,
        **options: Unpack[Options],
    ) -> list[str]:
        """Return R1's LSH candidates of `doc` whose *estimated* similarity is at least s.

        R1's own options are ``tokens="terms", scheme="linear"``. Estimates lose near-duplicates
        just above s; `of` verifies exactly.

        >>> texts = ["one two three four five", "one two three four five", "something else"]
        >>> NearDuplicates.near_duplicate_detector(texts, 100, 20, 0.9, "0")
        ['1']
        """
        minhash = MinHash(documents, num_permutations, **options)
        lsh = LSH(minhash.minhash_matrix(), minhash.all_docs(), num_bands)
        near = lsh.near_duplicates_of(doc)
        return [other for other in near if minhash.approximate_jaccard(doc, other) >= s]
