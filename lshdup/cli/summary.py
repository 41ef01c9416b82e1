"""The lines on stderr that say what a run did and what its answer promises."""

from collections import Counter
from typing import TYPE_CHECKING

from lshdup.console import Console, counted, shown

if TYPE_CHECKING:
    from lshdup.bands import BandPlan
    from lshdup.candidates import Buckets
    from lshdup.collection import Collection
    from lshdup.documents import DocumentList
    from lshdup.params import BandParams


def say_collection(console: Console, collection: "Collection") -> None:
    """Documents -> shingles -> signatures, and what was left out."""
    n = len(collection.documents)
    shingles = int(collection.sizes.sum())
    line = f"{counted(n, 'document')} -> {counted(shingles, 'shingle')}"
    if collection.sketch is not None:
        line += f" -> signatures: {collection.sketch.scheme}, K = {collection.sketch.perms}"
    unread = n + len(collection.left_out) - (collection.read or 0)
    if collection.read is not None and unread > 0:
        line += f"; {counted(collection.read, 'document')} read, {unread:,} unchanged"
    console.say(line + console.took("documents"))
    empty = (collection.sizes == 0).nonzero()[0]
    if len(empty):
        console.say(f"{counted(len(empty), 'document')} without tokens: near nothing, not compared (-v names them)")
        for name in collection.documents.names.some(empty):
            console.detail(f"{shown(name)}: no tokens")
    if collection.guessed:
        kinds = Counter(encoding for _, encoding in collection.guessed)
        shares = ", ".join(f"{count:,} as {encoding}" for encoding, count in sorted(kinds.items()))
        console.say(f"{counted(len(collection.guessed), 'document')} not UTF-8, read {shares} (-v names them; --encoding forces one)")
        for name, encoding in collection.guessed:
            console.detail(f"{shown(name)}: read as {encoding}")
    if console.left_out_counts:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(console.left_out_counts.items()))
        console.say(f"left out: {reasons}")


def say_contract(console: Console, plan: "BandPlan", params: "BandParams") -> None:
    """What was chosen, and the chance to miss a pair at the threshold and above."""
    steps = [min(1.0, round(params.threshold + step, 4)) for step in (0.0, 0.02, 0.05)]
    misses = ", ".join(f"{s:g}: {_percent(plan.miss(s))}" for s in dict.fromkeys(steps))
    shape = f"{counted(plan.bands, 'band')} of {counted(plan.rows, 'row')}"
    console.say(f"{shape}, chance to miss a pair of similarity {misses}{console.took('bands')}")
    if 1.0 - plan.miss(params.threshold) < params.recall:
        what = "" if params.bands or params.rows else "; choose --bands and --rows"
        console.warn(
            f"a pair of similarity {params.threshold:g} is found with chance {_percent(1 - plan.miss(params.threshold))}, "
            f"less than --recall {params.recall:g}{what}"
        )


def say_buckets(console: Console, buckets: "Buckets", documents: "DocumentList", limit: int) -> None:
    """What --max-bucket left out; with -v, the largest bucket even if nothing was."""
    if not buckets.largest:
        return
    name = shown(documents.names[buckets.example])
    if not buckets.left_out:
        console.detail(f"the largest bucket: {counted(buckets.largest, 'document')}, with {name}")
        return
    console.warn(
        f"--max-bucket {limit} left out {counted(buckets.left_out, 'bucket')} with {counted(buckets.documents, 'document')}: up to "
        f"{counted(buckets.pairs, 'pair')} not looked at, which the chances above do not count; "
        f"the largest has {counted(buckets.largest, 'document')}, with {name}"
    )


def _percent(chance: float) -> str:
    return f"{100 * chance:.2g} %"
