"""`--tokens symbols`: words, numbers and every other visible character, in every command."""

import json

import numpy as np
import pytest

from lshdup import NearDuplicates
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import list_tokens, locate_tokens
from lshdup.shingling.shingler import Shingler
from tests import reference

LESS = "int f(int a, int b) { if (a < b) return -1; return a - b; }\n"
MORE = LESS.replace("<", ">").replace("-1", "+1")


def tokens_of(text, **options):
    found, _ = list_tokens(text.encode(), ShingleParams(tokens="symbols", **options))
    return [token.decode() for token in found]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("if (a < b) return -1", "if ( a < b ) return - 1"),
        ("3.5", "3 . 5"),
        ("3,5", "3 , 5"),
        ("x_1+=__y", "x_1 + = __y"),
        ("a==b // c", "a = = b / / c"),
        ("\tkey:\r\n  - 'value'\x00\x07", "key : - ' value '"),
        ("Größe=5€", "grösse = 5 €"),
        ("a\u00adb\u200bc \ufeff+\u2060=", "abc + ="),  # cannot be seen
        ("1\u06dd2\ufff93", "1 2 3"),  # formats are no tokens
        ("東京(タワー)", "東 京 ( タ ワ ー )"),
        ("⑴½…", "( 1 ) 1 ⁄ 2 . . ."),  # NFKC
        ("->\u0301x", "- >\u0301 x"),  # a mark belongs to the symbol before
        ("👍🏽👩\u200d💻❤\ufe0f", "👍 🏽 👩 💻 ❤"),
        ("\ue000\U0010ffff", "\ue000 \U0010ffff"),  # private use, unassigned
        ("\u0301a", "\u0301a"),
        (" \t\n\u00a0\u2028", ""),
    ],
)
def test_tokens(text, tokens):
    assert tokens_of(text) == tokens.split()
    assert reference.symbol_tokens(reference.normal_form(text)) == tokens.split()


def test_case_and_normal_form_are_those_of_the_options():
    assert tokens_of("If(A) =\u0338") == "if ( a ) ≠".split()
    assert tokens_of("If(A)", keep_case=True) == "If ( A )".split()
    assert tokens_of("½ =\u0338", normalize=False) == "½ =\u0338".split()


def test_what_words_do_not_tell_apart():
    for texts in ((LESS, MORE), ("3.5", "3,5"), ("a-b", "a b"), ("[1, 2]", "(1, 2)")):
        for tokens in ("word", "symbols"):
            shingler = Shingler(ShingleParams(tokens=tokens))
            a, b = shingler.shingle_texts([each.encode() for each in texts])
            assert (a.tolist() == b.tolist()) == (tokens == "word")


@pytest.mark.parametrize("size", [0, 1, 7, 62, 63, 64, 65, 127, 128, 129, 1000])
@pytest.mark.parametrize("pattern", ["+", "a", "a+", "+a ", " ++", "ab", "_-", "aA0!~ "])
def test_borders_of_words_of_64_bits(size, pattern):
    """The loop for ASCII takes 64 characters at a time."""
    text = (pattern * size)[:size]
    params = ShingleParams(tokens="symbols", k=2)
    (found,) = Shingler(params).shingle_texts([text.encode()])
    assert found.tolist() == sorted(set(reference.shingle_list(text, "symbols", 2)))


def test_tokens_stand_where_the_text_has_them():
    text = "Wert: ½ +x…"
    located = locate_tokens(text.encode(), ShingleParams(tokens="symbols"))
    places = zip(located.starts, located.ends, strict=True)
    there = [located.text[start:end].decode() for start, end in places]
    # One character becomes three tokens, and stands for each of them.
    assert there == ["Wert", ":", "½", "½", "½", "+", "x", "…", "…", "…"]


def test_the_class_interface():
    found = NearDuplicates([LESS, MORE, LESS.upper()], tokens="symbols", threshold=0.9)
    assert [pair[:2] for pair in found.pairs()] == [("0", "2")]


def test_the_store_knows_tokens_and_k(run, here):
    (here / "less.c").write_text(LESS)
    run("shingle less.c --tokens symbols")
    with np.load(here / ".lshdup/shingles.npz") as artifact:
        header = json.loads(bytes(artifact["header"]).decode())
    assert (header["shingle"]["tokens"], header["shingle"]["k"]) == ("symbols", 5)
