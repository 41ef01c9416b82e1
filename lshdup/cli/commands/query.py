"""`lshdup query`."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.messages import count_of, printable
from lshdup.cli.columns import column_names
from lshdup.cli.completion import complete_document
from lshdup.cli.conflicts import refuse_with_containment
from lshdup.cli.console import Console
from lshdup.cli.findings import say_contract, warn_of_changes
from lshdup.cli.help import Command
from lshdup.cli.messages import describe_rest, say_last_run
from lshdup.cli.options import (
    band_options,
    check_files_option,
    list_columns,
    measure_option,
    option,
    output_options,
    same_option,
    store_options,
)
from lshdup.cli.printing import make_target, print_rows
from lshdup.cli.session import Session, open_session
from lshdup.errors import InputError
from lshdup.workspace.lookup import NamedDocument, look_up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.base.messages import Cell
    from lshdup.collection.collection import Collection
    from lshdup.compare.fingerprints import Fingerprints
    from lshdup.workspace.index import IndexedCollection


@list_columns("query", "query-containment")
@click.command(
    "query",
    cls=Command,
    short_help="the near-duplicates of one document",
    epilog="""\b
Examples:
  lshdup index sample_corpus && lshdup query MIT.txt
  lshdup query - --threshold 0.9 < sample_corpus/licences/MIT.txt
""",
)
@click.argument("docs", nargs=-1, required=True, type=click.Path(readable=False, allow_dash=True,
                                                                 path_type=bytes), metavar="DOC...",
                shell_complete=complete_document)  # fmt: skip
@band_options
@measure_option
@option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    show_default="all",
    help="At most N documents for each DOC: the most similar ones; of equally similar ones, the "
    "first names.",
)
@same_option
@check_files_option
@option(
    "--check",
    is_flag=True,
    help="Exit with 1 if a DOC has a near-duplicate, with 2 if one could not be looked up.",
)
@store_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
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
    refuse_with_containment(ctx)
    words = options.pop("docs")
    with open_session(ctx, options) as session:
        workspace, indexed = session.workspace, None
        if options["measure"] == "containment":
            collection = workspace.load_or_collect_signatures(session.request, 0)
        else:
            indexed = workspace.load_or_build_index(session.request, save=False, verify=False)
            collection = indexed.collection
        say_last_run(session.console, collection)
        if indexed is not None:
            say_contract(session.console, indexed.plan, indexed.params)
        several = len(words) > 1
        wide = several or options["format_"] in ("json", "jsonl")
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
        return session.console.exit_code_of(len(first))


def _rows(
    session: Session,
    collection: "Collection",
    indexed: "IndexedCollection | None",
    documents: list[NamedDocument],
    options: dict[str, Any],
) -> "Iterator[tuple[Cell, ...]]":
    """Yield the rows of all documents. indexed : None for containment."""
    import numpy as np

    from lshdup.compare.comparing import find_neighbours
    from lshdup.compare.fingerprints import LEVELS
    from lshdup.compare.sides import Sides
    from lshdup.compare.verification import relations
    from lshdup.lsh.candidates import documents_to_compare
    from lshdup.pipeline import side_of

    console, same, threshold = session.console, options["same"], options["threshold"]
    run, measure = session.workspace, "jaccard" if indexed is not None else "containment"
    duplicate_of = indexed.index.duplicate_of if indexed is not None else None
    side = side_of(collection, run.set_source(collection))
    sides = Sides.of(run, side, duplicate_of=duplicate_of)
    if indexed is None:
        every = documents_to_compare(run, sides.duplicate_of, sides.sizes)
    for done, each in enumerate(documents):
        console.progress("queries", done, len(documents))
        if indexed is not None:
            shingles, keys, signature, prints = shingle_and_sketch(console, indexed, each)
        else:
            shingles, prints, _ = _shingle(console, collection, each)
        shown = printable(each.name)
        if not len(shingles):
            least = collection.shingle.min_tokens
            lack = f"has fewer than {count_of(least, 'token')}" if least else "has no tokens"
            if collection.shingle_filter is not None:
                fewest = collection.shingle_filter.params.least_shingles
                lack += f", or {describe_rest(fewest)}"
            if console.is_check:
                message = f"{shown} was not checked: it {lack}"
                console.error(InputError(message, "name a document that holds text"))
            else:
                console.say(f"{shown} {lack}: it has no near-duplicates")
            continue
        if console.is_check and not _holds_another(collection, each.index):
            message = f"{shown} was not checked: the store holds no other document with tokens"
            console.error(InputError(message, "run `lshdup index DOCS` over more documents"))
        met = every if indexed is None else indexed.candidates_of(each.index, keys, signature)
        near = find_neighbours(
            session.workspace, shingles, met, sides, threshold, measure, itself=each.index
        )
        levels = prints.compare_to(collection.prints, near.documents)
        chosen = np.flatnonzero(levels >= LEVELS.index(same))[: options["top"]]
        near, levels = near.take(chosen), levels[chosen]
        if not len(near.documents):
            stored = count_of(len(collection.documents), "document")
            likeness = f"is {threshold:g} similar or more to"
            if indexed is None:
                likeness = f"has containment {threshold:g} or more with"
            likeness = f"has the same {same} as" if same else likeness
            console.say(f"none of {stored} {likeness} {shown}")
        warn_of_changes(session, collection.documents, near.documents)
        names = collection.documents.typed_names(near.documents)
        scores: list[list[Cell]] = [near.similarity.tolist()]
        if indexed is None:
            sizes = collection.sizes[near.documents]
            relation: list[Any] = relations(np.full(len(sizes), len(shingles)), sizes)
            shares = near.similarity.real.tolist(), near.similarity.imag.tolist()
            scores = [*shares, sizes.tolist(), relation]
        words = (LEVELS[level] for level in levels.tolist())
        for row in zip(names, *scores, words, strict=True):
            yield (*row, each.name)


def _holds_another(collection: "Collection", index: int) -> bool:
    """Return whether a collection has a document with shingles beside the one at `index`, or -1."""
    return any(at != index for at in collection.sizes.nonzero()[0][:2].tolist())


def shingle_and_sketch(
    console: Console, indexed: "IndexedCollection", document: NamedDocument
) -> "tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32], Fingerprints]":
    """Return the shingle set of a document, its band keys, its signature and its fingerprints."""
    import numpy as np

    from lshdup.base.ragged import RaggedSets
    from lshdup.base.run import Run
    from lshdup.lsh import band_table
    from lshdup.lsh.signatures import Sketcher

    collection = indexed.collection
    assert collection.sketch is not None
    shingles, prints, is_stored = _shingle(console, collection, document)
    if is_stored:
        assert collection.signatures is not None
        keys = indexed.index.table.keys_of(document.index)
        return shingles, keys, collection.signatures[document.index], prints
    sets = RaggedSets.from_sizes(shingles, np.array([len(shingles)], np.int64))
    signature = Sketcher(collection.sketch).sketch(sets)
    keys = np.ascontiguousarray(
        band_table.band_keys(Run.quiet(), signature, indexed.index.plan)[:, 0]
    )
    return shingles, keys, signature[0], prints


def _shingle(
    console: Console, collection: "Collection", document: NamedDocument
) -> "tuple[NDArray[np.uint64], Fingerprints, bool]":
    """Return the shingle set of a document, its fingerprints, and whether its set is stored."""
    from lshdup.compare.fingerprints import Fingerprints
    from lshdup.shingling.shingler import Shingler, fingerprint_bytes, fingerprint_sets
    from lshdup.sources.reading import TextBatch

    params, text = collection.shingle, document.utf8(collection.shingle)
    sets, text_prints = Shingler(params).shingle_decoded([text])
    raw = text if params.tokens == "ids" else document.content()
    prints = Fingerprints(fingerprint_bytes(TextBatch.of([0], [raw]), params), text_prints)
    if collection.shingle_filter is not None:
        sets = collection.shingle_filter.apply(sets)
    if document.index >= 0:
        if fingerprint_sets(sets, params)[0] == collection.fingerprints[document.index]:
            return sets[0], prints, True
        console.warn(
            f"{printable(document.name)} has changed since it was indexed; "
            "its present text is looked up"
        )
    return sets[0], prints, False
