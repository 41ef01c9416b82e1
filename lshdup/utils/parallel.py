"""One loop cut in parts, on several threads. For kernels, which run without the GIL."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_parts(
    steps: int, jobs: int, work: Callable[[slice], None], *, least: int = 1024
) -> None:
    """Call `work` on slices that together cover range(steps), on `jobs` threads; returns when all are done.

    least : a part of fewer steps is not worth a thread.
    """
    parts = min(8 * jobs, steps // least) if jobs > 1 else 1
    if parts < 2:
        work(slice(0, steps))
        return
    cuts = [steps * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, (slice(start, end) for start, end in pairwise(cuts))))


def run_parts(jobs: int, work: Callable[[int, int], None]) -> None:
    """Call work(part, jobs) for every part below `jobs`, side by side: each reads everything and writes what is its own."""

    def run(parts: slice) -> None:
        for part in range(parts.start, parts.stop):
            work(part, jobs)

    run_in_parts(jobs, jobs, run, least=1)


#: Told (stage, steps done, steps in all) every now and then.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """For callers that do not want to know."""
