"""Shingle sets and signatures of a collection: the class interface of R1."""

import os
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from lshdup.api.options import Documents, Options, collect_documents, in_keywords, params_of, run_of
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.compare.verification import containment, jaccard
from lshdup.lsh.candidates import LSH as LSH
from lshdup.lsh.candidates import row_of
from lshdup.lsh.signatures import estimate


class MinHash:
    """Shingle sets and signatures of a collection.

    Parameters
    ----------
    documents : folder or file to read (as for `lshdup pairs`); or texts in memory:
        a mapping of names to texts, or an iterable of texts, whose names are "0", "1", …; of a
        Series of pandas its index has the names. Or a table of pandas, polars or Arrow, or one
        that streams arrays of Arrow: `text_field` (else "text") and `id_field` name its columns.
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
        with in_keywords():
            run, params = run_of(options), params_of(num_permutations, options)
            self._hold(run, collect_documents(run, documents, params, options))

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
        return float(estimate(self._run, self.signatures, *pair)[0])

    def minhash_matrix(self) -> NDArray[np.uint32]:
        """Return all signatures as in R1: uint32 array of shape (K, n_docs), one a column."""
        return np.ascontiguousarray(self.signatures.T)
