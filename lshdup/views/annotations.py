"""Pairs as annotations of files: workflow commands of GitHub, and SARIF 2.1.0.

GitHub: https://docs.github.com/actions/reference/workflow-commands-for-github-actions. SARIF:
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, of which
`partialFingerprints` is what tells an annotation of one run in the next.
"""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lshdup.base.frozen import dataclass
from lshdup.base.messages import count_of, decimal, printable
from lshdup.version import __version__

if TYPE_CHECKING:
    from lshdup.views.shared_passage import Lines

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
    lines : of the passage that both documents share; None if they are not known.
    """

    name: bytes
    path: bytes
    lines: "Lines | None"


@dataclass(frozen=True)
class Annotation:
    """A pair of documents.

    here : the document that is annotated, the newer one if that is known.
    other : the document that it resembles.
    numbers : the other columns of the listing, for JSON.
    likeness : these in words.
    passage, tokens : the longest passage that both share; "" and 0 if it is not known.
    prints : fingerprints of the texts of both, which do not depend on their names.
    """

    here: Place
    other: Place
    numbers: dict[str, Any]
    likeness: str
    passage: str
    tokens: int
    prints: str

    def describe(self, other: str) -> str:
        """Return a sentence about the pair. other : the name of the other document."""
        text = f"{printable(self.here.name)} is a near-duplicate of {other}: {self.likeness}"
        if not self.tokens:
            return text
        where = ""
        if (lines := self.other.lines) is not None:
            where = f", there in {_line_numbers(lines)}"
        return (
            f"{text}; the longest passage of both has {count_of(self.tokens, 'token')}{where}: "
            f"“{_shorten(self.passage)}”"
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
        lines = each.here.lines
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
    name = printable(annotation.other.name)
    for mark in "\\[]":  # A link to the related location.
        name = name.replace(mark, f"\\{mark}")
    return {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "level": level,
        "message": {"text": annotation.describe(f"[{name}](1)")},
        "locations": [_location(annotation.here, annotation.passage)],
        "relatedLocations": [
            {"id": 1, **_location(annotation.other), "message": {"text": "the other document"}}
        ],
        "partialFingerprints": {"textsOfBoth/v1": annotation.prints},
        "properties": annotation.numbers,
    }


def _location(place: Place, passage: str = "") -> dict[str, Any]:
    """Return a location. A file whose lines are not known is shown at its first one."""
    region: dict[str, Any] = {"startLine": 1}
    lines = place.lines
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


def _line_numbers(lines: "Lines") -> str:
    one = lines.start == lines.end
    return f"line {lines.start}" if one else f"lines {lines.start} to {lines.end}"


def _shorten(text: str) -> str:
    """Return the beginning of a passage in one line."""
    line = " ".join(text.split())
    if len(line) > _QUOTED:
        line = f"{line[:_QUOTED].rpartition(' ')[0] or line[:_QUOTED]} …"
    return printable(line)
