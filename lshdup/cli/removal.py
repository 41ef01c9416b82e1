"""`--write`, `--removed` and `--annotate` of `clusters`, `passages`: files without what may go, its
list, and files with columns that say what may go.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from lshdup.base.atomic import check_writable, replace_file
from lshdup.base.skipped import Reason
from lshdup.base.system import STDOUT, is_stdout
from lshdup.base.wording import chance, count_of, printable
from lshdup.cli.columns import ANNOTATIONS, Columns, columns_of
from lshdup.cli.console import Console
from lshdup.cli.help import is_set
from lshdup.cli.output import Piece, Target, WriteOptions, format_of, print_pieces
from lshdup.errors import ParameterError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from lshdup.cli.session import Session
    from lshdup.compare.clusters import Clusters
    from lshdup.sources.document_list import DocumentList
    from lshdup.workspace.comparing import Comparison
    from lshdup.workspace.removals import More


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
    if rows is not None and not is_stdout(rows):
        check_writable(Path(rows), folder=True)
    if removed is not None:
        _open_removed(removed)


def check_documents(
    options: WriteOptions, documents: "DocumentList", read: bool, *, mails: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield the files that --write or --annotate writes. Raise before the work if it does not suit
    DOCS, as far as is known then.

    mails : whether --write writes mailboxes too.
    """
    option, write = options.files
    if write is None:
        return
    from lshdup.sources.rewriting import check_target, refuse_other_files

    mails &= option == "--write"
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
    more: "Iterable[More]" = (),
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
    more : makers of further columns of the list.
    copies_go : whether rows with the id and the text of a row that stays go.

    """
    from lshdup.sources.records import ROWS, Kind
    from lshdup.sources.rewriting import Dropping, rewrite
    from lshdup.workspace.removals import Gone, refuse_nothing

    assert options.write is not None
    console, documents = session.console, opened.lists[0]
    uncompared = opened.here.list_skipped_records()
    compared = int((clusters.representative[: len(documents)] >= 0).sum())
    refuse_nothing(compared, opened.here)
    gone = Gone.of(opened, clusters, copies_go=copies_go)
    noun = "mail" if documents.kinds.isdisjoint(ROWS) else "row"
    of_mails = [lambda rows, _kept: opened.mails.columns(rows)] if opened.mails else []
    listing = f"{click.get_current_context().info_name}-removed"
    columns = columns_of(listing, optional=bool(opened.mails))
    pieces = gone.list(opened, clusters, [*more, *of_mails])
    list_removed(console, options, columns, pieces, count_of(len(gone.rows), f"removed {noun}"))
    written = rewrite(
        session.run, gone.documents, gone.rows, options.write, Dropping(), open_target, mails=True
    )
    size = say_written(console, written.paths, options.write)
    rows, dropped = len(documents) + len(uncompared) + written.others, len(gone.rows)
    bare = rows - compared - (dropped - len(clusters.dropped))
    share = "" if size is None else f"; {size:,} of {written.read:,} bytes"
    of_folders = " and other files" if noun == "mail" and Kind.FILE in documents.kinds else ""
    console.summarize(
        f"{count_of(rows, noun)}{of_folders}: {rows - dropped:,} kept"
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
        for each in opened.here.list_skipped()
        if each.record is None
        and not (documents.path_of(each.skipped.name) + b"/").startswith(sources)
        and each.skipped.reason.stays
    ]
    if left:
        one, several = "file that was not compared is", "files that were not compared are"
        reason = f"{printable(left[0].name)}: {left[0].reason} (-v names all)"
        console.warn(f"{count_of(len(left), one, several)} not in what is written; {reason}")
    repeated = sum(each.skipped.reason == Reason.REPEATED for each in uncompared)
    if repeated:
        other = ", but another text," if noun == "row" else ""  # Texts of mails are not compared.
        one = f"{noun} with the id of another{other} was not compared, and is"
        several = f"{noun}s with the id of another{other} were not compared, and are"
        console.warn(
            f"{count_of(repeated, one, several)} in what is written; leave --id-field out if ids "
            "repeat between files"
        )


def list_removed(
    console: Console, options: WriteOptions, columns: Columns, pieces: Iterable[Piece], rows: str
) -> None:
    """Write the list of --removed, if it was typed. rows : how many rows of what it has."""
    removed = options.removed
    if removed is None:
        return
    print_pieces(console, _open_removed(removed), columns, pieces)
    where = "standard output" if is_stdout(removed) else removed
    console.summarize(f"{where} lists {rows}")


def _open_removed(path: Path) -> Target:
    """Return the file of --removed, or standard output."""
    kind = format_of(path, "--removed") or "jsonl"
    return Target(kind, path=None if is_stdout(path) else path)


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


def annotate(
    session: "Session", options: WriteOptions, opened: "Comparison", clusters: "Clusters"
) -> None:
    """Write the files with the columns of ANNOTATIONS, and say how many rows got them."""
    from lshdup.workspace import removals

    console, target = session.console, options.files[1]
    assert target is not None
    kinds: dict[str, type] = {name: each.cell for name, each in ANNOTATIONS.items()}
    kinds["duplicate_kept"] = bytes
    paths, change, compared = removals.annotate(
        session.run, opened, clusters, kinds, target, open_target
    )
    say_written(console, paths, target)
    left = f"; {count_of(change.broken, 'broken row')} as before" if change.broken else ""
    console.summarize(
        f"{count_of(change.written, 'row')} annotated, {change.written - compared:,} of them not"
        f" compared{left}{console.duration_of('write')}"
    )
