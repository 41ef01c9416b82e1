"""`lshdup mcp`: answers for agents, by the Model Context Protocol on standard input and output."""

import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from lshdup.base.atomic import remove_own_temporary_files, temporary_folder
from lshdup.base.version import __version__
from lshdup.base.wording import join_names, printable
from lshdup.cli.help import amend, define, refuse
from lshdup.cli.main import explain
from lshdup.cli.options import (
    documents_options,
    memory_option,
    of_the_index,
    run_options,
    shingle_options,
)
from lshdup.cli.session import Session, open_session
from lshdup.errors import OK, InputError, LshdupError, ParameterError

#: Seconds in which a question that is cancelled at the end of the input ends.
_PATIENCE = 2.0


@define(
    "mcp",
    short_help="read-only answers for agents (MCP)",
    epilog="""\b
Examples:
  lshdup mcp sample_corpus < /dev/null
  lshdup mcp sample_corpus/licences --tokens symbols < /dev/null
""",
)
@amend("files_from", "stdin", hidden=True)
@of_the_index
@documents_options
@shingle_options
@memory_option
@run_options
def command(ctx: click.Context) -> int:
    """Answer the questions of an agent about the documents in DOCS, by the Model Context Protocol
    (needs lshdup[mcp]): near-duplicates, pairs, differences, passages.

    A client starts this command and speaks to it on standard input and output; it ends with the
    input. Nothing is read but what is below DOCS, and nothing is written there: without --store,
    what is known of documents is kept in a temporary folder until the end. Each answer is that of
    the documents as they are then.
    """
    refuse(ctx, ("files_from", "stdin"), "with mcp")
    if not ctx.params["docs"]:
        message = "no documents were named"
        raise InputError(message, "name the folders to answer about: lshdup mcp FOLDER")
    if sys.stdin is None or sys.stdout is None:
        message = "standard input or standard output is closed"
        raise InputError(message, "a client of MCP starts this command, and speaks to it there")
    with temporary_folder() as folder:
        if ctx.params["store"] is None:
            ctx.params["store"] = folder / "store"
        _refuse_below(ctx.params["docs"], ctx.params["store"], folder)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end)
        with open_session(ctx) as session:
            _serve(session)
    return OK


def _end(number: int, _frame: object) -> NoReturn:
    """End the process at once, as clients do, and leave nothing behind."""
    remove_own_temporary_files()
    os._exit(128 + number)


def _refuse_below(docs: tuple[bytes, ...], *folders: Path) -> None:
    """Raise ParameterError if something would be written below DOCS."""
    for name in map(os.path.realpath, docs):
        for folder in folders:
            if folder.resolve().is_relative_to(os.fsdecode(name)):
                message = f"{folder} would be written, which is below {printable(name)}"
                hint = "name another folder with --store DIR, or with TMPDIR"
                raise ParameterError(message, hint)


def _serve(session: Session) -> None:
    """Answer until the input ends. Raise InputError if the SDK is missing."""
    try:
        import anyio
        import mcp_types as types
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
    except ModuleNotFoundError as error:
        message = f"the Python SDK of MCP is missing: there is no {error.name}"
        raise InputError(message, "pip install 'lshdup[mcp]'") from None

    from lshdup.cli.listings.agents import LONGEST_ERROR, TOOLS, ask
    from lshdup.views.pair_view import shorten

    reads = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    listed, alone = [], threading.Lock()
    for name, tool in TOOLS.items():
        words, takes, gives = tool.describe()
        listed += [types.Tool(name=name, description=words, input_schema=takes,
                              output_schema=gives, annotations=reads)]  # fmt: skip

    def answer(name: str, arguments: object, cancelled: threading.Event) -> Any:
        def progress(*done: Any) -> None:
            if cancelled.is_set():
                message = "the client has cancelled the question"
                raise LshdupError(message)
            session.run.progress(*done)

        found = None
        with alone:
            try:
                text, found = ask(session, progress, name, arguments)
            except Exception as error:
                known = explain(error)
                text = "\n".join(filter(None, (known.message, *known.names, known.hint)))
                text = shorten(text, LONGEST_ERROR)
        content = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(
            content=content, structured_content=found, is_error=found is None
        )

    async def list_tools(*_: object) -> Any:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: object, params: Any) -> Any:
        cancelled = threading.Event()
        work = partial(answer, params.name, params.arguments or {}, cancelled)
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            cancelled.set()

    async def serve() -> None:
        async with stdio_server() as streams:
            await server.run(*streams, server.create_initialization_options())

    folders = join_names(map(printable, session.request.documents))
    server = Server(
        "lshdup",
        version=__version__,
        instructions=f"Near-duplicates and shared passages among the documents of {folders}.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    if sys.stdin.isatty():
        session.console.say("a client of MCP speaks to it on standard input; Ctrl-C ends it")
    try:
        anyio.run(serve)
    except* (BrokenPipeError, ConnectionResetError):  # The client has left.
        pass
    alone.acquire(timeout=_PATIENCE)  # A cancelled question still has files.
