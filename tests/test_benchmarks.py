"""The benchmark suite's own promises: corpora are the same everywhere, and the README's section is
made from results. Measures nothing.
"""

import hashlib
import json
import sys

import pytest

from benchmarks import measure, report
from benchmarks.corpora import KINDS, REPLACED, corpus, text_of
from benchmarks.peers.texts import jaccard
from benchmarks.tables import Table


def test_corpora_never_change():
    digest = hashlib.blake2b(digest_size=8)
    for kind in sorted(KINDS.keys() - {"huge"}):
        for number in (0, 1, 9, 1019, 999_999):
            digest.update(text_of(kind, number))
    assert digest.hexdigest() == "ceec6f02f2371276", (
        "raise corpora.VERSION, so that kept folders are made anew"
    )


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("natural", 5000, 6000), ("tiny", 50, 250), ("cyrillic", 4000, 7000), ("han", 4000, 7000)],
)
def test_sizes(kind, low, high):
    sizes = [len(text_of(kind, number)) for number in range(100)]
    assert low <= sum(sizes) / len(sizes) <= high
    assert len(set(sizes)) > 30


def shingles(number):
    words = text_of("natural", number).decode().lower().replace(".", " ").replace(",", " ").split()
    return set(zip(words, words[1:], words[2:], strict=False))


def test_every_tenth_is_a_near_copy_of_known_similarity():
    expected = sorted((1 - p) ** 3 / (2 - (1 - p) ** 3) for p in REPLACED)
    assert expected[0] == pytest.approx(0.52, abs=0.01)
    assert expected[-1] == 1
    originals = [shingles(number) for number in range(99) if number % 10 != 9]
    for number in range(9, 100, 10):
        nearest = max(jaccard(shingles(number), other) for other in originals)
        assert min(abs(nearest - each) for each in expected) < 0.06
        assert nearest > 0.4


def test_a_small_corpus_begins_a_large_one(tmp_path):
    small, large = corpus(tmp_path, "tiny", 30), corpus(tmp_path, "tiny", 1100)
    assert sorted(path.name for path in large.iterdir()) == ["0000", "0001"]
    files = sorted(small.rglob("*.txt"))
    assert len(files) == 30
    for file in files:
        assert file.read_bytes() == (large / file.relative_to(small)).read_bytes()
    assert corpus(tmp_path, "tiny", 30, seed=2) != small


def test_a_corpus_that_was_not_finished_is_made_anew(tmp_path):
    (tmp_path / "tiny-3" / "0000").mkdir(parents=True)
    assert len(list(corpus(tmp_path, "tiny", 3).rglob("*.txt"))) == 3


def test_runs_are_measured(tmp_path):
    ran = measure.run(
        sys.executable,
        "-c",
        r"x = bytearray(50_000_000); print('b\ta\t1\na\tc\t1')",
        cwd=tmp_path,
        keep=True,
    )
    assert ran.pairs == {(b"a", b"b"), (b"a", b"c")}
    assert ran.lines == 2
    assert 50e6 < ran.peak < 100e6
    assert 0 < ran.seconds < 10
    with pytest.raises(measure.CommandFailedError, match="exit code 3"):
        measure.run(sys.executable, "-c", "raise SystemExit(3)", cwd=tmp_path)


def test_ratios_are_made_within_each_turn():
    turn = iter([1.0, 2.0, 10.0, 30.0, 1.0, 5.0])
    done = measure.interleaved(
        3, {"a": lambda: measure.Run(next(turn)), "b": lambda: measure.Run(next(turn))}
    )
    assert measure.ratio(done["b"], done["a"]) == 3
    assert measure.seconds(done["a"]) == 1


def test_recall_and_precision():
    true = frozenset({(b"a", b"b"), (b"a", b"c")})
    assert measure.recall(frozenset({(b"a", b"b"), (b"x", b"y")}), true) == 0.5
    assert measure.precision(frozenset({(b"a", b"b"), (b"x", b"y")}), true) == 0.5
    assert measure.recall(frozenset(), frozenset()) == 1


def results():
    table = Table("**Cost.**", note="As of now.")
    table.rows.append(
        {"documents": 10_000, "seconds": 0.5, "aim": "1 s", "ratio": 2.345, "memory": 123_456_789}
    )
    table.rows.append({"documents": 1_000_000, "seconds": 51.2})
    versions = {"processors": "2", "system": "Linux", "Python": "3.11.1", "rensa": "not installed"}
    return {"scale": {"versions": versions, "runs": 5, "took": 3, "tables": [table.to_json()]}}


def test_readme_section_is_made_from_results(tmp_path):
    file, readme = tmp_path / "results.json", tmp_path / "README.md"
    file.write_text(json.dumps(results()))
    readme.write_text("before\n<!-- performance -->\nold\n<!-- /performance -->\nafter\n")
    for _ in range(2):  # again changes nothing
        report.write_readme(file, readme)
        text = readme.read_text("utf-8")
        assert text.startswith("before\n<!-- performance -->\n2 processors, Linux, Python 3.11.1. ")
        assert text.endswith("\n<!-- /performance -->\nafter\n")
        assert (
            "| documents | seconds | ratio | memory | aim |\n| --: | --: | --: | --: | --- |\n"
            in text
        )
        assert (
            "| 10,000 | 0.500 s | 2.35 × | 123 MB | 1 s |\n| 1,000,000 | 51.2 s |  |  |  |\n\n"
            "As of now." in text
        )
        assert "old" not in text
    readme.write_text("no comments")
    with pytest.raises(ValueError, match="not both there"):
        report.write_readme(file, readme)


def test_readme_has_the_place():
    text = (report.ROOT / "benchmarks/README.md").read_text("utf-8")
    assert text.index(report.BEGIN) < text.index(report.END)


def test_table_on_a_terminal():
    (table,) = results()["scale"]["tables"]
    assert Table(**table).text().splitlines()[2:4] == [
        "  documents  seconds   ratio  memory  aim",
        "     10,000  0.500 s  2.35 ×  123 MB  1 s",
    ]
