"""`lshdup pairs`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import options as shared
from lshdup.cli.summary import say_collection, say_contract
from lshdup.console import OK, PAIRS_FOUND, Console, counted
from lshdup.params import VERIFY, BandParams

if TYPE_CHECKING:
    from lshdup.collection import Collection
    from lshdup.documents import DocumentList
    from lshdup.output import Cell
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
@shared.option("--exact", is_flag=True, help="Join all sets instead of looking candidates up: every pair, no misses.")
@click.option(
    "--verify",
    type=click.Choice(VERIFY),
    default="exact",
    show_default=True,
    help="The similarity that decides and is printed: of the shingle sets, or as estimated by the signatures.",
)
@shared.option("--collapse-copies", is_flag=True, help="Each document with an identical shingle set once, beside the first of its kind.")
@shared.option("--check", is_flag=True, help="Exit with 1 if there are pairs.")
@shared.run_options
@shared.output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print all pairs of documents whose similarity is at least the threshold: name, name, similarity.

    The similarity is the exact Jaccard similarity of the shingle sets. Pairs are found through the band table; the chance to miss one is
    said on stderr. Without DOCS, the documents of the last run are compared.
    """  # fmt: skip
    target = shared.target(options)
    import numpy as np

    if options["exact"]:
        shared.refuse(ctx, ("scheme", "perms", "seed", "recall", "bands", "rows", "buckets", "verify"), "with --exact")
    with shared.session(ctx, options) as session:
        console = session.console
        if options["exact"]:
            collection, pairs = _joined(session, options)
        else:
            collection, pairs = _banded(session, options)
        shared.write(console, target, ("a", "b", "similarity"), _rows(pairs, collection.documents))
        shared.warn_of_changes(session, collection.documents, np.union1d(pairs.left, pairs.right))
        if options["check"] and console.exit_code == OK and len(pairs):
            return PAIRS_FOUND
        return console.exit_code


def _banded(session: shared.Session, options: dict[str, Any]) -> "tuple[Collection, Pairs]":
    from lshdup.pipeline import with_copies

    console, workspace, request = session.console, session.workspace, session.request
    indexed = workspace.indexed(request, save=False)
    say_collection(console, indexed.collection)
    say_contract(console, indexed.made.plan, indexed.params)
    found = workspace.verified(indexed, options["verify"], request.jobs)
    pairs = with_copies(found.pairs, indexed.made.firsts, collapse=options["collapse_copies"])
    before = f"{counted(found.candidates, 'candidate pair')} -> "
    if len(pairs) != len(found.pairs):
        before += f"{len(found.pairs):,}; with copies "
    _say_found(console, before, pairs, indexed.params.threshold, "")
    return indexed.collection, pairs


def _joined(session: shared.Session, options: dict[str, Any]) -> "tuple[Collection, Pairs]":
    from lshdup.candidates import first_copies
    from lshdup.pipeline import exact_near_duplicates, with_copies

    request = session.request
    default = BandParams().threshold if request.documents else session.workspace.last_threshold()
    threshold = request.given.get("threshold", default)
    with session.workspace.every_set(session.request) as (collection, sets):
        say_collection(session.console, collection)
        firsts = first_copies(collection.fingerprints)
        found = exact_near_duplicates(collection, sets, firsts, threshold, request.jobs)
        pairs = with_copies(found.pairs, firsts, collapse=options["collapse_copies"])
    _say_found(session.console, "", pairs, threshold, ", none missed")
    return collection, pairs


def _say_found(console: Console, before: str, pairs: "Pairs", threshold: float, after: str) -> None:
    console.say(f"{before}{counted(len(pairs), 'pair')} of similarity {threshold:g} or more{after}; {console.seconds:.2f} s")


def _rows(pairs: "Pairs", documents: "DocumentList") -> "Iterator[tuple[Cell, ...]]":
    for start in range(0, len(pairs), _CHUNK):
        part = slice(start, start + _CHUNK)
        left, right = documents.typed_names(pairs.left[part]), documents.typed_names(pairs.right[part])
        yield from zip(left, right, pairs.similarity[part].tolist(), strict=True)
