"""The only writer of stderr: errors, warnings, the summary, progress; and the exit code. Called by the commands in `cli/`."""

import contextlib
import os
import sys
import textwrap
import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from lshdup.errors import LshdupError
from lshdup.utils.messages import counted, shown

if TYPE_CHECKING:
    from tqdm import tqdm

    from lshdup.skipped import Reason, Skipped

OK = 0
PAIRS_FOUND = 1  # only with --check
TROUBLE = 2
INTERRUPTED = 130

#: Files that could not be read are named up to so many; all of them with -v.
NAMED = 10
_PATIENCE = 1.0
#: On terminals of fewer columns no line is folded.
_NARROWEST = 10


class Console:
    """Talk to a person, and remember what the exit code must say.

    quiet : say only errors. verbose : name every file that is left out. progress : True, False, or None for "on a terminal".
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: bool = False,
        progress: bool | None = None,
        color: bool | None = None,
    ) -> None:
        self._quiet = quiet
        self._verbose = verbose
        self._progress = (_on_terminal() and not quiet) if progress is None else progress
        self._color = use_color(color, _on_terminal())
        self._bar: tqdm[NoReturn] | None = None
        self._bar_stage = ""
        self._started = time.perf_counter()
        self._stage_started = self._started
        self._stage_seconds: dict[str, float] = {}
        self._errors = 0
        self._named = 0
        self._rows: dict[
            tuple[bytes, Reason, str], list[Any]
        ] = {}  # the first row of each cause, and how many more; not yet said
        self._rows_said: set[tuple[bytes, Reason, str]] = set()
        self.left_out_counts: Counter[str] = Counter()
        self.of_other: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_bar()
        self._say_rows()

    def say(self, text: str) -> None:
        """A line a person may want to know."""
        if not self._quiet:
            self._line(shown(f"lshdup: {text}"))

    def detail(self, text: str) -> None:
        """A line only -v shows."""
        if self.is_verbose:
            self._line(shown(f"lshdup: {text}"))

    def warn(self, text: str) -> None:
        """A line that quiet runs show too."""
        self._line(f"lshdup: warning: {shown(text)}", "warning", "33")

    def error(self, error: LshdupError) -> None:
        """An error in one line, with its hint in a second."""
        self._errors += 1
        self._line(f"lshdup: error: {shown(error.message)}", "error", "31")
        for name in error.names:
            self._line(shown(f"  {name}"))
        if error.hint:
            self._line(shown(f"  {error.hint}"))

    def skipped(self, what: "Skipped") -> None:
        """Count what is not compared; name it with -v, or if it is an error and one of the first. Of rows of a file that are left out for
        the same cause the first is named, and the others are counted there.
        """
        self._leave_out(what, self.left_out_counts)

    def left_out_of_other(self, what: "Skipped") -> None:
        """The same on the other side of a comparison, which has counts of its own."""
        self._leave_out(what, self.of_other)

    def _leave_out(self, what: "Skipped", counts: Counter[str]) -> None:
        counts[str(what.reason)] += 1
        if what.is_error:
            self._errors += 1
        if self._verbose or not what.is_error:
            if self._verbose:
                self._line(_fate(what))
            return
        cause = what.name.rpartition(b":")[0], what.reason, what.detail
        if what.reason.is_of_row and cause in self._rows:
            self._rows[cause][1] += 1
            return
        if what.reason.is_of_row and cause in self._rows_said:
            return
        self._named += 1
        if self._named > NAMED:
            if self._named == NAMED + 1:
                self._line(
                    f"lshdup: … more {'rows' if what.reason.is_of_row else 'files'} could not be used; -v names them all"
                )
        elif what.reason.is_of_row:
            self._rows[cause] = [what, 0]
        else:
            self._line(_fate(what))

    def was_left_out(self, what: "Skipped") -> None:
        """Name, for -v, a file that an earlier run did not compare: nothing that was asked for now."""
        if self.is_verbose:
            self._line(_fate(what))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show a bar for what takes longer than a second."""
        if stage != self._bar_stage:
            self._close_bar()
            self._end_stage()
            self._bar_stage = stage
        if not self._progress:
            return
        if self._bar is None:
            if time.perf_counter() - self._stage_started < _PATIENCE:
                return
            from tqdm import tqdm

            bar: tqdm[NoReturn] = tqdm(
                total=total or None,
                desc=stage,
                unit="",
                unit_scale=True,
                leave=False,
                file=sys.stderr,
            )
            self._bar = bar
        self._bar.update(done - self._bar.n)

    def took(self, stage: str) -> str:
        """For the end of a line about a stage: how long it lasted, as far as it was told about by `progress`; empty if it was not."""
        self._end_stage()
        seconds = self._stage_seconds.pop(stage, None)
        return "" if seconds is None else f"; {seconds:.2f} s"

    @property
    def is_verbose(self) -> bool:
        """Whether `detail` says anything."""
        return self._verbose and not self._quiet

    @property
    def shows_progress(self) -> bool:
        """Whether `progress` shows a bar."""
        return self._progress

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return time.perf_counter() - self._started

    @property
    def exit_code(self) -> int:
        """0, or 2 if anything that was asked for could not be had."""
        return TROUBLE if self._errors else OK

    def _end_stage(self) -> None:
        now = time.perf_counter()
        if self._bar_stage:
            self._stage_seconds[self._bar_stage] = (
                self._stage_seconds.get(self._bar_stage, 0.0) + now - self._stage_started
            )
        self._bar_stage, self._stage_started = "", now

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _say_rows(self) -> None:
        rows, self._rows = self._rows, {}
        self._rows_said |= set(rows)
        for what, more in rows.values():
            self._line(
                _fate(what)
                + (
                    f"; {counted(more, 'more row', 'more rows')} of this file likewise"
                    if more
                    else ""
                )
            )

    def _line(self, text: str, painted: str = "", color: str = "") -> None:
        """One line; on a terminal, more of them if it is too long. painted : the word that has a colour."""
        if sys.stderr is None:
            return
        if self._rows:
            self._say_rows()
        if _on_terminal():
            text = "\n".join(fold(text, _columns()))
        if color and self._color:
            text = text.replace(painted, f"\x1b[{color}m{painted}\x1b[0m", 1)
        if self._bar is not None:
            self._bar.clear()
        with contextlib.suppress(OSError):  # nobody can be told that nobody can be told
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def _fate(what: "Skipped") -> str:
    """A line about a file that is not compared."""
    detail = f" ({shown(what.detail)})" if what.detail else ""
    return f"lshdup: {shown(what.name)}: {what.reason}{detail}"


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _columns() -> int:
    """Of the terminal that stderr is."""
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns
    return 0


def fold(text: str, columns: int) -> list[str]:
    """Return a line as lines that fit a terminal, broken between words only.

    columns : cells of a line; with few of them, or 0, no line is broken.

    >>> fold("lshdup: some words", 13), fold("  a hint of words", 10)
    (['lshdup: some', '  words'], ['  a hint', '    of', '    words'])
    """
    if columns < _NARROWEST:
        return [text]
    indent = len(text) - len(text.lstrip(" ")) + 2
    lines = textwrap.wrap(
        text if text.isascii() else _with_fillers(text),
        columns,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_FILLER, "") for line in lines] or [text]


#: Stands behind a character for each more cell that a terminal shows it in.
_FILLER = "\0"


def _with_fillers(text: str) -> str:
    """Return text of as many characters as it has cells, which is what textwrap counts."""
    from rich.cells import cell_len

    return "".join(c + _FILLER * (cell_len(c) - 1) for c in text)


def use_color(choice: bool | None, is_terminal: bool) -> bool:
    """--color decides; else NO_COLOR (any value but empty) and TERM=dumb say no; else whether a terminal is there."""
    if choice is not None:
        return choice
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
