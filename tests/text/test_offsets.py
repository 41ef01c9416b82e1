"""Offsets of a text in the bytes that it was decoded from."""

import codecs
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.params import ShingleParams
from lshdup.shingling.inspection import locate_tokens
from lshdup.text.decoding import decode, find_offsets

#: Letters of one, two, three and four bytes, marks that compose, and what decomposes.
TEXTS = st.text(
    st.sampled_from("aZ é ñ Жя 漢字 か 𝒳 ½ ﬁ .,\n")
    | st.characters(codec="utf-8", exclude_categories=["Cc"])  # Escapes switch some encodings.
)
ENCODED = {
    "utf-8": b"", "utf-8-sig": b"", "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE, "utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": b"",
    "cp1252": b"", "koi8-r": b"", "cp932": b"", "gb18030": b"", "euc-kr": b"", "iso2022-jp": b"",
}  # fmt: skip

#: Characters with marks that compose, are reordered, or become several characters.
PARTS = [
    "e\u0301", "a", " ", "ﬁ", "ᄒ", "ᅡ", "ᆫ", "か\u3099", "ｶﾞ", "q\u0323\u0307", "q\u0307\u0323",
    "\u0301", "½", "\ufdfa", "ΐ", "漢", "Å", ".", "\u0f71",
]  # fmt: skip


def offsets_of(data, text):
    """Offsets of every character, and of the end."""
    places = np.cumsum([0, *(len(each.encode()) for each in text.utf8.decode())])
    return find_offsets(data, text, places).tolist()


@pytest.mark.parametrize("codec", ENCODED)
@given(text=TEXTS)
def test_every_character_is_where_it_was(codec, text):
    """The bytes between two offsets are those of the characters between."""
    text = text.encode(codec, "ignore").decode(codec).removeprefix("\ufeff")
    data = ENCODED[codec] + text.encode(codec)
    decoded = decode(data, b"a.txt", ShingleParams(encoding="" if ENCODED[codec] else codec))
    if decoded.page or decoded.reason is not None or decoded.utf8 != text.encode():
        return  # It begins like a page, or like another format.
    offsets = offsets_of(data, decoded)
    assert offsets == sorted(offsets)
    assert len(ENCODED[codec]) <= offsets[0] or codec == "utf-8" or not text
    if not codec.startswith("iso2022"):  # A part of it does not say in which state it begins.
        for each, start, end in zip(text, offsets, offsets[1:], strict=False):
            assert data[start:end].decode(codec) == each
    assert offsets[-1] <= len(data)


def test_shift_sequences_belong_to_the_character_behind():
    data = "a漢字b".encode("iso2022-jp")
    assert data == b"a\x1b$B4A;z\x1b(Bb"
    forced = ShingleParams(encoding="iso2022-jp")
    assert offsets_of(data, decode(data, b"", forced)) == [0, 1, 6, 8, 12]


def test_invalid_bytes_keep_their_places():
    """Runs of invalid bytes that become one character, at both ends and within."""
    text = ("Es sind fünf verschiedene Zahlen, größer als Größe. " * 10).encode()
    for bom in (b"", codecs.BOM_UTF8):
        data = bom + b"\x82" + text[:20] + b"\xe2\x82" + text[20:] + b"\xf0\x9f\x98"
        decoded = decode(data, b"a.txt")
        assert decoded.utf8.decode().count("\ufffd") == 3
        offsets = offsets_of(data, decoded)
        for each, start, end in zip(decoded.utf8.decode(), offsets, offsets[1:], strict=False):
            assert data[start:end].decode("utf-8", "replace") == each
        assert (offsets[0], offsets[-1]) == (len(bom), len(data))


def test_what_is_more_than_decoded_has_no_offsets():
    page = b"<html><body><p>one two three</p></body></html>"
    mail = b"From: a@b\nTo: c@d\nSubject: x\n\none two three\n"
    packed = gzip.compress(b"one two three")
    for data, name in ((page, b"a.html"), (packed, b"a.gz"), (mail, b"a.eml")):
        text = decode(data, name)
        assert b"two" in text.utf8
        assert find_offsets(data, text, np.array([0, 1])) is None


@given(st.lists(st.sampled_from(PARTS)), st.booleans())
def test_tokens_of_a_text_that_is_composed_are_where_it_has_them(parts, keep_case):
    """Each token stands in the text where its own normal form is the token's."""
    text = "".join(parts).encode()
    for params in (ShingleParams(keep_case=keep_case), ShingleParams(tokens="symbols")):
        located = locate_tokens(text, params)
        assert located.text == text
        columns = (located.tokens, located.starts, located.ends)
        for token, start, end in zip(*(column.tolist() for column in columns), strict=True):
            assert token in locate_tokens(text[start:end], params).tokens.tolist()
        assert (np.diff(located.starts) >= 0).all()
