"""The HTML page of a report: one file without network access, safe for any documents.

`collect_data` makes all data of the page; page/page.js shows it. Names and texts are data there,
never markup: `render_page` escapes the character that could end a script element, and the script
sets texts only.
"""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.run import Run
from lshdup.base.wording import printable
from lshdup.compare.clusters import choose_representatives
from lshdup.views.pair_view import Differences
from lshdup.views.selection import Selection


@dataclass(frozen=True)
class Facts:
    """Facts about the run that the page shows beside the results.

    what : the documents, in a few words.
    document_count : number of documents compared.
    bands, rows : shape of the band table; 0 for the exact join.
    kept : which document of a group is kept, in words.
    command : the beginning of a command line that lists the same groups.
    newest : when the newest document was changed, in words.
    changed : number of documents that changed or vanished since they were compared.
    skipped : number of inputs that were not compared, by reason.
    parameters : names and values of the requested parameters.
    shared : the measure of a page of pairs, and of what they share; "" for a page of groups.
    """

    what: str
    document_count: int
    bands: int = 0
    rows: int = 0
    kept: str = ""
    command: str = "lshdup clusters"
    newest: str = ""
    changed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    parameters: Sequence[tuple[str, str]] = ()
    shared: str = ""


def collect_data(
    run: Run,
    selection: Selection,
    duplicate_of: NDArray[np.int64],
    set_sizes: NDArray[np.int64],
    preference: NDArray[np.int64],
    names: Callable[[NDArray[np.int64]], list[bytes]],
    facts: Facts,
    compare: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]],
) -> dict[str, Any]:
    """Return all data of the page but the passages, as JSON has it.

    duplicate_of : int64 array of shape (n,), the representative of each document.
    set_sizes : int64 array of shape (n,), number of shingles.
    preference : int64 array of shape (n,), all documents, the most preferred first.
    names : returns the names of documents.
    compare : returns how much pairs of documents are the same, as `Fingerprints.compare`.

    In the result, `documents` has the columns of the named documents, in byte order of their names:
    `line` is the place of a name in the lists of `add_lists`, `same` how much a document is the
    same as the first of its kind. `kinds` has for each representative the documents with its
    shingle set, the most preferred first; the first `grouped` of them have groups. `moves` and
    `pairs` have columns of positions in `kinds`. `folders` has no pairs of folders yet.
    """
    kinds = selection.kinds
    position = _number_kinds(selection, duplicate_of)
    in_order = preference[position[duplicate_of[preference]] >= 0]
    named = np.sort(in_order)
    members: list[list[int]] = [[] for _ in kinds]
    places = np.searchsorted(named, in_order).tolist()
    for kind, place in zip(position[duplicate_of[in_order]].tolist(), places, strict=True):
        members[kind].append(place)
    first = choose_representatives(run, duplicate_of, preference)[duplicate_of[named]]
    columns = {
        "line": named.tolist(),
        "shingles": set_sizes[named].tolist(),
        "same": compare(named, first).tolist(),
    }
    steps, moves, pairs = selection.steps, selection.moves, selection.pairs
    return asdict(facts) | {
        "skipped": sorted(facts.skipped.items()),
        "steps": asdict(steps),
        "documents": _describe_names(names(named)) | columns,
        "kinds": members,
        "grouped": len(selection.grouped),
        "inGroups": selection.document_count,
        "moves": {
            "count": np.bincount(position[moves.document], minlength=len(kinds)).tolist(),
            "step": moves.step.tolist(),
            "to": position[moves.representative].tolist(),
            # Four places are shown: what is not 1 does not look like it.
            "similarity": np.minimum(moves.similarity, 0.9999).round(4).tolist(),
        },
        "pairs": {
            "values": pairs.values.real.tolist(),
            "counts": np.diff(pairs.offsets).tolist(),
            "left": position[pairs.left].tolist(),
            "right": position[pairs.right].tolist(),
        },
        "folders": {"count": 0, "least": 1, "pairs": []},
    }


def _number_kinds(selection: Selection, duplicate_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each representative in `kinds`, or -1: int64 array of shape (n,)."""
    position = np.full(len(duplicate_of), -1, np.int64)
    position[selection.kinds] = np.arange(len(selection.kinds))
    return position


def _describe_names(names: list[bytes]) -> dict[str, Any]:
    """Return columns of names as they are shown."""
    folders: dict[bytes, int] = {}
    columns: dict[str, Any] = {"folder": [], "name": []}
    for name in names:
        base = name.rfind(b"/") + 1
        columns["folder"].append(folders.setdefault(name[:base], len(folders)))
        columns["name"].append(printable(name[base:]))
    return columns | {"folders": [printable(folder) for folder in folders]}


def add_lists(
    data: dict[str, Any],
    selection: Selection,
    names: Iterable[bytes],
    are_parts: NDArray[np.bool_],
    skipped: Mapping[str, Sequence[tuple[str, str]]],
) -> None:
    """Add all names to keep and to drop at each step to the data of a page, packed.

    names : what stays if nothing is dropped, a line each: all documents in their order first; b""
        for a document that is gone, which no list names.
    are_parts : bool array of shape (n,), whether a document is a part of a file.
    skipped : names and details of what was not compared, by reason.

    The packed lists are JSON, deflated, in base64. A character of a name is a byte there, and
    `changes` has the distances of lines that change between keep and drop, for each step.
    """
    lists = {
        "names": [name.decode("latin-1") for name in names],
        "parts": "".join(map(str, are_parts.astype(int).tolist())),
        "changes": [np.diff(each, prepend=0).tolist() for each in selection.changed_roles],
        "skipped": sorted(skipped.items()),
    }
    text = json.dumps(lists, ensure_ascii=False, separators=(",", ":"))
    data["lists"] = base64.b64encode(zlib.compress(text.encode())).decode()


def add_differences(
    data: dict[str, Any], found: Differences, selection: Selection, duplicate_of: NDArray[np.int64]
) -> None:
    """Add differences to the data of a page, with positions in `kinds` instead of documents.

    selection, duplicate_of : as in `collect_data`.
    """
    position = _number_kinds(selection, duplicate_of)[duplicate_of]

    def key(pair: tuple[int, int] | None) -> str:
        return f"{position[pair[0]]},{position[pair[1]]}" if pair else ""

    data["passages"] = {key(pair): segments for pair, segments in found.segments.items()}
    data["variants"] = {
        int(position[kept]): [(*texts, position[members].tolist()) for *texts, members in each]
        for kept, each in found.variants.items()
    }
    data["without"] = {key(pair): why for pair, why in found.without.items()}
    what = "shared passages" if data["shared"] else "differences"
    data["missing"] = _describe_missing(found, selection.pair_count, what)


def _describe_missing(found: Differences, pairs: int, what: str) -> str:
    """Return how many of so many pairs have no differences in the page, and why; "" if all have."""
    have = len(found.segments)
    if have == pairs:
        return ""
    known = Counter(why for pair, why in found.without.items() if pair is not None)
    known[found.without[None]] += pairs - have - known.total()
    reasons = "; ".join(
        f"{count:,} {'is' if count == 1 else 'are'} without: {why}"
        for why, count in sorted(known.items())
        if count
    )
    return f"the {what} of {have:,} of {pairs:,} pairs are in the page; {reasons}"


def render_page(data: Mapping[str, Any]) -> bytes:
    """Return the page in UTF-8."""
    files = resources.files("lshdup.views") / "page"
    text = (files / "page.html").read_text("utf-8")
    # "<" can end the element or begin a comment in it, so JSON escapes it.
    values = {
        "css": (files / "page.css").read_text("utf-8"),
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        "js": (files / "page.js").read_text("utf-8"),
    }
    parts = []
    for name, value in values.items():
        before, text = text.split(f"/*{name}*/", 1)
        parts += [before.encode(), value.encode("utf-8", "backslashreplace")]
    return b"".join([*parts, text.encode()])
