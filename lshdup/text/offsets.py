"""Where a text stands in the bytes it was decoded from: offsets in UTF-8 -> offsets in the bytes.

Only a text that is nothing but decoded stands there: the visible text of a page, of a mail, of an
office document or of a compressed file does not, nor that of several fields.
"""

import codecs

import numpy as np
from numpy.typing import NDArray

from lshdup.base.parts import PART
from lshdup.base.ragged import offsets_of
from lshdup.text.decoding import Text

#: Python's error handler for `_size_of_invalid`, and code points that no text in UTF-8 has: each
#: stands for so many invalid bytes more than the first one.
_SIZES_OF_INVALID, _INVALID = "lshdup-sizes-of-invalid", 0xDC80


def find_offsets(data: bytes, text: Text, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return where places of a decoded text are in the bytes; None if it does not stand there.

    data : the bytes that `text` was decoded from.
    places : int64 array, bytes of `text.utf8` at which characters begin, or its length.
    Returns an int64 array of the same shape.
    Cost: a step of Python for each byte in an encoding of several bytes a character, as Shift_JIS.
    """
    if text.page or text.office or text.packed:
        return None
    codec = codecs.lookup(text.codec)
    is_utf8 = codec.name.startswith("utf-8")
    if data.endswith(text.utf8) and (is_utf8 or len(data) == len(text.utf8)):
        return places + (len(data) - len(text.utf8))  # behind a byte-order mark
    if PART in text.utf8:  # Fields of a row, which are decoded one by one.
        return None
    points = code_points(text.utf8.decode("utf-8"))
    end = len(data)
    if is_utf8:
        repaired = code_points(data.decode("utf-8", _SIZES_OF_INVALID))
        sizes = utf8_sizes(repaired)
        invalid = (repaired > _INVALID) & (repaired < _INVALID + 8)
        sizes[invalid] = repaired[invalid] - _INVALID
    elif codec.name.startswith(("utf-16", "utf-32")):
        sizes = np.where((points < 0x10000) & (codec.name[4:6] == "16"), 2, 4)
    elif len(data) == len(points):
        sizes = np.ones(len(points), np.int64)
    else:
        ends = _decode_bytewise(data, codec)
        sizes, end = np.diff(ends, prepend=0), int(ends[-1])
    sizes = sizes[len(sizes) - len(points) :]  # A byte-order mark may be before the text.
    offsets = offsets_of(sizes) + (end - int(sizes.sum()))
    return offsets[np.searchsorted(offsets_of(utf8_sizes(points)), places)]


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text, surrogates included: uint32 array."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def utf8_sizes(points: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the bytes of each code point in UTF-8: int64 array. points : uint32 array."""
    return np.searchsorted([0x80, 0x800, 0x10000], points, side="right") + 1


def _decode_bytewise(data: bytes, codec: codecs.CodecInfo) -> NDArray[np.int64]:
    """Return where each character ends: int64 array."""
    assert codec.incrementaldecoder is not None
    decoder, ends = codec.incrementaldecoder(), []
    for at in range(len(data)):
        ends += [at + 1] * len(decoder.decode(data[at : at + 1]))
    return np.array(ends, np.int64)


def _size_of_invalid(error: UnicodeError) -> tuple[str, int]:
    """Decode invalid bytes, of which "replace" makes one U+FFFD, to one code point with their
    number.
    """
    assert isinstance(error, UnicodeDecodeError)
    return chr(_INVALID + error.end - error.start), error.end


codecs.register_error(_SIZES_OF_INVALID, _size_of_invalid)
