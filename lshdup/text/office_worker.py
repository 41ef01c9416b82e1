"""The worker process that turns office documents and mails into text, one after the other.

Started, bounded and killed by `office`. Requests come on standard input and replies go to standard
output: lengths, then bytes, nothing else. The process ends when its input does. Imports the
standard library and, if it is installed, kreuzberg.
"""

import contextlib
import os
import signal
import struct
import sys
from typing import Any, BinaryIO

from lshdup.text import office_cleanup
from lshdup.text.mail import MailRules, read_mail
from lshdup.text.office_fallback import PACKAGES, read_package

#: A request: length of the name of the type, number of documents; the length of each of them; then
#: the name and the documents.
REQUEST, LENGTH = struct.Struct("<BI"), struct.Struct("<Q")
#: A reply, of each document: status, length of the payload; then the payload, which is text as
#: UTF-8 or a detail.
REPLY = struct.Struct("<cQ")
TEXT, ENCRYPTED, DAMAGED, LARGE, MEMORY, NO_READER = b"T", b"E", b"D", b"L", b"M", b"N"
FAILED = b"F"
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
#: The type of a mail; two digits that tell the rules follow it.
MAIL = "mail"
#: Frames that reading a mail takes at most: each part in a part takes one.
_DEEPEST = 250

#: Seconds after the time limit of a document, when this process ends itself if nothing else has.
_GRACE = 2.0
_LONGEST_DETAIL = 200


def main(seconds: float, memory: int, of_mails: bool) -> None:
    """Serve requests until the input ends.

    seconds, memory : bounds for one document, in seconds and bytes.
    of_mails : whether the documents will be mails.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The program that started this process decides.
    _limit_resources(memory)
    # Libraries that print write to stderr, so the pipe carries replies only.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    # Imported here so that no document is charged for the time. A document says if it is missing.
    with contextlib.suppress(ImportError):
        if not of_mails:
            import kreuzberg  # noqa: F401
    try:
        replies.write(READY)
        replies.flush()
        while len(head := requests.read(REQUEST.size)) == REQUEST.size:
            name_size, count = REQUEST.unpack(head)
            sizes = [size for (size,) in LENGTH.iter_unpack(requests.read(count * LENGTH.size))]
            file_type = requests.read(name_size).decode("ascii")
            documents = [requests.read(size) for size in sizes]
            if sum(map(len, documents)) < sum(sizes):
                return
            for data in documents:
                # The default action of this signal ends the process even while compiled code
                # runs. Nothing else would if the program has been killed.
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
        if file_type.startswith(MAIL):
            sys.setrecursionlimit(_DEEPEST)
            headers, quotes = (digit == "1" for digit in file_type[-2:])
            return TEXT, read_mail(data, MailRules(headers, quotes))
        return TEXT, _extract_office(data, file_type).encode("utf-8", "replace")
    except ImportError as error:
        return NO_READER, _detail(error)
    except MemoryError:
        return MEMORY, b""
    except Exception as error:  # kreuzberg has its own errors for each format.
        detail = _detail(error)
        message = detail.lower()
        if b"security limit" in message:
            return LARGE, detail
        if b"password" in message or b"encrypted" in message:
            return ENCRYPTED, detail
        return _extract_otherwise(data, file_type, DAMAGED, detail)
    except BaseException as error:  # A panic of kreuzberg's Rust code.
        return _extract_otherwise(data, file_type, FAILED, _detail(error))


def _extract_otherwise(
    data: bytes, file_type: str, status: bytes, detail: bytes
) -> tuple[bytes, bytes]:
    """Return the reply for a document on which the reader has failed: its text all the same, that
    its package is damaged, or `status` and `detail`.

    A reader that fails on a package that is whole has failed itself: the document may be good.
    """
    if file_type not in PACKAGES:
        return status, detail
    try:
        text = read_package(data, file_type)
    except MemoryError:
        return MEMORY, b""
    except Exception as error:  # Whatever `zipfile` says of a damaged package.
        return DAMAGED, _detail(error) or detail
    return (TEXT, text) if text else (FAILED, detail)


def _detail(error: BaseException) -> bytes:
    line = str(error).split("\n")[0].removeprefix(f"{type(error).__name__}: ")
    kind, _, what = line.partition(": ")
    line = what if kind == what else line
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
