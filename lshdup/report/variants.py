"""Variants: what the documents of a group have instead of passages of the document that is kept."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lshdup.params import ShingleParams
from lshdup.report.comparison import extract_passage, find_text_changes
from lshdup.report.token_diff import ALIKE, count_common
from lshdup.shingling.inspection import LocatedText

#: Start and end of a passage of the kept document, and of what a member has instead, in tokens.
_Edit = tuple[int, int, int, int]


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


def find_variants(
    kept: LocatedText, members: Iterable[LocatedText], params: ShingleParams
) -> list[Variant]:
    """Return each variant once, in the order of the kept document, the most frequent first.

    Two members have the same variant if the tokens of the passage and of the text are equal: case
    and punctuation count only as far as the tokens do. A moved passage is removed in one place and
    added in another.

    members : texts of the other documents, read one at a time.
    Cost: a comparison a member.
    """
    texts: dict[tuple[int, int, bytes], str] = {}
    having: dict[tuple[int, int, bytes], list[int]] = {}
    for position, member in enumerate(members):
        for start, end, b_start, b_end in _list_edits(kept, member, params):
            key = start, end, member.tokens[b_start:b_end].tobytes()
            if key not in texts:
                texts[key] = extract_passage(member, b_start, b_end)
            having.setdefault(key, []).append(position)
    variants = [Variant(*key[:2], text, tuple(having[key])) for key, text in texts.items()]
    return sorted(variants, key=lambda each: (each.start, each.end, -len(each.members), each.text))


def _list_edits(a: LocatedText, b: LocatedText, params: ShingleParams) -> Iterator[_Edit]:
    """Yield the passages of a that b has otherwise, each as far to the right as it can stand.

    Where a repeated word is added or removed there are several places to say so: one is chosen, so
    that equal edits of two documents look equal.
    """
    at_a = at_b = 0
    alike = [change for change in find_text_changes(a, b, params) if change.kind == ALIKE]
    for _, a_start, a_end, b_start, b_end in alike:
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
