"""Bytes become texts: in which encoding, where no few bytes decide for all others; where each
character stood; and as what they are read.
"""

import codecs
import gzip
import json
import random
from itertools import count, filterfalse, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webencodings.labels import LABELS

from lshdup.api import NearDuplicates
from lshdup.base.forms import Form, page_form
from lshdup.base.params import ShingleParams
from lshdup.base.skipped import Reason
from lshdup.text import encodings
from lshdup.text.decoding import decode, find_offsets
from tests.conftest import ROOT, killed_behind_segments, many, open_index, write_files

UDHR = ROOT / "sample_corpus" / "udhr"
LENGTHS = (60, 300, 2000, 20_000)
SAMPLES = 8

#: Of 8 slices of each length, so many are read as what they are, at least: of short ones, one or
#: two fewer than with charset-normalizer 3.5, because there a single letter may tell, and versions
#: differ.
ALL = (6, 7, 8, 8)
RECOGNISED = {
    ("fra", "cp1252"): ALL, ("por_BR", "cp1252"): ALL, ("deu_1996", "cp1252"): ALL,
    ("deu_1996", "cp850"): (0, 2, 8, 8), ("pol", "iso8859_2"): (0, 3, 3, 6),
    ("pol", "cp1250"): (0, 7, 8, 8), ("rus", "koi8_r"): ALL, ("rus", "cp1251"): ALL,
    ("rus", "iso8859_5"): ALL, ("srp_cyrl", "cp1251"): (5, 7, 8, 8), ("arb", "cp1256"): ALL,
    ("tha", "cp874"): (5, 7, 8, 8), ("vie", "cp1258"): (5, 7, 8, 8),
    ("jpn", "shift_jis"): ALL, ("jpn", "euc_jp"): (0, 7, 8, 8), ("kor", "euc_kr"): ALL,
    ("cmn_hans", "gb18030"): ALL, ("cmn_hant", "big5"): ALL,
}  # fmt: skip
#: The same of English with so many letters of Latin-1 between others; and of UTF-8 with so many
#: bytes that are none, or cut.
STRAY = {1: (8, 8, 8, 8), 2: (8, 8, 8, 8), 5: (6, 8, 8, 8)}
BAD = {
    ("deu_1996", 1): (0, 7, 8, 8), ("deu_1996", 2): (0, 4, 8, 8),
    ("deu_1996", 5): (0, 0, 8, 8), ("deu_1996", "cut"): (0, 6, 8, 8),
    **{("rus", bad): ALL for bad in (1, 2, 5, "cut")},
    ("jpn", 1): ALL, ("jpn", 2): ALL, ("jpn", 5): (4, 7, 8, 8), ("jpn", "cut"): ALL,
}  # fmt: skip

#: Three articles of the declaration.
POLISH = """\
Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni
rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa. Każdy człowiek posiada
wszystkie prawa i wolności zawarte w niniejszej Deklaracji bez względu na jakiekolwiek różnice
rasy, koloru, płci, języka, wyznania, poglądów politycznych i innych, narodowości, pochodzenia
społecznego, majątku, urodzenia lub jakiegokolwiek innego stanu. Każdy człowiek ma prawo do życia,
wolności i bezpieczeństwa swej osoby.
"""


def declaration(name):
    if name == "pol":
        return POLISH
    path = max(UDHR.glob(f"{name}.*"))  # of a page and a text, the text
    return decode(path.read_bytes(), bytes(path)).utf8.decode()


def slices(text, codec, length, rng):
    """Pieces of a text, of about so many bytes in that encoding, that are not ASCII."""
    text = text.encode(codec, "ignore").decode(codec)
    many = max(1, length * len(text) // len(text.encode(codec)))
    endless = text * (1 + -(-many // len(text)))
    starts = (rng.randrange(len(text)) for _ in count())
    pieces = (endless[start : start + many] for start in starts)
    return (piece for piece in pieces if not piece.isascii())


def examples(key, length):
    """Bytes without end, each with the text that they are to be read as."""
    rng = random.Random(f"{key} {length}")
    name, what = key if isinstance(key, tuple) else ("eng", key)
    if key in RECOGNISED:
        return ((each.encode(what), each) for each in slices(declaration(name), what, length, rng))
    if key in STRAY:
        return with_stray_letters(key, length, rng)
    return with_bad_bytes(name, what, length, rng)


def with_stray_letters(stray, length, rng):
    text = declaration("eng").encode("ascii", "ignore")
    endless = text * (1 + -(-length // len(text)))
    while True:
        start = rng.randrange(len(text))
        data = bytearray(endless[start : start + length])
        inside = [i for i in range(1, len(data) - 1) if data[i - 1 : i + 2].isalpha()]
        for i in rng.sample(inside, stray):
            data[i] = rng.choice("éèüöäåøáñçíóàß".encode("latin-1"))
        yield bytes(data), data.decode("cp1252")


def with_bad_bytes(name, bad, length, rng):
    for piece in slices(declaration(name), "utf-8", length, rng):
        data = bytearray(piece.encode())
        if bad == "cut":
            del data[max(i for i, byte in enumerate(data) if byte >= 0xC0) + 1 :]
        else:
            for i in rng.sample(range(len(data)), bad):
                data[i] = rng.randrange(0x80, 0x100)
        yield bytes(data), data.decode("utf-8", "replace")


def is_utf8(example):
    return "\ufffd" not in example[0].decode("utf-8", "replace")


@pytest.mark.parametrize("key", [*RECOGNISED, *STRAY, *BAD], ids=str)
def test_shares_of_right_guesses(key):
    """Of real texts in encodings from before UTF-8, and in ASCII or UTF-8 but for a few bytes."""
    expected, found = {**RECOGNISED, **STRAY, **BAD}[key], []
    for length in LENGTHS:
        pairs = filterfalse(is_utf8, examples(key, length))
        right = (decode(data, b"a").utf8.decode() == text for data, text in islice(pairs, SAMPLES))
        found.append(sum(right))
    assert all(there >= least for there, least in zip(found, expected, strict=True)), found


def test_control_characters_and_what_has_no_character_in_windows_1252():
    licence = (ROOT / "sample_corpus/licences/Python-2.0.txt").read_text("ascii", "ignore").encode()
    data = b"\x1f\nFile: groff.info" * 20 + licence + b"\xe9"
    for packed in (data, gzip.compress(data)):
        made = decode(packed, b"changelog.gz")
        assert (made.encoding, made.utf8) == ("cp1252", data.decode("cp1252").encode())
    data = b"\x01\x02\x03 ab " * 100 + b"\x81"
    made = decode(data, b"a")
    assert (made.encoding, made.utf8) == ("latin-1", data.decode("latin-1").encode())


def test_a_few_characters_in_a_row_are_no_stray_bytes():
    """A name in Chinese or Russian in an English text, which is all that tells."""
    text = "This page was written by 山田太郎 and translated by 鈴木花子, as far as anybody can "
    made = decode((f"{text}remember that now. " * 12).encode("euc_jp"), b"a")
    assert made.encoding != "cp1252"


def test_what_a_text_declares_counts_for_more_than_that_it_is_nearly_ascii():
    text = "plain words and so on, " * 100 + "wałęsa"
    text = f'<?xml version="1.0" encoding="iso-8859-2"?>\n<article>{text}'
    assert decode(text.encode("iso8859_2"), b"a.xml").utf8 == text.encode()
    assert decode(text.replace("iso-8859-2", "").encode("iso8859_2"), b"a.xml").encoding == "cp1252"


def test_koi8_is_not_half_width_katakana():
    russian = declaration("rus")
    for start in range(0, 4000, 100):
        data = russian[start : start + 300].encode("koi8_r", "ignore")
        assert "jis" not in decode(data, b"a").encoding
    katakana = "ﾆﾎﾝｺﾞ ﾉ ﾌﾞﾝｼｮｳ ｦ ﾊﾝｶｸ ｶﾀｶﾅ ﾀﾞｹ ﾃﾞ ｶｷﾏｼﾀ｡ ﾜｶﾘﾆｸｲ ｶﾓ ｼﾚﾏｾﾝ｡ " * 5
    assert not encodings.is_misread_koi8(katakana)
    koi8 = russian.encode("koi8_r", "ignore")
    assert encodings.is_misread_koi8(koi8.decode("shift_jis_2004", "ignore"))


def test_bytes_that_are_not_utf8_become_replacement_characters_and_are_counted():
    text = "Größe und Übermut tun selten gut, sagten fünf müde Übersetzer. "
    for data, bad in {
        text.encode() + b"\xc3": 1,
        (text + "漢").encode()[:-1]: 2,
        text.encode()[3:]: 1,
        (text + text).encode().replace(b"fun", b"f\xffn") + b"\xe9t\xe9": 2,
        (text * 20).encode().replace(b"selten", b"s\xe9lten", 5): 5,
        b"\xef\xbb\xbf" + b"plain \xff words" * 2 + b" and so on" * 20: 2,
    }.items():
        made = decode(data, b"a")
        what = "1 byte is" if bad == 1 else f"{bad} bytes are"
        assert (made.encoding, made.codec) == (f"utf-8, {what} not UTF-8", "utf-8"), data
        assert made.utf8 == data.decode("utf-8", "replace").removeprefix("\ufeff").encode()
    spoilt = f"<!doctype html><body><p>{text}\udcff<p>{text}".encode("utf-8", "surrogateescape")
    page = decode(spoilt, b"a.html")
    assert page.page
    assert page.encoding == "utf-8, 1 byte is not UTF-8"
    assert page.utf8.decode().split() == f"{text}\ufffd {text}".split()
    forced = decode(spoilt, b"a", ShingleParams(encoding="utf-8"))  # is not mended
    assert forced.reason == Reason.UNDECODABLE


def test_as_many_bytes_that_do_not_fit_as_characters_are_another_encoding():
    texts = ["Ã© é".encode("cp1252"), "CAFÉ» était fermé".encode("cp1252"), b"plain \xff words"]
    for data in (*texts, b"\xef\xbb\xbfplain \xff words", b""):
        assert encodings.count_invalid_utf8(data) == 0


FOREIGN = st.characters(min_codepoint=0x80, exclude_categories=["Cs"])


@settings(max_examples=many(200))
@given(st.text(FOREIGN, min_size=12), st.text(max_size=200), st.data())
def test_one_bad_byte_is_found_in_any_text(foreign, rest, data):
    text = f"{foreign}{rest}".encode()
    assert encodings.count_invalid_utf8(text) == 0
    at = data.draw(st.integers(0, len(text)))
    spoilt = text[:at] + b"\xff" + text[at:]
    bad = encodings.count_invalid_utf8(spoilt)
    assert 1 <= bad <= 5  # itself, and what is left of a character that it stands in
    assert spoilt.decode("utf-8", "replace").count("\ufffd") - text.decode().count("\ufffd") <= bad


@pytest.mark.parametrize("key", RECOGNISED, ids=str)
def test_no_other_encoding_looks_like_utf8(key):
    name, codec = key
    rng = random.Random(str(key))
    for length in (30, 60, 120, 1000):
        for piece in islice(slices(declaration(name), codec, length, rng), 100):
            assert encodings.count_invalid_utf8(piece.encode(codec)) == 0, piece


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("ISO-8859-1", "cp1252", "“Größe” – naïve"), ("latin1", "cp1252", "caf\xe9 – ok"),
        ("Shift_JIS", "cp932", "東京タワー①"), ("x-sjis", "cp932", "東京"),
        ("gb2312", "gb18030", "汉字 𠀀"), ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("big5", "big5hkscs", "漢字"), ("iso-8859-8-i", "iso8859_8", "שלום"),
        ("windows-1251", "cp1251", "Привет"),
        ("iso-2022-jp", "iso2022_jp", "é 東京"[2:]), ("x-mac-cyrillic", "mac_cyrillic", "Привет"),
        ("tis-620", "cp874", "กำแพง"),
    ],
)  # fmt: skip
def test_declared_encodings_are_what_browsers_take_them_for(label, codec, text):
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={label}">'
    data = f"<html><head>{meta}</head><body>{text}</body></html>".encode(codec)
    if codec != "iso2022_jp":  # which is ASCII with escapes: valid UTF-8, and taken for that
        assert decode(data, b"a.html").utf8.decode().strip() == text
    assert encodings.look_up_codec(label) == codec


@pytest.mark.parametrize(("before", "declared"), [(0, True), (1900, True), (2100, False)])
def test_a_declaration_may_stand_behind_other_elements(before, declared):
    """Pages have scripts and long titles before it; it is looked for in the first 2,048 bytes."""
    head = f"<html><head><title>{'x' * before}</title><meta charset=x-mac-cyrillic></head>"
    text = decode(f"{head}<body>Привет</body></html>".encode("mac_cyrillic"), b"a.html")
    assert (text.codec == "mac_cyrillic" and not text.encoding) is declared
    assert not declared or text.utf8.decode().strip() == "Привет"


def test_labels_are_those_of_the_standard_and_codecs_those_of_texts():
    codecs = {label: encodings.look_up_codec(label) for label in LABELS}
    assert sum(map(bool, codecs.values())) > 200
    none = ("utf-", "replacement", "x-user-defined")
    unknown = {label for label, name in LABELS.items() if name.startswith(none)}
    assert {label for label, codec in codecs.items() if not codec} == unknown
    for label, codec in codecs.items():
        assert label == label.lower()
        assert not codec or "abc".encode(codec).decode(codec) == "abc"


def test_a_run_that_was_killed_is_resumed_with_its_guesses(here):
    """The next run reads none of these documents, and says the same."""
    latin = "Die Größe der Bäume überraschte fünf müde Übersetzer. " * 5
    russian = "Все люди рождаются свободными и равными в своем достоинстве и правах. " * 5
    plain = (f"plain words of document {n} and so on {'again ' * n}" for n in range(8))
    write_files("d", {f"{n}.txt": text for n, text in enumerate(plain)})
    contents = {"3latin.txt": latin.encode("latin-1"), "5koi.txt": russian.encode("koi8_r")}
    contents |= {"cut.txt": latin.encode()[:-30] + b"\xc3", "binary": b"\0\1", "empty": b""}
    write_files("d", contents | {"zip": b"PK\x03\x04 but no more"})
    killed_behind_segments("pairs", "d", batch=3, parts=3)
    open_index("undisturbed", [b"d"])
    said = []
    collection = open_index(".lshdup", [b"d"], said.append)[1].collection
    assert any("of an interrupted run are not read again" in line for line in said)
    names = collection.documents.names.strings_at(collection.notes.guess_documents)
    expected = {b"d/3latin.txt": b"cp1252", b"d/5koi.txt": b"koi8_r"}
    expected |= {b"d/cut.txt": b"utf-8, 1 byte is not UTF-8"}
    assert dict(zip(names, collection.notes.guesses, strict=True)) == expected
    for kind in ("signatures", "bands"):
        again, expected = (Path(s, f"{kind}.npz") for s in (".lshdup", "undisturbed"))
        assert again.read_bytes() == expected.read_bytes()


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


MEMO = "TO: {}\nFROM: {}\nDATE: {}\n\nthe same sentence stands in both of these memos"
MEMOS = [MEMO.format(*each) for each in (("All staff", "HR", 2019), ("Directors", "CEO", 2022))]
PAGES = [f"<html><script>{word}</script><p>the same body of a page" for word in ("one", "two")]


def test_the_same_texts_give_the_same_answer(run, here):
    """From files, rows and Python, where no rule of names or beginnings tells them apart."""
    texts = [*PAGES, *MEMOS, "<!-- x -->" + PAGES[0], "the same body of a page", "plain words here"]
    named = {f"d/{n}": text for n, text in enumerate(texts)}
    rows = (json.dumps({"id": name, "text": text}) for name, text in named.items())
    write_files(here, named | {"r.jsonl": "\n".join(rows)})
    keep, visible, mail = {"markup": "keep"}, {"markup": "visible"}, {"mail": True}
    for options in (keep, visible, visible | mail, keep | mail | {"tokens": "symbols"}):
        typed = ["-t", "0.1", "--id-field", "id", "--no-store", "--exact"]
        typed += (
            f"--{key}" if value is True else f"--{key}={value}" for key, value in options.items()
        )
        answers = (run("pairs", where, *typed).rows for where in ("d", "r.jsonl"))
        files, records = (sorted(row[:3] for row in rows) for rows in answers)
        found = NearDuplicates(named, threshold=0.1, **options).pairs()
        found = sorted([*sorted(names), repr(score)] for *names, score in found)
        assert files == records == found != []


@pytest.mark.parametrize(
    ("begin", "name", "forms"),
    [
        (b"", b"a", "TTT"), (b"", b"a.HTM", "NNM"), (b"", b"a.xhtml", "NNM"), (b"", None, "TTT"),
        (b"<!DOCTYPE html>", b"a", "PPM"), (b"\xef\xbb\xbf \r\n<!doctype\nHTML>", b"a.txt", "PPM"),
        (b"\t<HTML>", b"a", "PPM"), (b"<html lang=de>", b"a", "PPM"), (b"<htmlx>", b"a", "TTT"),
        (b"<!doctype xml>", b"a", "TTT"), (b"<?xml version='1.0'?><html>", b"a", "MPM"),
        (b"<!-- x --><html>", b"a", "MPM"), (b"x <html>", b"a", "TTT"), (b"<html>", None, "MPM"),
    ],
)  # fmt: skip
def test_pages(begin, name, forms):
    letters = {"T": Form.TEXT, "N": Form.NAMED_PAGE, "P": Form.PAGE, "M": Form.MARKUP}
    found = [page_form(begin + b"<p>x", name, markup) for markup in ("auto", "visible", "keep")]
    assert found == [letters[each] for each in forms]
