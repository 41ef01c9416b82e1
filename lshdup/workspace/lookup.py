"""Lookup of the document that a word on the command line means: of the store, a file, or standard
input.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.base.params import DEFAULT_FORMATS, ShingleParams
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.system import standard_input
from lshdup.base.wording import did_you_mean, printable
from lshdup.collection.collection import Collection
from lshdup.errors import InputError
from lshdup.shingling.shingler import Shingler, are_ids, decode_batch, fingerprint_sets
from lshdup.sources.document_list import DocumentList, typed_name
from lshdup.sources.readers import is_archive
from lshdup.sources.text_batches import read_batch
from lshdup.text.decoding import Text
from lshdup.text.text_batch import TextBatch
from lshdup.workspace.request import merge_params


@dataclass(frozen=True)
class NamedDocument:
    """A document that a user named.

    name : name to print.
    index : number of the document in the collection; -1 if it is not of the store.
    raw : bytes of the document; None: they are read from the collection.
    collection : the collection of the store.
    note : line to say if the user may have meant another document.
    """

    name: bytes
    index: int = -1
    raw: bytes | None = None
    collection: Collection | None = None
    note: str = ""

    def utf8(self, params: ShingleParams) -> bytes:
        """Return what shingles are made of: the text as UTF-8, or the ids."""
        return self.read(params).text.utf8

    def read(self, params: ShingleParams) -> "DocumentRead":
        """Return the document with its text. Raise InputError if it has none."""
        batch = self._batch()
        is_ids = params.tokens == "ids"
        text = Text(self.ids()) if is_ids else self._decode(batch, params)
        return DocumentRead(self, int(batch.lengths[0]), text)

    def _decode(self, batch: TextBatch, params: ShingleParams) -> Text:
        """Decode the bytes of the document. Raise InputError if they are no text."""
        ((_, text),) = decode_batch(batch, [0], params, DEFAULT_FORMATS)
        if text.reason in (Reason.BINARY, Reason.FORMAT) and is_archive(self.name):
            message = f"{printable(self.name)} is an archive"
            hint = "name a document in it, once `lshdup index DOCS --archives` has seen it"
            raise InputError(message, hint)
        if text.reason is not None:
            message = (
                f"{printable(self.name)} is no text:"
                f" {text.reason}{f' ({text.detail})' if text.detail else ''}"
            )
            raise InputError(message, "name a document that is text")
        return text

    def ids(self) -> bytes:
        """Return the ids, blank-separated: a line of an id list without its name."""
        raw = self.content()
        if self.index >= 0:
            return raw
        lines = [line for line in raw.splitlines() if line.strip()]
        _, *ids = lines[0].split() if len(lines) == 1 else [b""]
        if len(lines) != 1 or not are_ids(ids):
            message = (
                f"{printable(self.name)} is not one line of an id list: a name, then integers from"
                " 0 to 2^64 - 1"
            )
            raise InputError(
                message,
                "give one document at a time, for instance: echo 'name 1 2 3' | lshdup query -",
            )
        return b" ".join(ids)

    def content(self) -> bytes:
        """Return the present bytes. Raise InputError if they cannot be read."""
        return self._batch().content(0)

    def _batch(self) -> TextBatch:
        """Return the document as a batch of its own. Raise InputError if it cannot be read."""
        if self.raw is not None:
            return TextBatch.of([0], [self.raw], [self.name])
        assert self.collection is not None
        batch = read_batch(self.collection.documents, np.array([self.index]))
        if batch.skipped:
            _, reason, detail = batch.skipped[0]
            message = (
                f"{printable(self.name)} cannot be read:"
                f" {detail if reason == Reason.UNREADABLE else f'{reason}, {detail}'}"
            )
            remedy = (
                "see that it may be read, or name another"
                if reason == Reason.UNREADABLE
                else "run `lshdup index DOCS` again"
            )
            raise InputError(message, remedy)
        return batch


def list_named(
    run: Run, documents: Sequence[NamedDocument]
) -> tuple[list[DocumentList], list[bytes]]:
    """Return documents in two lists: files, and documents of the store; and the names of all."""
    files = {each.name: len(each.raw) for each in documents if each.raw is not None}
    stored = {each.index: each for each in documents if each.raw is None}
    stored = dict(sorted(stored.items(), key=lambda item: item[0]))
    sizes = np.array([*files.values()], np.int64)
    lists = [DocumentList(StringTable.from_strings(files), sizes, np.zeros_like(sizes))]
    for collection in {id(each.collection): each.collection for each in stored.values()}.values():
        assert collection is not None
        lists.append(collection.documents.take(run, np.array([*stored])))
    return lists, [*files, *(each.name for each in stored.values())]


@dataclass(frozen=True)
class DocumentRead:
    """A document that was read.

    size : bytes of its file.
    text : its text, or its ids.
    """

    named: NamedDocument
    size: int
    text: Text

    def has_changed(self, params: ShingleParams) -> bool:
        """Return whether the document is of a collection that was made by these parameters, from
        another text.
        """
        collection = self.named.collection
        if collection is None or params != collection.shingle:
            return False
        sets = Shingler(params).shingle_texts([self.text.utf8])
        if collection.shingle_filter is not None:
            sets = collection.shingle_filter.apply(sets)
        known = collection.fingerprints[self.named.index]
        return bool(fingerprint_sets(sets, params)[0] != known)


def look_up(
    word: bytes, collection: Collection | None, *, only_stored: bool = False
) -> NamedDocument:
    """Return the document that a word means: standard input (-), a name of the store, a file, or a
    unique tail of a name.

    A tail behind a slash is preferred: ``a.txt`` means ``docs/a.txt`` even if there is a
    ``docs/ba.txt``.

    only_stored : whether a word means neither standard input nor a file, and nothing is said of
        files elsewhere.

    Errors: InputError if the word means no document, or several.
    Cost: that of `DocumentList.find`; one pass over all names for a tail.
    """
    if word == b"-" and not only_stored:
        return NamedDocument(b"-", raw=standard_input().read())
    if collection is not None:
        documents = collection.documents
        home = documents.home
        spellings = [typed_name(word), word] if not home else []
        if documents.are_paths():
            whole, real = os.path.abspath(word), os.path.realpath(word)  # noqa: PTH100 (bytes path)
            start = os.path.realpath(home or b".")
            spellings += [typed_name(os.path.relpath(real, start)), whole, real]
        indices = map(documents.find, dict.fromkeys([*spellings, word]))
        index = next((index for index in indices if index is not None), None)
        # Only in a small store, or one of other folders: a look at all files would cost too much.
        is_likely = len(documents.names.values) <= _FEW_BYTES
        is_likely |= any(map(documents.files.begins, (b"/", b"../")))
        is_likely &= index is None and not only_stored
        path = documents.find_file(os.fsdecode(word)) if is_likely else None
        index = documents.find(path) if path is not None else index
        if index is not None:
            return NamedDocument(
                documents.typed_names(np.array([index]))[0], index, collection=collection
            )
        if not home and (example := documents.example_of(typed_name(word))):
            message = f"{printable(word)} holds several documents, which were indexed one by one"
            raise InputError(message, f"name one of them, as {printable(example)}")
    if not only_stored and os.path.isfile(word):  # noqa: PTH113 (bytes path)
        try:
            with open(word, "rb") as file:  # noqa: PTH123 (bytes path)
                return NamedDocument(
                    typed_name(word), raw=file.read(), note=_note_other_names(word, collection)
                )
        except OSError as error:
            message = f"{printable(word)}: {error.strerror}"
            raise InputError(message) from None
    is_folder = not only_stored and os.path.isdir(word)
    if collection is not None and word:
        names = collection.documents.names
        tails = (b"/" + word,) if is_folder else (b"/" + word, word)
        for tail in tails:
            found = names.ending_with(tail)
            if len(found) == 1:
                name = collection.documents.typed_names(np.array(found))[0]
                return NamedDocument(
                    name,
                    found[0],
                    collection=collection,
                    note=f"{printable(word)}: {printable(name)}, of the store",
                )
            if found:
                some = [printable(names[index]) for index in found[:3]]
                message = f"{printable(word)} is the end of {len(found)} names:"
                raise InputError(
                    message,
                    "give more of the name",
                    (*some, "…") if len(found) > 3 else tuple(some),
                )
    what = "a folder" if is_folder else "no document of the store and no file"
    hint = "name a file, or a document that `lshdup index DOCS` has seen"
    if only_stored:
        what, hint = "no document of these folders", "give its name, or the end of its name"
    message, question = f"{printable(word)} is {what}", ""
    if collection is not None and not is_folder:
        question = _suggest(word, collection)
    raise InputError(message, question or hint)


#: Bytes of all names up to which a note beside an answer is worth a search.
_FEW_BYTES = 1 << 22

#: Names up to which a similar name is suggested.
_FEW_NAMES = 200_000


def _note_other_names(word: bytes, collection: Collection | None) -> str:
    """Return a note on a file whose name is also the end of a name of a small store; else ""."""
    if collection is None or len(collection.documents.names.values) > _FEW_BYTES:
        return ""
    names, name = collection.documents.names, typed_name(word)
    found = names.ending_with(b"/" + name)
    if not found:
        return ""
    return (
        f"{printable(name)}: the file of that name, not {printable(names[found[0]])} of the"
        f" store{' or another' if len(found) > 1 else ''}"
    )


def _split_name(name: bytes) -> tuple[str, str, str]:
    """Return the last part of a name, this part without its ending, and the ending."""
    base = os.fsdecode(name).rpartition("/")[2]
    stem, _, ending = base.rpartition(".")
    return (base, stem, ending) if stem else (base, base, "")


def _suggest(word: bytes, collection: Collection) -> str:
    """Ask for a name of the store whose end resembles the word; "" if there is none."""
    if len(collection.documents.names) > _FEW_NAMES:
        return ""
    _, wanted, ending = _split_name(word)
    known: dict[str, str] = {}
    for name in collection.documents.names:
        base, stem, its = _split_name(name)
        if abs(len(stem) - len(wanted)) <= 3 and (its == ending or stem not in known):
            known[stem] = base
    return did_you_mean(wanted, known, lambda stem: printable(known[stem]), 0.75)


def of_documents(
    collection: Collection | None, documents: Sequence[NamedDocument]
) -> Collection | None:
    """Return the collection if it holds any of the documents; else None.

    The parameters of a store hold for its own documents, not for files elsewhere.
    """
    return collection if any(each.index >= 0 for each in documents) else None


def merge_shingle_params(collection: Collection | None, given: Mapping[str, Any]) -> ShingleParams:
    """Return the parameters to show a document with: explicit ones over those of the store."""
    base = collection.shingle.to_json() if collection is not None and "tokens" not in given else {}
    return merge_params(ShingleParams, base | {**given})
