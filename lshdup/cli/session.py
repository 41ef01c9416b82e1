"""One run of a command: its parameters, its console, its workspace, and the file that its listing goes to."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup import params
from lshdup.cli.console import Console
from lshdup.cli.options import _FORMATS, _NOT_ON_SPARK, _OF_DOCUMENTS
from lshdup.cli.output import Cell, Piece, Target, format_of
from lshdup.errors import InputError, ParameterError
from lshdup.params import (
    BandParams,
    DocumentParams,
    FilterParams,
    FormatLimits,
    ShingleParams,
    SketchParams,
)
from lshdup.utils.messages import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.documents.document_list import DocumentList
    from lshdup.workspace.request import Request
    from lshdup.workspace.workspace import Workspace


@dataclass(frozen=True)
class Session:
    """What a command works with."""

    console: Console
    workspace: "Workspace"
    request: "Request"


@contextmanager
def session(
    ctx: click.Context,
    options: dict[str, Any],
    accept: Callable[["DocumentList", bool], None] = lambda _documents, _read: None,
) -> Iterator[Session]:
    """From parsed options to parameters, console and workspace. accept : as in `Request`.

    Only what was typed, or set in the environment, is *given*: a step that continues takes the rest from the artifacts.
    """
    console = Console(
        quiet=options["quiet"],
        verbose=options["verbose"],
        progress=options["progress"],
        color=options["color"],
    )
    with console:
        # Parameters first: an error in them is said before NumPy and Numba are loaded.
        given, documents, files = asked(ctx, options, console)

        from lshdup.kernels.jit import on_first_compilation
        from lshdup.utils.parallel import count_processors
        from lshdup.workspace.request import Request
        from lshdup.workspace.workspace import Workspace

        on_first_compilation(
            lambda: console.say(
                "compiling kernels that no run on this machine has needed before; they are kept (some seconds)"
            )
        )
        store = None if options.get("no_store") else options["store"]
        workspace = Workspace(
            store,
            console.say,
            console.skipped,
            console.progress,
            given.get("secret", b""),
            warn=console.warn,
        )
        jobs = options["jobs"] or count_processors()
        templates = tuple(options.get("templates", ()))
        command = (ctx.info_name or "") if "docs" in options else "index"
        request = Request(
            documents,
            files,
            given,
            jobs,
            options.get("check_content", False),
            templates,
            command,
            accept,
        )
        yield Session(console, workspace, request)


def asked(
    ctx: click.Context, options: dict[str, Any], console: Console
) -> tuple[dict[str, Any], tuple[bytes, ...], DocumentParams]:
    """Parameters that were given, and checked; the documents that were named; and which files below them are meant."""
    given = _given(ctx, options)
    for kind in (ShingleParams, FilterParams, SketchParams, BandParams):
        known = {field.name for field in fields(kind)}
        kind(**{name: value for name, value in given.items() if name in known})
    if given.get("ignore_common") == 0:
        message = "--ignore-common 0 would remove every shingle"
        raise ParameterError(
            message,
            "give a share of the documents, above 0 and below 1, or a whole number of them; or leave it out",
        )
    documents = _documents(options)
    if not documents and "docs" in options:
        refuse(ctx, _OF_DOCUMENTS, "without DOCS")
        if _is_waiting_pipe():
            console.say(
                "standard input is not read; --files-from - reads names of documents from it"
            )
    if options.get("tokens") == "ids":
        refuse(ctx, ("text_field", "id_field"), "with --tokens ids")
    files = DocumentParams(
        follow=options.get("follow", False),
        hidden=options.get("hidden", False),
        include=tuple(options.get("include", ())),
        exclude=tuple(options.get("exclude", ())),
        max_bytes=options.get("max_bytes", params.DEFAULT_MAX_BYTES),
        text_field=options.get("text_field", ""),
        id_field=options.get("id_field", ""),
        formats=FormatLimits(
            options.get("format_seconds", _FORMATS.seconds),
            options.get("format_memory", _FORMATS.memory),
        ),
    )
    return given, documents, files


def _is_waiting_pipe() -> bool:
    """Whether standard input is a pipe that somebody writes to, or has written to."""
    import select
    import stat

    try:
        if not stat.S_ISFIFO(os.fstat(0).st_mode):
            return False
        poll = select.poll()
        poll.register(0, select.POLLIN)
        events = dict(poll.poll(0)).get(0, 0)
    except (OSError, ValueError):
        return False
    return bool(events & select.POLLIN) or not events


def refuse(ctx: click.Context, names: Iterable[str], where: str) -> None:
    """Raise if an option was typed that this run would ignore."""
    for name in names:
        if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            option = next(each for each in ctx.command.params if each.name == name)
            message = f"{max(option.opts, key=len)} has no meaning {where}"
            raise ParameterError(message, "leave it out")


def on_spark(ctx: click.Context, options: dict[str, Any]) -> bool:
    """Whether Spark does the work. Raises if an option was typed that has no meaning there, or only there."""
    if options["engine"] == "spark":
        refuse(ctx, (name for name in _NOT_ON_SPARK if name in options), "with --engine spark")
        return True
    refuse(ctx, ("master", "spark_conf"), "without --engine spark")
    return False


def refuse_with_exact(ctx: click.Context) -> None:
    """Raise if an option was typed that the exact join would ignore."""
    names = (
        "scheme",
        "perms",
        "seed",
        "recall",
        "bands",
        "rows",
        "buckets",
        "verify",
        "max_bucket",
    )
    refuse(ctx, names, "with --exact")


def warn_of_changes(
    session: Session, documents: "DocumentList", answer: "NDArray[np.int64]"
) -> None:
    """Say so if an answer that comes from the store alone names documents that are not what they were."""
    if session.request.documents:
        return
    changed = len(documents.changed(answer))
    if changed:
        session.console.warn(
            f"{counted(changed, 'document')} of this answer changed or vanished since the last run; name DOCS to look again"
        )


def write(
    console: Console, target: Target, columns: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> None:
    """Print a listing; say so if names make its lines ambiguous."""
    if not target.write(columns, rows):
        _warn_of_ambiguity(console)


def write_pieces(
    console: Console, target: Target, columns: Sequence[str], pieces: Iterable[Piece]
) -> None:
    """The same, many rows at a time."""
    if not target.write_pieces(columns, pieces):
        _warn_of_ambiguity(console)


def _warn_of_ambiguity(console: Console) -> None:
    console.warn("some names hold tabs or newlines: lines are ambiguous; use -0, or --format jsonl")


def target(options: dict[str, Any]) -> Target:
    """Where a listing command prints."""
    path = None if options["output"] in (None, "-") else Path(options["output"])
    return Target(_format(options, path), options["nul"], path, options["color"], options["header"])


def _format(options: dict[str, Any], path: Path | None) -> str:
    """What was typed; else what the file is called; else what the environment says."""
    typed: str = options["format_"] or ""
    source = click.get_current_context().get_parameter_source("format_")
    if path is None or (typed and source == click.core.ParameterSource.COMMANDLINE):
        return typed
    by_name = format_of(path)
    if options["nul"] and by_name not in ("", "tsv"):
        message = f"-0 and -o {path} exclude each other, as the file is to be {by_name}"
        raise ParameterError(message, "leave -0 out, or say --format tsv")
    return by_name or typed


def _given(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    names = {
        field.name
        for kind in (ShingleParams, FilterParams, SketchParams, BandParams)
        for field in fields(kind)
    }
    default = click.core.ParameterSource.DEFAULT
    for name, value in options.items():
        if value is None or ctx.get_parameter_source(name) == default:
            continue
        if name == "no_normalize":
            given["normalize"] = not value
        elif name == "hash_key":
            if not value:
                message = "--hash-key is empty"
                raise ParameterError(
                    message, "give some random characters, sixteen or more, or leave it out"
                )
            given["secret"] = os.fsencode(value)
            given["key"] = params.key_name(given["secret"])
        elif name in names and not isinstance(value, tuple):
            given[name] = value
    return given


def _documents(options: dict[str, Any]) -> tuple[bytes, ...]:
    documents = tuple(options.get("docs", ()))
    if b"-" in documents:
        message = "standard input is no document here"
        raise InputError(
            message, "ask with `lshdup query -`, or name the file ./- if that is meant"
        )
    source = options.get("files_from")
    if source is None:
        return documents
    try:
        data = sys.stdin.buffer.read() if source == b"-" else Path(os.fsdecode(source)).read_bytes()
    except OSError as error:
        message = f"--files-from {os.fsdecode(source)}: {error.strerror}"
        raise InputError(
            message, "name a file with one document a line, or - for standard input"
        ) from None
    separator = b"\0" if options.get("nul") else b"\n"
    listed = tuple(name for name in data.split(separator) if name)
    if not documents and not listed:
        message = f"--files-from {os.fsdecode(source)} names no documents"
        raise InputError(message, "name DOCS, or leave --files-from out to continue from the store")
    return documents + listed
