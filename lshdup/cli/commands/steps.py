"""`lshdup shingle`, `lshdup signatures` and `lshdup index`: the steps, one artifact each."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lshdup.base.frozen import dataclass
from lshdup.base.params import ShingleParams
from lshdup.base.wording import Cell
from lshdup.cli.columns import columns_of
from lshdup.cli.help import amend, define, plain_option, stack
from lshdup.cli.messages import say_collection, say_contract, say_largest
from lshdup.cli.options import (
    check_content_option,
    documents_options,
    index_options,
    list_columns,
    memory_option,
    output_options,
    run_options,
    shingle_options,
    sketch_options,
)
from lshdup.cli.output import OutputOptions, make_target, print_rows
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import DocumentName
from lshdup.errors import InputError

if TYPE_CHECKING:
    from lshdup.collection.collection import Collection
    from lshdup.shingling.shingle_filter import ShingleFilter

#: Removed shingles that -v shows, and most characters of each.
_MOST_COMMON, _CHARACTERS = 10, 80

#: Of the steps that make shingle sets.
_set_options = stack(
    documents_options, check_content_option, shingle_options, memory_option, run_options
)


@dataclass(frozen=True)
class ShingleOptions(OutputOptions):
    """The options of `shingle`."""

    show: bytes | None


@list_columns("shingle")
@define(
    "shingle",
    ShingleOptions,
    short_help="documents -> shingle sets (shingles.npz)",
    epilog="""\b
Examples:
  lshdup shingle sample_corpus
  lshdup shingle --show sample_corpus/licences/MIT.txt -k 2
""",
)
@_set_options
@plain_option("--show", metavar="DOC", type=DocumentName(), brief=True,
              help="Print the shingles of this file, document of the store, or - (standard input): "
                   "hash and text. Writes nothing.")  # fmt: skip
@amend("format_", "output", requires=("--show",))
@output_options
def shingle(ctx: click.Context, options: ShingleOptions) -> int:
    """Make the shingle sets of all documents and keep them in the store.

    A shingle is a run of k consecutive tokens of the normal form of the text; a document becomes
    the set of its shingles. Only new and changed documents are read when it is run again. With
    --template or --ignore-common it says what they would remove (with -v, the shingles that most
    documents have as text too), and --show marks it.
    """
    target = make_target(options)
    with open_session(ctx) as session:
        from lshdup.workspace.loading import make_shingles

        if options.show is not None:
            from lshdup.cli.listings.documents import look_up_documents

            last = session.load_last_collection()
            (document,), _, params, chosen = look_up_documents(session, last, options.show)
            columns = columns_of("shingle", optional=chosen is not None)
            rows = _rows(document.utf8(params), params, chosen)
            print_rows(session.console, target, columns, rows)
            return session.console.exit_code()
        collection = make_shingles(session.workspace, session.request)
        say_collection(session, collection, 1, whole=True)
        if collection.shingle_filter is not None:
            session.console.say(
                "shingles.npz keeps the whole sets: give --template and --ignore-common to "
                "`signatures` too"
            )
            if session.console.is_verbose:
                _say_most_common(session, collection)
        return session.console.exit_code()


@define(
    "signatures",
    short_help="shingle sets -> signatures (signatures.npz)",
    epilog="""\b
Examples:
  lshdup signatures sample_corpus
  lshdup shingle sample_corpus && lshdup signatures --perms 400
""",
)
@_set_options
@sketch_options
def signatures(ctx: click.Context) -> int:
    """Make the signatures of all documents and keep them in the store.

    Two signatures agree in a row with a chance equal to the Jaccard similarity of the shingle sets.
    Without DOCS, the sets of the last run are used; unless it kept them, its documents are read.
    """
    with open_session(ctx) as session:
        from lshdup.workspace.loading import signing

        run = session.workspace
        run.require_store()
        with signing(run, session.request, save=True, again=True) as (collection, _follow):
            say_collection(session, collection, 1, whole=True)
        return session.console.exit_code()


@define(
    "index",
    short_help="signatures -> band table (bands.npz)",
    epilog="""\b
Examples:
  lshdup index sample_corpus --threshold 0.7
  lshdup signatures sample_corpus && lshdup index
""",
)
@index_options
@memory_option
@run_options
def index(ctx: click.Context) -> int:
    """Make the band table that `query` and `pairs` look candidates up in, and keep it in the store.

    Says how many bands of how many rows were chosen, and the chance to miss a pair at the threshold
    and above it. Without DOCS, the table is made from signatures.npz.
    """
    with open_session(ctx) as session:
        from lshdup.lsh.candidates import SharedBuckets, say_large_bucket
        from lshdup.workspace.index import load_or_build_index

        indexed = load_or_build_index(session.workspace, session.request, save=True)
        documents = indexed.collection.documents
        say_collection(session, indexed.collection, 1, whole=True)
        say_contract(session.console, indexed.plan, indexed.params, whole=True)
        buckets = SharedBuckets.of(session.workspace, indexed.index.table).counts
        say_large_bucket(session.workspace, buckets, documents.names)
        say_largest(session.console, buckets, documents.names.strings_at)
        return session.console.exit_code()


def _rows(
    text: bytes, params: ShingleParams, shingle_filter: "ShingleFilter | None"
) -> Iterator[tuple[Cell, ...]]:
    from lshdup.shingling.inspection import list_shingles

    rows = list_shingles(text, replace(params, bag=False))  # A repeat would be the same line again.
    if shingle_filter is None:
        return ((number, words) for _, number, words in rows)
    return ((number, words, shingle_filter.explain(element)) for element, number, words in rows)


def _say_most_common(session: Session, collection: "Collection") -> None:
    """Show with -v the text of the removed shingles that most documents have."""
    from lshdup.shingling.inspection import list_shingles
    from lshdup.workspace.loading import most_common_shingles
    from lshdup.workspace.lookup import NamedDocument

    params, names, run = collection.shingle, collection.documents.names, session.workspace
    for shingle, count, index in most_common_shingles(run, collection, _MOST_COMMON):
        document = NamedDocument(names[index], index, collection=collection)
        try:
            rows = list_shingles(document.utf8(params), params)
            words = next((words for element, _, words in rows if element == shingle), b"")
        except InputError:  # The document has vanished or changed.
            words = b""
        text = words.decode("utf-8", "replace")
        text = text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"
        session.console.detail(f"in {count:,} different documents: {text!r} ({shingle:x})")
