"""Which documents are read as mail: as their names, the folders they are in, and their first lines
say.
"""

import os
import re

from lshdup.base.forms import MAIL_ENDINGS, Form
from lshdup.base.mailbox import FIELDS, is_of_mail, starts_mailbox
from lshdup.base.parts import BLANK_LINE, PART
from lshdup.params import ShingleParams

_ENVELOPE = re.compile(rb"(?:>?From [^\n]*+\n)*+")
_MIME = re.compile(rb"(?im)^(?:mime-version|content-type|content-transfer-encoding):")
#: Bytes in which the header of a mail must end, or go on to the last byte, for it to be known.
HEADER_WINDOW = 16 << 20

#: The folders of a Maildir: two of mails, and one of mails that are being written.
_OF_MAILDIR = (b"cur", b"new", b"tmp")

#: The first line of a file of Apple Mail, which counts the bytes of the mail behind it.
_APPLE_COUNT = re.compile(rb"\s*([0-9]{1,10})[ \t]*\r?\n")


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
    start = _ENVELOPE.match(head).end()  # type: ignore[union-attr]
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
    folders = (above + b"/" + each for each in _OF_MAILDIR)
    return name in _OF_MAILDIR[:2] and all(map(os.path.isdir, folders))
