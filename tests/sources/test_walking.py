"""How folders are walked: links, and --gitignore as git itself decides."""

import contextlib
import os
import random
import shutil
import subprocess
import timeit
from pathlib import Path

import numpy as np
import pytest

from lshdup.base.skipped import Reason
from lshdup.sources import patterns
from lshdup.sources.patterns import Patterns, Rules
from lshdup.sources.text_batches import read_batch
from tests.conftest import part, write_files
from tests.documents import find

_NAMES = ("a", "b", "ab", "c.txt", "d.md", "x y", "[z]", "!q", "#h", "a ", "a\\", "ö", "-", "]")
_ATOMS = (
    *("a", "b", "ab", "*.txt", "*.md", "*", "**", "***", "?", "??", "a*", "*b", "**b", "a**", "ö"),
    *("[ab]", "[!a]", "[^b]", "[a-c]*", "[]a]", "[a", "[a-]", "[-a]", "[b-a]", "[!]]", "[a-c-z]"),
    *("[[:alpha:]]", "[[:foo:]]", "[[:alpha]", "[^[:alpha:]]", "[[:space:]]", "[[:punct:]]"),
    *("[[:digit:]a]", "[[:digit:]-b]", "[a[:space:]]"),
    *("x y", "x\\ y", "\\!q", "\\#h", "\\[z\\]", "[\\]]", "\\a", "a\\", "a\\\\", "\\*", "[--a]"),
    *("!q", "#h", "a ", " a", "f?o", "*.*", "[z]", "\\ ", "[+--]"),
)

#: What may stand before or behind a pattern, and how often.
ADDED = ((0.2, "/", ""), (0.25, "", "/"), (0.3, "!", ""), (0.05, "", "  "), (0.05, "", "\r"))


@pytest.fixture
def tree(here):
    for name in ("t/1", "t/a/2", "t/a/b/3", "t/a/b/c/4", "t/z/5"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    return here


def found(*arguments, **options):
    documents, _ = find(*arguments, **options)
    return [os.fsdecode(name) for name in documents.names]


@pytest.mark.parametrize("backwards", [False, True])
def test_of_two_links_to_a_folder_the_first_name_is_taken(tree, monkeypatch, backwards):
    """In whichever order the file system lists them."""
    scandir = os.scandir

    @contextlib.contextmanager
    def listed(folder):
        with scandir(folder) as entries:
            yield iter(sorted(entries, key=lambda each: each.name, reverse=backwards))

    monkeypatch.setattr(os, "scandir", listed)
    Path("t2").mkdir()
    Path("t2/6").write_text("6")
    for name in ("t/y", "t/b"):
        Path(name).symlink_to("../t2")
    assert found("t", follow=True)[-2:] == ["t/b/6", "t/z/5"]


def test_a_file_that_became_a_link_has_changed(tree):
    """Even a link as long as the file was, of the same time."""
    listed, _ = find("t/1")
    target = "x" * int(listed.sizes[0])
    Path("t/1").unlink()
    Path("t/1").symlink_to(target)
    os.utime("t/1", ns=(int(listed.mtimes[0]),) * 2, follow_symlinks=False)
    assert listed.changed(np.arange(1)).tolist() == [0]
    Path("t/2").write_text("secret")
    Path("t/1").unlink()
    Path("t/1").symlink_to("2")  # It is not read.
    assert read_batch(listed, np.arange(1)).skipped[0][1] == Reason.UNREADABLE


def ignored_by_walking(names):
    """The names below the current folder that `Rules` ignore, with all that is below them."""
    ignored = set()

    def walk(folder, rules):
        for entry in sorted(os.listdir(folder or b".")):
            name, inside = folder + entry, os.path.isdir(folder + entry)
            if entry.startswith(b".git"):
                continue
            if rules.ignore(name, is_folder=inside):
                ignored.update(each for each in names if (each + b"/").startswith(name + b"/"))
            elif inside:
                walk(name + b"/", Rules.of(name, rules, len(name) + 1))

    walk(b"", Rules.of_named(b".", 0))
    return ignored


@pytest.mark.parametrize("seed", part(range(4), 2))
def test_git_ignores_the_same_files(here, seed):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    rng = random.Random(seed)
    subprocess.run(["git", "init", "-q", "."], check=True)
    for _ in range(150):
        path = Path(*(rng.choice(_NAMES) for _ in range(rng.randint(1, 4))))
        if not any(each.is_file() for each in (path, *path.parents)):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.touch()
    names = [bytes(path) for path in Path().rglob("*") if path.parts[0] != ".git"]
    folders = [Path(), *(path for path in map(Path, map(os.fsdecode, names)) if path.is_dir())]

    def pattern():
        together = "/" if rng.random() < 0.8 else ""
        text = together.join(rng.choice(_ATOMS) for _ in range(rng.randint(1, 3)))
        for chance, before, after in ADDED:
            text = before + text + after if rng.random() < chance else text
        return text

    met = 0
    for _ in range(60):
        written = {Path(), *rng.sample(folders, 2)}
        for folder in sorted(written):
            lines = [pattern() + "\n" for _ in range(rng.randint(1, 4))]
            write_files(folder, {".gitignore": "".join(lines)})
        Path(".git/info/exclude").write_text("\n".join(pattern() for _ in range(2)))
        command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
        answer = subprocess.run(command, input=b"\0".join(names), capture_output=True, check=False)
        by_git = {name for name in answer.stdout.split(b"\0") if name}
        rules = {str(folder): (folder / ".gitignore").read_text() for folder in written}
        assert ignored_by_walking(names) == by_git, rules
        met += len(by_git)
        for folder in written:
            (folder / ".gitignore").unlink()
    assert met > 100


_HOSTILE = [
    ("*n" * 60 + "x", "n" * 255),
    ("**/n*/" * 30 + "x", "n/" * 120 + "n"),
    ("**/" + "n*n" * 40 + "/**/q", "n" * 255 + "/n" * 300),
    ("a*" * 30 + "/**/" + "n/**/" * 30 + "x", "a" * 200 + "/n" * 900),
]


@pytest.mark.parametrize(
    ("patterns", "path", "selected"),
    [
        (["docs"], "docs/a/b", True),
        (["docs", "!docs/a"], "docs/a/b", False),  # git would not look below docs
        (["*.md", "!*.md", "*.md"], "a.md", True),
        (["*.md", "!docs"], "docs/a.md", True),  # the pattern of the file itself decides
        (["!docs", "*.md"], "docs/a.md", True),
        (["docs/**"], "docs/", True),
        (["docs/**", "!docs/a"], "docs/", False),
        (["docs/"], "docs", False),
        (["./docs"], "other/docs", False),
        (["#a"], "#a", True),
        (["f?nf"], "fünf", True),
        (["f[ä-ü]nf"], "fünf", True),
        (["f[!ü]nf"], "fünf", False),
        (["[[:alpha:]]"], "a", True),
        ([""], "a", False),
        (["a"], "a/" * 2000 + "b", True),
    ],
)
def test_patterns_of_options(patterns, path, selected):
    assert Patterns("--exclude", patterns).match(path) == selected


@pytest.mark.parametrize(("pattern", "name"), _HOSTILE)
@pytest.mark.parametrize("option", [False, True])
def test_no_pattern_takes_long(pattern, name, option):
    """Tried at every place, the stars of these patterns would take years: no bound is tight."""

    def seconds(pattern):
        regex = patterns._pattern(pattern).regex
        by_option = Patterns("--exclude", [pattern]).match
        match = by_option if option else regex.fullmatch
        assert not match(name)
        return min(timeit.repeat(lambda: match(name), number=10, repeat=3))

    assert seconds(pattern) < 1000 * seconds("**/*n*/x")
