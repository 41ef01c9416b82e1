"""The options of a run, the folder of corpora, and calls of lshdup, for all sections."""

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.corpora import corpus
from benchmarks.measure import LSHDUP, Run, run


@dataclass(frozen=True)
class Bench:
    """Options of a run.

    home : the folder of corpora, in which commands run.
    """

    home: Path
    documents: int = 100_000
    peer_documents: int = 10_000
    runs: int = 5
    million: bool = False
    seed: int = 1
    rows: tuple[int, ...] = (100_000, 1_000_000)
    long_rows: tuple[int, ...] = (100_000,)

    @property
    def store(self) -> Path:
        """The folder of artifacts."""
        return self.home / ".lshdup"

    @property
    def few(self) -> int:
        """Runs of long works without a bar for their ratio."""
        return min(self.runs, 3)

    def corpus(self, kind: str, documents: int) -> str:
        """Return the folder of a corpus, relative to `home`; its files are in the page cache."""
        folder = corpus(self.home, kind, documents, self.seed)
        self.md5sum(folder.name)
        return folder.name

    def lshdup(self, *arguments: str, keep: bool = False, samples: int = 0) -> Run:
        """Run lshdup once."""
        return run(*LSHDUP, *arguments, cwd=self.home, keep=keep, samples=samples)

    def fresh(self, *arguments: str, keep: bool = False, samples: int = 0) -> Run:
        """Run lshdup once without a store."""
        self.forget()
        return self.lshdup(*arguments, keep=keep, samples=samples)

    def forget(self) -> None:
        """Remove the store."""
        shutil.rmtree(self.store, ignore_errors=True)

    def compiled(self, *arguments: str) -> None:
        """Compile the kernels of a command, into the cache."""
        self.lshdup(*arguments, "--no-store", "-q")

    def md5sum(self, folder: str) -> Run:
        """Run the floor: two processes that read every byte and do little with it."""
        return run(
            "bash",
            "-c",
            f"find {folder} -type f -print0 | xargs -0 -P 2 -n 2000 md5sum",
            cwd=self.home,
        )

    def small(self) -> str:
        """Return a corpus of 100 files."""
        return self.corpus("natural", 100)


def installed(module: str) -> bool:
    """Return whether a peer can be measured."""
    return find_spec(module) is not None
