"""Texts in memory -> a collection."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lshdup.base.ragged import StringTable
from lshdup.collection.collection import Collection, set_columns
from lshdup.errors import InputError
from lshdup.params import ShingleParams
from lshdup.shingling.shingler import Shingler, fingerprint_bytes
from lshdup.sources.document_list import DocumentList
from lshdup.sources.text_batches import TextBatch
from lshdup.text.decoding import Text, decode_record


def collect_texts(
    documents: Mapping[str, str] | Iterable[str], shingle: ShingleParams
) -> Collection:
    """Return the collection of texts, in the order in which they were given, with their sets.

    documents : a mapping of names to texts, or texts, whose names are "0", "1", …. They are read as
        records are.

    Errors: InputError if a text or a name is no string, or a text cannot be read as a mail or page.
    """
    names, texts = name_texts(documents)
    checked = [check_text(*each, shingle) for each in zip(names, texts, strict=True)]
    return collect_checked(names, checked, shingle)


def name_texts(documents: Mapping[str, str] | Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names of documents and their texts, unchecked. documents : of `collect_texts`."""
    given: Any = documents
    if isinstance(given, bytes | str) or not isinstance(given, Iterable):
        message = f"documents are given as {type(given).__name__}"
        raise InputError(message, "give a path, a mapping of names to texts, or a list of texts")
    if hasattr(given, "columns"):
        message = "documents are given as a table"
        raise InputError(message, "give one of its columns, as in table['text']")
    if isinstance(documents, Mapping):
        names, texts = list(documents.keys()), list(documents.values())
    elif hasattr(given, "keys"):  # a Series of pandas
        names, texts = list(map(str, given.keys())), list(given)
        if len(set(names)) < len(names):
            message = "two documents have one name in the index of the Series"
            raise InputError(message, "give its values, or reset its index")
    else:
        texts = list(documents)
        names = [str(at) for at in range(len(texts))]
    return names, texts


def check_text(name: Any, text: Any, shingle: ShingleParams) -> bytes:
    """Return a text as UTF-8. Raise InputError as `collect_texts`."""
    for what, value in (("name", name), ("text", text)):
        if not isinstance(value, str):
            message = f"the {what} of document {name!r} is {type(value).__name__}, not str"
            raise InputError(message, f"leave the document out, or give its {what} as str")
        try:
            os.fsencode(value) if what == "name" else value.encode()
        except UnicodeEncodeError as error:
            message = f"the {what} of document {name!r} cannot be UTF-8: {error.reason}"
            raise InputError(message, f"leave the document out, or mend its {what}") from None
    utf8: bytes = text.encode()
    found = _read(utf8, shingle)
    if found.reason is not None:
        message = f"the text of document {name!r} cannot be read: {found.reason}, {found.detail}"
        raise InputError(message, "leave the document out")
    return utf8


def collect_checked(
    names: Iterable[str], texts: Sequence[bytes], shingle: ShingleParams
) -> Collection:
    """Return the collection of texts that `check_text` returned, with their sets."""
    read = [_read(text, shingle) for text in texts]
    sets, text_prints = Shingler(shingle).shingle_decoded([each.utf8 for each in read])
    zeros = np.zeros(len(read), np.int64)
    listed = DocumentList(StringTable.from_strings(map(os.fsencode, names)), zeros, zeros)
    columns = set_columns(sets, shingle) | {
        "forms": np.array([each.form for each in read], np.uint8),
        "byte_prints": fingerprint_bytes(TextBatch.of(range(len(read)), [*texts]), shingle),
        "text_prints": text_prints,
    }
    return Collection(listed, shingle, columns, sets=sets)


def _read(utf8: bytes, shingle: ShingleParams) -> Text:
    """Return a text; of a mail or page what is compared."""
    if not shingle.mail and shingle.markup != "visible":
        return Text(utf8)
    return decode_record(utf8, shingle)
