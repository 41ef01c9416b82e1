"""Encodings of texts that are not UTF-8: declared by a page, damaged UTF-8, or detected.

The detector, charset-normalizer, judges the text that each decoder makes of the bytes. That tells
little where few bytes are not ASCII, so nearly ASCII texts are looked at before it.
"""

import codecs
import re

import numpy as np

#: The encoding of undeclared text in browsers. It is preferred to the detector's first choice if it
#: is about as plausible.
WESTERN = "cp1252"
#: The most by which windows-1252 may look messier to the detector than its first choice.
_MESSIER = 0.1
#: One odd byte in so many does not decide: the text is windows-1252, or UTF-8 if it has that
#: byte-order mark.
_FEW = 100

_HIGH = bytes(range(0x80, 0x100))
#: Rests of a character at the start and at the end of a text that was cut inside of it.
_CUT_BEFORE = re.compile(rb"[\x80-\xbf]{1,3}")
_CUT_AFTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
#: Four bytes in a row that are not ASCII: a word in another alphabet, never letters of a Latin one.
_IN_A_ROW = re.compile(rb"[\x80-\xff]{4}")
#: The declaration of an XML file, a Python source or an Emacs file, which the detector reads too.
_DECLARED = re.compile(rb"(?i)(?:coding|charset)\s*[:=]\s*[\"']?\s*[-\w.:]{2}")
_DECLARED_WITHIN = 1024

#: Never detected: without a byte-order mark such texts have a NUL in every line, and are binary.
_NEVER = ["utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le"]
_SHIFT_JIS = ["cp932", "shift_jis", "shift_jis_2004", "shift_jisx0213"]
_SEVERAL_BYTES = [
    *_SHIFT_JIS, "big5", "big5hkscs", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213", "euc_jp",
    "euc_kr", "gb18030", "gb2312", "gbk", "johab",
]  # fmt: skip
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
_FIRST_HALF_WIDTH = re.compile("[\uff61-\uff7f]")


def look_up_codec(label: str) -> str:
    """Return Python's codec for the encoding that a page declares, as browsers understand it.

    Return "" for a label that the WHATWG Encoding Standard does not have: Python knows more codecs,
    and the time of some (punycode, idna) grows with the square of the text. Return "" for UTF-8 and
    UTF-16 as well: a page that declares them readably but is not UTF-8 is wrong.

    >>> look_up_codec("Shift_JIS"), look_up_codec("latin1"), look_up_codec("punycode")
    ('cp932', 'cp1252', '')
    """
    import webencodings

    encoding = webencodings.lookup(label)
    if encoding is None or encoding.name.startswith(("utf-", "x-user-defined", "replacement")):
        return ""
    # The standard decodes GBK with the decoder of its superset; Python has a narrower codec for it.
    codec = "gb18030" if encoding.name == "gbk" else encoding.codec_info.name
    return codec.replace("-", "_")


def count_invalid_utf8(data: bytes) -> int:
    """Return how many bytes of a text are not UTF-8, if the text is UTF-8 but for these bytes.

    Such a text was cut inside a character, or damaged in a few places. Return 0 for any other text,
    valid UTF-8 or in another encoding. Characters of several bytes do not come about by chance:
    texts of 30 bytes or more in any other encoding have fewer of them than of invalid bytes.

    >>> text = "Es sind fünf verschiedene Zahlen oder Größ"
    >>> count_invalid_utf8(text.encode()[:-1]), count_invalid_utf8(text.encode("latin-1"))
    (1, 0)
    """
    text = data.decode("utf-8", "ignore")
    invalid, high = len(data) - len(text.encode("utf-8")), _count_high(data)
    valid, characters = high - invalid, len(text) - (len(data) - high)  # that are not ASCII
    if data.startswith(codecs.BOM_UTF8):
        if invalid * _FEW <= len(data):
            return invalid
        valid, characters = valid - len(codecs.BOM_UTF8), characters - 1
    if not invalid or not characters:
        return 0
    cuts = (_CUT_BEFORE.match(data), _CUT_AFTER.search(data[-3:]))
    inside = invalid - sum(len(cut.group()) for cut in cuts if cut is not None)
    if 4 * high <= len(data):  # In a mostly ASCII text no character of three bytes is an accident.
        evidence = valid - characters
    elif characters > max(3, invalid):
        evidence = characters
    else:  # A few bytes of a short text look like characters, and like cut ones, by accident.
        evidence = 0
    return invalid if evidence and evidence >= 2 * inside else 0


def detect_codec(data: bytes) -> str:
    """Return Python's codec for a text that is not UTF-8; "" if none fits.

    Cost: one pass over a nearly ASCII text; else some milliseconds for 2.5 kB with every codec of
    Python, and a pass for each codec that fits.
    """
    high = _count_high(data)
    few = (
        high * _FEW <= len(data)
        and not _IN_A_ROW.search(data)
        and not _DECLARED.search(data[:_DECLARED_WITHIN])
    )
    if few and fits(data, WESTERN):
        return WESTERN
    # With two bytes a character, at least every other byte that is not ASCII has a neighbour that
    # is not ASCII either.
    is_high = np.frombuffer(data, np.uint8) >= 0x80
    is_alone = is_high.copy()
    is_alone[1:] &= ~is_high[:-1]
    is_alone[:-1] &= ~is_high[1:]
    alone = 2 * np.count_nonzero(is_alone) > high
    return _detect(data, [*_NEVER, *_SEVERAL_BYTES] if alone else _NEVER) or (
        "latin-1" if few else ""
    )


def _detect(data: bytes, excluded: list[str]) -> str:
    import charset_normalizer

    matches = list(charset_normalizer.from_bytes(data, cp_exclusion=excluded))
    if not matches:
        return ""
    encoding = matches[0].encoding
    if (
        encoding in _SHIFT_JIS
        and _SHIFT_JIS[0] not in excluded
        and is_misread_koi8(data.decode(encoding))
    ):
        return _detect(data, [*excluded, *_SHIFT_JIS]) or encoding
    # The relatives of windows-1252 often look a little tidier to the detector, and a different
    # relative for each near-copy of a text.
    western = [
        match for match in matches if WESTERN in (match.encoding, *match.could_be_from_charset)
    ]
    return WESTERN if western and western[0].chaos <= matches[0].chaos + _MESSIER else encoding


def is_misread_koi8(text: str) -> bool:
    """Return whether Shift_JIS made a text of KOI8: of half-width katakana, from their second half.

    The first half, which any Japanese text has too, stands where KOI8 has hardly any letters.
    """
    katakana = _HALF_WIDTH.subn("", text)[1]
    letters = len(text) - len(text.encode("ascii", "ignore"))
    return 2 * katakana > letters and 20 * _FIRST_HALF_WIDTH.subn("", text)[1] < katakana


def _count_high(data: bytes) -> int:
    """Return how many bytes are not ASCII."""
    return len(data) - len(data.translate(None, _HIGH))


def fits(data: bytes, codec: str) -> bool:
    """Return whether bytes are text by a codec of Python."""
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True
