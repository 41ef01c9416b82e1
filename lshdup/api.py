"""The class interface: MinHash, LSH and NearDuplicates, as in the class experiments (R1), over the
stages of this package.

For Python programs; the command line does not use it. Everything is computed in the constructor:
objects hold plain arrays and names, have no hidden state, and can be pickled.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lshdup import pipeline
from lshdup.collection.collect import collect, sketched
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.documents.document_list import DocumentList
from lshdup.documents.finding import find_documents
from lshdup.documents.preference import preference
from lshdup.errors import InputError, ParameterError
from lshdup.lsh import band_plan, candidates
from lshdup.lsh import band_table as banding
from lshdup.lsh.signatures import estimate
from lshdup.matching.clusters import list_clusters
from lshdup.matching.similarity import jaccard
from lshdup.params import (
    BandParams,
    ClusterParams,
    DocumentParams,
    Params,
    ShingleParams,
    SketchParams,
)
from lshdup.shingling.shingler import Shingler, fingerprint_sets
from lshdup.utils.parallel import count_processors
from lshdup.utils.ragged import RaggedSets, StringTable, distinct

#: A folder, a mapping of names to texts, or texts, whose names are then "0", "1", …
Documents = str | os.PathLike[str] | Mapping[str, str] | Iterable[str]


class MinHash:
    """Shingle sets and signatures of a collection.

    Parameters
    ----------
    documents : folder to read (its files are documents as `lshdup pairs` sees them), or texts in
        memory: a mapping of names to texts, or an iterable of texts, which are named "0", "1", ….
    num_permutations : K, rows of a signature; the standard error of an estimate is sqrt(s (1 - s) /
        K).
    tokens, k, bag, normalize, keep_case : how a text becomes a shingle set; see `ShingleParams`.
        R1's terms are ``tokens="terms"``.
    scheme : "fast", "classic" or "linear"; see `lshdup.lsh.signatures`.
    seed : makes all randomness.
    ignore_common, templates : remove shingles from every set: those that more documents have than
        this (below 1: than this share of them; 0: none), and those of these texts.
    hash_key : a secret that makes the hash of shingles another one; see `ShingleParams`.
    jobs : threads; None means one a processor. The result is the same for any number.

    Raises InputError if the folder is not there or holds no documents, ParameterError for a
    parameter outside its domain.

    >>> texts = {"a": "the cat sat on the mat", "b": "the cat sat on the mat today", "c": "something else entirely"}
    >>> minhash = MinHash(texts, 256, k=2)
    >>> minhash.all_docs()
    ['a', 'b', 'c']
    >>> round(minhash.exact_jaccard("a", "b"), 4)
    0.8333
    >>> abs(minhash.approximate_jaccard("a", "b") - 5 / 6) < 4 * (5 / 36 / 256) ** 0.5
    True
    >>> minhash.minhash_matrix().shape, minhash.num_terms, minhash.num_permutations
    ((256, 3), 8, 256)

    """

    def __init__(
        self,
        documents: Documents,
        num_permutations: int = 128,
        *,
        tokens: str = "word",
        k: int | None = None,
        bag: bool = False,
        normalize: bool = True,
        keep_case: bool = False,
        scheme: str = "fast",
        seed: int = 1,
        ignore_common: float = 0,
        templates: Iterable[str] = (),
        hash_key: str = "",
        jobs: int | None = None,
    ) -> None:
        params = _params(
            tokens, k, bag, normalize, keep_case, hash_key, scheme, num_permutations, seed
        )
        texts = list(templates)
        self._hold(_collect(documents, params, ignore_common, texts, jobs or count_processors()))

    @classmethod
    def of_collection(cls, collection: Collection) -> Self:
        """Return the object that holds a collection with sets and signatures."""
        made = cls.__new__(cls)
        made._hold(collection)
        return made

    def _hold(self, collection: Collection) -> None:
        self.collection = collection
        self._names = [os.fsdecode(name) for name in collection.documents.names]
        self._rows = {name: row for row, name in enumerate(self._names)}

    def all_docs(self) -> list[str]:
        """Names of all documents, in the order of the columns of `minhash_matrix`: byte order for a
        folder, as given for texts.
        """
        return list(self._names)

    def row(self, doc: str) -> int:
        """The column of a document in `minhash_matrix`, its row in `signatures`. Raises KeyError
        for an unknown name.
        """
        return self._rows[doc]

    @property
    def num_permutations(self) -> int:
        """K, the rows of a signature."""
        return int(self.signatures.shape[1])

    @property
    def num_terms(self) -> int:
        """How many different shingles the collection has (R1's n)."""
        return len(np.unique(self.sets.values))

    @property
    def sets(self) -> RaggedSets:
        """The shingle sets, in the order of `all_docs`: uint64 values, sorted within each set."""
        assert self.collection.sets is not None
        return self.collection.sets

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """uint32 array of shape (n_docs, K): one signature a row. Rows of a document without tokens
        are 2^32 - 1.
        """
        assert self.collection.signatures is not None
        return self.collection.signatures

    def exact_jaccard(self, first: str, second: str) -> float:
        """|A ∩ B| / |A ∪ B| of the two documents' shingle sets; 0 if both are empty. Raises
        KeyError for an unknown name.
        """
        pair = np.array([self._rows[first]]), np.array([self._rows[second]])
        return float(jaccard(self.sets, *pair)[0])

    def minhash_sig(self, doc: str) -> NDArray[np.uint32]:
        """The signature of a document: uint32 array of shape (K,). Raises KeyError for an unknown
        name.
        """
        signature: NDArray[np.uint32] = self.signatures[self._rows[doc]].copy()
        return signature

    def approximate_jaccard(self, first: str, second: str) -> float:
        """Share of the rows in which the two signatures agree: an unbiased estimate of
        `exact_jaccard` (but for scheme "linear").

        A document without tokens is near nothing: 0. Raises KeyError for an unknown name.
        """
        left, right = self._rows[first], self._rows[second]
        if not self.collection.sizes[left] or not self.collection.sizes[right]:
            return 0.0
        return float(estimate(self.signatures, np.array([left]), np.array([right])).similarity[0])

    def minhash_matrix(self) -> NDArray[np.uint32]:
        """All signatures as R1 has them: uint32 array of shape (K, n_docs), one signature a column,
        in the order of `all_docs`.
        """
        return np.ascontiguousarray(self.signatures.T)


class LSH:
    """Banded hash tables over a signature matrix: which documents share a bucket.

    Parameters
    ----------
    minhash_matrix : uint32 array of shape (K, n_docs), one signature a column, for instance
        `MinHash.minhash_matrix()`.
    doc_names : n_docs names, in the order of the columns.
    bands : b; each has K // b rows. More bands: more recall, more candidates, larger tables.
    buckets : fold the 64-bit keys of a band into so many buckets, as R1 did (its number: the
        smallest prime >= n_docs); 0 means whole keys.

    Raises ParameterError if shapes do not fit or there are more bands than rows.

    >>> matrix = np.array([[1, 1, 7], [2, 2, 8], [3, 9, 9], [4, 9, 9]], np.uint32)
    >>> LSH(matrix, ["a", "b", "c"], bands=2).near_duplicates_of("b")
    ['a', 'c']

    """

    def __init__(
        self,
        minhash_matrix: NDArray[np.uint32],
        doc_names: Iterable[str],
        bands: int,
        *,
        buckets: int = 0,
    ) -> None:
        self._names = list(doc_names)
        self._rows = {name: row for row, name in enumerate(self._names)}
        matrix = np.asarray(minhash_matrix, np.uint32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self._names):
            message = (
                f"a matrix of shape {matrix.shape} does not fit {len(self._names)} names: one"
                " column a document is needed"
            )
            raise ParameterError(message, "give minhash.minhash_matrix() and minhash.all_docs()")
        self.plan = _plan(matrix.shape[0], bands, buckets)
        signatures = np.ascontiguousarray(matrix.T)
        # A column of 2^32 - 1 is a document without tokens: near nothing.
        members = np.flatnonzero((signatures != 0xFFFFFFFF).any(axis=1))
        self._table = banding.build_band_table(signatures, members, self.plan)
        self._members = members

    def near_duplicates_of(self, doc: str) -> list[str]:
        """Names of the other documents that share a bucket with this one, in the order of the
        columns.

        Raises KeyError for an unknown name.
        """
        row = self._rows[doc]
        if row not in self._members:
            return []
        near = candidates.candidates_of(self._table, np.ascontiguousarray(self._table.keys[:, row]))
        return [self._names[other] for other in near.tolist() if other != row]


class NearDuplicates:
    """Near-duplicates in a collection, verified.

    Parameters
    ----------
    documents, num_permutations and the other keywords : as for `MinHash`.
    threshold : smallest similarity of near-duplicates.
    num_bands : bands of the table; None means as few as meet a pair at the threshold with chance
        `recall` (`plan_bands`).
    recall : smallest chance to find a pair of exactly the threshold.

    >>> texts = {"a": "one two three four five", "b": "one two three four five", "c": "one two three four six", "d": "nothing like it"}
    >>> found = NearDuplicates(texts, 256, threshold=0.5, recall=0.999)
    >>> found.of("a")
    [('b', 1.0), ('c', 0.5)]
    >>> found.pairs()
    [('a', 'b', 1.0), ('a', 'c', 0.5), ('b', 'c', 0.5)]
    >>> found.clusters()
    [[('a', 1.0), ('b', 1.0), ('c', 0.5)]]

    """

    def __init__(
        self,
        documents: Documents,
        num_permutations: int = 128,
        num_bands: int | None = None,
        threshold: float = 0.8,
        *,
        recall: float = 0.99,
        tokens: str = "word",
        k: int | None = None,
        bag: bool = False,
        normalize: bool = True,
        keep_case: bool = False,
        scheme: str = "fast",
        seed: int = 1,
        ignore_common: float = 0,
        templates: Iterable[str] = (),
        hash_key: str = "",
        jobs: int | None = None,
    ) -> None:
        bands = BandParams(threshold, recall, bands=num_bands or 0)
        self.plan = band_plan.plan_bands(num_permutations, bands)
        self.threshold = threshold
        params = replace(
            _params(tokens, k, bag, normalize, keep_case, hash_key, scheme, num_permutations, seed),
            bands=bands,
        )
        threads, texts = jobs or count_processors(), list(templates)
        source: list[bytes] | Collection
        if isinstance(documents, str | os.PathLike) and not ignore_common and not texts:
            source = [os.fsencode(documents)]
        else:
            source = _collect(documents, params, ignore_common, texts, threads)
        self._answer = pipeline.find_near_duplicates(source, params, jobs=threads)
        _refuse_nothing(documents, self._answer.collection)
        self.minhash = MinHash.of_collection(self._answer.collection)

    def of(self, doc: str) -> list[tuple[str, float]]:
        """(name, exact similarity) of the near-duplicates of a document, most similar first. Raises
        KeyError for an unknown name.
        """
        row, index = self.minhash.row(doc), self._answer.index
        sets = self.minhash.sets
        keys = np.ascontiguousarray(index.table.keys[:, row])
        if not len(sets[row]):
            return []
        near = pipeline.find_neighbours(
            index, sets.take, self.threshold, keys=keys, shingles=sets[row], itself=row
        )
        names = self.minhash.all_docs()
        return [
            (names[other], score)
            for other, score in zip(near.documents.tolist(), near.similarity.tolist(), strict=True)
        ]

    def pairs(self) -> list[tuple[str, str, float]]:
        """(name, name, exact similarity) of all pairs, most similar first: what `lshdup pairs`
        prints.
        """
        names = self.minhash.all_docs()
        rows = (
            row
            for piece in self._answer.pairs.pieces()
            for row in zip(*(column.tolist() for column in piece), strict=True)
        )
        return [(names[left], names[right], score) for left, right, score in rows]

    def clusters(self) -> list[list[tuple[str, float]]]:
        """Groups of two or more, the largest first: (name, exact similarity to the first); the
        first has most shingles, and is to be kept: what `lshdup clusters` prints.
        """
        collection, params = self.minhash.collection, ClusterParams()
        order, _ = preference(collection.documents, collection.sizes, params, ())
        groups = pipeline.find_clusters(
            collection, self._answer.index, self.minhash.sets.take, self.threshold, params, order
        ).groups
        listed = list_clusters(groups)
        names = self.minhash.all_docs()
        made: list[list[tuple[str, float]]] = [[] for _ in range(groups.count)]
        for number, document in zip(
            listed.numbers.tolist(), listed.documents.tolist(), strict=True
        ):
            made[number - 1].append((names[document], float(groups.similarity[document])))
        return made

    @staticmethod
    def near_duplicate_detector(
        documents: Documents,
        num_permutations: int,
        num_bands: int,
        s: float,
        doc: str,
        **keywords: object,
    ) -> list[str]:
        """R1's function: the LSH candidates of `doc`, minus those whose *estimated* similarity is
        below s.

        Keywords go to `MinHash`; R1's own setting is ``tokens="terms", scheme="linear"``. Verifying
        by estimates loses near-duplicates just above s: `of` verifies exactly.

        >>> texts = ["one two three four five", "one two three four five", "something else"]
        >>> NearDuplicates.near_duplicate_detector(texts, 100, 20, 0.9, "0")
        ['1']
        """
        minhash = MinHash(documents, num_permutations, **keywords)  # type: ignore[arg-type]
        lsh = LSH(minhash.minhash_matrix(), minhash.all_docs(), num_bands)
        return [
            other
            for other in lsh.near_duplicates_of(doc)
            if minhash.approximate_jaccard(doc, other) >= s
        ]


def _plan(perms: int, n_bands: int, buckets: int) -> band_plan.BandPlan:
    if not 1 <= n_bands <= perms:
        message = f"{n_bands} bands of {perms} rows: there must be 1 to {perms}"
        raise ParameterError(message, "use fewer bands or more permutations")
    return band_plan.BandPlan(n_bands, perms // n_bands, 1.0, 0.0, buckets)


def _params(
    tokens: str, k: int | None, bag: bool, normalize: bool, keep_case: bool, hash_key: str,
    scheme: str, perms: int, seed: int,
) -> Params:  # fmt: skip
    key = os.fsencode(hash_key)
    shingle = ShingleParams(tokens, k or 0, bag, normalize, keep_case, secret=key)
    return Params(shingle=shingle, sketch=SketchParams(scheme, perms, seed))


def _collect(
    documents: Documents, params: Params, ignore_common: float, templates: list[str], jobs: int
) -> Collection:
    """Return the collection of a folder or of texts in memory, with its sets, filtered, and
    signatures.
    """
    collection = _collect_sets(documents, params.shingle, jobs)
    if not ignore_common and not templates:
        return sketched(collection, params.sketch, jobs)
    texts = [text.encode("utf-8") for text in templates]
    template = distinct(Shingler(params.shingle).shingle_texts(texts).values)[0]
    shingle_filter = build_filter(collection, FilterRequest(template, ignore_common), jobs)
    return filter_collection(collection, shingle_filter, params.sketch, jobs, keep=True)


def _collect_sets(documents: Documents, shingle: ShingleParams, jobs: int) -> Collection:
    if isinstance(documents, str | os.PathLike):
        found = find_documents(
            [os.fsencode(documents)], DocumentParams(), id_lists=shingle.tokens == "ids"
        )
        collection = collect(found, shingle, jobs=jobs, keep=pipeline.EVERY_SET)
        _refuse_nothing(documents, collection)
        return collection
    if isinstance(documents, Mapping):
        names, texts = list(documents.keys()), list(documents.values())
    else:
        texts = list(documents)
        names = [str(at) for at in range(len(texts))]
    sets = Shingler(shingle).shingle_texts([text.encode("utf-8") for text in texts])
    zeros = np.zeros(len(names), np.int64)
    listed = DocumentList(
        StringTable.from_strings(os.fsencode(name) for name in names), zeros, zeros
    )
    return Collection(listed, shingle, sets.sizes, fingerprint_sets(sets, shingle), sets=sets)


def _refuse_nothing(documents: Documents, collection: Collection) -> None:
    """Raise InputError if a folder holds no documents."""
    is_folder = isinstance(documents, str | os.PathLike)
    if is_folder and not len(collection.documents) and not collection.skipped:
        message = f"{os.fspath(documents)}: there are no documents in it"  # type: ignore[arg-type]
        raise InputError(message, "name a folder with text files")
