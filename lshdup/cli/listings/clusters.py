"""The listing of `lshdup clusters`: groups, or names to keep or to drop; what is said of them."""

from collections.abc import Iterator

import click
import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import ClusterParams
from lshdup.base.wording import count_of, printable
from lshdup.cli import removal
from lshdup.cli.columns import TEXT, columns_of
from lshdup.cli.console import Console
from lshdup.cli.find_pairs import find_groups, find_matches, open_removal
from lshdup.cli.layouts import groups as lay_out_groups
from lshdup.cli.messages import describe_likeness, describe_rule
from lshdup.cli.options import ClustersOptions
from lshdup.cli.output import PIECE_MAILS, PIECE_ROWS, Piece, Target, print_pieces
from lshdup.cli.session import Session
from lshdup.collection.name_lists import (
    count_hard_links,
    name_documents,
    names_to_keep,
    skipped_names,
)
from lshdup.compare.clusters import ClusterListing, list_clusters
from lshdup.compare.results import ClustersFound
from lshdup.sources.document_list import DocumentList
from lshdup.views.mails import Mails
from lshdup.workspace import removals
from lshdup.workspace.against import find_clusters_against
from lshdup.workspace.comparing import Comparison


def list_groups(
    ctx: click.Context, session: Session, options: ClustersOptions, target: Target
) -> int:
    """Print groups or names, write files without the rows that may go, and return the exit code."""
    console, rule = session.console, options.make_rule()
    if options.against:
        both, shared = open_removal(session, options)
        matches = find_matches(session, both)
        opened, found = both, find_clusters_against(both, matches, shared, rule)
    else:
        opened, found = find_groups(session, options, rule)
    sums = None
    if options.removed is not None and options.write is None:
        found, sums = removals.verify(session.run, opened, found)
    _say_groups(console, opened, found, options, rule)
    if options.emit == "drop" or (sums is not None and options.emit != "drop-files"):
        _warn_of_parts(console, opened, found)
    if sums is not None:
        rows = _find_dropped(opened, found, options.emit)
        listed = removals.list_may_go(opened, found.clusters, rows, sums)
        n = count_of(len(rows), "document")
        removal.list_removed(console, options, columns_of("clusters-may-go"), listed, n)
    if options.annotate is not None:
        removal.annotate(session, options, opened, found.clusters)
    if options.write is not None:
        removal.write(session, options, found.clusters, opened)
    if removal.prints_listing(ctx, options):
        _print(console, target, opened, found, options.emit)
    return console.exit_code(found.clusters.count)


def _count_kept(opened: Comparison, found: ClustersFound) -> int:
    """Return the number of documents of DOCS that represent themselves."""
    return int((found.clusters.kept < len(opened.here.documents)).sum())


def _print(
    console: Console, target: Target, opened: Comparison, found: ClustersFound, what: str
) -> None:
    clusters, documents = found.clusters, opened.here.documents
    dropped = clusters.dropped
    if what == "all":
        listed = list_clusters(clusters)
        mails = opened.mails if target.style == "table" else None
        rows, total = _rows(opened, found, listed, mails), len(listed.documents)
        layout = None if target.header else lay_out_groups  # LSHDUP_HEADER asks for columns.
        columns = columns_of("clusters", dict.fromkeys(("subject", "date") if mails else (), TEXT))
        print_pieces(console, target, columns, rows, total, layout)
        return
    if what == "keep":
        names = names_to_keep(opened.here, dropped, found.lost)
        uncompared = len(documents) - len(dropped) - _count_kept(opened, found)
        if uncompared := uncompared + len(skipped_names(opened.here)):
            was = count_of(uncompared, "name is of what was", "names are of what was")
            console.summarize(f"{was} not compared, and stays (-v says why)")
    else:
        names = name_documents(documents, _find_dropped(opened, found, what))
    print_pieces(console, target, columns_of("clusters-names"), ([part] for part in names))


def _find_dropped(opened: Comparison, found: ClustersFound, emit: str) -> NDArray[np.int64]:
    """Return the documents that may go: ascending. emit : drop-files leaves parts of files out."""
    dropped = found.clusters.dropped
    return dropped[~opened.here.documents.are_parts(dropped)] if emit == "drop-files" else dropped


def _warn_of_parts(console: Console, opened: Comparison, found: ClustersFound) -> None:
    """Warn of what may go and is no file, which no program can move alone."""
    if parts := int(opened.here.documents.are_parts(found.clusters.dropped).sum()):
        what_is = count_of(parts, "name is of a part of a file", "names are of parts of files")
        console.warn(
            f"{what_is} (rows, mails, members of archives): do not give them to `rm` or `mv`; "
            "--emit drop-files lists whole files only, --write writes a file without the parts"
        )


def _rows(
    opened: Comparison, found: ClustersFound, listed: ClusterListing, mails: Mails | None
) -> Iterator[Piece]:
    copies, own = found.copies, found.clusters.representative
    size = PIECE_MAILS if mails else PIECE_ROWS
    for start in range(0, len(listed.documents), size):
        part = slice(start, start + size)
        rows = listed.documents[part]
        kept, is_other = own[rows] == rows, rows >= len(opened.here.documents)
        same = opened.sides.prints.words(rows, own[rows])
        yield (
            listed.numbers[part].tolist(),
            np.select((is_other, kept), ("other", "keep"), "drop").tolist(),
            opened.tell(rows, DocumentList.typed_names),
            found.clusters.similarity[rows].tolist(),
            copies[rows].tolist(),
            listed.smallest[part].tolist(),
            [None if is_kept else word for is_kept, word in zip(kept.tolist(), same, strict=True)],
            *(mails.show(rows) if mails else ()),
        )


def _say_groups(
    console: Console,
    opened: Comparison,
    found: ClustersFound,
    options: ClustersOptions,
    rule: ClusterParams,
) -> None:
    """Say how many groups there are, the rule, and how many documents are kept and dropped."""
    groups, documents, took = found.clusters, opened.here.documents, console.took("groups")
    likeness = describe_likeness(options.threshold, options.same)
    kept, dropped = _count_kept(opened, found), groups.dropped
    if found.compared >= 0:
        console.detail(f"{found.compared:,} similarities of candidates looked at")
    if not len(dropped):
        console.summarize(f"no groups {likeness}: {count_of(kept, 'document')} alone{took}")
        return
    sizes, n = groups.sizes, groups.count
    largest = (sizes == sizes.max()).nonzero()[0][:1]
    console.detail(
        f"the largest group has {count_of(int(sizes[largest[0]]), 'document')}, with"
        f" {printable(opened.names(largest)[0])}"
    )
    groups_and_all = f"{count_of(n, 'group')} {likeness} with {n + len(dropped):,} documents"
    has_others = opened.there is not None
    others = int((sizes[len(documents) :] > 1).sum())
    near = int((groups.representative[dropped] >= len(documents)).sum())
    console.summarize(
        f"kept: {describe_rule(rule, documents)}{'; all documents of OTHER' if has_others else ''}"
    )
    console.summarize(
        f"{groups_and_all}; "
        f"keep {count_of(kept, 'document')}, {kept - n + others:,} alone; "
        f"drop {len(dropped):,}, {int(found.copies.sum()):,} of them copies, "
        f"{f'{near:,} near documents of OTHER, ' if has_others else ''}"
        f"{int(documents.spans[dropped].sum()):,} bytes{took}"
    )
    links = count_hard_links(opened.lists, dropped, groups.representative[dropped])
    if links:
        what = count_of(links, "of these is a hard link", "of these are hard links")
        console.summarize(f"{what} of the document that is kept: removing one frees nothing")
