"""`clusters --write` and `--removed`: files of rows without those that may go, and a list of these.
No command of its own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli.columns import REMOVED
from lshdup.cli.conflicts import refuse
from lshdup.cli.console import Console
from lshdup.cli.output.target import PIECE_ROWS, Target, format_of
from lshdup.cli.printing import print_pieces
from lshdup.skipped import Reason
from lshdup.utils.atomic import check_writable
from lshdup.utils.messages import chance, count_of

if TYPE_CHECKING:
    from lshdup.cli.output.target import Piece
    from lshdup.documents.document_list import DocumentList
    from lshdup.matching.clusters import Clusters
    from lshdup.matching.sameness import Prints
    from lshdup.skipped import Skipped
    from lshdup.utils.json_cells import Cell

#: Files that are named when they are written.
_NAMED = 10


def check_outputs(ctx: click.Context, options: dict[str, Any]) -> None:
    """Raise before anything is read if --write or --removed cannot be written."""
    write, removed = options["write"], options["removed"]
    if write is None:
        refuse(ctx, ("removed",), "without --write, which removes rows")
        return
    check_writable(Path(write), folder=True)
    if removed is None:
        return
    check_writable(removed)
    format_of(removed, "--removed")


def check_documents(
    options: dict[str, Any], documents: "DocumentList", read: bool
) -> Iterator[tuple[str, str]]:
    """Yield the files that --write writes. Raise before the work if it does not suit DOCS, as far
    as is known then.
    """
    if options["write"] is not None:
        from lshdup.documents.rewriting.targets import check_target

        for target in check_target(documents, options["write"], read=read)[1]:
            yield "--write", str(target)


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
    if removed is not None:
        target = Target(format_of(removed, "--removed") or "jsonl", path=removed)
        print_pieces(console, target, tuple(REMOVED), _list_removed(clusters, sides, prints))
        console.summarize(f"{removed} lists {count_of(len(dropped), 'removed row')}")
    paths = write_without(documents, dropped, options["write"], console.progress)
    for path in paths[:_NAMED]:
        console.summarize(f"{path} is written")
    if len(paths) > _NAMED:
        console.summarize(
            f"… and {count_of(len(paths) - _NAMED, 'more file')} in {options['write']}"
        )
    rows = len(documents) + len(uncompared)
    size = sum(path.stat().st_size for path in paths)
    bare = int((clusters.representative[: len(documents)] < 0).sum()) + len(uncompared)
    console.summarize(
        f"{count_of(rows, 'row')}: {rows - len(dropped):,} kept"
        f"{f' ({bare:,} of them not compared)' if bare else ''}, {len(dropped):,} dropped"
        f" ({chance(len(dropped) / max(rows, 1))}); {size:,} of {count_bytes(documents):,} bytes"
        f"{console.duration_of('write')}"
    )
    repeated = sum(each.reason == Reason.REPEATED for each in uncompared)
    if repeated:
        one = "row with an id that occurs before was not compared, and is"
        more = "rows with an id that occurs before were not compared, and are"
        console.warn(
            f"{count_of(repeated, one, more)} in what is written; leave --id-field out if ids "
            "repeat between files"
        )


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
