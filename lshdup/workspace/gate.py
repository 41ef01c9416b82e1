"""What a gate knows: documents that have changed since a commit, and when, as git says; and a
baseline, the known pairs of documents in a text file.

A pair is known by the fingerprints of the token sequences of its documents: a renamed document
stays known, a changed one does not. Documents of one fingerprint are counted, so that a further
copy is new; their names only say which of several copies that is.
"""

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import replace_file
from lshdup.base.frozen import dataclass
from lshdup.base.ragged import distinct
from lshdup.base.wording import printable
from lshdup.collection.shared_documents import files_of, resolve_files
from lshdup.compare.scored_pairs import contains, pack_pairs, unpack_pairs
from lshdup.errors import InputError, LshdupError, ParameterError
from lshdup.params import ShingleParams
from lshdup.sources.document_list import DocumentList
from lshdup.workspace.request import check_conflict

#: Files that git is asked about by their names; of more, it lists all that have ever changed.
_FEW_FILES = 1000

#: The time of a change that is in no commit.
_NOW = np.iinfo(np.int64).max

#: Variables that a hook of git has, and that name another repository than the one of a folder.
_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


def find_repository(folder: bytes) -> bytes | None:
    """Return the top folder of the repository that a real path is in; None if it is in none."""
    while not os.path.lexists(os.path.join(folder, b".git")):  # noqa: PTH118 (bytes path)
        folder, below = os.path.dirname(folder), folder  # noqa: PTH120 (bytes path)
        if folder == below:
            return None
    return folder


def find_change_times(documents: DocumentList, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return when the files of documents changed last, in nanoseconds: int64 array of shape (n,).

    In a repository git knows; elsewhere, and if git fails, it is the time of the file.

    wanted : bool array of shape (n,); the time of other documents is 0.
    """
    files, times = files_of(documents), documents.mtimes * wanted
    numbers = set(files[wanted].tolist())
    newest = np.zeros(int(files.max(initial=0)) + 1, np.int64)
    by_top: dict[bytes, dict[bytes, int]] = {}
    for path, number in resolve_files(documents):
        top = find_repository(os.path.dirname(path)) if number in numbers else None  # noqa: PTH120
        if top is not None:
            by_top.setdefault(top, {})[path] = number
    for top, paths in by_top.items():
        with suppress(InputError):
            for path, time in Changes("HEAD").find_times(top, paths).items():
                newest[paths[path]] = time
    return np.where(wanted & (newest[files] > 0), newest[files], times)


class Changes:
    """The files that have changed since a commit, in each repository that holds documents.

    ref : a commit, a branch or a tag. Files are held against the last commit that it and HEAD have
        in common, so that commits which are on a branch `ref` only change nothing.
    """

    def __init__(self, ref: str) -> None:
        self._ref = ref
        self._repositories: dict[bytes, bytes] = {}
        self._changed: dict[bytes, set[bytes]] = {}

    def find(self, documents: DocumentList) -> NDArray[np.bool_]:
        """Return which documents are in files that have changed: bool array of shape (n,).

        Errors: as of `in_repository`.
        """
        changed = [
            number
            for path, number in resolve_files(documents)
            if path in self.in_repository(os.path.dirname(path))  # noqa: PTH120 (bytes path)
        ]
        return np.isin(files_of(documents), changed)

    def in_repository(self, folder: bytes) -> set[bytes]:
        """Return the real paths of the files that have changed in the repository of a folder.

        These are new files, tracked or not, and files with another content. A file that was only
        moved has not changed.

        Errors: InputError if the folder is in no repository, git fails, or does not know `ref`.
        """
        top = self._find_repository(folder)
        if top not in self._changed:
            if self._ref.startswith("-"):
                message = f"--changed-since {self._ref}: no commit begins with -"
                raise InputError(message, "name a commit, a branch or a tag")
            fetch = "name a commit, a branch or a tag that is here; CI may have to fetch it first"
            self._ask(top, fetch, "rev-parse", "--verify", "--quiet", f"{self._ref}^{{commit}}")
            fetch = "fetch more of the history first (`git fetch --unshallow`; fetch-depth: 0)"
            base = self._ask(top, fetch, "merge-base", self._ref, "HEAD").strip().decode()
            options = ("--name-only", "-z", "--find-renames=100%", "--diff-filter=AMT")
            changed = self._ask(top, "", "diff", *options, "--no-ext-diff", base, "--")
            new = self._ask(top, "", "ls-files", "--others", "--exclude-standard", "-z")
            self._changed[top] = {
                os.path.join(top, name)  # noqa: PTH118 (bytes path)
                for name in (changed + new).split(b"\0")
                if name
            }
        return self._changed[top]

    def _find_repository(self, folder: bytes) -> bytes:
        """Return the top folder of the repository that a real path is in."""
        if folder not in self._repositories:
            top = find_repository(folder)
            if top is None:
                message = f"--changed-since {self._ref}: a document is in no repository of git"
                raise InputError(message, "name documents of one, or leave the option out")
            self._repositories[folder] = top
        return self._repositories[folder]

    def find_times(self, top: bytes, paths: Collection[bytes]) -> dict[bytes, int]:
        """Return when these files of a repository changed last, in nanoseconds.

        That is the time of a commit. A file that is not as it is in HEAD has changed after all.

        Errors: InputError if git fails, or there is no commit yet.
        """
        changed = self.in_repository(top)
        times = {path: _NOW for path in paths if path in changed}
        names = {os.path.relpath(path, top): path for path in paths if path not in times}
        which: list[str | bytes] = ["--", *names] if len(names) <= _FEW_FILES else []
        options = ("--format=//%ct", "--name-only", "-z", "--no-renames")
        listed = self._ask(top, "", "log", *options, *which) if names else b""
        time = 0
        for text in listed.split(b"\0"):
            name = text.removeprefix(b"\n")
            if text.startswith(b"//"):  # no name begins like this
                time = int(text[2:]) * 10**9
            elif name in names:
                times.setdefault(names[name], time)
        return times

    def _ask(self, top: bytes, remedy: str, *words: str | bytes) -> bytes:
        """Return what a command of git prints that only reads."""
        import subprocess  # Imported here to keep `pairs` without --changed-since fast.

        environment = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
        environment["GIT_OPTIONAL_LOCKS"] = "0"
        try:
            process = subprocess.run(
                [b"git", b"--literal-pathspecs", b"-C", top, *map(os.fsencode, words)],
                capture_output=True,
                check=False,
                env=environment,
            )
        except FileNotFoundError:
            message = "--changed-since needs git, which is not there"
            raise InputError(message, "install git, or leave the option out") from None
        if process.returncode:
            said = printable(process.stderr.decode("utf-8", "replace").strip().partition("\n")[0])
            message = f"--changed-since {self._ref}: git {words[0]!s} failed in {printable(top)}"
            raise InputError(message + (f": {said}" if said else ""), remedy)
        return process.stdout


#: The first line of a baseline begins like this; the definition of the sets follows as JSON.
_HEADER = b"# lshdup baseline 1 "

#: The names of two documents, and their fingerprints.
Line = tuple[bytes, bytes, int, int]

#: Distinct pairs of classes that are gathered before they are merged.
_GATHERED = 1 << 20


@dataclass(frozen=True)
class Baseline:
    """Known pairs.

    shingle : parameters that the fingerprints depend on.
    lines : a pair of documents for each pair of fingerprints, and for each further document of a
        fingerprint a pair that it is in. The names in a line are ascending.
    """

    shingle: ShingleParams
    lines: frozenset[Line] = field(default_factory=frozenset)

    @cached_property
    def names(self) -> dict[int, set[bytes]]:
        """The names of the documents of each fingerprint."""
        names: dict[int, set[bytes]] = {}
        for a, b, print_a, print_b in self.lines:
            names.setdefault(print_a, set()).add(a)
            names.setdefault(print_b, set()).add(b)
        return names

    @cached_property
    def prints(self) -> Counter[tuple[int, int]]:
        """The number of lines of each pair of fingerprints, the smaller one first."""
        return Counter((min(a, b), max(a, b)) for _, _, a, b in self.lines)

    def count_gone(self, now: "Baseline") -> int:
        """Return how many lines stand for nothing that is in `now`."""
        return (self.prints - now.prints).total()

    def check(self, path: Path, shingle: ShingleParams) -> None:
        """Raise ArtifactError if fingerprints of these parameters are others."""
        wanted: Mapping[str, Any] = shingle.to_json()
        remedy = "leave that out, or write the baseline anew with --update-baseline"
        check_conflict(str(path), self.shingle, wanted, remedy)

    def save(self, path: Path) -> None:
        """Write the baseline: one line a pair, sorted by names. Raises OSError."""
        definition = json.dumps(self.shingle.to_json(), sort_keys=True).encode("ascii")
        with replace_file(path) as file:
            file.write(_HEADER + definition + b"\n")
            for line in sorted(map(_to_text, self.lines)):
                file.write(line + b"\n")


def load_baseline(path: Path, *, repair: bool) -> Baseline:
    """Load a baseline.

    repair : leave out lines that are none, as of a merge conflict, instead of refusing them.

    Errors: InputError if there is none, ParameterError if the file is no baseline, or is damaged.
    """
    rewrite = "--update-baseline writes it anew"
    try:
        head, *texts = path.read_bytes().splitlines()
    except FileNotFoundError:
        message = f"--baseline {path} is not there"
        raise InputError(message, "--update-baseline writes it") from None
    except OSError as error:
        message = f"--baseline {path} cannot be read: {error.strerror}"
        raise InputError(message, "name another file") from None
    except ValueError:  # an empty file
        head, texts = b"", []
    try:
        shingle = ShingleParams.from_json(json.loads(head.removeprefix(_HEADER)))
        is_one = head.startswith(_HEADER)
    except (ValueError, RecursionError, LshdupError):
        is_one = False
    if not is_one:
        message = f"--baseline {path} is no baseline of this version of lshdup"
        raise ParameterError(message, "name another file, or remove it: " + rewrite)
    lines = set()
    for number, text in enumerate(texts, 2):
        line = _from_text(text)
        if line is not None:
            lines.add(line)
        elif not repair:
            message = f"--baseline {path} is damaged: line {number} is no pair"
            raise ParameterError(message, "mend a merge that left its marks there; or " + rewrite)
    return Baseline(shingle, frozenset(lines))


def _to_text(line: Line) -> bytes:
    a, b, print_a, print_b = line
    return b"\t".join((_quote(a), _quote(b), b"%016x" % print_a, b"%016x" % print_b))


def _from_text(text: bytes) -> Line | None:
    try:
        a, b, print_a, print_b = text.split(b"\t")
        return (_unquote(a), _unquote(b), int(print_a, 16), int(print_b, 16))
    except (ValueError, RecursionError):
        return None


def _quote(name: bytes) -> bytes:
    r"""Return a name as it is, or as a JSON string if a line of text cannot hold it.

    >>> _quote(b"docs/a.txt"), _quote(b"a\tb\xff")
    (b'docs/a.txt', b'"a\\tb\\udcff"')
    """
    try:
        is_plain = name.decode().isprintable() and not name.startswith(b'"')
    except UnicodeDecodeError:
        is_plain = False
    return name if is_plain else json.dumps(os.fsdecode(name)).encode("ascii")


def _unquote(text: bytes) -> bytes:
    return os.fsencode(json.loads(text)) if text.startswith(b'"') else text


class Review:
    """The pairs of a run, held against a baseline.

    Documents of one fingerprint are a *class*.

    Parameters
    ----------
    baseline : the known pairs.
    prints : uint64 array of shape (n,), fingerprints of the token sequences.
    documents : int64 array, ascending, the documents that are in any pair.
    names : their names, as in the baseline.

    is_known : bool array of shape (n,), which documents are in the baseline.

    """

    def __init__(
        self,
        baseline: Baseline,
        prints: NDArray[np.uint64],
        documents: NDArray[np.int64],
        names: list[bytes],
    ) -> None:
        self._shingle = baseline.shingle
        values, sizes = distinct(prints[documents])
        self._values: list[int] = values.tolist()
        classes = np.searchsorted(values, prints[documents])
        order = np.argsort(classes, kind="stable")
        self._names: list[list[bytes]] = [
            [names[at] for at in group.tolist()]
            for group in np.split(order, np.cumsum(sizes)[:-1])
            if len(group)
        ]
        self._class = np.zeros(len(prints), np.int64)
        self._class[documents] = classes
        known = [
            _known_names(group, baseline.names.get(value, set()))
            for value, group in zip(self._values, self._names, strict=True)
        ]
        self.is_known = np.zeros(len(prints), bool)
        self.is_known[documents] = [
            name in known[each] for name, each in zip(names, classes.tolist(), strict=True)
        ]
        at = {value: number for number, value in enumerate(self._values)}
        keys = [(at[a] << 32) + at[b] for a, b in baseline.prints if a in at and b in at]
        self._keys = np.sort(np.array(keys, np.uint64))

    def is_new(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which pairs are not in the baseline: bool array of the shape of `left`."""
        known = self.is_known[left] & self.is_known[right]
        known &= contains(self._keys, self._pack(left, right))
        new: NDArray[np.bool_] = ~known
        return new

    def _pack(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.uint64]:
        a, b = self._class[left], self._class[right]
        return pack_pairs(np.minimum(a, b), np.maximum(a, b))

    def summarize(self, pieces: Iterable[tuple[Any, ...]]) -> Baseline:
        """Return the baseline in which all pairs of the run are known.

        pieces : arrays left, right, and perhaps more.
        """
        keys, parts = np.zeros(0, np.uint64), list[NDArray[np.uint64]]()
        for left, right, *_ in pieces:
            parts.append(distinct(self._pack(left, right))[0])
            if sum(map(len, parts)) > _GATHERED:
                keys, parts = distinct(np.concatenate([keys, *parts]))[0], []
        keys = distinct(np.concatenate([keys, *parts]))[0]
        lines = self._lines(*(each.tolist() for each in unpack_pairs(keys)))
        return Baseline(self._shingle, frozenset(lines))

    def _lines(self, lefts: list[int], rights: list[int]) -> Iterator[Line]:
        """Yield the lines of pairs of classes, and one for each further document of a class."""
        partner: dict[int, int] = {}
        for a, b in zip(lefts, rights, strict=True):
            if a == b:
                partner[a] = a
                continue
            partner.setdefault(a, b)
            partner.setdefault(b, a)
            yield self._line(a, self._names[a][0], b, self._names[b][0])
        for a, b in partner.items():
            for name in self._names[a][1:]:
                yield self._line(a, name, b, self._names[b][0])

    def _line(self, a: int, name_a: bytes, b: int, name_b: bytes) -> Line:
        ends = sorted(((name_a, self._values[a]), (name_b, self._values[b])))
        return ends[0][0], ends[1][0], ends[0][1], ends[1][1]


def _known_names(group: list[bytes], known: set[bytes]) -> set[bytes]:
    """Return which names of the documents of a class are known.

    Names that are in the baseline are; of the others, as many as the baseline has names of
    documents that are not there any more, as they may have been renamed.
    """
    still = known.intersection(group)
    others = [name for name in dict.fromkeys(group) if name not in known]
    return still.union(others[: len(known) - len(still)])


def names_from(folder: Path, names: list[bytes]) -> list[bytes]:
    """Return names as they are typed from a folder, for names typed from the current one."""
    start = os.path.realpath(os.fsencode(folder))
    if start == os.path.realpath(b"."):
        return names
    return [os.path.relpath(os.path.realpath(name), start) for name in names]
