"""The class interface of R1."""

import inspect
import pickle

import numpy as np
import pytest

import lshdup
from lshdup.base.params import BandParams, SketchParams
from lshdup.errors import InputError, ParameterError
from tests import reference
from tests.conftest import ROOT, write_files
from tests.documents import write_rows

TEXTS = {
    "a": "the quick brown fox jumps over the lazy dog and runs away from here",
    "b": "the quick brown fox jumps over the lazy dog and runs away from there",
    "copy": "The quick, brown fox jumps over the lazy dog and runs away from here!",
    "other": "an entirely different sentence about nothing in particular at all",
    "empty": "",
}

SETS = {name: set(reference.shingle_list(text)) for name, text in TEXTS.items()}


def exact(a, b):
    return reference.jaccard(SETS[a], SETS[b])


@pytest.mark.parametrize("scheme", ["fast", "classic", "linear"])
def test_minhash(scheme):
    minhash = lshdup.MinHash(TEXTS, 20 if scheme == "linear" else 400, scheme=scheme, jobs=2)
    assert minhash.all_docs() == list(TEXTS)
    assert minhash.num_terms == len(set().union(*SETS.values()))
    matrix = minhash.minhash_matrix()
    assert matrix.shape == (minhash.num_permutations, 5)
    assert matrix.dtype == np.uint32
    for column, name in enumerate(TEXTS):
        assert (minhash.minhash_sig(name) == matrix[:, column]).all()
        for other in TEXTS:
            assert minhash.exact_jaccard(name, other) == exact(name, other)
    assert minhash.approximate_jaccard("a", "copy") == 1.0
    assert minhash.approximate_jaccard("empty", "empty") == 0.0
    if scheme != "linear":
        s = exact("a", "b")
        assert abs(minhash.approximate_jaccard("a", "b") - s) < 4 * (s * (1 - s) / 400) ** 0.5
    with pytest.raises(KeyError):
        minhash.minhash_sig("nobody")


def test_objects_are_pickled_and_hold_no_hidden_state():
    minhash = lshdup.MinHash(TEXTS)
    again = pickle.loads(pickle.dumps(minhash))
    assert (again.minhash_matrix() == minhash.minhash_matrix()).all()
    minhash.minhash_sig("a")[:] = 0
    minhash.all_docs().clear()
    assert (again.minhash_matrix() == minhash.minhash_matrix()).all()
    assert minhash.all_docs() == list(TEXTS)
    found = pickle.loads(pickle.dumps(lshdup.NearDuplicates(TEXTS, threshold=0.5)))
    assert found.of("a")[0] == ("copy", 1.0)
    lsh = pickle.loads(pickle.dumps(lshdup.LSH(minhash.minhash_matrix(), minhash.all_docs(), 32)))
    assert "copy" in lsh.near_duplicates_of("a")


def test_lsh_buckets_are_those_of_the_reference():
    minhash = lshdup.MinHash(TEXTS, 60, k=1)
    names = minhash.all_docs()
    for bands in (1, 10, 20, 60):
        lsh = lshdup.LSH(minhash.minhash_matrix(), names, bands)
        pairs = reference.candidates(minhash.signatures.tolist()[:-1], bands, 60 // bands)
        for row, name in enumerate(names[:-1]):
            expected = sorted(a + b - row for a, b in pairs if row in (a, b))
            assert lsh.near_duplicates_of(name) == [names[other] for other in expected]
        assert lsh.near_duplicates_of("empty") == []
    everything = lshdup.LSH(minhash.minhash_matrix(), names, 60, buckets=1)
    assert everything.near_duplicates_of("a") == ["b", "copy", "other"]


def test_near_duplicates():
    found = lshdup.NearDuplicates(TEXTS, 256, threshold=0.5, recall=0.9999)
    assert found.of("a") == [("copy", 1.0), ("b", exact("a", "b"))]
    assert found.of("empty") == found.of("other") == []
    listed = [("a", "copy"), ("a", "b"), ("b", "copy")]
    assert found.pairs() == [(a, b, exact(a, b)) for a, b in listed]
    detect = lshdup.NearDuplicates.near_duplicate_detector
    assert detect(TEXTS, 200, 50, 0.5, "a") == ["b", "copy"]
    assert detect(TEXTS, 200, 50, 0.99, "a") == ["copy"]


@pytest.mark.parametrize(
    ("folder", "common", "words"),
    [("sample_corpus", 0.0, ""), ("sample_corpus/licences", 0.3, "--ignore-common 0.3")],
)
def test_folders_give_what_the_command_line_gives(run, monkeypatch, folder, common, words):
    monkeypatch.chdir(ROOT)
    found = lshdup.NearDuplicates(folder, threshold=0.6, ignore_common=common)
    plain = f"pairs {folder} -t 0.6 --no-store"
    rows = run(f"{plain} {words}", cwd=ROOT).rows
    printed = [(a, b, float(s)) for a, b, s, _ in rows]
    assert found.pairs() == printed
    for name in {a for a, _, _ in printed}:
        near = [(b if a == name else a, s) for a, b, s in printed if name in (a, b)]
        assert found.of(name) == sorted(near, key=lambda each: (-each[1], each[0]))
    assert not words or len(rows) != len(run(plain, cwd=ROOT).rows)


def test_containment_is_that_of_the_command_line(run, monkeypatch):
    monkeypatch.chdir(ROOT)
    folder = "sample_corpus/licences"
    found = lshdup.NearDuplicates(folder, threshold=0.3, measure="containment")
    rows = run(f"pairs {folder} -t 0.3 --measure containment --no-store", cwd=ROOT).rows
    assert found.pairs() == [(a, b, float(share)) for a, b, share, *_ in rows]
    mit = f"{folder}/MIT.txt"
    near = [({a, b} - {mit}, float(share)) for a, b, share, *_ in rows if mit in (a, b)]
    assert sorted(({name}, share) for name, share in found.of(mit)) == sorted(near)
    for name, share in found.of(mit):
        assert found.minhash.exact_containment(name, mit) == share
    with pytest.raises(ParameterError, match="containment makes no clusters"):
        found.clusters()
    with pytest.raises(ParameterError, match="must be one of jaccard, containment"):
        lshdup.NearDuplicates(TEXTS, measure="overlap")
    assert lshdup.NearDuplicates(TEXTS, measure="containment").of("empty") == []


def test_the_linear_scheme_of_a_folder(tmp_path):
    write_files(tmp_path, TEXTS)
    found = lshdup.NearDuplicates(tmp_path, 20, 4, threshold=0.5, scheme="linear")
    assert {(a[-1], b[-1]) for a, b, _ in found.pairs()} <= {("a", "b"), ("a", "y"), ("b", "y")}
    assert (str(tmp_path / "a"), str(tmp_path / "copy"), 1.0) in found.pairs()
    found = lshdup.NearDuplicates("sample_corpus/licences", scheme="linear", threshold=0.9)
    assert len(list(found.pairs())) > 5


def test_sequences():
    assert lshdup.MinHash([]).minhash_matrix().shape == (128, 0)
    assert not hasattr(lshdup, "nothing")
    assert dir(lshdup) == sorted(lshdup.__all__)


@pytest.mark.parametrize("made", [lshdup.MinHash, lshdup.NearDuplicates])
def test_what_is_not_known_is_refused(made):
    for keyword, meant in (
        ("num_perm", "did you mean num_permutations"), ("textfield", "did you mean text_field"),
        ("nonsense", "there are num_permutations, "),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=f"'{keyword}' is no keyword") as refused:
            made(TEXTS, **{keyword: 1})
        assert refused.value.hint.startswith(meant)
        assert keyword != "nonsense" or made is lshdup.MinHash or "recall, me" in refused.value.hint
    with pytest.raises(ParameterError, match="text_field and id_field are of files"):
        made(TEXTS, text_field="question")


class Table(dict):
    columns = ("text",)


@pytest.mark.parametrize("made", [lshdup.MinHash, lshdup.NearDuplicates])
def test_what_are_no_documents_is_refused(made, tmp_path):
    for documents, said in (
        (["a", None], "the text of document '1' is null, not str"),
        ({7: "a"}, "the name of document 7 is int, not str"),
        (Table(text=["one two three four"] * 2), "documents are given as Table"),
        (b"one", "documents are given as bytes"),
        (None, "documents are given as NoneType"),
        ({"a": "x \ud800"}, "the text of document 'a' cannot be UTF-8"),
        ({"a\ud800": "x"}, r"the name of document 'a\\ud800' cannot be UTF-8"),
        (tmp_path / "nowhere", "nowhere"),
        (tmp_path, "no documents"),
    ):
        with pytest.raises(InputError, match=said):
            made(documents)


def test_matrices_without_sense_are_refused():
    for rows, bands, said in ((2, 2, "shape"), (1, 5, r"^5 bands of 4 rows")):
        with pytest.raises(ParameterError, match=said):
            lshdup.LSH(np.zeros((4, rows), np.uint32), ["a"], bands)


@pytest.mark.parametrize(
    ("keyword", "value", "said"),
    [
        ("k", 2.5, "a whole number"), ("k", 0, "at least 1"),
        ("k", True, "a whole number"), ("threshold", 1.5, "above 0 and at most 1"),
        ("threshold", "0.5", "a number"), ("num_permutations", 0, "from 1 to "),
        ("num_bands", -1, "at least 1"), ("min_tokens", -1, "from 0 to "),
        ("ignore_common", 5.5, "a share"), ("bag", "yes", "true or false"),
        ("jobs", -1, "at least 1"), ("jobs", "2", "a whole number"),
        ("templates", "a b", "a list of str"), ("templates", 5, "a list of str"),
        ("hash_key", 5, "a text"),
    ],
)  # fmt: skip
def test_errors_speak_of_keywords(keyword, value, said):
    with pytest.raises(ParameterError) as refused:
        lshdup.NearDuplicates(TEXTS, **{keyword: value})
    assert str(refused.value).startswith(f"{keyword} is {value!r}; it must be {said}")
    assert refused.value.message == str(refused.value)
    assert "--" not in refused.value.message + refused.value.hint


def test_names_of_a_list():
    found = lshdup.NearDuplicates(["one two three four", "one two three four", "no"])
    assert found.of(0) == found.of("0") == [("1", 1.0)]
    assert found.minhash.exact_jaccard(0, "1") == 1.0
    for ask in (found.of, found.minhash.minhash_sig):
        with pytest.raises(KeyError, match="no document is called 9; names: '0', '1', '2'"):
            ask(9)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_records_of_a_file(tmp_path, ending):
    rows = [{"n": f"r{i}", "question": f"what is said in these words {i // 2}"} for i in range(4)]
    path = tmp_path / f"q.{ending}"
    write_rows(path, rows)
    for made in (lshdup.MinHash, lshdup.NearDuplicates):
        with pytest.raises(InputError, match=r"no record has a text.*row without text") as refused:
            made(path)
        assert "text_field" in refused.value.hint
    found = lshdup.NearDuplicates(path, text_field="question", id_field="n")
    assert found.pairs() == [("r0", "r1", 1.0), ("r2", "r3", 1.0)]
    names = lshdup.MinHash(path, text_field="question").all_docs()
    assert names == [f"{path}:{number}" for number in range(1, 5)]


def test_defaults_are_those_of_the_command_line():
    band, perms = BandParams(), {"num_permutations": SketchParams().perms}
    more = {"threshold": band.threshold, "recall": band.recall}
    for made, defaults in ((lshdup.MinHash, perms), (lshdup.NearDuplicates, perms | more)):
        taken = inspect.signature(made.__init__).parameters
        assert {name: taken[name].default for name in defaults} == defaults
