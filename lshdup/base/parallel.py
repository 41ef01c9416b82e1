"""Loops cut into parts for several threads: kernels run without the GIL."""

import os
from collections.abc import Callable
from itertools import pairwise

#: Called now and then with a stage, the steps done, and all its steps.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress of a stage."""


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

    def run(parts: slice) -> None:
        for part in range(parts.start, parts.stop):
            work(part, jobs)

    run_in_parts(jobs, jobs, run, least=1)
