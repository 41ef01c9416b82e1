"""Pairs as they are printed: numbers of documents become names, some thousand rows at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lshdup.cli.console import Console
from lshdup.utils.messages import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.output import Cell, Piece

#: Rows that are made and printed at a time: few enough that they stay in the cache of a processor.
_ROWS = 1 << 13


class Names:
    """Names of documents, each made once: a name is in many pairs.

    typed : gives the names of some documents, an ascending int64 array of numbers below n.
    """

    def __init__(self, n: int, typed: "Callable[[NDArray[np.int64]], list[bytes]]") -> None:
        import numpy as np

        self._names: NDArray[Any] = np.empty(n, object)
        self._known = np.zeros(n, bool)
        self._typed = typed

    def of(self, documents: "NDArray[np.uint32]") -> "NDArray[Any]":
        """An array of bytes objects."""
        import numpy as np

        from lshdup.utils.ragged import distinct

        new = distinct(documents[~self._known[documents]])[0].astype(np.int64)
        for document, name in zip(new.tolist(), self._typed(new), strict=True):
            self._names[document] = name
        self._known[new] = True
        named: NDArray[Any] = self._names[documents]
        return named


def columns(
    pieces: "Iterable[tuple[Any, ...]]",
    names: Names,
    shown: "Callable[[Any], list[Cell]] | None" = None,
) -> "Iterator[Piece]":
    """Pieces of (left, right, similarity), arrays, as columns of names and numbers. shown : cells for the fourth array of each piece."""
    for left, right, similarity, *more in pieces:
        a, b = names.of(left), names.of(right)
        for start in range(0, len(left), _ROWS):
            part = slice(start, start + _ROWS)
            last = [shown(each[part]) for each in more] if shown is not None else []
            yield [a[part].tolist(), b[part].tolist(), similarity[part].tolist(), *last]


def say_found(console: Console, before: str, pairs: int, threshold: float, after: str) -> None:
    """How many pairs there are."""
    found = f"{before}{counted(pairs, 'pair')} of similarity {threshold:g} or more{after}"
    console.say(f"{found}{console.took('candidates')}; {console.seconds:.2f} s in all")


def say_funnel(
    console: Console, candidates: int, different: int, pairs: int, threshold: float
) -> None:
    """The same after a comparison through bands. different : pairs without those that copies bring."""
    say_found(
        console,
        _parts(f"{counted(candidates, 'candidate pair')} -> ", different, pairs),
        pairs,
        threshold,
        "",
    )


def say_joined(console: Console, different: int, pairs: int, threshold: float) -> None:
    """The same after the exact join."""
    say_found(console, _parts("", different, pairs), pairs, threshold, ", none missed")


def _parts(before: str, different: int, pairs: int) -> str:
    """How many pairs there were before their copies came in, if there are copies: of these one is compared, and each is in pairs of its
    own, so that there may be more pairs than candidates. before : what comes before the pairs.
    """
    return (
        before
        if pairs == different
        else f"copies compared once: {before}{counted(different, 'pair')}; with all copies "
    )
