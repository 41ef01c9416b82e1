"""The files that a command is to write, each held against all that the run reads, before the work.

A file is known by its device and number, so links are seen through. A link that is named as an
output is followed: the file that it leads to is replaced, and the link stays.
"""

import os
import stat
from collections.abc import Iterable
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


#: Files that options of a command name to be written: (option, path).
Outputs = list[tuple[str, str]]


def list_outputs(ctx: click.Context) -> Outputs:
    """Return the files that a command line names to be written.

    Errors: ParameterError if one of them is an input that the command line names, or is named
    twice, or is in a store.
    """
    outputs, inputs = Outputs(), list[tuple[str, str]]()
    for param in ctx.command.params:
        if not isinstance(param.type, click.Path):
            continue
        option = param.opts[0] if isinstance(param, click.Option) else ""
        value: Any = ctx.params.get(param.name or "")
        values = value if isinstance(value, tuple) else (value,)
        paths = [os.fsdecode(each) for each in values if each is not None]
        if not isinstance(param.type, OutputPath):
            inputs += [(option, path) for path in paths]
            continue
        for path in paths:
            if not is_stdout(path):
                add_output(outputs, option, path)
    for each in outputs:
        _refuse_store(*each, ctx.params.get("store"))
        for option, path in inputs:
            if _are_one(each[1], path):
                _refuse(*each, option, path)
    return outputs


def add_output(outputs: Outputs, option: str, path: str) -> None:
    """Add a file that an option names, or that is in a folder which it names.

    Errors: ParameterError if another option names it.
    """
    for other, there in outputs:
        if other != option and _are_one(path, there):
            message = f"{option} and {other} are both {printable(there)}"
            raise ParameterError(message, "name two files")
    if (option, path) not in outputs:
        outputs.append((option, path))


def refuse_documents(outputs: Outputs, documents: "DocumentList", source: str = "") -> None:
    """Raise ParameterError if one of the outputs is the file of one of the documents.

    source : option that names them; "" for those that are compared.
    """
    for option, path in outputs:
        found = documents.find_file(path)
        if found is not None:
            _refuse(option, path, source, os.fsdecode(found))


def refuse_below(
    outputs: Outputs, source: str, names: Iterable[bytes], params: "DocumentParams"
) -> None:
    """Raise ParameterError if one of the outputs is a text in folders that the run will read.

    This is known before a store is made. A folder is walked twice only if an output that
    exists is in it, or may be by a link.

    source : as of `refuse_documents`.
    names : folders, and files, which are left to `refuse_documents`.
    """
    from dataclasses import replace

    from lshdup.base.run import Run
    from lshdup.base.skipped import Skipped, SkippedFile
    from lshdup.sources.finding import Finder

    there = [real for _, path in outputs if (real := Path(os.path.realpath(path))).is_file()]
    are_linked = params.follow or any(real.stat().st_nlink > 1 for real in there)
    for name in names if there else ():
        top = os.path.realpath(os.fsdecode(name))
        if os.path.isdir(top) and (are_linked or any(real.is_relative_to(top) for real in there)):
            skipped: list[Skipped] = []
            finder = Finder(replace(Run.quiet(), skipped=skipped.append), params)
            stays = (SkippedFile(each) for each in skipped if each.reason.stays)
            found = replace(finder.find([name]), skipped=tuple(stays))
            refuse_documents(outputs, found, source)


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
