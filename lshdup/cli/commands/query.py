"""`lshdup query`."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli.columns import column_names
from lshdup.cli.completion import complete_document
from lshdup.cli.console import Console
from lshdup.cli.help import Command
from lshdup.cli.messages import say_contract, say_last_run, warn_of_changes
from lshdup.cli.options import (
    band_options,
    check_files_option,
    list_columns,
    option,
    output_options,
    same_option,
    store_options,
)
from lshdup.cli.printing import make_target, print_rows
from lshdup.cli.session import Session, open_session
from lshdup.errors import InputError
from lshdup.utils.messages import count_of, printable
from lshdup.workspace.lookup import NamedDocument, look_up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.matching.sameness import Prints
    from lshdup.utils.json_cells import Cell
    from lshdup.workspace.index import IndexedCollection


@list_columns("query")
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
    """
    target = make_target(options)
    words = options.pop("docs")
    with open_session(ctx, options) as session:
        indexed = session.workspace.load_or_build_index(session.request, save=False, verify=False)
        say_last_run(session.console, indexed.collection)
        say_contract(session.console, indexed.plan, indexed.params)
        several = len(words) > 1
        wide = several or options["format_"] in ("json", "jsonl")
        columns = column_names("query")[: 4 if wide else 3]
        documents = []
        for word in words:
            try:
                documents.append(look_up(word, indexed.collection))
                if documents[-1].note:
                    session.console.say(documents[-1].note)
            except InputError as error:
                if not several:
                    raise
                session.console.error(error)
        rows = _rows(session, indexed, documents, options["top"], options["same"], wide=wide)
        first = list(islice(rows, 1))
        print_rows(session.console, target, columns, chain(first, rows))
        return session.console.exit_code_of(len(first))


def _rows(
    session: Session,
    indexed: "IndexedCollection",
    documents: list[NamedDocument],
    top: int | None,
    same: str | None,
    *,
    wide: bool,
) -> "Iterator[tuple[Cell, ...]]":
    import numpy as np

    from lshdup.matching.sameness import LEVELS
    from lshdup.pipeline import find_neighbours

    console, collection = session.console, indexed.collection
    source = session.workspace.set_source(collection, session.request.jobs)
    threshold = indexed.params.threshold
    for done, each in enumerate(documents):
        console.progress("queries", done, len(documents))
        shingles, keys, signature, prints = shingle_and_sketch(console, indexed, each)
        shown = printable(each.name)
        if not len(shingles):
            least = collection.shingle.min_tokens
            lack = f"has fewer than {count_of(least, 'token')}" if least else "has no tokens"
            lack += "" if collection.shingle_filter is None else ", or only common shingles"
            if console.is_check:
                message = f"{shown} was not checked: it {lack}"
                console.error(InputError(message, "name a document that holds text"))
            else:
                console.say(f"{shown} {lack}: it is near nothing")
            continue
        if console.is_check and not _holds_another(collection, each.index):
            message = f"{shown} was not checked: the store holds no other document with tokens"
            console.error(InputError(message, "run `lshdup index DOCS` over more documents"))
        near = find_neighbours(
            indexed.index,
            source,
            threshold,
            keys=keys,
            shingles=shingles,
            itself=each.index,
            is_candidate=indexed.is_candidate(signature),
        )
        levels = prints.compare_to(collection.prints, near.documents)
        chosen = np.flatnonzero(levels >= LEVELS.index(same))[:top]
        near, levels = near.take(chosen), levels[chosen]
        if not len(near.documents):
            stored = count_of(len(collection.documents), "document")
            likeness = f"has the same {same} as" if same else f"is {threshold:g} similar or more to"
            console.say(f"none of {stored} {likeness} {shown}")
        warn_of_changes(session, collection.documents, near.documents)
        names = collection.documents.typed_names(near.documents)
        words = (LEVELS[level] for level in levels.tolist())
        for row in zip(names, near.similarity.tolist(), words, strict=True):
            yield (*row, each.name) if wide else row


def _holds_another(collection: "Collection", index: int) -> bool:
    """Return whether a collection has a document with shingles beside the one at `index`, or -1."""
    return any(at != index for at in collection.sizes.nonzero()[0][:2].tolist())


def shingle_and_sketch(
    console: Console, indexed: "IndexedCollection", document: NamedDocument
) -> "tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32], Prints]":
    """Return the shingle set of a document, its band keys, its signature and its fingerprints."""
    import numpy as np

    from lshdup.documents.reading import TextBatch
    from lshdup.lsh import band_table
    from lshdup.lsh.signatures import Sketcher
    from lshdup.matching.sameness import Prints
    from lshdup.shingling.shingler import Shingler, fingerprint_bytes, fingerprint_sets

    collection = indexed.collection
    assert collection.sketch is not None
    params, text = collection.shingle, document.utf8(collection.shingle)
    sets, text_prints = Shingler(params).shingle_decoded([text])
    raw = text if params.tokens == "ids" else document.content()[0]
    prints = Prints(fingerprint_bytes(TextBatch.of([0], [raw]), params), text_prints)
    if collection.shingle_filter is not None:
        sets = collection.shingle_filter.apply(sets)
    if document.index >= 0:
        if fingerprint_sets(sets, params)[0] == collection.fingerprints[document.index]:
            assert collection.signatures is not None
            keys = indexed.index.table.keys_of(document.index)
            return sets[0], keys, collection.signatures[document.index], prints
        console.warn(
            f"{printable(document.name)} has changed since it was indexed; "
            "its present text is looked up"
        )
    signature = Sketcher(collection.sketch).sketch(sets)
    keys = np.ascontiguousarray(band_table.band_keys(signature, indexed.index.plan)[:, 0])
    return sets[0], keys, signature[0], prints
