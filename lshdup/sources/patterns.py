"""Gitignore patterns: those of --include, --exclude and --prefer, and of .gitignore files.

The patterns of options are matched by pathspec, which lets a pattern that takes a folder back
(`!folder`) take back everything below it; git does not. So `Rules` matches the patterns of files
itself. Both match in time linear in pattern and name, which neither pathspec nor a plain regular
expression does.
"""

import os
import re
import stat
import string
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

from lshdup.base.frozen import dataclass
from lshdup.base.messages import did_you_mean
from lshdup.base.skipped import Reason
from lshdup.errors import ParameterError

# --- files --------------------------------------------------------------------------------------

#: Bytes from which git itself ignores a file of patterns.
MOST_BYTES = 100 << 20

_CLASSES = {
    b"alpha": string.ascii_letters, b"digit": string.digits, b"xdigit": string.hexdigits,
    b"alnum": string.ascii_letters + string.digits, b"lower": string.ascii_lowercase,
    b"upper": string.ascii_uppercase, b"blank": " \t", b"space": " \t\n\r\v\f",
    b"punct": string.punctuation, b"cntrl": "".join(map(chr, [*range(32), 127])),
    b"graph": "".join(map(chr, range(33, 127))), b"print": "".join(map(chr, range(32, 127))),
}  # fmt: skip

#: Matches nothing.
_NEVER = b"(?!)"

#: Wildcards: any bytes, any folders with what is in them, and any bytes of one name.
_ANYTHING, _FOLDERS, STAR = b".*", b"(?:.*/)?", b"[^/]*"

#: Wildcards that match slashes, and those that do not; of each the form that takes least.
_LEAST = {_ANYTHING: b".*?", _FOLDERS: b"(?:.*?/)??"}, {STAR: b"[^/]*?"}


class _Pattern(NamedTuple):
    """A line of a .gitignore file.

    regex : of the whole path from the folder of the file; or of the name alone.
    takes_back : whether a match is not ignored.
    """

    regex: re.Pattern[bytes]
    of_name: bool
    of_folders: bool
    takes_back: bool


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
        top = whole = os.path.realpath(folder)
        while not os.path.lexists(os.path.join(top, b".git")):  # noqa: PTH118 (bytes path)
            if top == os.path.dirname(top):  # noqa: PTH120 (bytes path)
                return cls.of(folder, None, cut)
            top = os.path.dirname(top)  # noqa: PTH120 (bytes path)
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
            path = rules.prefix + name[rules.cut :].removeprefix(b"./")
            base = path[path.rfind(b"/") + 1 :]
            for pattern in reversed(rules.patterns):
                if (is_folder or not pattern.of_folders) and pattern.regex.fullmatch(
                    base if pattern.of_name else path
                ):
                    return not pattern.takes_back
            rules = rules.above
        return is_folder and base == b".git"


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
    found = map(_pattern, text.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    return tuple(pattern for pattern in found if pattern is not None)


def _pattern(line: bytes) -> _Pattern | None:
    """Return the pattern of a line; None for an empty line or a comment."""
    line = line.removesuffix(b"\r")
    if line.startswith(b"#"):
        return None
    line = re.sub(rb"((?:[^\\ ]|\\.|\\$| +(?=[^ ]))*) *", rb"\1", line, flags=re.DOTALL)
    takes_back = line.startswith(b"!")
    glob = line[takes_back:]
    of_folders = glob.endswith(b"/")
    glob = glob[: len(glob) - of_folders]
    if not glob:
        return None
    of_name = b"/" not in glob
    regex = _regex(glob.removeprefix(b"/"), is_path=not of_name)
    return _Pattern(regex, of_name, of_folders, takes_back)


@cache
def _regex(glob: bytes, *, is_path: bool) -> re.Pattern[bytes]:
    """Return the expression of a pattern: bytes are characters, as to git."""
    parts, at = [], 0
    # git looks for the literal beginning first: stars behind it stand at the start.
    literal = len(re.split(rb"[*?\[\\]", glob, maxsplit=1)[0])
    while at < len(glob):
        c = glob[at : at + 1]
        if c == b"*":
            end = at + 1
            while glob[end : end + 1] == b"*":
                end += 1
            begins = at == literal or glob[at - 1 : at] == b"/"
            rest = glob[end : end + 2]
            if not (is_path and end - at > 1 and begins):
                parts.append(STAR)
            elif not rest or rest == b"\\/":
                parts.append(_ANYTHING)
            elif rest.startswith(b"/"):
                parts.append(_FOLDERS)
                end += 1
            else:
                parts.append(STAR)
            at = end
        elif c == b"[":
            members, at = _bracket(glob, at + 1)
            some = b"".join(re.escape(bytes([each])) for each in sorted(members))
            parts.append(b"[" + some + b"]" if some else _NEVER)
        elif c == b"\\":
            parts.append(re.escape(glob[at + 1 : at + 2]) or _NEVER)
            at += 2
        else:
            parts.append(b"[^/]" if c == b"?" else re.escape(c))
            at += 1
    return re.compile(join_parts(parts, *_LEAST), re.DOTALL)


def join_parts(parts: list[bytes], *levels: Mapping[bytes, bytes]) -> bytes:
    """Return an expression of parts that takes time linear in the parts and the name.

    What stands between two wildcards is taken where it is found first, and looked for no further:
    the second wildcard matches what lies before any later place. Tried at all places, twenty stars
    against a name of 255 bytes take years.

    levels : wildcards and the form of each that takes least, those that match slashes first.
    """
    if not levels:
        return b"".join(parts)
    least, *inner = levels
    places = [*(at for at, part in enumerate(parts) if part in least), len(parts)]
    joined = join_parts(parts[: places[0]], *inner)
    for at, end in pairwise(places):
        rest = join_parts(parts[at + 1 : end], *inner)
        is_last = end == len(parts)
        joined += parts[at] + rest if is_last else b"(?>" + least[parts[at]] + rest + b")"
    return joined


def _bracket(glob: bytes, at: int) -> tuple[set[int], int]:
    """Return the bytes that a bracket expression matches, and where it ends.

    Without an end it matches nothing, and ends with the pattern.

    at : behind the opening bracket.
    """
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    before = -1  # the beginning of a range
    closing = 0  # the next closing bracket, looked for once
    first = True
    while first or glob[at : at + 1] != b"]":
        first = False
        is_range = glob[at : at + 1] == b"-" and before > 0 and glob[at + 1 : at + 2] not in b"]"
        at += is_range
        if glob[at : at + 2] == b"[:" and not is_range:
            closing = closing if closing > at + 1 else glob.find(b"]", at + 2)
            if closing < 0:
                return set(), len(glob)
            if closing > at + 2 and glob[closing - 1 : closing] == b":":
                name = glob[at + 2 : closing - 1]
                if name not in _CLASSES:
                    return set(), len(glob)
                members |= set(_CLASSES[name].encode())
                before, at = -1, closing + 1
                continue
        at += glob[at : at + 1] == b"\\"
        if at >= len(glob):
            return set(), len(glob)
        members |= set(range(before if is_range else glob[at], glob[at] + 1))
        before = -1 if is_range else glob[at]
        at += 1
    return (set(range(256)) - members if negated else members) - {ord("/")}, at + 1


# --- options ------------------------------------------------------------------------------------

#: The characters that make a word a pattern to a shell.
GLOB = re.compile(r"[*?\[]")

#: Of the expressions that pathspec makes of patterns: the parts, and the wildcards with the forms
#: that take least.
_PARTS = re.compile(r"\(\?:\.\+/\)\?|\(\?:/\.\+\)\?|\[\^/\][*+]?|\[\^?\]?[^]]*\]|\\.|.", re.DOTALL)
_OPTION_FOLDERS, _INNER_FOLDERS = b"(?:.+/)?", b"(?:/.+)?"
_LEAST_OF_OPTIONS = (
    {_OPTION_FOLDERS: b"(?:.+?/)??", _INNER_FOLDERS: b"(?:/.+?)??"},
    {STAR: b"[^/]*?"},
)

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
    return join_parts(parts, *_LEAST_OF_OPTIONS).decode("utf-8", "surrogatepass")


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
