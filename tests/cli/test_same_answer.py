"""The same command line over the same documents gives the same answer, whatever ran before.

A walk through commands over one store. What each prints is what it prints over a fresh store that
only knows how the collection was defined: by the last command with DOCS, and by `signatures` after
it.
"""

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import WHOLE, drawn
from tests.running import run_program

#: Commands with DOCS: each defines the collection anew.
WITH_DOCS = """
pairs docs
pairs docs -t 0.4 --recall 0.999
pairs docs -k 2 --seed 3 --max-bucket 4
index docs --perms 64 --scheme classic -t 0.6 --recall 0.8
clusters docs -t 0.5 --keep newest --linkage single
clusters docs --tokens char --keep-case --recall 0.5
shingle docs -k 1
signatures docs --ignore-common 9
pairs docs --template form.txt -t 0.5
""".strip().splitlines()

#: Commands without DOCS that define how signatures are made.
DEFINING = """
signatures --perms 96
signatures --seed 7 --ignore-common 12
""".strip().splitlines()

#: All other commands without DOCS: they say nothing that a later command may take up.
OTHERS = """
pairs
pairs -t 0.4
pairs -t 0.6 --recall 0.5
pairs -t 0.5 --bands 3 --rows 3
pairs -t 0.5 --max-bucket 2 --collapse-copies
pairs -t 0.6 --exact
pairs -t 0.5 --across [0-9]$
clusters -t 0.5 --across folder --linkage single
pairs -t 0.5 --histogram
pairs -t 0.6 --against new --recall 0.7
clusters
clusters -t 0.5 --keep oldest
clusters -t 0.5 --keep longest --linkage single --recall 0.6
clusters -t 0.6 --prefer *7 --emit drop
clusters -t 0.5 --exact --emit keep
clusters --keep first -t 0.4
query docs/d10
query docs/d10 -t 0.4
query docs/d10 -t 0.6 --recall 0.5
query docs/d20 new/a -t 0.5 --top 3
query docs/d10 --rows 2 --buckets 50
show docs/d10 docs/d11 --format json
show new/a new/b --format json
shingle --show docs/d10
shingle --show new/a
report -t 0.5
report -t 0.5 --measure containment
show docs/d10 docs/d11 --shared
accuracy --perms 20 --runs 1 --epsilon 0.1
index
index -t 0.4 --recall 0.999
index -t 0.7 --recall 0.5
""".strip().splitlines()


@pytest.fixture
def here(tmp_path):
    """Documents of every degree of similarity, some of them copies."""
    rng = np.random.default_rng(5)
    originals = [[f"w{x}" for x in rng.integers(0, 900, 50)] for _ in range(8)]
    for folder in ("docs", "new"):
        (tmp_path / folder).mkdir()
    for i in range(60):
        words = list(originals[i % 8])
        for _ in range(int(rng.integers(0, 8))):
            words[int(rng.integers(len(words)))] = f"W{int(rng.integers(900))}"
        path = tmp_path / "docs" / f"d{i}"
        path.write_text(f"a form of few words\n{' '.join(words)}\n")
        os.utime(path, ns=((10**9 + i * 7 % 60) * 10**9,) * 2)
    for name, i in (("a", 10), ("b", 18)):
        (tmp_path / "new" / name).write_text((tmp_path / f"docs/d{i}").read_text() + " and more")
    (tmp_path / "form.txt").write_text("a form of few words")
    return tmp_path


class Walk:
    """Commands over one store, each beside its answer over a fresh one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / ".lshdup"
        self.definition: list[str] = []
        self.history: list[str] = []
        self._fresh: dict[tuple[str, ...], tuple[int, bytes]] = {}

    def run(self, command):
        process = run_program(command.split(), cwd=self.folder)
        assert b"Traceback" not in process.stderr, (command, process.stderr)
        return process.returncode, process.stdout, process.stderr.decode()

    def fresh(self, *commands):
        """The answer of the last of some commands over a new store."""
        if commands not in self._fresh:
            kept = self.folder / "kept"
            if self.store.exists():
                self.store.rename(kept)
            *before, last = commands
            for command in before:
                self.run(command)
            self._fresh[commands] = self.run(last)[:2]
            shutil.rmtree(self.store)
            if kept.exists():
                kept.rename(self.store)
        return self._fresh[commands]

    def step(self, command):
        if command in WITH_DOCS:
            self.definition = []
        expected = self.fresh(*self.definition, command)
        *answer, err = self.run(command)
        self.history.append(command)
        assert tuple(answer) == expected, (self.history, err)
        if command in WITH_DOCS or (command in DEFINING and not answer[0]):
            self.definition = [*self.definition[:1], command]
        elif command in OTHERS and answer[0] == 0 and "show new" not in command.replace("--", ""):
            assert "the last run: 60 documents in docs (--tokens " in err, (command, err)


def test_any_command_after_any_other(here):
    """Some commands, drawn at random, but the same ones every time."""
    walk, rng = Walk(here), random.Random(1)
    walk.step(WITH_DOCS[1])
    for _ in range(40 if WHOLE else 10):
        kind = rng.choices((WITH_DOCS, DEFINING, OTHERS), (1, 1, 6))[0]
        walk.step(rng.choice(kind))


@pytest.mark.long
@pytest.mark.parametrize("defined", [*drawn(WITH_DOCS[::2], 1), *drawn(WITH_DOCS[1::2], 1)])
def test_every_command_after_every_other(here, defined):
    """A definition after each command; after some, all ordered pairs of commands without DOCS."""
    walk = Walk(here)
    for before in (*WITH_DOCS, *DEFINING, *OTHERS):
        for command in (before, defined, OTHERS[0]):
            walk.step(command)
    if defined in WITH_DOCS[1::2]:
        for number, first in enumerate(OTHERS):
            walk.step(first)
            for second in OTHERS[number + 1 :]:  # the words i, ij in order hold each pair once
                walk.step(first)
                walk.step(second)
        for command in DEFINING:
            for other in OTHERS:
                walk.step(command)
                walk.step(other)
