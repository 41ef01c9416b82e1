"""The passages of a page: where two documents differ, and the variants of a group."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from lshdup.base.messages import printable
from lshdup.base.parallel import Progress, no_progress
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import LocatedText
from lshdup.views.changes import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED, Change, split_hunks
from lshdup.views.comparison import extract_passage, find_text_changes
from lshdup.views.variants import Variant, VariantCollector

#: A stretch of two texts: a sign and the text. The signs are "=" for both texts, "-" and "+" for
#: the first and the second, "<" and ">" for moved text of the first and the second. Other signs are
#: "f" with the number of folded tokens, and "…" where too long texts end.
Segment = tuple[str, str | int]

#: A variant of a group: text before it, the passage of the kept document, text behind it, what
#: members have instead, and these members.
Alternative = tuple[str, str, str, str, list[int]]

_SEGMENTS = {ALIKE: "=", REMOVED: "-", ADDED: "+", MOVED_AWAY: "<", MOVED_HERE: ">"}

#: The most characters of the passages of one pair, and of one stretch.
_LONGEST, _LONGEST_STRETCH = 12_000, 4_000

#: The most variants of a group, and characters of one.
_VARIANTS, _LONGEST_VARIANT = 200, 400

#: Tokens around a difference, and around a variant.
_CONTEXT = {"word": (12, 6), "symbols": (20, 10), "char": (60, 30), "terms": (12, 6)}


@dataclass
class Passages:
    """Differences by pair of documents; in a group the kept one is first.

    segments : the stretches of both texts.
    variants : by kept document: (before, passage, after, text, members), from the beginning to the
        end of the kept document, and the most frequent of a passage first.
    without : why a pair has no passages; under None for all other pairs.
    size : bytes of all texts, about.
    """

    segments: dict[tuple[int, int], list[Segment]] = field(default_factory=dict)
    variants: dict[int, list[Alternative]] = field(default_factory=dict)
    without: dict[tuple[int, int] | None, str] = field(default_factory=dict)
    size: int = 0


def find_passages(
    groups: Iterable[tuple[int, list[int]]],
    pairs: Iterable[tuple[int, int]],
    read: Callable[[int], LocatedText | str],
    params: ShingleParams,
    most: int,
    room: int,
    progress: Progress = no_progress,
) -> Passages:
    """Compare the members of groups with the kept document, and then other pairs.

    groups : kept documents and members.
    read : returns the text of a document, or why it cannot be compared.
    most : the most pairs that are compared.
    room : the most bytes of all texts, about.
    """
    found = Passages(without={None: f"more than --differences {most}"})
    context, around = _CONTEXT[params.tokens]
    seen: set[frozenset[int]] = set()
    is_full = False
    for kept, members in chain(groups, ((a, [b]) for a, b in pairs)):
        a, compared = read(kept), 0
        collector = VariantCollector(a) if not isinstance(a, str) else None
        for member in members:
            pair = frozenset((kept, member))
            if pair in seen:
                continue
            if is_full := is_full or len(seen) >= most:
                break
            seen.add(pair)
            b = read(member)
            if isinstance(a, str) or isinstance(b, str) or collector is None:
                found.without[kept, member] = min(each for each in (a, b) if isinstance(each, str))
                continue
            changes = find_text_changes(a, b, params)
            segments = list(_find_segments(a, b, changes, context))
            found.size += _size_of(text for _, text in segments)
            if is_full := found.size > room:
                found.without[None] = "the page would be too large; --differences N takes N"
                break
            found.segments[kept, member] = segments
            collector.add(member, b, changes)
            compared += 1
            progress("passages", len(found.segments), most)
        if compared > 1 and collector is not None and not isinstance(a, str):
            variants = collector.variants()
            found.variants[kept] = [_alternative(a, each, around) for each in variants[:_VARIANTS]]
            found.size += _size_of(chain.from_iterable(found.variants[kept]))
        if is_full:
            break
    return found


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


def _find_segments(
    a: LocatedText, b: LocatedText, changes: list[Change], context: int
) -> Iterator[Segment]:
    """Yield the stretches of two texts in the order of both.

    context : tokens that stay around a difference.
    """
    room = _LONGEST
    for hunk in split_hunks(changes, context):
        if isinstance(hunk, int):
            yield "f", hunk
            continue
        for kind, a_start, a_end, b_start, b_end in hunk:
            is_of_b = kind in (ADDED, MOVED_HERE)
            text = extract_passage(*((b, b_start, b_end) if is_of_b else (a, a_start, a_end)))
            text = shorten(text, _LONGEST_STRETCH)
            yield _SEGMENTS[kind], escape(text)
            room -= len(text)
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
