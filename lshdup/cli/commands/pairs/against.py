"""`lshdup pairs --against`."""

import math
from typing import TYPE_CHECKING, Any

from lshdup.cli.columns import column_names
from lshdup.cli.messages import (
    say_buckets,
    say_collection,
    say_contract,
    say_pairs,
    say_skipped,
    warn_of_changes,
)
from lshdup.cli.printing import DocumentNames, name_pairs, print_pieces
from lshdup.cli.session import Session
from lshdup.params import PairParams
from lshdup.utils.messages import count_of

if TYPE_CHECKING:
    from lshdup.cli.output import Target
    from lshdup.utils.json_cells import Cell
    from lshdup.workspace.against import Against
    from lshdup.workspace.against_pairs import ExpandedCrossPairs


def pairs_against(session: Session, options: dict[str, Any], target: "Target") -> int:
    """Print the pairs of DOCS with OTHER, and return the exit code."""
    from lshdup.workspace.against import load_sides

    console, jobs = session.console, session.request.jobs
    store = None if options["no_store"] else options["store"]
    both = load_sides(
        session.request,
        options["against"],
        store,
        console.say,
        console.report_skipped,
        console.progress,
        console.report_skipped_of_other,
        bands=not options["exact"] and options["same"] is None,
    )
    params = PairParams(options["verify"], options["max_bucket"] or 0)
    say_collection(session, both.here, 1, " of DOCS")
    where = f"stored in {both.store}" if both.store is not None else "of OTHER"
    console.say(f"against {count_of(len(both.there.documents), 'document')} {where}")
    say_skipped(console, console.other_skipped_counts, " of OTHER")
    if not (both.there.sizes > 0).any():
        console.report_nothing(
            "nothing to compare with",
            "OTHER has no document with shingles",
            "name another, or see with -v what was left out",
        )
    elif both.sides.is_one_document():
        console.report_nothing(
            "nothing to compare with",
            "DOCS and OTHER are one and the same document",
            "name another on one of the sides",
        )
    same = options["same"]
    if same is not None:
        across = both.find_same(same)
    elif options["exact"]:
        across = both.find_pairs_exactly(jobs, console.progress)
    else:
        say_contract(console, both.plan(), both.params)
        across = both.find_pairs(params, jobs, console.progress)
        say_buckets(console, across.found.buckets, both.sides.names, params.max_bucket)
    pairs = both.expand_copies(across, collapse=options["collapse_copies"])
    _say_estimates(session, both, pairs, across.by_estimate)
    candidates = across.found.candidates if across.found.candidates >= 0 else None
    say_pairs(console, len(pairs), both.params.threshold, candidates, len(pairs), same)
    warn_of_changes(session, both.here.documents, both.sides.separate(pairs.documents)[0])
    changed = both.count_changed(pairs)
    if changed:
        console.warn(
            f"{count_of(changed, 'document')} of OTHER in this answer changed or vanished since "
            "OTHER was indexed"
        )
    names = DocumentNames(len(both.sides.sizes), both.sides.names)
    pieces = name_pairs(pairs.pieces(), names, both.sides.prints, _verified)
    print_pieces(console, target, column_names("pairs-against"), pieces)
    return console.exit_code_of(len(pairs))


def _verified(estimated: Any) -> "list[Cell]":
    return ["estimate" if each else "exact" for each in estimated.tolist()]


def _say_estimates(
    session: Session, both: "Against", pairs: "ExpandedCrossPairs", decided: int
) -> None:
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
        f"{count_of(pairs.estimates, 'pair')} of {len(pairs):,} by signature estimate, standard "
        f"error {error:.3f} or less (K = {rows}); "
        f"{count_of(decided, 'candidate')} decided so{f': {why}' if why else ''}"
    )
