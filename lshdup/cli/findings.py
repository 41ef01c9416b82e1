"""Lines on stderr about an answer: what its bands promise, its buckets, its pairs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lshdup import choices
from lshdup.base.messages import chance, count_of, join_names, printable
from lshdup.cli.console import Console
from lshdup.cli.messages import say_collection
from lshdup.params import ClusterParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.session import Session
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.lsh.band_table import BandTable
    from lshdup.lsh.buckets import Buckets
    from lshdup.params import BandParams
    from lshdup.sources.document_list import DocumentList
    from lshdup.workspace.index import IndexedCollection

#: The threshold of the histogram that is suggested where there is no pair.
LOW_THRESHOLD = 0.5

#: Largest buckets that -v names.
_BUCKETS_NAMED = 3


def say_index(
    session: "Session", indexed: "IndexedCollection", least: int = 2, *, whole: bool = False
) -> None:
    """Say what `say_collection` does, and what the bands promise."""
    say_collection(session, indexed.collection, least, whole=whole)
    say_contract(session.console, indexed.plan, indexed.params, whole=whole)


def say_contract(
    console: Console, plan: "BandPlan", params: "BandParams", *, whole: bool = False
) -> None:
    """Say the chances to miss a pair. whole : and how many bands and rows there are, as -v does."""
    steps = [min(1.0, round(params.threshold + step, 4)) for step in (0.0, 0.02, 0.05)]
    misses = [f"{s:g}: {chance(plan.miss(s))}" for s in dict.fromkeys(steps)]
    duration = console.duration_of("bands")
    if whole or console.is_verbose:
        shape = f"{count_of(plan.bands, 'band')} of {count_of(plan.rows, 'row')}, "
        console.say(f"{shape}chance to miss a pair of similarity {', '.join(misses)}{duration}")
    else:
        ends = ", ".join(misses[:: len(misses) - 1 or 1])
        console.say(f"chance to miss a pair of similarity {ends}; --exact misses none")
    recall = 1.0 - plan.miss(params.threshold)
    if recall < params.recall:
        remedy = "" if params.bands or params.rows else "; choose --bands and --rows"
        console.warn(
            f"a pair of similarity {params.threshold:g} is found with chance "
            f"{chance(recall, below=params.recall)}, "
            f"less than --recall {params.recall:g}{remedy}"
        )


def say_largest(
    console: Console, table: "BandTable", names: "Callable[[NDArray[np.int64]], list[bytes]]"
) -> None:
    """Say with -v which buckets are largest, with an example of each."""
    import numpy as np

    from lshdup.lsh.candidates import largest_buckets

    if not console.is_verbose:
        return
    for rank, (size, first) in enumerate(largest_buckets(table, _BUCKETS_NAMED)):
        if rank and size == 1:
            break
        name = printable(names(np.array([first]))[0])
        console.detail(
            f"{'then one of' if rank else 'the largest bucket:'}"
            f" {count_of(size, 'document')}, with {name}"
        )


def say_buckets(
    console: Console,
    buckets: "Buckets",
    names: "Callable[[NDArray[np.int64]], list[bytes]]",
    limit: int,
    table: "BandTable | None" = None,
) -> None:
    """Warn of buckets that --max-bucket skipped.

    names : returns the names of an int64 array of documents.
    limit : value of --max-bucket.
    table : band table whose largest buckets are named with -v if none was skipped.
    """
    if not buckets.skipped:
        if buckets.largest and table is not None:
            say_largest(console, table, names)
        return
    import numpy as np

    name = printable(names(np.array([buckets.example]))[0])
    console.warn(
        f"--max-bucket {limit} skipped {count_of(buckets.skipped, 'bucket')} with "
        f"{count_of(buckets.documents, 'document')}: up to "
        f"{count_of(buckets.pairs, 'pair')} not looked at, which the chances above do not count; "
        f"the largest has {count_of(buckets.largest, 'document')}, with {name}"
    )


def say_pairs(
    console: Console,
    pairs: int,
    threshold: float,
    candidates: int | None,
    different: int,
    same: str | None = None,
    measure: str = "jaccard",
) -> None:
    """Say how many pairs were found, and how long that took.

    candidates : number of pairs that were compared; None for the exact join.
    different : number of pairs before their exact duplicates were added. Of exact duplicates one
        is compared, so that there may be more pairs than candidates.
    same, measure : the values of --same and --measure.
    """
    line, duration = "", console.duration_of("candidates")
    if console.is_verbose:
        line = "" if candidates is None else f"{count_of(candidates, 'candidate pair')} -> "
        if different != pairs and same is None:
            line = f"copies compared once: {line}{count_of(different, 'pair')}; with all copies "
    line += f"{count_of(pairs, 'pair')} {describe_likeness(threshold, same, measure)}"
    line += ", none missed" if candidates is None and not console.compared_nothing else ""
    line += duration * console.is_verbose
    console.summarize(f"{line}; {console.seconds:.2f} s in all")
    if not pairs and same is None and measure == "jaccard" and threshold > LOW_THRESHOLD:
        console.summarize(
            f"with --histogram --threshold {LOW_THRESHOLD:g}, `lshdup pairs` counts the pairs below"
            " that"
        )


def describe_likeness(threshold: float, same: str | None, measure: str = "jaccard") -> str:
    """Return what pairs and groups have in common: a similarity, or what --same asks for."""
    likeness = "similarity" if measure == "jaccard" else measure
    return f"of the same {same}" if same else f"of {likeness} {threshold:g} or more"


def describe_rule(rule: ClusterParams, documents: "DocumentList") -> str:
    """Return which document of a group is kept."""
    import numpy as np

    from lshdup.sources.preference import default_keep

    keep = rule.keep or default_keep(documents)
    parts = [choices.KEEP[keep]]
    if keep != "first" and 0 < documents.are_parts(np.arange(len(documents))).sum() < len(
        documents
    ):
        parts = [f"whole files before parts of files, then {choices.KEEP[keep]}"]
    if rule.prefer:
        parts.append(f"preferring {join_names(rule.prefer)}")
    if rule.linkage != ClusterParams().linkage:
        parts.append(f"linkage {rule.linkage}")
    return ", ".join(parts)


def say_uncompared(console: Console, kept: int) -> None:
    """Say how many of the names to keep are of documents that were not compared."""
    if kept:
        was = count_of(kept, "name is of what was", "names are of what was")
        console.summarize(f"{was} not compared, and stays (-v says why)")


def warn_of_changes(
    session: "Session", documents: "DocumentList", named: "NDArray[np.int64]"
) -> "NDArray[np.int64]":
    """Warn before an answer from the store alone of its documents that were deleted or changed.

    named : int64 array, the documents of the answer.

    Returns the documents of the warning.
    """
    request, console = session.request, session.console
    if request.documents or request.check_files:
        return named[:0]
    changed = documents.changed(named)
    if len(changed):
        console.warn(
            f"{count_of(len(changed), 'document')} of this answer changed or vanished since the "
            "last run; --check-files leaves such documents out, and DOCS are read again"
        )
        for name in documents.typed_names(changed) if console.is_verbose else ():
            console.detail(f"{printable(name)}: deleted or changed since the last run")
    return changed
