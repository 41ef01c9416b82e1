"""`clusters --write` and `--removed`: files of rows without those that may go, and a list of these.
No command of its own.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from lshdup.cli.columns import REMOVED
from lshdup.cli.conflicts import is_set, refuse
from lshdup.cli.console import Console
from lshdup.cli.output.target import PIECE_ROWS, Target, format_of
from lshdup.cli.printing import print_pieces
from lshdup.errors import InputError, ParameterError
from lshdup.skipped import Reason
from lshdup.utils.atomic import check_writable, replace_file
from lshdup.utils.messages import chance, count_of, printable
from lshdup.utils.system import STDOUT, is_stdout

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from lshdup.cli.output.target import Piece
    from lshdup.documents.document_list import DocumentList
    from lshdup.matching.clusters import Clusters
    from lshdup.matching.sameness import Prints
    from lshdup.skipped import Skipped
    from lshdup.utils.json_cells import Cell

#: Files that are named when they are written.
_NAMED = 10


def prints_listing(ctx: click.Context, options: dict[str, Any]) -> bool:
    """Return whether the command prints a listing, which --write has instead unless it is typed."""
    return options["write"] is None or is_set(ctx, "emit") or options["output"] is not None


def check_outputs(ctx: click.Context, options: dict[str, Any]) -> None:
    """Raise before anything is read if --write or --removed cannot be written."""
    write, removed, output = options["write"], options["removed"], options["output"]
    if write is None:
        refuse(ctx, ("removed",), "without --write, which removes rows")
        return
    listing = (output or "-") if prints_listing(ctx, options) else None
    given = {"--write": write, "--removed": removed, "the listing (--emit, -o)": listing}
    on_stdout = [what for what, path in given.items() if path is not None and is_stdout(path)]
    if len(on_stdout) > 1:
        message = f"{on_stdout[0]} and {on_stdout[1]} cannot both go to standard output"
        raise ParameterError(message, "name a file for one of them")
    for path in (write, removed):
        if path is not None and not is_stdout(path):
            check_writable(Path(path))
    if removed is None:
        return
    format_of(removed, "--removed")
    if output is not None and not is_stdout(output):
        _refuse_same("-o", Path(output), "--removed", removed)


def check_documents(options: dict[str, Any], documents: "DocumentList", read: bool) -> None:
    """Raise before the work if --write or --removed do not suit DOCS, as far as is known then."""
    if options["write"] is None:
        return
    from lshdup.documents.rewriting.targets import check_target, refuse_document, refuse_other_files

    write, removed = options["write"], options["removed"]
    targets = check_target(documents, write, read=read)[1]
    if removed is not None:
        refuse_document(removed, documents, "--removed")
    outputs = {"-o": options["output"], "--removed": removed}
    files = {what: Path(path) for what, path in outputs.items() if path and not is_stdout(path)}
    for target in targets:
        for what, path in files.items():
            _refuse_same("--write", target, what, path)
    if not is_stdout(write) and Path(write).is_dir():
        refuse_other_files(Path(write), [*targets, *files.values()])
    if targets == [STDOUT] and documents.has_parquet and sys.stdout.isatty():
        message = "a Parquet file is no text for a terminal"
        raise ParameterError(message, "name a file, or send it to one: --write - > FILE")


def _refuse_same(option: str, path: Path, other: str, others: Path) -> None:
    """Raise ParameterError if two options name one file, by any name."""
    if path.resolve() == others.resolve():
        message = f"{option} and {other} are both {others}"
        raise ParameterError(message, "name two files")


def check_others(
    options: dict[str, Any], documents: "DocumentList", others: "DocumentList"
) -> None:
    """Raise before the work if --write or --removed would replace a file of OTHER."""
    if options["write"] is None:
        return
    from lshdup.documents.rewriting.targets import check_target, refuse_document

    for path in check_target(documents, options["write"])[1]:
        refuse_document(path, others, "--write")
    if options["removed"] is not None:
        refuse_document(options["removed"], others, "--removed")


def write(
    console: Console,
    options: dict[str, Any],
    clusters: "Clusters",
    sides: "tuple[DocumentList, ...]",
    prints: "Prints",
    uncompared: "list[Skipped]",
) -> None:
    """Write the list of the rows that go, then the files without them, and say how many rows go.

    The list comes first: a run that is killed has removed nothing that no list names.

    Parameters
    ----------
    console, options : of the command.
    clusters : documents of OTHER are behind those of DOCS.
    sides : DOCS, and if there are any, the documents of OTHER.
    prints : fingerprints of the documents of all sides.
    uncompared : rows of DOCS that are no documents, and stay.

    """
    from lshdup.documents.rewriting.rewrite import count_bytes, write_without

    documents, dropped, removed = sides[0], clusters.dropped, options["removed"]
    not_compared = clusters.representative[: len(documents)] < 0
    refuse_nothing(console, int((~not_compared).sum()), uncompared)
    if removed is not None:
        path = None if is_stdout(removed) else removed
        target = Target(format_of(removed, "--removed") or "jsonl", path=path)
        print_pieces(console, target, tuple(REMOVED), _list_removed(clusters, sides, prints))
        where = "standard output" if path is None else removed
        console.summarize(f"{where} lists {count_of(len(dropped), 'removed row')}")
    paths = write_without(
        documents, dropped, options["write"], console.progress, open_target=open_target
    )
    size = say_written(console, paths, options["write"])
    rows = len(documents) + len(uncompared)
    bare = int(not_compared.sum()) + len(uncompared)
    written = "" if size is None else f"; {size:,} of {count_bytes(documents):,} bytes"
    console.summarize(
        f"{count_of(rows, 'row')}: {rows - len(dropped):,} kept"
        f"{f' ({bare:,} of them not compared)' if bare else ''}, {len(dropped):,} dropped"
        f" ({chance(len(dropped) / max(rows, 1))}){written}{console.duration_of('write')}"
    )
    repeated = sum(each.reason == Reason.REPEATED for each in uncompared)
    if repeated:
        one = "row with an id that occurs before was not compared, and is"
        more = "rows with an id that occurs before were not compared, and are"
        console.warn(
            f"{count_of(repeated, one, more)} in what is written; leave --id-field out if ids "
            "repeat between files"
        )


def refuse_nothing(console: Console, compared: int, uncompared: "list[Skipped]") -> None:
    """Raise InputError if no document was compared: what is written would be a copy.

    compared : number of documents.
    uncompared : rows of DOCS that are no documents.
    """
    if not compared:
        example = console.first_error or next(iter(uncompared), None)
        hint = "no row has text that can be compared"
        if example is not None:
            hint = f"{printable(example.name)}: {example.reason}"
            hint += f" ({printable(example.detail)})" * bool(example.detail)
        message = "nothing was compared, so nothing is written"
        raise InputError(message, hint)


def open_target(path: Path) -> "AbstractContextManager[BinaryIO]":
    """Open a file that is written; it replaces an older one when it is complete."""
    return Target().stream() if path == STDOUT else replace_file(path)


def say_written(console: Console, paths: list[Path], write: str) -> int | None:
    """Name the files that were written; return their bytes, or None for standard output."""
    if paths == [STDOUT]:
        return None
    for path in paths[:_NAMED]:
        console.summarize(f"{path} is written")
    if len(paths) > _NAMED:
        console.summarize(f"… and {count_of(len(paths) - _NAMED, 'more file')} in {write}")
    return sum(path.stat().st_size for path in paths)


def _list_removed(
    clusters: "Clusters", sides: "tuple[DocumentList, ...]", prints: "Prints"
) -> "Iterator[Piece]":
    """Yield pieces of the rows that go, in document order: the columns of REMOVED."""
    own, dropped = clusters.representative, clusters.dropped
    for start in range(0, len(dropped), PIECE_ROWS):
        some = dropped[start : start + PIECE_ROWS]
        names, files = _name(sides, some)
        kept_names, kept_files = _name(sides, own[some])
        same = prints.words(some, own[some])
        yield names, kept_names, clusters.similarity[some].tolist(), files, kept_files, same


def _name(sides: "tuple[DocumentList, ...]", rows: Any) -> "tuple[list[Cell], list[Cell]]":
    """Return the names of documents, and the files that they are in, as typed from here."""
    import numpy as np

    from lshdup.utils.ragged import distinct

    different = distinct(rows)[0]
    names: list[Cell] = []
    files: list[Cell] = []
    begin = 0
    for side in sides:
        chosen = different[(different >= begin) & (different < begin + len(side))] - begin
        names += side.typed_names(chosen)
        files += side.typed_files_of(chosen)
        begin += len(side)
    at = np.searchsorted(different, rows).tolist()
    return [names[each] for each in at], [files[each] for each in at]
