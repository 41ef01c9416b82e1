"""The program: Click's group of commands, and the one place where exceptions become exit codes.

Every command is a module of commands/. Heavy imports happen inside the functions of commands.
"""

import contextlib
import errno
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from lshdup.base.atomic import describe_kept, remove_own_temporary_files
from lshdup.base.system import address_space
from lshdup.base.version import __version__
from lshdup.base.wording import printable
from lshdup.cli.commands import COMMANDS
from lshdup.cli.console import Console, close_stdout
from lshdup.errors import INTERRUPTED, OK, TROUBLE, LshdupError


def load_command(name: str) -> click.Command:
    """Return a command, whose module is imported when it is used."""
    module, _, attribute = COMMANDS[name].partition(":")
    loaded = importlib.import_module(f"lshdup.cli.commands.{module}")
    command: click.Command = getattr(loaded, attribute or "command")
    return command


class _Group(click.Group):
    """The commands in the order of `COMMANDS`, not of the alphabet."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader that leaves is no error (Click would exit with 1)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            close_stdout()
            return OK

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        if args[:1] == ["help"]:
            args = ["--help", *args[1:]]
        if args[1:] and args[0] in ("-h", "--help"):
            args = [args[1], args[0]]  # as git does
        try:
            if words[:2] == ["help", "schema"] and not ctx.resilient_parsing:
                from lshdup.cli.schemas import print_schema

                print_schema(words[2:])
                ctx.exit(OK)
            return super().parse_args(ctx, args)
        except BrokenPipeError:  # of --help and --version
            close_stdout()
            ctx.exit(OK)
        except click.NoSuchOption as error:
            if error.possibilities:  # --version and --help are the only ones here
                raise
            from lshdup.cli.suggestions import misplaced_option

            raise misplaced_option(words) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from lshdup.cli.suggestions import unknown_command

            raise unknown_command(args)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in COMMANDS else None


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done; 1 something was found (only with --check); 2 usage, error, input "
    "that could not be read, or with --check nothing was compared; 130 interrupted. `lshdup help "
    "schema` lists the JSON Schemas of what is printed.",
)
@click.version_option(
    __version__, "-V", "--version", prog_name="lshdup", message="%(prog)s %(version)s"
)
def lshdup() -> None:
    """Find near-duplicate documents in folders.

    documents -> shingle sets -> signatures -> band table -> candidate pairs -> verified pairs ->
    clusters

    \b
    lshdup pairs docs --threshold 0.9         all near-duplicate pairs below docs
    lshdup clusters docs                      groups, and which of each to keep
    lshdup index docs && lshdup query NAME    the near-duplicates of one document
    lshdup show A B                           why two documents match, and where they differ

    Each step is a command and leaves an artifact in the store (.lshdup); a step that is given
    documents runs the steps before it, a step that is given none continues from the last run.
    Nothing ever changes a document.
    """  # noqa: D301


# NumPy's linear algebra, which is not used, would start a thread for each processor on import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    try:
        words = sys.argv[1:] if arguments is None else arguments
        code = lshdup.main(words, prog_name="lshdup", standalone_mode=False, obj=words) or OK
    except (KeyboardInterrupt, click.exceptions.Abort):
        sys.stderr.write(_farewell())
        code = INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        _show(error.format_message())
        code = error.exit_code
    except click.ClickException as error:
        from lshdup.cli.suggestions import translate_error

        Console().error(translate_error(error))
        code = error.exit_code
    except Exception as error:
        Console().error(explain(error))
        code = TROUBLE
    sys.exit(code)


def explain(error: Exception) -> LshdupError:
    """Return what a user is told about an error; the traceback of a defect is printed before."""
    if isinstance(error, LshdupError):
        return error
    if (limit := address_space()) and _may_lack_memory(error):
        message = f"not enough memory: this process may take {limit >> 20:,} MB of addresses"
        return LshdupError(message, "raise the limit, as `ulimit -v` shows it")
    if isinstance(error, MemoryError):
        hint = "use fewer --perms, or fewer documents at a time"
        return LshdupError(f"not enough memory: {error}", hint)
    # Python says in words alone that a thread cannot be started.
    if isinstance(error, BlockingIOError) or "can't start new thread" in error.args:
        hint = "raise the limit, as `ulimit -u` shows it, or end some; --jobs 1 needs the fewest"
        return LshdupError("no further thread or process can be started here", hint)
    if isinstance(error, OSError):  # that no stage handles: a full disk under stdout, for instance
        if isinstance(error, FileNotFoundError) and _is_folder_gone():
            return LshdupError("the current folder is gone", "change to a folder that is there")
        where = f": {error.filename}" if error.filename else ""
        return LshdupError(f"{error.strerror or error}{where}")
    if isinstance(error, ModuleNotFoundError) and error.name == "numba":
        return LshdupError(str(error), "pip install 'lshdup[kernels]'")
    if isinstance(error, ModuleNotFoundError) and error.name == "llvmlite":
        return LshdupError("llvmlite, which compiles kernels, is missing", "pip install llvmlite")
    if type(error) is ImportError and not (error.name or "").startswith("lshdup"):
        package = (error.name or "a package").partition(".")[0]
        return LshdupError(f"{package} is installed and does not load: {error}", "install it again")
    import traceback  # Imported here to keep the start of every command fast.

    _show(traceback.format_exc())
    return LshdupError("this is a defect of lshdup", "please report the lines above")


def _is_folder_gone() -> bool:
    try:
        return not Path.cwd()
    except FileNotFoundError:
        return True


def _may_lack_memory(error: Exception) -> bool:
    """Return whether an error may be one of memory: libraries and threads take much of it."""
    is_missing = isinstance(error, ModuleNotFoundError)
    is_thread = isinstance(error, BlockingIOError) or "can't start new thread" in error.args
    is_library = isinstance(error, ImportError) or (isinstance(error, OSError) and not error.errno)
    is_full = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or is_thread or is_full or (is_library and not is_missing)


def _show(lines: str) -> None:
    for line in lines.splitlines():
        sys.stderr.write(f"{printable(line.expandtabs())}\n")


def program() -> NoReturn:
    """Run the command line and end the process at once. `lshdup.__main__` handled Ctrl-C so far.

    Python's own clean-up of all objects would take as long as a query does.
    """
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, _end_interrupted)
        main()
    except SystemExit as done:
        # All is printed: an interrupt must not change the exit code any more.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os._exit(done.code if isinstance(done.code, int) else OK)
    os._exit(OK)


def _end_interrupted(number: int, frame: object) -> NoReturn:
    """End the process after Ctrl-C, without an exception.

    An exception could be lost in a destructor, be replaced by another, or wait for threads.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    remove_own_temporary_files()
    with contextlib.suppress(OSError):
        # A new line behind ^C or a progress bar. sys.stderr may hold half a line.
        os.write(2, (b"\n" if os.isatty(2) else b"") + _farewell().encode())
    os._exit(INTERRUPTED)


def _farewell() -> str:
    return f"lshdup: interrupted; {describe_kept()}\n"
