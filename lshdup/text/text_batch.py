"""The bytes of documents on their way to text."""

import os
from collections.abc import Iterable
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import Form
from lshdup.base.frozen import dataclass
from lshdup.base.params import DEFAULT_MAX_BYTES
from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason
from lshdup.kernels.helpers import PADDING


@dataclass(frozen=True)
class TextBatch:
    """The bytes of m documents, one after the other, in a buffer with room to load past the end.

    indices : int64 array of shape (m,), numbers in the list of documents.
    names : m names, some with an ending by which their source declares them (`base.forms`).
    text : uint8 array.
    starts, lengths : int64 arrays of shape (m,), bytes.
    skipped : (document, reason, detail) of documents that could not be read.
    is_text : whether the bytes are UTF-8 from their source, as in records.
    max_bytes : limit for a document that has to be unpacked.
    home : the folder that names start from.
    are_files : whether the documents are whole files, of which some may be mailboxes.
    form : what the file was read as that texts from their source are of.
    """

    indices: NDArray[np.int64]
    names: StringTable
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    skipped: list[tuple[int, Reason, str]] = field(default_factory=list)
    is_text: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES
    home: bytes = b""
    are_files: bool = False
    form: Form = Form.TEXT

    def path(self, position: int) -> bytes | None:
        """Return the file of a document; None for a text from its source."""
        if self.is_text:
            return None
        return os.path.join(self.home, self.names[position])  # noqa: PTH118 (bytes path)

    def content(self, position: int) -> bytes:
        """Return the bytes of a document."""
        start = self.starts[position]
        return self.text[start : start + self.lengths[position]].tobytes()

    @classmethod
    def of(
        cls, indices: Iterable[int], texts: list[bytes], names: list[bytes] | None = None
    ) -> "TextBatch":
        """Return a batch of texts in memory; without names, no document is named like HTML."""
        buffer = bytearray().join([*texts, bytes(PADDING)])
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.cumsum(lengths) - lengths
        return cls(
            np.array(list(indices), np.int64),
            StringTable.from_strings(names or [b""] * len(texts)),
            np.frombuffer(buffer, np.uint8),
            starts,
            lengths,
        )
