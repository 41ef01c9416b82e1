"""The worker process that turns office documents and mails into text, one after the other.

Started, bounded and killed by `office`. Requests come on standard input and replies go to standard
output: lengths, then bytes, nothing else. The process ends when its input does. Imports the
standard library and, if it is installed, kreuzberg.
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

#: A request: length of the name of the type, length of the document; then both.
REQUEST = struct.Struct("<BQ")
#: A reply: status, length of the payload; then the payload, which is text as UTF-8 or a detail.
REPLY = struct.Struct("<cQ")
TEXT, PAGE, ENCRYPTED, DAMAGED, LARGE, MEMORY, NO_READER = b"T", b"P", b"E", b"D", b"L", b"M", b"N"
#: The reply before any request.
READY = REPLY.pack(TEXT, 0)

#: Media types that kreuzberg knows the file types by.
_OOXML, _ODF = (
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
)
MIME_TYPES = {
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

#: Seconds after the time limit of a document, when this process ends itself if nothing else has.
_GRACE = 2.0
_LONGEST_DETAIL = 200


def main(seconds: float, memory: int) -> None:
    """Serve requests until the input ends.

    seconds, memory : bounds for one document, in seconds and bytes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The program that started this process decides.
    _limit_resources(memory)
    # Libraries that print write to stderr, so the pipe carries replies only.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    # Imported here so that no document is charged for the time. A document says if it is missing.
    with contextlib.suppress(ImportError):
        import kreuzberg  # noqa: F401
    try:
        replies.write(READY)
        replies.flush()
        while len(head := requests.read(REQUEST.size)) == REQUEST.size:
            name_size, size = REQUEST.unpack(head)
            file_type = requests.read(name_size).decode("ascii")
            data = requests.read(size)
            if len(data) < size:
                return
            # The default action of this signal ends the process even while compiled code runs.
            # Nothing else would if the program has been killed.
            signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)
            _reply(replies, *_extract(data, file_type))
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (BrokenPipeError, MemoryError):
        os._exit(1)


def _limit_resources(memory: int) -> None:
    import resource

    for kind, limit in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 64 << 20),
    ):
        _, most = resource.getrlimit(kind)
        allowed = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (allowed, most))


def _reply(replies: BinaryIO, status: bytes, payload: bytes) -> None:
    replies.write(REPLY.pack(status, len(payload)))
    replies.write(payload)
    replies.flush()


def _extract(data: bytes, file_type: str) -> tuple[bytes, bytes]:
    """Return the status and the payload of the reply."""
    try:
        if file_type == MAIL:
            return _extract_mail(data)
        return TEXT, _extract_office(data, file_type).encode("utf-8", "replace")
    except ImportError as error:
        return NO_READER, _detail(error)
    except MemoryError:
        return MEMORY, b""
    except ValueError as error:
        return DAMAGED, _detail(error)
    except Exception as error:  # kreuzberg has its own errors for each format.
        detail = _detail(error)
        message = detail.lower()
        if b"security limit" in message:
            return LARGE, detail
        is_encrypted = b"password" in message or b"encrypted" in message
        return (ENCRYPTED if is_encrypted else DAMAGED), detail
    except BaseException as error:  # A panic of kreuzberg's Rust code.
        return DAMAGED, _detail(error)


def _detail(error: BaseException) -> bytes:
    line = str(error).split("\n")[0].removeprefix(f"{type(error).__name__}: ")
    return line[:_LONGEST_DETAIL].encode("utf-8", "replace")


def _extract_office(data: bytes, file_type: str) -> str:
    import kreuzberg

    prepared = office_cleanup.prepare(data, file_type)
    result: Any = kreuzberg.extract_bytes_sync(prepared, MIME_TYPES[file_type], _config())
    pages = [str(page["content"]) for page in result.pages or ()] if file_type == "pdf" else []
    return office_cleanup.clean(result.content, file_type, pages)


def _config() -> Any:
    """Return a configuration for plain text that does not depend on the machine."""
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


# --- mail --------------------------------------------------------------------------------------


def _extract_mail(data: bytes) -> tuple[bytes, bytes]:
    """Return the body of a mail, without headers and attachments: a page if a part is HTML."""
    parts = list(_find_bodies(email.message_from_bytes(data, policy=email.policy.compat32)))
    if any(is_page for _, is_page in parts):
        page = "".join(
            text if is_page else f"<pre>{html.escape(text)}</pre>" for text, is_page in parts
        )
        return PAGE, page.encode("utf-8", "replace")
    return TEXT, "\n".join(text for text, _ in parts).encode("utf-8", "replace")


def _find_bodies(message: email.message.Message) -> list[tuple[str, bool]]:
    """Return the texts of a mail's parts in their order, each with whether it is HTML.

    Of alternative versions of a part, return the plainest that has text.
    """
    bodies: list[tuple[str, bool]] = []
    stack = [message]
    while stack:
        part = stack.pop()
        if part.get_content_disposition() == "attachment":
            continue
        content_type = part.get_content_type()
        payload = part.get_payload()
        if isinstance(payload, list):
            parts = [each for each in payload if isinstance(each, email.message.Message)]
            if content_type == "multipart/alternative":
                parts = [_plainest(parts)] if parts else []
            stack += reversed(parts)
        elif content_type in ("text/plain", "text/html"):
            bodies.append((_decode(part), content_type == "text/html"))
    return bodies


def _plainest(parts: list[email.message.Message]) -> email.message.Message:
    for part in parts:
        if part.get_content_type() == "text/plain" and _decode(part).strip():
            return part
    return parts[-1]


def _decode(part: email.message.Message) -> str:
    raw = part.get_payload(decode=True)
    data = raw if isinstance(raw, bytes) else b""
    for charset in (str(part.get_content_charset() or "utf-8"), "utf-8"):
        try:
            return data.decode(charset)
        except (LookupError, ValueError):
            continue
    return data.decode("cp1252", "replace")
