"""Shingles of templates, and of too many documents, are removed from every set."""

import os
import random
import shutil
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup import MinHash, NearDuplicates
from lshdup.base.params import FilterParams, PairParams, ShingleParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.collection.set_source import set_source
from lshdup.errors import ParameterError
from lshdup.pipeline import expand_copies
from lshdup.shingling import shingle_filter as filters
from lshdup.shingling.shingle_filter import NO_SHINGLES, ShingleFilter
from lshdup.shingling.shingler import Shingler
from lshdup.workspace.comparing import load_or_find_pairs
from tests import reference
from tests.conftest import (
    RUN,
    WHOLE,
    killed_behind_segments,
    open_comparison,
    open_index,
    write_files,
)

# --- the arrays -----------------------------------------------------------------------------------

elements = st.integers(0, 12) | st.integers(0, (1 << 64) - 1)
elements |= st.integers((1 << 64) - 5, (1 << 64) - 1)
element_sets = st.sets(elements, max_size=40)


def as_array(values):
    return np.array(sorted(values), np.uint64)


def as_sets(sets):
    return [set(sets[i].tolist()) for i in range(len(sets))]


@given(st.lists(element_sets, max_size=8), element_sets, element_sets)
def test_what_is_left_is_the_set_difference(sets, template, too_many):
    shingle_filter = ShingleFilter(FilterParams(), as_array(template), as_array(too_many))
    left = shingle_filter.apply(RaggedSets.from_sets(sets))
    assert as_sets(left) == [each - template - too_many for each in sets]
    assert all((np.diff(left[i].astype(object)) > 0).all() for i in range(len(left)))
    assert shingle_filter.shingles.tolist() == sorted(template | too_many)


def test_removed_shingles():
    """Of many in a row, no smaller number marks a free slot; offsets need not begin at 0."""
    rng, elements = random.Random(4), np.random.default_rng(4).integers(0, 1 << 63, 10_000).tolist()
    cases = [
        ([set(range(n + 2)), {0}, {n - 1, n}, set(), {n, n + 1}], set(range(n)), 0)
        for n in (1, 2, 5, 300)
    ]
    cases.append(([set(rng.choices(elements, k=500)) for _ in range(20)], set(elements[:3000]), 0))
    cases.append(([{1, 2, 3}, {2}, {3, 4}], {2, 3}, 1))
    for sets, removed, first in cases:
        ragged = RaggedSets.from_sets(sets)
        shingle_filter = ShingleFilter(FilterParams(), as_array(removed), NO_SHINGLES)
        left = shingle_filter.apply(RaggedSets(ragged.values, ragged.offsets[first:]))
        assert as_sets(left) == [each - removed for each in sets[first:]]


SMALL_SETS = st.lists(st.sets(st.integers(0, 30), max_size=20), max_size=30)


@given(SMALL_SETS, st.integers(1, 12), st.integers(1, 4), st.data())
def test_counts_are_those_of_a_counter(sets, least, jobs, data):
    members = sorted(data.draw(st.sets(st.sampled_from(range(len(sets)))) if sets else st.just([])))
    counts = Counter(element for i in members for element in sets[i])
    expected = sorted(each for each in counts.items() if each[1] >= least)
    ragged, members = RaggedSets.from_sets(sets), np.array(members, np.int64)
    shingles, found = filters.find_common_shingles(Run.quiet(jobs), ragged, members, least)
    assert list(zip(shingles.tolist(), found.tolist(), strict=True)) == expected


@pytest.mark.parametrize("jobs", [1, 3])
def test_many_common_shingles_and_few_counters(monkeypatch, jobs):
    """Tables grow; and elements that share a counter are told apart."""
    monkeypatch.setattr(filters, "_FEWEST", 64)
    monkeypatch.setattr(filters, "_SPARE", 0)
    rng = np.random.default_rng(7)
    sets = [{*range(9000), *rng.integers(0, 1 << 63, 500).tolist()} for _ in range(4)]
    sets.append(set(range(4000, 12000)))
    ragged = RaggedSets.from_sets(sets)
    shingles, counts = filters.find_common_shingles(Run.quiet(jobs), ragged, np.arange(5), 4)
    assert shingles.tolist() == list(range(9000))
    assert counts.tolist() == [4] * 4000 + [5] * 5000


def test_more_documents_than_a_counter_can_count():
    n = 70_000
    values = np.tile(np.array([5, 9], np.uint64), n)[: 2 * n - 3000]
    sets = RaggedSets.from_sizes(values, np.array([2] * (n - 3000) + [1] * 3000))
    # The last 3000 sets are halves of pairs (5, 9): half of them have only 5, half only 9.
    counts = Counter(sets.values.tolist())
    for least in (65_535, 65_536, counts[9], counts[5] + 1):
        expected = {element: count for element, count in counts.items() if count >= least}
        shingles, found = filters.find_common_shingles(Run.quiet(2), sets, np.arange(n), least)
        assert dict(zip(shingles.tolist(), found.tolist(), strict=True)) == expected


@given(st.integers(1, 999), st.integers(0, 500))
def test_a_share_is_the_decimal_that_was_written_and_a_number_is_one(thousandths, documents):
    exact = Fraction(thousandths, 1000) * documents
    least = max(2, min(n for n in range(documents + 2) if n > exact))
    assert filters.find_least_count(thousandths / 1000, documents) == least
    assert [filters.find_least_count(float(limit), 10) for limit in (1, 2, 40)] == [2, 3, 41]


SETS_OF_DIGITS = st.lists(st.sets(st.integers(0, 9), max_size=5), max_size=8)


@given(SETS_OF_DIGITS, st.lists(st.integers(0, 9), max_size=5))
def test_first_set_with_a_shingle(sets, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filters, "_AT_ONCE", 3)
        found = filters.find_first_sets(RaggedSets.from_sets(sets), np.array(wanted, np.uint64))
    first = [[i for i, each in enumerate(sets) if element in each] for element in wanted]
    assert found.tolist() == [each[0] if each else -1 for each in first]


# --- the steps ------------------------------------------------------------------------------------

FORM = "dear sir or madam we are glad to tell you that your order of {} has been sent to {} today "
FORM += "please pay the amount of {} by friday"


def write_letters(folder, count, seed=1):
    """Letters of one form, two copies, the bare form, an empty one, and another text."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)

    def words(n):
        return " ".join(f"w{rng.randrange(10**6)}" for _ in range(n))

    texts = {f"{i:03}": FORM.format(words(2), words(2), words(2)) for i in range(count)}
    texts |= {"copy": texts["000"], "near": texts["001"] + " indeed", "empty": ""}
    texts |= {"form": FORM.partition("{}")[0], "other": words(30)}
    write_files(folder, texts)


@pytest.fixture
def here(here):
    write_letters(here / "d", 20)
    (here / "form.txt").write_text(FORM.replace("{}", "..."))
    return here


ASKED = {
    "template": {"templates": (b"form.txt",)}, "share": {"ignore_common": 0.5},
    "number": {"ignore_common": 5}, "both": {"ignore_common": 5, "templates": (b"form.txt",)},
    "neither": {},
}  # fmt: skip


def given_of(asked, given):
    """The parameters of a run."""
    given = {"threshold": 0.4, "min_tokens": 1, **given, **asked}
    return {name: value for name, value in given.items() if value is not None}


def shown(collection, listing):
    names = list(collection.documents.names)
    rows = (zip(*(c.tolist() for c in piece), strict=True) for piece in listing.pieces())
    return [(names[a], names[b], s) for piece in rows for a, b, s in piece]


def pairs_of(store, asked, **given):
    """The pairs of `lshdup pairs d`, and its collection."""
    steps, indexed, _ = open_index(store, [b"d"], save=False, **given_of(asked, given))
    found = load_or_find_pairs(steps, indexed, PairParams())
    pairs = expand_copies(RUN, found.pairs, indexed.index.duplicate_of)
    return shown(indexed.collection, pairs), indexed.collection


def exact_pairs_of(store, asked, documents=(b"d",), **given):
    opened = open_comparison(store, documents, PairParams(exact=True), **given_of(asked, given))
    return shown(opened.here, opened.expand_copies(opened.find_pairs(), collapse=False))


def expected_pairs(asked, threshold=0.4, **given):
    """By definition, in Python."""
    shingler = Shingler(ShingleParams(**given))

    def shingles(path):
        return frozenset(shingler.shingle_texts([path.read_bytes()])[0].tolist())

    sets = {bytes(path): shingles(path) for path in sorted(Path("d").iterdir())}
    kinds = {each for each in sets.values() if each}
    frequency = Counter(shingle for each in kinds for shingle in each)
    gone = set().union(*(shingles(Path(os.fsdecode(each))) for each in asked.get("templates", ())))
    if limit := asked.get("ignore_common", 0):
        most = max(1, limit * len(kinds) if limit < 1 else limit)
        gone |= {s for s, n in frequency.items() if n > most}
    left = {name: each - gone for name, each in sets.items()}
    if gone:
        tokens = asked.get("min_tokens", 1)
        least = (20 if tokens is None else tokens) - ShingleParams(**given).k + 1
        left = {name: each if len(each) >= least else frozenset() for name, each in left.items()}
    names = list(left)
    pairs = reference.all_pairs(list(left.values()), threshold)
    listed = [(names[a], names[b], s) for a, b, s in pairs]
    return sorted(listed, key=lambda each: (-each[2], each[0], each[1])), left


def artifacts_in(store):
    """The artifacts of a store; sets are kept where shingles were counted."""
    return {path.name: path.read_bytes() for path in Path(store).glob("*.npz")}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_pairs_are_those_of_the_definition_by_every_way(here, monkeypatch, asked):
    expected, left = expected_pairs(asked)
    found, collection = pairs_of("store", asked, recall=0.9999)
    assert found == expected
    assert collection.sizes.tolist() == [len(each) for each in left.values()]
    if asked:
        copies = {(b"d/000", b"d/copy"), (b"d/001", b"d/near")}
        assert {(a, b) for a, b, _ in found} == copies
        empty = [name for name, size in zip(left, collection.sizes, strict=True) if not size]
        assert empty == [b"d/empty", b"d/form"]
        assert collection.unfiltered_sizes.tolist().count(0) == 1
    else:
        assert len(found) > 100
        assert collection.shingle_filter is None
    # In memory; on one thread; by the other schemes; by the join, from documents and from the
    # store; without sets that are kept.
    assert pairs_of(None, asked, recall=0.9999)[0] == expected
    assert pairs_of("other", asked, jobs=1, recall=0.9999)[0] == expected
    assert artifacts_in("store") == artifacts_in("other")
    for scheme in ("fast", "classic"):
        assert pairs_of(None, asked, scheme=scheme, recall=0.9999)[0] == expected
    assert exact_pairs_of("store", asked) == exact_pairs_of(None, asked) == expected
    # Of the last run, and without what was removed in it.
    assert exact_pairs_of("store", {}, documents=()) == expected
    monkeypatch.setattr("lshdup.workspace.loading.SET_BYTES", 0)
    assert pairs_of(None, asked, recall=0.9999)[0] == expected
    assert pairs_of("third", asked, recall=0.9999)[0] == expected
    assert Path("third/shingles.npz").exists() == ("ignore_common" in asked)


@pytest.mark.parametrize("least", [14, 15, None])
@pytest.mark.parametrize("asked", ["template", "number"])
def test_documents_of_which_little_is_left_are_not_compared(run, here, asked, least):
    """A letter keeps 12 shingles, as many as a text of 14 words; the default asks for 20 words."""
    asked = {**ASKED[asked], "min_tokens": least}
    expected, left = expected_pairs(asked)
    found, collection = pairs_of("store", asked, recall=0.9999)
    assert found == expected
    assert len(found) == (2 if least == 14 else 0)
    assert collection.sizes.tolist() == [len(each) for each in left.values()]
    assert pairs_of(None, asked, recall=0.9999)[0] == expected
    assert exact_pairs_of("store", asked) == exact_pairs_of(None, asked) == expected
    texts = {str(path): path.read_text() for path in sorted(Path("d").iterdir())}
    if "templates" in asked:
        keywords, options = {"templates": [Path("form.txt").read_text()]}, ["--template=form.txt"]
    else:
        keywords, options = {"ignore_common": 5}, ["--ignore-common=5"]
    if least is not None:
        keywords["min_tokens"] = least
        options += ["--min-tokens", str(least)]
    near = NearDuplicates(texts, threshold=0.4, recall=0.9999, **keywords)
    assert {pair[:2] for pair in near.pairs()} == {(a.decode(), b.decode()) for a, b, _ in found}
    options += ["--no-store", "-t", "0.4"]
    copies = [("d/000", "d/copy"), ("d/001", "d/near")] if len(found) else []
    for more in ([], ["--exact"], ["--measure", "containment"], ["--against", "d"]):
        rows = run("pairs", "d", *options, *more).rows
        assert sorted({tuple(sorted(row[:2])) for row in rows}) == copies
    assert len(run("clusters", "d", *options).rows) == 2 * len(copies)


def test_ids(here):
    shutil.rmtree("d")
    lists = (f"n{i} 0 1 2 3 {100 + i // 2} {200 + i // 2}\n" for i in range(8))
    write_files(".", {"d/list": "".join(lists), "form.txt": "form 0 1 2 3\n"})
    expected = [(b"n%d" % i, b"n%d" % (i + 1), 1.0) for i in range(0, 8, 2)]
    assert len(exact_pairs_of(None, {}, tokens="ids")) > 4
    # Copies count once: of four different documents, each half of these ids is in one.
    for asked in ({"templates": (b"form.txt",)}, {"ignore_common": 0.5}):
        assert pairs_of("store", asked, tokens="ids")[0] == expected


@settings(max_examples=8 if WHOLE else 3)
@given(st.integers(0, 10**9))
def test_a_folder_that_changes_and_options_that_change(seed):
    """Each run leaves the bytes of one from nothing, and reads only what changed, by one filter."""
    rng, last = random.Random(seed), None
    others = [{"templates": (b"half.txt",)}, {"ignore_common": 3}, {"ignore_common": 0.2}]
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        # Some hundred artifacts that no power cut will meet.
        patch.setattr(os, "fsync", lambda _: None)
        write_letters(Path("d"), 12, seed)
        write_files(".", {"form.txt": FORM.replace("{}", "..."), "half.txt": FORM[:60]})
        for step in range(5):
            changed = 0
            for name in rng.sample(sorted(os.listdir("d")), 3) if step else []:
                path, what = Path("d") / name, rng.randrange(3)
                if what == 0:
                    path.unlink()
                else:
                    changed += 1
                    text = path.read_text() + f" and {step}"
                    (path if what == 1 else Path(f"d/{step}{name}")).write_text(text)
            asked = rng.choice([*ASKED.values(), *others])
            for name in asked.get("templates", ()):
                if rng.random() < 0.3:
                    last = None
                    with open(name, "a") as file:
                        file.write(f" and {step}")
            found, collection = pairs_of("store", asked)
            if asked == last:
                assert collection.read == changed
            last = asked
            fresh, _ = pairs_of("fresh", asked)
            assert found == fresh
            left = artifacts_in("store")
            assert {name: left[name] for name in artifacts_in("fresh")} == artifacts_in("fresh")
            shutil.rmtree("fresh")


def test_another_limit_reads_no_document(here, monkeypatch):
    pairs_of("store", {"ignore_common": 5})
    read = lambda *_: pytest.fail("a document was read")  # noqa: E731
    monkeypatch.setattr("lshdup.collection.batches.read_batch", read)
    for limit in (0.9, 3, 5):
        found, collection = pairs_of("store", {"ignore_common": limit})
        assert collection.read == 0
        assert found == expected_pairs({"ignore_common": limit})[0]


def test_documents_that_change_before_they_are_verified(here, monkeypatch):
    """Read again without what was removed; one that has changed is reported, and in no pair."""
    monkeypatch.setattr("lshdup.workspace.loading.SET_BYTES", 0)
    skipped = []
    given = given_of(ASKED["template"], {})
    steps, indexed, _ = open_index(None, [b"d"], skipped=skipped.append, **given)
    with open("d/000", "a") as file:
        file.write(" and more")
    found = load_or_find_pairs(steps, indexed, PairParams())
    pairs = shown(indexed.collection, expand_copies(RUN, found.pairs, indexed.index.duplicate_of))
    assert [pair[:2] for pair in pairs if pair[2] < 1] == [(b"d/001", b"d/near")]
    number = list(indexed.collection.documents.names).index(b"d/000")
    set_source(steps, indexed.collection)(np.array([number]))
    assert [each.name for each in skipped] == [b"d/000"]


@pytest.mark.parametrize("options", [("--template", "form.txt"), ("--ignore-common", "0.5")])
def test_killed_runs_are_resumed(run, here, options):
    killed_behind_segments("pairs", "d", *options, batch=5, parts=3)
    result = run("pairs", "d", *options)
    assert "resumed: 15 documents of an interrupted run are not read again" in result.err
    assert result.out == run("pairs", "d", *options, "--store", "undisturbed").out
    assert artifacts_in(".lshdup") == artifacts_in("undisturbed")
    assert not Path(".lshdup/memo").exists()


def test_minhash_is_of_what_is_left():
    texts = {"a": "one two three four", "b": "one two three five", "c": "one two six"}
    minhash = MinHash(texts, 64, k=1, ignore_common=0.9, templates=["three"], min_tokens=1)
    assert minhash.num_terms == 3
    assert minhash.exact_jaccard("a", "b") == 0
    assert minhash.approximate_jaccard("a", "a") == 1
    with pytest.raises(ParameterError):
        MinHash(texts, ignore_common=-1)
