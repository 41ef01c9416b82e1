"""Variants: what the documents of a group have instead of passages of the document that is kept."""

from collections.abc import Iterable, Iterator

from lshdup.base.frozen import dataclass
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import LocatedText
from lshdup.views.changes import ALIKE, Change, count_common
from lshdup.views.comparison import extract_passage, find_text_changes

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


class VariantCollector:
    """The variants of one kept document, collected member by member."""

    def __init__(self, kept: LocatedText) -> None:
        self._kept = kept
        self._texts: dict[tuple[int, int, bytes], str] = {}
        self._members: dict[tuple[int, int, bytes], list[int]] = {}

    def add(self, position: int, member: LocatedText, changes: list[Change]) -> None:
        """Add a member by its changes against the kept document."""
        for start, end, b_start, b_end in _list_edits(self._kept, member, changes):
            key = start, end, member.tokens[b_start:b_end].tobytes()
            if key not in self._texts:
                self._texts[key] = extract_passage(member, b_start, b_end)
            self._members.setdefault(key, []).append(position)

    def variants(self) -> list[Variant]:
        """Return the variants in the order of the kept document, the most frequent first."""
        found = (
            Variant(*key[:2], text, tuple(self._members[key])) for key, text in self._texts.items()
        )
        return sorted(found, key=lambda each: (each.start, each.end, -len(each.members), each.text))


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
    collector = VariantCollector(kept)
    for position, member in enumerate(members):
        collector.add(position, member, find_text_changes(kept, member, params))
    return collector.variants()


def _list_edits(a: LocatedText, b: LocatedText, changes: list[Change]) -> Iterator[_Edit]:
    """Yield the passages of a that b has otherwise, each as far to the right as it can stand.

    Where a repeated word is added or removed there are several places to say so: one is chosen, so
    that equal edits of two documents look equal.
    """
    at_a = at_b = 0
    for kind, a_start, a_end, b_start, b_end in changes:
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
