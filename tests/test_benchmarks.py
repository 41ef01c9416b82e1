"""The benchmark suite's own promises: corpora are the same everywhere, and the README's section is
made from results. Measures nothing.
"""

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher

import numpy as np
import pytest

from benchmarks import measure, noise, report, rows
from benchmarks.corpora import KINDS, REPLACED, corpus, text_of
from benchmarks.peers.texts import jaccard
from benchmarks.sections import noisy, scripts
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table
from tests.conftest import require

pq = require("parquet", "pyarrow.parquet")


def test_corpora_never_change():
    digest = hashlib.blake2b(digest_size=8)
    for kind in sorted(KINDS.keys() - {"huge"}):
        for number in (0, 1, 9, 1019, 999_999):
            digest.update(text_of(kind, number))
    raised = "raise corpora.VERSION, so that kept folders are rebuilt"
    assert digest.hexdigest() == "ceec6f02f2371276", raised


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("natural", 5000, 6000), ("tiny", 50, 250), ("cyrillic", 4000, 7000), ("han", 4000, 7000)],
)
def test_sizes(kind, low, high):
    sizes = [len(text_of(kind, number)) for number in range(100)]
    assert low <= sum(sizes) / len(sizes) <= high
    assert len(set(sizes)) > 30


EXPECTED = sorted((1 - p) ** 3 / (2 - (1 - p) ** 3) for p in REPLACED)


def shingles_of(text):
    words = text.lower().replace(".", " ").replace(",", " ").split()
    return set(zip(words, words[1:], words[2:], strict=False))


def test_every_tenth_is_a_near_copy_of_known_similarity():
    assert EXPECTED[0] == pytest.approx(0.52, abs=0.01)
    assert EXPECTED[-1] == 1
    shingles = [shingles_of(text_of("natural", number).decode()) for number in range(100)]
    originals = [each for number, each in enumerate(shingles) if number % 10 != 9]
    for copy in shingles[9::10]:
        nearest = max(jaccard(copy, other) for other in originals)
        assert min(abs(nearest - each) for each in EXPECTED) < 0.06
        assert nearest > 0.4


def test_a_small_corpus_begins_a_large_one(tmp_path):
    small, large = corpus(tmp_path, "tiny", 30), corpus(tmp_path, "tiny", 1100)
    assert sorted(path.name for path in large.iterdir()) == ["0000", "0001"]
    files = sorted(small.rglob("*.txt"))
    assert len(files) == 30
    for file in files:
        assert file.read_bytes() == (large / file.relative_to(small)).read_bytes()
    assert corpus(tmp_path, "tiny", 30, seed=2) != small
    (tmp_path / "tiny-3" / "0000").mkdir(parents=True)  # as of a run that was not finished
    assert len(list(corpus(tmp_path, "tiny", 3).rglob("*.txt"))) == 3


def test_rows_never_change_and_begin_a_larger_corpus(tmp_path, monkeypatch):
    texts = rows.texts_of("short", np.array([0, 9, 1_234_567, 9_999_999])).to_pylist()
    digest = hashlib.blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()
    assert digest == "1c3e831883be9a6e", "raise rows.VERSION, so that kept folders are rebuilt"
    monkeypatch.setattr(rows, "FILE", 1000)
    monkeypatch.setattr(rows, "_FEW", 1000)
    monkeypatch.setattr(rows, "ProcessPoolExecutor", lambda jobs, _: ThreadPoolExecutor(jobs))
    small, large = (rows.corpus(tmp_path, "short", n) for n in (30, 2501))
    assert len(list(large.iterdir())) == 3
    # Files are read in the order of their names.
    few, many = (pq.read_table(folder).to_pylist() for folder in (small, large))
    assert few == many[:30]
    assert [row["id"] for row in many] == list(range(2501))
    assert 380 < sum(len(row["text"]) for row in many) / 2501 < 430


def test_every_tenth_row_is_a_near_copy_of_known_similarity():
    numbers = np.arange(9, 4000, 10)
    sources = rows.sources_of(numbers)
    assert (sources < numbers).all()
    assert (sources % 10 != 9).all()
    texts = (rows.texts_of("long", each).to_pylist() for each in (numbers, sources))
    found = sorted(jaccard(*map(shingles_of, pair)) for pair in zip(*texts, strict=True))
    assert abs(np.mean(found) - np.mean(EXPECTED)) < 0.03  # 4 · 0.15 / sqrt(400)
    assert found[0] > EXPECTED[0] - 0.15
    alone = [shingles_of(text) for text in rows.texts_of("long", np.arange(9)).to_pylist()]
    assert max(jaccard(a, b) for at, a in enumerate(alone) for b in alone[:at]) < 0.05


def test_runs_are_measured(tmp_path):
    work = "import time; x = bytearray(b'x') * 50_000_000; time.sleep(0.3)"
    ran = measure.run(sys.executable, "-c", work, cwd=tmp_path, samples=50)
    assert 50e6 < ran.memory < 100e6
    assert ran.mapped > 0
    assert measure.run(sys.executable, "-c", "", cwd=tmp_path).memory == 0
    work = r"x = bytearray(50_000_000); print('b\ta\t1\na\tc\t1')"
    ran = measure.run(sys.executable, "-c", work, cwd=tmp_path, keep=True)
    assert ran.pairs == {(b"a", b"b"), (b"a", b"c")}
    assert ran.lines == 2
    assert 50e6 < ran.peak < 100e6
    assert ran.seconds > 0
    with pytest.raises(measure.CommandFailedError, match="exit code 3"):
        measure.run(sys.executable, "-c", "raise SystemExit(3)", cwd=tmp_path)


def test_ratios_are_made_within_each_turn():
    turn = iter([1.0, 2.0, 10.0, 30.0, 1.0, 5.0])
    done = measure.interleaved(3, dict.fromkeys("ab", lambda: measure.Run(next(turn))))
    assert measure.ratio(done["b"], done["a"]) == 3
    assert measure.seconds(done["a"]) == 1


def test_recall_and_precision():
    true, found = (frozenset({(b"a", b"b"), other}) for other in ((b"a", b"c"), (b"x", b"y")))
    assert measure.recall(found, true) == measure.precision(found, true) == 0.5
    assert measure.recall(frozenset(), frozenset()) == 1


def results():
    table = Table("**Cost.**", note="As of now.")
    more = {"aim": "1 s", "ratio": 2.345, "memory": 123_456_789}
    table.rows.append({"documents": 10_000, "seconds": 0.5, **more})
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
        assert text.endswith(
            "| documents | seconds | ratio | memory | aim |\n| --: | --: | --: | --: | --- |\n"
            "| 10,000 | 0.500 s | 2.35 × | 123 MB | 1 s |\n| 1,000,000 | 51.2 s |  |  |  |\n\n"
            "As of now.\n<!-- /performance -->\nafter\n"
        )
        assert "old" not in text
    readme.write_text("no comments")
    with pytest.raises(ValueError, match="not both there"):
        report.write_readme(file, readme)


def test_pages_are_made_from_results(tmp_path):
    file, pages = tmp_path / "results.json", [tmp_path / each for each in report.PAGES.values()]
    for name, page in zip(report.PAGES, pages, strict=True):
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"before\n<!-- {name} -->\nold\n<!-- /{name} -->\nafter\n")
    for measured in ([], ["rows"], ["rows", "noisy", "scripts"]):
        file.write_text(json.dumps(dict.fromkeys(measured, results()["scale"])))
        report.write_pages(file, tmp_path)
        for name, page in zip(report.PAGES, pages, strict=True):
            text = page.read_text("utf-8")
            assert ("old" in text) == (name not in measured)
            assert text.startswith(f"before\n<!-- {name} -->\n")
            assert text.endswith(f"\n<!-- /{name} -->\nafter\n")
    assert "\n\n**Cost.**\n\n| documents |" in text


def test_all_pages_have_the_place():
    for name, page in report.PAGES.items():
        text = (report.ROOT / page).read_text("utf-8")
        assert text.index(f"<!-- {name} -->") < text.index(f"<!-- /{name} -->")
    text = (report.ROOT / "benchmarks/README.md").read_text("utf-8")
    assert text.index(report.BEGIN) < text.index(report.END)


def test_the_page_on_scripts_has_what_is_measured(tmp_path):
    page = (report.ROOT / report.PAGES["scripts"]).read_text("utf-8")
    (table,) = scripts.section(Bench(tmp_path))
    assert table.markdown() in page


def test_noisy_texts_are_found_and_no_others(tmp_path):
    """Up to 10 % wrong characters by --noisy, up to 30 % by a passage."""
    bench = Bench(tmp_path)
    texts = tuple(f"udhr/{name}.txt" for name in ("eng", "rus", "hin", "cmn_hans"))
    passages = ("passages", "--noisy", "--emit", "pairs")
    for low, high, command in ((0.0, 0.1, ("pairs", "--noisy")), (0.2, 0.3, passages)):
        folder, pages = noisy.write(tmp_path, low, high, texts)
        found = noisy.find(bench, folder, command)
        name = folder.name.encode()
        true = {(b"%s/page/%03d" % (name, n), b"%s/scan/%03d" % (name, n)) for n in range(pages)}
        assert pages > 20
        assert (found == true) if command[0] == "pairs" else (found >= true)


def test_noise_is_as_much_as_is_said():
    rng, text = np.random.default_rng(1), noise.read("udhr/eng.txt")[:3000]
    for share in (0.02, 0.1, 0.3):
        read = noise.spoil(text, share, rng)
        blocks = SequenceMatcher(None, text, read, False).get_matching_blocks()
        same = sum(each.size for each in blocks)
        assert 1 - share - 0.01 <= same / len(text) <= 1 - 0.5 * share
        changed = noise.change(text, share, rng)
        wrong = [a for a, b in zip(text, changed, strict=True) if a != b]
        assert len(wrong) == round(share * len("".join(text.split())))
    once, again = (noise.spoil(text, 0.1, np.random.default_rng(2)) for _ in range(2))
    assert once == again


def test_table_on_a_terminal():
    (table,) = results()["scale"]["tables"]
    assert Table(**table).text().splitlines()[2:4] == [
        "  documents  seconds   ratio  memory  aim",
        "     10,000  0.500 s  2.35 ×  123 MB  1 s",
    ]
