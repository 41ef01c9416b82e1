"""A process that turns office documents and mails into text, one after the other, for extraction.py, which starts it and may kill it.

It reads requests from standard input and writes replies to standard output: lengths, then bytes, nothing else. It ends when its input
does. Imports the standard library and kreuzberg, if it is there.
"""

import contextlib
import email
import email.message
import email.policy
import html
import os
import signal
import struct
import sys
from typing import Any, BinaryIO

from lshdup.text import office_cleanup

#: Length of the kind's name, length of the document; then both.
REQUEST = struct.Struct("<BQ")
#: What became of it, length of what follows: text as UTF-8, or a detail.
REPLY = struct.Struct("<cQ")
TEXT, PAGE, ENCRYPTED, DAMAGED, LARGE, MEMORY, NO_READER = b"T", b"P", b"E", b"D", b"L", b"M", b"N"
#: The reply to nothing: ready.
READY = REPLY.pack(TEXT, 0)

#: What documents are called, for kreuzberg.
_OOXML, _ODF = (
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
)
TYPES = {
    "pdf": "application/pdf",
    "docx": _OOXML + "wordprocessingml.document",
    "pptx": _OOXML + "presentationml.presentation",
    "xlsx": _OOXML + "spreadsheetml.sheet",
    "odt": _ODF + "text",
    "ods": _ODF + "spreadsheet",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "msg": "application/vnd.ms-outlook",
}
MAIL = "eml"

#: Seconds after the time of a document is over, at which this process ends itself if nobody has ended it.
_GRACE = 2.0
_LONGEST_DETAIL = 200


def main(seconds: float, memory: int) -> None:
    """Serve until the input ends. seconds, memory : bounds for one document, in seconds and bytes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program that started this one decides
    _bound(memory)
    # Nobody but this module writes to the pipe, whatever a library prints.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    with contextlib.suppress(ImportError):  # said when a document needs it
        import kreuzberg  # noqa: F401 (the time it takes is no document's)
    try:
        replies.write(READY)
        replies.flush()
        while len(head := requests.read(REQUEST.size)) == REQUEST.size:
            name_size, size = REQUEST.unpack(head)
            kind = requests.read(name_size).decode("ascii")
            data = requests.read(size)
            if len(data) < size:
                return
            # The default action of this signal ends the process even where no Python runs; should the program be gone, nothing else would.
            signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)
            _answer(replies, *_outcome(data, kind))
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (BrokenPipeError, MemoryError):
        os._exit(1)


def _bound(memory: int) -> None:
    import resource

    for what, limit in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 64 << 20),
    ):
        _, most = resource.getrlimit(what)
        allowed = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(what, (allowed, most))


def _answer(replies: BinaryIO, status: bytes, payload: bytes) -> None:
    replies.write(REPLY.pack(status, len(payload)))
    replies.write(payload)
    replies.flush()


def _outcome(data: bytes, kind: str) -> tuple[bytes, bytes]:
    try:
        if kind == MAIL:
            return _mail(data)
        return TEXT, _office(data, kind).encode("utf-8", "replace")
    except ImportError as error:
        return NO_READER, _detail(error)
    except MemoryError:
        return MEMORY, b""
    except ValueError as error:
        return DAMAGED, _detail(error)
    except Exception as error:  # kreuzberg has errors of its own for each format
        detail = _detail(error)
        said = detail.lower()
        if b"security limit" in said:
            return LARGE, detail
        return (ENCRYPTED if b"password" in said or b"encrypted" in said else DAMAGED), detail
    except BaseException as error:  # a panic
        return DAMAGED, _detail(error)


def _detail(error: BaseException) -> bytes:
    lines = str(error).split("\n")
    return (
        lines[0]
        .removeprefix(f"{type(error).__name__}: ")[:_LONGEST_DETAIL]
        .encode("utf-8", "replace")
    )


def _office(data: bytes, kind: str) -> str:
    import kreuzberg

    result: Any = kreuzberg.extract_bytes_sync(
        office_cleanup.before(data, kind), TYPES[kind], _config()
    )
    pages = [str(page["content"]) for page in result.pages or ()] if kind == "pdf" else []
    return office_cleanup.after(result.content, kind, pages)


def _config() -> Any:
    """Plain text, and nothing that costs time or depends on the machine."""
    import kreuzberg

    return kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        disable_ocr=True,
        output_format="plain",
        result_format="unified",
        pages=kreuzberg.PageConfig(extract_pages=True, insert_page_markers=False),
        pdf_options=kreuzberg.PdfConfig(
            extract_images=False, extract_metadata=False, extract_annotations=False
        ),
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
    )


# --- mail -------------------------------------------------------------------------------------------------------------------


def _mail(data: bytes) -> tuple[bytes, bytes]:
    """The body of a mail: its text parts or, where there is none for a part, its HTML. No headers, no attachments."""
    parts = list(_bodies(email.message_from_bytes(data, policy=email.policy.compat32)))
    if any(is_page for _, is_page in parts):
        page = "".join(
            text if is_page else f"<pre>{html.escape(text)}</pre>" for text, is_page in parts
        )
        return PAGE, page.encode("utf-8", "replace")
    return TEXT, "\n".join(text for text, _ in parts).encode("utf-8", "replace")


def _bodies(message: email.message.Message) -> list[tuple[str, bool]]:
    """The text of a mail's parts in their order, and whether it is HTML; of several versions of one thing the plainest that has text."""
    found: list[tuple[str, bool]] = []
    inside = [message]
    while inside:
        part = inside.pop()
        if part.get_content_disposition() == "attachment":
            continue
        kind = part.get_content_type()
        payload = part.get_payload()
        if isinstance(payload, list):
            parts = [each for each in payload if isinstance(each, email.message.Message)]
            if kind == "multipart/alternative":
                parts = [_plainest(parts)] if parts else []
            inside += reversed(parts)
        elif kind in ("text/plain", "text/html"):
            found.append((_decoded(part), kind == "text/html"))
    return found


def _plainest(parts: list[email.message.Message]) -> email.message.Message:
    for part in parts:
        if part.get_content_type() == "text/plain" and _decoded(part).strip():
            return part
    return parts[-1]


def _decoded(part: email.message.Message) -> str:
    raw = part.get_payload(decode=True)
    data = raw if isinstance(raw, bytes) else b""
    for charset in (str(part.get_content_charset() or "utf-8"), "utf-8"):
        try:
            return data.decode(charset)
        except (LookupError, ValueError):
            continue
    return data.decode("cp1252", "replace")
