"""Texts of several parts: no shingle has tokens of two of them."""

from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.forms import PART, SEAL, split_parts, visible_text
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


PARAMS = st.builds(
    ShingleParams,
    tokens=st.sampled_from(TOKENS),
    k=st.integers(1, 5),
    bag=st.booleans(),
    secret=st.sampled_from([b"", b"key"]),
)


@settings(max_examples=many(300), deadline=None)
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


@settings(max_examples=many(100), deadline=None)
@given(documents, st.sampled_from(TOKENS))
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
