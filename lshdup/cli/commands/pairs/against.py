"""`lshdup pairs --against`: the pairs of DOCS with OTHER, or what of DOCS is in none."""

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from lshdup.base.messages import count_of
from lshdup.cli.columns import column_names
from lshdup.cli.commands.pairs.listing import Listing, print_listing
from lshdup.cli.console import Console
from lshdup.cli.find_pairs import say_plan
from lshdup.cli.messages import (
    describe_likeness,
    say_buckets,
    say_collection,
    say_contract,
    say_pairs,
    say_skipped,
    warn_of_changes,
)
from lshdup.cli.options import FindOptions
from lshdup.cli.output import containments, print_pieces, relations_of
from lshdup.cli.session import Session
from lshdup.params import PairParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.base.messages import Cell
    from lshdup.cli.commands.pairs.listing import Gate
    from lshdup.cli.output import Target
    from lshdup.workspace.against.loading import Against
    from lshdup.workspace.against.pairs import CrossPairs
    from lshdup.workspace.against.partners import Partners


def open_sides(session: Session, options: FindOptions) -> "Against":
    """Load DOCS and OTHER, and say what is compared."""
    from lshdup.workspace.against.loading import load_sides

    console = session.console
    is_exact = options.exact or options.measure == "containment"
    both = load_sides(
        session.run,
        session.request,
        options.against,
        session.store,
        console.report_skipped_of_other,
        bands=not is_exact and options.same is None,
        samples=is_exact and not options.exact,
    )
    say_collection(session, both.here, 1, " of DOCS")
    where = f"stored in {both.store}" if both.store is not None else "of OTHER"
    console.say(f"against {count_of(len(both.there.documents), 'document')} {where}")
    say_skipped(console, console.other_skipped_counts, " of OTHER")
    if not (both.there.sizes > 0).any():
        console.report_nothing(
            "nothing to compare with",
            "OTHER has no document with shingles",
            "name another, or see with -v what was skipped",
        )
    elif both.sides.is_one_document():
        console.report_nothing(
            "nothing to compare with",
            "DOCS and OTHER are one and the same document",
            "name another on one of the sides",
        )
    return both


def find_partners(
    session: Session, both: "Against", options: FindOptions, params: PairParams
) -> "Partners":
    """Find a near document of OTHER for each document of DOCS, and say how."""
    console, jobs = session.console, session.run.jobs
    if options.same is not None:
        return both.find_same_partners(options.same)
    if options.exact or params.measure == "containment":
        return both.choose_partners(_join(session, both, options, params.measure))
    say_contract(console, both.plan(), both.params)
    partners = both.find_partners(params, jobs, console.progress)
    say_buckets(console, partners.buckets, both.sides.names, params.max_bucket)
    return partners


def print_unmatched(session: Session, options: FindOptions, target: "Target", _gate: "Gate") -> int:
    """Print the documents of DOCS that are near no document of OTHER; return the exit code."""
    import numpy as np

    from lshdup.base.ragged import distinct
    from lshdup.collection.name_lists import name_documents

    both = open_sides(session, options)
    console, documents = session.console, both.here.documents
    params = PairParams(options.verify, options.max_bucket or 0, options.measure)
    partners = find_partners(session, both, options, params)
    alone = np.flatnonzero(partners.there < 0)
    matched = f"{count_of(int(partners.estimated.sum()), 'document')} of DOCS near OTHER"
    _say_estimates(session, both, matched, partners.by_estimate)
    likeness = describe_likeness(both.params.threshold, options.same, params.measure)
    bare = int((both.here.sizes[alone] == 0).sum())
    duration = console.duration_of("candidates") if console.is_verbose else ""
    console.summarize(
        f"{len(alone):,} of {count_of(len(documents), 'document')} of DOCS with no document "
        f"{likeness} in OTHER{f', {bare:,} of them not compared' if bare else ''}"
        f"{', none missed' if partners.is_exact and not console.compared_nothing else ''}"
        f"{duration}; {console.seconds:.2f} s in all"
    )
    warn_of_changes(session, documents, alone)
    _warn_of_changes_there(console, both, distinct(partners.there[partners.there >= 0])[0])
    names = ([part] for part in name_documents(documents, alone))
    print_pieces(console, target, column_names("pairs-unmatched"), names, len(alone))
    return console.exit_code_of(len(alone))


def pairs_against(session: Session, options: FindOptions, target: "Target", gate: "Gate") -> int:
    """Print the pairs of DOCS with OTHER that a gate lets through, and return the exit code."""
    both = open_sides(session, options)
    console, jobs = session.console, session.run.jobs
    params = PairParams(options.verify, options.max_bucket or 0, options.measure)
    same, measure = options.same, params.measure
    if same is not None:
        across = both.find_same(same)
    elif options.exact or measure == "containment":
        across = _join(session, both, options, measure)
    else:
        say_contract(console, both.plan(), both.params)
        across = both.find_pairs(params, jobs, console.progress)
        say_buckets(console, across.found.buckets, both.sides.names, params.max_bucket)
    pairs = both.expand_copies(across, collapse=options.collapse_copies)
    shown = f"{count_of(pairs.estimates, 'pair')} of {len(pairs):,}"
    _say_estimates(session, both, shown, across.by_estimate)
    candidates = across.found.candidates if across.found.candidates >= 0 else None
    say_pairs(console, len(pairs), both.params.threshold, candidates, len(pairs), same, measure)
    sides = both.sides
    listing = gate.select(
        session,
        Listing(
            len(pairs), pairs.documents, pairs.pieces,
            [both.here.documents, both.there.documents], sides.names, sides.prints,
            both.here.shingle,
        ),
    )  # fmt: skip
    here, there = sides.separate(listing.documents)
    warn_of_changes(session, both.here.documents, here)
    _warn_of_changes_there(console, both, there)
    name, cells = "pairs-against", [_verified]
    if measure == "containment":
        name, cells = "pairs-containment", [containments(sides.sizes), relations_of(sides.sizes)]
    print_listing(session, target, listing, name, *cells, optional=True)
    return console.exit_code_of(0 if gate.updates else listing.total)


def _join(session: Session, both: "Against", options: FindOptions, measure: str) -> "CrossPairs":
    """Find pairs by a join of all sets, or of samples of them; say before what it takes."""
    from lshdup.pipeline import EVERY_SET

    console, run = session.console, session.run
    if measure != "containment":
        return both.find_pairs_exactly(run.jobs, console.progress)
    if options.exact:
        run = run.with_memory(EVERY_SET)
    return both.find_contained_pairs(run, partial(say_plan, console))


def _verified(_left: Any, _right: Any, similarity: Any, estimated: Any) -> "list[list[Cell]]":
    words: list[Cell] = ["estimate" if each else "exact" for each in estimated.tolist()]
    return [similarity.tolist(), words]


def _warn_of_changes_there(console: Console, both: "Against", named: "NDArray[np.int64]") -> None:
    """Warn of documents of a stored OTHER in an answer that are not what was indexed."""
    changed = both.count_changed(named)
    if changed:
        console.warn(
            f"{count_of(changed, 'document')} of OTHER in this answer changed or vanished since "
            "OTHER was indexed"
        )


def _say_estimates(session: Session, both: "Against", shown: str, decided: int) -> None:
    """Say how much of an answer rests on estimates.

    shown : what of the answer does. decided : candidates that an estimate took or rejected.
    """
    if not decided:
        return
    assert both.here.sketch is not None
    rows, t = both.here.sketch.perms, both.params.threshold
    # The largest standard error at or above the threshold.
    error = math.sqrt(max(t, 0.5) * (1 - max(t, 0.5)) / rows)
    why = "; ".join(
        f"{count_of(count, 'document')} of OTHER {fate}"
        for fate, count in sorted(both.fates.items())
    )
    session.console.warn(
        f"{shown} by signature estimate, standard error {error:.3f} or less (K = {rows}); "
        f"{count_of(decided, 'candidate')} decided so{f': {why}' if why else ''}"
    )
