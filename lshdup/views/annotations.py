"""Pairs as annotations of files: workflow commands of GitHub, and SARIF 2.1.0.

GitHub: https://docs.github.com/actions/reference/workflow-commands-for-github-actions. SARIF:
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, of which
`partialFingerprints` is what tells an annotation of one run in the next.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.base.params import ShingleParams
from lshdup.base.version import __version__
from lshdup.base.wording import count_of, decimal, printable
from lshdup.shingling.inspection import LocatedText, locate_tokens
from lshdup.shingling.shingler import decode_batch
from lshdup.sources.document_list import DocumentList, find_in_lists
from lshdup.sources.text_batches import read_batch
from lshdup.text.decoding import find_offsets
from lshdup.views.changes import ALIKE
from lshdup.views.comparison import align_tokens

#: Documents whose tokens are kept: one is often in several pairs in a row.
_KEPT = 16


@dataclass(frozen=True)
class Lines:
    """A region of a text file. Lines and columns are numbers from 1; columns count characters.

    end_column is behind the last character.
    """

    start: int
    start_column: int
    end: int
    end_column: int


@dataclass(frozen=True)
class SharedPassage:
    """The longest run of tokens that two documents have in common.

    tokens : its length.
    text : as it stands in the first document.
    a, b : where it stands; None where a text has no lines of its own: in pages, mails, office
        documents, packed files, and parts of files but for those that --split cuts.
    """

    tokens: int
    text: str
    a: Lines | None
    b: Lines | None


#: The passage of two documents of which none is known.
NO_PASSAGE = SharedPassage(0, "", None, None)


class PassageFinder:
    """The longest passages of pairs of documents, which are read when a pair needs them. Ids and
    bytes have none.

    lists : the documents, numbered from the first list to the last.
    params : how documents are cut into tokens.
    """

    def __init__(self, lists: Sequence[DocumentList], params: ShingleParams) -> None:
        self._lists, self._params = lists, params
        self._read_once = lru_cache(_KEPT)(self._read)

    def find(self, a: int, b: int) -> SharedPassage:
        """Find the longest passage of two documents; NO_PASSAGE if one cannot be read any more."""
        left, right = self._read_once(a), self._read_once(b)
        if left is None or right is None:
            return NO_PASSAGE
        (of_a, before_a), (of_b, before_b) = left, right
        changes = align_tokens(of_a, of_b, self._params).changes
        alike = [change for change in changes if change.kind == ALIKE]
        if not alike:
            return NO_PASSAGE
        longest = max(alike, key=lambda change: change.tokens)
        start, end = _span(of_a, longest.a_start, longest.a_end)
        return SharedPassage(
            longest.tokens,
            of_a.text[start:end].decode("utf-8", "replace"),
            _lines(of_a.text, start, end, before_a),
            _lines(of_b.text, *_span(of_b, longest.b_start, longest.b_end), before_b),
        )

    def _read(self, document: int) -> tuple[LocatedText, int | None] | None:
        """Return the tokens of a document, and the lines before it in its file; None if its text
        has no lines.
        """
        documents, number = find_in_lists(self._lists, document)
        if self._params.tokens == "ids" or self._params.of_bytes:
            return None
        batch = read_batch(documents, np.array([number]))
        every = list(range(len(batch.indices)))
        for at, text in decode_batch(batch, every, self._params, documents.formats):
            located = locate_tokens(text.utf8, self._params)
            is_plain = find_offsets(batch.content(at), text, np.zeros(1, np.int64)) is not None
            return located, documents.count_lines_before(number) if is_plain else None
        return None


def _span(located: LocatedText, first: int, end: int) -> tuple[int, int]:
    """Return the first byte of a run of tokens, and the byte behind the last one."""
    return int(located.starts[first]), int(located.ends[end - 1])


def _lines(text: bytes, start: int, end: int, before: int | None) -> Lines | None:
    """Return where bytes from start to end - 1 of a text are. before : lines before the text."""
    if before is None:
        return None
    (first, column), (last, end_column) = _place(text, start), _place(text, end)
    return Lines(before + first, column, before + last, end_column)


def _place(text: bytes, at: int) -> tuple[int, int]:
    """Return the line and the column of a byte."""
    begins = text.rfind(b"\n", 0, at) + 1
    return text.count(b"\n", 0, at) + 1, len(text[begins:at].decode("utf-8", "replace")) + 1


#: Characters of a passage in a message, and of one that is in SARIF whole.
_QUOTED, _WHOLE = 200, 4000

_RULE = "near-duplicate"

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


@dataclass(frozen=True)
class Place:
    """A document of an annotation.

    name : as in listings.
    path : the file that it is in, from the top folder of its repository if it is in one.
    """

    name: bytes
    path: bytes


@dataclass(frozen=True)
class Annotation:
    """A pair of documents.

    here : the document that is annotated, the newer one if that is known.
    other : the document that it resembles.
    numbers : the other columns of the listing.
    longest : the longest passage that both share: a is `here`, b is `other`.
    prints : fingerprints of the texts of both, which do not depend on their names.
    """

    here: Place
    other: Place
    numbers: dict[str, Any]
    longest: SharedPassage
    prints: str

    def describe(self, other: str) -> str:
        """Return a sentence about the pair. other : the name of the other document."""
        likeness, longest = describe_likeness(self.numbers), self.longest
        text = f"{printable(self.here.name)} is a near-duplicate of {other}: {likeness}"
        if not longest.tokens:
            return text
        where = "" if longest.b is None else f", there in {_line_numbers(longest.b)}"
        return (
            f"{text}; the longest passage of both has {count_of(longest.tokens, 'token')}{where}: "
            f"“{_shorten(longest.text)}”"
        )


def describe_likeness(numbers: dict[str, Any]) -> str:
    """Return what the columns of a pair say about its likeness, in words.

    >>> describe_likeness({"similarity": 0.9321, "same": None})
    'similarity 0.9321'
    >>> describe_likeness({"containment": 1.0, "similarity": 0.5, "same": "text"})
    'containment 1.0000, similarity 0.5000, same text'
    """
    words = [
        f"{name} {decimal(numbers[name])}"
        for name in ("containment", "similarity")
        if name in numbers
    ]
    return ", ".join([*words, f"same {numbers['same']}"] if numbers.get("same") else words)


def github_lines(annotations: Iterable[Annotation], level: str) -> Iterator[bytes]:
    """Yield the line that annotates a file, for each pair.

    level : error or warning.
    """
    for each in annotations:
        lines = each.longest.a
        properties = {"file": printable(each.here.path)}
        if lines is not None:
            properties |= {"line": str(lines.start), "endLine": str(lines.end)}
        properties["title"] = f"Near-duplicate of {printable(each.other.name)}"
        listed = ",".join(f"{name}={_escape(text, ':,')}" for name, text in properties.items())
        text = _escape(each.describe(printable(each.other.name)))
        yield f"::{level} {listed}::{text}\n".encode("utf-8", "backslashreplace")


def _escape(text: str, marks: str = "") -> str:
    """Return text for a workflow command: percent signs, ends of lines and `marks` are escaped."""
    for mark in "%\r\n" + marks:
        text = text.replace(mark, f"%{ord(mark):02X}")
    return text


def sarif_parts(annotations: Iterable[Annotation], level: str) -> Iterator[bytes]:
    """Yield a log of one run, one annotation after the other.

    level : error or warning.
    """
    rule = {
        "id": _RULE,
        "name": "NearDuplicate",
        "shortDescription": {"text": "Two documents are nearly the same."},
        "fullDescription": {
            "text": "Two documents share so many of their word sequences that one may be a copy, "
            "or an older version, of the other."
        },
        "help": {
            "text": "Run `lshdup show A B` to see where they differ. Remove one of them, or accept "
            "the pair with `lshdup pairs --baseline FILE --update-baseline`."
        },
        "defaultConfiguration": {"level": level},
    }
    driver = {"name": "lshdup", "version": __version__, "rules": [rule]}
    head = {"$schema": _SCHEMA, "version": "2.1.0"}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints"}
    yield json.dumps(head)[:-1].encode() + b', "runs": [' + json.dumps(run)[:-1].encode()
    between = b', "results": ['
    for each in annotations:
        yield between + b"\n" + json.dumps(_result(each, level)).encode()
        between = b","
    yield (b"" if between == b"," else between) + b"\n]}]}\n"


def _result(annotation: Annotation, level: str) -> dict[str, Any]:
    name, longest = printable(annotation.other.name), annotation.longest
    for mark in "\\[]":  # A link to the related location.
        name = name.replace(mark, f"\\{mark}")
    return {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "level": level,
        "message": {"text": annotation.describe(f"[{name}](1)")},
        "locations": [_location(annotation.here, longest.a, longest.text)],
        "relatedLocations": [
            {
                "id": 1,
                **_location(annotation.other, longest.b),
                "message": {"text": "the other document"},
            }
        ],
        "partialFingerprints": {"textsOfBoth/v1": annotation.prints},
        "properties": annotation.numbers,
    }


def _location(place: Place, lines: Lines | None, passage: str = "") -> dict[str, Any]:
    """Return a location. A file whose lines are not known is shown at its first one."""
    region: dict[str, Any] = {"startLine": 1}
    if lines is not None:
        region = {
            "startLine": lines.start,
            "startColumn": lines.start_column,
            "endLine": lines.end,
            "endColumn": lines.end_column,
        }
        if passage and len(passage) <= _WHOLE:
            region["snippet"] = {"text": passage}
    path = quote(place.path)
    uri = f"file://{path}" if path.startswith("/") else path
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}
    }
    if place.name != place.path:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(place.name)}]
    return location


def _line_numbers(lines: Lines) -> str:
    one = lines.start == lines.end
    return f"line {lines.start}" if one else f"lines {lines.start} to {lines.end}"


def _shorten(text: str) -> str:
    """Return the beginning of a passage in one line."""
    line = " ".join(text.split())
    if len(line) > _QUOTED:
        line = f"{line[:_QUOTED].rpartition(' ')[0] or line[:_QUOTED]} …"
    return printable(line)
