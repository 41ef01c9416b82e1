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
from lshdup.utils.messages import printable
from lshdup.utils.ragged import distinct

#: The most exact duplicates of a document that are named; all are counted.
NAMED_COPIES = 500

#: A stretch of two texts: a sign and the text. The signs are "=" for both texts, "-" and "+" for
#: the first and the second, "<" and ">" for moved text of the first and the second. Other signs are
#: "f" with the number of folded tokens, and "…" where too long texts end.
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
    representatives: NDArray[np.int64]
    promise: Promise
    omitted: str = ""


def select_pairs(
    pairs: Pairs, duplicate_of: NDArray[np.int64], promise: Promise, most: int
) -> Selection:
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
    representatives = distinct(
        np.concatenate(
            [np.flatnonzero(sizes > 1), pairs.left.astype(np.int64), pairs.right.astype(np.int64)]
        )
    )[0]
    return Selection(pairs, representatives, promise, omitted)


def collect_data(
    selection: Selection,
    duplicate_of: NDArray[np.int64],
    set_sizes: NDArray[np.int64],
    preference: NDArray[np.int64],
    names: Callable[[NDArray[np.int64]], list[bytes]],
    passages: Mapping[int, Sequence[Segment]],
    facts: Facts,
) -> dict[str, Any]:
    """Return all data of the page, as JSON has it.

    duplicate_of : int64 array of shape (n,), the representative of each document.
    set_sizes : int64 array of shape (n,), number of shingles.
    preference : int64 array of shape (n,), all documents, the most preferred first.
    names : returns the names of documents.
    passages : stretches by number of a pair of the selection.

    In the result, `documents` has the columns of the named documents; `kinds` has for each
    representative the named documents with its shingle set, the most preferred first; `counts` has
    the number of all such documents; `pairs` has columns of positions in `kinds` and similarities.
    """
    representatives, pairs = selection.representatives, selection.pairs
    position = np.full(len(duplicate_of), -1, np.int64)
    position[representatives] = np.arange(len(representatives))
    in_order = preference[position[duplicate_of[preference]] >= 0]
    group_of = position[duplicate_of[in_order]]
    by_group = np.argsort(group_of, kind="stable")
    counts = np.bincount(group_of, minlength=len(representatives))
    ends = np.cumsum(counts)
    within = np.arange(len(by_group)) - np.repeat(ends - counts, counts)
    chosen = by_group[within < NAMED_COPIES]
    named = np.sort(in_order[chosen])
    rank = np.zeros(len(duplicate_of), np.int64)
    rank[in_order] = np.arange(len(in_order))
    members: list[list[int]] = [[] for _ in representatives]
    documents = np.searchsorted(named, in_order[chosen]).tolist()
    for group, document in zip(group_of[chosen].tolist(), documents, strict=True):
        members[group].append(document)
    omitted = [selection.omitted] if selection.omitted else []
    if len(named) < len(in_order):
        omitted.append(
            f"Of more than {NAMED_COPIES:,} copies of one document, {NAMED_COPIES:,} are named; "
            "all are counted."
        )
    if note := describe_missing_passages(len(pairs), len(passages), facts.without):
        omitted.append(f"{note[0].upper()}{note[1:]}.")
    promise = selection.promise
    return {
        "what": printable(facts.what),
        "newest": facts.newest,
        "documentCount": facts.documents,
        "leftOut": None if facts.skipped is None else sorted(facts.skipped.items()),
        "parameters": [(name, printable(value)) for name, value in facts.parameters],
        "plan": {
            "threshold": promise.threshold,
            "bands": promise.bands,
            "rows": promise.rows,
            "exact": promise.exact,
        },
        "omitted": " ".join(omitted),
        "documents": {
            "name": [printable(name) for name in names(named)],
            "shingles": set_sizes[named].tolist(),
            "rank": rank[named].tolist(),
        },
        "kinds": members,
        "counts": counts.tolist(),
        "pairs": {
            "left": position[pairs.left].tolist(),
            "right": position[pairs.right].tolist(),
            "similarity": pairs.similarity.tolist(),
        },
        "without": facts.without,
        "passages": {
            number: [(sign, _escape(text)) for sign, text in segments]
            for number, segments in passages.items()
        },
    }


def describe_missing_passages(pairs: int, have: int, without: Mapping[int | str, str]) -> str:
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


def _escape(text: str | int) -> str | int:
    """Return a passage in its lines, with invisible and direction-changing characters escaped."""
    if isinstance(text, int):
        return text
    return "\n".join(map(printable, text.replace("\t", " ").splitlines()))


def find_segments(comparison: Comparison, context: int) -> list[Segment]:
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
            if kind in (ADDED, MOVED_HERE):
                text = extract_passage(comparison.b, b_start, b_end)
            else:
                text = extract_passage(comparison.a, a_start, a_end)
            if len(text) > _LONGEST_STRETCH:
                half = _LONGEST_STRETCH // 2
                text = f"{text[:half]} … {text[-half:]}"
            found.append((_SEGMENTS[kind], text))
            room -= len(text)
            if room < 0:
                return [*found, ("…", "")]
    return found


def render_page(data: Mapping[str, Any]) -> bytes:
    """Return the page in UTF-8."""
    return b"".join(_parts(data))


def _parts(data: Mapping[str, Any]) -> Iterator[bytes]:
    parts = resources.files("lshdup.report") / "page"
    text = (parts / "page.html").read_text("utf-8")
    # "<" can end the element or begin a comment in it, so JSON escapes it.
    values = {
        "css": (parts / "page.css").read_text("utf-8"),
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        "js": (parts / "page.js").read_text("utf-8"),
    }
    for name, value in values.items():
        before, text = text.split(f"/*{name}*/", 1)
        yield before.encode()
        yield value.encode("utf-8", "backslashreplace")
    yield text.encode()
