"""`lshdup query`."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of, printable
from lshdup.cli.columns import column_names
from lshdup.cli.console import Console
from lshdup.cli.help import amend, define, option, stack
from lshdup.cli.messages import describe_rest, say_contract, say_last_run, warn_of_changes
from lshdup.cli.options import (
    accepted_options,
    band_options,
    list_columns,
    measure_option,
    of_the_index,
    output_options,
    same_option,
    store_options,
)
from lshdup.cli.output import OutputOptions, make_target, print_rows
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import DocumentName
from lshdup.errors import InputError
from lshdup.workspace.lookup import NamedDocument, look_up

if TYPE_CHECKING:
    from lshdup.base.wording import Cell
    from lshdup.collection.collection import Collection
    from lshdup.compare.sides import Side
    from lshdup.workspace.index import IndexedCollection, Query


@dataclass(frozen=True)
class QueryOptions(OutputOptions):
    """The options of `query`."""

    docs: tuple[bytes, ...]
    threshold: float
    measure: str
    same: str | None
    top: int | None
    accepted: Path | None = None
    show_accepted: bool = False


@list_columns("query", "query-containment")
@define(
    "query",
    QueryOptions,
    short_help="the near-duplicates of one document",
    epilog="""\b
Examples:
  lshdup index sample_corpus && lshdup query MIT.txt
  lshdup query - --threshold 0.9 < sample_corpus/licences/MIT.txt
""",
)
@stack(
    click.argument("docs", nargs=-1, required=True, type=DocumentName(), metavar="DOC..."),
    of_the_index,
    amend("recall", excludes=("--measure containment",)),
    band_options,
    amend("measure", excludes=()),
    measure_option,
    option("--top", type=click.IntRange(1), metavar="N", show_default="all", brief=True,
           help="At most N documents for each DOC: the most similar ones; of equally similar "
                "ones, the first names."),
    same_option,
    accepted_options,
    option("--check", is_flag=True, brief=True,
            help="Exit with 1 if a DOC has a near-duplicate, with 2 if one could not be looked "
                 "up."),
    store_options,
    output_options,
)  # fmt: skip
def command(ctx: click.Context, options: QueryOptions) -> int:
    """Print the documents of the store that are near-duplicates of DOC: name, similarity, same (and
    DOC, if several are given).

    DOC is a name in the store or its unique end, any other file, or - for standard input. The
    store is that of the last run with DOCS; the similarity is exact. Same is bytes for equal files,
    text for the same words in the same order, else empty. Of the documents of the answer those that
    were deleted or changed since are counted; all others are not looked at.

    With --measure containment, relation says which way: DOC is inside the document, holds it, or
    both, if they have as many shingles. The sets of all documents are looked at.
    """
    target = make_target(options)
    words = options.docs
    with open_session(ctx) as session:
        from lshdup.workspace.index import load_or_build_index
        from lshdup.workspace.loading import load_signatures

        workspace, indexed = session.workspace, None
        if options.measure == "containment":
            collection = load_signatures(workspace, session.request)
        else:
            indexed = load_or_build_index(workspace, session.request, verify=False)
            collection = indexed.collection
        say_last_run(session.console, collection)
        if indexed is not None:
            say_contract(session.console, indexed.plan, indexed.params)
        several = len(words) > 1
        wide = several or options.format_ in ("json", "jsonl")
        columns = column_names("query" if indexed else "query-containment")
        documents = []
        for word in words:
            try:
                documents.append(look_up(word, collection))
                if documents[-1].note:
                    session.console.say(documents[-1].note)
            except InputError as error:
                if not several:
                    raise
                session.console.error(error)
        rows = _rows(session, collection, indexed, documents, options)
        rows = rows if wide else (row[:-1] for row in rows)
        first = list(islice(rows, 1))
        print_rows(session.console, target, columns if wide else columns[:-1], chain(first, rows))
        return session.console.exit_code(len(first))


def _rows(
    session: Session,
    collection: "Collection",
    indexed: "IndexedCollection | None",
    documents: list[NamedDocument],
    options: QueryOptions,
) -> "Iterator[tuple[Cell, ...]]":
    """Yield the rows of all documents. indexed : None for containment."""
    from lshdup.collection.set_source import side_of
    from lshdup.workspace.index import holds_another, read_query

    console = session.console
    side = side_of(session.workspace, collection)
    for done, each in enumerate(documents):
        console.progress("queries", done, len(documents))
        query, shown = read_query(collection, each), printable(each.name)
        if query.has_changed:
            console.warn(f"{shown} has changed since it was indexed; its present text is looked up")
        if not len(query.shingles):
            _say_lack(console, collection, shown)
            continue
        if console.is_check and not holds_another(collection, each.index):
            message = f"{shown} was not checked: the store holds no other document with tokens"
            console.error(InputError(message, "run `lshdup index DOCS` over more documents"))
        for row in _find(session, collection, indexed, side, query, each.name, options):
            yield (*row, each.name)


def _say_lack(console: Console, collection: "Collection", shown: str) -> None:
    """Say that a document has too few tokens to be near another."""
    least = collection.shingle.min_tokens
    lack = f"has fewer than {count_of(least, 'token')}" if least else "has no tokens"
    if collection.shingle_filter is not None:
        lack += f", or {describe_rest(collection.shingle_filter.params.least_shingles)}"
    if console.is_check:
        message = f"{shown} was not checked: it {lack}"
        console.error(InputError(message, "name a document that holds text"))
    else:
        console.say(f"{shown} {lack}: it has no near-duplicates")


def _find(
    session: Session,
    collection: "Collection",
    indexed: "IndexedCollection | None",
    side: "Side",
    query: "Query",
    name: bytes,
    options: QueryOptions,
) -> "Iterator[tuple[Cell, ...]]":
    """Yield the rows of a document, without its name."""
    import numpy as np

    from lshdup.compare.scored_pairs import unpack_pairs
    from lshdup.compare.sides import LEVELS
    from lshdup.compare.verification import relations
    from lshdup.workspace.accepted import find_accepted
    from lshdup.workspace.index import find_near

    same, threshold = options.same, options.threshold
    near = find_near(session.workspace, side, query, threshold, indexed)
    documents, n = collection.documents, len(near.documents)
    if not options.show_accepted:
        prints = np.append(collection.prints.text_prints[near.documents], query.prints.text_prints)
        named = [*documents.typed_names(near.documents), name]
        accepted = find_accepted(
            session.run, options.accepted, [documents], collection.shingle, prints,
            lambda rows: [named[row] for row in rows.tolist()], of=n,
        )  # fmt: skip
        near = near.take(np.setdiff1d(np.arange(n), unpack_pairs(accepted)[0]))
    levels = query.prints.compare_to(collection.prints, near.documents)
    chosen = np.flatnonzero(levels >= LEVELS.index(same))[: options.top]
    near, levels = near.take(chosen), levels[chosen]
    if not len(near.documents):
        stored = count_of(len(collection.documents), "document")
        likeness = f"is {threshold:g} similar or more to"
        if indexed is None:
            likeness = f"has containment {threshold:g} or more with"
        likeness = f"has the same {same} as" if same else likeness
        session.console.say(f"none of {stored} {likeness} {printable(name)}")
    warn_of_changes(session, collection.documents, near.documents)
    names = collection.documents.typed_names(near.documents)
    scores: list[list[Cell]] = [near.similarity.tolist()]
    if indexed is None:
        sizes = collection.sizes[near.documents]
        relation: list[Any] = relations(np.full(len(sizes), len(query.shingles)), sizes)
        shares = near.similarity.real.tolist(), near.similarity.imag.tolist()
        scores = [*shares, sizes.tolist(), relation]
    words = (LEVELS[level] for level in levels.tolist())
    return zip(names, *scores, words, strict=True)
