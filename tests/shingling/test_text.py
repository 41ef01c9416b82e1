"""Tokens, shingles and shingle sets against the reference."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lshdup.base.params import ShingleParams
from lshdup.base.ragged import RaggedSets
from lshdup.kernels.flags import HAS_HIGH
from lshdup.kernels.shingles import distinct_values
from lshdup.kernels.text import DONE, NOT_UTF8
from lshdup.shingling.inspection import RunLocator, locate_shingles, locate_tokens
from lshdup.shingling.shingler import Shingler, fingerprint_sets
from lshdup.text.text_batch import TextBatch
from tests import reference
from tests.conftest import many, part
from tests.documents import list_tokens
from tests.fuzz.texts import SPICY

texts = st.one_of(
    st.text(st.sampled_from(SPICY), max_size=40),
    st.text(st.sampled_from("ab C_~.яЯß«é漢。가…’\u0301\U0001f600"), min_size=50, max_size=250),
    st.text(st.sampled_from("abกดา\u0e31か゛ナ\uff85ー漢။ກខမ\u1780。・ (+"), max_size=60),
    st.text(max_size=40),
    st.text(st.characters(max_codepoint=127), max_size=300),
    st.text(st.sampled_from("aB-  \n\t\x0b\x1cé\u0301"), min_size=50, max_size=250),
)


def sets_of(texts, **params):
    return Shingler(ShingleParams(**params)).shingle_texts([text.encode() for text in texts])


def encodable(text):
    return text.encode("utf-8", "replace").decode()


KINDS = st.sampled_from(["word", "symbols", "char", "terms"])


@given(texts, KINDS)
def test_tokens_and_shingles_in_order(text, tokens):
    text = encodable(text)
    params = ShingleParams(tokens=tokens)
    found, shingles = list_tokens(text.encode(), params)
    expected = reference.TOKENS[tokens](reference.normal_form(text))
    assert [token.decode() for token in found] == expected
    assert shingles.tolist() == reference.shingle_list(text, tokens, params.k)
    assert sets_of([text], tokens=tokens)[0].tolist() == sorted(set(shingles.tolist()))
    counted = zip(expected) if tokens in ("char", "terms") else reference.reached(expected)
    ends = [at + len(each) for at, each in enumerate(counted)]
    located, k = locate_shingles(text.encode(), params), len(expected) - len(shingles) + 1
    assert located.begins.tolist() == list(range(len(shingles)))
    for at, size in enumerate(located.sizes.tolist()):
        assert at + size == max(ends[at : at + k])


@pytest.mark.parametrize("end", [0x20000, pytest.param(0x110000, marks=pytest.mark.long)])
def test_every_code_point_alone_and_between_letters(end):
    points = [c for c in range(end) if not 0xD800 <= c < 0xE000]
    points = points if end > 0x20000 else part(points, 4)
    for start in range(0, len(points), 50_000):
        texts = [f"x{chr(c)}y" for c in points[start : start + 50_000]]
        for text, found in zip(texts, sets_of(texts, k=1), strict=True):
            expected = set(reference.shingle_list(text, "word", 1))
            assert set(found.tolist()) == expected, hex(ord(text[1]))


def test_long_documents_of_every_kind():
    rng = random.Random(5)
    sizes = rng.choices([1, 2, 5, 8, 9, 16, 17, 40], k=3000)
    words = ["".join(rng.choices("abcdefghijklmnop_7", k=size)) for size in sizes]
    for alphabet in ("abc ", "ñandú ", "漢字かな", "กำแพง ๆ ", "Größe "):
        words += [rng.choice(alphabet) * rng.randint(1, 3) for _ in range(500)]
    rng.shuffle(words)
    texts = [" ".join(words), " ".join(words[:500]).upper(), "\n".join(words * 4)]
    texts += ["x" * 100_000, "a " * 70_000, "漢" * 40_000]
    for text, found in zip(texts, sets_of(texts), strict=True):
        assert found.tolist() == sorted(set(reference.shingle_list(text)))


PARTS = (
    b"word ", b"a", "я".encode(), "漢".encode(), "\U0001f600".encode(), b"x" * 59,
    b"\xd0", b"\x8f", b"\xe6", b"\xe6\xbc", b"\xff",
    b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
)  # fmt: skip


@settings(max_examples=many(300))
@given(st.lists(st.sampled_from(PARTS), max_size=40), st.booleans())
@example([b"x" * 59, b"aaa", "я".encode(), "漢".encode()], False)
@example([b"x" * 59, b"aaa", b"\xd0"], True)
def test_only_utf8_is_read_as_utf8(parts, valid):
    """Of overlong forms, surrogates, characters cut in two, and bytes that begin nothing, too."""
    text = b"".join(parts)
    if valid:
        text = text.decode("utf-8", "ignore").encode()
    batch = TextBatch.of(range(2), [text, b"\x8f\xbc\xa2 follows in memory"])
    flags = np.full(2, HAS_HIGH, np.uint8)
    made, outcomes = Shingler(ShingleParams())._run(batch, flags, 0)
    try:
        expected = set(reference.shingle_list(text.decode()))
    except UnicodeDecodeError:
        assert outcomes[0] == NOT_UTF8
        return
    assert outcomes[0] == DONE
    assert sorted(made.sets[0].tolist()) == sorted(expected)


def test_short_and_empty_documents():
    a, b = sets_of(["ab c", "a bc"], k=2)
    assert set(a.tolist()).isdisjoint(b.tolist())  # boundaries of tokens count
    sets = sets_of(["", "...", "one", "one two", "one two three", "one two three four"])
    assert sets.sizes.tolist() == [0, 0, 1, 1, 1, 2]
    assert len({tuple(each) for each in sets}) == 5


def test_lecture_hashes():
    """R2: the 3-shingles of abeabe under h = 31 h + c."""
    text = "abeabe"
    (found,) = sets_of([text], tokens="char", k=3, hash="poly31")
    assert found.tolist() == [96356, 97406, 100166]
    (bag,) = sets_of([text], tokens="char", k=3, hash="poly31", bag=True)
    assert len(bag) == 4  # abe twice
    (long,) = sets_of([text + "a"], tokens="char", k=7, hash="poly31")  # of 32 bits, as in Java
    assert long.tolist() == [sum(ord(c) * 31**i for i, c in enumerate("aebaeba")) % (1 << 32)]


def test_known_answers():
    """Shingle hashes are in every artifact: they must not change silently."""
    for text, k, hashes in (
        ("The quick brown fox", 3, [0x002DE00965B63620, 0xE92EF595E7DFB0FF]),
        ("zwölf Boxkämpfer jagen", 2, [0x25927B509D539FFB, 0x685F4E769D0BFA09]),
    ):
        assert sets_of([text], k=k)[0].tolist() == hashes


def test_ids():
    good = {b" 3 1\t2 3\n": [1, 2, 3], b"": [], b"18446744073709551615 0": [0, (1 << 64) - 1]}
    texts = [*good, b"18446744073709551616", b"1 x", b"-1", b"12,5"]
    batch = TextBatch.of(range(len(texts)), texts)
    made = Shingler(ShingleParams(tokens="ids")).shingle(batch)
    assert made.indices.tolist() == [0, 1, 2]
    assert [each.tolist() for each in made.sets.sort()] == list(good.values())
    skipped = [(index, str(reason)) for index, reason, _ in made.skipped]
    assert skipped == [(i, "not integers") for i in (3, 4, 5, 6)]


@settings(max_examples=many(200))
@given(st.lists(st.integers(0, 60), min_size=1, max_size=80), st.sampled_from([4, 16, 1 << 10]))
@example([*range(60), *range(60)], 4)  # 16 values win within the rounds, the others are sorted
def test_distinct_values_however_many_share_a_slot(numbers, slots):
    values = np.array(numbers, np.uint64)
    table, lost, out = np.empty(slots, np.int32), values.copy(), np.zeros_like(values)
    with np.errstate(over="ignore"):
        n = distinct_values(values, len(values), table, lost, out)
    assert sorted(out[:n].tolist()) == sorted(set(numbers))


def test_fingerprints_tell_sets_apart():
    rng = np.random.default_rng(2)
    texts = [" ".join(map(str, rng.integers(0, 4, rng.integers(0, 6)))) for _ in range(3000)]
    sets = sets_of(texts, k=2)
    prints = fingerprint_sets(sets, ShingleParams())
    assert len(set(prints.tolist())) == len({tuple(each.tolist()) for each in sets})
    assert all(p == 0 for p, each in zip(prints.tolist(), sets, strict=True) if not len(each))
    nothing = reference.PUBLIC[0]  # an id whose mixed form is 0: only the size of a set tells it
    ids = RaggedSets.from_sets([{5}, {5, nothing}, {nothing}, set()])
    assert len(set(fingerprint_sets(ids, ShingleParams(tokens="ids")).tolist())) == 4


# --- what tokens of scripts without spaces count for ----------------------------------------------

DECLARATIONS = sorted(Path("sample_corpus/udhr").glob("*.txt"))


def words_of(path):
    return [token.decode() for token in list_tokens(path.read_bytes(), ShingleParams())[0]]


def similarity(*words):
    return reference.jaccard(*(set(each.tolist()) for each in sets_of(map(" ".join, words))))


@pytest.mark.parametrize("path", DECLARATIONS, ids=lambda path: path.name)
def test_halves_of_a_text_are_not_similar(path):
    words = words_of(path)
    assert 0 < similarity(words[: len(words) // 2], words[len(words) // 2 :]) < 0.1


def test_changed_tokens_cost_about_as_much_in_all_scripts():
    """As the page of definitions says."""
    page = Path("docs/reference/definitions.md").read_text()
    rows = re.findall(r"^\| \w+, `(.+)` \| (.+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == ["eng.txt", "cmn_hans.txt", "jpn.txt", "tha.txt"]
    for name, figures in rows:
        words, rng = words_of(Path("sample_corpus/udhr", name)), random.Random(1)
        found = [similarity(words[: len(words) // 2], words[len(words) // 2 :])]
        for share in (0.01, 0.02, 0.05):
            changed = [list(words) for _ in range(10)]
            for each in changed:
                for at in rng.sample(range(len(words)), round(share * len(words))):
                    each[at] = rng.choice(words)
            found.append(np.mean([similarity(words, each) for each in changed]))
        assert [f"{each:.2f}" for each in found] == figures.split(" | ")


# --- runs of tokens of plain texts are located as `locate_tokens` locates those of one text -------

run_letters = st.sampled_from("aBz ,.\n_'ßÉé½ĳ日本กฺﬁ\u0301\u00ad\ufe0f\u3164\u2028İ😀")
run_texts = st.lists(st.one_of(st.text(run_letters, max_size=90), st.text(max_size=20)), max_size=5)
run_params = st.builds(ShingleParams, KINDS, keep_case=st.booleans(), normalize=st.booleans())


@settings(max_examples=many(300))
@given(run_texts, run_params, st.booleans(), st.randoms(use_true_random=False))
def test_runs_are_where_their_tokens_are(documents, params, alone, chance):
    utf8 = [each.encode() for each in documents]
    located = [locate_tokens(each, params) for each in utf8]

    def run_of(n):
        first = chance.randrange(n + 1)
        return first, chance.randrange(1, n - first + 2)

    runs = [sorted(run_of(len(each.starts)) for _ in range(3)) for each in located]
    first, sizes = np.array([run for each in runs for run in each], np.int64).reshape(-1, 2).T
    bounds = 3 * np.arange(len(runs) + 1)
    begins, ends, is_plain = RunLocator(params).locate(
        TextBatch.of(range(len(utf8)), utf8), bounds, first.copy(), sizes.copy(), alone=alone
    )
    for d, each in enumerate(located):
        for i, (at, size) in enumerate(runs[d]):
            expected = (-1, -1)
            if is_plain[d] and at + size <= len(each.starts):
                begin, end = each.starts[at], each.ends[at + size - 1]
                if alone:
                    begin = max([begin, *each.ends[at - 1 : at]] if at else [begin])
                    end = max(begin, min([end, *each.starts[at + size : at + size + 1]]))
                expected = begin, end
            assert (begins[3 * d + i], ends[3 * d + i]) == expected
    if not any(set(each) - set("aBz ,._") for each in documents):
        assert is_plain.all()


def test_runs_behind_the_last_token_hide_none_before_it():
    """As of a document that has changed since its runs were found."""
    bounds, first, sizes = np.array([0, 3]), np.array([0, 1, 2]), np.array([4, 1, 2])
    batch = TextBatch.of(range(1), [b"one two three"])
    begins, ends, _ = RunLocator(ShingleParams()).locate(batch, bounds, first, sizes, alone=False)
    assert list(zip(begins, ends, strict=True)) == [(-1, -1), (4, 7), (-1, -1)]
