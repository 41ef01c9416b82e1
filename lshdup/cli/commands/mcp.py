"""`lshdup mcp`: answers for agents, by the Model Context Protocol on standard input and output."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lshdup.base.atomic import remove_own_temporary_files, temporary_folder
from lshdup.base.wording import join_names, printable
from lshdup.cli.console import Console
from lshdup.cli.help import define, refuse
from lshdup.cli.options import index_options, memory_option, run_options
from lshdup.cli.session import Session, open_session
from lshdup.errors import InputError, LshdupError, ParameterError
from lshdup.version import __version__

if TYPE_CHECKING:
    from lshdup.cli.agents import Tool


@define(
    "mcp",
    short_help="read-only answers for agents (MCP)",
    epilog="""\b
Examples:
  lshdup mcp sample_corpus < /dev/null
  lshdup mcp sample_corpus/licences --tokens symbols < /dev/null
""",
)
@index_options
@memory_option
@run_options
def command(ctx: click.Context, /, **_: object) -> int:
    """Answer the questions of an agent about the documents in DOCS, by the Model Context Protocol
    (needs lshdup[mcp]): near-duplicates, pairs, differences, passages.

    A client starts this command and speaks to it on standard input and output; it ends with the
    input. Nothing is read but what is below DOCS, and nothing is written there: without --store,
    what is known of documents is kept in a temporary folder until the end. Each answer is that of
    the documents as they are then.
    """
    refuse(ctx, ("files_from",), "with mcp, which names DOCS")
    if not ctx.params["docs"]:
        raise InputError("no folder was named", "name the folders to answer about: lshdup mcp DOCS")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    with temporary_folder() as folder:
        if ctx.params["store"] is None:
            ctx.params["store"] = folder / "store"
        _refuse_below(ctx.params["docs"], ctx.params["store"], folder)
        with open_session(ctx) as session:
            _serve(session, ctx.params)
    return 0


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


class _Ended(Exception):
    """The client waits for an answer no longer."""


class _Console(Console):
    """A console whose warnings an agent hears too, as notes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.notes: list[str] = []

    def warn(self, text: str) -> None:
        super().warn(text)
        self.notes.append(printable(text))


def _serve(session: Session, options: dict[str, Any]) -> None:
    """Answer until the input ends. options : of the console.

    Errors: InputError without the SDK.
    """
    try:
        import anyio
        import mcp_types as types
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
    except ModuleNotFoundError as error:
        message = f"the Python SDK of MCP is missing ({error.name})"
        raise InputError(message, "pip install 'lshdup[mcp]'") from None

    from lshdup.cli.agents import TOOLS, input_schema, output_schema

    folders = join_names(map(os.fsdecode, session.request.documents))
    read_only = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    listed = [
        types.Tool(
            name=name,
            description=tool.__doc__,
            input_schema=input_schema(tool),
            output_schema=output_schema(tool),
            annotations=read_only,
        )
        for name, tool in TOOLS.items()
    ]
    one_at_a_time = threading.Lock()

    def answer(name: str, arguments: dict[str, Any], ended: threading.Event) -> Any:
        with one_at_a_time:
            try:
                text, found = _answer(session, options, name, arguments, ended)
            except LshdupError as error:
                text, found = "\n".join(filter(None, (error.message, *error.names, error.hint))), None
        content = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(
            content=content, structured_content=found, is_error=found is None
        )

    async def list_tools(_context: object, _params: object) -> Any:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_context: object, params: Any) -> Any:
        ended = threading.Event()
        work = partial(answer, params.name, params.arguments or {}, ended)
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            ended.set()

    async def serve() -> None:
        async with stdio_server() as streams:
            await server.run(*streams, server.create_initialization_options())

    server = Server(
        "lshdup",
        version=__version__,
        instructions=f"Finds near-duplicate documents, and what texts have in common, in {folders}.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    try:
        anyio.run(serve)
    except* (BrokenPipeError, ConnectionResetError):  # The client has left.
        pass
    with one_at_a_time:
        pass
