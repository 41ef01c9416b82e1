"""What "the same" means: fingerprints of bytes and of token sequences, the column, and `--same`."""

import gzip
import hashlib
import json
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.run import Run
from lshdup.collection.collect import collect
from lshdup.compare.fingerprints import LEVELS, Fingerprints
from lshdup.params import DocumentParams, ShingleParams
from lshdup.shingling.shingler import Shingler, fingerprint_bytes
from lshdup.sources.document_list import DocumentList
from lshdup.sources.finding import find_documents
from lshdup.sources.reading import TextBatch
from lshdup.store.npz import FORMAT_VERSION
from tests import reference
from tests.conftest import ROOT, RUN, many

WORDS = st.lists(
    st.sampled_from(["a", "bee", "See", "3.5", "3,5", "<", ">", "ö", "\n"]), max_size=9
)


def made_of(texts, **params):
    made = Shingler(ShingleParams(**params)).shingle(TextBatch.of(range(len(texts)), texts))
    made.sets.sort()
    return made


def levels_of(texts, **params):
    """Return (words of LEVELS, equal sets) of all pairs, by the program."""
    made = made_of(texts, **params)
    prints = Fingerprints(made.byte_prints, made.text_prints)
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
    texts = [
        "",
        "one",
        "One TWO three four five",
        "ﬁne ｆｕｌｌ Straße",
        "日本語と the rest",
        "a\u0308 b",
    ]
    texts += [" ".join(f"w{i % 7}" for i in range(n)) for n in range(40)]
    found = made_of([text.encode() for text in texts], **params).text_prints
    options = {
        k: v for k, v in params.items() if k in ("tokens", "normalize", "keep_case", "secret")
    }
    assert found.tolist() == [reference.text_fingerprint(text, **options) for text in texts]


def test_no_two_texts_of_few_words_have_one_fingerprint():
    """All sequences of up to eight of three words: a lane that lost a word would show."""
    texts, last = [], [()]
    for _ in range(8):
        last = [(*each, word) for each in last for word in "abc"]
        texts += [" ".join(each).encode() for each in last]
    assert len(set(made_of(texts).text_prints.tolist())) == len(texts) == 3 * (3**8 - 1) // 2


@pytest.mark.parametrize("secret", [b"", b"key"])
def test_a_changed_bit_of_a_lane_is_not_changed_back_by_its_next_word(secret):
    """Bit 34 of a word is turned to bit 63, which no odd factor moves."""
    text = b"a word. of text. " * 8
    for length in (40, 48, 72, 96, 100):
        for word in range(0, length - 39, 8):
            first = bytearray(text[:length])
            first[word + 4], first[word + 39] = b". "
            second = bytearray(first)
            second[word + 4], second[word + 39] = ord("*"), 0xA0
            batch = TextBatch.of(range(2), [bytes(first), bytes(second)])
            prints = fingerprint_bytes(batch, ShingleParams(secret=secret))
            assert prints[0] != prints[1]

    ids = list(range(5, 14))
    changed = list(ids)
    changed[1] ^= 1 << 34
    changed[5] ^= 1 << 63
    texts = [" ".join(map(str, each)).encode() for each in (ids, changed)]
    prints = made_of(texts, tokens="ids", k=1, secret=secret).text_prints
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


def test_equal_words_in_all_places_are_told_apart():
    """Swaps and shifts over the four lanes, with words that are all alike but one."""
    texts = set()
    for n in (16, 17, 33):
        for at in range(n):
            texts.add(" ".join("b" if i == at else "a" for i in range(n)).encode())
        texts.add(" ".join("a" * n).encode())
    assert len(set(made_of(sorted(texts)).text_prints.tolist())) == len(texts)


@settings(max_examples=many(200), deadline=None)
@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "  ", ". "])), min_size=2, max_size=6))
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


# --- the defects: similarity 1, and not the same --------------------------------------------------

LINE = "the quick brown fox jumps over the lazy dog\n"
DEFECTS = {
    "less.c": "if (a < b) return -1; else return the length of it",
    "more.c": "if (a > b) return +1; else return the length of it",
    "point.txt": "the value of it is 3.5 in all cases that we know",
    "comma.txt": "the value of it is 3,5 in all cases that we know",
    "twice.txt": LINE * 2,
    "ten.txt": LINE * 10,
    "ten-again.txt": LINE * 10,
    "upper.txt": (LINE * 10).upper(),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "d").mkdir()
    for name, text in DEFECTS.items():
        (tmp_path / "d" / name).write_text(text)
    return tmp_path / "d"


def test_similarity_1_does_not_say_the_same(run, folder):
    expected = {
        ("d/comma.txt", "d/point.txt"): "text", ("d/less.c", "d/more.c"): "text",
        ("d/ten-again.txt", "d/ten.txt"): "bytes", ("d/ten-again.txt", "d/upper.txt"): "text",
        ("d/ten.txt", "d/upper.txt"): "text", ("d/ten-again.txt", "d/twice.txt"): "",
        ("d/ten.txt", "d/twice.txt"): "", ("d/twice.txt", "d/upper.txt"): "",
    }  # fmt: skip
    rows = run("pairs d -t 1").rows
    assert {(a, b): same for a, b, _, same in rows} == expected
    assert {similarity for _, _, similarity, _ in rows} == {"1.0"}
    exact = run("pairs d -t 1 --exact --no-store").rows
    assert exact == rows
    for least in ("text", "bytes"):
        wanted = [
            row for row in rows if row[3] in ("text", "bytes")[("text", "bytes").index(least) :]
        ]
        assert run("pairs d --same", least).rows == wanted
        assert run("pairs --same", least).rows == wanted
    symbols = run("pairs d -t 0.1 --tokens symbols --no-store").rows
    told = {(a, b): same for a, b, _, same in symbols}
    assert told["d/less.c", "d/more.c"] == told["d/comma.txt", "d/point.txt"] == ""


def test_a_copy_has_the_same_set_and_perhaps_another_text(run, tmp_path):
    (tmp_path / "d").mkdir()
    for name, times in (("three", 3), ("four", 4)):
        (tmp_path / "d" / name).write_text("a b c " * times)
    rows = json.loads(run("clusters d --format json").out)
    assert [(row["role"], row["copy"], row["same"]) for row in rows] == [
        ("keep", False, None),
        ("drop", True, None),
    ]


def test_the_recipe_drops_equal_files_only(run, folder):
    assert run("clusters d -t 1 --same bytes --emit drop").lines == ["d/ten-again.txt"]
    kept = run("clusters d --same text --keep path-order").rows
    assert [(row[1], row[2], row[4], row[6]) for row in kept] == [
        ("keep", "d/ten-again.txt", "no", ""), ("drop", "d/ten.txt", "yes", "bytes"),
        ("drop", "d/upper.txt", "yes", "text"), ("keep", "d/comma.txt", "no", ""),
        ("drop", "d/point.txt", "yes", "text"), ("keep", "d/less.c", "no", ""),
        ("drop", "d/more.c", "yes", "text"),
    ]  # fmt: skip
    everything = run("clusters d -t 1 --keep path-order").rows
    assert [row[6] for row in everything if row[2] == "d/twice.txt"] == [""]
    rows = json.loads(run("clusters d -t 1 --format json").out)
    assert {row["same"] for row in rows} == {None, "text", "bytes"}
    assert {row["copy"] for row in rows} == {True, False}


def test_query(run, folder):
    run("index d -t 0.9")
    rows = run("query ten.txt").rows
    assert sorted(rows) == [
        ["d/ten-again.txt", "1.0", "bytes"], ["d/twice.txt", "1.0", ""],
        ["d/upper.txt", "1.0", "text"],
    ]  # fmt: skip
    text = DEFECTS["ten.txt"].encode()
    assert run("query ten.txt --same bytes").rows == [["d/ten-again.txt", "1.0", "bytes"]]
    assert {row[0] for row in run("query - --same text", stdin=text).rows} == {
        "d/ten.txt", "d/ten-again.txt", "d/upper.txt",
    }  # fmt: skip
    assert len(run("query - --same bytes", stdin=text).rows) == 2
    nothing = run("query twice.txt --same text")
    assert not nothing.rows
    assert "none of 8 documents has the same text as d/twice.txt" in nothing.err
    (folder.parent / "elsewhere").write_bytes(text)
    assert len(run("query elsewhere --same bytes --top 1").rows) == 1
    row = json.loads(run("query twice.txt --format json").out)[0]
    assert list(row) == ["name", "similarity", "same", "query"]
    assert row["same"] is None


@pytest.mark.parametrize("stored", [True, False])
def test_against(run, folder, stored):
    other = folder.parent / "other"
    other.mkdir()
    for name in ("ten.txt", "point.txt", "twice.txt"):
        (other / name).write_text(DEFECTS[name])
    if stored:
        run("index other --store st")
    against = ["--against", "st" if stored else "other", "--store", "own"]
    rows = run("pairs d", *against, "-t", "1").rows
    told = {(a, b): (verified, same) for a, b, _, verified, same in rows}
    assert told["d/ten.txt", "other/ten.txt"] == ("exact", "bytes")
    assert told["d/upper.txt", "other/ten.txt"] == ("exact", "text")
    assert told["d/upper.txt", "other/twice.txt"] == ("exact", "")
    for least, words in (("text", {"text", "bytes"}), ("bytes", {"bytes"})):
        wanted = [row for row in rows if row[4] in words]
        assert run("pairs d", *against, "--same", least).rows == wanted
    collapsed = run("pairs d", *against, "--same", "text", "--collapse-copies").rows
    assert {row[0] for row in collapsed} == {row[0] for row in rows if row[4]}
    assert all(row[4] for row in collapsed)


def test_collapsed_copies_stand_beside_one_that_is_the_same(run, folder):
    for same in ("text", "bytes"):
        rows = run("pairs d --same", same, "--collapse-copies").rows
        everything = run("pairs d --same", same).rows
        assert {b for _, b, *_ in rows} == {b for _, b, *_ in everything}
        assert len(rows) == len({b for _, b, *_ in rows})
        assert [row for row in everything if row in rows] == rows


def test_what_same_ignores_is_refused(run, folder):
    for command, *options in (
        ("pairs", "--exact"), ("clusters", "--max-bucket", "9"),
        ("clusters", "--linkage", "single"), ("pairs", "--histogram"),
    ):  # fmt: skip
        assert "with --same text" in run(command, "d", "--same", "text", *options, code=2).err


def test_same_is_not_refused_because_of_bands_and_makes_none(run, folder):
    """128 rows cannot meet a pair of similarity 0.02; equal documents need no rows at all."""
    low = ("-t", "0.02")
    assert "cannot meet" in run("pairs d", *low, code=2).err
    for documents in (["d"], []):
        for same in ("text", "bytes"):
            rows = run("pairs", *documents, "--same", same).rows
            assert rows == run("pairs", *documents, "--same", same, *low).rows != []
            groups = run("clusters", *documents, "--same", same).rows
            assert groups == run("clusters", *documents, "--same", same, *low).rows != []
    assert run("pairs d/ten.txt --against d --same bytes --no-store", *low).rows
    assert (folder.parent / ".lshdup/signatures.npz").exists()
    assert not (folder.parent / ".lshdup/bands.npz").exists()


# --- what is a document, and what its bytes and its text are --------------------------------------


def test_a_filter_does_not_change_what_is_the_same(run, folder):
    """It is of the whole text; a document with nothing left is compared with none."""
    (folder.parent / "form").write_text(LINE * 2)
    plain = run("pairs d --same text --no-store").rows
    left = run("pairs d --same text --template form --min-tokens 1").rows
    assert len(plain) == 5
    assert left == [row for row in plain if not {"d/ten.txt", "d/upper.txt"} & {*row[:2]}]
    rows = run("clusters d -t 1 --template form --min-tokens 1").rows
    assert len(rows) == 4
    assert {row[6] for row in rows if row[1] == "drop"} == {"text"}


def test_bytes_are_those_of_the_file_and_text_is_what_is_read(run, tmp_path):
    (tmp_path / "d").mkdir()
    text = "Ein Text über die Größe von Städten, und wie man sie misst."
    page = f"<html><body><p>{text}</p></body></html>"
    files = {
        "plain.txt": text.encode(), "copy": text.encode(), "wide.txt": text.encode("utf-16"),
        "page.html": page.encode(), "page-2.html": page.encode(),
        "packed.txt.gz": gzip.compress(text.encode(), mtime=0),
        "packed-2.txt.gz": gzip.compress(text.encode(), mtime=0),
        "other.txt.gz": gzip.compress(text.encode(), mtime=7),
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / "d" / name).write_bytes(data)
    rows = run("pairs d -t 1").rows
    assert len(rows) == 8 * 7 // 2
    for a, b, _, same in rows:
        equal = files[a.removeprefix("d/")] == files[b.removeprefix("d/")]
        assert same == ("bytes" if equal else "text")
    # A page that is read as plain text has other words: equal files, but not the same here.
    for name in ("part.html", "part.txt"):
        (tmp_path / "d" / name).write_text(f"{text} <b>more</b>")
    told = run("pairs d --same text").rows
    assert not any("d/part.txt" in row for row in told)


@pytest.mark.parametrize("kind", ["rows", "ids", "terms"])
def test_records_ids_and_terms(run, tmp_path, kind):
    if kind == "rows":
        texts = {
            "a": "one and the same text",
            "b": "One and the same text.",
            "c": "one and the same text",
        }
        lines = (
            json.dumps({"id": name, "n": 7 * i, "text": text})
            for i, (name, text) in enumerate(texts.items())
        )
        (tmp_path / "rows.jsonl").write_text("\n".join(lines))
        command = ["rows.jsonl", "--id-field", "id"]
        expected = {("a", "b"): "text", ("a", "c"): "bytes", ("b", "c"): "text"}
    elif kind == "ids":
        (tmp_path / "ids").write_text("a 1 2 3\nb 1  2 3\nc 3 2 1\nd 1 2 3\n")
        command = ["ids", "--tokens", "ids"]
        expected = {
            ("a", "b"): "text", ("a", "c"): "", ("a", "d"): "bytes",
            ("b", "c"): "", ("b", "d"): "text", ("c", "d"): "",
        }  # fmt: skip
    else:
        for name, text in (("a", "alpha beta"), ("b", "alpha  beta"), ("c", "beta alpha")):
            (tmp_path / name).write_text(text)
        command = ["a", "b", "c", "--tokens", "terms"]
        expected = {("a", "b"): "text", ("a", "c"): "", ("b", "c"): ""}
    rows = run("pairs", *command, "-t", "1").rows
    assert {(a, b): same for a, b, _, same in rows} == expected
    rows = run("pairs --same text").rows
    assert {(a, b): same for a, b, _, same in rows} == {
        pair: same for pair, same in expected.items() if same
    }


def test_short_and_empty_documents(run, tmp_path):
    for name, text in (
        ("one", "word"),
        ("two", "Word!"),
        ("none", "..."),
        ("zero", ""),
        ("nil", ""),
    ):
        (tmp_path / name).write_text(text)
    names = ["one", "two", "none", "zero", "nil"]
    assert run("pairs", *names, "--same", "text").rows == [["one", "two", "1.0", "text"]]
    assert run("clusters", *names, "--same", "bytes", "--emit", "drop").lines == []
    kept = run("clusters", *names, "--same", "bytes", "--emit", "keep").lines
    assert sorted(kept) == sorted(names)  # what was not compared stays


# --- by every way: threads, reuse, the store, brute force -----------------------------------------


def test_groups_of_the_sample_corpus_are_equal_files(run, corpus):
    (corpus / "odd/copy of MIT").write_bytes((corpus / "licences/MIT.txt").read_bytes())
    for same in ("bytes", "text"):
        expected = defaultdict(set)
        collection = collect_of(["sample_corpus"], cwd=corpus.parent)
        for name in collection.documents.names:
            key = hashlib.sha256((corpus.parent / name.decode()).read_bytes()).digest()
            expected[key].add(name.decode())
        rows = run("clusters sample_corpus -t 1 --same", same).rows
        groups = defaultdict(set)
        for number, _, name, *_ in rows:
            groups[number].add(name)
        files = {frozenset(each) for each in expected.values() if len(each) > 1}
        files = {each for each in files if not any("empty" in name for name in each)}
        if same == "bytes":
            assert {frozenset(each) for each in groups.values()} == files
        else:
            assert all(any(each <= group for group in groups.values()) for each in files)
            assert ("sample_corpus/udhr/eng.html", "sample_corpus/udhr/eng.txt") in {
                tuple(sorted(group)) for group in groups.values()
            }
        dropped = run("clusters --same", same, "--emit", "drop").lines
        assert sorted(dropped) == sorted(name for _, role, name, *_ in rows if role == "drop")


def collect_of(paths, cwd=None, jobs=1, **options):
    import os

    before = os.getcwd()
    os.chdir(cwd or before)
    try:
        documents = find_documents(
            Run.quiet(), [os.fsencode(path) for path in paths], DocumentParams()
        )
        return collect(Run.quiet(jobs), documents, ShingleParams(), **options)
    finally:
        os.chdir(before)


def test_any_number_of_threads_and_reuse_give_the_same_fingerprints(run, tmp_path, monkeypatch):
    one, four = (collect_of(["sample_corpus"], ROOT, jobs=jobs) for jobs in (1, 4))
    for name in ("byte_prints", "text_prints"):
        assert one.columns[name].tolist() == four.columns[name].tolist()
    assert isinstance(one.documents, DocumentList)
    (tmp_path / "d").mkdir()
    rng = np.random.default_rng(3)
    for i in range(60):
        words = " ".join(f"w{w}" for w in rng.integers(0, 5, 12))
        (tmp_path / f"d/{i}").write_text(words)
    (tmp_path / "d/60").write_text((tmp_path / "d/7").read_text())
    run("pairs d")
    (tmp_path / "d/9").write_text((tmp_path / "d/7").read_text().upper())
    (tmp_path / "d/11").unlink()
    (tmp_path / "d/new").write_text((tmp_path / "d/7").read_text())
    kept = run("pairs d -t 0.5 --recall 0.999999").out
    assert kept == run("pairs d -t 0.5 --recall 0.999999 --no-store").out
    same = run("pairs --same text").rows
    assert ["d/60", "d/new", "1.0", "bytes"] in same
    assert ["d/60", "d/9", "1.0", "text"] in same
    plain = np.load(tmp_path / ".lshdup/signatures.npz", allow_pickle=False)
    assert plain["byte_prints"].dtype == plain["text_prints"].dtype == np.uint64


def test_a_store_of_an_older_format_is_rebuilt(run, folder):
    run("index d")
    path = folder.parent / ".lshdup/signatures.npz"
    data = path.read_bytes()
    old = data.replace(b'"format":%d' % FORMAT_VERSION, b'"format":%d' % (FORMAT_VERSION - 1))
    assert old != data
    path.write_bytes(old)
    refused = run("pairs", code=2).err
    assert f"this lshdup reads {FORMAT_VERSION}" in refused or "damaged" in refused
    assert run("pairs d --same bytes").rows == [["d/ten-again.txt", "d/ten.txt", "1.0", "bytes"]]
