"""`--measure containment` through the commands, held against the definition."""

import json
from itertools import combinations

import pytest

from tests.conftest import ROOT, write_files
from tests.reference import shingle_list

LICENCES = ROOT / "sample_corpus" / "licences"
MEASURE = ["--measure", "containment"]


def brute_force(sets, threshold):
    """The rows of the listing: inside, holder, containment, similarity, and both sizes."""
    found = []
    for a, b in combinations(sorted(sets, key=str.encode), 2):
        inside, holder = (b, a) if len(sets[b]) < len(sets[a]) else (a, b)
        x, y = sets[inside], sets[holder]
        if x and len(x & y) / len(x) >= threshold:
            shares = len(x & y) / len(x), len(x & y) / len(x | y)
            found.append((inside, holder, *shares, len(x), len(y)))
    return sorted(found, key=lambda row: (-row[2], -row[3], row[0].encode(), row[1].encode()))


def parse(result):
    """Rows of a run without folders, and without the column `same`."""
    return [
        (*(name.rpartition("/")[2] for name in row[:2]), *map(float, row[2:4]), *map(int, row[4:6]))
        for row in result.rows
    ]


@pytest.fixture(scope="module")
def truth():
    """Shingle sets of the licences by name."""
    files = sorted(LICENCES.iterdir())
    return {each.name: set(shingle_list(each.read_text("utf-8"))) for each in files}


@pytest.mark.parametrize("threshold", ["0.3", "0.8", "1"])
def test_pairs_are_those_of_the_definition(run, truth, threshold):
    expected = brute_force(truth, float(threshold))
    assert expected
    asked = [*MEASURE, "-t", threshold]
    first = run("pairs", LICENCES, *asked, "--no-store", "-j1")
    assert parse(first) == expected
    run("index", LICENCES, "-j2")
    for more in (["-j2"], ["-j4", "--exact"]):
        assert run("pairs", *asked, *more).out == first.out, more


def test_a_query_answers_both_ways(run, truth):
    run("index", LICENCES)
    asked = ["query", "MIT.txt", *MEASURE, "-t", "0.5"]
    rows = [json.loads(line) for line in run(*asked, "--format", "jsonl").lines]
    expected = []
    for inside, holder, *shares, _, _ in brute_force(truth, 0.5):
        if "MIT.txt" in (inside, holder):
            way = "inside" if inside == "MIT.txt" else "holds"
            other = holder if way == "inside" else inside
            if len(truth[other]) == len(truth["MIT.txt"]):
                way = "both"
            expected.append((other, *shares, len(truth[other]), way))
    keys = ("containment", "similarity", "shingles", "relation")
    found = [(row["name"].rpartition("/")[2], *(row[key] for key in keys)) for row in rows]
    assert found == sorted(expected, key=lambda row: (-row[1], -row[2], row[0].encode()))
    assert {row[-1] for row in found} == {"inside", "holds"}
    # A text from elsewhere, and one that is stored by another name, have the same answer.
    raw = (LICENCES / "MIT.txt").read_bytes()
    own = run("query -", *MEASURE, "-t", "0.5", stdin=raw).rows
    assert [row for row in own if row[1:3] != ["1.0", "1.0"]] == run(*asked).rows
    assert run(*asked, "--top", "2").rows == run(*asked).rows[:2]


def test_both_sides_of_against(run, tmp_path, truth):
    """Rows of DOCS lie inside, or hold, a document of OTHER; no file is paired with itself."""
    here, there = [*truth][::2], [*truth][1::2]  # every other licence
    for side, names in {"here": here, "there": there}.items():
        write_files(tmp_path / side, {name: (LICENCES / name).read_bytes() for name in names})
    run("index there --store stored")
    found = run("pairs here --against there", *MEASURE, "-t", "0.6", "--no-store")
    stored = run("pairs here --against stored", *MEASURE, "-t", "0.6", "--no-store")
    assert found.out == stored.out
    wanted = [row for row in brute_force(truth, 0.6) if (row[0] in here) != (row[1] in here)]
    rows, expected = (
        sorted((*sorted(row[:2]), *row[2:4]) for row in each) for each in (parse(found), wanted)
    )
    assert rows == expected
    assert len(found.rows) > 20
    shares = [(-row[2], -row[3]) for row in parse(found)]
    assert shares == sorted(shares)
    for row in found.rows:
        assert row[0].startswith("here/")
        assert row[1].startswith("there/")
        sizes = [int(size) for size in row[4:6]]
        ways = {(True, False): "inside", (False, True): "holds", (False, False): "both"}
        assert row[7] == ways[sizes[0] < sizes[1], sizes[0] > sizes[1]]
    alone = run("pairs here --against there", *MEASURE, "-t", "0.6", "--unmatched").rows
    matched = {row[0] for row in found.rows}
    assert matched.isdisjoint(name for (name,) in alone)
    assert len(alone) + len(matched) == len(here)
    itself = run("pairs here --against here", *MEASURE, "-t", "0.6", "--no-store")
    assert all(row[0] != row[1] for row in itself.rows)
