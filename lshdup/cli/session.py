"""The session of a command: its checked parameters, its console and its workspace; and the files
that it is to write, each held against all that the run reads, before the work.
"""

import gc
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lshdup.base import params
from lshdup.base.frozen import dataclass
from lshdup.base.system import is_stdout, is_waiting_pipe, standard_input, with_slashes
from lshdup.base.wording import printable
from lshdup.cli.console import Console
from lshdup.cli.help import is_set, spell
from lshdup.cli.types import OutputPath
from lshdup.errors import ArtifactError, InputError, ParameterError
from lshdup.workspace.request import Request, merge_params

if TYPE_CHECKING:
    from lshdup.base.run import Run
    from lshdup.collection.collection import Collection
    from lshdup.sources.document_list import DocumentList
    from lshdup.workspace.workspace import Workspace

_ANOTHER = "write to another file"


#: Files that options of a command name to be written: (option, path). A file is known by its device
#: and number, so links are seen through. A link that is named as an output is followed: the file
#: that it leads to is replaced, and the link stays.
Outputs = list[tuple[str, str]]


#: Options that may name folders, of which all files are read. Of DOCS patterns may skip some, so
#: that `refuse_documents` decides.
_FOLDERS = ("--against", "--template")


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
        if Path(each[1]).name == params.ACCEPTED_FILE:
            message = f"{each[0]} {printable(each[1])} is a list of accepted pairs"
            raise ParameterError(message, f"{_ANOTHER}; `lshdup accept` writes this one")
        for option, path in inputs:
            if _are_one(each[1], path):
                _refuse(*each, option, path)
            if option in _FOLDERS and _is_below(each[1], path):
                _refuse(*each, option, each[1])
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


def _is_below(path: str, folder: str) -> bool:
    """Return whether a path leads to a file in a folder that may be read there: no hidden one."""
    real, top = Path(os.path.realpath(path)), os.path.realpath(folder)
    if not real.is_file() or not real.is_relative_to(top):
        return False
    return not any(part.startswith(".") for part in real.relative_to(top).parts)


def _are_one(path: str, other: str) -> bool:
    """Return whether two paths lead to one file, or would. - is standard input."""
    try:
        status = os.stat(path)
        there = os.fstat(0) if other == "-" else os.stat(other)
    except (OSError, ValueError):
        return os.path.realpath(path) == os.path.realpath(other)
    return stat.S_ISREG(status.st_mode) and os.path.samestat(status, there)


#: Bytes from which on the size of a store is said.
_LARGE_STORE = 100 << 20

#: Of `open_session`.
Accept = Callable[["DocumentList", bool], Iterable[tuple[str, str]]]

_PARAMS: tuple[Any, ...] = (
    params.ShingleParams,
    params.FilterParams,
    params.SketchParams,
    params.BandParams,
)


@dataclass(frozen=True)
class Session:
    """A command's console, run, workspace, request, and the files that it is to write."""

    console: Console
    run: "Run"
    workspace: "Workspace"
    request: Request
    outputs: Outputs

    def load_last_collection(self) -> "Collection | None":
        """Load the collection of the last run, to look names up in; None without a usable one."""
        from lshdup.workspace.loading import load_last_collection

        try:
            last = load_last_collection(self.workspace)
        except ArtifactError as error:
            self.console.say(error.message)
            return None
        if last is not None:
            self.request.accept(last.documents, True)
        return last


def resume_collecting() -> None:
    """Turn the garbage collector on if it is off, for all objects that come from now on."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@contextmanager
def open_session(
    ctx: click.Context, accept: Accept | None = None, *, check: bool | None = None
) -> Iterator[Session]:
    """Check the parameters of a command, and open a console and a workspace for them.

    accept : notified as `Request.accept`; returns options and the files that they name, as far as
        only the documents say which these are.
    check : whether the exit code says if something was found; None: as --check says.

    Errors: ParameterError or InputError, before NumPy and LLVM are loaded.
    """
    given = dict(ctx.params) if check is None else {**ctx.params, "check": check}
    console = Console(**given)
    with console:
        explicit, documents, files = read_parameters(ctx, console)
        outputs = list_outputs(ctx)

        from lshdup.base.memory import Arrays
        from lshdup.base.run import Run, count_processors
        from lshdup.kernels.jit import expect, notify_of_waits
        from lshdup.store.store import Store, nearest_store, refuse_link
        from lshdup.workspace.workspace import Workspace

        resume_collecting()
        above, store = None, given["store"]
        if store is None:
            above = nearest_store()
            store = Path(params.DEFAULT_STORE) if documents else above
            if not given.get("no_store"):
                refuse_link(store)
        jobs = given["jobs"] or count_processors()
        notify_of_waits(console.say)
        if documents:
            from lshdup.pipeline import KERNELS

            expect(KERNELS, jobs)
        run = Run(
            Arrays(given.get("memory")),
            jobs,
            console.progress,
            console.say,
            console.warn,
            console.detail,
            console.report_skipped,
        )
        kept = None
        if not given.get("no_store"):
            secret, wait = explicit.get("secret", b""), given.get("wait") or 0.0
            kept = Store(store, secret, wait=wait, most=given["memo"])
        workspace = Workspace(run, kept, above=above)
        if above not in (None, Path(params.DEFAULT_STORE)) and not documents and workspace.store:
            console.say(f"the store is {above}")
        request = Request(
            documents,
            files,
            explicit,
            given.get("check_content", False),
            tuple(given.get("templates", ())),
            accept=partial(_accept, outputs, accept),
            accept_source=partial(refuse_documents, outputs),
        )
        with workspace.saving:
            yield Session(console, run, workspace, request, outputs)
        if documents and kept is not None:
            with suppress(OSError):
                size = kept.size()
                if size > _LARGE_STORE:
                    hint = "deleted, it is made again by the next run with DOCS"
                    console.say(f"the store {kept.folder} has {size >> 20:,} MB; {hint}")


def _accept(outputs: Outputs, accept: Accept | None, documents: "DocumentList", read: bool) -> None:
    """Raise before the work if an output is a document, or if a command refuses the documents."""
    for option, path in accept(documents, read) if accept is not None else ():
        add_output(outputs, option, path)
    refuse_documents(outputs, documents)


def read_parameters(
    ctx: click.Context, console: Console
) -> tuple[dict[str, Any], tuple[bytes, ...], params.DocumentParams]:
    """Return the parameters that were set explicitly, the named documents, and how to read them.

    A command without DOCS takes all parameters that were not set explicitly from the artifacts.
    """
    preset = ctx.default_map or {}
    explicit, given = dict[str, Any](), {**preset, **ctx.params}
    if preset:
        console.say(f"--noisy is {spell({name: given[name] for name in preset})}")
    names = {field.name for params_class in _PARAMS for field in fields(params_class)}
    names |= {"min_bytes", "max_bytes"}  # which --same bytes has another default of
    for name, value in given.items():
        if value is None or not is_set(ctx, name):
            continue
        if name == "no_normalize":
            explicit["normalize"] = not value
        elif name == "hash_key":
            explicit["secret"] = os.fsencode(value)
            explicit["key"] = params.key_name(explicit["secret"])
        elif name in names and not isinstance(value, tuple):
            explicit[name] = value
    for params_class in _PARAMS:
        merge_params(params_class, explicit)  # checks them
    if explicit.get("ignore_common") == 0:
        message = "--ignore-common 0 would remove every shingle"
        raise ParameterError(
            message,
            "give a share of the documents, above 0 and below 1, or a whole number of them; or "
            "leave it out",
        )
    documents = _named_documents(given)
    is_read = "files_from" not in given or b"-" in given.values()
    if not is_read and not documents and is_waiting_pipe(0):
        console.say(
            "standard input is not read; --files-from - reads names of documents from it, and DOCS "
            "- with --stdin the documents"
        )
    files = merge_params(params.DocumentParams, {**given, "stdin": given.get("stdin") or ""})
    if "format_seconds" in given:
        limits = params.FormatLimits(given["format_seconds"], given["format_memory"])
        files = replace(files, formats=limits)
    return explicit, documents, files


def _named_documents(given: dict[str, Any]) -> tuple[bytes, ...]:
    """Return DOCS and the names in --files-from. What `query` looks up is none of them."""
    source = given.get("files_from")
    documents: tuple[bytes, ...] = given["docs"] if "files_from" in given else ()
    _check_streams(given, documents)
    names = _read_list(source) if source is not None else []
    if source is not None and not documents and not names:
        message = f"--files-from {printable(source)} names no documents"
        raise InputError(message, "name DOCS, or leave --files-from out to continue from the store")
    return tuple(map(with_slashes, (*documents, *names)))


def _check_streams(given: dict[str, Any], documents: tuple[bytes, ...]) -> None:
    """Raise if standard input or --stdin cannot be what they are named as."""
    kind = given.get("stdin")
    if params.STDIN in documents:
        if not kind:
            message = "standard input is no document here"
            raise InputError(
                message,
                "say what records it holds, as --stdin jsonl, or ask with `lshdup query -`, or "
                "name the file ./- if that is meant",
            )
        if given.get("files_from") == params.STDIN:
            message = "standard input is named twice: as DOCS, and by --files-from"
            raise ParameterError(message, "name a file with the names of documents")
        if standard_input().isatty():
            message = "standard input is a terminal: nothing sends records to it"
            hint = f"for instance: zcat FILE.gz | lshdup pairs - --stdin {kind}"
            raise InputError(message, hint)
    elif kind:
        every = (*documents, *given.get("against", ()))
        if not any(Path(os.fsdecode(each)).is_fifo() for each in every):
            message = "--stdin has no effect: no DOCS is -, or a pipe"
            raise ParameterError(message, "leave it out")


def _read_list(source: bytes) -> list[bytes]:
    """Return the names in a list: one a line, or with NUL behind each, as no name holds one.

    source : a file, or - for standard input.
    """
    try:
        data = standard_input().read() if source == b"-" else Path(os.fsdecode(source)).read_bytes()
    except OSError as error:
        message = f"--files-from {printable(source)}: {error.strerror}"
        raise InputError(
            message, "name a file with the names of documents, or - for standard input"
        ) from None
    return [name for name in data.split(b"\0" if b"\0" in data else b"\n") if name]
