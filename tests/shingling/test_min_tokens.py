"""--min-tokens: smaller documents are not compared, wherever documents come from."""

from pathlib import Path

import numpy as np
import pytest

import lshdup
from lshdup.params import ShingleParams
from lshdup.shingling.shingler import Shingler
from lshdup.sources.reading import TextBatch
from tests.reference import TOKENS, normal_form

LARGE = "one two three four five six seven eight nine ten"
SMALL = "a few words"


@pytest.mark.parametrize("tokens", ["word", "symbols", "char", "terms"])
@pytest.mark.parametrize("bag", [False, True])
def test_sets_of_small_texts_are_empty_and_others_unchanged(tokens, bag):
    texts = ["", "x", "the the the the", "Größe, größe; 漢字!", f"{LARGE}. {LARGE}", "a b c d e"]
    counts = [len(TOKENS[tokens](normal_form(text))) for text in texts]
    batch = TextBatch.of(range(len(texts)), [text.encode() for text in texts])
    for least in (0, 1, 4, 5, max(counts), max(counts) + 1):
        params = [ShingleParams(tokens, 2, bag=bag, min_tokens=each) for each in (0, least)]
        whole, made = (Shingler(each).shingle(batch) for each in params)
        for at, count in enumerate(counts):
            expected = whole.sets[at] if count >= least else np.zeros(0, np.uint64)
            assert np.array_equal(made.sets[at], expected), (texts[at], least)
        assert np.array_equal(made.text_prints, whole.text_prints)


def test_the_class_interface(here):
    texts = {f"large{n}": f"{LARGE} {n}" for n in range(2)} | {"small0": SMALL, "small1": SMALL}
    (here / "d").mkdir()
    for name, text in (texts | {"empty": "..."}).items():
        (here / "d" / name).write_text(text)
    for documents in (texts, here / "d"):
        found = lshdup.NearDuplicates(documents, threshold=0.5, min_tokens=4)
        assert [{Path(a).name, Path(b).name} for a, b, _ in found.pairs()] == [{"large0", "large1"}]
