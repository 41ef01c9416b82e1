"""What tells mails apart for people: their subjects and dates, and their Message-IDs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.run import Run
from lshdup.base.wording import printable
from lshdup.sources.document_list import DocumentList
from lshdup.sources.text_batches import batches, read_batch
from lshdup.text.mail import bare_mail_file, read_envelope

#: Characters of a subject or a date in a table.
_MOST_SHOWN = 50

_NO_MAIL = (None, None, None)


class Mails:
    """The mails among documents, which are read again for what their headers say.

    are_mails : bool array of shape (n,), which documents are.
    tell : returns what a function says of documents, as `Comparison.tell`.
    """

    def __init__(
        self, run: Run, are_mails: NDArray[np.bool_], tell: Callable[..., list[Any]]
    ) -> None:
        self._run, self._are_mails, self._tell = run, are_mails, tell

    def __bool__(self) -> bool:
        return bool(self._are_mails.any())

    def columns(self, documents: NDArray[np.integer]) -> list[list[str | None]]:
        """Return the subject, the date, and the Message-ID of each of some documents, as three
        columns; None for what is no mail, or cannot be read any more.
        """
        are_mails = self._are_mails[documents]
        told = iter(self._tell(documents[are_mails], self._read))
        rows = [next(told) if each else _NO_MAIL for each in are_mails.tolist()]
        return [[row[at] for row in rows] for at in range(3)]

    def _read(self, documents: DocumentList, mails: NDArray[np.int64]) -> list[Any]:
        known = dict[int, tuple[str, str, str]]()
        for some in batches(self._run, documents, mails) if len(mails) else ():
            batch = read_batch(documents, some)
            for at, index in enumerate(batch.indices.tolist()):
                mail = bare_mail_file(batch.content(at), batch.path(at))
                known[index] = read_envelope(mail)
        return [known.get(each, _NO_MAIL) for each in mails.tolist()]

    def show(self, documents: NDArray[np.integer]) -> list[list[str]]:
        """Return the subjects and the dates of documents for a table: of each its beginning, in
        characters that do nothing to a terminal; "" for what is no mail.
        """
        columns = zip(("(no subject)", "(no date)"), self.columns(documents), strict=False)
        return [
            ["" if each is None else _shorten(printable(each)) or missing for each in column]
            for missing, column in columns
        ]


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
