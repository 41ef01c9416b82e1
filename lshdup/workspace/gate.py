"""What git knows for a gate: documents that have changed since a commit, and when."""

import os
from collections.abc import Collection
from contextlib import suppress
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lshdup.base.wording import printable
from lshdup.collection.shared_documents import files_of, resolve_files
from lshdup.errors import InputError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.patterns import find_repository

#: Files that git is asked about by their names; of more, it lists all that have ever changed.
_FEW_FILES = 1000

#: The time of a change that is in no commit.
_NOW = np.iinfo(np.int64).max

#: Variables that a hook of git has, and that name another repository than the one of a folder.
_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


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
        self._find_top = cache(find_repository)
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
        top = self._find_top(folder)
        if top is None:
            message = f"--changed-since {self._ref}: a document is in no repository of git"
            raise InputError(message, "name documents of one, or leave the option out")
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
