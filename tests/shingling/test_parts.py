"""Texts of several parts: no shingle has tokens of two of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.parts import PART, SEAL, split_parts, visible_text
from lshdup.base.skipped import Reason
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import list_shingles, list_tokens, locate_tokens
from lshdup.shingling.shingler import Shingler
from lshdup.sources.reading import TextBatch
from tests import reference
from tests.conftest import many
from tests.shingling.test_text import encodable, texts

TOKENS = ["word", "symbols", "char", "terms"]
documents = st.tuples(
    st.lists(texts.map(encodable), min_size=1, max_size=4), st.sampled_from(["", "0f", "f0 x"])
)


def encode(parts, sealed=""):
    text = PART.join(part.encode() for part in parts)
    return text + SEAL + sealed.encode() if sealed else text


@settings(max_examples=many(300), deadline=None)
@given(
    st.lists(documents, max_size=4),
    st.sampled_from(TOKENS),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([b"", b"key"]),
)
def test_sets_and_fingerprints_are_those_of_the_parts(documents, tokens, k, bag, secret):
    params = ShingleParams(tokens=tokens, k=k, bag=bag, secret=secret)
    data = [encode(*document) for document in documents]
    sets, prints = Shingler(params).shingle_decoded(data)
    for text, (parts, sealed), found, print_ in zip(data, documents, sets, prints, strict=True):
        shingles = [
            shingle
            for part in parts
            for shingle in reference.shingle_list(part, tokens, k, secret=secret)
        ]
        expected = reference.as_bag(shingles, secret) if bag else set(shingles)
        assert found.tolist() == sorted(expected)
        options = {"tokens": tokens, "secret": secret}
        assert print_ == reference.text_fingerprint(*parts, sealed=sealed, **options)
        assert list_tokens(text, params)[1].tolist() == shingles
        assert sorted(element for element, _, _ in list_shingles(text, params)) == sorted(expected)


@settings(max_examples=many(100), deadline=None)
@given(documents, st.sampled_from(TOKENS))
def test_tokens_of_parts_are_located(document, tokens):
    params = ShingleParams(tokens=tokens)
    located = locate_tokens(encode(*document), params)
    places = zip(located.starts.tolist(), located.ends.tolist(), strict=True)
    there = [located.text[start:end] for start, end in places]
    alone = [locate_tokens(part.encode(), params) for part in document[0]]
    assert there == [
        each.text[start:end]
        for each in alone
        for start, end in zip(each.starts.tolist(), each.ends.tolist(), strict=True)
    ]
    assert located.tokens.tolist() == [token for each in alone for token in each.tokens.tolist()]


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
