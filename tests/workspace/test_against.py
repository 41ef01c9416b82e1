"""`--against OTHER…`: pairs across two sides, and what goes of DOCS; of OTHER nothing goes."""

import json
import os
import re
import shutil
from itertools import combinations, groupby, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.params import PairParams
from lshdup.base.ragged import RaggedSets
from lshdup.compare import verification
from lshdup.compare.expand_duplicates import expand_copies
from lshdup.compare.scored_pairs import gather_pairs
from lshdup.compare.sides import Side, Sides
from lshdup.compare.verification import Verifier
from lshdup.lsh import band_table, candidates
from lshdup.lsh.candidates import candidate_pairs
from tests import reference
from tests.conftest import RUN, many, open_comparison, part, write_files

WORDS = [f"word{i}" for i in range(400)]
BANDS = ("--recall", "0.99999", "--perms", "256")


def texts(seed, originals, n, copies=0):
    """Near-copies of the originals, of every degree, and some exact copies of those."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        words = list(originals[int(rng.integers(len(originals)))])
        for _ in range(int(rng.integers(0, 7))):
            words[int(rng.integers(len(words)))] = f"new{int(rng.integers(500))}"
        made.append(" ".join(words))
    return made + [made[int(rng.integers(n))] for _ in range(copies)]


@pytest.fixture
def two_sides(here):
    """Folders `new` and `old` of near-copies, with copies within and across them."""
    rng = np.random.default_rng(7)
    originals = [[WORDS[int(w)] for w in rng.integers(0, 400, 60)] for _ in range(12)]
    new, old = texts(1, originals, 30, 8), texts(2, originals[:8], 60, 10)
    old += [*new[:4], new[2]]
    for folder, made in (("new", new), ("old", old)):
        write_files(here / folder, {f"{i:03}.txt": text for i, text in enumerate(made)})
    write_files(here, {"new/upper.txt": old[50].upper(), "new/empty.txt": "", "old/empty.txt": ""})
    return here


def brute_force(threshold, here="new", there="old"):
    a, b = reference.folder_sets(here), reference.folder_sets(there)
    real = {name: os.path.realpath(name) for name in (*a, *b)}
    pairs = ((x, y) for x, y in product(a, b) if a[x] and b[y] and real[x] != real[y])
    scored = ((os.fsencode(x), os.fsencode(y), reference.jaccard(a[x], b[y])) for x, y in pairs)
    return in_order(row for row in scored if row[2] >= threshold)


def in_order(rows):
    return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))


def asked(threshold, others=(b"old",), *, docs=(b"new",), exact=False, collapse=False, jobs=2):
    """(a, b, similarity, is an estimate) as they are printed, and the number of candidates."""
    given = {"threshold": threshold, "recall": 0.99999, "perms": 256, "jobs": jobs}
    both = open_comparison(None, docs, PairParams(exact=exact), others, **given)
    across = both.find_pairs()
    crossing = both.expand_copies(across, collapse=collapse)
    pieces = ((*piece, crossing.is_estimate(*piece[:2])) for piece in crossing.pieces())
    rows = [row for piece in pieces for row in zip(*(c.tolist() for c in piece), strict=True)]
    names = both.names(np.arange(len(both.sides.sizes)))
    assert len(rows) == len(crossing)
    assert sum(estimated for *_, estimated in rows) == crossing.estimates
    return [(names[a], names[b], s, e) for a, b, s, e in rows], across.candidates


def exactly(rows):
    assert not any(estimated for *_, estimated in rows)
    return [row[:3] for row in rows]


@pytest.mark.parametrize("threshold", part([0.4, 0.6, 0.8, 1.0], 2))
def test_pairs_across_are_those_of_brute_force(two_sides, threshold):
    expected = brute_force(threshold)
    assert len(expected) > (20 if threshold < 1 else 5)
    one, met = asked(threshold, jobs=1)
    assert exactly(one) == expected
    assert 0 < met < 38 * 75 // 4
    assert exactly(asked(threshold, jobs=4)[0]) == expected
    for jobs in (1, 4):
        assert exactly(asked(threshold, exact=True, jobs=jobs)[0]) == expected
    turned = in_order((b, a, s) for a, b, s in expected)
    assert exactly(asked(threshold, [b"new"], docs=[b"old"])[0]) == turned


def test_one_side_in_pieces(two_sides):
    expected = brute_force(0.6)
    parts = [b"old/%03d.txt" % i for i in range(75)]
    docs = [b"new/upper.txt", *(b"new/%03d.txt" % i for i in range(37, -1, -1))]
    assert exactly(asked(0.6, parts[::-1], docs=docs)[0]) == expected


def test_collapsed_copies(two_sides):
    sets = [list(reference.folder_sets(side).items()) for side in ("new", "old")]
    duplicate_of = [{} for _ in sets]
    for first, side in zip(duplicate_of, sets, strict=True):
        for name, each in sorted(side):
            first.setdefault(frozenset(each), os.fsencode(name))
    kind = {os.fsencode(name): frozenset(each) for side in sets for name, each in side}
    expected = [
        (a, b, s)
        for a, b, s in brute_force(0.6)
        if (a == duplicate_of[0][kind[a]] and b == duplicate_of[1][kind[b]])
        or (s == 1.0 and (a == duplicate_of[0][kind[a]] or b == duplicate_of[1][kind[b]]))
    ]
    assert len(expected) < len(brute_force(0.6))
    assert exactly(asked(0.6, collapse=True)[0]) == expected
    assert exactly(asked(0.6, collapse=True, exact=True)[0]) == expected


def test_a_file_on_both_sides_is_not_paired_with_itself(two_sides):
    os.symlink("old", "link")
    os.symlink("../old/072.txt", "new/zlink.txt")
    real = os.path.realpath
    expected = {(real(a), real(b), s) for a, b, s in brute_force(0.9, "old", "old")}
    for docs, others in (
        ([b"old"], [b"old"]), ([b"old"], [b"./old/../old"]), ([b"link"], [b"old"]),
        ([b"old"], [b"new", b"old"]),
    ):  # fmt: skip
        rows = exactly(asked(0.9, others, docs=docs)[0])
        assert all(real(a) != real(b) for a, b, _ in rows)
        assert expected <= {(real(a), real(b), s) for a, b, s in rows}
    assert exactly(asked(0.9, [b"old"], docs=[b"old"], collapse=True)[0])
    rows = exactly(asked(0.9, [b"old"], docs=[b"new/zlink.txt"])[0])
    assert rows
    assert all(b != b"old/072.txt" for _, b, _ in rows)


def write_rows():
    """Write the texts of each folder as the rows of a file, too."""
    for side in ("new", "old"):
        lines = (json.dumps({"text": path.read_text()}) for path in sorted(Path(side).iterdir()))
        Path(f"{side}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def stored(run):
    run("index old --store archive -t 0.6 --perms 256")


def state_of(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in Path(folder).iterdir()}


def printed(result):
    return [
        (os.fsencode(a), os.fsencode(b), float(s), verified) for a, b, s, verified, _ in result.rows
    ]


def test_an_index_whose_documents_are_gone(run, two_sides):
    run("shingle old --store archive")
    stored(run)
    options = ("--against", "archive", "-t", "0.6", "--recall", "0.99999")
    exact = [(*row, "exact") for row in brute_force(0.6)]
    assert printed(run("pairs new", *options)) == exact
    shutil.move("old", "elsewhere")
    from_sets = run("pairs", "new", *options)  # shingles.npz has them
    assert printed(from_sets) == exact
    assert "of OTHER in this answer changed or vanished" in from_sets.err
    assert printed(run("pairs new", *options[:-2], "--exact")) == exact
    os.remove("archive/shingles.npz")
    result = run("pairs new", *options)
    rows = printed(result)
    true = {row[:2]: row[2] for row in brute_force(0.01, there="elsewhere")}
    prints = {
        name: frozenset(each)
        for side in ("new", "elsewhere")
        for name, each in reference.folder_sets(side).items()
    }
    assert len(rows) > 50
    for a, b, s, verified in rows:
        there = b.replace(b"old/", b"elsewhere/")
        identical = prints[os.fsdecode(a)] == prints[os.fsdecode(there)]
        assert verified == ("exact" if identical else "estimate")
        assert abs(s - true[a, there]) < (1e-9 if identical else 0.15)
        assert identical or s * 256 == pytest.approx(round(s * 256))
    estimates = sum(verified == "estimate" for *_, verified in rows)
    said = f"{estimates} pairs of {len(rows)} by signature estimate, standard error 0.031 or less"
    assert f"{said} (K = 256)" in result.err
    assert re.search(r"\d+ documents of OTHER gone", result.err)
    refused = run("pairs new", *options[:-2], "--exact", code=2)
    assert "--exact needs the shingle sets of all documents" in refused.err
    shutil.move("elsewhere", "old")
    exactly_again = run("pairs new", *options)
    assert printed(exactly_again) == exact
    assert "estimate" not in exactly_again.err


def test_an_index_whose_documents_are_partly_gone_or_changed(run, two_sides):
    stored(run)
    options = ("--against", "archive", "-t", "0.6", "--recall", "0.99999")
    exact = printed(run("pairs new", *options))
    partner = max(exact, key=lambda row: row[2])[1]
    status = os.stat(partner)
    os.utime(partner, (1, 1))
    alone = run("pairs new", *options, "--unmatched").err
    assert "warning: 1 document of OTHER in this answer changed or vanished" in alone
    os.utime(partner, ns=(status.st_atime_ns, status.st_mtime_ns))
    lost = {b"old/%03d.txt" % i for i in range(0, 40, 2)}
    for name in sorted(lost):
        os.remove(name)
    status = os.stat("old/001.txt")
    Path("old/001.txt").write_text("something else entirely")
    lost.add(b"old/001.txt")
    os.utime("old/001.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    partly = run("pairs new", *options)
    assert "gone" in partly.err
    assert "1 document of OTHER changed since" in partly.err
    rows = printed(partly)
    assert [row for row in rows if row[1] not in lost] == [r for r in exact if r[1] not in lost]
    assert {row for row in rows if row[1] in lost and row[3] == "exact"} <= set(exact)
    assert any(row[3] == "estimate" for row in rows)
    near = {row[:2] for row in exact if row[1] in lost and row[2] > 0.8}
    assert near <= {row[:2] for row in rows}


def test_every_piece_of_candidates_is_verified_by_estimate(monkeypatch):
    there, lost = (RaggedSets.from_sets(sets) for sets in ([{1, 2, 3}, {4, 5, 6}], [(), ()]))
    side = Side(np.full(2, 3), np.arange(1, 3, dtype=np.uint64), None, there.take)
    other = Side(np.full(2, 3), np.arange(3, 5, dtype=np.uint64), None, lost.take)
    verifier = Verifier(RUN, Sides.of(RUN, side, other), 0.5)
    monkeypatch.setattr(verifier, "_estimate", lambda left, right: (left, right, left / 4))
    pieces = [tuple(np.array([each], np.uint32) for each in pair) for pair in ((0, 2), (1, 3))]
    found = [pair for a, b, _ in verifier.verify(pieces) for pair in zip(a, b, strict=True)]
    assert found == [(0, 2), (1, 3)]


def test_a_changed_file_is_not_paired_with_itself_by_an_estimate(run, two_sides):
    """The store knows its old signature only; neither the pair nor its estimate counts."""
    stored(run)
    for path in Path("old").iterdir():
        path.write_text(path.read_text("utf-8", "replace") + " and more", "utf-8")
    rows, _ = asked(0.6, (b"archive",), docs=(b"old",))
    assert all(a != b for a, b, *_ in rows)
    assert any(estimated for *_, estimated in rows)


# --- what is not even met -------------------------------------------------------------------------


def table_of(buckets):
    """A band table of documents with these keys: a row for each band."""
    keys = np.array(buckets, np.uint64)
    return band_table.sort_keys(RUN, keys, np.arange(keys.shape[1]))


@settings(max_examples=many(200), deadline=None)
@given(st.data())
def test_candidates_across_are_those_of_the_whole_table(data):
    n, kinds = data.draw(st.integers(2, 30)), data.draw(st.sampled_from([1, 2, 3, 30]))
    origins = data.draw(st.lists(st.integers(0, kinds - 1), min_size=n, max_size=n))
    if data.draw(st.booleans()):  # Two sides are two origins, one behind the other.
        origins.sort()
    row = st.lists(st.integers(0, 5), min_size=n, max_size=n)
    keys = data.draw(st.lists(row, min_size=1, max_size=4))
    limit = data.draw(st.sampled_from([0, 0, 2, 4]))
    table = table_of(keys)
    expected, skipped, counted = set(), set(), []
    tally = [0, 0]
    for row in keys:
        for key in sorted(set(row)):
            bucket = [i for i in range(n) if row[i] == key]
            across = {(a, b) for a, b in combinations(bucket, 2) if origins[a] != origins[b]}
            counted += [(len(across), -len(counted), len(bucket), bucket[0])] if across else []
            if across and limit and len(bucket) > limit:
                skipped |= set(bucket)
                tally = [tally[0] + 1, tally[1] + len(across)]
            else:
                expected |= across
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(candidates, "PIECE", data.draw(st.sampled_from([1, 3, 1 << 10])))
        met = candidate_pairs(RUN, table, limit, np.array(origins, np.uint32))
        buckets, pieces = met.buckets, list(met.pieces)
    found = [pair for piece in pieces for pair in zip(*(c.tolist() for c in piece), strict=True)]
    assert len(found) == len(set(found))
    assert set(found) == expected
    if origins == sorted(origins) and kinds < 3:  # The best match is found one by one.
        assert len(list(groupby(left for left, _ in found))) == len({left for left, _ in found})
    assert buckets.documents == len(skipped)
    assert [buckets.skipped, buckets.pairs] == tally
    most, _, largest, example = max(counted, default=(0, 0, 0, 0))
    assert (buckets.largest, buckets.example, buckets.most) == (largest, example, most)


def test_a_template_on_one_side_costs_what_the_other_has_of_it(monkeypatch):
    """20,000 documents of one template beside 10 of it: 200,000 candidates, not 200 million."""
    monkeypatch.setattr(candidates, "PIECE", 1 << 12)
    keys = [[1] * 20_010, [2] * 20_000 + [3] * 10, list(range(20_010))]
    for split in (20_000, 10):
        origins = (np.arange(20_010) >= split).astype(np.uint32)
        met = candidate_pairs(RUN, table_of(keys), origins=origins)
        buckets, pieces = met.buckets, met.pieces
        met = sum(len(left) for left, _ in pieces)
        assert met == 10 * 20_000
        assert (buckets.largest, buckets.most) == (20_010, 10 * 20_000)


def test_copies_on_both_sides_are_counted_but_not_made():
    """100,000 equal documents on one side, 50,000 on the other: five thousand million pairs."""
    duplicate_of = np.concatenate([np.zeros(100_000, np.int64), np.full(50_000, 100_000)])
    same = np.array([0], np.uint32), np.array([100_000], np.uint32)
    pairs = gather_pairs(RUN, [(*same, np.array([1.0]))])
    made = expand_copies(RUN, pairs, duplicate_of, across=same)
    assert len(made) == 100_000 * 50_000
    left, right, _ = next(made.pieces())
    assert (left[:2].tolist(), right[:2].tolist()) == ([0, 0], [100_000, 100_001])
    assert len(left) <= 1 << 18
    assert len(expand_copies(RUN, pairs, duplicate_of, across=same, collapse=True)) == 150_000 - 1


# --- what is only in DOCS -------------------------------------------------------------------------


def only_here(threshold, here="new", there="old"):
    """Names of documents of DOCS that are near no document of OTHER, by brute force."""
    near = {name for name, *_ in brute_force(threshold, here, there)}
    return sorted({*map(os.fsencode, reference.folder_sets(here))} - near)


def unmatched(run, *arguments):
    return [os.fsencode(name) for (name,) in run("pairs", *arguments, "--unmatched").rows]


@pytest.mark.parametrize("threshold", part([0.4, 0.6, 0.8, 1.0], 2))
def test_what_is_only_in_docs_is_what_brute_force_says(two_sides, run, threshold):
    expected = only_here(threshold)
    assert 1 < len(expected) < 39
    assert b"new/empty.txt" in expected
    options = ("--against", "old", "-t", str(threshold), "--no-store")
    for jobs in ("1", "4"):
        assert unmatched(run, "new", *options, *BANDS, "-j", jobs) == expected
        assert unmatched(run, "new", *options, "--exact", "-j", jobs) == expected
    pairs = {row[0] for row in run("pairs new", *options, "--exact").rows}
    assert {os.fsdecode(name) for name in expected} == set(reference.folder_sets("new")) - pairs
    assert unmatched(run, "new", "--against", "new", "-t", "0.8", "--no-store") == [
        b"new/empty.txt"
    ]


def test_what_is_the_same(two_sides, run):
    """What is only in DOCS, and what of them goes."""
    texts, others = ({str(p): p.read_text() for p in Path(d).iterdir()} for d in ("new", "old"))
    for same, form in (("bytes", str), ("text", str.lower)):
        met, drop = {form(text) for text in others.values()} - {""}, []
        expected = sorted(
            os.fsencode(name) for name, text in texts.items() if form(text) not in met
        )
        options = ("new", "--against", "old", "--no-store", "--same", same)
        assert unmatched(run, *options) == expected
        assert (b"new/upper.txt" in expected) == (same == "bytes")
        for name, text in sorted(texts.items(), key=lambda each: (len(each[0]), each[0])):
            drop += [name] if text and form(text) in met else []
            met.add(form(text))
        found = run("clusters", *options, "--emit", "drop", "-0").out.decode().split("\0")[:-1]
        assert found == sorted(drop)


def test_what_is_only_in_docs_against_stores_and_of_rows(two_sides, run):
    stored(run)
    options = ("--against", "archive", "-t", "0.6", "--recall", "0.99999")
    expected = only_here(0.6)
    assert unmatched(run, "new", *options) == expected
    assert unmatched(run, *options) == expected  # of the last run
    shutil.move("old", "elsewhere")
    result = run("pairs new", *options, "--unmatched")
    assert re.search(r"documents? of DOCS near OTHER by signature estimate", result.err)
    assert "changed or vanished since OTHER was indexed" in result.err
    assert abs(len(result.rows) - len(expected)) < 6
    shutil.move("elsewhere", "old")
    write_rows()
    names = [os.fsencode(path) for path in sorted(Path("new").iterdir())]
    rows = unmatched(run, "new.jsonl", "--against", "old.jsonl", *options[2:], "--no-store")
    numbers = sorted(int(name.rpartition(b":")[2]) for name in rows)
    assert sorted(names[number - 1] for number in numbers) == expected


def test_one_template_costs_a_comparison_a_document(two_sides, monkeypatch):
    """300 documents and 300 others of one template: no list of their 90,000 pairs."""
    words = [f"word{i}" for i in range(300)]
    for folder in ("a", "b"):
        write_files(folder, {f"{i}": " ".join([*words, f"{folder}{i}"]) for i in range(300)})
    both = open_comparison(None, [b"a"], PairParams(), [b"b"], threshold=0.8)
    compared = []
    verify = verification.verify_jaccard

    def counted(run, pieces, *rest):
        for left, right in pieces:
            compared.append(len(left))
            yield from verify(run, [(left, right)], *rest)

    monkeypatch.setattr(verification, "verify_jaccard", counted)
    matches = both.find_best_matches()
    assert (matches.right >= 0).all()
    assert sum(compared) <= 300


# --- groups ---------------------------------------------------------------------------------------

HOW = BANDS, ("--exact",), (*BANDS, "--keep", "longest", "-j", "4")


@pytest.mark.parametrize(("how", "threshold"), part(product(HOW, ("0.5", "0.8", "1")), 3))
def test_what_is_near_goes_and_the_rest_is_grouped_as_ever(two_sides, run, threshold, how):
    near, before = brute_force(float(threshold)), state_of("old")
    pairs = {(os.fsdecode(a), os.fsdecode(b)): similarity for a, b, similarity in near}
    gone = {a for a, _ in pairs}
    compared = {name for name, each in reference.folder_sets("new").items() if each}
    assert 2 <= len(gone) < len(compared) - 3
    options = ("--against", "old", "-t", threshold, *how, "--no-store")
    rows = [*map(json.loads, run("clusters new", *options, "--format", "jsonl").lines)]
    other = {row["group"]: row["name"] for row in rows if row["role"] == "other"}
    led = {row["name"]: row for row in rows if row["role"] == "drop" and row["group"] in other}
    assert led.keys() == gone
    for name, row in led.items():
        assert row["similarity"] == pairs[name, other[row["group"]]]
        assert row["copy"] == (row["similarity"] == 1)
    assert led["new/000.txt"]["same"] == "bytes"
    assert led["new/upper.txt"]["same"] == "text"
    # The rest is what `clusters` makes of it alone.
    Path("rest").mkdir()
    for name in compared - gone:
        shutil.copy2(name, "rest")
    alone = run("clusters rest", *options[2:], "--format", "jsonl").lines
    grouped = [row | {"group": 0} for row in rows if row["group"] not in other]
    alone = (json.loads(row.replace('"rest/', '"new/')) | {"group": 0} for row in alone)
    assert grouped == list(alone) != []
    emitted = (run("clusters new", *options, "--emit", what).lines for what in ("keep", "drop"))
    keep, drop = map(set, emitted)
    assert keep | drop == compared | {"new/empty.txt"}  # which is not compared, and stays
    assert not keep & drop
    assert gone <= drop
    assert state_of("old") == before


def test_rows_are_written_without_what_goes(two_sides, run):
    write_rows()
    options = ("clusters", "new.jsonl", "--against", "old.jsonl", *BANDS, "--no-store")
    assert not run(*options, "--write", "out.jsonl").out
    dropped = {int(name.split(":")[1]) for name in run(*options, "--emit", "drop").lines}
    lines = Path("new.jsonl").read_text().splitlines()
    kept = [line for number, line in enumerate(lines, 1) if number not in dropped]
    assert Path("out.jsonl").read_text().splitlines() == kept
    names = sorted(os.listdir(b"new"))
    assert {names.index(os.path.basename(a)) + 1 for a, *_ in brute_force(0.8)} <= dropped
