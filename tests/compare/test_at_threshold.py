"""A pair exactly at the threshold, through the commands.

7 / 25 is 0.28 and 55 / 100 is 0.55, but 0.28 * 25 is more than 7 as a double, and 0.55 * 100 more
than 55.
"""

import pytest

#: (smaller set, larger set) and the thresholds that the pair meets and misses.
PAIRS = [
    (7, 25, "0.28", "0.28000000000000008"),
    (55, 100, "0.55", "0.5500000000000002"),
    (11, 20, "0.55", "0.5500000000000002"),
]
WAYS = {"bands": ["--bands", "128", "--rows", "1"], "exact": ["--exact"]}


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}/{pair[1]}")
def lists(request, tmp_path):
    """Id lists with one pair, and one document beside it that is like none."""
    small, large, *thresholds = request.param
    lines = [("small", range(small)), ("large", range(large)), ("other", range(500, 540))]
    for folder, chosen in (("all", lines), ("one", lines[:1]), ("two", lines[1:])):
        (tmp_path / folder).mkdir()
        text = "".join(f"{name} {' '.join(map(str, ids))}\n" for name, ids in chosen)
        (tmp_path / folder / "ids").write_text(text)
    return small / large, *thresholds


@pytest.mark.parametrize("way", WAYS)
def test_every_command_finds_it(run, lists, way):
    similarity, at, above = lists
    assert float(at) == similarity
    options = ["--tokens", "ids", "--no-store", *WAYS[way]]
    for threshold, found in ((at, True), (above, False)):
        asked = [*options, "-t", threshold]
        for names, more in (
            (("small", "large"), ["all"]),
            (("large", "small"), ["two", "--against", "one"]),
        ):
            pairs = run("pairs", *more, *asked).rows
            rows = [(*names, similarity)] if found else []
            assert [(a, b, float(score)) for a, b, score, *_ in pairs] == rows, more
        for linkage in ("representative", "single"):
            clusters = run("clusters all", *asked, "--linkage", linkage).rows
            names = sorted((row[2], float(row[3])) for row in clusters)
            assert len(names) == 2 * found
            assert {score for _, score in names} == ({1.0, similarity} if found else set())
    if way == "bands":
        run("index all --tokens ids", *WAYS[way])
        for threshold, found in ((at, True), (above, False)):
            answer = run("query small -t", threshold, "--format", "json").out
            assert (b'"large"' in answer) == found
