"""Comparison of two documents: similarity, shared shingles, and the alignment of their texts, by
tokens or by lines.

Lines are those of the texts as they are written: case, punctuation and indentation count.
"""

import math
import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.base.wording import count_of
from lshdup.compare.scored_pairs import contains
from lshdup.compare.verification import jaccard
from lshdup.lsh.signatures import Sketcher, estimate
from lshdup.shingling.inspection import LocatedText, ShingledText, locate_shingles, locate_tokens
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import Shingler
from lshdup.views.changes import (
    ALIKE,
    Change,
    cover,
    find_changes,
    gather_passages,
    match_places,
    split_hunks,
)

#: Tokens in a passage that holds two texts together, and in a passage that is reported as moved;
#: and the same of lines.
_PASSAGE = {"word": 3, "symbols": 5, "char": 9, "terms": 3, "ids": 1}
_MOVED = {"word": 8, "symbols": 16, "char": 40, "terms": 8, "ids": 1 << 40}
_LINES_PASSAGE, _LINES_MOVED = 3, 4

_BLANKS = re.compile(rb"\s+")

#: Bytes of the line that a byte is in, on average, up to which a text is read line by line. More
#: has prose with a paragraph a line.
_LINE = 150

#: Words, white space, and all other characters one by one: what is marked in a changed line. A
#: word ends between characters of scripts without spaces.
_PIECES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|"
                     r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+|"
                     r"[^\S\n]+|\n|[^\w\s]")  # fmt: skip

#: A changed line of which less than this share is alike is marked as a whole.
_ALIKE = 0.25

#: Start and end of marked characters in a line.
Span = tuple[int, int]


@dataclass(frozen=True)
class Alignment:
    """Two texts, cut into tokens or into lines, and how to get b from a."""

    a: LocatedText
    b: LocatedText
    changes: list[Change]

    def side(self, change: Change, *, of_b: bool = False) -> tuple[LocatedText, int, int]:
        """Return the text that has a change, and its tokens there: a, if both have it, or b."""
        if of_b or change.a_start == change.a_end:
            return self.b, change.b_start, change.b_end
        return self.a, change.a_start, change.a_end

    def hunks(self, context: int) -> Iterator[list[Change] | int]:
        """Yield what to show, as `split_hunks` does."""
        return split_hunks(self.changes, context)


@dataclass(frozen=True)
class SharedTexts(Alignment):
    """Two texts, cut into tokens, and the passages that stand in both, at any place.

    changes : the passages, all of them alike, in the order of a; each with one place in b.
    in_a, in_b : bool arrays of shape (n_tokens,), whether a token is of a shared shingle.
    """

    in_a: NDArray[np.bool_]
    in_b: NDArray[np.bool_]

    def hunks(self, context: int) -> Iterator[list[Change]]:
        """Yield the passages, and what stands around them, the hunks that share most first."""
        found = gather_passages(self.changes, self.in_a, self.in_b, context)
        yield from sorted(found, key=lambda hunk: -count_tokens(hunk))


def count_tokens(changes: list[Change], kind: str = ALIKE) -> int:
    """Return the number of tokens of a kind of change."""
    return sum(change.tokens for change in changes if change.kind == kind)


@dataclass(frozen=True)
class Comparison:
    """Two documents beside each other.

    similarity : exact, of the shingle sets; 0 if a document has no tokens.
    estimate, standard_error : from signatures; None without them.
    shared, only_a, only_b : numbers of elements of the sets.
    removed_a, removed_b : numbers of elements of the unfiltered sets that the filter removed.
    texts : by their tokens; a `SharedTexts` if passages are wanted that stand in both.
    """

    similarity: float
    estimate: float | None
    standard_error: float | None
    shared: int
    only_a: int
    only_b: int
    removed_a: int
    removed_b: int
    texts: Alignment

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of elements of both unfiltered sets."""
        of_a, of_b = self.only_a + self.removed_a, self.only_b + self.removed_b
        return self.shared + of_a, self.shared + of_b

    @property
    def containment(self) -> float:
        """The share of the smaller set that is in the other; 0 if a document has no tokens."""
        return max(self.share_a, self.share_b)

    @property
    def share_a(self) -> float:
        """The share of the set of a that is in the other; 0 if the document has no tokens."""
        return self.shared / max(self.shared + self.only_a, 1)

    @property
    def share_b(self) -> float:
        """The share of the set of b, likewise."""
        return self.shared / max(self.shared + self.only_b, 1)


def compare(
    run: Run,
    text_a: bytes,
    text_b: bytes,
    params: ShingleParams,
    sketch: SketchParams | None = None,
    shingle_filter: ShingleFilter | None = None,
    *,
    sharing: bool = False,
) -> Comparison:
    """Compare two texts.

    text_a, text_b : valid UTF-8; ids are numbers between blanks.
    sketch : parameters of the signatures for the estimate; of a scheme that can sign two documents.
    shingle_filter : removes shingles from both sets before they are compared.
    sharing : whether to find what both texts share, at any place, instead of how to get b from a.
    Cost: n log n in the length of the texts. Memory: about 100 bytes a token.
    """
    shingler = Shingler(params.of_any_size())
    unfiltered = RaggedSets.concatenate(
        [shingler.shingle_texts([text]).copy() for text in (text_a, text_b)]
    )
    sets = unfiltered if shingle_filter is None else shingle_filter.of_any_size().apply(unfiltered)
    left, right = np.array([0]), np.array([1])
    shared = len(np.intersect1d(sets[0], sets[1], assume_unique=True))
    similarity = float(jaccard(run, sets, left, right)[0])
    estimated = standard_error = None
    if sketch is not None and all(sets.sizes):
        estimated = float(estimate(run, Sketcher(sketch).sketch(sets), left, right)[0])
        # The error at the true similarity, which is known here.
        standard_error = math.sqrt(similarity * (1 - similarity) / sketch.perms)
    texts: Alignment
    if sharing:
        a, b = locate_shingles(text_a, params), locate_shingles(text_b, params)
        texts = find_shared(a, b, shingle_filter)
    else:
        texts = align_tokens(locate_tokens(text_a, params), locate_tokens(text_b, params), params)
    only_a, only_b = (sets.sizes - shared).tolist()
    removed = (unfiltered.sizes - sets.sizes).tolist()
    return Comparison(
        similarity, estimated, standard_error, shared, only_a, only_b, removed[0], removed[1], texts
    )


def align_tokens(a: LocatedText, b: LocatedText, params: ShingleParams) -> Alignment:
    """Align two texts by their tokens."""
    passage, moved = _PASSAGE[params.tokens], _MOVED[params.tokens]
    return Alignment(a, b, find_changes(a.tokens, b.tokens, passage, moved))


def find_shared(
    a: ShingledText, b: ShingledText, shingle_filter: ShingleFilter | None = None
) -> SharedTexts:
    """Find the passages of a that stand in b: runs of shingles that both sets have.

    A passage that stands in b several times is found near the passages before and behind it.

    shingle_filter : removes shingles from both sets.
    Cost: n log n in the number of tokens.
    """
    shared = np.intersect1d(a.elements, b.elements)
    if shingle_filter is not None:
        shared = shared[~contains(shingle_filter.shingles, shared)]
    at, of_b = (np.flatnonzero(contains(shared, each.elements)) for each in (a, b))
    there = match_places(a.elements, b.elements, at)
    begins, places = a.begins[at], b.begins[there]
    follows = (np.diff(at) == 1) & (np.diff(there) == 1) & (np.diff(begins) == np.diff(places))
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(at)), bool), ~follows]))
    ends, past = (
        np.maximum.reduceat(each, first).tolist()
        for each in (begins + a.sizes[at], places + b.sizes[there])
    )
    spans = zip(begins[first].tolist(), ends, places[first].tolist(), past, strict=True)
    marked = (
        cover(len(each.tokens), each.begins[some], each.sizes[some])
        for each, some in ((a, at), (b, of_b))
    )
    return SharedTexts(a, b, [Change(ALIKE, *span) for span in spans], *marked)


def align_lines(text_a: bytes, text_b: bytes) -> Alignment:
    """Align two texts by their lines, which have no ends, of Windows neither.

    text_a, text_b : valid UTF-8. Cost: n log n in the number of lines, and one pass over the text.
    """
    known: dict[bytes | str, int] = {}
    located = []
    for text in (text_a, text_b):
        text = text.replace(b"\r\n", b"\n")
        lines = text.removesuffix(b"\n").split(b"\n") if text else []
        sizes = np.array([len(line) for line in lines], np.int64)
        ends = np.cumsum(sizes + 1) - 1
        located.append(LocatedText(text, ends - sizes, ends, _number(lines, known)))
    a, b = located
    changes = find_changes(a.tokens, b.tokens, _LINES_PASSAGE, _LINES_MOVED, least=1)
    return Alignment(a, b, changes)


def extract_line(located: LocatedText, line: int) -> str:
    """Return a line of a text that is cut into lines."""
    return located.text[located.starts[line] : located.ends[line]].decode()


def mark_pieces(removed: list[str], added: list[str]) -> tuple[list[list[Span]], list[list[Span]]]:
    """Return for each removed line, and for each added line, the spans that differ.

    A line that has little in common with the other side has no spans: all of it differs.
    """
    found = [_PIECES.findall("\n".join(lines)) for lines in (removed, added)]
    known: dict[bytes | str, int] = {}
    a, b = (_number(pieces, known) for pieces in found)
    changes = find_changes(a, b, _LINES_PASSAGE, len(a) + 1, least=1)
    differs = np.ones(len(a), bool), np.ones(len(b), bool)
    for kind, start, end, b_start, b_end in changes:
        if kind == ALIKE:
            differs[0][start:end] = differs[1][b_start:b_end] = False
    return _find_spans(found[0], differs[0].tolist()), _find_spans(found[1], differs[1].tolist())


def have_same_lines(texts: Alignment) -> bool:
    """Return whether two texts are best compared by lines.

    So it is if both have lines of a usual length, and lines mostly end at the same words: program
    text and tables, but not prose that was wrapped anew.

    texts : by their tokens.
    """
    for each in (texts.a, texts.b):
        sizes = np.array([len(line) for line in each.text.rstrip().split(b"\n")])
        if len(sizes) < 2 or (sizes**2).sum() > _LINE * sizes.sum():
            return False
    begins_a, begins_b = _find_beginnings(texts.a), _find_beginnings(texts.b)
    both = either = 0
    for kind, start, end, b_start, b_end in texts.changes:
        if kind == ALIKE:
            left, right = begins_a[start:end], begins_b[b_start:b_end]
            both += int((left & right).sum())
            either += int((left | right).sum())
    return 2 * both >= either


def _find_beginnings(located: LocatedText) -> NDArray[np.bool_]:
    """Return which tokens are the first of a line; the first of the text is not counted."""
    lines = np.searchsorted(located.line_ends, located.starts)
    return np.diff(lines, prepend=lines[:1]) > 0


def _number(pieces: Iterable[bytes | str], known: dict[bytes | str, int]) -> NDArray[np.uint64]:
    """Return a number for each piece, equal where pieces are."""
    return np.array([known.setdefault(each, len(known)) for each in pieces], np.uint64)


def _find_spans(pieces: list[str], differs: list[bool]) -> list[list[Span]]:
    """Return the spans of each line that differ, joined where they touch."""
    marks: list[list[Span]] = []
    at = alike = total = 0
    spans: list[Span] = []
    for piece, flag in zip([*pieces, "\n"], [*differs, False], strict=True):
        if piece == "\n":
            marks.append(spans if alike >= _ALIKE * total else [])
            at = alike = total = 0
            spans = []
            continue
        size = len(piece)
        if flag and spans and spans[-1][1] == at:
            spans[-1] = spans[-1][0], at + size
        elif flag:
            spans.append((at, at + size))
        at += size
        visible = 0 if piece.isspace() else size
        total += visible
        alike += 0 if flag else visible
    return marks


def extract_passage(located: LocatedText, start: int, end: int) -> str:
    """Return the text of tokens start … end - 1.

    Opening marks before a token, and closing marks and white space behind it, belong to it.
    """
    if start >= end:
        return ""
    return located.text[_find_border(located, start) : _find_border(located, end)].decode("utf-8")


def find_line(located: LocatedText, token: int) -> int:
    """Return the number, from 1, of the line in which a token stands."""
    starts = located.starts
    end = int(starts[token]) if token < len(starts) else len(located.text.rstrip())
    return int(np.searchsorted(located.line_ends, end)) + 1


def describe_places(texts: Alignment, hunk: list[Change], noun: str) -> str:
    """Return in which lines of both texts a hunk has its passages, and how much they share."""
    alike = [change for change in hunk if change.kind == ALIKE]
    places = []
    for text, first, last in (
        (texts.a, alike[0].a_start, alike[-1].a_end - 1),
        (texts.b, alike[0].b_start, alike[-1].b_end - 1),
    ):
        lines = find_line(text, first), find_line(text, last)
        places.append("lines {:,} to {:,}" if lines[0] < lines[1] else "line {:,}")
        places[-1] = places[-1].format(*lines)
    return f"{places[0]} of A, {places[1]} of B: {count_of(count_tokens(hunk), noun)} shared"


def _find_border(located: LocatedText, token: int) -> int:
    """Return where the text of a token begins: after white space behind the token before."""
    if token == 0:
        return 0
    if token == len(located.starts):
        return len(located.text)
    end, start = int(located.ends[token - 1]), int(located.starts[token])
    space = _BLANKS.search(located.text, end, max(end, start))
    return space.end() if space else max(end, start)
