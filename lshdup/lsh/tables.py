"""LSH, the banded hash tables of the class interface of R1, over a matrix of signatures."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from lshdup.base.messages import join_names
from lshdup.base.run import Run
from lshdup.errors import ParameterError
from lshdup.lsh import band_plan, band_table, candidates


def row_of(rows: Mapping[str, int], doc: str | int) -> int:
    """Return the row of a document. rows : by name; of a list, 0 is "0".

    Raise KeyError, which says names that there are, for an unknown one.

    >>> row_of({"0": 0, "1": 1}, 1), row_of({"0": 0, "1": 1}, "1")
    (1, 1)
    """
    row = rows.get(str(doc))
    if row is None:
        message = f"no document is called {doc!r}; names: {join_names(map(repr, rows))}"
        raise KeyError(message)
    return row


class LSH:
    """Banded hash tables over a signature matrix.

    Parameters
    ----------
    minhash_matrix : uint32 array of shape (K, n_docs), one signature a column, for instance
        `MinHash.minhash_matrix()`.
    doc_names : n_docs names, in the order of the columns.
    bands : b; each has K // b rows. More bands: more recall, more candidates, larger tables.
    buckets : number of buckets that the 64-bit keys of a band are folded into (R1: the smallest
        prime >= n_docs); 0: whole keys.

    Errors: ParameterError if shapes do not fit or there are more bands than rows.

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
        perms = matrix.shape[0]
        if not 1 <= bands <= perms:
            message = f"{bands} bands of {perms} rows: there must be 1 to {perms}"
            raise ParameterError(message, "use fewer bands or more permutations")
        self.plan = band_plan.BandPlan(bands, perms // bands, 1.0, 0.0, buckets)
        signatures = np.ascontiguousarray(matrix.T)
        # A column of 2^32 - 1 is a document without tokens: it has no near-duplicates.
        members = np.flatnonzero((signatures != 0xFFFFFFFF).any(axis=1))
        self._table = band_table.build_band_table(Run.quiet(), signatures, members, self.plan)
        self._members = members

    def near_duplicates_of(self, doc: str | int) -> list[str]:
        """Return the other documents in the buckets of a document, in the order of the columns."""
        row = row_of(self._rows, doc)
        if row not in self._members:
            return []
        near = candidates.candidates_of(self._table, np.ascontiguousarray(self._table.keys[:, row]))
        return [self._names[other] for other in near.tolist() if other != row]
