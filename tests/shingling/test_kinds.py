"""Symbols as tokens, documents of few tokens, and texts of several parts."""

import unicodedata
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup import NearDuplicates
from lshdup.base.forms import PART, SEAL, split_parts, visible_text
from lshdup.base.params import ShingleParams
from lshdup.base.skipped import Reason
from lshdup.shingling.inspection import list_shingles, locate_tokens
from lshdup.shingling.shingler import Shingler
from lshdup.text.text_batch import TextBatch
from tests import reference
from tests.conftest import many, write_files
from tests.documents import list_tokens
from tests.shingling.test_normalization import IGNORABLE
from tests.shingling.test_text import KINDS, encodable, texts

# --- `--tokens symbols`: words, numbers and every other visible character -------------------------

LESS = "int f(int a, int b) { if (a < b) return -1; return a - b; }\n"
MORE = LESS.replace("<", ">").replace("-1", "+1")


def tokens_of(text, tokens="symbols", **options):
    found, _ = list_tokens(text.encode(), ShingleParams(tokens, **options))
    return [token.decode() for token in found]


@pytest.mark.parametrize(
    ("kind", "text", "tokens"),
    [
        ("symbols", "if (a < b) return -1", "if ( a < b ) return - 1"), ("symbols", "3.5", "3 . 5"),
        ("symbols", "3,5", "3 , 5"), ("symbols", "x_1+=__y", "x_1 + = __y"),
        ("symbols", "a==b // c", "a = = b / / c"),
        ("symbols", "\tkey:\r\n  - 'value'\x00\x07", "key : - ' value '"),
        ("symbols", "Größe=5€", "grösse = 5 €"),
        ("symbols", "a\u00adb\u200bc \ufeff+\u2060=", "abc + ="),  # cannot be seen
        ("symbols", "1\u06dd2\ufff93", "1 2 3"),  # formats are no tokens
        ("symbols", "東京(タワー)", "東 京 ( タ ワ ー )"),
        ("symbols", "⑴½…", "( 1 ) 1 ⁄ 2 . . ."),  # NFKC
        ("symbols", "->\u0301x", "- >\u0301 x"),  # a mark belongs to the symbol before
        ("symbols", "👍🏽👩\u200d💻❤\ufe0f", "👍 🏽 👩 💻 ❤"),
        ("symbols", "\ue000\U0010ffff", "\ue000 \U0010ffff"),  # private use, unassigned
        ("symbols", "\u0301a", "\u0301a"), ("symbols", " \t\n\u00a0\u2028", ""),
        ("word", "Donau\u00addampf\u00adschiff", "donaudampfschiff"),
        ("word", "a\u200bb\u2060c\ufeffd \u200ee", "abcd e"), ("word", "می\u200cخواهم", "میخواهم"),
        ("word", "क्\u200dष", "क्ष"), ("word", "葛\U000e0100飾 ⛩\ufe0f", "葛 飾"),
        ("word", "cafe\u00ad\u0301 e\u0301\u034f\u0316", "café é̖"),  # composed, and put in order
        ("word", "a\u0315\u034f\u0316", "a\u0316\u0315"),
        ("word", "\u1112\u115f\u1161\u3164\u11ab", "한"), ("word", "ក\u17b4\u17d2រ", "ក្ រ"),
        ("word", "\u00ad\u0301a \U000e0041\u2065\ufff0b", "\u0301a b"),
        ("word", "\ufeff\u200b \u00ad", ""),
        ("word", "١\u0600٢ a\ufff9b", "١ ٢ a b"),  # formats that can be seen cut
        ("word", "ที่นี่ 東京タワー", "ที่ นี่ 東 京 タ ワ ー"),  # marks stay with their base
        ("char", " a \t\n b\u00a0c ", "a b c"),
    ],
)  # fmt: skip
def test_tokens(kind, text, tokens):
    tokens = unicodedata.normalize("NFC", tokens)
    expected = list(tokens) if kind == "char" else tokens.split()
    assert tokens_of(text, tokens=kind) == expected
    assert reference.TOKENS[kind](reference.normal_form(text)) == expected
    plain = "".join(c for c in text if c not in IGNORABLE)
    for normalize in (False, True):
        options = {"tokens": kind, "normalize": normalize}
        assert tokens_of(text, **options) == tokens_of(plain, **options)


def test_case_and_normal_form_are_those_of_the_options():
    assert tokens_of("If(A) =\u0338") == "if ( a ) ≠".split()
    assert tokens_of("If(A)", keep_case=True) == "If ( A )".split()
    assert tokens_of("½ =\u0338", normalize=False) == "½ =\u0338".split()


def test_what_words_do_not_tell_apart():
    for pair in ((LESS, MORE), ("3.5", "3,5"), ("a-b", "a b"), ("[1, 2]", "(1, 2)")):
        for tokens in ("word", "symbols"):
            shingler = Shingler(ShingleParams(tokens=tokens))
            a, b = shingler.shingle_texts([each.encode() for each in pair])
            assert (a.tolist() == b.tolist()) == (tokens == "word")


@pytest.mark.parametrize("size", [0, 1, 7, 62, 63, 64, 65, 127, 128, 129, 1000])
@pytest.mark.parametrize("pattern", ["+", "a", "a+", "+a ", " ++", "ab", "_-", "aA0!~ ", "a\n \t"])
@pytest.mark.parametrize("tokens", ["symbols", "char"])
def test_borders_of_words_of_64_bits(size, pattern, tokens):
    """The loops for ASCII take 64 characters at a time."""
    text = (pattern * size)[:size]
    params = ShingleParams(tokens=tokens, k=2)
    (found,) = Shingler(params).shingle_texts([text.encode()])
    assert found.tolist() == sorted(set(reference.shingle_list(text, tokens, 2)))


def test_tokens_stand_where_the_text_has_them():
    text = "Wert: ½ +x…"
    located = locate_tokens(text.encode(), ShingleParams(tokens="symbols"))
    places = zip(located.starts, located.ends, strict=True)
    there = [located.text[start:end].decode() for start, end in places]
    # One character becomes three tokens, and stands for each of them.
    assert there == ["Wert", ":", "½", "½", "½", "+", "x", "…", "…", "…"]


def test_symbols_of_the_class_interface():
    found = NearDuplicates([LESS, MORE, LESS.upper()], tokens="symbols", threshold=0.9)
    assert [pair[:2] for pair in found.pairs()] == [("0", "2")]


# --- `--min-tokens`: smaller documents are not compared -------------------------------------------

LARGE = "one two three four five six seven eight nine ten"
SMALL = "a few words"


@pytest.mark.parametrize("tokens", ["word", "symbols", "char", "terms"])
@pytest.mark.parametrize("bag", [False, True])
def test_sets_of_small_texts_are_empty_and_others_unchanged(tokens, bag):
    texts = ["", "x", "the the the the", "Größe, größe; 漢字!", f"{LARGE}. {LARGE}", "a b c d e"]
    counts = [len(reference.TOKENS[tokens](reference.normal_form(text))) for text in texts]
    batch = TextBatch.of(range(len(texts)), [text.encode() for text in texts])
    for least in (0, 1, 4, 5, max(counts), max(counts) + 1):
        params = [ShingleParams(tokens, 2, bag=bag, min_tokens=each) for each in (0, least)]
        whole, made = (Shingler(each).shingle(batch) for each in params)
        for at, count in enumerate(counts):
            expected = whole.sets[at] if count >= least else np.zeros(0, np.uint64)
            assert np.array_equal(made.sets[at], expected), (texts[at], least)
        assert np.array_equal(made.columns["text_prints"], whole.columns["text_prints"])


def test_small_documents_of_the_class_interface(here):
    texts = {f"large{n}": f"{LARGE} {n}" for n in range(2)} | {"small0": SMALL, "small1": SMALL}
    write_files(here / "d", texts | {"empty": "..."})
    for documents in (texts, here / "d"):
        found = NearDuplicates(documents, threshold=0.5, min_tokens=4)
        assert [{Path(a).name, Path(b).name} for a, b, _ in found.pairs()] == [{"large0", "large1"}]


# --- no shingle has tokens of two parts -----------------------------------------------------------

# Hyphens at the ends of lines are counted over all parts: `test_parts_count_together…`.
plain = texts.map(encodable).filter(lambda text: reference.rejoined(text, always=True) == text)
parts = st.lists(plain, min_size=1, max_size=4)
documents = st.tuples(parts, st.sampled_from(["", "0f", "f0 x"]))


def encode(parts, sealed=""):
    text = PART.join(part.encode() for part in parts)
    return text + SEAL + sealed.encode() if sealed else text


secrets = st.sampled_from([b"", b"key"])
PARAMS = st.builds(ShingleParams, KINDS, st.integers(1, 5), bag=st.booleans(), secret=secrets)


@settings(max_examples=many(300))
@given(st.lists(documents, max_size=4), PARAMS)
def test_sets_and_fingerprints_are_those_of_the_parts(documents, params):
    options = {"tokens": params.tokens, "secret": params.secret}
    data = [encode(*document) for document in documents]
    sets, prints = Shingler(params).shingle_decoded(data)
    for text, (parts, sealed), found, print_ in zip(data, documents, sets, prints, strict=True):
        lists = (reference.shingle_list(part, k=params.k, **options) for part in parts)
        shingles = list(chain(*lists))
        expected = reference.as_bag(shingles, params.secret) if params.bag else set(shingles)
        assert found.tolist() == sorted(expected)
        assert print_ == reference.text_fingerprint(*parts, sealed=sealed, **options)
        assert list_tokens(text, params)[1].tolist() == shingles
        assert sorted(element for element, _, _ in list_shingles(text, params)) == sorted(expected)


@given(documents, KINDS)
def test_tokens_of_parts_are_located(document, tokens):
    def located(text):
        found = locate_tokens(text, ShingleParams(tokens=tokens))
        places = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
        words = [found.text[start:end] for start, end in places]
        return list(zip(words, found.tokens.tolist(), strict=True))

    alone = [located(part.encode()) for part in document[0]]
    assert located(encode(*document)) == list(chain(*alone))


def test_shingles_of_parts_as_people_see_them():
    text = encode(["a b", "c d e f", "", "a b"], "0f")
    rows = list_shingles(text, ShingleParams())
    assert [words for _, _, words in rows] == [b"a b", b"c d e", b"d e f"]
    assert visible_text(text) == b"a b\n\nc d e f\n\n\n\na b"
    assert split_parts(text) == [b"a b", b"c d e f", b"", b"a b"]


def test_parts_without_tokens_change_nothing():
    same = [encode(each) for each in (["a b c"], ["", "a b c"], ["a b c", " .\n", ""])]
    sets, prints = Shingler(ShingleParams()).shingle_decoded(same)
    assert len({tuple(each) for each in sets}) == len(set(prints)) == 1


def test_small_documents_are_counted_without_what_is_sealed():
    data = [encode(["a b", "c"], "x y z"), encode(["a b", "c d"])]
    sets = Shingler(ShingleParams(min_tokens=4)).shingle_texts(data)
    assert sets.sizes.tolist() == [0, 2]


def test_a_file_with_the_bytes_of_a_border_has_one_part():
    """They are letters, and characters that nobody sees, of another encoding."""
    raw = [b"one two three" + border + b"four five six" for border in (PART, SEAL)]
    made = Shingler(ShingleParams(encoding="latin-1")).shingle(TextBatch.of(range(2), raw))
    for data, found in zip(raw, made.sets, strict=True):
        assert set(found.tolist()) == set(reference.shingle_list(data.decode("latin-1")))
    guessed = Shingler(ShingleParams()).shingle(TextBatch.of(range(1), raw[:1]))
    assert [reason for _, reason, _ in guessed.skipped] == [Reason.BINARY]
