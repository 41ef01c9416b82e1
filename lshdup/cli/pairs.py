"""`lshdup pairs`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import options as shared
from lshdup.cli.summary import say_collection, say_contract
from lshdup.console import OK, PAIRS_FOUND, counted
from lshdup.params import VERIFY, BandParams

if TYPE_CHECKING:
    from lshdup.collection import Collection
    from lshdup.documents import DocumentList
    from lshdup.output import Cell
    from lshdup.pipeline import Found
    from lshdup.similarity import Pairs

_CHUNK = 1 << 16


@click.command(
    "pairs",
    short_help="all near-duplicate pairs",
    epilog="""\b
Examples:
  lshdup pairs sample_corpus --threshold 0.9
  lshdup pairs sample_corpus --format jsonl | python -m json.tool --json-lines
""",
)
@shared.documents_options
@shared.shingle_options
@shared.sketch_options
@shared.band_options
@click.option("--exact", is_flag=True, help="Join all sets instead of looking candidates up: every pair, no misses.")
@click.option(
    "--verify",
    type=click.Choice(VERIFY),
    default="exact",
    show_default=True,
    help="The similarity that decides and is printed: of the shingle sets, or as estimated by the signatures.",
)
@click.option("--collapse-copies", is_flag=True, help="Each document with an identical shingle set once, beside the first of its kind.")
@click.option("--check", is_flag=True, help="Exit with 1 if there are pairs.")
@shared.run_options
@shared.output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print all pairs of documents whose similarity is at least the threshold: name, name, similarity.

    The similarity is the exact Jaccard similarity of the shingle sets. Pairs are found through the band table; the chance to miss one is
    said on stderr. Without DOCS, the documents of the last run are compared.
    """  # fmt: skip
    target = shared.target(options)
    with shared.session(ctx, options) as session:
        console = session.console
        if options["exact"]:
            collection, found = _joined(session, options)
        else:
            collection, found = _banded(session, options)
        target.write(("a", "b", "similarity"), _rows(found.pairs, collection.documents))
        if options["check"] and console.exit_code == OK and len(found.pairs):
            return PAIRS_FOUND
        return console.exit_code


def _banded(session: shared.Session, options: dict[str, Any]) -> "tuple[Collection, Found]":
    from lshdup import pipeline

    console, workspace, request = session.console, session.workspace, session.request
    indexed = workspace.indexed(request, save=False)
    say_collection(console, indexed.collection)
    say_contract(console, indexed.made.plan, indexed.params)
    threshold = indexed.params.threshold
    found = pipeline.near_duplicates(
        indexed.collection,
        indexed.made,
        workspace.source(indexed, request.jobs),
        threshold,
        verify=options["verify"],
        collapse=options["collapse_copies"],
        jobs=request.jobs,
        progress=console.progress,
    )
    found_line = f"{counted(found.candidates, 'candidate pair')} -> {counted(len(found.pairs), 'pair')}"
    console.say(f"{found_line} of similarity {threshold:g} or more; {console.seconds:.2f} s")
    return indexed.collection, found


def _joined(session: shared.Session, options: dict[str, Any]) -> "tuple[Collection, Found]":
    from lshdup import pipeline

    console = session.console
    threshold = session.request.given.get("threshold", BandParams().threshold)
    with session.workspace.every_set(session.request) as (collection, sets):
        say_collection(console, collection)
        found = pipeline.exact_near_duplicates(collection, sets, threshold, collapse=options["collapse_copies"])
    console.say(f"{counted(len(found.pairs), 'pair')} of similarity {threshold:g} or more, none missed; {console.seconds:.2f} s")
    return collection, found


def _rows(pairs: "Pairs", documents: "DocumentList") -> "Iterator[tuple[Cell, ...]]":
    names = documents.names
    for start in range(0, len(pairs), _CHUNK):
        part = slice(start, start + _CHUNK)
        left, right = list(names.take(pairs.left[part])), list(names.take(pairs.right[part]))
        yield from zip(left, right, pairs.similarity[part].tolist(), strict=True)
