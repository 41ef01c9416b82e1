"""The table of members in docs/reference/store.md is what artifacts hold."""

import json
import re

import numpy as np
import pytest

from lshdup.store import npz
from lshdup.store.collection_io import read_collection
from tests.running import ROOT, run_program

COLLECTIONS = {"signatures", "shingles", "passages"}
EVERY = {*COLLECTIONS, "bands", "pairs", "clusters"}


def documented():
    """{(artifact, member): (type, dimensions)} of the table; of strings both members."""
    text = (ROOT / "docs/reference/store.md").read_text()
    rows = re.findall(r"^\| (`.*`) \| (\w+) \| ([\w, ]+) \| (.*?) \| .* \|$", text, re.MULTILINE)
    table = {}
    for names, kind, shape, kinds in rows:
        holders = set(re.findall(r"`(\w+)`", kinds))
        holders |= {"all": EVERY, "collections": COLLECTIONS}.get(kinds.split(",")[0], set())
        for name in re.findall(r"`(\w+)`", names):
            parts = {name: (kind, shape.count(",") + 1)}
            if kind == "strings":
                parts = {f"{name}_blob": ("uint8", 1), f"{name}_offsets": ("int64", 1)}
            table |= {(holder, part): what for holder in holders for part, what in parts.items()}
    return table


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores whose artifacts hold all that there is."""
    tmp_path = tmp_path_factory.mktemp("stores")
    text = "one text of some words that are nearly the same in each of these documents "
    (tmp_path / "d").mkdir()
    for number in range(3):
        (tmp_path / f"d/{number}.txt").write_text(f"{text}{number}")
    latin = f"{text} Größe für Ärzte über Öl " * 9
    (tmp_path / "d/latin.txt").write_bytes(latin.encode("cp1252"))
    (tmp_path / "t.txt").write_text("one text of some words")
    rows = [json.dumps({"text": f"{text}{number}"}) for number in range(3)]
    (tmp_path / "d/r.jsonl").write_text("\n".join([*rows, "broken", ""]))
    for store, *commands in (
        ("one", "pairs d -t 0.5", "clusters -t 0.5", "passages d --least 5"),
        ("two", "shingle d --template t.txt", "index d --template t.txt"),
        ("rows", "index d --text-field text"),
        ("sets", "shingle d -k 5"),
    ):  # fmt: skip
        for words in commands:
            done = run_program([words, "-q", "--store", store], cwd=tmp_path)
            assert done.returncode == (2 if store == "rows" else 0)
    return [tmp_path / store for store in ("one", "two", "rows", "sets")]


def test_rows_without_fields_are_refused(stores):
    for store, change in ((stores[2], {}), (stores[3], {"rows": {}})):
        kind = "signatures" if store.name == "rows" else "shingles"
        artifact = npz.load(store / f"{kind}.npz", kind, "mend")
        given = {name: value for name, value in artifact.header.items() if name != "rows"}
        forged = npz.Artifact({**given, **change}, artifact.arrays)
        with pytest.raises(npz.DAMAGED):
            read_collection(forged, b"", verify=False, folder=None)
        read_collection(artifact, b"", verify=False, folder=None)


def test_every_member_of_every_artifact_is_in_the_table(stores):
    table, met = documented(), set()
    for store in stores:
        for path in store.glob("*.npz"):
            with np.load(path, allow_pickle=False) as members:
                shingle = json.loads(members["header"].tobytes()).get("shingle", {"k": 3})
                assert (store.name == "sets") == (shingle["k"] == 5)
                for name in members.files:
                    what = members[name].dtype.name, members[name].ndim
                    assert table.get((path.stem, name)) == what, (path, name, what)
                    met.add(name)
    assert {name for _, name in table} - met == {"reader"}  # It takes an office document.
