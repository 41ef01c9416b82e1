"""Patterns of names, as those of --include, --exclude and --prefer. Called by finding.py and preference.py; knows no files."""

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from lshdup.utils.messages import closest

#: What makes a word a pattern; and from so many names one that is nearly the same is looked for.
_GLOB, _FEW_NAMES = re.compile(r"[*?\[]"), 1000


def _above(name: bytes) -> Iterator[bytes]:
    """The folders a name is below, the nearest first.

    >>> [*_above(b"a/b/c")], [*_above(b"../a/b")], [*_above(b"/a")]
    ([b'a/b', b'a'], [b'../a'], [])
    """
    folder = os.path.dirname(name)  # noqa: PTH120 (bytes path)
    while folder not in (b"", b"/", b".", b"..") and not folder.endswith(b"/.."):
        yield folder
        folder = os.path.dirname(folder)  # noqa: PTH120 (bytes path)


class Pattern:
    """One pattern: it matches a whole name, or the part behind its last slash; ``*`` matches ``/`` too.

    With a slash at its end it is of folders only; ``./`` in front of it says nothing. is_used : whether it has matched anything.

    >>> pattern = Pattern("./docs/")
    >>> pattern.matches(b"docs", is_folder=True), pattern.matches(b"a/docs", is_folder=True), pattern.matches(b"docs", is_folder=False)
    (True, True, False)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        bare = re.sub(r"^(?:\./+)+(?=[^-])", "", text)
        self._of_folders = len(bare.rstrip("/")) < len(bare) and bare.rstrip("/") != ""
        bare = bare.rstrip("/") or bare
        self.is_plain = not _GLOB.search(bare)
        self._match: Callable[[bytes], object] = re.compile(
            fnmatch.translate(bare).encode("utf-8", "surrogateescape")
        ).match
        self.is_used = False

    def matches(self, name: bytes, *, is_folder: bool) -> bool:
        """Whether it matches a name, as typed from the current folder."""
        if self._of_folders and not is_folder:
            return False
        found = bool(self._match(name) or self._match(os.path.basename(name)))  # noqa: PTH119 (bytes path)
        self.is_used |= found
        return found

    def is_above(self, name: bytes) -> bool:
        """Whether it matches one of the folders a name is below."""
        return any(self.matches(folder, is_folder=True) for folder in _above(name))

    @property
    def means_folders(self) -> bool:
        """Whether a folder that matches is meant with all below it, and not perhaps by accident: no wildcard, or a slash at the end."""
        return self.is_plain or self._of_folders

    def instead(self, names: Iterable[bytes]) -> str:
        """What was perhaps meant by one that matches nothing, for the end of a line. names : of files and folders there are."""
        if not self.is_plain:
            return ""
        wanted = self.text.strip("/")
        known = {os.fsdecode(name) for name in islice(names, _FEW_NAMES)}
        near = closest(
            wanted,
            (known if "/" in wanted else {part for name in known for part in name.split("/")})
            - {wanted},
        )
        return f"; did you mean {near}?" if near else ""


class Patterns:
    """Several patterns for one purpose."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.each = [Pattern(text) for text in texts]

    def __bool__(self) -> bool:
        return bool(self.each)

    def match(self, name: bytes, *, is_folder: bool) -> bool:
        """Whether one of them matches; each that matches anything at all is known to be used."""
        found = False
        for pattern in self.each:
            if not (found and pattern.is_used) and pattern.matches(name, is_folder=is_folder):
                found = True
        return found

    @property
    def unused(self) -> list[Pattern]:
        """Those that have matched nothing."""
        return [pattern for pattern in self.each if not pattern.is_used]


class Selection:
    """Which files and folders are taken: what --include matches, if it is given, without what --exclude matches.

    A folder that --exclude matches is left out with all below it. What is below a folder that --include names, without a wildcard or with
    a slash at the end, is included.
    """

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include, self._exclude = Patterns(include), Patterns(exclude)
        self._folders = Patterns(())
        self._folders.each = [pattern for pattern in self._include.each if pattern.means_folders]
        self._whole: dict[bytes, bool] = {}  # folders, by whether all in them is included
        self._out: dict[
            bytes, bool
        ] = {}  # folders above what was named, by whether all in them is excluded

    def __bool__(self) -> bool:
        return bool(self._include or self._exclude)

    def leaves_out(self, name: bytes, *, is_folder: bool) -> bool:
        """Whether a file is left out, or a folder with all below it."""
        out = self._exclude.match(name, is_folder=is_folder)
        if is_folder:
            self._is_whole(name)
            return out
        included = not self._include or self._include.match(name, is_folder=False) | self._is_whole(
            os.path.dirname(name)  # noqa: PTH120
        )
        return out or not included

    def is_below_excluded(self, name: bytes) -> bool:
        """Whether a folder above a name is excluded: for names that were not met in a walk from above. An absolute name, or one that begins
        with ``..``, is nothing below the current folder: where it stands is no part of what was named.
        """
        folder = os.path.dirname(name)  # noqa: PTH120 (bytes path)
        if not self._exclude or not folder or name.startswith((b"/", b"../")):
            return False
        if folder not in self._out:
            self._out[folder] = any(
                self._exclude.match(each, is_folder=True) for each in _above(name)
            )
        return self._out[folder]

    def _is_whole(self, folder: bytes) -> bool:
        if not self._folders:
            return False
        if folder not in self._whole:
            self._whole[folder] = any(
                self._folders.match(each, is_folder=True) for each in _above(folder + b"/")
            )
        return self._whole[folder]

    def unused(self, names: Callable[[], Iterable[bytes]]) -> list[str]:
        """What to say of patterns that matched nothing. names : gives files and folders that were met."""
        return [
            f"{option} {pattern.text} matches nothing that was met{pattern.instead(names())}"
            for option, patterns in (("--include", self._include), ("--exclude", self._exclude))
            for pattern in patterns.unused
        ]
