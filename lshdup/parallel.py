"""One loop cut in parts, on several threads. For kernels, which run without the GIL."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of so many, which is waited for; but a person who interrupts does not wait for what is under way."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    pool.shutdown()


def in_parts(steps: int, jobs: int, work: Callable[[slice], None], *, least: int = 1024) -> None:
    """Call `work` on slices that together cover range(steps), on `jobs` threads; returns when all are done.

    least : a part of fewer steps is not worth a thread.
    """
    parts = min(8 * jobs, steps // least) if jobs > 1 else 1
    if parts < 2:
        work(slice(0, steps))
        return
    cuts = [steps * part // parts for part in range(parts + 1)]
    with threads(jobs) as pool:
        list(pool.map(work, (slice(start, end) for start, end in pairwise(cuts))))
