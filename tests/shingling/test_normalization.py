"""The normal form: without what cannot be seen, marks that are folded, and hyphens of lines."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lshdup.base.forms import PART
from lshdup.base.params import ShingleParams
from lshdup.errors import ParameterError
from lshdup.shingling.inspection import locate_tokens
from lshdup.shingling.normalization import IGNORABLE_RANGES, hide_hyphens
from lshdup.shingling.shingler import Shingler
from lshdup.text.text_batch import TextBatch
from tests import reference
from tests.conftest import many, part
from tests.documents import list_tokens
from tests.office import hyphenated
from tests.shingling.test_text import KINDS, encodable, texts

IGNORABLE = [chr(c) for low, high in IGNORABLE_RANGES for c in range(low, high + 1)]
ignorable = st.sampled_from("\u00ad\u034f\u115f\u180b\u200b\u200d\u202e\u3164\ufe0f\ufeff\uffa0")
ignorable |= st.sampled_from(IGNORABLE)
PARAMS = st.builds(
    ShingleParams, KINDS, k=st.integers(1, 5), normalize=st.booleans(), keep_case=st.booleans(),
    fold=st.sampled_from(["none", "marks"]),
)  # fmt: skip
PARAMS |= st.builds(
    ShingleParams, k=st.integers(1, 3), keep_case=st.booleans(), fold=st.just("accents")
)


def test_the_ranges_are_those_of_the_standard():
    """By the definition of the property, as far as Python has what it is made of. No other
    character becomes ignorable: so they are dropped once, before NFKC and case folding.
    """
    assert [c for c in map(chr, range(0x110000)) if reference.is_ignorable(c)] == IGNORABLE
    assert len(IGNORABLE) == 4174  # "Total code points" of DerivedCoreProperties.txt
    assert not any(c.isspace() or unicodedata.combining(c) for c in IGNORABLE)
    points = {*map(chr, range(0xD800)), *map(chr, range(0xE000, 0x110000))}
    others = "\n".join(points - {*IGNORABLE})
    assert not {*unicodedata.normalize("NFKC", others).casefold()} & {*IGNORABLE}


@settings(max_examples=many(400))
@given(texts, st.lists(st.tuples(st.integers(0, 50), ignorable), min_size=1, max_size=20), PARAMS)
@example("e\u0301\u0316\u0301", [(0, "\u034f"), (2, "\u00ad"), (3, "\ufe0f")], ShingleParams(k=1))
def test_they_change_neither_sets_nor_sequences(text, inserted, params):
    text = encodable(text)
    marked = text
    for at, c in inserted:
        marked = f"{marked[:at]}{c}{marked[at:]}"
    sets, prints = Shingler(params).shingle_decoded([text.encode(), marked.encode()])
    assert sets[0].tolist() == sets[1].tolist()
    assert prints[0] == prints[1]
    (tokens, shingles), found = (list_tokens(each.encode(), params) for each in (text, marked))
    assert found[0] == tokens
    assert found[1].tolist() == shingles.tolist()
    options = (params.tokens, params.k, params.normalize, params.keep_case)
    expected = reference.shingle_list(marked, *options, fold=params.fold)
    assert sets[1].tolist() == sorted(set(expected))


# --- `--fold` drops marks, and accents ------------------------------------------------------------

FOLDED = [
    "a", "é", "e\u0301", "İ", "ΐ", "й", "ǖ", "\u0323", "\u0316", "ﬁ", "ơ\u0328", "한", "가\u11a8",
    "が", " ", "ب", "\u064e", "\u0651", "أ", "ا\u064e\u0654", "ا\u06d6\u0654", "ﱞ", "ﹱ", "שּׁ",
    "\u05b8", "ﬞ",
]  # fmt: skip
folded = st.lists(st.sampled_from(FOLDED), max_size=12).map("".join)


@settings(max_examples=many(400))
@given(folded, PARAMS)
def test_folded_texts_have_the_sets_of_the_reference(text, params):
    form = reference.normal_form(text, params.normalize, params.keep_case, params.fold)
    tokens, shingles = list_tokens(text.encode(), params)
    assert [token.decode() for token in tokens] == reference.TOKENS[params.tokens](form)
    (found,) = Shingler(params).shingle_texts([text.encode()])
    assert found.tolist() == sorted(set(shingles.tolist()))
    located = locate_tokens(text.encode(), params)
    for start, end, token in zip(located.starts, located.ends, tokens, strict=True):
        there = located.text[start:end].decode()
        spelled = reference.normal_form(there, params.normalize, params.keep_case, params.fold)
        assert token.decode() in spelled


@pytest.mark.parametrize("fold", ["marks", "accents"])
def test_every_code_point_is_folded_as_by_the_reference(fold):
    """Alone between letters, and normalised with what stands before it."""
    params = ShingleParams(k=1, fold=fold)
    points = part([c for c in range(0x20000) if not 0xD800 <= c < 0xE000], 8)
    for before in ("x", "\u1112\u1161"):
        texts = [f"{before}{chr(c)}y" for c in points]
        sets = Shingler(params).shingle_texts([text.encode() for text in texts])
        for text, found in zip(texts, sets, strict=True):
            expected = set(reference.shingle_list(text, "word", 1, fold=fold))
            assert set(found.tolist()) == expected, hex(ord(text[-2]))


def test_texts_that_differ_in_folded_marks_are_the_same():
    text = Path("sample_corpus/udhr/arb.txt").read_text()
    marks = [c for c in text if reference.is_folded(c, "marks")]
    cases = [("marks", text, "".join(c for c in text if c not in marks))]
    french = Path("sample_corpus/udhr/fra.txt").read_text()
    bare = "".join(c for c in unicodedata.normalize("NFD", french) if not "\u0300" <= c <= "\u036f")
    cases += [("accents", french, bare), ("accents", unicodedata.normalize("NFD", french), bare)]
    assert len(marks) == 19
    for fold, *spellings in cases:
        for each, is_same in (("none", False), (fold, True)):
            texts = [spelling.encode() for spelling in spellings]
            _, (one, other) = Shingler(ShingleParams(fold=each)).shingle_decoded(texts)
            assert (one == other) == is_same
    with pytest.raises(ParameterError, match="--no-normalize"):
        ShingleParams(fold="accents", normalize=False)


# --- where words stand ----------------------------------------------------------------------------

words = st.lists(st.sampled_from(["a", "Z", "ß", "ﬁ", "e\u0301", "é", "٣", "_"]), min_size=1)
gaps = st.lists(ignorable, max_size=3).map("".join)


@settings(max_examples=many(300))
@given(st.lists(words, min_size=1, max_size=8), st.data(), st.booleans(), st.booleans())
def test_a_word_stands_with_those_inside_only(pieces, data, normalize, keep_case):
    """However it is located: by the kernel, or from the normal form."""
    text, spans = "", []
    for word in pieces:
        text += data.draw(gaps) + " " + data.draw(gaps)
        joined = "".join(data.draw(gaps) * (at > 0) + c for at, c in enumerate("".join(word)))
        spans.append((len(text.encode()), len((text + joined).encode())))
        text += joined
    text += data.draw(gaps)
    located = locate_tokens(text.encode(), ShingleParams(normalize=normalize, keep_case=keep_case))
    assert list(zip(located.starts.tolist(), located.ends.tolist(), strict=True)) == spans


# --- words that hyphens break at the ends of lines ------------------------------------------------

pieces = st.sampled_from([
    "exam-\n", "ple", "é\u2010\r\n", " \tя", "-\n", "\u00ad\n", "a", "Z", "5", "漢", "a, ", "\n",
    "one-\ntwo-\nthree-\nfour ", "A-\nb", "x-\nB", "x- \ny", "\x0c\n", "\u00a0\n", "y\u2010z", "½",
])  # fmt: skip
broken = st.lists(pieces, max_size=60).map("".join)


@settings(max_examples=many(300))
@given(st.lists(broken, min_size=1, max_size=3), st.booleans(), st.booleans(), KINDS)
def test_sets_and_places_are_those_of_whole_words(texts, always, normalize, kind):
    params = ShingleParams(kind, normalize=normalize, join_hyphens=always)
    utf8 = [text.encode() for text in texts]
    made = Shingler(params).shingle(TextBatch.of(range(len(utf8)), utf8))
    for text, found in zip(texts, made.sets.sort(), strict=True):
        whole = text if kind == "terms" else reference.rejoined(text, always)
        expected = reference.shingle_list(whole, params.tokens, params.k, normalize)
        assert found.tolist() == sorted(set(expected))
        tokens, _ = list_tokens(text.encode(), params)
        located = locate_tokens(text.encode(), params)
        form = reference.normal_form(whole, normalize)
        assert [token.decode() for token in tokens] == reference.TOKENS[kind](form)
        assert located.text == text.encode()
        if kind in ("char", "terms"):  # A token may be a part of a word, or a blank.
            continue
        for start, end, token in zip(located.starts, located.ends, tokens, strict=True):
            there = reference.rejoined(located.text[start:end].decode(), always=True)
            assert token.decode() in reference.normal_form(there, normalize)


def test_a_text_is_the_same_however_its_lines_are_broken():
    for name in ("eng", "fra", "rus"):
        text = Path(f"sample_corpus/udhr/{name}.txt").read_text().replace("-", " ")
        for width in (40, 60, 80):
            broken = [line for part in text.splitlines() for line in hyphenated(part, width)]
            lines = "\n  ".join(broken)
            spellings = [text.encode(), lines.encode()]
            sets, prints = Shingler(ShingleParams()).shingle_decoded(spellings)
            assert lines != text
            assert sets[0].tolist() == sets[1].tolist()
            assert prints[0] == prints[1]
        assert hide_hyphens(lines.encode(), ShingleParams(tokens="terms")) == lines.encode()


VERSE = "The curfew tolls the knell of part-\ning day, the lowing herd" + "\nla la" * 60
TABLE = "| well- | known |\n|---|---|\n" + "| a- | b |\na-\n| b |\n" * 9
CODE = "\n".join(["total = width -\\", "    height", "x = a-", "    b", *["y = 1"] * 40])


@pytest.mark.parametrize("text", [VERSE, TABLE, CODE])
def test_few_hyphens_at_the_ends_of_lines_break_no_word(text):
    """One in 20 lines, and three, do."""
    assert hide_hyphens(text.encode(), ShingleParams()) == text.encode()
    more = text + "\none-\ntwo-\nthree-\nfour" * len(text.splitlines())
    assert hide_hyphens(more.encode(), ShingleParams()) != more.encode()


def test_program_text_and_prose_of_this_project_break_no_word():
    files = (path for kind in ("lshdup", "docs", "sample_corpus") for path in Path(kind).rglob("*"))
    texts = [path.read_bytes() for path in files if path.suffix in (".py", ".md", ".txt")]
    assert len(texts) > 100
    assert all(hide_hyphens(text, ShingleParams()) == text for text in texts)


def test_parts_count_together_and_are_never_joined():
    params = ShingleParams()
    text = PART.join([b"on-\nly a", b"word-\nless gap-", b"\nwide o-\nk-"])
    assert list_tokens(text, params)[0] == b"only a wordless gap wide ok".split()
