"""Listings of commands: where they are printed, and pairs with the names of their documents."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.messages import Cell
from lshdup.base.system import is_stdout
from lshdup.cli.conflicts import is_typed
from lshdup.cli.console import Console
from lshdup.cli.output.target import (
    ANNOTATIONS,
    PIECE_ROWS,
    Layout,
    Piece,
    Target,
    cut_pieces,
    format_of,
)
from lshdup.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.compare.fingerprints import Fingerprints


def make_target(options: dict[str, Any]) -> Target:
    """Return the file or stream that the output options of a command name, and its format.

    Errors: ParameterError if the options exclude each other, InputError if the file cannot be
    written.
    """
    output = options["output"]
    path = None if output is None or is_stdout(output) else Path(output)
    target = Target(
        _format(options, path),
        options["nul"],
        path,
        options["color"],
        options["header"],
        options["max_rows"],
    )
    if target.style != "table" and is_typed(click.get_current_context(), "max_rows"):
        message = f"--max-rows is for tables, and this listing is {target.style}"
        raise ParameterError(message, "add --format table, or leave --max-rows out")
    others = [f"--{name}" for name in ("histogram", "unmatched") if options.get(name)]
    if target.style in ANNOTATIONS and others:
        message = f"--format {target.style} is of pairs, not of {others[0]}"
        raise ParameterError(message, "choose another format, or leave that out")
    return target


def _format(options: dict[str, Any], path: Path | None) -> str:
    """Return the format: typed, else of the ending of the file, else of the variable."""
    chosen: str = options["format_"] or ""
    if path is None or (chosen and is_typed(click.get_current_context(), "format_")):
        return chosen
    by_name = "sarif" if path.suffix.lower() == ".sarif" and _writes_sarif() else format_of(path)
    if options["nul"] and by_name not in ("", "tsv"):
        message = f"-0 and -o {path} exclude each other, as the file is to be {by_name}"
        raise ParameterError(message, "leave -0 out, or say --format tsv")
    return by_name or chosen


def _writes_sarif() -> bool:
    parameters = click.get_current_context().command.params
    return any("sarif" in getattr(each.type, "choices", ()) for each in parameters)


def print_rows(
    console: Console,
    target: Target,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    layout: Layout | None = None,
) -> None:
    """Print a listing; warn if names make its lines ambiguous."""
    print_pieces(console, target, columns, cut_pieces(rows), layout=layout)


def print_pieces(
    console: Console,
    target: Target,
    columns: Sequence[str],
    pieces: Iterable[Piece],
    total: int | None = None,
    layout: Layout | None = None,
) -> None:
    """Print a listing of many rows at a time, as `Target.write_pieces`; warn likewise."""
    if not target.write_pieces(columns, pieces, total, layout):
        console.warn(
            "some names hold tabs or newlines: lines are ambiguous; use -0, or --format jsonl"
        )


def group_layout(target: Target) -> Layout | None:
    """Return the layout of `clusters` for people, unless --header asks for a table of columns."""
    from lshdup.cli.output.tables import groups

    return None if target.header else groups


#: Names that are kept: more are made again for each piece that they are in.
_MOST_NAMES = 1 << 20


class DocumentNames:
    """Names of n documents, each made once although a name is in many pairs, unless n is large.

    n : number of documents.
    typed : returns the names of an ascending int64 array of documents.
    """

    def __init__(self, n: int, typed: "Callable[[NDArray[np.int64]], list[bytes]]") -> None:
        import numpy as np

        kept = n if n <= _MOST_NAMES else 0
        self._names: NDArray[Any] = np.empty(kept, object)
        self._known = np.zeros(kept, bool)
        self._typed = typed

    def of(self, documents: "NDArray[np.integer]") -> "NDArray[Any]":
        """Return the names of documents as an array of bytes objects."""
        import numpy as np

        from lshdup.base.ragged import distinct

        if not len(self._known):
            every = distinct(documents)[0].astype(np.int64)
            names: NDArray[Any] = np.empty(len(every), object)
            names[:] = self._typed(every)
            return names[np.searchsorted(every, documents)]
        new = distinct(documents[~self._known[documents]])[0].astype(np.int64)
        for document, name in zip(new.tolist(), self._typed(new), strict=True):
            self._names[document] = name
        self._known[new] = True
        named: NDArray[Any] = self._names[documents]
        return named


#: Makes columns of pairs from arrays: left, right, scores, and perhaps more.
Cells = Callable[..., list[list[Cell]]]


def similarities(_left: Any, _right: Any, similarity: Any) -> list[list[Cell]]:
    """Return the column of similarities."""
    return [similarity.tolist()]


def containments(sizes: "NDArray[np.int64]") -> Cells:
    """Return the function that makes the columns of pairs of containment.

    sizes : int64 array of shape (n,), shingles of each document.
    """
    return lambda left, right, scores, *_: [
        each.tolist() for each in (scores.real, scores.imag, sizes[left], sizes[right])
    ]


def relations_of(sizes: "NDArray[np.int64]") -> Cells:
    """Return the function that makes the column of which document of a pair is inside the other."""
    from lshdup.compare.verification import relations

    return lambda left, right, *_: [list(relations(sizes[left], sizes[right]))]


def name_pairs(
    pieces: "Iterable[tuple[Any, ...]]",
    names: DocumentNames,
    prints: "Fingerprints",
    cells: Cells,
    last: Cells,
) -> "Iterator[Piece]":
    """Yield pieces of pairs with names instead of numbers of documents, and how much they are the
    same.

    pieces : arrays left, right, scores, and perhaps more.
    prints : fingerprints of the documents.
    cells, last : make the columns before and behind how much they are the same.
    """
    for piece in pieces:
        a, b = names.of(piece[0]), names.of(piece[1])
        for start in range(0, len(a), PIECE_ROWS):
            part = slice(start, start + PIECE_ROWS)
            arrays = [each[part] for each in piece]
            same = prints.words(*arrays[:2])
            named = a[part].tolist(), b[part].tolist()
            yield [*named, *cells(*arrays), same, *last(*arrays)]
