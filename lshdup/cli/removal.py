"""`--write`, `--removed` and `--annotate` of `clusters`, `passages`: files without what may go, its
list, and files with columns that say what may go.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from lshdup.base.atomic import check_writable, replace_file
from lshdup.base.frozen import dataclass
from lshdup.base.skipped import Reason
from lshdup.base.system import STDOUT, is_stdout
from lshdup.base.wording import chance, count_of, printable
from lshdup.cli.columns import ANNOTATIONS, OF_MAILS, REMOVED
from lshdup.cli.console import Console
from lshdup.cli.help import is_set
from lshdup.cli.output import (
    PIECE_ROWS,
    DocumentNames,
    Target,
    WriteOptions,
    format_of,
    print_pieces,
)
from lshdup.errors import InputError, ParameterError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from lshdup.base.skipped import Skipped, SkippedFile
    from lshdup.base.wording import Cell
    from lshdup.cli.output import Piece
    from lshdup.cli.session import Session
    from lshdup.collection.checksums import Checksums
    from lshdup.compare.clusters import Clusters
    from lshdup.compare.results import ClustersFound
    from lshdup.sources.document_list import DocumentList
    from lshdup.workspace.comparing import Comparison


class More(NamedTuple):
    """Further columns of a list of what goes.

    names : of the columns.
    make : returns the columns of some documents that go, given these and what is kept for them:
        int64 arrays.
    """

    names: tuple[str, ...]
    make: "Callable[[NDArray[np.int64], NDArray[np.int64]], list[Any]]"


#: Files that are named when they are written.
_NAMED = 10


def prints_listing(ctx: click.Context, options: WriteOptions) -> bool:
    """Return whether the command prints a listing: not if files are written, unless it is typed."""
    is_written = options.files[1] is not None or options.removed is not None
    return not is_written or is_set(ctx, "emit") or options.output is not None


def check_outputs(ctx: click.Context, options: WriteOptions) -> None:
    """Raise before anything is read if one of the files cannot be written."""
    (option, rows), removed, output = options.files, options.removed, options.output
    listing = (output or "-") if prints_listing(ctx, options) else None
    given = {option: rows, "--removed": removed, "the listing (--emit, -o)": listing}
    on_stdout = [what for what, path in given.items() if path is not None and is_stdout(path)]
    if len(on_stdout) > 1:
        message = f"{on_stdout[0]} and {on_stdout[1]} cannot both go to standard output"
        raise ParameterError(message, "name a file for one of them")
    for path in (rows, removed):
        if path is not None and not is_stdout(path):
            check_writable(Path(path), folder=path is rows)
    if removed is not None:
        format_of(removed, "--removed")


def check_documents(
    options: WriteOptions, documents: "DocumentList", read: bool
) -> Iterator[tuple[str, str]]:
    """Yield the files that --write or --annotate writes. Raise before the work if it does not suit
    DOCS, as far as is known then.
    """
    option, write = options.files
    if write is None:
        return
    from lshdup.sources.rewriting import check_target, refuse_other_files

    mails = options.takes_mails and option == "--write"
    targets = check_target(documents, write, read=read, mails=mails)[1]
    if targets == [STDOUT]:
        if documents.has_parquet and sys.stdout.isatty():
            message = "a Parquet file is no text for a terminal"
            raise ParameterError(message, f"name a file, or send it to one: {option} - > FILE")
        return
    for target in targets:
        yield option, str(target)
    if Path(write).is_dir():
        lists = (Path(path) for path in (options.output, options.removed) if path)
        refuse_other_files(Path(write), [*targets, *lists])


def write(
    session: "Session",
    options: WriteOptions,
    clusters: "Clusters",
    opened: "Comparison",
    more: "More | None" = None,
    *,
    copies_go: bool = True,
) -> None:
    """Write the list of the rows that go, then the files without them, and say how many rows go.

    The list comes first: a run that is killed has removed nothing that no list names.

    Parameters
    ----------
    session, options : of the command.
    clusters : documents of OTHER are behind those of DOCS.
    opened : the documents.
    more : further columns of the list.
    copies_go : whether rows with the id and the text of a row that stays go.

    """
    from lshdup.sources.records import ROWS
    from lshdup.sources.rewriting import write_without

    assert options.write is not None
    console, documents = session.console, opened.lists[0]
    uncompared = opened.here.list_skipped_records()
    not_compared = clusters.representative[: len(documents)] < 0
    skipped = [each.skipped for each in uncompared]
    every = opened.here.list_skipped()
    refuse_nothing(int((~not_compared).sum()), [each.skipped for each in every])
    gone = _find_gone(clusters, documents, uncompared, copies_go)
    noun = "mail" if documents.kinds.isdisjoint(ROWS) else "row"
    every_more = [more] if more is not None else []
    if opened.mails:
        every_more.append(More(tuple(OF_MAILS), lambda rows, _kept: opened.mails.columns(rows)))
    columns = (*REMOVED, *(name for each in every_more for name in each.names))
    pieces = _list_removed(clusters, opened, gone, every_more)
    list_removed(console, options, columns, pieces, f"removed {noun}")
    written = write_without(
        session.run, gone.documents, gone.rows, options.write, open_target,
        mails=options.takes_mails,
    )  # fmt: skip
    size = say_written(console, written.paths, options.write)
    rows, dropped = len(documents) + len(uncompared) + written.others, len(gone.rows)
    bare = rows - int((~not_compared).sum()) - (dropped - len(clusters.dropped))
    share = "" if size is None else f"; {size:,} of {written.read:,} bytes"
    console.summarize(
        f"{count_of(rows, noun)}: {rows - dropped:,} kept"
        f"{f' ({bare:,} of them not compared)' if bare else ''}, {dropped:,} dropped"
        f" ({chance(dropped / max(rows, 1))}){share}{console.duration_of('write')}"
    )
    kept = clusters.representative[gone.origins]
    others = int((opened.sides.prints.compare(gone.origins, kept) == 0).sum())
    if others and noun == "mail":
        are = count_of(others, "mail that goes is not the", "mails that go are not the")
        console.warn(
            f"{are} same as what is kept: other words, sender, date or attachments; "
            "--same text keeps such mails"
        )
    sources = tuple(each + b"/" for each in written.sources)
    left = [
        each.skipped
        for each in every
        if each.record is None
        and not (documents.path_of(each.skipped.name) + b"/").startswith(sources)
        and each.skipped.reason.stays
    ]
    if left:
        was = count_of(
            len(left), "file that was not compared is", "files that were not compared are"
        )
        reason = f"{printable(left[0].name)}: {left[0].reason}"
        console.warn(f"{was} not in what is written; {reason} (-v names all)")
    repeated = sum(each.reason == Reason.REPEATED for each in skipped)
    if repeated:
        other = ", but another text," if noun == "row" else ""  # Texts of mails are not compared.
        one = f"{noun} with the id of another{other} was not compared, and is"
        several = f"{noun}s with the id of another{other} were not compared, and are"
        console.warn(
            f"{count_of(repeated, one, several)} in what is written; leave --id-field out if ids "
            "repeat between files"
        )


def list_removed(
    console: Console,
    options: WriteOptions,
    columns: Iterable[str],
    pieces: "Iterable[Piece]",
    noun: str,
) -> None:
    """Write the list of --removed, if it was typed. noun : what a row of the list is."""
    removed, rows = options.removed, 0
    if removed is None:
        return

    def counted() -> "Iterator[Piece]":
        nonlocal rows
        for piece in pieces:
            rows += len(piece[0])
            yield piece

    path = None if is_stdout(removed) else removed
    target = Target(format_of(removed, "--removed") or "jsonl", path=path)
    print_pieces(console, target, tuple(columns), counted())
    where = "standard output" if path is None else removed
    console.summarize(f"{where} lists {count_of(rows, noun)}")


@dataclass(frozen=True)
class _Gone:
    """The rows that --write leaves out, in the order of their files.

    documents : DOCS, with copies of their rows behind them.
    rows : int64 array of shape (n,), among these documents.
    origins : int64 array of shape (n,), the document whose group each row is of: itself, or the one
        that it is a copy of.
    """

    documents: "DocumentList"
    rows: "NDArray[np.int64]"
    origins: "NDArray[np.int64]"


def _find_gone(
    clusters: "Clusters",
    documents: "DocumentList",
    uncompared: "list[SkippedFile]",
    copies_go: bool,
) -> _Gone:
    """Return the rows that go: what clusters drop, and copies with their ids of that, or of all
    compared rows.
    """
    import numpy as np

    copies, firsts = _find_copies(clusters, documents, uncompared, copies_go=copies_go)
    every = documents.with_records(copies)
    rows = np.append(clusters.dropped, len(documents) + np.arange(len(copies)))
    order = np.lexsort((every.locations.starts[rows], every.locations.file[rows]))
    return _Gone(every, rows[order], np.append(clusters.dropped, firsts)[order])


def _find_copies(
    clusters: "Clusters",
    documents: "DocumentList",
    uncompared: "list[SkippedFile]",
    *,
    copies_go: bool = True,
) -> "tuple[list[SkippedFile], NDArray[np.int64]]":
    """Return the rows with the id and the text of a compared row, and these: int64 array.

    copies_go : whether those of a row that stays are among them.
    """
    import numpy as np

    copies, origins = [], list[int]()
    repeats = [each for each in uncompared if each.skipped.reason == Reason.COPY]
    firsts = documents.find_all([each.skipped.name for each in repeats])
    for each, first in zip(repeats, firsts, strict=True):
        own = clusters.representative[first] if first >= 0 else -1
        if own >= 0 and (copies_go or own != first):
            copies.append(each)
            origins.append(first)
    return copies, np.array(origins, np.int64)


def refuse_nothing(compared: int, uncompared: "list[Skipped]") -> None:
    """Raise InputError if no document was compared: what is written would be a copy.

    compared : number of documents.
    uncompared : files and rows of DOCS that are no documents.
    """
    if not compared:
        example = min(uncompared, key=lambda each: not each.is_error, default=None)
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
    every = {each for path in paths for each in (path, *path.rglob("*")) if each.is_file()}
    return sum(each.stat().st_size for each in every)


def _list_removed(
    clusters: "Clusters", opened: "Comparison", gone: _Gone, more: "list[More]"
) -> "Iterator[Piece]":
    """Yield pieces of the rows that go, in the order of their files: the columns of REMOVED, and
    further ones.
    """
    import numpy as np

    sides, prints = opened.lists, opened.sides.prints
    for start in range(0, len(gone.rows), PIECE_ROWS):
        part = slice(start, start + PIECE_ROWS)
        rows, origins = gone.rows[part], gone.origins[part]
        kept = clusters.representative[origins]
        similarity = np.where(kept == origins, 1.0, clusters.similarity[origins])
        ids, files = gone.documents.ids(rows), gone.documents.typed_files_of(rows)
        kept_ids, kept_files = _name(sides, kept)
        yield (
            ids, kept_ids, similarity.tolist(), files, kept_files, prints.words(origins, kept),
            *(column for each in more for column in each.make(origins, kept)),
        )  # fmt: skip


def _name(sides: "tuple[DocumentList, ...]", rows: Any) -> "tuple[list[Cell], list[Cell]]":
    """Return the ids or names of documents, and their files, as typed from here."""
    import numpy as np

    from lshdup.base.ragged import distinct

    different = distinct(rows)[0]
    names: list[Cell] = []
    files: list[Cell] = []
    begin = 0
    for side in sides:
        chosen = different[(different >= begin) & (different < begin + len(side))] - begin
        names += side.ids(chosen)
        files += side.typed_files_of(chosen)
        begin += len(side)
    at = np.searchsorted(different, rows).tolist()
    return [names[each] for each in at], [files[each] for each in at]


# --- what may go, of any kind ---------------------------------------------------------------------


def verify(
    session: "Session", opened: "Comparison", found: "ClustersFound"
) -> "tuple[ClustersFound, Checksums]":
    """Return the groups without documents that have changed since they were read, which are said,
    and the checksums of what may go and of what is kept for it.

    Equal files have equal checksums, or one of them has changed, though not its time.
    """
    import numpy as np

    from lshdup.base.ragged import distinct
    from lshdup.base.skipped import Skipped
    from lshdup.collection.checksums import make_checksums
    from lshdup.compare.sides import LEVELS

    clusters = found.clusters
    dropped, own = clusters.dropped, clusters.representative
    chosen = distinct(np.concatenate([dropped, own[dropped]]))[0]
    sums = make_checksums(session.run, opened.lists, chosen)
    is_lost = sums.sizes < 0
    for start in range(0, len(dropped), PIECE_ROWS):
        rows = dropped[start : start + PIECE_ROWS]
        are_equal = opened.sides.prints.compare(rows, own[rows]) == LEVELS.index("bytes")
        is_lost[sums.rows(rows[are_equal & sums.differ(rows, own[rows])])] = True
    lost = chosen[is_lost]
    for name in opened.names(lost):
        session.run.skipped(Skipped(name, Reason.CHANGED, "since it was compared: not listed"))
    every = np.concatenate([found.lost, lost])
    return replace(found, clusters=clusters.without(lost), lost=every), sums


def list_may_go(
    opened: "Comparison", clusters: "Clusters", dropped: "NDArray[np.int64]", sums: "Checksums"
) -> "Iterator[Piece]":
    """Yield pieces of the list of some documents that may go: the columns of MAY_GO.

    dropped : ascending, the documents. sums : of `verify`.
    """
    import numpy as np

    own = clusters.representative
    documents, names = opened.lists[0], DocumentNames(len(own), opened.names)
    for start in range(0, len(dropped), PIECE_ROWS):
        rows = dropped[start : start + PIECE_ROWS]
        kept = own[rows]
        same = opened.sides.prints.words(rows, kept)
        times = np.asarray(documents.mtimes[rows]).astype("datetime64[ns]")
        yield (
            documents.typed_names(rows),
            names.of(kept).tolist(),
            [word or "similarity" for word in same],
            clusters.similarity[rows].tolist(),
            sums.sizes[sums.rows(rows)].tolist(),
            np.datetime_as_string(times, timezone="UTC").tolist(),
            sums.words(rows),
            sums.words(kept),
        )


# --- columns that say what may go -----------------------------------------------------------------


def annotate(
    session: "Session", options: WriteOptions, opened: "Comparison", clusters: "Clusters"
) -> None:
    """Write the files with the columns of ANNOTATIONS, and say how many rows got them.

    Rows with the id and the text of a compared one are of its group.
    """
    import numpy as np

    from lshdup.base.memory import rows_of
    from lshdup.collection.annotating import Annotating
    from lshdup.compare.clusters import Clusters, list_clusters
    from lshdup.sources.rewriting import rewrite

    console, documents, target = session.console, opened.here.documents, options.files[1]
    assert target is not None
    n, own, arrays = len(documents), clusters.representative, session.run.arrays
    compared = int((own[:n] >= 0).sum())
    refuse_nothing(compared, [each.skipped for each in opened.here.list_skipped()])
    copies, origins = _find_copies(clusters, documents, opened.here.list_skipped_records())
    # Copies are documents behind those of DOCS, and in groups behind those of all sides.
    others, own = len(own) - n, arrays.concatenate([own, own[origins]])
    score = arrays.concatenate([clusters.similarity, clusters.similarity[origins]])
    origin = arrays.concatenate([arrays.compute(n + others, np.int64, rows_of), origins])
    groups = Clusters(session.run, own, score)
    listed, sizes = list_clusters(groups), groups.sizes
    number: NDArray[np.int64] = arrays.zeros(len(own), np.int64)
    number[listed.documents] = listed.numbers

    def cells(rows: "NDArray[np.int64]") -> "Piece":
        """Return the cells of documents, or of rows that are none: -1 or less."""
        rows = np.where(rows < n, rows, rows + others)
        known = np.flatnonzero((rows >= 0) & (own[np.maximum(rows, 0)] >= 0))
        table = np.full((len(ANNOTATIONS), len(rows)), None, object)
        table[-1] = 1
        rows, kept = rows[known], own[rows[known]]
        words = opened.sides.prints.words(origin[rows], kept)
        columns = (
            [group or None for group in number[rows].tolist()],
            _name(opened.lists, kept)[0],
            score[rows].tolist(),
            np.where(rows == kept, np.full(1, None), np.array(words, object)),
            sizes[kept].tolist(),
        )
        for row, column in zip(table, columns, strict=True):
            row[known] = np.fromiter(column, object, len(known))
        return table.tolist()

    kinds: dict[str, type] = {name: each.cell for name, each in ANNOTATIONS.items()}
    kinds["duplicate_kept"] = bytes
    rows = documents.with_records(copies)
    change = Annotating(kinds, cells, documents.record_files.fields.id)
    every = arrays.compute(len(rows), np.int64, rows_of)
    paths = rewrite(session.run, rows, every, target, change, open_target, share=1.0).paths
    say_written(console, paths, target)
    bare = change.written - compared - len(copies)
    left = f"; {count_of(change.broken, 'broken row')} as before" if change.broken else ""
    console.summarize(
        f"{count_of(change.written, 'row')} annotated, {bare:,} of them not compared{left}"
        f"{console.duration_of('write')}"
    )
