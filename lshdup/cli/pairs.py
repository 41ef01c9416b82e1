"""`lshdup pairs`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import options as shared
from lshdup.cli.summary import say_buckets, say_collection, say_contract
from lshdup.console import OK, PAIRS_FOUND, Console, counted
from lshdup.params import BandParams, PairParams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lshdup.collection import Collection
    from lshdup.copies import Listing
    from lshdup.documents import DocumentList
    from lshdup.output import Piece

#: Rows that are made and printed at a time: few enough that they stay in the cache of a processor.
_ROWS = 1 << 13


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
@shared.pair_options
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
    if options["exact"]:
        shared.refuse(ctx, ("scheme", "perms", "seed", "recall", "bands", "rows", "buckets", "verify", "max_bucket"), "with --exact")
    with shared.session(ctx, options) as session:
        console = session.console
        if options["exact"]:
            collection, pairs = _joined(session, options)
        else:
            collection, pairs = _banded(session, options)
        shared.write_pieces(console, target, ("a", "b", "similarity"), _columns(pairs, collection.documents))
        shared.warn_of_changes(session, collection.documents, pairs.documents())
        if options["check"] and console.exit_code == OK and len(pairs):
            return PAIRS_FOUND
        return console.exit_code


def _banded(session: shared.Session, options: dict[str, Any]) -> "tuple[Collection, Listing]":
    from lshdup.pipeline import with_copies

    console, workspace, request = session.console, session.workspace, session.request
    asked = PairParams(options["verify"], options["max_bucket"] or 0)
    indexed = workspace.indexed(request, save=False)
    say_collection(console, indexed.collection)
    say_contract(console, indexed.made.plan, indexed.params)
    found = workspace.verified(indexed, asked, request.jobs)
    say_buckets(console, found.buckets, indexed.collection.documents, asked.max_bucket)
    pairs = with_copies(found.pairs, indexed.made.firsts, collapse=options["collapse_copies"])
    before = f"{counted(found.candidates, 'candidate pair')} -> "
    if len(pairs) != len(found.pairs):
        before += f"{len(found.pairs):,}; with copies "
    _say_found(console, before, pairs, indexed.params.threshold, "")
    return indexed.collection, pairs


def _joined(session: shared.Session, options: dict[str, Any]) -> "tuple[Collection, Listing]":
    from lshdup.candidates import first_copies
    from lshdup.pipeline import exact_near_duplicates, with_copies

    request = session.request
    default = BandParams().threshold if request.documents else session.workspace.last_threshold()
    threshold = request.given.get("threshold", default)
    with session.workspace.every_set(session.request) as (collection, sets):
        say_collection(session.console, collection)
        firsts = first_copies(collection.fingerprints)
        found = exact_near_duplicates(collection, sets, firsts, threshold, request.jobs, session.console.progress)
        pairs = with_copies(found.pairs, firsts, collapse=options["collapse_copies"])
    _say_found(session.console, "", pairs, threshold, ", none missed")
    return collection, pairs


def _say_found(console: Console, before: str, pairs: "Listing", threshold: float, after: str) -> None:
    found = f"{before}{counted(len(pairs), 'pair')} of similarity {threshold:g} or more{after}"
    console.say(f"{found}{console.took('candidates')}; {console.seconds:.2f} s in all")


def _columns(pairs: "Listing", documents: "DocumentList") -> "Iterator[Piece]":
    import numpy as np

    from lshdup.ragged import distinct

    # A name is in many pairs: each is made once.
    names: NDArray[Any] = np.empty(len(documents), object)
    known = np.zeros(len(documents), bool)
    for left, right, similarity in pairs.pieces():
        for column in (left, right):
            new = distinct(column[~known[column]])[0].astype(np.int64)
            for document, name in zip(new.tolist(), documents.typed_names(new), strict=True):
                names[document] = name
            known[new] = True
        for start in range(0, len(left), _ROWS):
            part = slice(start, start + _ROWS)
            yield names[left[part]].tolist(), names[right[part]].tolist(), similarity[part].tolist()
