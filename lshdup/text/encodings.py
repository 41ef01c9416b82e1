"""Which encoding bytes are in that are not UTF-8 and do not say: UTF-8 but for a few, windows-1252, or what charset-normalizer finds.

It looks at what each decoder makes of the bytes, which tells little where few of them are not ASCII; so those are looked at first.
Called by formats.py, for such texts only.
"""

import codecs
import re

import numpy as np

#: What browsers take undeclared text for; lshdup does where it is about as plausible as the detector's first choice.
WESTERN = "cp1252"
_MESSIER = 0.1
_FEW = 100  #: one byte in so many may be odd in what is taken for windows-1252, or for UTF-8 because of a byte-order mark, without more ado

_HIGH = bytes(range(0x80, 0x100))
#: What is left of a character at the beginning and at the end of a text that was cut inside of it.
_CUT_BEFORE = re.compile(rb"[\x80-\xbf]{1,3}")
_CUT_AFTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
#: As letters of a Latin alphabet never are, but those of a name in another one.
_IN_A_ROW = re.compile(rb"[\x80-\xff]{4}")
#: What an XML file, a Python source or an Emacs file says of its encoding, which the detector looks at too.
_DECLARED = re.compile(rb"(?i)(?:coding|charset)\s*[:=]\s*[\"']?\s*[-\w.:]{2}")
_DECLARED_WITHIN = 1024

#: Without a byte-order mark they have a NUL in every line, and so are binary.
_NEVER = ["utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le"]
_SHIFT_JIS = ["cp932", "shift_jis", "shift_jis_2004", "shift_jisx0213"]
_SEVERAL_BYTES = [
    *_SHIFT_JIS, "big5", "big5hkscs", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk",
    "johab",
]  # fmt: skip
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
_FIRST_HALF_WIDTH = re.compile("[\uff61-\uff7f]")


def not_utf8(data: bytes) -> int:
    """How many bytes of a text are not UTF-8 if it is UTF-8 but for them: cut inside a character, or damaged in a few places; else 0.

    Nothing but UTF-8 gives many characters of several bytes by chance; texts of 30 bytes or more in any other encoding give fewer of them
    than of bytes that do not fit.

    >>> text = "Es sind fünf verschiedene Zahlen oder Größ"
    >>> not_utf8(text.encode()[:-1]), not_utf8(text.encode("latin-1"))
    (1, 0)
    """
    text = data.decode("utf-8", "ignore")
    bad, high = len(data) - len(text.encode("utf-8")), _high(data)
    fits, characters = high - bad, len(text) - (len(data) - high)  # of those that are not ASCII
    if data.startswith(codecs.BOM_UTF8):
        if bad * _FEW <= len(data):
            return bad  # it says so itself
        fits, characters = fits - len(codecs.BOM_UTF8), characters - 1
    if not bad or not characters:
        return 0
    cuts = (_CUT_BEFORE.match(data), _CUT_AFTER.search(data[-3:]))
    inside = bad - sum(len(cut.group()) for cut in cuts if cut is not None)
    if 4 * high <= len(data):  # mostly ASCII: a character of three bytes is no chance at all
        evidence = fits - characters
    elif characters > max(3, bad):
        evidence = characters
    else:  # a few bytes of a short text are characters of UTF-8 by chance, and others at its ends look like cut ones
        evidence = 0
    return bad if evidence and evidence >= 2 * inside else 0


def codec_for(data: bytes) -> str:
    """Python's codec for a text that is not UTF-8; empty if none fits.

    Cost: one pass if nearly all is ASCII; else some ms, for a look at 2.5 kB with every codec there is, and a pass for each that fits.
    """
    high = _high(data)
    few = (
        high * _FEW <= len(data)
        and not _IN_A_ROW.search(data)
        and not _DECLARED.search(data[:_DECLARED_WITHIN])
    )
    if few and _fits(data, WESTERN):
        return WESTERN
    # In an encoding of two bytes a character, at least one in two of those that are not ASCII has another one beside it.
    alone = 2 * _alone(data) > high
    return _detected(data, [*_NEVER, *_SEVERAL_BYTES] if alone else _NEVER) or (
        "latin-1" if few else ""
    )


def _detected(data: bytes, excluded: list[str]) -> str:
    import charset_normalizer

    matches = list(charset_normalizer.from_bytes(data, cp_exclusion=excluded))
    if not matches:
        return ""
    encoding = matches[0].encoding
    if (
        encoding in _SHIFT_JIS
        and _SHIFT_JIS[0] not in excluded
        and _is_cyrillic(data.decode(encoding))
    ):
        return _detected(data, [*excluded, *_SHIFT_JIS]) or encoding
    # Its relatives for other Latin alphabets often look a little tidier to the detector, and another one for each near-copy of a text.
    western = [
        match for match in matches if WESTERN in (match.encoding, *match.could_be_from_charset)
    ]
    return WESTERN if western and western[0].chaos <= matches[0].chaos + _MESSIER else encoding


def _is_cyrillic(text: str) -> bool:
    """Whether Shift_JIS made this of KOI8: its letters are half-width katakana then, but hardly any of the first half of those."""
    katakana = _HALF_WIDTH.subn("", text)[1]
    letters = len(text) - len(text.encode("ascii", "ignore"))
    return 2 * katakana > letters and 20 * _FIRST_HALF_WIDTH.subn("", text)[1] < katakana


def _high(data: bytes) -> int:
    """How many bytes are not ASCII."""
    return len(data) - len(data.translate(None, _HIGH))


def _alone(data: bytes) -> int:
    """How many bytes that are not ASCII have none of that kind beside them."""
    is_high = np.frombuffer(data, np.uint8) >= 0x80
    alone = is_high.copy()
    alone[1:] &= ~is_high[:-1]
    alone[:-1] &= ~is_high[1:]
    return int(np.count_nonzero(alone))


def _fits(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True
