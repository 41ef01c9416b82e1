"""The lines on stderr that say what a run did and what its answer promises."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from lshdup.cli.console import Console
from lshdup.skipped import Reason
from lshdup.utils.messages import chance, counted, shown, some_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.session import Session
    from lshdup.collection.collection import Collection
    from lshdup.documents.document_list import DocumentList
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.lsh.band_table import BandTable
    from lshdup.lsh.candidates import Buckets
    from lshdup.params import BandParams

#: Buckets that -v names.
_LARGEST = 3


def say_collection(console: Console, collection: "Collection", side: str = "") -> None:
    """Documents -> shingles -> signatures, and what was left out. side : of what, where there is more than one collection."""
    n = len(collection.documents)
    shingles = int(collection.sizes.sum())
    line = f"{_said_of(collection) if collection.read is None else counted(n, 'document')} -> {counted(shingles, 'shingle')}"
    if collection.sketch is not None:
        line += f" -> signatures: {collection.sketch.scheme}, K = {collection.sketch.perms}"
    unread = n + len(collection.skipped) - (collection.read or 0)
    if collection.read is not None and unread > 0:
        line += f"; {counted(collection.read, 'document')} read, {unread:,} unchanged"
    console.say(line + console.took("documents"))
    unfiltered = collection.sizes if collection.unfiltered is None else collection.unfiltered.sizes
    _say_alone(console, collection, unfiltered == 0, "without tokens", "no tokens")
    _say_removed(console, collection)
    if (
        collection.read is not None or console.is_verbose
    ):  # else nobody has looked at the documents, and need not hear of them each time
        _say_guessed(console, collection)
    if collection.read is None and console.is_verbose:
        _say_left_out_before(console, collection)
    say_left_out(console, console.left_out_counts, side)


def say_left_out(console: Console, counts: Counter[str], side: str = "") -> None:
    """What is not compared, by reason. side : of what, where there is more than one collection."""
    if counts:
        console.say(f"left out{side}: {_reasons(counts)}")
    if (unread_formats := counts[str(Reason.NO_READER)]) > 0:
        console.say(
            f"to read {counted(unread_formats, 'office document')}: pip install 'lshdup[formats]'"
        )


def _said_of(collection: "Collection") -> str:
    from lshdup.documents.whereabouts import counted_where

    return f"the last run: {counted_where(collection.documents, counted(len(collection.documents), 'document'))}"


def say_last_run(console: Console, collection: "Collection") -> None:
    """For -v, where documents are only looked up: which are there."""
    if console.is_verbose:
        console.detail(_said_of(collection))


#: What to do about what was left out, by the reason that most of it has; of others -v tells more.
_REMEDIES = {
    Reason.HIDDEN: "--hidden takes them",
    Reason.LINK: "--follow follows them",
    Reason.EXCLUDED: "look at --include and --exclude",
    Reason.TOO_LARGE: "--max-bytes allows more",
    Reason.NO_TEXT: "--text-field names the field of the text",
    Reason.NO_ID: "--id-field names the field of the id",
    Reason.NO_READER: "pip install 'lshdup[formats]' reads them",
    Reason.UNDECODABLE: "--encoding names how they are written",
}


def say_if_nothing(session: "Session", collection: "Collection", least: int = 2) -> None:
    """Say why, if so few documents are left that there is nothing to compare: what was met, what became of it, what to do."""
    documents = session.request.documents
    # A run that continues has met no files: what is known of them is what the store says.
    out = (
        session.console.left_out_counts
        if documents
        else Counter(str(each.skipped.reason) for each in collection.skipped)
    )
    n, compared = len(collection.documents), int((collection.sizes > 0).sum())
    has_rows, removed = (
        collection.documents.locations is not None,
        collection.shingle_filter is not None,
    )
    warn_if_nothing(
        session.console, documents, n, compared, out, least, has_rows=has_rows, removed=removed
    )


def warn_if_nothing(
    console: Console,
    documents: tuple[bytes, ...],
    n: int,
    compared: int,
    out: Counter[str],
    least: int = 2,
    *,
    has_rows: bool = False,
    removed: bool = False,
) -> None:
    """The same from numbers. documents : what was named; without, it was the last run. n, compared : documents, and those that have
    shingles. out : what was left out. has_rows, removed : whether rows were met, and whether shingles were removed.
    """
    if compared >= least:
        return
    met = n + sum(out.values())
    where = some_of((shown(name) for name in documents), 3) if documents else "the last run"
    what = "nothing to compare" if least > 1 else "no document can be compared"
    if not met:
        console.warn(f"{what}: there is no file in {where}; name files, or folders that hold some")
        return
    kinds = ("file or row", "files and rows") if has_rows else ("file", "files")
    line = f"{what}: {counted(compared, 'document')} with shingles, of {counted(met, *kinds)} in {where}"
    if n > compared:
        line += f"; {counted(n - compared, 'document')} without"
    if out:
        line += f"; left out: {_reasons(out)}"
    if sum(out.values()) > n - compared:
        remedy = _REMEDIES.get(
            Reason(max(sorted(out), key=out.__getitem__)), "-v names them, and why"
        )
    elif n == compared:
        remedy = "name more files or folders"
    elif removed:
        remedy = "a larger --ignore-common, or another --template, leaves more of them"
    else:
        remedy = "-v names them; name files that hold text"
    console.warn(f"{line}; {remedy}")


def _reasons(counts: Counter[str]) -> str:
    return ", ".join(Reason(reason).counted(count) for reason, count in sorted(counts.items()))


def _say_guessed(console: Console, collection: "Collection") -> None:
    """Documents whose encoding was detected, in this run or when they were read last."""
    if not len(collection.guessed):
        return
    guesses = [guess.decode() for guess in collection.guesses]
    say_guesses(console, Counter(guesses))
    if console.is_verbose:
        for name, guess in zip(
            collection.documents.typed_names(collection.guessed), guesses, strict=True
        ):
            console.detail(f"{shown(name)}: read as {guess}")


def say_guesses(console: Console, guesses: "Mapping[str, int]") -> None:
    """Of how many documents the encoding was detected. guesses : how often each was the guess."""
    kinds: Counter[str] = Counter()
    for guess, n in guesses.items():
        encoding, _, misfits = guess.partition(", ")
        kinds[f"{encoding} but for a few bytes" if misfits else encoding] += n
    if kinds:
        shares = ", ".join(f"{count:,} as {encoding}" for encoding, count in sorted(kinds.items()))
        console.say(
            f"{counted(kinds.total(), 'document')} not UTF-8, read {shares} (-v names them; --encoding forces one)"
        )


def _say_left_out_before(console: Console, collection: "Collection") -> None:
    """For -v without DOCS: files that are no documents because of what is in them, as far as the last run that read them kept that."""
    skipped = [each.skipped for each in collection.skipped]
    for each in skipped:
        console.was_left_out(each)
    if skipped:
        console.detail(
            f"left out when DOCS were read: {_reasons(Counter(str(each.reason) for each in skipped))}"
        )


def _say_alone(
    console: Console, collection: "Collection", alone: "NDArray[np.bool_]", what: str, why: str
) -> None:
    """Documents whose set is empty, and so near nothing."""
    rows = alone.nonzero()[0]
    if len(rows):
        console.say(
            f"{counted(len(rows), 'document')} {what}: near nothing, not compared (-v names them)"
        )
        for name in collection.documents.typed_names(rows) if console.is_verbose else ():
            console.detail(f"{shown(name)}: {why}")


def _say_removed(console: Console, collection: "Collection") -> None:
    """Which shingles were removed from the sets, and what became of those."""
    shingle_filter, unfiltered = collection.shingle_filter, collection.unfiltered
    if shingle_filter is None or unfiltered is None:
        return
    parts = []
    if shingle_filter.params.template:
        parts.append(f"{len(shingle_filter.template):,} of templates")
    if shingle_filter.params.ignore_common:
        limit = shingle_filter.params.ignore_common
        many = (
            f"{100 * limit:g} % of the documents" if limit < 1 else counted(int(limit), "document")
        )
        parts.append(f"{len(shingle_filter.common):,} of more than {many}")
    before = int(unfiltered.sizes.sum())
    share = 1 - int(collection.sizes.sum()) / before if before else 0.0
    console.say(f"removed shingles: {' and '.join(parts)}, {chance(share)} of all in the documents")
    _say_alone(
        console,
        collection,
        (collection.sizes == 0) & (unfiltered.sizes > 0),
        "with only common shingles",
        "only common shingles",
    )


def say_contract(console: Console, plan: "BandPlan", params: "BandParams") -> None:
    """What was chosen, and the chance to miss a pair at the threshold and above."""
    steps = [min(1.0, round(params.threshold + step, 4)) for step in (0.0, 0.02, 0.05)]
    misses = ", ".join(f"{s:g}: {chance(plan.miss(s))}" for s in dict.fromkeys(steps))
    shape = f"{counted(plan.bands, 'band')} of {counted(plan.rows, 'row')}"
    console.say(f"{shape}, chance to miss a pair of similarity {misses}{console.took('bands')}")
    found = 1.0 - plan.miss(params.threshold)
    if found < params.recall:
        what = "" if params.bands or params.rows else "; choose --bands and --rows"
        console.warn(
            f"a pair of similarity {params.threshold:g} is found with chance {chance(found, below=params.recall)}, "
            f"less than --recall {params.recall:g}{what}"
        )


def say_largest(
    console: Console, table: "BandTable", names: "Callable[[NDArray[np.int64]], list[bytes]]"
) -> None:
    """For -v: the largest buckets, each with an example. names : of some documents, by their numbers."""
    import numpy as np

    from lshdup.lsh.candidates import largest_buckets

    for place, (size, first) in enumerate(largest_buckets(table, _LARGEST)):
        if place and size == 1:
            break
        name = shown(names(np.array([first]))[0])
        console.detail(
            f"{'then one of' if place else 'the largest bucket:'} {counted(size, 'document')}, with {name}"
        )


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
    if not buckets.skipped:
        if table is not None:
            say_largest(console, table, names)
        return
    import numpy as np

    name = shown(names(np.array([buckets.example]))[0])
    console.warn(
        f"--max-bucket {limit} left out {counted(buckets.skipped, 'bucket')} with {counted(buckets.documents, 'document')}: up to "
        f"{counted(buckets.pairs, 'pair')} not looked at, which the chances above do not count; "
        f"the largest has {counted(buckets.largest, 'document')}, with {name}"
    )


def say_found(console: Console, before: str, pairs: int, threshold: float, after: str) -> None:
    """Say how many pairs were found, and how long that took."""
    found = f"{before}{counted(pairs, 'pair')} of similarity {threshold:g} or more{after}"
    console.say(f"{found}{console.took('candidates')}; {console.seconds:.2f} s in all")


def say_funnel(
    console: Console, candidates: int, different: int, pairs: int, threshold: float
) -> None:
    """Say how many candidates and pairs a comparison through bands came to.

    different : pairs before their exact duplicates were added.
    """
    before = f"{counted(candidates, 'candidate pair')} -> "
    say_found(console, _with_copies(before, different, pairs), pairs, threshold, "")


def say_joined(console: Console, different: int, pairs: int, threshold: float) -> None:
    """Say how many pairs the exact join came to.

    different : pairs before their exact duplicates were added.
    """
    say_found(console, _with_copies("", different, pairs), pairs, threshold, ", none missed")


def _with_copies(before: str, different: int, pairs: int) -> str:
    """Add to `before` how many pairs there were without exact duplicates, if there are any.

    Of exact duplicates one is compared, so that there may be more pairs than candidates.
    """
    if pairs == different:
        return before
    return f"copies compared once: {before}{counted(different, 'pair')}; with all copies "


def warn_of_changes(
    session: "Session", documents: "DocumentList", named: "NDArray[np.int64]"
) -> None:
    """Warn if an answer from the store alone names documents that have changed or vanished.

    named : int64 array, the documents of the answer.
    """
    if session.request.documents:
        return
    changed = len(documents.changed(named))
    if changed:
        session.console.warn(
            f"{counted(changed, 'document')} of this answer changed or vanished since the last run; name DOCS to look again"
        )
