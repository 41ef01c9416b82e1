"""The class interface of R1 for Python programs: MinHash, LSH and NearDuplicates.

Everything is computed in the constructor: objects hold plain arrays and names, have no hidden
state, and can be pickled.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from lshdup import pipeline
from lshdup.base.ragged import RaggedSets, distinct
from lshdup.base.run import Run, count_processors
from lshdup.base.wording import did_you_mean
from lshdup.collection.collect import EVERY_SET, collect, sketch_collection
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.collection.from_texts import collect_texts
from lshdup.collection.set_source import side_of
from lshdup.compare.clusters import list_clusters
from lshdup.compare.comparing import find_neighbours
from lshdup.compare.keep_rules import preference
from lshdup.compare.sides import Sides
from lshdup.compare.verification import containment, jaccard
from lshdup.errors import InputError, ParameterError
from lshdup.lsh import band_plan
from lshdup.lsh.candidates import LSH as LSH
from lshdup.lsh.candidates import candidates_of, documents_to_compare, row_of
from lshdup.lsh.signatures import estimate
from lshdup.params import (
    FEW_TOKENS,
    BandParams,
    ClusterParams,
    DocumentParams,
    PairParams,
    Params,
    ShingleParams,
    SketchParams,
)
from lshdup.shingling.shingler import Shingler
from lshdup.sources.finding import find_documents

#: A folder or file, a mapping of names to texts, or texts, whose names are then "0", "1", …
Documents = str | os.PathLike[str] | Mapping[str, str] | Iterable[str]


class Options(TypedDict, total=False):
    """The keywords of `MinHash` and `NearDuplicates`; defaults are those of the command line."""

    #: How a text becomes a shingle set: see `ShingleParams`. R1's terms are ``tokens="terms"``.
    tokens: str
    k: int | None
    bag: bool
    normalize: bool
    keep_case: bool
    join_hyphens: bool
    markup: str
    mail: bool
    min_tokens: int
    hash_key: str
    #: "fast", "classic" or "linear" (see `lshdup.lsh.signatures`), and the source of randomness.
    scheme: str
    seed: int
    #: The filter: shingles of more documents than this limit, and shingles of these texts.
    ignore_common: float
    templates: Iterable[str]
    #: Of files of records: the fields of a record with its text and its name.
    text_field: str
    id_field: str
    #: Threads; None: one a processor. The result is the same for any number.
    jobs: int | None


class MinHash:
    """Shingle sets and signatures of a collection.

    Parameters
    ----------
    documents : folder or file to read (as for `lshdup pairs`); or texts in memory:
        a mapping of names to texts, or an iterable of texts, whose names are "0", "1", …; of a
        Series of pandas its index has the names.
    num_permutations : K, rows of a signature. The standard error of an estimate is
        sqrt(s (1 - s) / K).
    options : see `Options`.

    Errors: InputError if the path does not exist or holds no documents, or if a text is no str;
    ParameterError for an unknown keyword, a value of another type, or outside its domain.

    >>> texts = {"a": "the cat sat on the mat", "b": "the cat sat on the mat today", "c": "else"}
    >>> minhash = MinHash(texts, 256, k=2)
    >>> minhash.all_docs()
    ['a', 'b', 'c']
    >>> round(minhash.exact_jaccard("a", "b"), 4)
    0.8333
    >>> abs(minhash.approximate_jaccard("a", "b") - 5 / 6) < 4 * (5 / 36 / 256) ** 0.5
    True
    >>> minhash.minhash_matrix().shape, minhash.num_terms, minhash.num_permutations
    ((256, 3), 7, 256)

    """

    def __init__(
        self, documents: Documents, num_permutations: int = 128, **options: Unpack[Options]
    ) -> None:
        with _in_keywords():
            run, params = _run_of(options), _params_of(num_permutations, options)
            self._hold(run, _collect(run, documents, params, options))

    @classmethod
    def of_collection(cls, run: Run, collection: Collection) -> Self:
        """Return the object that holds a collection with sets and signatures."""
        made = cls.__new__(cls)
        made._hold(run, collection)
        return made

    def _hold(self, run: Run, collection: Collection) -> None:
        self._run, self.collection = run, collection
        #: shingle sets in the order of `all_docs`: uint64 values, ascending within each set
        self.sets: RaggedSets = collection.filtered_sets(run.arrays)
        self._names = [os.fsdecode(name) for name in collection.documents.names]
        self._rows = {name: row for row, name in enumerate(self._names)}

    def all_docs(self) -> list[str]:
        """Return all names in the order of the columns of `minhash_matrix`.

        Names of a folder are in byte order, names of texts as they were given.
        """
        return list(self._names)

    def row(self, doc: str | int) -> int:
        """Return the column of a document in `minhash_matrix`. Raise KeyError for an unknown
        name.
        """
        return row_of(self._rows, doc)

    @property
    def num_permutations(self) -> int:
        """K, the rows of a signature."""
        return int(self.signatures.shape[1])

    @property
    def num_terms(self) -> int:
        """Number of different shingles in the collection (R1's n)."""
        return len(np.unique(self.sets.values))

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """uint32 array of shape (n_docs, K); 2^32 - 1 for a document without tokens."""
        assert self.collection.signatures is not None
        return self.collection.signatures

    def exact_jaccard(self, first: str | int, second: str | int) -> float:
        """Return |A ∩ B| / |A ∪ B| of two shingle sets; 0 if both are empty.

        Raise KeyError for an unknown name.
        """
        pair = np.array([self.row(first)]), np.array([self.row(second)])
        return float(jaccard(self._run, self.sets, *pair)[0])

    def exact_containment(self, first: str | int, second: str | int) -> float:
        """Return |A ∩ B| / min(|A|, |B|) of two shingle sets; 0 if one is empty.

        Raise KeyError for an unknown name.
        """
        pair = np.array([self.row(first)]), np.array([self.row(second)])
        return float(containment(self._run, self.sets, *pair)[0].real)

    def minhash_sig(self, doc: str | int) -> NDArray[np.uint32]:
        """Return a signature: uint32 array of shape (K,). Raise KeyError for an unknown name."""
        signature: NDArray[np.uint32] = self.signatures[self.row(doc)].copy()
        return signature

    def approximate_jaccard(self, first: str | int, second: str | int) -> float:
        """Return the share of agreeing rows: an unbiased estimate of `exact_jaccard`.

        The scheme "linear" is biased. A document without tokens has similarity 0 to all.
        Raise KeyError for an unknown name.
        """
        left, right = self.row(first), self.row(second)
        if not self.collection.sizes[left] or not self.collection.sizes[right]:
            return 0.0
        pair = np.array([left]), np.array([right])
        return float(estimate(self._run, self.signatures, *pair).similarity[0])

    def minhash_matrix(self) -> NDArray[np.uint32]:
        """Return all signatures as in R1: uint32 array of shape (K, n_docs), one a column."""
        return np.ascontiguousarray(self.signatures.T)


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
        with _in_keywords():
            params = _params_of(
                num_permutations, options, "num_bands", "threshold", "recall", "measure"
            )
            pairs = PairParams(measure=measure)
            bands = BandParams(threshold, recall, bands=num_bands or 0)
            is_banded = measure == "jaccard"
            self.plan = band_plan.plan_bands(num_permutations, bands) if is_banded else None
            self._find(documents, replace(params, bands=bands, pairs=pairs), options)

    def _find(self, documents: Documents, params: Params, options: Options) -> None:
        self.threshold, self._run = params.bands.threshold, _run_of(options)
        self._named = [os.fsencode(documents)] if isinstance(documents, str | os.PathLike) else []
        in_one_pass = not _is_filtered(options) and params.sketch.scheme != "linear"
        run = self._run
        source = (in_one_pass and self._named) or _collect(run, documents, params, options)
        self._answer = pipeline.find_near_duplicates(self._run, source, params)
        _refuse_nothing(run, documents, self._answer.collection, params)
        self.minhash = MinHash.of_collection(run, self._answer.collection)

    def of(self, doc: str | int) -> list[tuple[str, float]]:
        """Return (name, exact similarity) of the near-duplicates, most similar first.

        Of containment: of the documents that are inside the document, or that it is inside of.
        Raise KeyError for an unknown name.
        """
        row, index = self.minhash.row(doc), self._answer.index
        collection, sets = self.minhash.collection, self.minhash.sets
        if not len(sets[row]):
            return []
        side = side_of(self._run, collection, sets)
        run, measure = self._run, "containment" if index is None else "jaccard"
        sides = Sides.of(run, side, duplicate_of=None if index is None else index.duplicate_of)
        if index is None:
            met = documents_to_compare(run, sides.duplicate_of, sides.sizes)
        else:
            met = candidates_of(index.table, np.ascontiguousarray(index.table.keys[:, row]))
        near = find_neighbours(run, sets[row], met, sides, self.threshold, measure, itself=row)
        names = self.minhash.all_docs()
        scores = near.similarity.real.tolist()
        return [
            (names[other], score)
            for other, score in zip(near.documents.tolist(), scores, strict=True)
        ]

    def pairs(self) -> list[tuple[str, str, float]]:
        """Return (name, name, exact similarity) of all pairs, in the order of `lshdup pairs`.

        Of containment, the first document is inside the second one.
        """
        names = self.minhash.all_docs()
        return [
            (names[left], names[right], score)
            for *pair, scores in self._answer.pairs.pieces()
            for left, right, score in zip(
                *(each.tolist() for each in (*pair, scores.real)), strict=True
            )
        ]

    def clusters(self) -> list[list[tuple[str, float]]]:
        """Return the clusters of two or more, the largest first, as `lshdup clusters` does.

        Each is a list of (name, exact similarity to the first), which is kept: of files the one
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
        names = self.minhash.all_docs()
        made: list[list[tuple[str, float]]] = [[] for _ in range(groups.count)]
        numbers, documents = listed.numbers.tolist(), listed.documents.tolist()
        for number, document in zip(numbers, documents, strict=True):
            made[number - 1].append((names[document], float(groups.similarity[document])))
        return made

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


def _run_of(options: Options) -> Run:
    return Run.quiet(options.get("jobs") or count_processors())


def _collect(run: Run, documents: Documents, params: Params, options: Options) -> Collection:
    """Return a collection with its sets and signatures, filtered."""
    collection = _collect_sets(run, documents, params)
    if not _is_filtered(options):
        return sketch_collection(run, collection, params.sketch)
    texts = list(map(str.encode, options.get("templates", ())))
    template = distinct(Shingler(params.shingle.of_any_size()).shingle_texts(texts).values)[0]
    least = params.shingle.count_shingles(options.get("min_tokens", FEW_TOKENS))
    request = FilterRequest(template, options.get("ignore_common", 0.0), least)
    shingle_filter = build_filter(run, collection, request)
    filtered = filter_collection(run, collection, shingle_filter)
    return sketch_collection(run, filtered, params.sketch)


def _collect_sets(run: Run, documents: Documents, params: Params) -> Collection:
    shingle = params.shingle
    if isinstance(documents, str | os.PathLike):
        ids = shingle.tokens == "ids"
        found = find_documents(run, [os.fsencode(documents)], params.documents, id_lists=ids)
        collection = collect(run, found, shingle, keep=EVERY_SET)
        _refuse_nothing(run, documents, collection, params)
        return collection
    if params.documents != DocumentParams():
        message = "text_field and id_field are of files of records, not of texts"
        raise ParameterError(message, "leave them out; the keys of a mapping are names")
    return collect_texts(documents, shingle)


def _refuse_nothing(run: Run, documents: Documents, collection: Collection, params: Params) -> None:
    """Raise InputError if a folder or file holds no documents, or only records without texts."""
    if not isinstance(documents, str | os.PathLike) or len(collection.documents):
        return
    skipped = [each.skipped for each in collection.skipped]
    find_documents(run.but(skipped=skipped.append), [os.fsencode(documents)], params.documents)
    row = next((each for each in skipped if each.reason.is_of_row), None)
    if row is not None:
        message = f"{documents}: no record has a text ({os.fsdecode(row.name)}: {row.reason})"
        hint = "name its field with text_field, or give texts: a list, or a mapping of names"
        raise InputError(message, hint)
    if not collection.skipped:
        message = f"{documents}: there are no documents in it"
        raise InputError(message, "name a folder with text files")


# --- keywords -> parameters -----------------------------------------------------------------------

#: Options of the command line whose keywords have other names.
_KEYWORDS = {"perms": "num_permutations", "bands": "num_bands"}


def _params_of(perms: int, options: Options, *others: str) -> Params:
    """Return the parameters that keywords say. others : keywords that are none of `Options`.

    Raise ParameterError for an unknown keyword, or a value outside its domain.
    """
    known = ("num_permutations", *Options.__annotations__, *others)
    for name in options:
        if name not in known:
            message = f"{name!r} is no keyword here"
            names = f"there are {', '.join(known)}"
            raise ParameterError(message, " ".join((did_you_mean(name, known), names)).strip())
    for name, value in (("k", options.get("k")), ("jobs", options.get("jobs"))):
        is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (is_whole and value >= 1):
            must = "at least 1" if is_whole else "a whole number"
            message = f"{name} is {value!r}; it must be {must}"
            raise ParameterError(message, "or None, for the default")
    if isinstance(options.get("templates"), str):
        message = f"templates is {options['templates']!r}; it must be a list of str"
        raise ParameterError(message)
    shingle = ShingleParams(
        options.get("tokens", "word"),
        options.get("k") or 0,
        options.get("bag", False),
        options.get("normalize", True),
        options.get("keep_case", False),
        join_hyphens=options.get("join_hyphens", False),
        markup=options.get("markup", "auto"),
        mail=options.get("mail", False),
        min_tokens=options.get("min_tokens", 0),
        secret=os.fsencode(options.get("hash_key", "")),
    )
    sketch = SketchParams(options.get("scheme", "fast"), perms, options.get("seed", 1))
    fields = DocumentParams(
        text_field=options.get("text_field", ""), id_field=options.get("id_field", "")
    )
    return Params(documents=fields, shingle=shingle, sketch=sketch)


@contextmanager
def _in_keywords() -> Iterator[None]:
    """Name keywords instead of options of the command line in the errors of a block."""

    def name_keywords(words: str) -> str:
        return re.sub(
            r"(?<![\w-])(?:--|-(?=k\b))([a-z][a-z-]*)",
            lambda option: _KEYWORDS.get(option[1], option[1].replace("-", "_")),
            words,
        )

    try:
        yield
    except ParameterError as error:
        raise ParameterError(name_keywords(error.message), name_keywords(error.hint)) from None


def _is_filtered(options: Options) -> bool:
    """Return whether keywords say which shingles are filtered."""
    return bool(options.get("ignore_common") or options.get("templates"))
