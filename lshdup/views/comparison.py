"""Comparison of two documents: similarity, shared shingles, and differences of the texts."""

import math
import re
from collections.abc import Iterator

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare.verification import jaccard
from lshdup.lsh.signatures import Sketcher, estimate
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.inspection import LocatedText, locate_tokens
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import Shingler
from lshdup.views.token_diff import ALIKE, Change, find_changes

#: Tokens in a passage that holds two texts together, and in a passage that is reported as moved.
_PASSAGE = {"word": 3, "symbols": 5, "char": 9, "terms": 3, "ids": 1}
_MOVED = {"word": 8, "symbols": 16, "char": 40, "terms": 8, "ids": 1 << 40}

_BLANKS = re.compile(rb"\s+")


@dataclass(frozen=True)
class Comparison:
    """Two documents beside each other.

    similarity : exact, of the shingle sets; 0 if a document has no tokens.
    estimate, standard_error : from signatures; None without them.
    shared, only_a, only_b : numbers of elements of the sets.
    removed_a, removed_b : numbers of elements of the unfiltered sets that the filter removed.
    a, b : the texts and their tokens.
    changes : how to get b from a.
    """

    similarity: float
    estimate: float | None
    standard_error: float | None
    shared: int
    only_a: int
    only_b: int
    removed_a: int
    removed_b: int
    a: LocatedText
    b: LocatedText
    changes: list[Change]

    @property
    def containment(self) -> float:
        """The share of the smaller set that is in the other; 0 if a document has no tokens."""
        smaller = self.shared + min(self.only_a, self.only_b)
        return self.shared / smaller if smaller else 0.0

    @property
    def counts(self) -> dict[str, int]:
        """Tokens of each kind of change."""
        counts: dict[str, int] = {}
        for change in self.changes:
            counts[change.kind] = counts.get(change.kind, 0) + change.tokens
        return counts


def compare(
    text_a: bytes,
    text_b: bytes,
    params: ShingleParams,
    sketch: SketchParams | None = None,
    shingle_filter: ShingleFilter | None = None,
) -> Comparison:
    """Compare two texts.

    text_a, text_b : valid UTF-8; ids are numbers between blanks.
    sketch : parameters of the signatures for the estimate; of a scheme that can sign two documents.
    shingle_filter : removes shingles from both sets before they are compared.
    Cost: n log n in the length of the texts. Memory: about 100 bytes a token.
    """
    shingler = Shingler(params.of_any_size())
    unfiltered = RaggedSets.concatenate(
        [shingler.shingle_texts([text]).copy() for text in (text_a, text_b)]
    )
    sets = unfiltered if shingle_filter is None else shingle_filter.of_any_size().apply(unfiltered)
    left, right = np.array([0]), np.array([1])
    shared = len(np.intersect1d(sets[0], sets[1], assume_unique=True))
    run = Run.quiet()
    similarity = float(jaccard(run, sets, left, right)[0])
    estimated = standard_error = None
    if sketch is not None and all(sets.sizes):
        estimated = float(estimate(run, Sketcher(sketch).sketch(sets), left, right).similarity[0])
        # The error at the true similarity, which is known here.
        standard_error = math.sqrt(similarity * (1 - similarity) / sketch.perms)
    a, b = locate_tokens(text_a, params), locate_tokens(text_b, params)
    only_a, only_b = (sets.sizes - shared).tolist()
    removed_a, removed_b = (unfiltered.sizes - sets.sizes).tolist()
    return Comparison(
        similarity=similarity,
        estimate=estimated,
        standard_error=standard_error,
        shared=shared,
        only_a=only_a,
        only_b=only_b,
        removed_a=removed_a,
        removed_b=removed_b,
        a=a,
        b=b,
        changes=find_text_changes(a, b, params),
    )


def find_text_changes(a: LocatedText, b: LocatedText, params: ShingleParams) -> list[Change]:
    """Return how to get the tokens of b from those of a, as `find_changes` does."""
    return find_changes(a.tokens, b.tokens, _PASSAGE[params.tokens], _MOVED[params.tokens])


def split_hunks(changes: list[Change], context: int) -> Iterator[list[Change] | int]:
    """Yield the hunks of changes with their context, and between them the folded number of tokens.

    context : tokens that stay around a change.
    """
    hunk: list[Change] = []
    for i, change in enumerate(changes):
        before = 0 if i == 0 else context
        after = 0 if i == len(changes) - 1 else context
        size = change.tokens
        # The line about folded words takes as much room as a few words.
        if change.kind != ALIKE or size <= before + after + context:
            hunk.append(change)
            continue
        a, a_end, b, b_end = change.a_start, change.a_end, change.b_start, change.b_end
        if before:
            hunk.append(Change(ALIKE, a, a + before, b, b + before))
        if hunk:
            yield hunk
        yield size - before - after
        hunk = [Change(ALIKE, a_end - after, a_end, b_end - after, b_end)] if after else []
    if hunk:
        yield hunk


def extract_passage(located: LocatedText, start: int, end: int) -> str:
    """Return the text of tokens start … end - 1.

    Opening marks before a token, and closing marks and white space behind it, belong to it.
    """
    if start >= end:
        return ""
    return located.text[_find_border(located, start) : _find_border(located, end)].decode("utf-8")


def _find_border(located: LocatedText, token: int) -> int:
    """Return where the text of a token begins: after white space behind the token before."""
    if token == 0:
        return 0
    if token == len(located.starts):
        return len(located.text)
    end, start = int(located.ends[token - 1]), int(located.starts[token])
    space = _BLANKS.search(located.text, end, max(end, start))
    return space.end() if space else max(end, start)
