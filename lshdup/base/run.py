"""The run: its threads, its memory and scratch files, and what it tells. It is the first argument
of every stage that has work to share, memory to plan, or something to say.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Self

from lshdup.base.arrays import Arrays
from lshdup.base.frozen import dataclass
from lshdup.base.parallel import Progress, no_progress
from lshdup.base.skipped import Skipped
from lshdup.base.system import default_limit


def ignore(_: object) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Run:
    """What the stages of a run share.

    arrays : the memory of the run: makes arrays in memory, and in scratch files beyond its limit.
    jobs : threads. The answer is the same for any number.
    progress : notified (stage, steps done, steps in all).
    say : notified of a line for the user, such as that an artifact was rebuilt.
    warn : notified of a probable mistake of the user.
    detail : notified of a line that is printed with -v only.
    skipped : notified of each file that is not compared.
    """

    arrays: Arrays
    jobs: int = 1
    progress: Progress = no_progress
    say: Callable[[str], None] = ignore
    warn: Callable[[str], None] = ignore
    detail: Callable[[str], None] = ignore
    skipped: Callable[[Skipped], None] = ignore

    @classmethod
    def quiet(
        cls, jobs: int = 1, *, memory: int = 0, folder: Callable[[], Path | None] = lambda: None
    ) -> Self:
        """Return a run that says nothing, as of a program that uses lshdup as a library.

        memory : bytes to plan for; 0: a share of the machine's.
        folder : returns the folder of scratch files; None: the system's.

        >>> Run.quiet(2).jobs
        2
        """
        return cls(Arrays(memory or default_limit(), folder), jobs)

    def with_progress(self, progress: Progress) -> "Run":
        """Return the run, but for whom it notifies of progress."""
        return Run(self.arrays, self.jobs, progress, self.say, self.warn, self.detail, self.skipped)

    def with_jobs(self, jobs: int) -> "Run":
        """Return the run, but for its threads."""
        return Run(self.arrays, jobs, self.progress, self.say, self.warn, self.detail, self.skipped)

    def with_skipped(self, skipped: Callable[[Skipped], None]) -> "Run":
        """Return the run, but for whom it notifies of files that are not compared."""
        return Run(self.arrays, self.jobs, self.progress, self.say, self.warn, self.detail, skipped)

    def with_memory(self, memory: int) -> "Run":
        """Return the run, but for the bytes that it plans for; its files are the system's."""
        return Run(
            Arrays(memory), self.jobs, self.progress, self.say, self.warn, self.detail, self.skipped
        )

    @property
    def memory(self) -> int:
        """The bytes that the run plans for."""
        return self.arrays.limit
