"""Words that hyphens break at the ends of lines."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.forms import PART
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import locate_tokens
from lshdup.shingling.normalization import hide_hyphens
from lshdup.shingling.shingler import Shingler
from lshdup.sources.text_batches import TextBatch
from tests import reference
from tests.conftest import many
from tests.documents import list_tokens
from tests.office import hyphenated
from tests.shingling.test_text import KINDS

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
        located, form = (
            locate_tokens(text.encode(), params),
            reference.normal_form(whole, normalize),
        )
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
