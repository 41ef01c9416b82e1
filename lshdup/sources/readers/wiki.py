"""MediaWiki dumps: the pages, and the text of the last revision that each has.

Expat finds the pages without building a tree: a dump of any size costs one pass and little memory.
A page is then read and parsed alone. Declarations of entities are refused.
"""

from collections.abc import Callable
from xml.parsers import expat

from lshdup.base.compression import CHUNK, PackedError, can_unpack, chunks
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.sources.readers.members import LONGEST_NAME, Members
from lshdup.sources.records import RecordError, RecordFields, RecordList

#: A dump says in its first bytes what it is.
_ROOT, _HEAD = b"<mediawiki", 4096


def is_dump(path: bytes) -> bool:
    """Return whether an XML file, perhaps packed, is a dump; False if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
            head = file.read(_HEAD)
            file.seek(0)
            return can_unpack(head) and _ROOT in next(chunks(file), b"")[:_HEAD]
    except (OSError, PackedError):
        return False


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList:
    """Return the pages of an open dump. Raises RecordError if it has none because of damage.

    Parameters
    ----------
    file : descriptor of the dump, unpacked.
    fields : not used; every page is taken.
    longest : pages of more bytes, all revisions and markup counted, are skipped.

    """
    del fields
    members = Members(longest)
    title: list[str] = []
    start = number = letters = 0

    def begin(name: str, _: dict[str, str]) -> None:
        nonlocal start, number, letters
        if name == "page":
            start, number = parser.CurrentByteIndex, number + 1
            title.clear()
            letters = 0
        elif name == "title":
            parser.CharacterDataHandler = collect

    def collect(text: str) -> None:
        nonlocal letters
        if letters <= LONGEST_NAME:  # one that is longer is no name, and may fill the memory
            title.append(text)
            letters += len(text)

    def end(name: str) -> None:
        if name == "title":
            parser.CharacterDataHandler = None
        elif name == "page":
            last = parser.CurrentByteIndex
            stop = last + pread(file, 64, last).find(b">") + 1
            members.add(number, start, stop - start, "".join(title).encode())

    parser = _parser(begin, end)
    at = 0
    try:
        while chunk := pread(file, CHUNK, at):
            parser.Parse(chunk)
            at += len(chunk)
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        members.damaged(number + 1, f"its XML is damaged: {error}")
    return members.listed()


def read_member(page: bytes, longest: int) -> bytes:
    """Return the text of the last revision of a page. Raises RecordError.

    longest : not used; a text is no longer than its page.
    """
    del longest
    parts: list[str] = []

    def begin(name: str, _: dict[str, str]) -> None:
        if name == "text":
            parts.clear()
            parser.CharacterDataHandler = parts.append

    def end(name: str) -> None:
        if name == "text":
            parser.CharacterDataHandler = None

    parser = _parser(begin, end)
    try:
        parser.Parse(page, True)
    except (expat.ExpatError, ValueError) as error:
        raise RecordError(Reason.DAMAGED, f"its XML is damaged: {error}") from None
    return "".join(parts).encode()


def _parser(
    begin: Callable[[str, dict[str, str]], None], end: Callable[[str], None]
) -> expat.XMLParserType:
    """Return a parser of UTF-8 that raises ValueError for a declaration of an entity."""

    def refuse(*_: object) -> None:
        message = "entities are declared, which no dump does"
        raise ValueError(message)

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.EntityDeclHandler = refuse
    return parser
