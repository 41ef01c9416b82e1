"""What "the same" means: fingerprints of bytes and of token sequences, the column, and `--same`."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.params import ShingleParams
from lshdup.compare.sides import LEVELS, Fingerprints
from lshdup.shingling.shingler import Shingler, fingerprint_bytes
from lshdup.text.text_batch import TextBatch
from tests import reference
from tests.conftest import RUN, many

words = st.sampled_from(["a", "bee", "See", "3.5", "3,5", "<", ">", "ö", "\n"])


def made_of(texts, **params):
    made = Shingler(ShingleParams(**params)).shingle(TextBatch.of(range(len(texts)), texts))
    made.sets.sort()
    return made


def levels_of(texts, **params):
    """Return (words of LEVELS, equal sets) of all pairs, by the program."""
    made = made_of(texts, **params)
    prints = Fingerprints(made.columns["byte_prints"], made.columns["text_prints"])
    n = len(texts)
    pairs = {}
    for a, b in combinations(range(n), 2):
        (level,) = prints.compare(np.array([a]), np.array([b])).tolist()
        pairs[a, b] = LEVELS[level], made.sets[a].tolist() == made.sets[b].tolist()
    return pairs


# --- fingerprints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [b"", b"key"])
def test_fingerprints_of_bytes_are_those_of_the_slow_program(secret):
    rng = np.random.default_rng(1)
    documents = [bytes(rng.integers(0, 256, n, np.uint8)) for n in [*range(100), 1000, 4097]]
    found = fingerprint_bytes(TextBatch.of(range(102), documents), ShingleParams(secret=secret))
    expected = [reference.byte_fingerprint(each, secret) for each in documents]
    assert found.tolist() == expected
    assert len(set(expected)) == 102
    # Length is part of it: zeros behind a document do not vanish in the last word.
    zeros = [bytes(n) for n in range(70)]
    prints = fingerprint_bytes(TextBatch.of(range(70), zeros), ShingleParams()).tolist()
    assert len(set(prints)) == 70
    assert 0 not in prints


@pytest.mark.parametrize(
    "params",
    [
        {}, {"keep_case": True}, {"normalize": False}, {"tokens": "symbols"}, {"tokens": "char"},
        {"tokens": "terms"}, {"k": 1}, {"secret": b"key"}, {"bag": True},
    ],
    ids=str,
)  # fmt: skip
def test_fingerprints_of_texts_are_those_of_the_slow_program(params):
    texts = ["", "one", "One TWO three four five", "ﬁne ｆｕｌｌ Straße"]
    texts += ["日本語と the rest", "a\u0308 b"]
    texts += [" ".join(f"w{i % 7}" for i in range(n)) for n in range(40)]
    found = made_of([text.encode() for text in texts], **params).columns["text_prints"]
    options = {name: value for name, value in params.items() if name not in ("k", "bag")}
    assert found.tolist() == [reference.text_fingerprint(text, **options) for text in texts]


def test_no_two_texts_of_few_words_have_one_fingerprint():
    """All sequences of up to eight of three words, and one word at each place of four lanes."""
    texts = {" ".join(words) for n in range(1, 9) for words in product("abc", repeat=n)}
    for n in (16, 17, 33):
        texts |= {" ".join("b" if i == at else "a" for i in range(n)) for at in range(n + 1)}
    prints = made_of([text.encode() for text in sorted(texts)]).columns["text_prints"]
    assert len(set(prints.tolist())) == len(texts) == 3 * (3**8 - 1) // 2 + 17 + 18 + 34


@pytest.mark.parametrize("secret", [b"", b"key"])
def test_a_changed_bit_of_a_lane_is_not_changed_back_by_its_next_word(secret):
    """Bit 34 of a word is turned to bit 63, which no odd factor moves."""
    for length, word in ((n, w) for n in (40, 48, 72, 96, 100) for w in range(0, n - 39, 8)):
        first = bytearray((b"a word. of text. " * 8)[:length])
        first[word + 4], first[word + 39] = b". "
        second = bytearray(first)
        second[word + 4], second[word + 39] = ord("*"), 0xA0
        batch = TextBatch.of(range(2), [bytes(first), bytes(second)])
        prints = fingerprint_bytes(batch, ShingleParams(secret=secret))
        assert prints[0] != prints[1]
    ids = np.arange(5, 14, dtype=np.uint64)
    changed = ids ^ np.array([0, 1 << 34, 0, 0, 0, 1 << 63, 0, 0, 0], np.uint64)
    texts = [" ".join(map(str, each.tolist())).encode() for each in (ids, changed)]
    prints = made_of(texts, tokens="ids", k=1, secret=secret).columns["text_prints"]
    assert prints[0] != prints[1] != 0


@pytest.mark.parametrize("secret", [b"", b"key"])
def test_bits_changed_in_two_words_of_a_lane_are_told_apart(secret):
    """All pairs of one bit of a word and one of the next in its lane, or either alone."""
    documents = [bytes(40)]
    for first in range(65):
        for second in range(65):
            if first < 64 or second < 64:
                words = [(1 << first) % (1 << 64), 0, 0, 0, (1 << second) % (1 << 64)]
                documents.append(b"".join(word.to_bytes(8, "little") for word in words))
    batch = TextBatch.of(range(len(documents)), documents)
    prints = fingerprint_bytes(batch, ShingleParams(secret=secret))
    assert len(set(prints.tolist())) == len(documents) == 65 * 65


@settings(max_examples=many(200))
@given(
    st.lists(
        st.tuples(st.lists(words, max_size=9), st.sampled_from([" ", "  ", ". "])),
        min_size=2,
        max_size=6,
    )
)
def test_laws(parts):
    texts = [separator.join(words).encode() for words, separator in parts]
    tokens = [reference.word_tokens(reference.normal_form(text.decode())) for text in texts]
    for (a, b), (level, same_set) in levels_of(texts).items():
        same_text = bool(tokens[a]) and tokens[a] == tokens[b]
        assert (level is not None) == same_text
        assert (level == "bytes") == (same_text and texts[a] == texts[b])
        assert same_set or not same_text


def test_keys_are_equal_where_documents_are_the_same():
    rng = np.random.default_rng(2)
    prints = Fingerprints(*(rng.integers(0, 4, 200).astype(np.uint64) for _ in range(2)))
    sizes = rng.integers(0, 3, 200)
    for same, least in (("text", 1), ("bytes", 2)):
        keys = prints.keys(RUN, same, sizes)
        for a, b in combinations(range(200), 2):
            level = int(prints.compare(np.array([a]), np.array([b]))[0])
            expected = level >= least and sizes[a] > 0 < sizes[b]
            assert (keys[a] == keys[b] != 0) == expected
