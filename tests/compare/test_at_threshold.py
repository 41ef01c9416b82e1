"""A pair exactly at the threshold, through the commands.

7 / 25 is 0.28 and 55 / 100 is 0.55, but 0.28 * 25 is more than 7 as a double, and 0.55 * 100 more
than 55.
"""

from itertools import product

import pytest

from tests.conftest import part

#: (smaller set, larger set) and the thresholds that the pair meets and misses.
PAIRS = [
    (7, 25, "0.28", "0.28000000000000008"),
    (55, 100, "0.55", "0.5500000000000002"),
    (11, 20, "0.55", "0.5500000000000002"),
]
WAYS = {"bands": "--bands 128 --rows 1", "exact": "--exact"}


@pytest.mark.parametrize(("pair", "way"), part(product(PAIRS, WAYS), 2))
def test_every_command_finds_it(run, tmp_path, pair, way):
    small, large, at, above = pair
    lines = [("small", range(small)), ("large", range(large)), ("other", range(500, 540))]
    for folder, chosen in (("all", lines), ("one", lines[:1]), ("two", lines[1:])):
        (tmp_path / folder).mkdir()
        text = "".join(f"{name} {' '.join(map(str, ids))}\n" for name, ids in chosen)
        (tmp_path / folder / "ids").write_text(text)
    similarity = small / large
    assert float(at) == similarity
    for threshold, found in ((at, True), (above, False)):
        options = f"--tokens ids --no-store {WAYS[way]} -t {threshold}"
        for names, more in ((("small", "large"), "all"), (("large", "small"), "two --against one")):
            rows = [(a, b, float(score)) for a, b, score, *_ in run(f"pairs {more} {options}").rows]
            assert rows == [(*names, similarity)] * found, more
        for linkage in ("representative", "single"):
            clusters = run(f"clusters all {options} --linkage {linkage}").rows
            scores = [(row[2], float(row[3])) for row in clusters]
            assert scores == [("small", 1.0), ("large", similarity)] * found
        if way == "bands":
            run(f"index all --tokens ids {WAYS[way]}")
            answer = run("query small -t", threshold, "--format", "json").out
            assert (b'"large"' in answer) == found
