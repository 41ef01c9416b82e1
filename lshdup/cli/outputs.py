"""The files that a command is to write, each held against all that the run reads, before the work.

A file is known by its device and number, so links are seen through. A link that is named as an
output is followed: the file that it leads to is replaced, and the link stays.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lshdup.base.messages import printable
from lshdup.base.system import is_stdout
from lshdup.cli.types import OutputPath
from lshdup.errors import ParameterError

if TYPE_CHECKING:
    from lshdup.params import DocumentParams
    from lshdup.sources.document_list import DocumentList

_ANOTHER = "write to another file"


class Outputs:
    """Files that the options of a command name to be written.

    Errors of all methods: ParameterError if one of them is an input of the run, or is named twice.
    """

    def __init__(self) -> None:
        self._paths: list[tuple[str, str]] = []  # option and path

    @classmethod
    def of(cls, ctx: click.Context) -> "Outputs":
        """Return the outputs of a command line, held against the inputs that it names."""
        outputs, inputs = cls(), list[tuple[str, str]]()
        for param in ctx.command.params:
            is_output = isinstance(param.type, OutputPath)
            for path in _values(ctx, param) if isinstance(param.type, click.Path) else ():
                option = param.opts[0] if isinstance(param, click.Option) else ""
                if is_output and not is_stdout(path):
                    outputs.add(option, path)
                elif not is_output:
                    inputs.append((option, path))
        for each in outputs._paths:
            _refuse_store(*each, ctx.params.get("store"))
            for option, path in inputs:
                if _are_one(each[1], path):
                    _refuse(*each, option, path)
        return outputs

    def add(self, option: str, path: str) -> None:
        """Add a file that an option names, or that is in a folder which it names."""
        for other, there in self._paths:
            if other != option and _are_one(path, there):
                message = f"{option} and {other} are both {printable(there)}"
                raise ParameterError(message, "name two files")
        if (option, path) not in self._paths:
            self._paths.append((option, path))

    def refuse_documents(self, documents: "DocumentList", source: str = "") -> None:
        """Raise if one of the outputs is the file of one of the documents.

        source : option that names them; "" for those that are compared.
        """
        for option, path in self._paths:
            found = documents.find_file(path)
            if found is not None:
                _refuse(option, path, source, os.fsdecode(found))

    def refuse_below(self, source: str, names: Iterable[bytes], params: "DocumentParams") -> None:
        """Raise if one of the outputs is a text in folders that the run will read.

        This is known before a store is made. A folder is walked twice only if an output that
        exists is in it, or may be by a link.

        source : as of `refuse_documents`.
        names : folders, and files, which are left to `refuse_documents`.
        """
        from dataclasses import replace

        from lshdup.base.run import Run
        from lshdup.base.skipped import Skipped, SkippedFile
        from lshdup.sources.finding import Finder

        there = [
            real for _, path in self._paths if (real := Path(os.path.realpath(path))).is_file()
        ]
        are_linked = params.follow or any(real.stat().st_nlink > 1 for real in there)
        for name in names if there else ():
            top = os.path.realpath(os.fsdecode(name))
            if os.path.isdir(top) and (
                are_linked or any(real.is_relative_to(top) for real in there)
            ):
                skipped: list[Skipped] = []
                finder = Finder(replace(Run.quiet(), skipped=skipped.append), params)
                stays = (SkippedFile(each) for each in skipped if each.reason.stays)
                self.refuse_documents(replace(finder.find([name]), skipped=tuple(stays)), source)


def _values(ctx: click.Context, param: click.Parameter) -> Iterator[str]:
    """Yield the paths that a parameter names."""
    value: Any = ctx.params.get(param.name or "")
    for each in value if isinstance(value, tuple) else (value,):
        if each is not None:
            yield os.fsdecode(each)


def _refuse(option: str, path: str, source: str, there: str) -> NoReturn:
    """Raise for an output that is a file which is read. source : option that names it, or ""."""
    name = printable(there)
    if source:
        message = f"{option} {printable(path)} would replace {source} {name}, which this run reads"
        raise ParameterError(message, _ANOTHER)
    message = f"{option} {printable(path)} is one of the documents that are compared"
    same = os.path.normpath(there) == os.path.normpath(path)
    raise ParameterError(message if same else f"{message}: {name}", f"{_ANOTHER}, or --exclude it")


def _refuse_store(option: str, path: str, store: Any) -> None:
    """Raise if an output is in a folder that is a store, or will be one. store : of --store."""
    from lshdup.store.store import Store  # Imported here to keep the help of a command fast.

    named = Path(os.path.realpath(store)) if store is not None else None
    for folder in Path(os.path.realpath(path)).parents:
        with suppress(OSError):  # a folder above that may not be read
            if folder == named or Store(folder).is_ours():
                message = f"{option} {printable(path)} is in the store {printable(str(folder))}"
                raise ParameterError(message, "name a file outside of it")


def _are_one(path: str, other: str) -> bool:
    """Return whether two paths lead to one file, or would. - is standard input."""
    try:
        status = os.stat(path)
        there = os.fstat(0) if other == "-" else os.stat(other)
    except (OSError, ValueError):
        return os.path.realpath(path) == os.path.realpath(other)
    return stat.S_ISREG(status.st_mode) and os.path.samestat(status, there)
