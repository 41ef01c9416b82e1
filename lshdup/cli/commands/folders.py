"""`lshdup folders`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lshdup.base.frozen import dataclass
from lshdup.base.params import ClusterParams
from lshdup.base.wording import count_of
from lshdup.cli.columns import columns_of
from lshdup.cli.help import define, option
from lshdup.cli.messages import describe_likeness, say_nothing
from lshdup.cli.options import (
    FindOptions,
    check_option,
    list_columns,
    output_options,
    run_options,
    same_options,
    table_options,
)
from lshdup.cli.output import PIECE_ROWS, OutputOptions, Piece, make_target, print_pieces
from lshdup.cli.session import open_session
from lshdup.cli.types import Share

if TYPE_CHECKING:
    from lshdup.compare.folders import FolderPairs
    from lshdup.sources.document_list import DocumentList
    from lshdup.workspace.folders import Folders


@dataclass(frozen=True)
class FoldersOptions(FindOptions, OutputOptions):
    """The options of `folders`."""

    containment: float = 0.8


@list_columns("folders")
@define(
    "folders",
    FoldersOptions,
    short_help="folders that hold nearly the same documents",
    epilog="""\b
Examples:
  lshdup folders sample_corpus --threshold 0.5 --containment 1%
  lshdup index sample_corpus && lshdup folders -t 0.3 --containment 0.01
""",
)
@table_options
@same_options
@option("--containment", type=Share(), metavar="C", brief=True,
        default=FoldersOptions.containment,
        help="Share of the bytes of a folder that the other one holds, at least.")  # fmt: skip
@check_option("pairs of folders")
@run_options
@output_options
def command(ctx: click.Context, options: FoldersOptions) -> int:
    """Print pairs of folders that hold nearly the same documents: a is inside b.

    A folder holds the groups of the documents below it: those of `lshdup clusters` at the
    threshold, and of documents without tokens those with equal bytes. A group weighs as many bytes
    as the document that is kept. Similarity is the share of the bytes of both folders that both
    hold; containment is the share of a, the smaller one. Shared documents are those of a whose
    group b holds too; shared bytes count each group once.

    Of a holder and its folders the most similar one is b. A pair is not listed if it follows from
    the folders above: if both are below, or are, two that are listed. Folders that hold the same
    are listed once each, beside the first; folders that share only documents which are in more than
    100 folders once each, inside the next larger one. A folder is never paired with one above it.
    The largest shared bytes come first. `lshdup show A B` lists what is in one of two folders only.

    Without DOCS, the documents of the last run are compared. Archives hold folders too.
    """
    target = make_target(options)
    rule = ClusterParams(max_bucket=options.max_bucket or 0)
    with open_session(ctx) as session:
        console = session.console
        from lshdup.cli.find_pairs import find_groups
        from lshdup.compare.folders import COMMON
        from lshdup.workspace.folders import compare_folders

        opened, found = find_groups(session, options, rule, least=0)
        collection, documents = opened.here, opened.here.documents
        least = options.containment
        folders, pairs = compare_folders(session.workspace, collection, found.clusters, least)
        if not len(documents):
            say_nothing(session, collection, 0, 2)
        elif not folders.tree.has_branches():
            # Documents without tokens are compared too, by their bytes.
            console.report_nothing(
                "nothing to compare",
                f"{count_of(len(documents), 'document')}, but no two folders beside each other",
                "name more folders",
            )
        likeness = describe_likeness(options.threshold, options.same)
        console.summarize(
            f"{count_of(len(pairs), 'pair')} of {count_of(len(folders.examples) - 1, 'folder')}: "
            f"one holds {least:.12g} or more of the other, in documents {likeness}{console.took()}"
        )
        if pairs.common:
            console.say(
                f"{count_of(pairs.common, 'document is', 'documents are')} in more than {COMMON} "
                "folders: folders that share nothing else are listed once each, inside the next "
                "larger one"
            )
        rows = _rows(folders, pairs, documents)
        print_pieces(console, target, columns_of("folders"), rows, len(pairs))
        return console.exit_code(len(pairs))


def _rows(folders: "Folders", pairs: "FolderPairs", documents: "DocumentList") -> Iterator[Piece]:
    for start in range(0, len(pairs), PIECE_ROWS):
        part = slice(start, start + PIECE_ROWS)
        sides = (pairs.inside, pairs.holder)
        numbers = (
            pairs.similarity, pairs.containment, pairs.inside_documents, pairs.holder_documents,
            pairs.shared_documents, pairs.shared_bytes,
        )  # fmt: skip
        names = [folders.typed_names(documents, each[part]) for each in sides]
        yield (*names, *(each[part].tolist() for each in numbers))
