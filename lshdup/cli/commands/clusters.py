"""`lshdup clusters`."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup import params
from lshdup.cli.columns import column_names
from lshdup.cli.commands.find_groups import find_groups
from lshdup.cli.conflicts import is_set, refuse_with_exact, refuse_with_same, runs_on_spark
from lshdup.cli.console import Console
from lshdup.cli.help import Command, plain_option
from lshdup.cli.messages import describe_likeness
from lshdup.cli.options import (
    check_files_option,
    check_option,
    engine_options,
    exact_option,
    keep_options,
    list_columns,
    max_bucket_option,
    option,
    output_options,
    run_options,
    same_option,
    table_options,
)
from lshdup.cli.output import PIECE_ROWS, Target
from lshdup.cli.printing import group_layout, make_target, print_pieces
from lshdup.cli.session import open_session
from lshdup.params import ClusterParams
from lshdup.utils.atomic import check_writable
from lshdup.utils.messages import count_of, join_names, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.output import Piece
    from lshdup.collection.collection import Collection
    from lshdup.documents.document_list import DocumentList
    from lshdup.matching.clusters import ClusterListing
    from lshdup.matching.results import ClustersFound

_DEFAULT = ClusterParams()


@list_columns("clusters", "clusters-names")
@click.command(
    "clusters",
    cls=Command,
    short_help="groups of near-duplicates, and which of each to keep",
    epilog="""\b
Examples:
  lshdup clusters sample_corpus --threshold 0.9
  lshdup clusters sample_corpus --prefer '*.txt' --emit drop -0 | xargs -0 -r ls -l
""",
)
@table_options
@exact_option
@max_bucket_option
@option("--linkage", type=click.Choice(params.LINKAGES), default=_DEFAULT.linkage,
               help="All similar enough to the one that is kept; or what chains of pairs "
                    "connect.")  # fmt: skip
@same_option
@keep_options
@plain_option("--emit", type=click.Choice(("all", "keep", "drop")), default="all",
              help="Groups of two or more with all that is known; or names only: what stays, also "
                   "what is alone; what may go.")  # fmt: skip
@plain_option("--write", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the JSON Lines, CSV or Parquet file without the rows that may go, all "
                   "else as it is; of several files, FILE is a folder. No groups are printed then, "
                   "unless --emit says so.")  # fmt: skip
@check_option("groups")
@check_files_option
@engine_options
@run_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print groups of near-duplicates: group, keep or drop, name, similarity, copy, smallest
    similarity of the group, same.

    Every document of a group is at least the threshold similar to the one that is kept, exactly. It
    is a copy if it has the same shingles, and the same in bytes, or in text (words in their order).
    What has no tokens, or could not be read, is neither. Nothing is moved or deleted.

    Without DOCS, the documents of the last run are grouped.

    With --engine spark (see `lshdup pairs`), OUT.parquet and OUT.jsonl have a row for each compared
    document: id, representative (itself, if alone), similarity, copy; or name, with --emit.
    """
    if runs_on_spark(ctx, options):
        from lshdup.cli.commands import on_spark

        return on_spark.clusters(ctx, options)
    target = make_target(options)
    if options["write"] is not None:
        check_writable(options["write"])
    if options["exact"]:
        refuse_with_exact(ctx)
    refuse_with_same(ctx, options["same"])
    rule = ClusterParams(
        options["linkage"], options["keep"] or "", options["prefer"], options["max_bucket"] or 0
    )
    with open_session(ctx, options, partial(_check_write, options["write"])) as session:
        console = session.console
        collection, result = find_groups(session, options, rule)
        took = console.duration_of("groups")
        described = _describe_rule(rule, collection.documents)
        likeness = describe_likeness(options["threshold"], options["same"])
        _say_groups(console, result, collection.documents, likeness, took, described)
        if options["write"] is not None:
            _write(console, result, collection.documents, options["write"])
        if options["write"] is None or is_set(ctx, "emit"):
            _print(console, target, result, collection, options["emit"])
        return console.exit_code_of(result.clusters.count)


def _check_write(path: Path | None, documents: "DocumentList", read: bool) -> None:
    """Raise before the work if --write cannot be carried out, as far as is known then."""
    if path is not None:
        from lshdup.documents.rewriting import check_target

        check_target(documents, path, read=read)


def _write(
    console: Console, result: "ClustersFound", documents: "DocumentList", path: Path
) -> None:
    from lshdup.documents.rewriting import write_without

    dropped = result.clusters.dropped
    for each in write_without(documents, dropped, path):
        console.say(f"{each} is written")


def _print(
    console: Console, target: Target, result: "ClustersFound", collection: "Collection", what: str
) -> None:
    from lshdup.matching.clusters import list_clusters

    if what == "all":
        listed, columns = list_clusters(result.clusters), column_names("clusters")
        rows, total = _rows(result, listed, collection), len(listed.documents)
        print_pieces(console, target, columns, rows, total, group_layout(target))
    else:
        chosen = result.clusters.kept if what == "keep" else result.clusters.dropped
        parts = collection.documents.count_parts(chosen) if what == "drop" else 0
        if parts:
            what_is = count_of(parts, "name is of a part of a file", "names are of parts of files")
            console.warn(
                f"{what_is} (rows, mails, members of archives): do not give them to `rm`; "
                "`--write` writes a file without rows, and archives can be unpacked first"
            )
        names = _names(chosen, collection.documents)
        print_pieces(console, target, column_names("clusters-names"), names)


def _rows(
    result: "ClustersFound", clusters: "ClusterListing", collection: "Collection"
) -> "Iterator[Piece]":
    copies, own = result.copies, result.clusters.representative
    for start in range(0, len(clusters.documents), PIECE_ROWS):
        part = slice(start, start + PIECE_ROWS)
        rows = clusters.documents[part]
        kept = (own[rows] == rows).tolist()
        same = collection.prints.words(rows, own[rows])
        yield (
            clusters.numbers[part].tolist(),
            ["keep" if is_kept else "drop" for is_kept in kept],
            collection.documents.typed_names(rows),
            result.clusters.similarity[rows].tolist(),
            copies[rows].tolist(),
            clusters.smallest[part].tolist(),
            [None if is_kept else word for is_kept, word in zip(kept, same, strict=True)],
        )


def _names(chosen: "NDArray[np.int64]", documents: "DocumentList") -> "Iterator[Piece]":
    for start in range(0, len(chosen), PIECE_ROWS):
        yield (documents.typed_names(chosen[start : start + PIECE_ROWS]),)


def _describe_rule(rule: ClusterParams, documents: "DocumentList") -> str:
    """Return which document of a group is kept."""
    from lshdup.documents.preference import default_keep

    parts = [params.KEEP[rule.keep or default_keep(documents)]]
    if rule.prefer:
        parts.append(f"preferring {join_names(rule.prefer)}")
    if rule.linkage != _DEFAULT.linkage:
        parts.append(f"linkage {rule.linkage}")
    return ", ".join(parts)


def _say_groups(
    console: Console,
    result: "ClustersFound",
    documents: "DocumentList",
    likeness: str,
    took: str,
    rule: str,
) -> None:
    """Say how many groups there are, the rule, and how many documents are kept and dropped."""
    groups, seconds = result.clusters, f"{took}; {console.seconds:.2f} s in all"
    kept, dropped = groups.kept, groups.dropped
    if result.compared >= 0:
        console.detail(f"{result.compared:,} similarities of candidates looked at")
    if not len(dropped):
        console.say(f"no groups {likeness}: {count_of(len(kept), 'document')} alone{seconds}")
        return
    sizes, n = groups.sizes, groups.count
    largest = int(sizes.argmax())
    console.say(
        f"{count_of(n, 'group')} {likeness} with "
        f"{count_of(n + len(dropped), 'document')}; "
        f"the largest has {sizes[largest]:,}, with {printable(documents.names[largest])}"
    )
    console.say(f"kept: {rule}")
    console.say(
        f"keep {count_of(len(kept), 'document')}, {len(kept) - n:,} alone; drop {len(dropped):,}, "
        f"{int(result.copies.sum()):,} of them "
        f"copies, {int(documents.spans[dropped].sum()):,} bytes{seconds}"
    )
