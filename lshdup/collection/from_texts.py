"""Texts in memory -> a collection."""

import os
from collections.abc import Iterable, Mapping

import numpy as np

from lshdup.collection.collection import Collection, set_columns
from lshdup.documents.document_list import DocumentList
from lshdup.errors import InputError
from lshdup.params import ShingleParams
from lshdup.shingling.shingler import Shingler
from lshdup.utils.ragged import StringTable


def collect_texts(
    documents: Mapping[str, str] | Iterable[str], shingle: ShingleParams
) -> Collection:
    """Return the collection of texts, in the order in which they were given, with their sets.

    documents : a mapping of names to texts, or texts, whose names are "0", "1", ….

    Errors: InputError if a text or a name is no string.
    """
    if isinstance(documents, Mapping):
        names, texts = list(documents.keys()), list(documents.values())
    else:
        texts = list(documents)
        names = [str(at) for at in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        for what, value in (("name", name), ("text", text)):
            if not isinstance(value, str):
                message = f"the {what} of document {name!r} is {type(value).__name__}, not str"
                raise InputError(message, f"leave the document out, or give its {what} as str")
    sets = Shingler(shingle).shingle_texts([text.encode("utf-8") for text in texts])
    zeros = np.zeros(len(names), np.int64)
    listed = DocumentList(StringTable.from_strings(map(os.fsencode, names)), zeros, zeros)
    return Collection(listed, shingle, set_columns(sets, shingle), sets=sets)
