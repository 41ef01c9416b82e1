"""Gitignore patterns: those of --include, --exclude and --prefer.

No file is opened or listed here.
"""

import os
import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from lshdup.base.messages import did_you_mean
from lshdup.base.skipped import Reason
from lshdup.errors import ParameterError
from lshdup.sources.gitignore import STAR, join_parts

#: The characters that make a word a pattern to a shell.
GLOB = re.compile(r"[*?\[]")

#: Of the expressions that pathspec makes of patterns: the parts, and the wildcards with the forms
#: that take least.
_PARTS = re.compile(r"\(\?:\.\+/\)\?|\(\?:/\.\+\)\?|\[\^/\][*+]?|\[\^?\]?[^]]*\]|\\.|.", re.DOTALL)
_FOLDERS, _INNER_FOLDERS = b"(?:.+/)?", b"(?:/.+)?"
_LEAST = {_FOLDERS: b"(?:.+?/)??", _INNER_FOLDERS: b"(?:/.+?)??"}, {STAR: b"[^/]*?"}

#: A name that is nearly the unmatched pattern is looked for among so many names.
_FEW_NAMES = 1000


class Patterns:
    """The gitignore patterns of one option. The last one that matches a path decides; ``!`` in
    front of it takes a match back.

    Beyond git, ``./`` in front of a pattern anchors it, and ``#`` begins no comment.

    >>> docs = Patterns("--exclude", ["docs/**/*.md", "!keep.md"])
    >>> docs.match("docs/a/b.md"), docs.match("docs/keep.md"), docs.match("other/docs/c.md")
    (True, False, False)
    """

    def __init__(self, option: str, texts: Iterable[str]) -> None:
        self._option = option
        texts = tuple(texts)
        if not texts:
            self._spec, self._unused = None, {}
            return
        # only with patterns, to keep `query` fast
        from pathspec import GitIgnoreSpec
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

        class LinearPattern(GitIgnoreSpecPattern):
            @classmethod
            def pattern_to_regex(cls, pattern: Any) -> tuple[Any, bool | None]:
                regex, included = super().pattern_to_regex(pattern)
                return regex and _without_retries(regex), included

        taken_back = any(text.startswith("!") for text in texts)
        lines = [_line(text, taken_back=taken_back) for text in texts]
        try:
            self._spec = GitIgnoreSpec.from_lines(lines, LinearPattern, backend="simple")
            self._unused = {
                text: GitIgnoreSpec.from_lines([line], LinearPattern, backend="simple")
                for text, line in zip(texts, lines, strict=True)
            }
        except ValueError as error:
            message = f"{option}: {str(error)[:1].lower()}{str(error)[1:]}"
            raise ParameterError(message, "write it as in a .gitignore file") from None

    def __bool__(self) -> bool:
        return self._spec is not None

    def match(self, path: str) -> bool:
        """Return whether the patterns select a path, and remember which of them have matched.

        path : from the root of the patterns; a folder ends with a slash.
        """
        if self._spec is None:
            return False
        path = path.replace("\n", "\0")  # pathspec's dot matches no line break
        decision = self._spec.check_file(path)
        if decision.index is not None:
            for text, one in list(self._unused.items()):
                if one.check_file(path).index is not None:
                    del self._unused[text]
        return bool(decision.include)

    def warnings(self, what: str, names: Callable[[], Iterable[bytes]]) -> list[str]:
        """Return a line for each pattern that has matched nothing, with the name that was perhaps
        meant.

        what : what it should have matched. names : gives names to choose from.
        """
        return [
            f"{self._option} {text} matches {what}{_instead(text, names())}"
            for text in self._unused
        ]


def _line(text: str, *, taken_back: bool) -> str:
    """A line of a .gitignore file that means the pattern."""
    line = re.sub(r"^(!?)(?:\./+)+(?=.)", r"\1/", text.replace("\n", "\0"))
    # To pathspec, `a/**` matches the folder a too, which would hide files that are taken back.
    line += "/*" if taken_back and line.endswith("/**") else ""
    return "\\" + line if line.startswith("#") else line


def _without_retries(regex: str) -> str:
    """Return an expression that matches what an expression of pathspec does, in linear time.

    To pathspec, a set like `[!a]` matches a slash; to git, and here, it does not.
    """
    parts = []
    for part in _PARTS.findall(regex):
        if part == _INNER_FOLDERS.decode():
            parts.append(b"(?=/)")  # What is taken before these folders ends at a slash.
        elif part.startswith("[") and not part.startswith("[^/]"):
            parts.append(b"(?!/)")
        parts.append(part.encode("utf-8", "surrogatepass"))
    return join_parts(parts, *_LEAST).decode("utf-8", "surrogatepass")


def _instead(text: str, names: Iterable[bytes]) -> str:
    if GLOB.search(text):
        return ""
    wanted = text.strip("/")
    known = {os.fsdecode(name) for name in islice(names, _FEW_NAMES)}
    if "/" not in wanted:
        known = {part for name in known for part in name.split("/")}
    question = did_you_mean(wanted, known - {wanted})
    return f"; {question}" if question else ""


class Selection:
    """The files and folders that --include and --exclude leave, below one folder that was named
    after the other.

    Patterns begin at the current folder; for a folder outside of it, at that folder.
    """

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include = Patterns("--include", include)
        self._exclude = Patterns("--exclude", exclude)
        self._cut, self._root = 0, ""

    def __bool__(self) -> bool:
        return bool(self._include or self._exclude)

    def enter(self, folder: bytes) -> bool:
        """Expect names below a folder that was named; return whether patterns allow it."""
        here = os.fsencode(Path.cwd())
        whole = os.path.normpath(os.path.join(here, folder))  # noqa: PTH118 (bytes path)
        inside = whole == here or whole.startswith(here.rstrip(b"/") + b"/")
        below = os.path.relpath(whole, here) if inside else b"."
        self._root = "" if below == b"." else os.fsdecode(below) + "/"
        self._cut = 0 if folder == b"." else len(folder.rstrip(b"/")) + 1
        return not (self._root and self._exclude.match(self._root))

    def skips(self, name: bytes, *, is_folder: bool) -> Reason | None:
        """Return why a file is not taken, or a folder not descended into; None if it is.

        name : as typed from the current folder, below the folder that was entered.
        """
        path = self._root + os.fsdecode(name[self._cut :]).removeprefix("./")
        included = is_folder or self._include.match(path) or not self._include
        if self._exclude.match(path + "/" * is_folder):
            return Reason.EXCLUDED
        return None if included else Reason.NOT_INCLUDED

    def warnings(self, names: Callable[[], Iterable[bytes]]) -> list[str]:
        """Return a line for each pattern that has matched nothing.

        names : gives the files and folders that were met.
        """
        what = "nothing that was met"
        return self._include.warnings(what, names) + self._exclude.warnings(what, names)
