"""`lshdup pairs --against`: the pairs of DOCS with OTHER, or what of DOCS is in none."""

import math
from typing import TYPE_CHECKING, Any

from lshdup.base.wording import count_of
from lshdup.cli.columns import column_names
from lshdup.cli.commands.pairs_listing import Listing, print_listing
from lshdup.cli.console import Console
from lshdup.cli.find_pairs import method_of
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
from lshdup.cli.output import Cells, containments, print_pieces, relations_of
from lshdup.cli.session import Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.base.wording import Cell
    from lshdup.cli.commands.pairs_listing import Gate
    from lshdup.cli.output import Target
    from lshdup.compare.best_matches import BestMatches
    from lshdup.compare.expand_duplicates import ExpandedPairs
    from lshdup.lsh.candidates import Buckets
    from lshdup.workspace.against import Against


def open_sides(session: Session, options: FindOptions) -> "Against":
    """Load DOCS and OTHER, and say what is compared."""
    from lshdup.workspace.against import load_sides

    console = session.console
    both = load_sides(
        session.workspace,
        session.request,
        options.against,
        session.store,
        method_of(options),
        console.report_skipped_of_other,
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
    elif both.is_one_document():
        console.report_nothing(
            "nothing to compare with",
            "DOCS and OTHER are one and the same document",
            "name another on one of the sides",
        )
    return both


def find_matches(session: Session, both: "Against") -> "BestMatches":
    """Find a near document of OTHER for each document of DOCS, and say how."""
    _say_plan(session, both)
    matches = both.find_best_matches()
    _say_skipped(session, both, matches.buckets)
    return matches


def _say_plan(session: Session, both: "Against") -> None:
    """Say which pairs are missed, if bands find them."""
    if both.plan is not None:
        say_contract(session.console, both.plan, both.params)


def _say_skipped(session: Session, both: "Against", buckets: "Buckets") -> None:
    """Say which buckets were skipped, if bands found the pairs."""
    if both.plan is not None:
        say_buckets(session.console, buckets, both.names, both.method.pairs.max_bucket)


def print_unmatched(session: Session, options: FindOptions, target: "Target", _gate: "Gate") -> int:
    """Print the documents of DOCS that are near no document of OTHER; return the exit code."""
    import numpy as np

    from lshdup.base.ragged import distinct
    from lshdup.collection.name_lists import name_documents

    both = open_sides(session, options)
    console, documents = session.console, both.here.documents
    method, matches = both.method, find_matches(session, both)
    alone = np.flatnonzero(matches.right < 0)
    matched = f"{count_of(int(matches.estimated.sum()), 'document')} of DOCS near OTHER"
    _say_estimates(session, both, matched, matches.by_estimate)
    likeness = describe_likeness(both.params.threshold, method.same, method.pairs.measure)
    bare = int((both.here.sizes[alone] == 0).sum())
    duration = console.duration_of("candidates") if console.is_verbose else ""
    console.summarize(
        f"{len(alone):,} of {count_of(len(documents), 'document')} of DOCS with no document "
        f"{likeness} in OTHER{f', {bare:,} of them not compared' if bare else ''}"
        f"{', none missed' if matches.is_exact and not console.compared_nothing else ''}"
        f"{duration}; {console.seconds:.2f} s in all"
    )
    warn_of_changes(session, documents, alone)
    _warn_of_changes_there(console, both, distinct(matches.right[matches.right >= 0])[0])
    names = ([part] for part in name_documents(documents, alone))
    print_pieces(console, target, column_names("pairs-unmatched"), names, len(alone))
    return console.exit_code(len(alone))


def pairs_against(session: Session, options: FindOptions, target: "Target", gate: "Gate") -> int:
    """Print the pairs of DOCS with OTHER that a gate lets through, and return the exit code."""
    both = open_sides(session, options)
    console, method = session.console, both.method
    _say_plan(session, both)
    across = both.find_pairs()
    _say_skipped(session, both, across.buckets)
    pairs = both.expand_copies(across, collapse=options.collapse_copies)
    shown = f"{count_of(pairs.estimates, 'pair')} of {len(pairs):,}"
    _say_estimates(session, both, shown, across.by_estimate)
    measure = method.pairs.measure
    candidates = across.candidates if across.candidates >= 0 else None
    say_pairs(
        console, len(pairs), both.params.threshold, candidates, len(pairs), method.same, measure
    )
    sides = both.sides
    listing = gate.select(
        session,
        Listing(
            len(pairs), pairs.documents(), pairs.pieces,
            [both.here.documents, both.there.documents], both.names, sides.prints,
            both.here.shingle,
        ),
    )  # fmt: skip
    here, there = sides.separate(listing.documents)
    warn_of_changes(session, both.here.documents, here)
    _warn_of_changes_there(console, both, there)
    name, cells = "pairs-against", [_verified(pairs)]
    if measure == "containment":
        name, cells = "pairs-containment", [containments(sides.sizes), relations_of(sides.sizes)]
    print_listing(session, target, listing, name, *cells, optional=True)
    return console.exit_code(0 if gate.updates else listing.total)


def _verified(pairs: "ExpandedPairs") -> "Cells":
    """Return the function that gives the similarities, and how each was verified."""

    def cells(left: Any, right: Any, similarity: Any) -> "list[list[Cell]]":
        estimated = pairs.is_estimate(left, right).tolist()
        words: list[Cell] = ["estimate" if each else "exact" for each in estimated]
        return [similarity.tolist(), words]

    return cells


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
