"""Which document is meant by a word on the command line: one of the store, a file, or standard input."""

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lshdup.console import shown
from lshdup.errors import InputError

if TYPE_CHECKING:
    from lshdup.collection import Collection


@dataclass(frozen=True)
class Asked:
    """A document that was asked for.

    index : its number in the store, or -1. raw : its bytes, or None where they are in the file of that document.
    """

    name: bytes
    index: int = -1
    raw: bytes | None = None
    collection: "Collection | None" = None

    def text(self, encoding: str = "") -> bytes:
        """Its text as UTF-8. Raises InputError if it has none."""
        from lshdup.formats import row_text, to_text

        raw, is_text = self._bytes()
        text = row_text(raw) if is_text else to_text(raw, self.name, encoding)
        if text.reason is not None:
            message = f"{shown(self.name)} is no text: {text.reason}{f' ({text.detail})' if text.detail else ''}"
            raise InputError(message, "name a document that is text")
        return text.utf8

    def ids(self) -> bytes:
        """Its ids, blank-separated: a line of an id list without its name."""
        raw, _ = self._bytes()
        if self.index >= 0:
            return raw
        lines = [line for line in raw.splitlines() if line.strip()]
        _, *ids = lines[0].split() if len(lines) == 1 else [b""]
        # The largest id has twenty digits; Python makes no number of thousands.
        good = all(each.isdigit() and len(each.lstrip(b"0")) <= 20 and int(each.lstrip(b"0") or b"0") < 1 << 64 for each in ids)
        if len(lines) != 1 or not good:
            message = f"{shown(self.name)} is not one line of an id list: a name, then integers from 0 to 2^64 - 1"
            raise InputError(message, "give one document at a time, for instance: echo 'name 1 2 3' | lshdup query -")
        return b" ".join(ids)

    def _bytes(self) -> tuple[bytes, bool]:
        """Its bytes, and whether they are text already."""
        if self.raw is not None:
            return self.raw, False
        import numpy as np

        from lshdup.documents import Reason, read_batch

        assert self.collection is not None
        batch = read_batch(self.collection.documents, np.array([self.index]))
        if batch.left_out:
            _, reason, detail = batch.left_out[0]
            message = f"{shown(self.name)} cannot be read: {detail if reason == Reason.UNREADABLE else f'{reason}, {detail}'}"
            raise InputError(message, "run `lshdup index DOCS` again")
        start = batch.starts[0]
        return batch.text[start : start + batch.lengths[0]].tobytes(), batch.is_text


def ask(word: bytes, collection: "Collection | None") -> Asked:
    """The document that `word` means: standard input (-), a name of the store, a file, or a unique tail of a name of the store.

    A tail that begins behind a slash is preferred: ``a.txt`` means ``docs/a.txt`` even if there is a ``docs/ba.txt``.
    Raises InputError if it means nothing or more than one document.
    """
    import numpy as np

    from lshdup.documents import typed_name

    if word == b"-":
        return Asked(b"-", raw=sys.stdin.buffer.read())
    if collection is not None:
        documents = collection.documents
        home = documents.home
        spellings = [typed_name(word), word] if not home else []
        if documents.are_paths():
            spellings.append(typed_name(os.path.relpath(os.path.realpath(word), os.path.realpath(home or b"."))))
        for name in dict.fromkeys([*spellings, word]):
            index = documents.names.find(name)
            if index is not None:
                return Asked(documents.typed_names(np.array([index]))[0], index, collection=collection)
        if documents.rows_in(typed_name(word)) and not home:
            message = f"{shown(word)} was indexed row by row"
            raise InputError(message, f"name one of its rows, {'by its id' if documents.opened.fields.id else f'as {shown(word)}:1'}")
    if os.path.isfile(word):  # noqa: PTH113 (bytes path)
        try:
            with open(word, "rb") as file:  # noqa: PTH123 (bytes path)
                return Asked(typed_name(word), raw=file.read())
        except OSError as error:
            message = f"{shown(word)}: {error.strerror}"
            raise InputError(message) from None
    if collection is not None and word:
        names = collection.documents.names
        for tail in (b"/" + word, word):
            found = names.ending_with(tail)
            if len(found) == 1:
                return Asked(collection.documents.typed_names(np.array(found))[0], found[0], collection=collection)
            if found:
                some = ", ".join(shown(names[index]) for index in found[:3])
                message = f"{shown(word)} is the end of {len(found)} names: {some}{', …' if len(found) > 3 else ''}"
                raise InputError(message, "give more of the name")
    message = f"{shown(word)} is no document of the store and no file"
    raise InputError(message, "name a file, or a document that `lshdup index DOCS` has seen")
