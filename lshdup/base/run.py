"""The run: its threads, its memory and scratch files, and what it tells. It is the first argument
of every stage that has work to share, memory to plan, or something to say.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from lshdup.base.frozen import dataclass
from lshdup.base.memory import Arrays
from lshdup.base.skipped import Skipped

if TYPE_CHECKING:
    from concurrent.futures import Future

#: Called now and then with a stage, the steps done, and all its steps.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress of a stage."""


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
    def quiet(cls, jobs: int = 1, *, memory: int = 0) -> Self:
        """Return a run that says nothing, as of a program that uses lshdup as a library.

        memory : bytes to plan for; 0: a quarter of the memory.

        >>> Run.quiet(2).jobs
        2
        """
        return cls(Arrays(memory or None), jobs)

    def but(self, **changes: Any) -> "Run":
        """Return the run with other values of some fields."""
        return Run(**{name: getattr(self, name) for name in Run.__dataclass_fields__} | changes)

    @property
    def memory(self) -> int:
        """The bytes that the run plans for."""
        return self.arrays.limit


# --- loops cut into parts for several threads: kernels run without the GIL ---


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_parts(
    steps: int, jobs: int, work: Callable[[slice], None], *, least: int = 1024
) -> None:
    """Call `work` on slices that together cover range(steps), on `jobs` threads.

    least : a part has at least this many steps, because a thread has its cost.
    """
    parts = min(8 * jobs, steps // least) if jobs > 1 else 1
    if parts < 2:
        work(slice(0, steps))
        return
    from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

    cuts = [steps * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, (slice(start, end) for start, end in pairwise(cuts))))


def run_parts(jobs: int, work: Callable[[int, int], None]) -> None:
    """Call work(part, jobs) for every part below `jobs`, on a thread each."""
    run_in_parts(jobs, jobs, lambda part: work(part.start, jobs), least=1)


def _do_after(before: "Future[None]", work: Callable[[], None]) -> None:
    """Do a work, unless the one before it has failed."""
    before.result()
    work()


@contextmanager
def beside(
    jobs: int, work: Callable[[], None] | None
) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Do a work on a thread of its own while the block runs.

    Yields a function that has another work done there, after all before it, unless one of these
    failed. The end of the block waits for them, and raises what one of them raised.

    work : None: there is none. jobs : 1. In both cases, each work is done at once.
    """
    if work is None or jobs < 2:
        if work is not None:
            work()
        yield lambda work: work()
        return
    from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

    with ThreadPoolExecutor(1) as pool:
        done = [pool.submit(work)]

        def follow(work: Callable[[], None]) -> None:
            done.append(pool.submit(_do_after, done[-1], work))

        yield follow
        done[-1].result()
