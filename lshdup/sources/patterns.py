"""Gitignore patterns: those of --include, --exclude and --prefer, and of .gitignore files.

Both are matched by the same expressions, in time linear in pattern and name, which a plain regular
expression is not. To files of patterns bytes are characters, as to git; to options the characters
of names are.
"""

import os
import re
import stat
import string
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple, Self

from lshdup.base.frozen import dataclass
from lshdup.base.skipped import Reason
from lshdup.base.wording import did_you_mean
from lshdup.errors import ParameterError

# --- files --------------------------------------------------------------------------------------

#: Bytes from which git itself ignores a file of patterns.
MOST_BYTES = 100 << 20

_CLASSES = {
    "alpha": string.ascii_letters, "digit": string.digits, "xdigit": string.hexdigits,
    "alnum": string.ascii_letters + string.digits, "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase, "blank": " \t", "space": " \t\n\r\v\f",
    "punct": string.punctuation, "cntrl": "".join(map(chr, [*range(32), 127])),
    "graph": "".join(map(chr, range(33, 127))), "print": "".join(map(chr, range(32, 127))),
}  # fmt: skip

#: Matches nothing.
_NEVER = "(?!)"

#: Wildcards: anything, any folders with what is in them, and any characters of one name.
_ANYTHING, _FOLDERS, _STAR = ".*", "(?:.*/)?", "[^/]*"

#: Wildcards that match slashes, and those that do not; of each the form that takes least.
_LEAST = {_ANYTHING: ".*?", _FOLDERS: "(?:.*?/)??"}, {_STAR: "[^/]*?"}


class _Pattern(NamedTuple):
    """A line of a .gitignore file, or a pattern of an option.

    regex : of the whole path from the folder of the file; or of the name alone.
    takes_back : whether a match is not ignored.
    """

    regex: re.Pattern[str]
    of_name: bool
    of_folders: bool
    takes_back: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path matches, without a slash at its end; not what is below it."""
        if self.of_folders and not is_folder:
            return False
        name = path[path.rfind("/") + 1 :] if self.of_name else path
        return self.regex.fullmatch(name) is not None


@dataclass(frozen=True)
class Rules:
    """The patterns that hold in a folder: those of its own .gitignore file, and of folders above.

    cut, prefix : the path of a file from this folder is `prefix`, and its name from `cut` on.
    """

    patterns: tuple[_Pattern, ...]
    cut: int
    prefix: bytes = b""
    above: "Rules | None" = None

    @classmethod
    def of(cls, folder: bytes, above: "Rules | None", cut: int, prefix: bytes = b"") -> Self:
        """Return the rules that hold in a folder. Raise OSError if they cannot be read.

        above : the rules of the folder above; they do not hold in a repository of its own.
        """
        repository = os.path.join(folder, b".git")  # noqa: PTH118 (bytes path)
        if os.path.lexists(repository):
            excluded = os.path.join(repository, b"info/exclude")  # noqa: PTH118 (bytes path)
            above = cls(_read_patterns(excluded), cut, prefix)
        own = os.path.join(folder, b".gitignore")  # noqa: PTH118 (bytes path)
        return cls(_read_patterns(own), cut, prefix, above)

    @classmethod
    def of_named(cls, folder: bytes, cut: int) -> Self:
        """Return the rules that hold in a folder that was named: in a repository, from its top on.

        Raise OSError if they cannot be read.
        """
        whole = os.path.realpath(folder)
        top = find_repository(whole)
        if top is None:
            return cls.of(folder, None, cut)
        steps = [] if top == whole else os.path.relpath(whole, top).split(b"/")
        rules = None
        for at, step in enumerate(steps):
            rules = cls.of(top, rules, cut, b"/".join(steps[at:]) + b"/")
            top = os.path.join(top, step)  # noqa: PTH118 (bytes path)
        return cls.of(folder, rules, cut)

    def ignore(self, name: bytes, *, is_folder: bool) -> bool:
        """Return whether a file, or a folder with everything below, is ignored.

        name : as the walk says it, below a folder that is not ignored.
        """
        rules: Rules | None = self
        while rules is not None:
            below = rules.prefix + name[rules.cut :].removeprefix(b"./")
            path = below.decode("latin-1")
            for pattern in reversed(rules.patterns):
                if pattern.matches(path, is_folder=is_folder):
                    return not pattern.takes_back
            rules = rules.above
        return is_folder and os.path.basename(name) == b".git"  # noqa: PTH119 (bytes path)


def find_repository(folder: bytes) -> bytes | None:
    """Return the top folder of the repository that a real path is in; None if it is in none."""
    while not os.path.lexists(os.path.join(folder, b".git")):  # noqa: PTH118 (bytes path)
        folder, below = os.path.dirname(folder), folder  # noqa: PTH120 (bytes path)
        if folder == below:
            return None
    return folder


def _read_patterns(path: bytes) -> tuple[_Pattern, ...]:
    """Return the patterns of a file; none if it is missing, no regular file, or too large."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        return ()
    with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
        text = file.read(MOST_BYTES)
    lines = text.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    found = (_pattern(line) for line in lines if not line.startswith("#"))
    return tuple(pattern for pattern in found if pattern is not None)


def _pattern(line: str) -> _Pattern | None:
    """Return the pattern of a line; None for one that says nothing."""
    line = line.removesuffix("\r")
    line = re.sub(r"((?:[^\\ ]|\\.|\\$| +(?=[^ ]))*) *", r"\1", line, flags=re.DOTALL)
    takes_back = line.startswith("!")
    glob = line[takes_back:]
    of_folders = glob.endswith("/")
    glob = glob[: len(glob) - of_folders]
    if not glob:
        return None
    of_name = "/" not in glob
    regex = _regex(glob.removeprefix("/"), is_path=not of_name)
    return _Pattern(regex, of_name, of_folders, takes_back)


@cache
def _regex(glob: str, *, is_path: bool) -> re.Pattern[str]:
    """Return the expression of a pattern."""
    parts, at = [], 0
    # git looks for the literal beginning first: stars behind it stand at the start.
    literal = len(re.split(r"[*?\[\\]", glob, maxsplit=1)[0])
    while at < len(glob):
        c = glob[at]
        if c == "*":
            end = at + 1
            while glob[end : end + 1] == "*":
                end += 1
            begins = at == literal or glob[at - 1] == "/"
            rest = glob[end : end + 2]
            if not (is_path and end - at > 1 and begins):
                parts.append(_STAR)
            elif not rest or rest == "\\/":
                parts.append(_ANYTHING)
            elif rest.startswith("/"):
                parts.append(_FOLDERS)
                end += 1
            else:
                parts.append(_STAR)
            at = end
        elif c == "[":
            one, at = _bracket(glob, at + 1)
            parts.append(one)
        elif c == "\\":
            parts.append(re.escape(glob[at + 1 : at + 2]) or _NEVER)
            at += 2
        else:
            parts.append("[^/]" if c == "?" else re.escape(c))
            at += 1
    return re.compile(_join_parts(parts, *_LEAST), re.DOTALL)


def _join_parts(parts: list[str], *levels: Mapping[str, str]) -> str:
    """Return an expression of parts that takes time linear in the parts and the name.

    What stands between two wildcards is taken where it is found first, and looked for no further:
    the second wildcard matches what lies before any later place. Tried at all places, twenty stars
    against a name of 255 bytes take years.

    levels : wildcards and the form of each that takes least, those that match slashes first.
    """
    if not levels:
        return "".join(parts)
    least, *inner = levels
    places = [*(at for at, part in enumerate(parts) if part in least), len(parts)]
    joined = _join_parts(parts[: places[0]], *inner)
    for at, end in pairwise(places):
        rest = _join_parts(parts[at + 1 : end], *inner)
        is_last = end == len(parts)
        joined += parts[at] + rest if is_last else "(?>" + least[parts[at]] + rest + ")"
    return joined


def _bracket(glob: str, at: int) -> tuple[str, int]:
    """Return the expression of a bracket expression, and where it ends.

    Without an end it matches nothing, and ends with the pattern.

    at : behind the opening bracket.
    """
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    members = ""
    before = ""  # the beginning of a range
    closing = 0  # the next closing bracket, looked for once
    first = True
    while first or glob[at : at + 1] != "]":
        first = False
        is_range = glob[at : at + 1] == "-" and before and glob[at + 1 : at + 2] not in "]"
        at += bool(is_range)
        if glob[at : at + 2] == "[:" and not is_range:
            closing = closing if closing > at + 1 else glob.find("]", at + 2)
            if closing < 0:
                return _NEVER, len(glob)
            if closing > at + 2 and glob[closing - 1] == ":":
                name = glob[at + 2 : closing - 1]
                if name not in _CLASSES:
                    return _NEVER, len(glob)
                members += re.escape(_CLASSES[name])
                before, at = "", closing + 1
                continue
        at += glob[at : at + 1] == "\\"
        if at >= len(glob):
            return _NEVER, len(glob)
        if is_range and before <= glob[at]:
            members += f"{re.escape(before)}-{re.escape(glob[at])}"
        elif not is_range:
            members += re.escape(glob[at])
        before = "" if is_range else glob[at]
        at += 1
    return (f"[^{members}/]" if negated else f"(?!/)[{members}]"), at + 1


# --- options ------------------------------------------------------------------------------------

#: The characters that make a word a pattern to a shell.
GLOB = re.compile(r"[*?\[]")

#: A name that is nearly the unmatched pattern is looked for among so many names.
FEW_NAMES = 1000


class Patterns:
    """The gitignore patterns of one option. The last one that matches a path decides, or if there
    is none, the last one that matches a folder above; ``!`` in front of it takes a match back.

    Beyond git, a folder is taken back with what is below it, ``./`` in front of a pattern anchors
    it, and ``#`` begins no comment.

    >>> docs = Patterns("--exclude", ["docs/**/*.md", "!keep.md"])
    >>> docs.match("docs/a/b.md"), docs.match("docs/keep.md"), docs.match("other/docs/c.md")
    (True, False, False)
    """

    def __init__(self, option: str, texts: Iterable[str]) -> None:
        self._option, self._texts = option, tuple(texts)
        self._patterns = [self._pattern_of(text) for text in self._texts]
        self._unused = dict.fromkeys(self._texts)
        self._in_folder: dict[str, list[bool]] = {"": [False] * len(self._texts)}

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def _pattern_of(self, text: str) -> _Pattern:
        """Return the pattern that a text means. Raise ParameterError if it cannot mean one."""
        line = re.sub(r"^(!?)(?:\./+)+(?=.)", r"\1/", text)
        # `a/**` is `a/`, unless something below may be taken back: no file is listed in vain.
        if not any(each.startswith("!") for each in self._texts):
            line = re.sub(r"^/?(.*[^*/].*?)(?:/\*\*)+$", r"/\1/", line, flags=re.DOTALL)
        pattern = _pattern(line)
        if text.rstrip() == "!":
            message = f"{self._option}: invalid git pattern: {text!r}"
            raise ParameterError(message, "write it as in a .gitignore file")
        return pattern or _NOTHING

    def match(self, path: str) -> bool:
        """Return whether the patterns select a path, and remember which of them have matched.

        path : from the root of the patterns; a folder ends with a slash.
        """
        is_folder = path.endswith("/")
        path = path.rstrip("/")
        above = self._match_folder(path if is_folder else path.rpartition("/")[0])
        selected = by_itself = False
        for text, pattern, is_inside in zip(self._texts, self._patterns, above, strict=True):
            matches = not is_folder and pattern.matches(path, is_folder=False)
            if not (matches or is_inside):
                continue
            self._unused.pop(text, None)
            if matches or not by_itself:
                selected, by_itself = not pattern.takes_back, matches
        return selected

    def _match_folder(self, folder: str) -> list[bool]:
        """Return which patterns match a folder, or one above it."""
        unknown = []
        while folder not in self._in_folder:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        known = self._in_folder[folder]
        for folder in reversed(unknown):
            known = self._in_folder[folder] = [
                is_inside or pattern.matches(folder, is_folder=True)
                for pattern, is_inside in zip(self._patterns, known, strict=True)
            ]
        return known

    def warnings(self, what: str, names: Iterable[bytes]) -> list[str]:
        """Return a line for each pattern that has matched nothing, with the name that was perhaps
        meant.

        what : what it should have matched. names : to choose from.
        """
        known = list(islice(names, FEW_NAMES)) if self._unused else []
        return [
            f"{self._option} {text} matches {what}{_instead(text, known)}" for text in self._unused
        ]


#: A pattern of an option that says nothing.
_NOTHING = _Pattern(re.compile(_NEVER), of_name=True, of_folders=False, takes_back=False)


def _instead(text: str, names: Iterable[bytes]) -> str:
    if GLOB.search(text):
        return ""
    wanted = text.strip("/")
    known = {os.fsdecode(name) for name in names}
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

    def warnings(self, names: Sequence[bytes]) -> list[str]:
        """Return a line for each pattern that has matched nothing.

        names : the files and folders that were met.
        """
        what = "nothing that was met"
        return self._include.warnings(what, names) + self._exclude.warnings(what, names)
