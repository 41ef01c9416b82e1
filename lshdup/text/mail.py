"""Which documents are mails, and the text that a person reads in a mail.

That text has two parts (`base.forms`), the subject and the body: the plain text of it, else its
HTML as a page shows it. Mails in a mail are read too, as parts of their own. Of attachments and of
the fields that tell mails apart, a digest is taken, for sameness.

Python's email package takes multipart mails apart; a mail of one part is read without it, with the
same result, in a tenth of the time.
Mails are read in the worker process (`office_worker`): `email` and the HTML parser are imported
there only.
"""

import binascii
import codecs
import os
import re
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lshdup.base.forms import BLANK_LINE, MAIL_ENDINGS, PART, SEAL, Form
from lshdup.base.frozen import dataclass
from lshdup.base.mbox import (
    FIELDS,
    MAILDIR,
    bare_mail,
    find_mails,
    is_maildir,
    is_of_mail,
    starts_mailbox,
)
from lshdup.base.params import ShingleParams
from lshdup.base.system import blake2b
from lshdup.text import html
from lshdup.text.encodings import WESTERN, look_up_codec

if TYPE_CHECKING:
    from email.message import Message
    from email.policy import Policy

#: The charset that a Content-Type field names, perhaps as RFC 2231 has it; or any quoted string,
#: in which none is looked for.
_CHARSET = r"""(?i)(?<![-\w])charset\*?\s*=\s*["']?\s*(?:[-\w]*'[-\w]*')?([^"';\s]+)|"[^"]*\""""
#: Encodings without a byte above 127, or that mails use and browsers do not.
_SEVEN_BITS = {"utf-7", "hz", "iso2022_jp", "iso2022_jp_2", "iso2022_jp_3", "iso2022_kr"}
_ONLY_IN_MAIL = {*_SEVEN_BITS, "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32"}

#: Parts that are mails.
_MAILS = ("message/rfc822", "message/news", "message/global")

#: The fields that tell mails of the same text apart, and those of them that list addresses.
_OF_ENVELOPE, _OF_ADDRESSES = ("from", "to", "cc", "date", "subject"), ("from", "to", "cc")

#: A line of a body that was quoted, and the line that begins a signature.
_QUOTED = re.compile(r"(?m)^[ \t]*>[^\n]*\n?")
_SIGNATURE = re.compile(r"(?m)^-- \r?$")

#: A longer field is cut before the email package reads it: it takes time in the square of a field.
_LONGEST_FIELD = 1 << 13


#: mbox's lines before the fields, and fields by which a mail without a body is known.
_SEPARATORS = re.compile(rb"(?:>?From [^\n]*+\n)*+")
_MIME = re.compile(rb"(?im)^(?:mime-version|content-type|content-transfer-encoding):")
#: Bytes in which the header of a mail must end, or go on to the last byte, for it to be known.
HEADER_WINDOW = 16 << 20

#: The first line of a file of Apple Mail, which counts the bytes of the mail behind it.
_APPLE_COUNT = re.compile(rb"\s*([0-9]{1,10})[ \t]*\r?\n")


class MailError(ValueError):
    """A mail that cannot be read; the message says why."""


@dataclass(frozen=True)
class MailRules:
    """What the text of a mail has.

    headers : all header fields, not only the subject.
    quotes : lines that were quoted, and the signature.
    """

    headers: bool = False
    quotes: bool = True


DEFAULT_RULES = MailRules()


# --- recognise ----------------------------------------------------------------------------------


def is_mail(data: bytes, *, declared: bool = False) -> bool:
    """Return whether a document begins with the header of a mail: fields, two of them known.

    The fields end at an empty line or with the document; mbox's `From ` line may stand before.
    Which fields count, says `is_of_mail`.

    data : the whole document, or its first HEADER_WINDOW bytes.
    declared : whether the document is a mail by its source; then any fields before a body will do.
    """
    head = data[:HEADER_WINDOW]
    if not head.endswith(b"\n") and len(head) < HEADER_WINDOW:
        head += b"\n"
    start = _SEPARATORS.match(head).end()  # type: ignore[union-attr]
    fields = FIELDS.match(head, start)
    if fields is None:
        return False
    rest = head[fields.end() : fields.end() + 2]
    is_cut = len(head) == HEADER_WINDOW and b"\n" not in head[fields.end() :]
    if not (rest.startswith(b"\n") or rest == b"\r\n" or not rest or is_cut):
        return False
    alone = not is_cut and len(head) <= fields.end() + len(rest)
    if is_of_mail(fields[0], alone=alone and not declared):
        return True
    return declared and (not alone or _MIME.search(fields[0]) is not None)


def mail_form(data: bytes, path: bytes | None, params: ShingleParams) -> Form:
    """Return whether a document is read as a mail, or is a text that begins as one.

    A mail is what `--mail` makes one; the content of a file named .eml or .emlx, of a file of a
    Maildir, or of what begins as a mailbox does.

    data : as of `is_mail`.
    path : the file of the document, perhaps as `forms.declare_mail` returns it; None for a record.
    """
    data = bare_mail_file(data, path)
    is_known = is_mail(data)
    if is_known and params.mail:
        return Form.MAIL
    if path is not None and is_mail(data, declared=True) and _is_declared(data, path):
        return Form.MAIL
    return Form.HEADERS if is_known else Form.TEXT


def bare_mail_file(data: bytes, path: bytes | None) -> bytes:
    """Return the mail that is in a file: of Apple's .emlx what its first line counts; of a record
    its fields, with empty lines between.
    """
    if path is None:
        return data.replace(PART, BLANK_LINE)
    if path.lower().endswith(MAIL_ENDINGS[1]) and (count := _APPLE_COUNT.match(data)) is not None:
        return data[count.end() : count.end() + int(count[1])]
    return data


def _is_declared(data: bytes, path: bytes) -> bool:
    """Return whether a document is a mail by its name, as a mailbox, or as a file of a Maildir: in
    `cur` or `new` of a folder that has `cur`, `new` and `tmp`.
    """
    if path.lower().endswith(MAIL_ENDINGS) or starts_mailbox(data):
        return True
    folder, _ = os.path.split(os.path.abspath(path))  # noqa: PTH100 (bytes path)
    above, name = os.path.split(folder)
    return name in MAILDIR[:2] and is_maildir(above)


# --- read ---------------------------------------------------------------------------------------


def read_envelope(data: bytes) -> tuple[str, str, str]:
    """Return the subject of a mail, its date as the header has it, and its Message-ID without
    brackets; "" for a field that is missing.
    """
    fields = _Fields(bare_mail(data))
    _, charset = _media_type(_text_of(fields["content-type"]))
    subject, date, name = (
        " ".join(_words(_text_of(fields[each], charset)).split())
        for each in ("subject", "date", "message-id")
    )
    return subject, date, name.removeprefix("<").removesuffix(">")


@dataclass(frozen=True)
class _Content:
    """What is read of mails.

    parts : subject and body of each mail in turn, each as texts to be put together.
    sealed : digests of what counts for sameness only.
    """

    parts: list[list[str]] = field(default_factory=list)
    sealed: list[bytes] = field(default_factory=list)

    def begin_mail(self, title: str, envelope: str) -> None:
        """Add the subject of a mail, and a body that is empty so far; seal its envelope."""
        self.parts.extend(([title], []))
        self._seal(envelope.encode("utf-8", "replace"))

    def add_text(self, text: str) -> None:
        """Add a text to the body of the mail."""
        self.parts[-1].append(text)

    def attach(self, content: bytes, kind: str) -> None:
        """Add what is attached. Lines of text may end as they like."""
        if kind.startswith("text/"):
            content = content.replace(b"\r\n", b"\n")
        self._seal(content)

    def _seal(self, content: bytes) -> None:
        self.sealed.append(blake2b(content, digest_size=16).digest())

    def encode(self) -> bytes:
        """Return all as UTF-8 with borders, and one digest of what is sealed."""
        parts = ("\n".join(texts).encode("utf-8", "replace") for texts in self.parts)
        digest = blake2b(b"".join(self.sealed), digest_size=16).hexdigest()
        return b"%b%b%b" % (PART.join(parts), SEAL, digest.encode("ascii"))


def read_mail(data: bytes, rules: MailRules = DEFAULT_RULES) -> bytes:
    """Return the text of a mail as UTF-8, in parts; of a mailbox, that of all its mails.

    Raises MailError. Cost: linear; about 25 µs for a mail of one part, 250 µs for an HTML page.
    """
    starts = [0, *find_mails(data), len(data)] if starts_mailbox(data) else [0, len(data)]
    content = _Content()
    for start, end in pairwise(starts):
        _read(data[start:end], rules, content)
    return content.encode()


def _read(data: bytes, rules: MailRules, content: _Content) -> None:
    mail = bare_mail(data)
    fields = _Fields(mail)
    kind, charset = _media_type(_text_of(fields["content-type"]))
    transfer = _text_of(fields["content-transfer-encoding"]).strip().lower()
    body = mail[fields.end :]
    envelope = _envelope(lambda name: _text_of(fields[name], charset))
    content.begin_mail(_title(fields, charset, rules), envelope)
    if kind.startswith(("multipart/", "message/")) or "uu" in transfer:
        wanted = (b"Content-Type", b"Content-Transfer-Encoding")
        kept = b"".join(
            name + b":" + fields[name.decode().lower()][:_LONGEST_FIELD] + b"\n" for name in wanted
        )
        _read_parts(kept + b"\n" + body, rules, content)
    elif kind.startswith("text/"):
        content.add_text(_visible(_decode(_untransferred(body, transfer), charset), kind, rules))
    else:  # a picture or a program
        content.attach(_untransferred(body, transfer), kind)


class _Fields:
    """The header of a mail: its fields as bytes, by their names in small letters; b"" if missing.

    end : where the body begins.
    """

    def __init__(self, mail: bytes) -> None:
        fields = FIELDS.match(mail if mail.endswith(b"\n") else mail + b"\n")
        self.data = fields[0] if fields is not None else b""
        self._low = b"\n" + self.data.lower()
        ends = len(self.data)
        empty = 2 if mail[ends : ends + 2] == b"\r\n" else mail[ends : ends + 1] == b"\n"
        self.end = ends + empty

    def __getitem__(self, name: str) -> bytes:
        sign = b"\n" + name.encode("ascii") + b":"
        at = self._low.find(sign)
        if at < 0:
            return b""
        start = at + len(sign) - 1  # `_low` is one byte ahead.
        end = self.data.find(b"\n", start)
        while self.data[end + 1 : end + 2] in (b" ", b"\t"):
            end = self.data.find(b"\n", end + 1)
        return self.data[start:end]


def _title(fields: _Fields, charset: str, rules: MailRules) -> str:
    """Return the subject, or all header fields.

    charset : of the body, which bytes above 127 in a field usually have too.
    """
    if not rules.headers:
        return _words(_text_of(fields["subject"], charset)).strip()
    lines = re.split(r"\r?\n(?![ \t])", _text_of(fields.data, charset))
    return "\n".join(map(_words, lines))


def _envelope(field_of: Callable[[str], str]) -> str:
    """Return what tells a mail apart: fields, decoded, without quotation marks and repeated white
    space, their addresses in byte order.
    """
    lines = []
    for name in _OF_ENVELOPE:
        values = field_of(name).split("," if name in _OF_ADDRESSES else "\0")
        words = {" ".join(_words(value).replace('"', "").split()) for value in values}
        lines.append(", ".join(sorted(words - {""})))
    return "\n".join(lines)


def _text_of(field: bytes, charset: str = "") -> str:
    return _decode(field, "" if field.isascii() else charset)


def _words(value: str) -> str:
    """Return a header field with its encoded words decoded (RFC 2047)."""
    if "=?" not in value or len(value) > _LONGEST_FIELD:
        return value
    from email.errors import HeaderParseError
    from email.header import decode_header

    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):  # broken base64
        return value
    return "".join(
        part
        if isinstance(part, str)
        else part.decode("raw-unicode-escape", "replace")
        if charset is None
        else _decode(part, charset)
        for part, charset in parts
    )


def _media_type(value: str) -> tuple[str, str]:
    """Return the media type that a Content-Type field names, and the charset or ""."""
    kind = value.partition(";")[0].split()
    found = (match[1] for match in re.finditer(_CHARSET, value[:_LONGEST_FIELD]) if match[1])
    is_type = len(kind) > 0 and kind[0].count("/") == 1
    return kind[0].lower() if is_type else "text/plain", next(found, "")


def _untransferred(body: bytes, transfer: str) -> bytes:
    """Return the content of a part: base64 and quoted-printable decoded, as far as they go."""
    if transfer == "quoted-printable":
        return binascii.a2b_qp(body)
    if transfer == "base64":
        for padding in (b"==", b"A=="):  # One sign too many is the beginning of another byte.
            try:
                return binascii.a2b_base64(body + padding)
            except binascii.Error:
                continue
    return body


def _decode(data: bytes, charset: str) -> str:
    """Return bytes as text, by the charset if it fits, else as UTF-8, else as windows-1252."""
    codec = _look_up(charset) if charset else ""
    is_wide = codec.startswith(("utf-16", "utf-32")) and b"\0" in data
    if data.isascii() and codec not in _SEVEN_BITS and not is_wide:
        return data.decode("ascii")
    for each in dict.fromkeys((codec or "utf-8", "utf-8")):
        try:
            return data.decode(each)
        except ValueError:
            continue
    return data.decode(codec if codec not in ("", "utf-8") else WESTERN, "replace")


@lru_cache(256)
def _look_up(charset: str) -> str:
    """Return Python's codec for a charset; "" if there is none that is of text and fast."""
    label = charset.partition("*")[0]  # a language may follow
    if codec := look_up_codec(label):
        # Most texts that are labelled as ASCII and are not are UTF-8, which is tried if this fails.
        return "utf-8" if "ascii" in label.lower() else codec
    try:
        codec = codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    return codec if codec in _ONLY_IN_MAIL else ""


def _visible(text: str, kind: str, rules: MailRules) -> str:
    """Return what a person reads in a part."""
    if kind == "text/html":
        page = text.encode("utf-8", "replace")
        if obstacle := html.find_obstacle(page):
            message = f"a page of {obstacle}"
            raise MailError(message)
        return html.visible_text(page, quotes=rules.quotes).decode("utf-8")
    if rules.quotes:
        return text
    signature = _SIGNATURE.search(text)
    return _QUOTED.sub("", text[: signature.start()] if signature is not None else text)


# --- several parts ------------------------------------------------------------------------------


def _read_parts(data: bytes, rules: MailRules, content: _Content) -> None:
    """Read the parts of a mail, in their order. Raises MailError."""
    from email.parser import BytesParser

    try:
        mail = BytesParser(policy=_policy()).parsebytes(data)
    except RecursionError:
        message = "its parts are nested too deeply"
        raise MailError(message) from None
    stack: list[tuple[Message | None, bool]] = [(mail, False)]  # and whether it is attached
    while stack:
        part, attached = stack.pop()
        if part is None:  # the end of a mail in the mail, whose body goes on
            content.parts.append([])
            continue
        kind, charset = _kind_of(part)
        inner: Any = part.get_payload() if part.is_multipart() else []
        if kind in _MAILS and inner and not attached:
            envelope = _envelope(partial(_field_of, inner[0]))
            content.begin_mail(_title_of(inner[0], rules), envelope)
            stack += (None, False), (inner[0], False)
            continue
        disposition = _field_of(part, "content-disposition").strip().lower()
        attached |= disposition.startswith("attachment")
        if inner:
            if kind == "multipart/alternative":
                inner = [_plainest(inner)]
            attached |= not kind.startswith("multipart/")
            stack += ((each, attached) for each in reversed(inner))
        elif kind.startswith(("text/", "multipart/")) and not attached:
            # Of several kinds, without the boundary they name, the content is text.
            content.add_text(_visible(_decode(_content_of(part), charset), kind, rules))
        else:
            content.attach(_content_of(part), kind)


@lru_cache(1)
def _policy() -> "Policy":
    from email.policy import Compat32

    class Raw(Compat32):
        """Fields as they are, and not longer than they may be."""

        def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
            name, value = super().header_source_parse(sourcelines)
            return name, value[:_LONGEST_FIELD]

        def header_fetch_parse(self, name: str, value: str) -> str:
            return value

    return Raw()


def _field_of(part: "Message", name: str) -> str:
    return _text_of(str(part.get(name, "")).encode("ascii", "surrogateescape"))


def _title_of(mail: "Message", rules: MailRules) -> str:
    if not rules.headers:
        return _words(_field_of(mail, "subject"))
    names = dict.fromkeys(mail.keys())  # of a name that is repeated, the first field
    return "\n".join(f"{name}: {_words(_field_of(mail, name))}" for name in names)


def _kind_of(part: "Message") -> tuple[str, str]:
    field = _field_of(part, "content-type")
    return _media_type(field) if field else (part.get_default_type(), "")


def _content_of(part: "Message") -> bytes:
    transfer = _field_of(part, "content-transfer-encoding").strip().lower()
    if "uu" in transfer:
        content = part.get_payload(decode=True)
    else:  # The package gives up on base64 that is broken at its end.
        del part["content-transfer-encoding"]
        content = part.get_payload(decode=True)
        part["content-transfer-encoding"] = transfer
    return _untransferred(content, transfer) if isinstance(content, bytes) else b""


def _plainest(parts: list["Message"]) -> "Message":
    """Return the version of a text that is compared: plain if it has text, else the richest."""
    kinds = [_kind_of(part)[0] for part in parts]
    for part, kind in zip(parts, kinds, strict=True):
        if kind == "text/plain" and _content_of(part).strip():
            return part
    rich = [at for at, kind in enumerate(kinds) if kind.startswith(("text/html", "multipart/"))]
    return parts[rich[-1] if rich else -1]
