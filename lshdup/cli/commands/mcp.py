"""`lshdup mcp`: answers for agents, by the Model Context Protocol on standard input and output."""

import os
import signal
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from lshdup.base.atomic import remove_own_temporary_files, temporary_folder
from lshdup.base.wording import join_names, printable, quoted
from lshdup.cli.console import Console
from lshdup.cli.help import amend, define, refuse
from lshdup.cli.main import explain
from lshdup.cli.messages import describe_reasons
from lshdup.cli.options import index_options, memory_option, run_options
from lshdup.cli.session import Session, open_session
from lshdup.errors import InputError, ParameterError
from lshdup.version import __version__


@define(
    "mcp",
    short_help="read-only answers for agents (MCP)",
    epilog="""\b
Examples:
  lshdup mcp sample_corpus < /dev/null
  lshdup mcp sample_corpus/licences --tokens symbols < /dev/null
""",
)
@amend("files_from", "threshold", hidden=True)
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
    refuse(ctx, ("files_from", "threshold"), "with mcp")
    if not ctx.params["docs"]:
        message = "no documents were named"
        raise InputError(message, "name the folders to answer about: lshdup mcp FOLDER")
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


class _Ended(Exception):  # noqa: N818 (it is no error)
    """The client waits for an answer no longer."""


class _Console(Console):
    """A console whose warnings an agent hears too, as notes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.notes: list[str] = []

    def warn(self, text: str) -> None:
        super().warn(text)
        self.notes.append(printable(text))


def _ask(
    session: Session, options: dict[str, Any], name: str, arguments: object, ended: threading.Event
) -> tuple[str, dict[str, Any]]:
    """Return the answer of a tool as text and as an object.

    session, options : of the command. ended : set once nobody waits for the answer.

    Errors: LshdupError.
    """
    import msgspec

    from lshdup.cli.agents import TOOLS
    from lshdup.workspace.workspace import Workspace

    def progress(stage: str, done: int, total: int) -> None:
        if ended.is_set():
            raise _Ended
        console.progress(stage, done, total)

    if name not in TOOLS:
        message = f"there is no tool {quoted(name)}"
        raise ParameterError(message, f"the tools are {join_names(TOOLS)}")
    try:
        tool = msgspec.convert(arguments, TOOLS[name])
    except msgspec.ValidationError as error:
        message = f"{name}: {error}"
        raise ParameterError(message, "the schema of the tool says what it takes") from None
    with _Console(**options) as console:
        run = session.run.but(
            progress=progress, say=console.say, warn=console.warn, detail=console.detail,
            skipped=console.report_skipped,
        )  # fmt: skip
        workspace = Workspace(run, session.workspace.store)
        given = {**session.request.given, "threshold": getattr(tool, "threshold", 1.0)}
        request = replace(session.request, given=given)
        found = tool.answer(Session(console, run, workspace, request, []))
        if console.skipped_counts:
            console.notes.append(f"skipped: {describe_reasons(console.skipped_counts)}")
        return found.encode(type(tool), console.notes)


def _serve(session: Session, options: dict[str, Any]) -> None:
    """Answer until the input ends.

    options : of the console.

    Errors: InputError without the SDK.
    """
    try:
        import anyio
        import mcp_types as types
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
    except ModuleNotFoundError as error:
        message = f"the Python SDK of MCP is missing: there is no {error.name}"
        raise InputError(message, "pip install 'lshdup[mcp]'") from None

    from lshdup.cli.agents import TOOLS

    read_only = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    listed, alone = [], threading.Lock()
    for name, tool in TOOLS.items():
        description, taken, answer = tool.describe()
        listed.append(
            types.Tool(
                name=name,
                description=description,
                input_schema=taken,
                output_schema=answer,
                annotations=read_only,
            )
        )

    def work(name: str, arguments: object, ended: threading.Event) -> Any:
        found = None
        with alone:
            try:
                text, found = _ask(session, options, name, arguments, ended)
            except _Ended:
                text = "nobody waits for the answer"
            except Exception as error:
                error = explain(error)
                text = "\n".join(filter(None, (error.message, *error.names, error.hint)))
        content: list[Any] = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(
            content=content, structured_content=found, is_error=found is None
        )

    async def list_tools(_context: object, _params: object) -> Any:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_context: object, params: Any) -> Any:
        ended = threading.Event()
        asked = partial(work, params.name, params.arguments or {}, ended)
        try:
            return await anyio.to_thread.run_sync(asked, abandon_on_cancel=True)
        finally:
            ended.set()

    async def serve() -> None:
        async with stdio_server() as streams:
            await server.run(streams[0], streams[1], server.create_initialization_options())

    folders = join_names(map(os.fsdecode, session.request.documents))
    server = Server(
        "lshdup",
        version=__version__,
        instructions=f"Near-duplicates and shared passages among the documents of {folders}.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    try:
        anyio.run(serve)
    except* (BrokenPipeError, ConnectionResetError):  # The client has left.
        pass
    with alone:  # the end of an answer that nobody waits for
        pass
