"""The only writer of stderr: errors, warnings, the summary and progress; and the exit code."""

import contextlib
import os
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from lshdup.base.wording import printable
from lshdup.errors import FOUND, OK, TROUBLE, LshdupError

if TYPE_CHECKING:
    from tqdm import tqdm

    from lshdup.base.skipped import Reason, Skipped

#: Number of unreadable files that are named without -v.
_ERRORS_NAMED = 10

#: Seconds before a stage shows a bar.
_PATIENCE = 1.0

#: On terminals of fewer columns no line is folded.
_NARROWEST = 10


class Console:
    """What a command says to a person, and the exit code that follows from it.

    quiet : print only errors and warnings.
    verbose : 1 names skipped files, 2 those that --include and --exclude skip too.
    check : whether the exit code says if something was found.
    progress : whether to show bars; None for on a terminal.
    color : whether to use colours; None for on a terminal, unless variables forbid it.
    _others : options of a command that are not of the console.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: int = 0,
        check: bool = False,
        progress: bool | None = None,
        color: bool | None = None,
        **_others: object,
    ) -> None:
        self._quiet = quiet
        self._verbose = verbose
        #: whether `detail` prints, and whether --check is set
        self.is_verbose, self.is_check = verbose > 0 and not quiet, check
        self._progress = (_on_terminal() and not quiet) if progress is None else progress
        self._color = use_color(color, _on_terminal())
        self._bar: tqdm[NoReturn] | None = None
        self._bar_stage = ""
        self._started = time.perf_counter()
        self._stage_started = self._started
        self._stage_seconds: dict[str, float] = {}
        self._errors = 0
        self._errors_named = 0
        # Files and causes of skipped records of which one is named.
        self._causes_named: set[tuple[bytes, Reason, str]] = set()
        self._summary: list[str] = []
        #: Whether a command found that nothing can be compared.
        self.compared_nothing = False
        self.skipped_counts: Counter[str] = Counter()
        self.other_skipped_counts: Counter[str] = Counter()
        #: notified of each skipped input
        self.on_skipped: Callable[[Skipped], None] = lambda _: None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_bar()
        for text in self._summary:
            self.say(text)

    def summarize(self, text: str) -> None:
        """Print a line about the answer as `say` does; on a terminal, below the listing."""
        if sys.stdout is not None and sys.stdout.isatty():
            self._summary.append(text)
        else:
            self.say(text)

    def say(self, text: str) -> None:
        """Print a line unless --quiet is set."""
        if not self._quiet:
            self._print(printable(f"lshdup: {text}"))

    def detail(self, text: str) -> None:
        """Print a line with -v."""
        if self.is_verbose:
            self._print(printable(f"lshdup: {text}"))

    def warn(self, text: str) -> None:
        """Print a warning, with --quiet too."""
        self._print(f"lshdup: warning: {printable(text)}", "warning", "33")

    def error(self, error: LshdupError) -> None:
        """Print an error with its names and its hint below."""
        self._errors += 1
        self._print(f"lshdup: error: {printable(error.message)}", "error", "31")
        for name in error.names:
            self._print(printable(f"  {name}"))
        if error.hint:
            self._print(printable(f"  {error.hint}"))

    def report_nothing(self, what: str, why: str, remedy: str) -> None:
        """Warn that nothing is compared. With --check this is an error: nothing was checked."""
        self.compared_nothing = True
        if self.is_check:
            self.error(LshdupError(f"nothing was checked: {why}", remedy))
        else:
            self.warn(f"{what}: {why}; {remedy}")

    def report_skipped(self, what: "Skipped", *, of_other: bool = False) -> None:
        """Count a skipped input; name it with -v, or if it is one of the first errors.

        Of the records of a file that are skipped for one cause, the first is named: the summary
        says how many they are.

        of_other : whether it is an input of --against, which has counts of its own.
        """
        counts = self.other_skipped_counts if of_other else self.skipped_counts
        counts[str(what.reason)] += 1
        self.on_skipped(what)
        if what.is_error:
            self._errors += 1
        if self._verbose > what.reason.is_of_pattern:
            self._print(f"lshdup: {describe_skipped(what)}")
        if self._verbose or not what.is_error:
            return
        if what.reason.is_of_row:
            cause = what.name.rpartition(b":")[0], what.reason, what.detail
            if cause in self._causes_named:
                return
            self._causes_named.add(cause)
        self._errors_named += 1
        if self._errors_named <= _ERRORS_NAMED:
            self._print(f"lshdup: {describe_skipped(what)}")
        elif self._errors_named == _ERRORS_NAMED + 1:
            noun = "rows" if what.reason.is_of_row else "files"
            self._print(f"lshdup: … more {noun} could not be used; -v names them all")

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show a bar for a stage that takes longer than a second.

        stage : its name; another one ends the stage before.
        done, total : units of work.
        """
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

            self._bar = tqdm(total=total or None, desc=stage, unit="", unit_scale=True, leave=False)
        self._bar.update(done - self._bar.n)

    def duration_of(self, stage: str) -> str:
        """Return the duration of a stage as "; 1.23 s", or "" if it never reported progress."""
        self._end_stage()
        seconds = self._stage_seconds.pop(stage, None)
        return "" if seconds is None else f"; {seconds:.2f} s"

    def took(self, stage: str = "") -> str:
        """Return the end of the summary: the durations of a stage, with -v, and of the command."""
        duration = self.duration_of(stage) if self.is_verbose else ""
        return f"{duration}; {time.perf_counter() - self._started:.2f} s in all"

    def exit_code(self, found: int = 0) -> int:
        """Return 2 if there was an error, 1 if --check is set and something was found, else 0."""
        return TROUBLE if self._errors else FOUND if self.is_check and found else OK

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

    def _print(self, text: str, painted: str = "", color: str = "") -> None:
        """Print a line, folded on a terminal that is narrower.

        painted : a word of the line.
        color : ANSI colour of the word.
        """
        if sys.stderr is None:
            return
        if _on_terminal():
            text = "\n".join(fold(text, _columns()))
        if color and self._color:
            text = text.replace(painted, f"\x1b[{color}m{painted}\x1b[0m", 1)
        if self._bar is not None:
            self._bar.clear()
        with contextlib.suppress(OSError):  # There is no other place to report it.
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def describe_skipped(what: "Skipped") -> str:
    """Return a line about a skipped input."""
    detail = f" ({printable(what.detail)})" if what.detail else ""
    return f"{printable(what.name)}: {what.reason}{detail}"


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _columns() -> int:
    """Return the width of the terminal that stderr is; 0 if it is none."""
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
    """Return whether to use colours.

    choice : of --color or --no-color; None leaves it to NO_COLOR, TERM=dumb and `is_terminal`.
    """
    if choice is not None:
        return choice
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def close_stdout() -> None:
    """Write everything that is still to come nowhere, as the reader of stdout has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
