"""Pairs in output order, and the pairs of exact duplicates, against brute force."""

import os
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.params import ClusterParams, PairParams
from lshdup.base.ragged import StringTable
from lshdup.cli.listings.pairs import describe_size
from lshdup.cli.output import FORMATS, Target, cut_pieces
from lshdup.compare import expand_duplicates
from lshdup.compare.expand_duplicates import expand_copies
from lshdup.compare.scored_pairs import Pairs, gather_pairs
from lshdup.lsh import candidates
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.sources.document_list import DocumentList
from lshdup.workspace.comparing import load_or_find_clusters, load_or_find_pairs
from tests.conftest import RUN, many, open_index, write_files

similarities = st.sampled_from([1.0, 0.9, 2 / 3, 0.5, 1 / 3])
LEVELS = [0.3, 1 / 3, 0.4, 0.5, 0.6, 0.9, 0.95, 1.0]


def ordered(pairs):
    return sorted(pairs, key=lambda each: (-each[2], each[0], each[1]))


def rows(columns):
    return list(zip(*(column.tolist() for column in columns), strict=True))


def listed(pieces):
    return [row for each in pieces for row in rows(each)]


def columns_of(pairs):
    left, right, similarity = zip(*pairs, strict=True) if pairs else ((), (), ())
    return np.array(left, np.uint32), np.array(right, np.uint32), np.array(similarity, np.float64)


pair_sets = st.dictionaries(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda pair: pair[0] < pair[1]),
    similarities,
)


@given(pair_sets, st.integers(1, 9))
def test_parts_in_any_order_make_one_order(pairs, size):
    pairs = [(a, b, s) for (a, b), s in pairs.items()]
    parts = (columns_of(pairs[start : start + size]) for start in range(0, len(pairs), size))
    made = gather_pairs(RUN, parts)
    assert len(made) == len(pairs)
    assert rows((made.left, made.right, made.similarity)) == ordered(pairs)
    assert rows(made.part(3, 7)) == ordered(pairs)[3:7]
    assert [column.dtype for column in made.part(0, 2)] == [np.uint32, np.uint32, np.float64]
    assert made.values.tolist() == sorted({s for _, _, s in pairs}, reverse=True)


@st.composite
def collections(draw):
    """Draw the shingle set of each document, as a number, and similarities of pairs of sets.

    0 is the empty set, which has no near-duplicates.
    """
    kinds = draw(st.lists(st.integers(0, 5), max_size=24))
    among = st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda pair: pair[0] < pair[1])
    return kinds, draw(st.dictionaries(among, similarities))


def found_pairs(kinds, similar):
    """Return the pairs of one document a shingle set, and the exact duplicates."""
    duplicate_of = find_exact_duplicates(RUN, np.array(kinds, np.uint64))
    first_of = {kind: kinds.index(kind) for kind in set(kinds)}
    assert duplicate_of.tolist() == [first_of[kind] if kind else i for i, kind in enumerate(kinds)]
    there = [(a, b, s) for (a, b), s in similar.items() if a in first_of and b in first_of]
    pairs = [(*sorted((first_of[a], first_of[b])), s) for a, b, s in there]
    return gather_pairs(RUN, [columns_of(pairs)]), duplicate_of


def test_pairs_of_very_many_similarities_and_of_the_largest_numbers_are_in_order():
    pairs = Pairs.of(RUN, np.array([(1 << 32) - 2]), np.array([(1 << 32) - 1]), np.array([0.5]))
    assert rows(pairs.part(0, 1)) == [((1 << 32) - 2, (1 << 32) - 1, 0.5)]
    similarity = np.random.default_rng(1).permutation(70_000) / 70_000
    numbers = np.arange(70_000, dtype=np.uint32)
    pairs = gather_pairs(RUN, [(numbers, numbers + 1, similarity)])
    assert (pairs.keys >> np.uint64(32) == np.argsort(-similarity)).all()


@settings(max_examples=many(300))
@given(collections(), st.sampled_from([1, 2, 3, 5, 20, 1 << 18]), st.booleans())
def test_pairs_of_copies_are_those_of_brute_force(collection, piece, collapse):
    kinds, similar = collection
    pairs, duplicate_of = found_pairs(kinds, similar)
    is_first = [duplicate_of[i] == i for i in range(len(kinds))]
    expected = []
    for i, j in combinations(range(len(kinds)), 2):
        low, high = sorted((kinds[i], kinds[j]))
        if low == high != 0 and (not collapse or duplicate_of[j] == i):
            expected.append((i, j, 1.0))
        elif (low, high) in similar and (not collapse or (is_first[i] and is_first[j])):
            expected.append((i, j, similar[low, high]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expand_duplicates, "PIECE", piece)
        made = expand_copies(RUN, pairs, duplicate_of, collapse=collapse)
        pieces = list(made.pieces())
    assert listed(pieces) == ordered(expected)
    assert len(made) == len(expected)
    assert made.documents().tolist() == sorted({d for a, b, _ in expected for d in (a, b)})
    assert all(len(each[0]) <= piece + len(kinds) for each in pieces)
    best = [max([s for *pair, s in expected if d in pair], default=0) for d in range(len(kinds))]
    assert made.best().tolist() == best
    assert made.totals(np.array(LEVELS)) == [sum(s >= t for *_, s in expected) for t in LEVELS]
    for low, high in pairwise([*LEVELS, np.inf]):
        there = [row for row in expected if low <= row[2] < high]
        example = made.example(low, high)
        assert (example in there) if there else example is None
        assert example is None or example[2] == min(s for *_, s in there)


def test_pairs_of_copies_are_counted_but_not_made():
    n, none = 1_000_000, gather_pairs(RUN, [])
    made = expand_copies(RUN, none, np.zeros(n, np.int64))
    assert len(made) == n * (n - 1) // 2
    assert made.totals(np.array([0.5, 1.0])) == [len(made)] * 2
    assert made.example(1.0, np.inf) == (0, 1, 1.0)
    assert (made.best() == 1.0).all()
    left, right, similarity = next(made.pieces())
    assert (left[0], right[0], similarity[0]) == (0, 1, 1.0)
    assert len(left) <= n
    assert len(expand_copies(RUN, none, np.zeros(n, np.int64), collapse=True)) == n - 1


@pytest.mark.parametrize("kind", [*sorted({*FORMATS} - {"table", "parquet"}), "nul"])
@pytest.mark.parametrize("names", ["a|b c|\udcff", "a\tb|c|d", "a|b|c\n"])
def test_columns_print_as_rows(tmp_path, kind, names):
    names = os.fsencode(names).split(b"|")
    similarity, other = [1.0, 0.1 + 0.2, 1 / 3], names[::-1]
    as_rows = cut_pieces(zip(names, other, similarity, strict=True))
    first, rest = (names[:2], other[:2], similarity[:2]), (names[2:], other[2:], similarity[2:])
    printed, clear = [], []
    for pieces in (as_rows, [first, ([], [], []), rest], []):
        target = Target("" if kind == "nul" else kind, kind == "nul", tmp_path / "out")
        clear.append(target.write_pieces(("a", "b", "s"), pieces))
        printed.append((tmp_path / "out").read_bytes())
    assert printed[0] == printed[1]
    assert clear == [kind != "tsv" or names[1] == b"b c"] * 2 + [True]
    assert printed[2] == {"csv": b"a,b,s\n", "json": b"[]\n"}.get(kind, b"")


@pytest.mark.parametrize(("stage", "pairs"), [("pairs", ": their 6 pairs"), ("clusters", "")])
def test_a_bucket_of_very_many_is_said_before_it_is_compared(tmp_path, monkeypatch, stage, pairs):
    write_files(tmp_path, {f"{i}": " ".join(map(str, range(100 + i))) for i in range(4)})
    monkeypatch.setattr(candidates, "_MANY_PAIRS", 6)
    for limit, expected in ((0, True), (3, False)):
        said = []
        documents = [bytes(tmp_path)]
        steps, indexed, request = open_index(None, documents, said.append, bands=128, rows=1)
        if stage == "pairs":
            found = load_or_find_pairs(steps, indexed, PairParams(max_bucket=limit))
        else:
            found = load_or_find_clusters(steps, indexed, ClusterParams(max_bucket=limit), request)
        assert found.buckets.largest == 4
        lines = [line for line in said if f"a bucket has 4 documents{pairs}" in line]
        assert any("--max-bucket" in line for line in lines) == expected


def test_a_listing_of_very_many_pairs_says_how_large_it_is():
    zeros = np.zeros(2, np.int64)
    documents = DocumentList(StringTable.from_strings([b"names ", b"of six"]), zeros, zeros)
    said = describe_size([documents], 50_000_000)
    assert said.startswith("50,000,000 pairs are listed, about 1.2 GB: ")
    assert all(way in said for way in ("--max-bucket", "--collapse-copies", "lshdup clusters"))
