"""The listing of `lshdup clusters`: groups, or names to keep or to drop; what is said of them."""

from collections.abc import Iterator
from dataclasses import replace

import click
import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
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
    ctx: click.Context,
    session: Session,
    options: ClustersOptions,
    rule: ClusterParams,
    target: Target,
) -> int:
    """Print groups or names, write files without the rows that may go, and return the exit code."""
    console = session.console
    if options.against:
        both, shared = open_removal(session, options)
        matches = find_matches(session, both)
        answer = _Answer(both, find_clusters_against(both, matches, shared, rule))
    else:
        answer = _Answer(*find_groups(session, options, rule))
    sums = None
    if options.removed is not None and options.write is None:
        result, sums = removals.verify(session.run, answer.opened, answer.result)
        answer = replace(answer, result=result)
    _say_groups(console, answer, options, rule)
    if options.emit == "drop" or (sums is not None and options.emit != "drop-files"):
        _warn_of_parts(console, answer)
    if sums is not None:
        rows = _find_dropped(answer, options.emit)
        listed = removals.list_may_go(answer.opened, answer.result.clusters, rows, sums)
        removal.list_removed(console, options, columns_of("clusters-may-go"), listed, "document")
    if options.annotate is not None:
        removal.annotate(session, options, answer.opened, answer.result.clusters)
    if options.write is not None:
        removal.write(session, options, answer.result.clusters, answer.opened)
    if removal.prints_listing(ctx, options):
        _print(console, target, answer, options.emit)
    return console.exit_code(answer.result.clusters.count)


@dataclass(frozen=True)
class _Answer:
    """Groups of documents.

    opened : the documents.
    result : the groups; documents of OTHER are behind those of DOCS.
    """

    opened: Comparison
    result: ClustersFound

    @property
    def documents(self) -> DocumentList:
        """The documents of DOCS."""
        return self.opened.here.documents

    @property
    def kept(self) -> NDArray[np.int64]:
        """The documents of DOCS that represent themselves: ascending int64 array."""
        kept = self.result.clusters.kept
        return kept[kept < len(self.documents)]


def _print(console: Console, target: Target, answer: _Answer, what: str) -> None:
    clusters, documents = answer.result.clusters, answer.documents
    dropped = clusters.dropped
    if what == "all":
        listed = list_clusters(clusters)
        mails = answer.opened.mails if target.style == "table" else None
        rows, total = _rows(answer, listed, mails), len(listed.documents)
        layout = None if target.header else lay_out_groups  # LSHDUP_HEADER asks for columns.
        columns = columns_of("clusters", dict.fromkeys(("subject", "date") if mails else (), TEXT))
        print_pieces(console, target, columns, rows, total, layout)
        return
    if what == "keep":
        names = names_to_keep(answer.opened.here, dropped, answer.result.lost)
        uncompared = len(documents) - len(dropped) - len(answer.kept)
        if uncompared := uncompared + len(skipped_names(answer.opened.here)):
            was = count_of(uncompared, "name is of what was", "names are of what was")
            console.summarize(f"{was} not compared, and stays (-v says why)")
    else:
        names = name_documents(documents, _find_dropped(answer, what))
    print_pieces(console, target, columns_of("clusters-names"), ([part] for part in names))


def _find_dropped(answer: _Answer, emit: str) -> NDArray[np.int64]:
    """Return the documents that may go: ascending. emit : drop-files leaves parts of files out."""
    dropped = answer.result.clusters.dropped
    return dropped[~answer.documents.are_parts(dropped)] if emit == "drop-files" else dropped


def _warn_of_parts(console: Console, answer: _Answer) -> None:
    """Warn of what may go and is no file, which no program can move alone."""
    if parts := int(answer.documents.are_parts(answer.result.clusters.dropped).sum()):
        what_is = count_of(parts, "name is of a part of a file", "names are of parts of files")
        console.warn(
            f"{what_is} (rows, mails, members of archives): do not give them to `rm` or `mv`; "
            "--emit drop-files lists whole files only, --write writes a file without the parts"
        )


def _rows(answer: _Answer, clusters: ClusterListing, mails: Mails | None) -> Iterator[Piece]:
    result, copies, own = answer.result, answer.result.copies, answer.result.clusters.representative
    size = PIECE_MAILS if mails else PIECE_ROWS
    for start in range(0, len(clusters.documents), size):
        part = slice(start, start + size)
        rows = clusters.documents[part]
        kept = (own[rows] == rows).tolist()
        is_other = (rows >= len(answer.documents)).tolist()
        same = answer.opened.sides.prints.words(rows, own[rows])
        yield (
            clusters.numbers[part].tolist(),
            [
                "other" if other else "keep" if is_kept else "drop"
                for other, is_kept in zip(is_other, kept, strict=True)
            ],
            answer.opened.tell(rows, DocumentList.typed_names),
            result.clusters.similarity[rows].tolist(),
            copies[rows].tolist(),
            clusters.smallest[part].tolist(),
            [None if is_kept else word for is_kept, word in zip(kept, same, strict=True)],
            *(mails.show(rows) if mails else ()),
        )


def _say_groups(
    console: Console, answer: _Answer, options: ClustersOptions, rule: ClusterParams
) -> None:
    """Say how many groups there are, the rule, and how many documents are kept and dropped."""
    result, documents = answer.result, answer.documents
    took = console.duration_of("groups") if console.is_verbose else ""
    likeness = describe_likeness(options.threshold, options.same)
    groups, seconds = result.clusters, f"{took}; {console.seconds:.2f} s in all"
    kept, dropped = answer.kept, groups.dropped
    if result.compared >= 0:
        console.detail(f"{result.compared:,} similarities of candidates looked at")
    if not len(dropped):
        console.summarize(f"no groups {likeness}: {count_of(len(kept), 'document')} alone{seconds}")
        return
    sizes, n = groups.sizes, groups.count
    largest = (sizes == sizes.max()).nonzero()[0][:1]
    console.detail(
        f"the largest group has {count_of(int(sizes[largest[0]]), 'document')}, with"
        f" {printable(answer.opened.names(largest)[0])}"
    )
    groups_and_all = f"{count_of(n, 'group')} {likeness} with {n + len(dropped):,} documents"
    has_others = answer.opened.there is not None
    others = int((sizes[len(documents) :] > 1).sum())
    near = int((groups.representative[dropped] >= len(documents)).sum())
    console.summarize(
        f"kept: {describe_rule(rule, documents)}{'; all documents of OTHER' if has_others else ''}"
    )
    console.summarize(
        f"{groups_and_all}; "
        f"keep {count_of(len(kept), 'document')}, {len(kept) - n + others:,} alone; "
        f"drop {len(dropped):,}, {int(result.copies.sum()):,} of them copies, "
        f"{f'{near:,} near documents of OTHER, ' if has_others else ''}"
        f"{int(documents.spans[dropped].sum()):,} bytes{seconds}"
    )
    links = count_hard_links(answer.opened.lists, dropped, groups.representative[dropped])
    if links:
        what = count_of(links, "of these is a hard link", "of these are hard links")
        console.summarize(f"{what} of the document that is kept: removing one frees nothing")
