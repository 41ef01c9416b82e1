"""Passages of documents: one pass over them, then the comparison of their tokens."""

from lshdup.collection.collection import Collection
from lshdup.frozen import dataclass
from lshdup.matching.passages import Passages


@dataclass(frozen=True)
class PassagesFound:
    """The passages of a collection, or those that stand both in it and in another one.

    passages : documents from 0 on are those of `here`; documents of `there` are behind them.
    here, there : the collections; there is None without --against.
    """

    passages: Passages
    here: Collection
    there: Collection | None = None
