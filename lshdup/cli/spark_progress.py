"""The console of a run on Spark: a bar for each stage, of tasks, by a thread that asks Spark for them."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from lshdup.cli.console import Console

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

#: Seconds between two questions, and before there is a bar.
_PAUSE, _PATIENCE = 0.5, 1.0

#: No share and no time that is left: until the last of its jobs runs, nobody knows how many tasks a stage will have.
_BAR = "{desc}: {n_fmt} of {total_fmt} tasks so far |{bar}| {elapsed}"
_NO_BAR = "{desc}: {elapsed}"


class SparkConsole(Console):
    """A console that other threads may use beside the command. `progress` begins a stage, and `took` ends it."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: bool = False,
        progress: bool | None = None,
        color: bool | None = None,
    ) -> None:
        super().__init__(quiet=quiet, verbose=verbose, progress=progress, color=color)
        self._lock = threading.RLock()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            super().__exit__(kind, error, trace)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Begin a stage; a thread may have more to say."""
        with self._lock:
            super().progress(stage, done, total)

    def _line(self, text: str, painted: str = "", color: str = "") -> None:
        with self._lock:
            super()._line(text, painted, color)

    def took(self, stage: str) -> str:
        """End a stage, and its bar."""
        with self._lock:
            self._close_bar()
            return super().took(stage)

    @contextmanager
    def watching(self, session: "SparkSession") -> Iterator[None]:
        """Show the tasks of this session meanwhile, if there is somebody to see them."""
        if not self._progress:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(
            target=self._watch, args=(session.sparkContext.statusTracker(), over), daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(_PAUSE)  # it may be in the middle of a question that nobody answers
            with self._lock:
                self._close_bar()

    def _watch(self, tracker: "StatusTracker", over: threading.Event) -> None:
        tasks, stage = _Tasks(tracker), ""
        while not over.wait(_PAUSE):
            if self._bar_stage != stage:
                tasks, stage = _Tasks(tracker), self._bar_stage
            if stage:
                try:
                    done, total = tasks.counted()
                except Exception:  # Java has ended: the command will say so
                    return
                with self._lock:
                    if stage == self._bar_stage and not over.is_set():
                        self._show(done, total)

    def _show(self, done: int, total: int) -> None:
        lasted = time.perf_counter() - self._stage_started
        if lasted < _PATIENCE:
            return
        bar = self._bar
        if bar is None:
            from tqdm import tqdm

            # Without a delay it would be drawn before it knows when it began.
            bar = tqdm(
                total=total, desc=self._bar_stage, unit="", leave=False, file=sys.stderr, delay=1e-9
            )
            bar.start_t -= lasted
            self._bar = bar
        bar.bar_format = _BAR if total else _NO_BAR
        bar.n, bar.total = done, total
        bar.refresh()


class _Tasks:
    """Tasks of all that Spark has run since then, as far as it was seen: what is done never becomes less, and the total may become more."""

    def __init__(self, tracker: "StatusTracker") -> None:
        self._tracker = tracker
        self._seen: dict[int, tuple[int, int]] = {}
        self._active: set[int] = set()

    def counted(self) -> tuple[int, int]:
        """How many are done, and of how many."""
        active = set(self._tracker.getActiveStageIds())
        for number in active | self._active:
            info = self._tracker.getStageInfo(number)
            if info is not None:
                self._seen[number] = min(info.numCompletedTasks, info.numTasks), info.numTasks
        self._active = active
        done, total = (
            (sum(part) for part in zip(*self._seen.values(), strict=True)) if self._seen else (0, 0)
        )
        return done, total
