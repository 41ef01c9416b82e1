"""`--across`: documents of one origin are not compared, in files as they are typed.

What an origin is, is read here again by pathlib, re, json, csv, and pyarrow; the pairs are those of
a run without the option, less the ones of one origin.
"""

import csv
import json
import re
import zipfile
from itertools import product
from pathlib import Path
from types import NoneType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.params import (
    AcrossParams,
    ClusterParams,
    DocumentParams,
    PairParams,
    PassageParams,
)
from lshdup.collection.origins import find_origins
from lshdup.errors import InputError, ParameterError
from lshdup.workspace.passages import load_or_find_passages
from lshdup.workspace.request import Request
from tests.conftest import RUN, many, open_comparison, open_workspace, part, require, write_files
from tests.documents import find
from tests.workspace.test_accepted import order_of
from tests.workspace.test_against import WORDS, texts

METHODS = {
    "bands": PairParams(), "exact": PairParams(exact=True), "same": PairParams(same="text"),
    "containment": PairParams(measure="containment"), "bytes": PairParams(same="bytes"),
}  # fmt: skip


def grouped(keys):
    """Which items are of one origin: the number of the first one of the same key; None is none."""
    return [keys.index(key) if key not in (None, "") else number for number, key in enumerate(keys)]


def origins_of(typed, *names, run=RUN, **params):
    documents, _ = find(*names, **params)
    arguments = [str(name).encode() for name in names]
    found = find_origins(run, documents, AcrossParams.parse(typed), arguments).tolist()
    return documents, found


@pytest.mark.parametrize(
    "named",
    [
        "docs", ".", "./docs//", "docs/a docs", "{here}/docs", "docs/top docs", "docs/a docs/e",
        "docs/a/b docs/e/b", "docs/a/x docs/a/b/y docs/top", "docs/a/b/c/z docs", "../{name}/docs",
        "docs/pack.zip docs/e", "docs/-d", "docs/e/rows.jsonl docs/a",
        "docs/a/b docs/a/b/c ../{name}",
    ],
)  # fmt: skip
def test_folders_are_those_of_pathlib(named, tmp_path, monkeypatch):
    """The folder is the nearest DOC above and `depth` folders below it; else the one it is in."""
    monkeypatch.chdir(tmp_path)
    for name in ("a/x", "a/b/y", "a/b/c/z", "a/d/w", "e/b/v", "top", "-d/u", "e/rows.jsonl"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text": "a b c"}\n' * 2)
    with zipfile.ZipFile(tmp_path / "docs/pack.zip", "w") as archive:
        for name in ("in", "x/y/in", "x/in", "z/in"):
            archive.writestr(name, name)
    named = named.format(here=tmp_path, name=tmp_path.name).split()
    for depth in (1, 2, 3):
        documents, found = origins_of(f"folder:{depth}", *named, archives=True, text_field="text")
        keys = []
        for name in documents.names:
            folder = Path(re.sub(r"jsonl:\d$", "jsonl", name.decode())).parent
            above = [doc for doc in map(Path, named) if folder.is_relative_to(doc) or doc == Path()]
            doc = max(above, key=lambda each: len(each.parts), default=None)
            below = folder.parts[len(doc.parts) :][:depth] if doc is not None else None
            keys.append(folder if below is None else (doc, below))
        assert grouped(found) == grouped(keys)


@pytest.mark.parametrize("pattern", ["[ab]", "([ab])([xy])", "x|(y)", "(?:folder):", "^docs/(.)"])
def test_matches_are_those_of_re(pattern, here):
    (here / "docs").mkdir()
    for name in ("ax", "ay", "bx", "by", "cy", "folder:"):
        (here / "docs" / name).write_text(name)
    documents, found = origins_of(pattern, "docs")
    keys = []
    for name in documents.names:
        match = re.search(pattern, name.decode())
        keys.append(match and (match[1] if match.re.groups else match[0]))
    if not any(keys):
        keys = [None] * len(keys)
    assert grouped(found) == grouped(keys)


VALUES = st.sampled_from(["a", "b", "2024", 2024, 7, -7, "", None, 1.5, True, [], {"in": 1}, "é\n"])


@settings(max_examples=many(60), deadline=None)
@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=12))
def test_fields_of_json_lines_are_those_of_json(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    lines = [
        json.dumps({"text": "x", **({"key": value} if is_there else {})})
        for value, is_there in rows
    ]
    path.write_text("\n".join(lines))
    keys = [json.loads(line).get("key") for line in lines]
    is_none = [key == "" or type(key) in (list, dict, NoneType) for key in keys]
    keys = [key if type(key) is str else json.dumps(key) for key in keys]
    keys = [None if none else key for none, key in zip(is_none, keys, strict=True)]
    said = []
    run = RUN.but(warn=said.append, say=said.append)
    if not any(keys):
        with pytest.raises(ParameterError, match="--across field:key: no "):
            origins_of("field:key", path, run=run)
        return
    _, found = origins_of("field:key", path, run=run)
    assert grouped(found) == grouped(keys)
    without = keys.count(None)
    assert len(said) == 1
    assert said[0].startswith(f"--across field:key: {len({*keys} - {None})} origin")
    assert (f"; {without} document" in said[0]) == (without > 0)


def test_fields_of_tables_are_those_of_csv_and_pyarrow(tmp_path):
    pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
    keys = ["a", "b", "a", "", "c,d", 'e"f', "b"]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "key"), *(("x", key) for key in keys)])
    with (tmp_path / "rows.csv").open(newline="") as file:
        read = [row["key"] for row in csv.DictReader(file)]
    assert grouped(origins_of("field:key", tmp_path / "rows.csv")[1]) == grouped(read)
    columns = {
        "texts": ["a", None, "a", ""], "numbers": [3, 3, None, -3], "words": ["u", "v", "u", "v"],
    }  # fmt: skip
    table = pa.table({"text": ["x"] * 4, **columns})
    table = table.set_column(3, "words", table["words"].dictionary_encode())
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=2)
    for name, values in pq.read_table(tmp_path / "rows.parquet").to_pydict().items():
        _, found = origins_of(f"field:{name}", tmp_path / "rows.parquet")
        assert grouped(found) == grouped(values), name
    pq.write_table(pa.table({"text": ["x"], "key": [[1]]}), tmp_path / "list.parquet")
    with pytest.raises((InputError, ParameterError), match=r"its column .key. is of type list"):
        origins_of("field:key", tmp_path / "list.parquet")


# --- pairs, groups and passages, against all pairs without those of one origin --------------------


@pytest.fixture
def folders(here):
    """Folders with near-copies and exact ones within and across them, and files beside them."""
    rng = np.random.default_rng(11)
    originals = [[WORDS[int(w)] for w in rng.integers(0, 400, 60)] for _ in range(10)]
    made = texts(5, originals, 90, 30)
    for i, text in enumerate(made):
        folder = here / "docs" / f"{'abc'[min(i % 11, 2)]}" if i % 9 else here / "docs"
        write_files(folder, {f"{i:03}.txt": text if i % 13 else f"{text} and more of it"})
    return here


def pairs_of(across, method, threshold=0.5):
    across = across and AcrossParams.parse(across)
    opened = open_comparison(None, [b"docs"], method, across=across, threshold=threshold)
    found = opened.expand_copies(opened.find_pairs(), collapse=False)
    names = opened.here.documents.names
    return {
        (names[int(a)], names[int(b)], complex(score))
        for piece in found.pieces()
        for a, b, score in zip(*piece, strict=True)
    }, opened


@pytest.mark.parametrize(
    ("name", "across"), part(product(METHODS, ["folder", "[0-9]{2}([0-9])", "/a/", "^docs/"]), 2)
)
def test_pairs_are_all_pairs_without_those_of_one_origin(name, across, folders):
    method = METHODS[name]
    every, _ = pairs_of(None, method)
    found, opened = pairs_of(across, method)
    names, of = [*opened.here.documents.names], opened.sides.origins.tolist()
    origin = dict(zip(names, of, strict=True))
    assert found == {row for row in every if origin[row[0]] != origin[row[1]]}
    assert bool(found) == (across != "^docs/")
    if across == "folder":
        assert grouped(of) == grouped([name.rpartition(b"/")[0] for name in names])


@pytest.mark.parametrize(
    ("method", "linkage", "rule"),
    part([
        each for each in product(
            ["bands", "exact", "same", "bytes"], ["representative", "single"],
            [("path-order", ()), ("longest", ()), ("first", ("docs/b",))],
        ) if not METHODS[each[0]].same or each[1] != "single"
    ], 2),
)  # fmt: skip
def test_groups_are_those_of_the_obvious_loop(method, linkage, rule, folders):
    """Each document joins the first kept one of another origin, by the pairs of that method."""
    pairs, _ = pairs_of("folder", METHODS[method], 0.6)
    near = {frozenset(row[:2]) for row in pairs}
    given = {"clustering": True, "across": AcrossParams.parse("folder"), "threshold": 0.6}
    opened = open_comparison(None, [b"docs"], METHODS[method], **given)
    rule = ClusterParams(linkage, *rule)
    own = opened.find_clusters(rule).clusters.representative.tolist()
    names = [*opened.here.documents.names]
    found = {name: names[kept] for name, kept in zip(names, own, strict=True)}
    order = order_of(opened, rule)
    names, expected = [names[each] for each in order], {}
    for name in names:
        if name in expected:
            continue
        expected[name], taking = name, [name]
        for each in taking:
            free = [other for other in names if other not in expected]
            new = [other for other in free if frozenset((each, other)) in near]
            expected |= dict.fromkeys(new, name)
            taking += new if linkage == "single" else []
    assert found == expected
    assert len({*expected.values()}) < len(names)


def test_passages_have_places_in_two_origins(folders):
    request, params = Request((b"docs",), DocumentParams(), {}), PassageParams(least=20)
    every = load_or_find_passages(open_workspace(None), request, params)
    across = AcrossParams.parse("folder")
    found = load_or_find_passages(open_workspace(None), request, params, across=across)
    assert 0 < len(found.passages) < len(every.passages)
    for start, end in zip(found.passages.starts[:-1], found.passages.starts[1:], strict=True):
        assert len({*found.origins[found.passages.documents[start:end]].tolist()}) > 1


def test_what_is_typed_is_shown():
    for typed in ("folder", "folder:1", "folder:3", "field:a:b", "fields?", "Folder:2"):
        assert str(AcrossParams.parse(typed)) == typed.removesuffix(":1")
