"""`LSHDUP_HASH_KEY`: nothing that is prepared against the public hash works with a key."""

import random

import numpy as np
import pytest

from lshdup.base.params import ShingleParams, key_name
from lshdup.errors import ParameterError
from lshdup.shingling.shingler import Shingler, fingerprint_sets
from lshdup.text.text_batch import TextBatch
from tests import reference

KEY = "correct horse battery staple"


def unmixed(x):
    """The inverse of `reference.mix64`."""
    x ^= x >> 31 ^ x >> 62
    x = x * pow(0x94D049BB133111EB, -1, 1 << 64) & reference.MASK
    x ^= x >> 27 ^ x >> 54
    x = x * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & reference.MASK
    return x ^ x >> 30 ^ x >> 60


def colliding_words(count):
    """Pairs of words of sixteen letters whose public hashes are equal, in a second or so."""
    seen, found = {}, []
    letters = str.maketrans("0123456789", "ghijklmnop")
    number = 0
    while len(found) < count:
        first = f"{number:08x}".translate(letters)
        number += 1
        h = reference.token_hash(first)
        other, h2 = seen.setdefault(h & 0xE0E0E0E0E0E0E0E0, (first, h))
        word = (int.from_bytes(b"aaaaaaaa", "little") ^ h ^ h2).to_bytes(8, "little")
        if other != first and word.isalpha() and word.islower():
            found.append((first + "aaaaaaaa", other + word.decode()))
    return found


def colliding_ids(rng, size):
    """Two id lists without a common element whose public fingerprints are equal."""

    def mixed(x):
        return reference.mix64(x ^ reference.PUBLIC[0])

    a, b = ([rng.randrange(1 << 64) for _ in range(size)] for _ in range(2))
    rest = sum(map(mixed, a)) - sum(map(mixed, b[1:])) & reference.MASK
    b[0] = unmixed(rest) ^ reference.PUBLIC[0]
    return a, b


def thue_morse(levels):
    """Two sequences of 2^levels letters whose polynomials agree in low bits for any odd factor."""
    word = [at.bit_count() & 1 for at in range(1 << levels)]
    return ["".join("ab"[bit ^ flip] for bit in word) for flip in (0, 1)]


def test_words_that_collide(run, tmp_path):
    """Of three words each, all different: one text without a key, and not alike with one."""
    (tmp_path / "d").mkdir()
    for name, text in zip("ab", zip(*colliding_words(3), strict=True), strict=True):
        (tmp_path / "d" / name).write_text(" ".join(text))
    # What the README does not promise:
    assert [row[2] for row in run("pairs d --no-store").rows] == ["1.0"]
    for options in ([], ["--exact"], ["-k", "1"], ["--tokens", "char"], ["--bag"]):
        assert run("pairs d -t 0.5 --no-store --hash-key", KEY, *options).rows == []
    assert run("pairs d --no-store", env={"LSHDUP_HASH_KEY": KEY}).rows == []


def test_id_lists_that_collide(run, tmp_path):
    a, b = colliding_ids(random.Random(1), 50)
    half = [*a[:25], *b[25:]]
    lists = zip("abc", (a, b, half), strict=True)
    lines = (f"{name} {' '.join(map(str, ids))}\n" for name, ids in lists)
    (tmp_path / "ids").write_text("".join(lines))
    # Not promised either:
    assert run("pairs ids --tokens ids --no-store").rows[0] == ["a", "b", "1.0", ""]
    found = run("pairs ids --tokens ids --no-store -t 0.1 --hash-key", KEY).rows
    found = {(row[0], row[1]): float(row[2]) for row in found}
    assert found == {("a", "c"): 1 / 3, ("b", "c"): 1 / 3}


def test_sequences_that_collide_whatever_the_factor():
    """A hidden factor would not do: these would still agree in 53 of 64 bits."""
    params = {"tokens": "char", "k": 512}
    texts = [text.encode() for text in thue_morse(9)]
    for secret in (b"", *(b"%d" % number for number in range(20))):
        shingler = Shingler(ShingleParams(**params, secret=secret))
        one, other = (int(each[0]) for each in shingler.shingle_texts(texts))
        assert bool((one ^ other) & ((1 << 53) - 1)) == bool(secret)


OPTIONS = [{}, {"k": 1}, {"bag": True}, {"tokens": "char"}, {"tokens": "terms", "k": 2}]


@pytest.mark.parametrize("options", OPTIONS)
def test_sets_with_a_key_are_what_the_reference_says(options):
    text = "the same words again and the same words again, Größe 漢字 internationalisation a b a b"
    values = {}
    for secret in (b"", b"one", b"other"):
        params = ShingleParams(**options, secret=secret)
        expected = reference.shingle_list(text, params.tokens, params.k, secret=secret)
        expected = reference.as_bag(expected, secret) if params.bag else set(expected)
        (found,) = Shingler(params).shingle_texts([text.encode()])
        assert found.tolist() == sorted(expected)
        values[secret] = expected
    sizes = {len(each) for each in values.values()}
    assert len(sizes) == 1
    assert len(set().union(*values.values())) == 3 * sizes.pop()  # nothing in common


def test_fingerprints_with_a_key():
    ids = " ".join(map(str, range(100))).encode()
    prints = set()
    for secret in (b"", b"one", b"other"):
        params = ShingleParams(tokens="ids", secret=secret)
        sets = Shingler(params).shingle(TextBatch.of([0, 1], [ids, ids])).sets.sort()
        assert sets[0].tolist() == list(range(100))  # ids are themselves
        first, second = fingerprint_sets(sets, params).tolist()
        assert first == second
        prints.add(first)
    assert len(prints) == 3


def test_a_known_answer():
    """What artifacts with a key hold must not change silently."""
    (found,) = Shingler(ShingleParams(secret=b"key")).shingle_texts([b"one two three four"])
    assert found.tolist() == KNOWN
    assert key_name(b"key") == KNOWN_NAME


KNOWN, KNOWN_NAME = [15592200375610033154, 17599712476384360436], "97367e6d25413d2d7a84991f99310932"


def test_keys_that_are_none():
    with pytest.raises(ParameterError, match="poly31 takes no key"):
        ShingleParams(tokens="char", hash="poly31", secret=b"x")
    params = ShingleParams(secret=b"x")
    assert "x" not in repr(params).replace("max", "").replace("mix", "")
    assert params == ShingleParams.from_json(params.to_json())
    assert params != ShingleParams(secret=b"y")
    with pytest.raises(ParameterError, match="LSHDUP_HASH_KEY"):
        Shingler(ShingleParams.from_json(params.to_json()))
    with pytest.raises(ParameterError):
        ShingleParams.from_json(params.to_json() | {"key": "x"})
    given_later = ShingleParams(key=params.key).with_secret(b"x")
    made = (Shingler(each).shingle_texts([b"a b"]).values for each in (params, given_later))
    assert np.array_equal(*made)
