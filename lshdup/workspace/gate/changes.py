"""Documents that have changed since a commit, as git says."""

import os
import subprocess

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList
from lshdup.errors import InputError
from lshdup.utils.messages import printable
from lshdup.workspace.against.shared import files_of, resolve_files

#: Variables that a hook of git has, and that name another repository than the one of a folder.
_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


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
            above = os.path.dirname(folder)  # noqa: PTH120 (bytes path)
            if os.path.lexists(os.path.join(folder, b".git")):  # noqa: PTH118 (bytes path)
                self._repositories[folder] = folder
            elif above == folder:
                message = f"--changed-since {self._ref}: a document is in no repository of git"
                raise InputError(message, "name documents of one, or leave the option out")
            else:
                self._repositories[folder] = self._find_repository(above)
        return self._repositories[folder]

    def _ask(self, top: bytes, remedy: str, *words: str) -> bytes:
        """Return what a command of git prints that only reads."""
        environment = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
        environment["GIT_OPTIONAL_LOCKS"] = "0"
        try:
            process = subprocess.run(
                [b"git", b"-C", top, *map(os.fsencode, words)],
                capture_output=True,
                check=False,
                env=environment,
            )
        except FileNotFoundError:
            message = "--changed-since needs git, which is not there"
            raise InputError(message, "install git, or leave the option out") from None
        if process.returncode:
            said = printable(process.stderr.decode("utf-8", "replace").strip().partition("\n")[0])
            message = f"--changed-since {self._ref}: git {words[0]} failed in {printable(top)}"
            raise InputError(message + (f": {said}" if said else ""), remedy)
        return process.stdout
