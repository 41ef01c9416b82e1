"""Characters that cannot be seen cut no words; texts that are folded are without theirs."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lshdup.errors import ParameterError
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import locate_tokens
from lshdup.shingling.normalization import IGNORABLE_RANGES
from lshdup.shingling.shingler import Shingler
from tests import reference
from tests.conftest import many, part
from tests.documents import list_tokens
from tests.shingling.test_text import encodable, texts

IGNORABLE = [chr(c) for low, high in IGNORABLE_RANGES for c in range(low, high + 1)]
ignorable = st.sampled_from("\u00ad\u034f\u115f\u180b\u200b\u200d\u202e\u3164\ufe0f\ufeff\uffa0")
ignorable |= st.sampled_from(IGNORABLE)
PARAMS = st.builds(
    ShingleParams,
    tokens=st.sampled_from(["word", "symbols", "char", "terms"]),
    k=st.integers(1, 5),
    normalize=st.booleans(),
    keep_case=st.booleans(),
    fold=st.sampled_from(["none", "marks"]),
) | st.builds(ShingleParams, k=st.integers(1, 3), keep_case=st.booleans(), fold=st.just("accents"))


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
    "が",
]  # fmt: skip
FOLDED += [
    "ب", "\u064e", "\u0651", "أ", "ا\u064e\u0654", "ا\u06d6\u0654", "ﱞ", "ﹱ", "שּׁ", "\u05b8", "ﬞ",
    " ",
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
