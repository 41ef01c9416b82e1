"""Clusters: their laws, the obvious greedy loop over documents, and the output of the command."""

import os
import random
import re
import unicodedata
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup import pipeline
from lshdup.base.params import KEEP, ClusterParams, ShingleParams
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.run import Run
from lshdup.collection import keep_rules
from lshdup.compare import clusters, leaders, verification
from lshdup.compare.expand_duplicates import NO_KEYS
from lshdup.compare.scored_pairs import Pairs
from lshdup.compare.sides import Side, Sides
from lshdup.errors import ParameterError
from lshdup.lsh.band_table import BandTable
from lshdup.lsh.candidates import OPEN_SIEVE, Components, SharedBuckets, Sieve
from lshdup.shingling.shingler import fingerprint_sets
from lshdup.sources.document_list import DocumentList, Locations, typed_name
from lshdup.sources.records import Kind
from lshdup.store import npz
from lshdup.workspace import comparing
from lshdup.workspace.comparing import load_or_find_clusters
from tests import reference
from tests.compare.test_pairs import columns_of
from tests.compare.test_verification import watched
from tests.conftest import ROOT, RUN, many, open_index, part
from tests.reference import path_key

# --- the stage against the obvious loop -----------------------------------------------------------


def obvious_groups(sets, is_candidate, order, threshold, linkage="representative"):
    """Return (representative, similarity) of each document with tokens.

    Each document, in order of preference, takes all remaining documents that are similar enough to
    it; by single linkage also those similar enough to one that it has taken.
    """
    found = {}
    for d in order:
        if sets[d] and d not in found:
            found[d] = (d, 1.0)
            taking = [d]
            for a in taking:
                for e, other in enumerate(sets):
                    is_free = other and e not in found and is_candidate(a, e)
                    if is_free and reference.jaccard(sets[a], other) >= threshold:
                        found[e] = (d, reference.jaccard(sets[d], other))
                        taking += [e] if linkage == "single" else []
    return found


def as_dict(groups):
    compared = np.flatnonzero(groups.representative >= 0).tolist()
    return {d: (int(groups.representative[d]), float(groups.similarity[d])) for d in compared}


class Made:
    """A collection of sets with a band table of given keys; exact duplicates have equal keys."""

    sieve = OPEN_SIEVE

    def __init__(self, sets, keys, order, max_bucket=0, origins=()):
        self.origins = np.array(origins, np.uint32)
        self.sets, self.order, self.max_bucket = sets, np.array(order, np.int64), max_bucket
        self.ragged = RaggedSets.from_sets(sets)
        self.sizes = self.ragged.sizes
        prints = fingerprint_sets(self.ragged, ShingleParams())
        side = Side(self.sizes, prints, None, self.ragged.take)
        self.duplicate_of = Sides.of(RUN, side, origins=self.origins).duplicate_of
        is_first = self.duplicate_of == np.arange(len(sets))
        self.members = np.flatnonzero(is_first & (self.sizes > 0))
        self.keys = np.array(keys, np.uint64).reshape(len(keys), len(sets))
        places = np.array(
            [self.members[np.argsort(band[self.members], kind="stable")] for band in self.keys],
            np.uint32,
        )
        self.table = BandTable(self.keys, places.reshape(len(keys), len(self.members)))
        self.ordered = clusters.rank_documents(RUN, self.members, self.duplicate_of, self.order)

    @cached_property
    def candidates(self):
        found = set()
        for bucket in reference.buckets(self.keys[:, self.members].T.tolist(), len(self.keys), 1):
            if not self.max_bucket or len(bucket) <= self.max_bucket:
                pairs = combinations(self.members[bucket].tolist(), 2)
                found.update(pair for pair in pairs if self.differ(*pair))
        return found

    def differ(self, a, b):
        both = [each[[a, b]] for each in self.sieve.signatures]
        return all((a == b).sum() >= self.sieve.least for a, b in both) and (
            not len(self.origins) or self.origins[a] != self.origins[b]
        )

    @cached_property
    def firsts(self):
        return self.duplicate_of.tolist()

    def is_candidate(self, a, b):
        a, b = self.firsts[a], self.firsts[b]
        return (a == b and not len(self.origins)) or (min(a, b), max(a, b)) in self.candidates

    def expected(self, linkage, threshold):
        order = self.order.tolist()
        return obvious_groups(self.sets, self.is_candidate, order, threshold, linkage)

    def components(self):
        shared = SharedBuckets.of(RUN, self.table, self.max_bucket, self.origins)
        return Components.of(RUN, shared, self.ordered, self.origins, self.sieve)

    def edges(self, linkage, threshold, source=None, apart=NO_KEYS):
        source = source or self.ragged.take
        return clusters.Edges(self.sizes, source, threshold, linkage, apart)

    def find_kinds(self, linkage, threshold, jobs=1, source=None, apart=NO_KEYS):
        edges = self.edges(linkage, threshold, source, apart)
        return leaders.cluster_buckets(Run.quiet(jobs), self.components(), self.ordered, edges)

    def expand(self, kinds, linkage="representative", jobs=1, source=None):
        edges = self.edges(linkage, 0.0, source)
        kinds = clusters.complete_similarities(Run.quiet(jobs), kinds, edges)
        across = linkage if len(self.origins) else ""
        return clusters.expand_clusters(kinds, self.duplicate_of, self.order, across)

    def cluster_buckets(self, linkage, threshold, jobs=1, source=None):
        kinds, compared = self.find_kinds(linkage, threshold, jobs, source)
        return self.expand(kinds, linkage, jobs, source), compared

    def cluster_pairs(self, linkage, threshold):
        """Of pairs of which some are not similar enough: they are known too."""
        rows = [(a, b, reference.jaccard(self.sets[a], self.sets[b])) for a, b in self.candidates]
        left, right, score = columns_of([row for row in rows if row[2] >= threshold / 2])
        pairs = Pairs.of(RUN, left, right, score)
        return self.expand(
            clusters.cluster_pairs(RUN, pairs, self.ordered, len(self.sets), threshold, linkage),
            linkage,
        )


@st.composite
def collections(draw, most_origins=0):
    kinds = draw(st.lists(st.frozensets(st.integers(1, 12), max_size=8), min_size=1, max_size=10))
    sets = [set(kind) for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=16))]
    band = st.lists(st.integers(0, 2), min_size=len(sets), max_size=len(sets))
    keys = draw(st.lists(band, min_size=1, max_size=4))
    order = draw(st.permutations(range(len(sets))))
    origins = ()
    if most_origins:
        kind = st.integers(0, draw(st.integers(0, most_origins)))
        origins = draw(st.lists(kind, min_size=len(sets), max_size=len(sets)))
    return Made(sets, keys, order, draw(st.sampled_from([0, 0, 3])), origins)


def check(made, threshold):
    for linkage in ("representative", "single"):
        expected = made.expected(linkage, threshold)
        groups, compared = made.cluster_buckets(linkage, threshold)
        assert as_dict(groups) == expected
        assert compared <= 2 * len(made.candidates)
        assert as_dict(made.cluster_pairs(linkage, threshold)) == expected
        assert {d for d in range(len(made.sets)) if made.sets[d]} == set(expected)


@contextmanager
def in_pieces(held):
    """Set blocks to two or three sets, so that every component exceeds memory, or leave them."""
    with pytest.MonkeyPatch.context() as patched:
        if not held:
            for module, name, value in (
                (leaders, "BLOCK_BYTES", 80), (leaders, "HELD_BYTES", 80), (clusters, "_PIECE", 2),
                (leaders, "_FIRST_PIECE", 1), (leaders, "_PIECE", 2),
            ):  # fmt: skip
                patched.setattr(module, name, value)
        yield


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("which", ["all", "across origins", "behind a sieve"])
@settings(max_examples=many(300))
@given(st.data(), st.sampled_from([0.3, 0.5, 2 / 3, 0.8, 1.0]))
def test_groups_are_those_of_the_obvious_loop(held, which, data, threshold):
    """Documents of one origin are in a group only for the sake of a third one."""
    made = data.draw(collections(16 if which == "across origins" else 0))
    if which == "behind a sieve":
        chance, n = data.draw(st.randoms()), len(made.sets)
        rows = np.array([chance.choices((256, 257), k=3) for _ in range(n)], np.uint32)
        made.sieve = Sieve((rows[made.duplicate_of],), data.draw(st.integers(0, 3)))
    with in_pieces(held):
        check(made, threshold)
    groups, _ = made.cluster_buckets("representative", threshold)
    assert all(d == kept or made.differ(d, kept) for d, (kept, _) in as_dict(groups).items())


def test_one_origin_of_many_alike_is_not_walked():
    """20,000 documents of one template and one origin, and one of another, which is compared with
    all of them or with the first: without a step from each to all others of its origin."""
    n = 20_000
    sets = [{*range(1, 30), 100 + d} for d in range(n + 1)]
    for last in (0, n):
        made = Made(sets, [[5] * (n + 1)], range(n + 1), 0, np.arange(n + 1) == last)
        groups, compared = made.cluster_buckets("representative", 0.8)
        assert compared == (n if last == 0 else 1)
        kept = groups.representative.tolist()
        assert kept == ([0] * (n + 1) if last == 0 else [*range(n), 0])


@pytest.mark.parametrize("held", [True, False])
@settings(max_examples=many(300))
@given(collections(), st.sampled_from([0.3, 0.5, 0.8]), st.data())
def test_accepted_pairs_are_no_edges(held, made, threshold, data):
    """In memory and in rounds, of different sets; those of one set are in tests/workspace."""
    sets = [made.sets[each] for each in made.members]
    order = data.draw(st.permutations(range(len(sets))))
    made = Made(sets, made.keys[:, made.members].tolist(), order, made.max_bucket)
    pairs = sorted(made.candidates)
    apart = data.draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    keys = np.array(sorted((a << 32) + b for a, b in apart), np.uint64)

    def is_candidate(a, b):
        return made.is_candidate(a, b) and (min(a, b), max(a, b)) not in apart

    for linkage in ("representative", "single"):
        expected = obvious_groups(sets, is_candidate, order, threshold, linkage)
        with in_pieces(held):
            kinds, _ = made.find_kinds(linkage, threshold, apart=keys)
            assert as_dict(made.expand(kinds)) == expected


@pytest.mark.parametrize("seed", range(6))
def test_long_chains_in_few_buckets(seed):
    """Windows of a row of numbers: near ones are similar, and each is near to several leaders."""
    chance = random.Random(seed)
    sets = [set(range(start, start + 12)) for start in chance.choices(range(60), k=40)]
    keys = [[chance.randrange(1 + band) for _ in sets] for band in range(2)]
    with in_pieces(held=False):
        check(Made(sets, keys, chance.sample(range(40), 40), 0), chance.choice([0.4, 0.5, 0.7]))
    # In buckets of their own places, of which one limit leaves out the large ones.
    starts = chance.choices(range(60), k=60)
    keys = [[start // 12 + chance.randrange(3) for start in starts] for _ in range(3)]
    keys = [[band[starts.index(start)] for start in starts] for band in keys]
    sets = [set(range(start, start + 20)) for start in starts]
    check(Made(sets, keys, chance.sample(range(60), 60), [0, 7, 8][seed % 3]), 0.7)


def test_memory_of_representatives_is_bounded(monkeypatch):
    """Many in one bucket of which none is like another: their sets are not held at once."""
    n, size = 1200, 200
    made = Made([set(range(size * d, size * (d + 1))) for d in range(n)], [[1] * n], range(n))
    monkeypatch.setattr(leaders, "BLOCK_BYTES", 20 * size * 8)
    monkeypatch.setattr(leaders, "HELD_BYTES", 100 * size * 8)
    sizes, fetch = [], leaders._SetsInMemory.fetch

    def watched(sets, positions, used):
        fetch(sets, positions, used)
        sizes.append(len(sets.values))

    monkeypatch.setattr(leaders._SetsInMemory, "fetch", watched)
    groups, _ = made.cluster_buckets("representative", 0.9)
    assert len(groups.kept) == n
    # The sets that are held, the block that exceeded them, and another block.
    assert 100 * size < max(sizes) <= (100 + 2 * 20) * size


def test_the_same_on_any_number_of_threads(monkeypatch):
    """900 documents around 180 centres, with copies; one component of buckets is large."""
    rng = random.Random(5)
    sets = []
    for _ in range(900):
        centre = rng.randrange(180) * 40
        base = set(range(centre + 1, centre + 41))
        sets.append(base ^ {rng.randrange(1, 7200) for _ in range(rng.choice([0, 0, 2, 5, 9]))})
    starts = [0, 100_000, 200_000]
    keys = [[min(s) + start if rng.random() < 0.9 else 7 for s in sets] for start in starts]
    firsts = [sets.index(each) for each in sets]  # duplicates have the same keys
    keys = [[band[first] for first in firsts] for band in keys]
    made = Made(sets, keys, rng.sample(range(900), 900))
    for linkage in ("representative", "single"):
        expected, seen = made.expected(linkage, 0.7), set()
        for block, jobs in product((1 << 24, 1 << 13), (1, 2, 5)):
            monkeypatch.setattr(leaders, "BLOCK_BYTES", block)
            monkeypatch.setattr(leaders, "HELD_BYTES", block)
            found, compared = made.cluster_buckets(linkage, 0.7, jobs)
            assert as_dict(found) == expected
            seen.add((block, compared, found.similarity.tobytes()))
        assert len(seen) == 2  # as many comparisons with any number of threads


@pytest.mark.parametrize("linkage", ["representative", "single"])
@pytest.mark.parametrize("block", [1 << 24, 1 << 13])
def test_one_template_costs_a_comparison_a_document(linkage, block, monkeypatch):
    """All documents are similar and in one bucket a band; a set is fetched once."""
    monkeypatch.setattr(leaders, "BLOCK_BYTES", block)
    n = 5000
    made = Made([{*range(1, 60), 100 + d} for d in range(n)], [[5] * n, [6] * n], range(n))
    source, asked = watched(made.ragged)
    groups, compared = made.cluster_buckets(linkage, 0.9, source=source)
    assert compared == n - 1
    assert sorted(each for some in asked for each in some) == list(range(n))
    assert (groups.kept.tolist(), groups.dropped.tolist()) == ([0], list(range(1, n)))


def test_a_set_that_is_lost_represents_nothing_and_is_dropped_for_nothing():
    sets = [{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, 2, 3, 5}, {1, 2, 3, 6}, {9}]
    made = Made(sets, [[1, 1, 1, 1, 1, 2]], range(6))

    def source(wanted):
        return RaggedSets.from_sets([set() if d == 0 else sets[d] for d in wanted.tolist()])

    groups, _ = made.cluster_buckets("representative", 0.5, source=source)
    # Documents 0 and 1 are of one kind, whose set cannot be had: together still, but near no other.
    others = {2: (2, 1.0), 3: (2, 0.8), 4: (2, 0.5), 5: (5, 1.0)}
    assert as_dict(groups) == {0: (0, 1.0), 1: (0, 1.0)} | others
    left = groups.without(np.array([0]))
    assert as_dict(left) == {1: (1, 1.0)} | others
    assert left.dropped.tolist() == [3, 4]
    without_two = groups.without(np.array([2]))
    assert without_two.kept.tolist() == [0, 3, 4, 5]
    assert without_two.dropped.tolist() == [1]


def test_documents_that_are_not_compared_are_ignored():
    """A forged artifact may hold such tables and pairs; no kernel leaves its arrays."""
    made = Made([{1, 2}, {1, 2, 3}, {4}], [[1] * 3, [2] * 3], range(3))
    for ordered, linkage in product(([], [2], [1, 2], [2, 0]), ("representative", "single")):
        made.ordered = np.array(ordered, np.int64)
        assert as_dict(made.find_kinds(linkage, 0.5)[0]) == {d: (d, 1.0) for d in ordered}
    pairs = Pairs.of(RUN, np.array([0, 1]), np.array([1, 2]), np.array([0.9, 0.9]))
    groups = clusters.cluster_pairs(RUN, pairs, made.ordered, 3, 0.5)
    assert as_dict(groups) == {0: (0, 1.0), 2: (2, 1.0)}


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.5, 1.0)), max_size=30))
def test_listing_is_in_order(rows):
    own, by_group = {}, defaultdict(list)
    for d, (group, _) in enumerate(rows):
        own[group] = own.get(group, d) if group % 2 else d  # the first, or the last
    representative = np.array([own[group] if group else -1 for group, _ in rows], np.int64)
    score = np.array([1.0 if representative[d] == d else s for d, (_, s) in enumerate(rows)])
    made = clusters.list_clusters(clusters.Clusters(RUN, representative, score))
    for d, r in enumerate(representative.tolist()):
        by_group[r].append(d)
    expected = []
    several = [(-len(all_), r) for r, all_ in by_group.items() if r >= 0 and len(all_) > 1]
    for number, (_, r) in enumerate(sorted(several), 1):
        rest = sorted((d for d in by_group[r] if d != r), key=lambda d: (-score[d], d))
        smallest = min(float(score[d]) for d in by_group[r])
        expected += [(d, number, smallest) for d in [r, *rest]]
    columns = (each.tolist() for each in (made.documents, made.numbers, made.smallest))
    assert list(zip(*columns, strict=True)) == expected


# --- what is preferred ----------------------------------------------------------------------------


def preferred(
    names, keep="path-order", prefer=(), arguments=(b".",), sizes=None, mtimes=None, **lists
):
    """Names, the most preferred first, and what is said of patterns."""
    params, unused = ClusterParams(keep=keep, prefer=tuple(prefer)), []
    zeros = np.zeros(len(names), np.int64)
    times = np.array(mtimes or zeros, np.int64)
    documents = DocumentList(StringTable.from_strings(names), zeros, times, **lists)
    sizes = np.array(sizes or zeros)
    found = keep_rules.preference(RUN.but(warn=unused.append), documents, sizes, params, arguments)
    assert sorted(found.order.tolist()) == list(range(len(names)))
    return [names[index] for index in found.order.tolist()], unused


def test_every_rule_of_keep():
    names = [b"a", b"b", b"c", b"d"]
    more = {"sizes": [3, 9, 9, 1], "mtimes": [40, 20, 20, 30]}
    orders = {
        "longest": "bcad", "shortest": "dabc", "newest": "adbc", "oldest": "bcda",
        "path-order": "abcd", "first": "abcd", "shortest-path": "abcd", "central": "abcd",
    }  # fmt: skip
    found = {keep: b"".join(preferred(names, keep, **more)[0]).decode() for keep in KEEP}
    assert found == orders


@pytest.mark.parametrize(
    "in_order",
    [
        "report.doc|report.copy2|report (1).doc|report.doc.bak|report - Copy.doc",
        "a.txt|a.txt (2)|a.txt.copy1|a.txt.copy9|a.txt.copy10", "x9|x10|x11|x100",
        "a.html|a.bak|a.old|a.tmp3|a.html~", "z|a/b|a/bb|a/b/c|a/b~",
        "größe.doc|grosse.doc|groesse2.doc", "/b|aa|c/a|../a|/a/a", "./-a|bcd|a/b",
        "Documents/Job/a.doc|Desktop/Job/a.doc|Desktop/New Folder (2)/a.doc",
        "x/y/z/a.doc|a copy.doc|tmp/a.doc|Backup/a.doc|old/New Folder/a.doc",
        "a/b/c/d|Downloads/d|Téléchargements/d|デスクトップ/新しいフォルダー/d",
    ],
)  # fmt: skip
def test_the_original_has_the_shortest_path(in_order):
    """Of files: fewest names of copies, fewest components, fewest characters, then byte order."""
    names = list(map(os.fsencode, in_order.split("|")))
    assert preferred(sorted(names), "")[0] == names


def test_the_page_has_the_words_of_copies():
    page = (ROOT / "docs/how-to/clean-a-folder.md").read_text("utf-8")
    [block] = re.findall("```text\n(.*?)```", page.partition("## Names of copies")[2], re.DOTALL)
    listed = [re.split(r",\s+", part.strip()) for part in block.split("\n\n")]
    endings = [f".{ending}" for ending in keep_rules.ENDINGS]
    assert listed == [keep_rules.COPY, keep_rules.PARKED, endings, keep_rules.FOLDERS]


#: Names of copies and of places to park files, of the desktops that write them; and others.
_MARKED = """
Copy of X.doc|Copy (2) of X.doc|X - Copy.doc|X - Copy (2).doc|X copy.txt|X copy 2.txt|X (copy).txt
X (another copy).txt|X (3rd copy).txt|Kopie von X.doc|X - Kopie (3).doc|X (Kopie).txt|Copie de X
X - Cópia.doc|Копия X.doc|X — копия.doc|Xのコピー.txt|X - コピー.txt|X 副本.txt|X的副本.txt
コピー ～ X.doc|복사본 X.hwp|X_old.doc|backup|Backups|OLD|tmp|X.txt~|X.txt.copy3|X (2)
New Folder|New folder (3)|Новая папка (2)|Téléchargements|デスクトップ|İndirilenler
X.tar (1).gz|X (1).tar.gz|Thư mục mới|X.orig
""".strip().replace("\n", "|").split("|")  # fmt: skip
_UNMARKED = """
Job|a (2019).doc|gold.txt|copyright.txt|threshold|oldest.txt|temperature.csv|Copy editing.doc
new folders.txt|desktop.ini|downloads.txt|日本.txt
""".strip().replace("\n", "|").split("|")  # fmt: skip


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("below", ["", "Documents/{}", "{}/a.txt", "x/{}/y/b", "x/" * 999 + "{}"])
def test_names_of_copies_are_known(form, below):
    upper = [name.upper() for name in _MARKED]
    for names, marks in ((_MARKED, 1), (upper, 1), (_UNMARKED, 0)):
        paths = [unicodedata.normalize(form, (below or "{}").format(name)) for name in names]
        paths = [os.fsencode(path) for path in paths]
        assert dict.fromkeys(paths, marks) == {path: keep_rules.count_marks(path) for path in paths}


@given(st.lists(st.text("ab/.~1é", min_size=1, max_size=6), unique=True, min_size=1))
def test_paths_are_ranked_as_the_obvious_key_does(drawn):
    drawn = [name for name in drawn if name.strip("/.") and not name.endswith(("/", "/."))]
    names = sorted({typed_name(os.fsencode(name)) for name in drawn})
    expected = sorted(names, key=lambda name: (path_key(os.fsdecode(name)), name))
    assert preferred(names, "shortest-path")[0] == expected


def test_first_follows_the_arguments():
    names = sorted([b"a/1", b"a/b/2", b"a/b/3", b"b/1", b"c", b"../x", b"/t/y", b"./-z"])
    arguments = (b"/t", b"a/b//3", b"../x", b"b/", b"a", b".")
    in_order = [b"/t/y", b"a/b/3", b"../x", b"b/1", b"a/1", b"a/b/2", b"./-z", b"c"]
    assert preferred(names, "first", arguments=arguments)[0] == in_order
    with_docs = preferred(names, "first", arguments=(), docs=(b"/t", b"a/b/3"))
    assert with_docs[0][:2] == [b"/t/y", b"a/b/3"]
    for unknown in ((), (b"a", b"b/")):  # Of many DOCS the store keeps the folder above.
        with pytest.raises(ParameterError, match="--keep first needs DOCS here"):
            preferred(names, "first", arguments=(), docs=unknown)
    deep = b"/".join([b"d"] * 3000)
    assert preferred(sorted([deep, b"e"]), "first", arguments=(b"e", b"d"))[0] == [b"e", deep]


def test_records_and_whole_files():
    """Four records: of the first file, of the second one twice, and of the third."""

    def locations(paths, kinds, numbers=(0, 0, 0, 0)):
        starts, kinds = np.array([0, 0, 9, 0]), np.array(kinds, np.uint8)
        files = np.array([0, 1, 1, 2])
        paths = StringTable.from_strings(paths)
        return Locations(paths, kinds, files, starts, starts, np.array(numbers))

    parts = locations([b"k", b"l/1", b"l/2"], [Kind.IDS] * 3)
    names, docs = [b"a", b"b", b"c", b"d"], {"arguments": (b"l", b"k")}
    assert preferred(names, "first", parts=parts, **docs)[0] == [b"b", b"c", b"d", b"a"]
    # Records are kept by their places; among files they have the paths of their files.
    assert preferred(names, "", parts=parts, **docs)[0] == [b"b", b"c", b"d", b"a"]
    assert preferred(names, "shortest-path", parts=parts, **docs)[0] == names
    mixed = replace(parts, kinds=np.array([Kind.FILE, Kind.IDS, Kind.IDS], np.uint8))
    assert preferred(names, "", parts=mixed, **docs)[0] == names
    # A part cannot be removed with its name, and a file that is kept can be seen.
    kinds = [Kind.ZIP, Kind.MBOX, Kind.FILE]
    parts = locations([b"a.zip", b"box", b"deep/er/file"], kinds, [0, 1, 2, 0])
    names = zipped, one, two, file = [b"a.zip/x", b"box:1", b"box:2", b"deep/er/file"]
    for keep in ("", "shortest-path", "first"):
        assert preferred(names, keep, parts=parts)[0][0] == file, keep
    # What was named first stays first.
    found = preferred(names, "first", arguments=(b"box", b"."), parts=parts)
    assert found[0] == [one, two, file, zipped]


def test_prefer_folders_and_patterns():
    a, b, new, sub, newer, odd = names = [
        b"old/a.txt", b"old/b.html", b"new/a.txt", b"new/sub/c.txt", b"newer/d", b"\xff.txt",
    ]  # fmt: skip
    names = sorted(names)
    for prefer, first in (
        (["new"], [new, sub]), (["./new/"], [new, sub, newer]),
        (["*.html", "new/*"], [b, new, sub]), (["new/*", "*.html"], [new, sub, b]),
        (["old/b.html"], [b]), ([os.fsdecode(b"\xff*")], [odd]), (["ne?"], [new, sub]),
        (["."], names),
    ):  # fmt: skip
        assert preferred(names, prefer=prefer)[0][: len(first)] == first
    assert preferred(names, prefer=["nothing", "new", "n?", "odl"])[1] == [
        "--prefer nothing matches no document",
        "--prefer n? matches no document",
        "--prefer odl matches no document; did you mean old?",
    ]
    # What no pattern tells apart, --keep does.
    found, _ = preferred(names, "longest", ["*.txt"], sizes=[1, 2, 9, 3, 9, 1])
    assert found == [a, sub, new, odd, newer, b]


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    part([
        "-t 0.6 --recall 0.9999 --perms 256 --keep longest", "-t 0.5 --exact --keep longest",
        "-t 0.5 --recall 0.9999 --perms 256 --linkage single", "-t 0.5 --exact --linkage single",
        "-t 0.5 --exact",
    ], 2),
)  # fmt: skip
def test_groups_of_the_sample_corpus_are_those_of_the_obvious_loop(run, sample_sets, options):
    def rank(name):
        first = -len(sample_sets[name]) if "longest" in options else path_key(name)
        return first, os.fsencode(name)

    def out(emit=""):
        return run(f"clusters sample_corpus {options} --no-store {emit}", cwd=ROOT)

    names = sorted(sample_sets, key=rank)
    sets, linkage = [sample_sets[name] for name in names], options.rpartition("linkage ")[2]
    threshold = float(options.split()[1])
    found = obvious_groups(sets, lambda *_: True, range(len(names)), threshold, linkage)
    groups, listed = defaultdict(list), defaultdict(list)
    for d, (r, similarity) in found.items():
        groups[names[r]].append((names[d], similarity))
    rows = [row[:6] for row in out().rows]
    for number, role, name, similarity, copy, smallest in rows:
        listed[int(number)].append((role, name, float(similarity), copy, float(smallest)))
    sizes = [len(each) for each in listed.values()]
    assert [*listed] == [*range(1, len(sizes) + 1)]
    assert sizes == sorted(sizes, reverse=True)
    for each in listed.values():
        keep = each[0][1]
        members = groups.pop(keep)
        smallest = min(similarity for _, similarity in members)
        expected = {("keep", keep, 1.0, "no", smallest)}
        for name, similarity in members[1:]:
            is_copy = "yes" if sample_sets[name] == sample_sets[keep] else "no"
            expected.add(("drop", name, similarity, is_copy, smallest))
        assert set(each) == expected
        assert len(each) == len(members)
    assert {len(members) for members in groups.values()} == {1}
    assert linkage != "single" or min(float(row[3]) for row in rows) < 0.5  # chains
    dropped = {row[2] for row in rows if row[1] == "drop"}
    assert set(out("--emit drop").lines) == dropped
    assert set(out("--emit keep").lines) == set(names) - dropped  # also what is not compared


WORDS = [f"w{i}" for i in range(200)]


def text(*changed):
    return " ".join("changed" if i in changed else word for i, word in enumerate(WORDS))


@pytest.fixture
def folder(here):
    """Four alike in two folders, copies among them; two of another text; alone; without tokens."""
    for name in ("d/new", "d/old"):
        (here / name).mkdir(parents=True)
    half = text(*range(0, 200, 2))
    for name, content in {
        "new/a": text(), "new/b": text(100), "old/a": text(), "old/c": text(100) + " and more",
        "x": half, "y": half.upper(), "alone": "quite another text", "empty": "",
    }.items():  # fmt: skip
        (here / "d" / name).write_text(content)
    return here / "d"


def test_order_of_input_and_threads_change_nothing(run, corpus, tmp_path):
    names = "sample_corpus/udhr ./sample_corpus// sample_corpus/licences sample_corpus"
    plain = run("clusters sample_corpus -t 0.6 --store a --jobs 1").out
    again = run(f"clusters {names} -t 0.6 --no-store --jobs 3", env={"PYTHONHASHSEED": "1"})
    assert again.out == plain
    run("clusters sample_corpus/udhr -t 0.6 --store b --jobs 4")
    run("clusters sample_corpus -t 0.6 --store b --jobs 4", env={"PYTHONHASHSEED": "5"})
    assert (tmp_path / "a/clusters.npz").read_bytes() == (tmp_path / "b/clusters.npz").read_bytes()


# --- from the store -------------------------------------------------------------------------------


def grouped(documents=(b"d",), keep="longest", linkage="representative", skipped=None):
    """The command's steps, in this process, in the current folder."""
    skip = None if skipped is None else skipped.append
    steps, indexed, request = open_index(".lshdup", documents, skipped=skip, save=False)
    params = ClusterParams(linkage, keep)
    return indexed.collection.documents, load_or_find_clusters(steps, indexed, params, request)


def names_of(documents, some):
    return [os.fsdecode(name) for name in documents.typed_names(some)]


def unreadable(monkeypatch):
    """Make every shingle set unavailable from here on."""

    def never(*_):
        pytest.fail("a document is read again")

    side_of = comparing.side_of
    monkeypatch.setattr(comparing, "side_of", lambda *of: replace(side_of(*of), source=never))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("linkage", ["representative", "single"])
def test_a_second_run_reads_nothing(monkeypatch, linkage):
    _, first = grouped(linkage=linkage)
    assert first.compared > 0
    unreadable(monkeypatch)
    for arguments in ([b"d"], []):
        _, again = grouped(arguments, linkage=linkage)
        assert np.array_equal(again.clusters.representative, first.clusters.representative)
        assert np.array_equal(again.clusters.similarity, first.clusters.similarity, equal_nan=True)
        assert np.array_equal(again.copies, first.copies)
        assert again.compared == -1


@pytest.mark.usefixtures("folder")
def test_known_pairs_are_used(run, tmp_path, monkeypatch):
    fresh = run("clusters d --store other").out
    run("pairs d")
    unreadable(monkeypatch)
    for keep in ("longest", "oldest"):
        _, found = grouped(keep=keep)
        assert found.compared == -1
    assert run("clusters d").out == fresh
    own, other = (tmp_path / name / "clusters.npz" for name in (".lshdup", "other"))
    assert own.read_bytes() == other.read_bytes()


@pytest.mark.usefixtures("folder")
def test_forged_groups_are_no_groups(tmp_path):
    _, first = grouped()
    path = tmp_path / ".lshdup/clusters.npz"
    artifact = npz.load(path, "clusters", "")
    header = {k: v for k, v in artifact.header.items() if k not in ("kind", "format", "lshdup")}
    none = np.iinfo(np.uint32).max  # in no group, as what is not compared
    for column, change in (
        ("representative", [10**6, 0]), ("representative", [4, 5]),
        ("representative", [none] * len(first.clusters.representative)),
        ("similarity", [7.0, 1.0]), ("similarity", [np.nan, 1.0]),
    ):  # fmt: skip
        arrays = {name: np.array(array) for name, array in artifact.arrays.items()}
        arrays[column][: len(change)] = change
        npz.save(path, "clusters", header, arrays)
        _, again = grouped()
        assert np.array_equal(again.clusters.representative, first.clusters.representative)


def test_what_vanishes_meanwhile_is_never_dropped_nor_a_reason_to_drop(folder, monkeypatch):
    # So that sets are not kept, and documents are read again.
    monkeypatch.setattr(verification, "SET_BYTES", 0)
    monkeypatch.setattr("lshdup.workspace.loading.SET_BYTES", 0)
    skipped = []

    def vanish(*_, clustering):
        (folder / "old/c").unlink()
        (folder / "y").unlink()

    monkeypatch.setattr(pipeline, "say_large_bucket", vanish)
    documents, found = grouped(skipped=skipped)
    names = names_of(documents, found.clusters.kept) + names_of(documents, found.clusters.dropped)
    assert "d/old/c" not in names
    assert [each.name for each in skipped] == [b"d/old/c", b"d/y"]
    assert names_of(documents, found.lost) == ["d/old/c", "d/y"]
    # The others are all there; y, a copy that no comparison needed, was looked for in the end.
    assert sorted(names) == ["d/alone", "d/new/a", "d/new/b", "d/old/a", "d/x"]
    assert names_of(documents, found.clusters.dropped) == ["d/new/b", "d/old/a"]
    assert not (folder.parent / ".lshdup/clusters.npz").exists()
