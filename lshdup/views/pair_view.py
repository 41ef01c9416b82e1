"""Where documents differ, or what they share, for pages and groups: the stretches of a pair, and
the variants of a group, which are what its documents have instead of passages of the one that is
kept.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from lshdup.base.frozen import dataclass
from lshdup.base.params import ShingleParams
from lshdup.base.run import Run
from lshdup.base.wording import printable
from lshdup.shingling.inspection import LocatedText
from lshdup.views.changes import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED, count_common
from lshdup.views.comparison import Alignment, SharedTexts, describe_places, extract_passage
from lshdup.views.terminal import CONTEXT, NOUNS

#: A stretch of two texts: a sign and the text. The signs are "=" for both texts, "-" and "+" for
#: the first and the second, "<" and ">" for moved text of the first and the second. Other signs are
#: "f" with the number of folded tokens, "p" with the places of the passages that follow, and "…"
#: where too long texts end. A passage that the second text spells otherwise has its text too.
Segment = tuple[str, str | int] | tuple[str, str, str]

#: A text with its tokens, and with its shingles where these are compared.
Text = TypeVar("Text", bound=LocatedText)

#: A variant of a group: text before it, the passage of the kept document, text behind it, what
#: members have instead, and these members.
Alternative = tuple[str, str, str, str, list[int]]

_SEGMENTS = {ALIKE: "=", REMOVED: "-", ADDED: "+", MOVED_AWAY: "<", MOVED_HERE: ">"}

#: The most characters of the passages of one pair, and of one stretch.
_LONGEST, _LONGEST_STRETCH = 12_000, 4_000

#: The most variants of a group, and characters of one.
_VARIANTS, _LONGEST_VARIANT = 200, 400


@dataclass(frozen=True)
class Variant:
    """A passage of the kept document, and the text that some members have instead.

    start, end : tokens of the kept document, from start to end - 1; none if members only add text.
    text : as the first of the members spells it; empty if members lack the passage.
    members : positions of the members, ascending.
    """

    start: int
    end: int
    text: str
    members: tuple[int, ...]


@dataclasses.dataclass
class Differences:
    """Differences, or shared passages, by pair of documents; in a group the kept one is first.

    segments : the stretches of both texts.
    variants : by kept document: (before, passage, after, text, members), from the beginning to the
        end of the kept document, and the most frequent of a passage first.
    without : why a pair has no segments; under None for all other pairs.
    """

    segments: dict[tuple[int, int], list[Segment]] = dataclasses.field(default_factory=dict)
    variants: dict[int, list[Alternative]] = dataclasses.field(default_factory=dict)
    without: dict[tuple[int, int] | None, str] = dataclasses.field(default_factory=dict)


def find_differences(
    run: Run,
    groups: Iterable[tuple[int, list[int]]],
    read: Callable[[int], Text | str],
    align: Callable[[Text, Text], Alignment],
    params: ShingleParams,
    most: int,
    room: int,
) -> Differences:
    """Compare the members of groups with the kept document, each pair once.

    groups : kept documents and members; another pair is a group of one member.
    read : returns the text of a document, or why it cannot be compared.
    align : compares two texts: `align_tokens`, or `find_shared`.
    most : the most pairs that are compared.
    room : the most bytes of all texts, about.
    """
    found = Differences(without={None: f"more than --differences {most}"})
    context = CONTEXT[params.tokens]
    seen: set[frozenset[int]] = set()
    for kept, members in groups:
        a, collector, compared = read(kept), VariantCollector(), 0
        new = [member for member in members if frozenset((kept, member)) not in seen]
        is_full = len(new) > most - len(seen)
        for member in new[: most - len(seen)]:
            seen.add(frozenset((kept, member)))
            b = read(member)
            if isinstance(a, str) or isinstance(b, str):
                found.without[kept, member] = min(each for each in (a, b) if isinstance(each, str))
                continue
            texts = align(a, b)
            segments = list(_find_segments(texts, context, NOUNS[params.tokens]))
            room -= _size_of(text for _, *every in segments for text in every)
            if room < 0:
                found.without[None] = "the page would be too large; --differences N takes N"
                is_full = True
                break
            found.segments[kept, member] = segments
            collector.add(member, texts)
            compared += 1
            run.progress("passages", len(found.segments), most)
        if compared > 1 and not isinstance(a, str):
            variants = collector.variants()[:_VARIANTS]
            found.variants[kept] = [_alternative(a, each, context // 2) for each in variants]
            room -= _size_of(chain.from_iterable(found.variants[kept]))
        if is_full:
            break
    return found


class VariantCollector:
    """The variants of one kept document, collected member by member."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, bytes], tuple[str, list[int]]] = {}

    def add(self, position: int, texts: Alignment) -> None:
        """Add a member by its alignment with the kept document."""
        for start, end, b_start, b_end in _list_edits(texts):
            key = start, end, texts.b.tokens[b_start:b_end].tobytes()
            if key not in self._found:
                self._found[key] = extract_passage(texts.b, b_start, b_end), []
            self._found[key][1].append(position)

    def variants(self) -> list[Variant]:
        """Return the variants in the order of the kept document, the most frequent first.

        Two members have the same variant if the tokens of the passage and of the text are equal:
        case and punctuation count only as far as the tokens do. A moved passage is removed in one
        place and added in another.
        """
        found = (
            Variant(start, end, text, tuple(members))
            for (start, end, _), (text, members) in self._found.items()
        )
        return sorted(found, key=lambda each: (each.start, each.end, -len(each.members), each.text))


def _list_edits(texts: Alignment) -> Iterator[tuple[int, int, int, int]]:
    """Yield the passages of a that b has otherwise, each as far to the right as it can stand: its
    start and end in tokens, and those of what b has instead.

    Where a repeated word is added or removed there are several places to say so: one is chosen, so
    that equal edits of two documents look equal.
    """
    a, b = texts.a, texts.b
    at_a = at_b = 0
    for kind, a_start, a_end, b_start, b_end in texts.changes:
        if kind != ALIKE:
            continue
        shift = 0
        if at_a == a_start:
            shift = count_common(b.tokens[at_b:b_end], b.tokens[b_start:b_end])
        elif at_b == b_start:
            shift = count_common(a.tokens[at_a:a_end], a.tokens[a_start:a_end])
        if (at_a, at_b) != (a_start, b_start):
            yield at_a + shift, a_start + shift, at_b + shift, b_start + shift
        at_a, at_b = a_end, b_end
    if (at_a, at_b) != (len(a.tokens), len(b.tokens)):
        yield at_a, len(a.tokens), at_b, len(b.tokens)


def _size_of(texts: Iterable[object]) -> int:
    """Return about the bytes of texts, numbers and lists of documents in the page."""
    return sum(len(str(text).encode("utf-8", "replace")) + 8 for text in texts)


def _alternative(kept: LocatedText, variant: Variant, around: int) -> Alternative:
    """Return a variant with the text around it."""
    start, end = variant.start, variant.end
    before = extract_passage(kept, max(0, start - around), start)
    after = extract_passage(kept, end, min(len(kept.starts), end + around))
    passage = shorten(extract_passage(kept, start, end), _LONGEST_VARIANT)
    text = shorten(variant.text, _LONGEST_VARIANT)
    return (*map(escape, (before, passage, after, text)), list(variant.members))  # type: ignore[return-value]


def _find_segments(texts: Alignment, context: int, noun: str) -> Iterator[Segment]:
    """Yield the stretches of two texts in the order of both, or of the hunks of what they share.

    context : tokens that stay around a difference, or passage. noun : the word for a token.
    """
    room, is_shared = _LONGEST, isinstance(texts, SharedTexts)
    for hunk in texts.hunks(context):
        if isinstance(hunk, int):
            yield "f", hunk
            continue
        if is_shared:
            yield "p", describe_places(texts, hunk, noun)
        for change in hunk:
            text = shorten(extract_passage(*texts.side(change)), _LONGEST_STRETCH)
            both = [text]
            if is_shared and change.kind == ALIKE:
                passage = extract_passage(*texts.side(change, of_b=True))
                other = shorten(passage, _LONGEST_STRETCH)
                # White space is not seen, but between words.
                looks = [(each.split(), each[-1:].isspace()) for each in (text, other)]
                both += [other] * (looks[0] != looks[1])
            yield (_SEGMENTS[change.kind], *map(escape, both))  # type: ignore[misc]
            room -= sum(map(len, both))
            if room < 0:
                yield "…", ""
                return


def shorten(text: str, most: int) -> str:
    """Return the beginning and the end of a text of more characters."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def escape(text: str) -> str:
    """Return a passage in its lines, with invisible and direction-changing characters escaped."""
    lines = f"{text}|".replace("\t", " ").splitlines()  # The mark keeps a line end at the end.
    return "\n".join(map(printable, lines))[:-1]
