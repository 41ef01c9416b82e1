"""`lshdup clusters`."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of, printable
from lshdup.cli import writing
from lshdup.cli.columns import column_names
from lshdup.cli.console import Console
from lshdup.cli.find_pairs import find_groups
from lshdup.cli.help import define, option, plain_option, stack
from lshdup.cli.messages import describe_likeness, describe_rule
from lshdup.cli.options import (
    FindOptions,
    against_option,
    check_option,
    exact_option,
    keep_options,
    list_columns,
    max_bucket_option,
    memory_option,
    output_options,
    run_options,
    same_option,
    table_options,
)
from lshdup.cli.output import (
    PIECE_ROWS,
    DocumentNames,
    Target,
    WriteOptions,
    make_target,
    print_pieces,
)
from lshdup.cli.session import Session, open_session, refuse_documents
from lshdup.cli.types import OutputPath
from lshdup.params import LINKAGES, ClusterParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.output import Piece
    from lshdup.collection.collection import Collection
    from lshdup.compare.clusters import ClusterListing
    from lshdup.compare.results import ClustersFound
    from lshdup.compare.sides import Fingerprints
    from lshdup.sources.document_list import DocumentList


@dataclass(frozen=True)
class ClustersOptions(FindOptions, WriteOptions):
    """The options of `clusters`."""

    linkage: str = ClusterParams.linkage
    keep: str | None = None
    prefer: tuple[str, ...] = ()
    emit: str = "all"


@list_columns("clusters", "clusters-names")
@define(
    "clusters",
    ClustersOptions,
    short_help="groups of near-duplicates, and which of each to keep",
    epilog="""\b
Examples:
  lshdup clusters sample_corpus --prefer '*.txt'
  lshdup clusters sample_corpus --emit drop -0 | xargs -0 -r ls -l
  lshdup clusters sample_corpus/udhr --against sample_corpus/licences -t 0.6
""",
)
@stack(
    table_options,
    keep_options,
    against_option("What is near a document of OTHER goes too; OTHER stays"),
    plain_option("--emit", type=click.Choice(("all", "keep", "drop", "drop-files")), default="all",
                  brief=True,
                  help="Groups with all that is known; or names only: all that stays; what may "
                       "go; of that only whole files."),
    plain_option("--write", type=OutputPath(str), metavar="FILE|DIR/", brief=True,
                 help="Write the JSON Lines, CSV or Parquet files without the rows that may go, "
                      "all else as it is; - is standard output. Groups only with --emit or "
                      "-o."),
    plain_option("--removed", type=OutputPath(Path), metavar="FILE", requires=("--write",),
                  help="List there what --write leaves out; - likewise."),
    option("--linkage", type=click.Choice(LINKAGES), default=ClustersOptions.linkage,
            excludes=("--same",),
            help="All similar enough to the one that is kept; or what chains of pairs "
                 "connect."),
    same_option,
    check_option("groups"),
    exact_option,
    max_bucket_option,
    memory_option,
    run_options,
    output_options,
)  # fmt: skip
def command(ctx: click.Context, options: ClustersOptions) -> int:
    """Print groups of near-duplicates: group, keep or drop, name, similarity, copy, smallest
    similarity of the group, same.

    Every document of a group is at least the threshold similar to the one that is kept. It is a
    copy if it has the same shingles; same is bytes for equal files, text for the same words in the
    same order, else empty. Nothing is moved or deleted.

    Without DOCS, the documents of the last run are grouped. With --against, the document of OTHER
    that others are near has the role other. Nothing of OTHER goes.
    """
    target = make_target(options)
    writing.check_outputs(ctx, options)
    rule = ClusterParams(
        options.linkage, options.keep or "", options.prefer, options.max_bucket or 0
    )
    with open_session(ctx, partial(writing.check_documents, options)) as session:
        console = session.console
        answer = (_find_against if options.against else _find)(session, options, rule)
        took = console.duration_of("groups") if console.is_verbose else ""
        described = describe_rule(rule, answer.documents)
        likeness = describe_likeness(options.threshold, options.same)
        _say_groups(console, answer, likeness, took, described)
        if options.write is not None:
            clusters = answer.result.clusters
            prints, uncompared = answer.prints, answer.collection.list_skipped_records()
            writing.write(session, options, clusters, answer.sides, prints, uncompared)
        if writing.prints_listing(ctx, options):
            _print(console, target, answer, options.emit)
        return console.exit_code(answer.result.clusters.count)


@dataclass(frozen=True)
class _Answer:
    """Groups of documents.

    result : the groups; documents of OTHER are behind those of DOCS.
    collection : DOCS.
    sides : the documents of DOCS, and those of OTHER if there are some.
    prints : fingerprints of all documents in the groups.
    typed : returns the names of an ascending int64 array of them.
    """

    result: "ClustersFound"
    collection: "Collection"
    sides: "tuple[DocumentList, ...]"
    prints: "Fingerprints"
    typed: "Callable[[NDArray[np.int64]], list[bytes]]"

    @property
    def documents(self) -> "DocumentList":
        """The documents of DOCS."""
        return self.collection.documents

    @property
    def kept(self) -> "NDArray[np.int64]":
        """The documents of DOCS that represent themselves: ascending int64 array."""
        kept = self.result.clusters.kept
        return kept[kept < len(self.documents)]


def _find(session: Session, options: ClustersOptions, rule: ClusterParams) -> _Answer:
    """Find groups of DOCS, and say how."""
    collection, result = find_groups(session, options, rule)
    documents = collection.documents
    return _Answer(result, collection, (documents,), collection.prints, documents.typed_names)


def _find_against(session: Session, options: ClustersOptions, rule: ClusterParams) -> _Answer:
    """Find groups of DOCS in which what is near a document of OTHER goes, and say how."""
    from lshdup.cli.commands.pairs_against import find_matches, open_sides
    from lshdup.collection.shared_documents import find_shared
    from lshdup.workspace.against import find_clusters_against, leave_out_changed

    console, request = session.console, session.request
    both = open_sides(session, options)
    refuse_documents(session.outputs, both.there.documents)
    shared = find_shared(both.here.documents, both.there.documents)
    if len(shared):
        console.say(f"{count_of(len(shared), 'document')} of DOCS in OTHER too: always kept")
    both = leave_out_changed(session.workspace, both, console.report_skipped_of_other)
    matches = find_matches(session, both)
    result = find_clusters_against(session.workspace, both, matches, shared, rule, request)
    documents = (both.here.documents, both.there.documents)
    return _Answer(result, both.here, documents, both.sides.prints, both.names)


def _print(console: Console, target: Target, answer: _Answer, what: str) -> None:
    from lshdup.cli.tables import groups
    from lshdup.collection.name_lists import names_to_drop, names_to_keep, skipped_names
    from lshdup.compare.clusters import list_clusters

    clusters, documents = answer.result.clusters, answer.documents
    dropped = clusters.dropped
    if what == "all":
        listed = list_clusters(clusters)
        rows, total = _rows(answer, listed), len(listed.documents)
        layout = None if target.header else groups  # LSHDUP_HEADER asks for columns.
        print_pieces(console, target, column_names("clusters"), rows, total, layout)
        return
    if what == "keep":
        names = names_to_keep(answer.collection, dropped, answer.result.lost)
        uncompared = len(documents) - len(dropped) - len(answer.kept)
        if uncompared := uncompared + len(skipped_names(answer.collection)):
            was = count_of(uncompared, "name is of what was", "names are of what was")
            console.summarize(f"{was} not compared, and stays (-v says why)")
    else:
        names = names_to_drop(documents, dropped, whole_files=what == "drop-files")
        parts = int(documents.are_parts(dropped).sum()) if what == "drop" else 0
        if parts:
            what_is = count_of(parts, "name is of a part of a file", "names are of parts of files")
            console.warn(
                f"{what_is} (rows, mails, members of archives): do not give them to `rm`; "
                "--emit drop-files names whole files only, --write writes a file without rows"
            )
    print_pieces(console, target, column_names("clusters-names"), ([part] for part in names))


def _rows(answer: _Answer, clusters: "ClusterListing") -> "Iterator[Piece]":
    result, copies, own = answer.result, answer.result.copies, answer.result.clusters.representative
    names = DocumentNames(len(own), answer.typed)
    for start in range(0, len(clusters.documents), PIECE_ROWS):
        part = slice(start, start + PIECE_ROWS)
        rows = clusters.documents[part]
        kept = (own[rows] == rows).tolist()
        is_other = (rows >= len(answer.documents)).tolist()
        same = answer.prints.words(rows, own[rows])
        yield (
            clusters.numbers[part].tolist(),
            [
                "other" if other else "keep" if is_kept else "drop"
                for other, is_kept in zip(is_other, kept, strict=True)
            ],
            names.of(rows).tolist(),
            result.clusters.similarity[rows].tolist(),
            copies[rows].tolist(),
            clusters.smallest[part].tolist(),
            [None if is_kept else word for is_kept, word in zip(kept, same, strict=True)],
        )


def _say_groups(console: Console, answer: _Answer, likeness: str, took: str, rule: str) -> None:
    """Say how many groups there are, the rule, and how many documents are kept and dropped."""
    from lshdup.collection.name_lists import count_hard_links

    result, documents = answer.result, answer.documents
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
        f" {printable(answer.typed(largest)[0])}"
    )
    groups_and_all = f"{count_of(n, 'group')} {likeness} with {n + len(dropped):,} documents"
    has_others = len(answer.sides) > 1
    others = int((sizes[len(documents) :] > 1).sum())
    near = int((groups.representative[dropped] >= len(documents)).sum())
    console.summarize(f"kept: {rule}{'; all documents of OTHER' if has_others else ''}")
    console.summarize(
        f"{groups_and_all}; "
        f"keep {count_of(len(kept), 'document')}, {len(kept) - n + others:,} alone; "
        f"drop {len(dropped):,}, {int(result.copies.sum()):,} of them copies, "
        f"{f'{near:,} near documents of OTHER, ' if has_others else ''}"
        f"{int(documents.spans[dropped].sum()):,} bytes{seconds}"
    )
    links = count_hard_links(answer.sides, dropped, groups.representative[dropped])
    if links:
        what = count_of(links, "of these is a hard link", "of these are hard links")
        console.summarize(f"{what} of the document that is kept: removing one frees nothing")
