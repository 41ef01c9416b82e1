"""`pairs TRAIN --against TEST --measure containment --write`: rows that hold a text of TEST go."""

import csv
import io
import json
import random

import pytest

from tests.conftest import WHOLE, require
from tests.documents import write_rows
from tests.reference import shingle_list

ASKED = ["--measure", "containment", "--id-field", "id", "--no-store"]
WORDS = [f"word{number}" for number in range(400)]


def words(draw, n):
    return " ".join(draw.choice(WORDS) for _ in range(n))


def read_rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def brute_force(train, test, threshold, relation):
    """{id: (best containment, {(id of TEST, similarity, relation)} of these)} of what goes.

    train, test : (id, its shingles) of each row.
    """
    found = {}
    for name, a in train:
        for other, b in test:
            share = len(a & b) / (min(len(a), len(b)) or 1)
            is_wanted = len(a) >= len(b) if relation == "holds" else len(a) <= len(b)
            if a and b and share >= threshold and (is_wanted or relation == "both"):
                word = "both" if len(a) == len(b) else "holds" if len(a) > len(b) else "inside"
                score = share, len(a & b) / len(a | b)
                if name not in found or score > found[name][0]:
                    found[name] = score, set()
                if score == found[name][0]:
                    found[name][1].add((other, word))
    return found


@pytest.mark.parametrize("seed", range(6 if WHOLE else 2))
def test_what_goes_is_that_of_the_definition(run, tmp_path, seed):
    """In the order of the rows, and all else byte for byte; the listing has the same rows."""
    draw = random.Random(seed)
    test = [(f"q{n}", words(draw, draw.randrange(3, 30))) for n in range(25)]
    train = []
    for number in range(80):
        parts = [words(draw, draw.randrange(0, 20))]
        if number % 2:
            item = test[draw.randrange(25)][1].split()
            cut = draw.choice([0, 0, 1, len(item) // 2])
            parts += [" ".join(item[cut:]), words(draw, draw.randrange(0, 20))]
        train.append((number, " ".join(parts * (1 if number % 10 else 0))))
    train += [(n + 100, train[n + 1][1]) for n in range(0, 20, 2)]  # copies
    train += [(f"t{n}", test[n][1]) for n in range(5)]
    for name, side in (("test", test), ("train", train)):
        rows = [{"id": id_, "text": text, "n": 1.0} for id_, text in side]
        write_rows(tmp_path / f"{name}.jsonl", rows)
    lines = (tmp_path / "train.jsonl").read_text().splitlines(keepends=True)
    k = 3 + 2 * seed
    sets = [[(name, set(shingle_list(text, k=k))) for name, text in side] for side in (train, test)]
    for threshold in (1.0, 0.7):
        for relation in (None, "holds", "inside", "both"):
            wanted = brute_force(*sets, threshold, relation or "holds")
            command = ["pairs train.jsonl --against test.jsonl -t", str(threshold), *ASKED]
            command += ["-k", str(k)]
            more = ["--relation", relation] if relation else []
            said = run(*command, *more, "--write", "out.jsonl", "--removed", "gone.jsonl")
            assert said.out == b""
            kept = [line for line, row in zip(lines, train, strict=True) if row[0] not in wanted]
            assert (tmp_path / "out.jsonl").read_text() == "".join(kept)
            size = len("".join(lines))
            assert f"{len(train)} rows: {len(kept)} kept" in said.err
            assert f"; {len(''.join(kept)):,} of {size:,} bytes" in said.err
            gone = read_rows(tmp_path / "gone.jsonl")
            assert [row["id"] for row in gone] == [row[0] for row in train if row[0] in wanted]
            for row in gone:
                score, best = wanted[row["id"]]
                assert (row["containment"], row["similarity"]) == score
                assert (row["kept"], row["relation"]) in best
                assert (row["file"], row["kept_file"]) == ("train.jsonl", "test.jsonl")
            listed = run(*command, *more).rows
            asked = brute_force(*sets, threshold, relation or "both")
            assert {row[0] for row in listed} == {str(name) for name in asked}
            if relation in ("holds", "inside"):
                assert {row[-1] for row in listed} <= {relation, "both"}


def test_parquet_csv_and_a_store(run, tmp_path):
    """As `clusters --write` writes them, and OTHER may be a store."""
    pq = require("parquet", "pyarrow.parquet")
    draw = random.Random(1)
    texts = [words(draw, 30) for _ in range(6)]
    texts[4] = f"{words(draw, 9)} {texts[0]}"
    rows = [{"id": number, "text": text} for number, text in enumerate(texts)]
    write_rows(tmp_path / "train.parquet", rows)
    write_rows(tmp_path / "train.csv", rows)
    write_rows(tmp_path / "test.jsonl", [{"id": "q", "text": texts[0]}])
    run("index test.jsonl --id-field id --store kept -q")
    for other in ("test.jsonl", "kept"):
        run("pairs train.parquet --against", other, *ASKED, "--write", "o.parquet")
        assert pq.read_table(tmp_path / "o.parquet").column("id").to_pylist() == [1, 2, 3, 5]
        run("pairs train.csv --against", other, *ASKED, "--write", "o.csv", "--removed", "g.csv")
        rows = list(csv.reader(io.StringIO((tmp_path / "o.csv").read_text())))
        assert [row[0] for row in rows] == ["id", "1", "2", "3", "5"]
        gone = list(csv.DictReader(io.StringIO((tmp_path / "g.csv").read_text())))
        assert [(row["id"], row["relation"], row["same"]) for row in gone] == [
            ("0", "both", "bytes"),
            ("4", "holds", ""),
        ]
