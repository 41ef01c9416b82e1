"""The lines on stderr that say what a run did and what its answer promises."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from lshdup.console import Console, chance, counted, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.bands import BandPlan, BandTable
    from lshdup.candidates import Buckets
    from lshdup.collection import Collection
    from lshdup.params import BandParams

#: Buckets that -v names.
_LARGEST = 3


def say_collection(console: Console, collection: "Collection") -> None:
    """Documents -> shingles -> signatures, and what was left out."""
    from lshdup.documents import Reason

    n = len(collection.documents)
    shingles = int(collection.sizes.sum())
    line = f"{counted(n, 'document')} -> {counted(shingles, 'shingle')}"
    if collection.sketch is not None:
        line += f" -> signatures: {collection.sketch.scheme}, K = {collection.sketch.perms}"
    unread = n + len(collection.left_out) - (collection.read or 0)
    if collection.read is not None and unread > 0:
        line += f"; {counted(collection.read, 'document')} read, {unread:,} unchanged"
    console.say(line + console.took("documents"))
    whole = collection.sizes if collection.whole is None else collection.whole.sizes
    _say_alone(console, collection, whole == 0, "without tokens", "no tokens")
    _say_removed(console, collection)
    if collection.guessed:
        kinds = Counter(encoding for _, encoding in collection.guessed)
        shares = ", ".join(f"{count:,} as {encoding}" for encoding, count in sorted(kinds.items()))
        console.say(f"{counted(len(collection.guessed), 'document')} not UTF-8, read {shares} (-v names them; --encoding forces one)")
        for name, encoding in collection.guessed:
            console.detail(f"{shown(name)}: read as {encoding}")
    if console.left_out_counts:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(console.left_out_counts.items()))
        console.say(f"left out: {reasons}")
    if (unread_formats := console.left_out_counts[str(Reason.NO_READER)]) > 0:
        console.say(f"to read {counted(unread_formats, 'office document')}: pip install 'lshdup[formats]'")


def _say_alone(console: Console, collection: "Collection", alone: "NDArray[np.bool_]", what: str, why: str) -> None:
    """Documents whose set is empty, and so near nothing."""
    rows = alone.nonzero()[0]
    if len(rows):
        console.say(f"{counted(len(rows), 'document')} {what}: near nothing, not compared (-v names them)")
        for name in collection.documents.names.some(rows):
            console.detail(f"{shown(name)}: {why}")


def _say_removed(console: Console, collection: "Collection") -> None:
    """Which shingles were removed from the sets, and what became of those."""
    removal, whole = collection.removal, collection.whole
    if removal is None or whole is None:
        return
    parts = []
    if removal.params.template:
        parts.append(f"{len(removal.template):,} of templates")
    if removal.params.ignore_common:
        limit = removal.params.ignore_common
        parts.append(f"{len(removal.common):,} of more than {f'{100 * limit:g} % of the' if limit < 1 else f'{limit:,.0f}'} documents")
    before = int(whole.sizes.sum())
    share = 1 - int(collection.sizes.sum()) / before if before else 0.0
    console.say(f"removed shingles: {' and '.join(parts)}, {chance(share)} of all in the documents")
    _say_alone(console, collection, (collection.sizes == 0) & (whole.sizes > 0), "with only common shingles", "only common shingles")


def say_contract(console: Console, plan: "BandPlan", params: "BandParams") -> None:
    """What was chosen, and the chance to miss a pair at the threshold and above."""
    steps = [min(1.0, round(params.threshold + step, 4)) for step in (0.0, 0.02, 0.05)]
    misses = ", ".join(f"{s:g}: {chance(plan.miss(s))}" for s in dict.fromkeys(steps))
    shape = f"{counted(plan.bands, 'band')} of {counted(plan.rows, 'row')}"
    console.say(f"{shape}, chance to miss a pair of similarity {misses}{console.took('bands')}")
    if 1.0 - plan.miss(params.threshold) < params.recall:
        what = "" if params.bands or params.rows else "; choose --bands and --rows"
        console.warn(
            f"a pair of similarity {params.threshold:g} is found with chance {chance(1 - plan.miss(params.threshold))}, "
            f"less than --recall {params.recall:g}{what}"
        )


def say_largest(console: Console, table: "BandTable", names: "Callable[[NDArray[np.int64]], list[bytes]]") -> None:
    """For -v: the largest buckets, each with an example. names : of some documents, by their numbers."""
    import numpy as np

    from lshdup.candidates import largest_buckets

    for place, (size, first) in enumerate(largest_buckets(table, _LARGEST)):
        if place and size == 1:
            break
        name = shown(names(np.array([first]))[0])
        console.detail(f"{'then one of' if place else 'the largest bucket:'} {counted(size, 'document')}, with {name}")


def say_buckets(
    console: Console,
    buckets: "Buckets",
    names: "Callable[[NDArray[np.int64]], list[bytes]]",
    limit: int,
    table: "BandTable | None" = None,
) -> None:
    """What --max-bucket left out; with a table (for -v), its largest buckets even if nothing was."""
    if not buckets.largest:
        return
    if not buckets.left_out:
        if table is not None:
            say_largest(console, table, names)
        return
    import numpy as np

    name = shown(names(np.array([buckets.example]))[0])
    console.warn(
        f"--max-bucket {limit} left out {counted(buckets.left_out, 'bucket')} with {counted(buckets.documents, 'document')}: up to "
        f"{counted(buckets.pairs, 'pair')} not looked at, which the chances above do not count; "
        f"the largest has {counted(buckets.largest, 'document')}, with {name}"
    )
