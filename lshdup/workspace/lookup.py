"""Which document is meant by a word on the command line: one of the store, a file, or standard input."""

import os
import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lshdup.errors import InputError
from lshdup.params import ShingleParams
from lshdup.utils.messages import did_you_mean, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lshdup.collection.collection import Collection
    from lshdup.shingling.shingle_filter import ShingleFilter
    from lshdup.text.decoding import Text


@dataclass(frozen=True)
class Asked:
    """A document that was asked for.

    index : its number in the store, or -1. raw : its bytes, or None where they are in the file of that document. note : what to say if it
    may be another than was meant.
    """

    name: bytes
    index: int = -1
    raw: bytes | None = None
    collection: "Collection | None" = None
    note: str = ""

    def text(self, encoding: str = "") -> bytes:
        """Its text as UTF-8. Raises InputError if it has none."""
        return self.read(*self.content(), encoding).utf8

    def read(self, raw: bytes, is_text: bool, encoding: str = "") -> "Text":
        """The same of its bytes, with what kind of bytes they were."""
        from lshdup.text.decoding import decode, decode_record

        text = decode_record(raw) if is_text else decode(raw, self.name, encoding)
        if text.reason is not None:
            message = f"{shown(self.name)} is no text: {text.reason}{f' ({text.detail})' if text.detail else ''}"
            raise InputError(message, "name a document that is text")
        return text

    def ids(self) -> bytes:
        """Its ids, blank-separated: a line of an id list without its name."""
        raw, _ = self.content()
        if self.index >= 0:
            return raw
        lines = [line for line in raw.splitlines() if line.strip()]
        _, *ids = lines[0].split() if len(lines) == 1 else [b""]
        # The largest id has twenty digits; Python makes no number of thousands.
        good = all(
            each.isdigit()
            and len(each.lstrip(b"0")) <= 20
            and int(each.lstrip(b"0") or b"0") < 1 << 64
            for each in ids
        )
        if len(lines) != 1 or not good:
            message = f"{shown(self.name)} is not one line of an id list: a name, then integers from 0 to 2^64 - 1"
            raise InputError(
                message,
                "give one document at a time, for instance: echo 'name 1 2 3' | lshdup query -",
            )
        return b" ".join(ids)

    def content(self) -> tuple[bytes, bool]:
        """Its bytes as they are now, and whether they are text already, as those of a row. Raises InputError if they cannot be read."""
        if self.raw is not None:
            return self.raw, False
        import numpy as np

        from lshdup.documents.reading import read_batch
        from lshdup.skipped import Reason

        assert self.collection is not None
        batch = read_batch(self.collection.documents, np.array([self.index]))
        if batch.skipped:
            _, reason, detail = batch.skipped[0]
            message = f"{shown(self.name)} cannot be read: {detail if reason == Reason.UNREADABLE else f'{reason}, {detail}'}"
            remedy = (
                "see that it may be read, or name another"
                if reason == Reason.UNREADABLE
                else "run `lshdup index DOCS` again"
            )
            raise InputError(message, remedy)
        start = batch.starts[0]
        return batch.text[start : start + batch.lengths[0]].tobytes(), batch.is_text


def ask(word: bytes, collection: "Collection | None") -> Asked:
    """The document that `word` means: standard input (-), a name of the store, a file, or a unique tail of a name of the store.

    A tail that begins behind a slash is preferred: ``a.txt`` means ``docs/a.txt`` even if there is a ``docs/ba.txt``; and so is a folder,
    which is no document. Raises InputError if it means nothing or more than one document. Cost: for a whole name of the store a few
    looks, for a file too if the store is not small; for a tail one pass over all names.
    """
    import numpy as np

    from lshdup.documents.document_list import typed_name

    if word == b"-":
        return Asked(b"-", raw=sys.stdin.buffer.read())
    if collection is not None:
        documents = collection.documents
        home = documents.home
        spellings = [typed_name(word), word] if not home else []
        if documents.are_paths():
            spellings.append(
                typed_name(os.path.relpath(os.path.realpath(word), os.path.realpath(home or b".")))
            )
        for name in dict.fromkeys([*spellings, word]):
            index = documents.names.find(name)
            if index is not None:
                return Asked(
                    documents.typed_names(np.array([index]))[0], index, collection=collection
                )
        if documents.has_records_of(typed_name(word)) and not home:
            message = f"{shown(word)} was indexed row by row"
            raise InputError(
                message,
                f"name one of its rows, {'by its id' if documents.record_files.fields.id else f'as {shown(word)}:1'}",
            )
    if os.path.isfile(word):  # noqa: PTH113 (bytes path)
        try:
            with open(word, "rb") as file:  # noqa: PTH123 (bytes path)
                return Asked(
                    typed_name(word), raw=file.read(), note=_also_in_store(word, collection)
                )
        except OSError as error:
            message = f"{shown(word)}: {error.strerror}"
            raise InputError(message) from None
    if collection is not None and word:
        names = collection.documents.names
        is_folder = os.path.isdir(word)
        for tail in (b"/" + word, word):
            if is_folder and tail == word:
                break
            found = names.ending_with(tail)
            if len(found) == 1:
                name = collection.documents.typed_names(np.array(found))[0]
                return Asked(
                    name,
                    found[0],
                    collection=collection,
                    note=f"{shown(word)}: {shown(name)}, of the store",
                )
            if found:
                some = [shown(names[index]) for index in found[:3]]
                message = f"{shown(word)} is the end of {len(found)} names:"
                raise InputError(
                    message,
                    "give more of the name",
                    (*some, "…") if len(found) > 3 else tuple(some),
                )
    message = f"{shown(word)} is {'a folder' if os.path.isdir(word) else 'no document of the store and no file'}"
    question = ""
    if collection is not None and not os.path.isdir(word):
        question = _perhaps_meant(word, collection)
    raise InputError(
        message, question or "name a file, or a document that `lshdup index DOCS` has seen"
    )


#: Names are looked through for what is only said beside an answer if they have no more bytes in all; and for what was meant by one that is
#: not there if they are no more.
_FEW_BYTES, _FEW_NAMES = 1 << 22, 200_000


def _also_in_store(word: bytes, collection: "Collection | None") -> str:
    """What to say of a file that was taken, if its name is also the end of a name of a small store."""
    from lshdup.documents.document_list import typed_name

    if collection is None or len(collection.documents.names.blob) > _FEW_BYTES:
        return ""
    names, name = collection.documents.names, typed_name(word)
    found = names.ending_with(b"/" + name)
    if not found or name.startswith(b"/"):
        return ""
    return f"{shown(name)}: the file of that name, not {shown(names[found[0]])} of the store{' or another' if len(found) > 1 else ''}"


def _parts(name: bytes) -> tuple[str, str, str]:
    """The part of a name behind its last slash, and that without its ending, and the ending."""
    base = os.fsdecode(name).rpartition("/")[2]
    stem, _, ending = base.rpartition(".")
    return (base, stem, ending) if stem else (base, base, "")


def _perhaps_meant(word: bytes, collection: "Collection") -> str:
    """The end of a name of the store that is nearly the word, but for its ending if need be; nothing of very many names."""
    if len(collection.documents.names) > _FEW_NAMES:
        return ""
    _, wanted, ending = _parts(word)
    known: dict[str, str] = {}
    for name in collection.documents.names:
        base, stem, its = _parts(name)
        if abs(len(stem) - len(wanted)) <= 3 and (its == ending or stem not in known):
            known[stem] = base
    return did_you_mean(wanted, known, lambda stem: shown(known[stem]), 0.75)


def shingle_params(collection: "Collection | None", given: "Mapping[str, Any]") -> ShingleParams:
    """How documents that are only looked at become shingles: as those of the store, but for what was typed."""
    known = {field.name for field in fields(ShingleParams)}
    typed = {name: value for name, value in given.items() if name in known}
    base = collection.shingle.to_json() if collection is not None and "tokens" not in typed else {}
    return ShingleParams(**(base | typed))


def shingle_rows(text: bytes, params: ShingleParams) -> "Iterator[tuple[int, str, bytes]]":
    """A text's shingles in its order, each once: the element of its set, the shingle as it is written, and the tokens.

    With --bag, a repeat is an element of its own.
    """
    from lshdup.shingling.inspection import list_tokens, number_repeats

    tokens, shingles = list_tokens(text, params)
    between = b"" if params.tokens == "char" else b" "
    decimal, width = params.tokens == "ids" or params.hash == "poly31", 16
    seen: set[int] = set()
    for at, (shingle, element) in enumerate(
        zip(shingles.tolist(), number_repeats(shingles, params).tolist(), strict=True)
    ):
        if element not in seen:
            seen.add(element)
            yield (
                element,
                str(shingle) if decimal else f"{shingle:0{width}x}",
                between.join(tokens[at : at + params.k]),
            )


def why_removed(shingle_filter: "ShingleFilter") -> "Callable[[int], str]":
    """For a listing of shingles: by what an element is removed from every set, or nothing if it is not."""
    template, common = set(shingle_filter.template.tolist()), set(shingle_filter.common.tolist())
    return lambda element: (
        "template" if element in template else "common" if element in common else ""
    )
