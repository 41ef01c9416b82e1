"""Passages: sequences of tokens that recur in a collection, and all their places."""

import numpy as np
from numpy.typing import NDArray

from lshdup.frozen import dataclass


@dataclass(frozen=True)
class Passages:
    """Passages and their places, the passages with the largest tokens × (places - 1) first.

    Equals are in the order of their first place. The places of a passage are in order, and none
    overlaps another.

    tokens : int64 array of shape (p,), length of each passage.
    starts : int64 array of shape (p + 1,); places of passage i are starts[i] … starts[i + 1] - 1.
    documents : int64 array of shape (m,), document of each place.
    first : int64 array of shape (m,), number of the place's first token in its document, from 0.
    """

    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    documents: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def places(self) -> NDArray[np.int64]:
        """The number of places of each passage: int64 array of shape (p,)."""
        return np.diff(self.starts)

    def take(self, passages: NDArray[np.int64]) -> "Passages":
        """Return these passages, in this order. passages : int64 array."""
        from lshdup.utils.ragged import offsets_of, ranges

        places = self.places[passages]
        rows = ranges(self.starts[passages], places)
        return Passages(
            self.tokens[passages], offsets_of(places), self.documents[rows], self.first[rows]
        )
