"""Which document is meant by a word on the command line: one of the store, a file, or standard input."""

import os
import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lshdup.console import shown
from lshdup.errors import InputError
from lshdup.params import ShingleParams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lshdup.collection import Collection
    from lshdup.formats import Text


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
        return self.read(self.bytes(), encoding).utf8

    def read(self, raw: bytes, encoding: str = "") -> "Text":
        """The same of its bytes, with what kind of bytes they were."""
        from lshdup.formats import to_text

        text = to_text(raw, self.name, encoding)
        if text.reason is not None:
            message = f"{shown(self.name)} is no text: {text.reason}{f' ({text.detail})' if text.detail else ''}"
            raise InputError(message, "name a document that is text")
        return text

    def ids(self) -> bytes:
        """Its ids, blank-separated: a line of an id list without its name."""
        raw = self.bytes()
        if self.index >= 0:
            return raw
        lines = [line for line in raw.splitlines() if line.strip()]
        _, *ids = lines[0].split() if len(lines) == 1 else [b""]
        if len(lines) != 1 or not all(each.isdigit() for each in ids):
            message = f"{shown(self.name)} is not one line of an id list: a name, then integers"
            raise InputError(message, "give one document at a time, for instance: echo 'name 1 2 3' | lshdup query -")
        return b" ".join(ids)

    def bytes(self) -> "bytes":
        """As they are in its file now. Raises InputError if they cannot be read."""
        if self.raw is not None:
            return self.raw
        import numpy as np

        from lshdup.documents import read_batch

        assert self.collection is not None
        batch = read_batch(self.collection.documents, np.array([self.index]))
        if batch.left_out:
            message = f"{shown(self.name)} cannot be read: {batch.left_out[0][2]}"
            raise InputError(message, "run `lshdup index DOCS` again")
        return batch.text[: batch.lengths[0]].tobytes()


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
        if documents.paths is None:
            spellings.append(typed_name(os.path.relpath(os.path.realpath(word), os.path.realpath(home or b"."))))
        for name in dict.fromkeys([*spellings, word]):
            index = documents.names.find(name)
            if index is not None:
                return Asked(documents.typed_names(np.array([index]))[0], index, collection=collection)
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


def shingle_params(collection: "Collection | None", given: "Mapping[str, Any]") -> ShingleParams:
    """How documents that are only looked at become shingles: as those of the store, but for what was typed."""
    known = {field.name for field in fields(ShingleParams)}
    typed = {name: value for name, value in given.items() if name in known}
    base = collection.shingle.to_json() if collection is not None and "tokens" not in typed else {}
    return ShingleParams(**(base | typed))


def shingle_rows(text: "bytes", params: ShingleParams) -> "Iterator[tuple[tuple[int, int], str, bytes]]":
    """A text's shingles in its order: what tells them apart, the number as it is written, and the tokens; repeats only with --bag."""
    from lshdup.shingles import Shingler

    tokens, shingles = Shingler(params).in_order(text)
    between = b"" if params.tokens == "char" else b" "
    decimal, width = params.tokens == "ids" or params.hash == "poly31", 16
    seen: dict[int, int] = {}
    for at, shingle in enumerate(shingles.tolist()):
        count = seen[shingle] = seen.get(shingle, 0) + 1
        if count == 1 or params.bag:
            yield (shingle, count), str(shingle) if decimal else f"{shingle:0{width}x}", between.join(tokens[at : at + params.k])
