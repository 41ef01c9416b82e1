"""Near-duplicates in a collection of documents that does not change."""

from typing import Unpack

from lshdup.api.index import Index
from lshdup.api.minhash import MinHash
from lshdup.api.options import Documents, Options, run_of
from lshdup.api.rows import Groups, Rows
from lshdup.base.params import PairParams
from lshdup.lsh.candidates import LSH


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
        self._index = Index.open(
            documents, num_permutations, num_bands, threshold,
            recall=recall, measure=measure, **options,
        )  # fmt: skip
        self.threshold, self.plan = threshold, self._index.plan
        self.minhash = MinHash.of_collection(run_of(options), self._index.collection)
        self._index.pairs()

    def of(self, doc: str | int) -> Rows[tuple[str, float]]:
        """Return (name, exact similarity) of the near-duplicates, most similar first.

        Of containment: of the documents that are inside the document, or that it is inside of.
        Raise KeyError for an unknown name.
        """
        return Rows(("name", "similarity"), self._index.of(doc).columns[:2])

    def pairs(self) -> Rows[tuple[str, str, float]]:
        """Return (name, name, exact similarity) of all pairs, in the order of `lshdup pairs`.

        Of containment, the first document is inside the second one.
        """
        return Rows(("a", "b", "similarity"), self._index.pairs().columns[:3])

    def clusters(self) -> Groups[tuple[str, float]]:
        """Return the clusters of two or more, the largest first, as `lshdup clusters` does.

        Each is a sequence of (name, exact similarity to the first), which is kept: of files the one
        with the shortest path, of texts the first. Raise ParameterError for containment.
        """
        return self._index.clusters()

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
