"""The HTML page of a report: one file without network access, safe for any documents.

`collect_data` makes all data of the page; page/page.js shows it. Names and texts are data there,
never markup: `render_page` escapes the character that could end a script element, and the script
sets texts only.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.matching.pairs import Pairs
from lshdup.report.comparison import Comparison, extract_passage, split_hunks
from lshdup.report.token_diff import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED
from lshdup.utils.messages import shown
from lshdup.utils.ragged import distinct

#: The most exact duplicates of a document that are named; all are counted.
NAMED_COPIES = 500

#: A stretch of two texts: a sign and the text. The signs are "=" for both texts, "-" and "+" for the
#: first and the second, "<" and ">" for moved text of the first and the second. Other signs are "f"
#: with the number of folded tokens, and "…" where too long texts end.
Segment = tuple[str, str | int]

_SEGMENTS = {ALIKE: "=", REMOVED: "-", ADDED: "+", MOVED_AWAY: "<", MOVED_HERE: ">"}

#: The most characters of the passages of one pair, and of one stretch.
_LONGEST, _LONGEST_STRETCH = 12_000, 4_000


@dataclass(frozen=True)
class Promise:
    """What the run promises to have found.

    threshold : the lowest similarity of pairs.
    bands, rows : shape of the band table; 0 without one.
    exact : whether all pairs were joined instead.
    """

    threshold: float
    bands: int = 0
    rows: int = 0
    exact: bool = False


@dataclass(frozen=True)
class Facts:
    """Facts about the run that the page shows beside the pairs.

    what : the documents, in a few words.
    documents : number of documents compared.
    newest : when the newest document was changed, in words.
    skipped : number of skipped files by reason; None if an earlier run skipped them.
    parameters : names and values of the requested parameters.
    without : why a pair has no passages, by number of the pair; under "" for all other pairs.
    """

    what: str
    documents: int
    newest: str = ""
    skipped: Mapping[str, int] | None = None
    parameters: Sequence[tuple[str, str]] = ()
    without: Mapping[int | str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """The part of the results that goes into a page.

    pairs : the most similar pairs, of representatives.
    representatives : int64 array, ascending: those in a pair or with exact duplicates.
    promise : with the lowest similarity from which all pairs are in the page.
    omitted : which pairs are not in the page, in words; "" if all are.
    """

    pairs: Pairs
    kinds: NDArray[np.int64]
    promise: Promise
    omitted: str = ""


def select(pairs: Pairs, duplicate_of: NDArray[np.int64], promise: Promise, most: int) -> Selection:
    """Select the most similar pairs: all pairs of equal similarity or none, at most `most`.

    The pairs of the highest similarity are selected even if they are more.

    pairs : of representatives.
    duplicate_of : int64 array of shape (n,), the representative of each document.
    """
    omitted = ""
    if len(pairs) > most:
        groups = max(1, int(np.searchsorted(pairs.offsets, most, side="right")) - 1)
        kept = Pairs(
            pairs.values[:groups], pairs.offsets[: groups + 1], pairs.keys[: pairs.offsets[groups]]
        )
        lowest = float(kept.values[-1])
        omitted = (
            f"The {len(kept):,} most similar of {len(pairs):,} pairs of different documents are "
            f"here: those of similarity {lowest:.4f} or more, instead of {promise.threshold:g}; "
            f"--most {len(pairs)} takes all."
        )
        pairs, promise = kept, Promise(lowest, promise.bands, promise.rows, promise.exact)
    sizes = np.bincount(duplicate_of, minlength=len(duplicate_of))
    kinds = distinct(
        np.concatenate(
            [np.flatnonzero(sizes > 1), pairs.left.astype(np.int64), pairs.right.astype(np.int64)]
        )
    )[0]
    return Selection(pairs, kinds, promise, omitted)


def data(
    selection: Selection,
    duplicate_of: NDArray[np.int64],
    set_sizes: NDArray[np.int64],
    preference: NDArray[np.int64],
    names: Callable[[NDArray[np.int64]], list[bytes]],
    passages: Mapping[int, Sequence[Segment]],
    facts: Facts,
) -> dict[str, Any]:
    """What the page knows, as JSON has it.

    duplicate_of, set_sizes : int64 arrays of shape (n,), each document's first copy and number of shingles. preference : int64 array of
    shape (n,), all documents, the most preferred first. names : gives those of some documents. passages : by number of a pair of the
    selection.

    In what is returned, documents : columns of those that are named. kinds : for each, which of these have its shingle set, the most
    preferred first. counts : how many there are in truth. pairs : columns; left and right are kinds, similarity descends.
    """
    kinds, pairs = selection.kinds, selection.pairs
    place = np.full(len(duplicate_of), -1, np.int64)
    place[kinds] = np.arange(len(kinds))
    in_order = preference[place[duplicate_of[preference]] >= 0]
    kind_of = place[duplicate_of[in_order]]
    by_kind = np.argsort(kind_of, kind="stable")
    counts = np.bincount(kind_of, minlength=len(kinds))
    ends = np.cumsum(counts)
    within = np.arange(len(by_kind)) - np.repeat(ends - counts, counts)
    chosen = by_kind[within < NAMED_COPIES]  # places in the order of preference
    named = np.sort(in_order[chosen])
    rank = np.zeros(len(duplicate_of), np.int64)
    rank[in_order] = np.arange(len(in_order))
    members: list[list[int]] = [[] for _ in kinds]
    for kind, document in zip(
        kind_of[chosen].tolist(), np.searchsorted(named, in_order[chosen]).tolist(), strict=True
    ):
        members[kind].append(document)
    omitted = [selection.omitted] if selection.omitted else []
    if len(named) < len(in_order):
        omitted.append(
            f"Of more than {NAMED_COPIES:,} copies of one document, {NAMED_COPIES:,} are named; "
            "all are counted."
        )
    if note := passages_note(len(pairs), len(passages), facts.without):
        omitted.append(f"{note[0].upper()}{note[1:]}.")
    return {
        "what": shown(facts.what),
        "newest": facts.newest,
        "documentCount": facts.documents,
        "leftOut": None if facts.skipped is None else sorted(facts.skipped.items()),
        "parameters": [(name, shown(value)) for name, value in facts.parameters],
        "plan": {
            "threshold": selection.promise.threshold, "bands": selection.promise.bands, "rows": selection.promise.rows,
            "exact": selection.promise.exact,
        },
        "omitted": " ".join(omitted),
        "documents": {
            "name": [shown(name) for name in names(named)],
            "shingles": set_sizes[named].tolist(),
            "rank": rank[named].tolist(),
        },
        "kinds": members,
        "counts": counts.tolist(),
        "pairs": {
            "left": place[pairs.left].tolist(), "right": place[pairs.right].tolist(), "similarity": pairs.similarity.tolist(),
        },
        "without": facts.without,
        "passages": {at: [(kind, _harmless(text)) for kind, text in segments] for at, segments in passages.items()},
    }  # fmt: skip


def passages_note(pairs: int, have: int, without: Mapping[int | str, str]) -> str:
    """Return how many pairs have no passages in the page, and why; "" if all have passages.

    pairs : number of pairs in the page.
    have : number of pairs that have passages.
    without : as in `Facts`.
    """
    if have == pairs:
        return ""
    known = Counter(why for at, why in without.items() if at != "")
    others = pairs - have - sum(known.values())
    if others:
        known[without.get("", "left out")] += others
    reasons = "; ".join(
        f"{count:,} {'is' if count == 1 else 'are'} without: {why}"
        for why, count in sorted(known.items())
    )
    return f"the passages of {have:,} of {pairs:,} pairs are in the page; {reasons}"


def _harmless(text: str | int) -> str | int:
    """Return a passage in its lines, with invisible and direction-changing characters escaped."""
    return (
        "\n".join(map(shown, text.replace("\t", " ").splitlines()))
        if isinstance(text, str)
        else text
    )


def segments(comparison: Comparison, context: int) -> list[Segment]:
    """Return the stretches of two texts in the order of both.

    context : tokens that stay around a difference.
    """
    found: list[Segment] = []
    room = _LONGEST
    for hunk in split_hunks(comparison.changes, context):
        if isinstance(hunk, int):
            found.append(("f", hunk))
            continue
        for kind, a_start, a_end, b_start, b_end in hunk:
            of_b = kind in (ADDED, MOVED_HERE)
            text = (
                extract_passage(comparison.b, b_start, b_end)
                if of_b
                else extract_passage(comparison.a, a_start, a_end)
            )
            if len(text) > _LONGEST_STRETCH:
                text = f"{text[: _LONGEST_STRETCH // 2]} … {text[-_LONGEST_STRETCH // 2 :]}"
            found.append((_SEGMENTS[kind], text))
            room -= len(text)
            if room < 0:
                return [*found, ("…", "")]
    return found


def page(known: Mapping[str, Any]) -> bytes:
    """Return the page in UTF-8."""
    return b"".join(_parts(known))


def _parts(known: Mapping[str, Any]) -> Iterator[bytes]:
    parts = resources.files("lshdup.report") / "page"
    text = (parts / "page.html").read_text("utf-8")
    # "<" can end the element or begin a comment in it, so JSON escapes it.
    values = {
        "css": (parts / "page.css").read_text("utf-8"),
        "data": json.dumps(known, ensure_ascii=False, separators=(",", ":")).replace(
            "<", "\\u003c"
        ),
        "js": (parts / "page.js").read_text("utf-8"),
    }
    for name, value in values.items():
        before, text = text.split(f"/*{name}*/", 1)
        yield before.encode()
        yield value.encode("utf-8", "backslashreplace")
    yield text.encode()
