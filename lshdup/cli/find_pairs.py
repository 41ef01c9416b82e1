"""What `pairs`, `clusters`, `folders` and `report` start from: pairs or groups, and what is said of
them.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import FEW_TOKENS, ClusterParams, PairParams
from lshdup.base.wording import count_of, printable
from lshdup.cli import messages
from lshdup.cli.console import Console
from lshdup.cli.options import FindOptions
from lshdup.cli.session import Session, refuse_documents
from lshdup.collection.collection import Collection
from lshdup.collection.shared_documents import find_shared
from lshdup.compare.best_matches import BestMatches
from lshdup.compare.expand_duplicates import ExpandedPairs
from lshdup.compare.results import ClustersFound, PairsFound
from lshdup.compare.scored_pairs import Pairs
from lshdup.lsh.candidates import Buckets
from lshdup.workspace.accepted import find_accepted, load_accepted
from lshdup.workspace.against import leave_out_changed, load_sides
from lshdup.workspace.comparing import Comparison, load_comparison

#: The threshold of the histogram that is suggested where there is no pair.
_LOW_THRESHOLD = 0.5


def open_comparison(
    session: Session, options: FindOptions, least: int = 2, *, clustering: bool = False
) -> Comparison:
    """Load what is compared, and say what that is.

    least : of `say_collection`. clustering : of `load_comparison`.
    """
    console, workspace, request = session.console, session.workspace, session.request
    if options.accepted is not None:
        load_accepted(options.accepted, "--accepted")  # A damaged one is refused before the work.
    method = PairParams(options.max_bucket or 0, options.measure, options.exact, options.same or "")
    if not options.against:
        opened = load_comparison(
            workspace, request, method, clustering=clustering, across=options.across
        )
        messages.say_collection(session, opened.here, least)
        messages.check_origins(console, opened.sides.origins)
        return opened
    report_skipped = partial(console.report_skipped, of_other=True)
    opened = load_sides(workspace, request, options.against, method, report_skipped)
    messages.say_collection(session, opened.here, 1, " of DOCS")
    where = f"stored in {opened.store}" if opened.store is not None else "of OTHER"
    console.say(f"against {count_of(len(opened.lists[1]), 'document')} {where}")
    messages.say_skipped(console, console.other_skipped_counts, " of OTHER")
    what = "nothing to compare with"
    if not (opened.sides.sizes[len(opened.here.documents) :] > 0).any():
        why = "OTHER has no document with shingles"
        console.report_nothing(what, why, "name another, or see with -v what was skipped")
    elif opened.is_one_document():
        why = "DOCS and OTHER are one and the same document"
        console.report_nothing(what, why, "name another on one of the sides")
    return opened


def leave_out_accepted(session: Session, options: FindOptions, opened: Comparison) -> Comparison:
    """Return the comparison without the pairs that a person has accepted; say which of the others
    are missed, if bands find them.
    """
    if not options.show_accepted:
        prints, shingle = opened.sides.prints.text_prints, opened.here.shingle
        keys = find_accepted(session.run, options.accepted, opened.lists, shingle, prints)
        if len(keys):
            opened = replace(opened, sides=opened.sides.leave_out(session.run, keys))
    if opened.plan is not None:
        messages.say_contract(session.console, opened.plan, opened.params)
    return opened


def open_removal(session: Session, options: FindOptions) -> tuple[Comparison, NDArray[np.int64]]:
    """Load both sides, as something of DOCS may go for what is in OTHER: without documents of OTHER
    that have changed. Return also the documents of DOCS that are in OTHER too: they are kept.
    """
    console, both = session.console, open_comparison(session, options)
    refuse_documents(session.outputs, both.lists[1])
    shared = find_shared(*both.lists)
    if len(shared):
        console.say(f"{count_of(len(shared), 'document')} of DOCS in OTHER too: always kept")
    both = leave_out_changed(both, partial(console.report_skipped, of_other=True))
    return leave_out_accepted(session, options, both), shared


def find_pairs(
    session: Session,
    options: FindOptions,
    opened: Comparison | None = None,
    relation: str | None = None,
) -> tuple[Comparison, Pairs, ExpandedPairs]:
    """Find the pairs that the options of a command request, and say on stderr what was done.

    opened : what is compared, if it is loaded. relation : of `Comparison.find_pairs`.

    Returns the documents, the pairs of one document a shingle set, and the pairs of all documents.
    """
    if opened is None:
        opened = leave_out_accepted(session, options, open_comparison(session, options))
    found = opened.find_pairs(relation)
    _say_buckets(session, opened, found.buckets)
    pairs = opened.expand_copies(found, collapse=options.collapse_copies)
    if found.by_estimate:
        shown = f"{count_of(pairs.estimates, 'pair')} of {len(pairs):,}"
        say_estimates(session, opened, shown, found.by_estimate)
    _say_pairs(session.console, opened, found, len(pairs))
    if opened.there is None and options.measure == "containment":
        advise_min_tokens(session.console, opened.here, found.pairs)
    return opened, found.pairs, pairs


def find_matches(session: Session, opened: Comparison) -> BestMatches:
    """Find a near document of OTHER for each document of DOCS, and say how."""
    matches = opened.find_best_matches()
    _say_buckets(session, opened, matches.buckets)
    return matches


def find_groups(
    session: Session, options: FindOptions, rule: ClusterParams, least: int = 2
) -> tuple[Comparison, ClustersFound]:
    """Find the groups of DOCS that the options request, and say on stderr what was done.

    least : of `say_collection`.
    """
    opened = open_comparison(session, options, least, clustering=True)
    opened = leave_out_accepted(session, options, opened)
    found = opened.find_clusters(rule)
    _say_buckets(session, opened, found.buckets)
    return opened, found


def _say_buckets(session: Session, opened: Comparison, buckets: Buckets) -> None:
    """Warn of buckets that --max-bucket skipped; name the largest one with -v if none was."""
    console, limit = session.console, opened.method.max_bucket
    if buckets.skipped:
        name = printable(opened.names(np.array([buckets.example]))[0])
        console.warn(
            f"--max-bucket {limit} skipped {count_of(buckets.skipped, 'bucket')} with "
            f"{count_of(buckets.documents, 'document')}: up to "
            f"{count_of(buckets.pairs, 'pair')} not looked at, which the chances above do not "
            f"count; the largest has {count_of(buckets.largest, 'document')}, with {name}"
        )
    elif opened.indexed is not None:
        messages.say_largest(console, buckets, opened.names)


def _say_pairs(console: Console, opened: Comparison, found: PairsFound, pairs: int) -> None:
    """Say how many pairs were found, and how long that took.

    found : pairs before their exact duplicates were added. Of exact duplicates one is compared, so
        that there may be more pairs than candidates.
    """
    method, threshold = opened.method, opened.params.threshold
    line = ""
    if console.is_verbose:
        line = "" if found.candidates < 0 else f"{count_of(found.candidates, 'candidate pair')} -> "
        if opened.there is None and len(found.pairs) != pairs and not method.same:
            different = count_of(len(found.pairs), "pair")
            line = f"copies compared once: {line}{different}; with all copies "
    likeness = messages.describe_likeness(threshold, method.same, method.measure)
    line += f"{count_of(pairs, 'pair')} {likeness}"
    line += ", none missed" if found.candidates < 0 and not console.compared_nothing else ""
    console.summarize(f"{line}{console.took('candidates')}")
    has_histogram = method.measure == "jaccard" and not method.same
    has_histogram &= opened.there is not None or not len(opened.sides.origins)
    if not pairs and has_histogram and threshold > _LOW_THRESHOLD:
        console.summarize(
            f"with --histogram --threshold {_LOW_THRESHOLD:g}, `lshdup pairs` counts the pairs"
            " below that"
        )


def say_estimates(session: Session, opened: Comparison, shown: str, decided: int) -> None:
    """Say how much of an answer rests on estimates.

    shown : what of the answer does. decided : candidates that an estimate took or rejected.
    """
    rows, t = opened.here.perms, opened.params.threshold
    # The largest standard error at or above the threshold.
    error = math.sqrt(max(t, 0.5) * (1 - max(t, 0.5)) / rows)
    why = "; ".join(
        f"{count_of(count, 'document')} of OTHER {fate}"
        for fate, count in sorted(opened.fates.items())
    )
    session.console.warn(
        f"{shown} by signature estimate, standard error {error:.3f} or less (K = {rows}); "
        f"{count_of(decided, 'candidate')} decided so{f': {why}' if why else ''}"
    )


def warn_of_changed(
    session: Session, opened: Comparison, documents: NDArray[np.int64]
) -> list[int]:
    """Warn of documents of an answer that are not what was indexed, and return them.

    documents : ascending int64 array.
    """
    here, there = opened.sides.separate(documents)
    changed = messages.warn_of_changes(session, opened.here.documents, here).tolist()
    gone = opened.lists[1].changed(there).tolist() if opened.store is not None else []
    if gone:
        session.console.warn(
            f"{count_of(len(gone), 'document')} of OTHER in this answer changed or vanished since "
            "OTHER was indexed"
        )
    return [*changed, *(each + len(opened.here.documents) for each in gone)]


def advise_min_tokens(console: Console, collection: Collection, pairs: Pairs) -> None:
    """Suggest --min-tokens if very short documents make most of the pairs of containment.

    pairs : pairs of documents that represent their exact duplicates.
    """
    shingle = collection.shingle
    # A document of n tokens has at most n - k + 1 shingles.
    is_short = collection.unfiltered_sizes <= FEW_TOKENS - shingle.k
    short = int((is_short[pairs.left] | is_short[pairs.right]).sum())
    if 2 * short > len(pairs) and shingle.min_tokens < FEW_TOKENS:
        console.say(
            f"{short:,} of {count_of(len(pairs), 'pair')} have a document of fewer than "
            f"{FEW_TOKENS} tokens, which may be inside others by accident; --min-tokens "
            f"{FEW_TOKENS} skips such documents"
        )
