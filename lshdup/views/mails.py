"""What tells mails apart for people: their subjects and dates, and their Message-IDs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import Form
from lshdup.base.ragged import distinct
from lshdup.base.run import Run
from lshdup.base.wording import printable
from lshdup.sources.document_list import DocumentList, split_by_list
from lshdup.sources.text_batches import batches, read_batch
from lshdup.text.mail import bare_mail_file, read_envelope

#: Characters of a subject or a date in a table.
_MOST_SHOWN = 50


class Mails:
    """The mails among documents, which are read again for what their headers say.

    lists : the documents, numbered from the first list to the last.
    forms : uint8 arrays, the `Form` of each document of each list.
    """

    def __init__(
        self, run: Run, lists: Sequence[DocumentList], forms: Sequence[NDArray[np.uint8]]
    ) -> None:
        self._run, self._lists = run, lists
        self._are_mails = np.concatenate([np.asarray(each) == Form.MAIL for each in forms])

    def __bool__(self) -> bool:
        return bool(self._are_mails.any())

    def columns(self, documents: NDArray[np.integer]) -> list[list[str | None]]:
        """Return the subject, the date, and the Message-ID of each of some documents, as three
        columns; None for what is no mail, or cannot be read any more.
        """
        known = dict[int, tuple[str, str, str]]()
        wanted = distinct(documents[self._are_mails[documents]])[0].astype(np.int64)
        for each, first, mine in split_by_list(self._lists, wanted):
            for some in batches(self._run, each, mine) if len(mine) else ():
                batch = read_batch(each, some)
                for at, index in enumerate(batch.indices.tolist()):
                    mail = bare_mail_file(batch.content(at), batch.path(at))
                    known[first + index] = read_envelope(mail)
        rows = [known.get(each, (None,) * 3) for each in documents.tolist()]
        return [[row[at] for row in rows] for at in range(3)]

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
