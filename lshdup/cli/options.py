"""Options shared by commands, and how they become a request, a workspace and a target."""

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup import params
from lshdup.cli.columns import described
from lshdup.cli.console import Console, counted
from lshdup.cli.help import Command as Command
from lshdup.cli.help import F
from lshdup.cli.help import plain_option as plain_option
from lshdup.cli.output import FORMATS, Cell, Piece, Target, format_of
from lshdup.cli.types import Lines, Size
from lshdup.cli.types import Listed as Listed
from lshdup.cli.types import Share as Share
from lshdup.errors import InputError, ParameterError
from lshdup.params import BandParams, ClusterParams, CommonParams, DocumentParams, FormatLimits, PairParams, ShingleParams, SketchParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.documents.document_list import DocumentList
    from lshdup.workspace.request import Request
    from lshdup.workspace.workspace import Workspace

_SHINGLE, _SKETCH, _BANDS = ShingleParams(), SketchParams(), BandParams()
_PAIRS, _CLUSTERS, _FORMATS = PairParams(), ClusterParams(), params.DEFAULT_FORMATS


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """An option with its environment variable LSHDUP_…, both shown in the help."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    settings.setdefault("envvar", "LSHDUP_" + long[2:].replace("-", "_").upper())
    return plain_option(*names, show_envvar=True, **settings)


def _stack(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def stored_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """For a shell that completes a word: names of documents of the store."""
    from lshdup.cli.commands.completion import documents

    return list(documents(ctx, param, incomplete))


documents_options = _stack(
    click.argument("docs", nargs=-1, type=click.Path(readable=False, path_type=bytes), metavar="[DOCS]..."),
    option("--files-from", type=click.Path(readable=False, allow_dash=True, path_type=bytes), metavar="FILE",
           help="Read names of documents or folders from FILE, one a line; - is standard input."),
    option("--include", multiple=True, metavar="GLOB",
           help="Only files whose name or path matches, and all below a folder of that name or path; repeatable."),
    option("--exclude", multiple=True, metavar="GLOB",
           help="Not files whose name or path matches, nor what is below folders that do; repeatable."),
    option("--hidden", is_flag=True, help="Also files and folders whose name begins with a dot."),
    option("--follow", is_flag=True, help="Follow symbolic links."),
    option("--format-seconds", type=float, default=_FORMATS.seconds, show_default=True, metavar="S",
           help="Leave out an office document that takes longer to read, and report it."),
    option("--format-memory", type=Size(), default="2GB", show_default=True, metavar="BYTES",
           help="The same for one that takes more memory: bytes, or like 500MB."),
    option("--max-bytes", type=Size(), default=f"{params.DEFAULT_MAX_BYTES >> 20}MB", show_default=True, metavar="BYTES",
           help="Leave out larger files, and report them."),
    option("--text-field", default="", metavar="NAME", show_default=params.DEFAULT_TEXT_FIELD,
           help="Field of JSON Lines and Parquet that holds the text of a row (a.b: b in a). With it, such files in folders are taken row "
                "by row too, as those that are named always are."),
    option("--id-field", default="", metavar="NAME", show_default="a row is called FILE:ROW",
           help="Field that holds the name of a row: a string or an integer, each once."),
    option("--check-content", is_flag=True,
           help="Read every document again, even if its name, size and time are those of the last run."),
)  # fmt: skip

shingle_options = _stack(
    option("--tokens", type=click.Choice(params.TOKENS), default=_SHINGLE.tokens, show_default=True,
           help="What a shingle is made of: words, characters, terms (lower-case words of three letters or more, without 'the'), or lines "
                "of integer ids."),
    option("-k", "--shingle-size", "k", type=click.IntRange(1, 1000), show_default="3 words, 9 characters, 1 term",
           help="Tokens in a shingle. More: stricter; fewer: short texts compare better."),
    option("--bag", is_flag=True, help="Count repeats: the j-th occurrence of a shingle is an element of its own."),
    option("--keep-case", is_flag=True, help="No case folding."),
    option("--no-normalize", is_flag=True, help="No Unicode normalization (NFKC)."),
    option("--encoding", default="", metavar="NAME", show_default="UTF-8, byte-order marks, else detected",
           help="Read every document as this."),
    option("--hash", type=click.Choice(params.HASHES), default=_SHINGLE.hash, show_default=True,
           help="How shingles are told apart: by 64 bits, or, of characters only, by a 32-bit polynomial with factor 31."),
    option("--template", "templates", multiple=True, type=click.Path(path_type=bytes), metavar="FILE",
           help="Before comparing, remove the shingles of this text, or of those in this folder, from every document; repeatable."),
    option("--ignore-common", type=Share(or_number=True), metavar="X",
           help="Remove shingles that more than X documents have, or, below 1, more than this share of them (copies count once)."),
)  # fmt: skip

perms_option = option("--perms", type=int, default=_SKETCH.perms, show_default=True, metavar="K",
                      help="Rows of a signature. More: smaller error, longer time, larger index.")  # fmt: skip

sketch_options = _stack(
    option("--scheme", type=click.Choice(params.SCHEMES), default=_SKETCH.scheme, show_default=True,
           help="How signatures are made: Fast Similarity Sketching, K independent permutations, or biased linear maps."),
    perms_option,
    option("--seed", type=int, default=_SKETCH.seed, show_default=True, help="Makes all randomness."),
)  # fmt: skip

shape_options = _stack(
    option("-t", "--threshold", type=Share(), default=_BANDS.threshold, show_default=True, metavar="T",
           help="Similarity from which documents are near-duplicates: above 0, at most 1."),
    option("--recall", type=Share(), default=_BANDS.recall, show_default=True, metavar="P",
           help="Smallest chance to find a pair of exactly that similarity. More: more candidates, longer time."),
    option("--bands", type=click.IntRange(1), help="Override the number of bands. More: more recall, more candidates, larger index."),
    option("--rows", type=click.IntRange(1), help="Override the rows of a band. More: fewer candidates, less recall."),
)  # fmt: skip

band_options = _stack(
    shape_options,
    option("--buckets", type=click.IntRange(1), help="Fold the 64-bit band keys into N buckets, whose candidates are then more."),
)  # fmt: skip

#: What makes a band table of documents.
table_options = _stack(documents_options, shingle_options, sketch_options, band_options)

exact_option = option("--exact", is_flag=True, help="Join all sets instead of looking candidates up: every pair, no misses.")

max_bucket_option = option("--max-bucket", type=click.IntRange(1), metavar="N", show_default="no limit",
                           help="Look nothing up in buckets of more than N documents (copies count once), and say what that left out."
                           )  # fmt: skip

pair_options = _stack(
    exact_option,
    plain_option("--verify", type=click.Choice(params.VERIFY), default=_PAIRS.verify, show_default=True,
                 help="The similarity that decides and is printed: of the shingle sets, or as the signatures estimate it."),
    max_bucket_option,
    option("--collapse-copies", is_flag=True, help="Each document with an identical shingle set once, beside the first of its kind."),
)  # fmt: skip

keep_options = _stack(
    option("--keep", type=click.Choice(params.KEEP), default=_CLUSTERS.keep, show_default=True,
           help="Which of a group is kept: most or fewest different shingles; newest or oldest file; first as DOCS were named; "
                "first in byte order of the names, which also decides between equals."),
    option("--prefer", multiple=True, metavar="GLOB",
           help="Documents below this folder, or whose name or path matches, win before --keep; repeatable, the first is strongest."),
)  # fmt: skip

#: What has no meaning for a step that continues from the store.
_OF_DOCUMENTS = (
    "include", "exclude", "hidden", "follow", "max_bytes", "format_seconds", "format_memory", "text_field", "id_field", "check_content",
)  # fmt: skip

talk_options = _stack(
    option("-q", "--quiet", is_flag=True, help="Only errors and warnings on stderr."),
    option("--color/--no-color", default=None, help="Colour.  [default: on a terminal, unless NO_COLOR is set]"),
)  # fmt: skip

store_option = option("--store", type=click.Path(readable=False, path_type=Path), default=Path(params.DEFAULT_STORE), show_default=True,
                      metavar="DIR", help="Folder of the artifacts.")  # fmt: skip

store_options = _stack(
    store_option,
    option("--hash-key", metavar="KEY", show_default="none",
           help="A secret that changes the hash, so that nobody can prepare texts that collide; best given by LSHDUP_HASH_KEY, as commands "
                "can be seen by others. A store is used with the key it was made with."),
    option("-j", "--jobs", type=click.IntRange(1), show_default="all processors", help="Threads."),
    option("-v", "--verbose", is_flag=True, help="Name every file that is left out, and why."),
    option("--progress/--no-progress", default=None, help="Show progress.  [default: on a terminal]"),
    talk_options,
)  # fmt: skip

run_options = _stack(
    store_options,
    option("--no-store", is_flag=True, help="Write no artifacts and use none."),
)  # fmt: skip

engine_options = _stack(
    option("--engine", type=click.Choice(("local", "spark")), default="local", show_default=True,
           help="Here, or on Spark (needs lshdup[spark], Java 17)."),
    option("--master", metavar="URL", show_default="as Spark is set, else local[*]",
           help="For Spark: local[N], spark://HOST:PORT, yarn, k8s://…"),
    option("--spark-conf", type=Lines(), multiple=True, metavar="K=V", help="A setting of Spark; repeatable; in the variable one a line."),
)  # fmt: skip

#: What has no meaning on Spark: nothing is kept there, and it has its own threads.
_NOT_ON_SPARK = (
    "exact", "verify", "store", "no_store", "check_content", "jobs", "ignore_common", "templates", "against", "histogram", "step",
    "examples", "plot", "prefer", "write",
)  # fmt: skip

output_options = _stack(
    option("--format", "format_", type=click.Choice(FORMATS), show_default="by the ending of -o; else table on a terminal, tsv elsewhere",
           help="How to print. In csv, a spreadsheet takes a name that begins with =, +, - or @ for a formula: import it as text."),
    option("--header/--no-header", default=None, help="Names of the columns in the first line.  [default: in tables and csv]"),
    plain_option("-0", "--null", "nul", is_flag=True, help="NUL after every field, and between the names of --files-from; for xargs -0."),
    # As it was typed, because Spark takes URIs: a path would make one slash of two.
    plain_option("-o", "--output", type=click.Path(readable=False, path_type=str), metavar="FILE",
                 help="Write there instead of standard output (-). The format is that of the ending .tsv, .csv, .json, .jsonl or .ndjson, "
                      "unless --format is typed."),
)  # fmt: skip


plot_option = plain_option("--plot", type=click.Path(readable=False, path_type=Path), metavar="FILE",
                           help="Draw it too: FILE.png, .svg or .pdf (needs lshdup[plot]).")  # fmt: skip

schemes_option = plain_option("--scheme", "schemes", type=Listed(str), default="fast", show_default=True,
                              help="Schemes, separated by commas: fast, classic, linear.")  # fmt: skip


def columns_of(*listings: str) -> Callable[[click.Command], click.Command]:
    """Say at the end of a command's help which columns it prints; the listings are those of `lshdup schema`."""

    def decorate(command: click.Command) -> click.Command:
        width = max(map(len, listings)) + 2
        lines = ["\b", "Columns (--header prints their names too):"]
        for each in listings:
            lines += textwrap.wrap(described(each), 76, initial_indent=f"  {each:{width}}", subsequent_indent=" " * (width + 2))
        command.epilog = "\n".join(lines) + f"\n\n{command.epilog or ''}"
        return command

    return decorate


def check_plot(path: Path | None) -> None:
    """Before any work starts: that a figure can be made and written there."""
    if path is not None:
        from lshdup.evaluation.plots import check

        check(path)


@dataclass(frozen=True)
class Session:
    """What a command works with."""

    console: Console
    workspace: "Workspace"
    request: "Request"


@contextmanager
def session(
    ctx: click.Context, options: dict[str, Any], accept: Callable[["DocumentList", bool], None] = lambda _documents, _read: None
) -> Iterator[Session]:
    """From parsed options to parameters, console and workspace. accept : as in `Request`.

    Only what was typed, or set in the environment, is *given*: a step that continues takes the rest from the artifacts.
    """
    console = Console(quiet=options["quiet"], verbose=options["verbose"], progress=options["progress"], color=options["color"])
    with console:
        # Parameters first: an error in them is said before NumPy and Numba are loaded.
        given, documents, files = asked(ctx, options, console)

        from lshdup.kernels.jit import on_first_compilation
        from lshdup.utils.parallel import processors
        from lshdup.workspace.request import Request
        from lshdup.workspace.workspace import Workspace

        on_first_compilation(
            lambda: console.say("compiling kernels that no run on this machine has needed before; they are kept (some seconds)")
        )
        store = None if options.get("no_store") else options["store"]
        workspace = Workspace(store, console.say, console.left_out, console.progress, given.get("secret", b""), warn=console.warn)
        jobs = options["jobs"] or processors()
        templates = tuple(options.get("templates", ()))
        command = (ctx.info_name or "") if "docs" in options else "index"
        request = Request(documents, files, given, jobs, options.get("check_content", False), templates, command, accept)
        yield Session(console, workspace, request)


def asked(ctx: click.Context, options: dict[str, Any], console: Console) -> tuple[dict[str, Any], tuple[bytes, ...], DocumentParams]:
    """Parameters that were given, and checked; the documents that were named; and which files below them are meant."""
    given = _given(ctx, options)
    for kind in (ShingleParams, CommonParams, SketchParams, BandParams):
        known = {field.name for field in fields(kind)}
        kind(**{name: value for name, value in given.items() if name in known})
    if given.get("ignore_common") == 0:
        message = "--ignore-common 0 would remove every shingle"
        raise ParameterError(message, "give a share of the documents, above 0 and below 1, or a whole number of them; or leave it out")
    documents = _documents(options)
    if not documents and "docs" in options:
        refuse(ctx, _OF_DOCUMENTS, "without DOCS")
        if _is_waiting_pipe():
            console.say("standard input is not read; --files-from - reads names of documents from it")
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
        formats=FormatLimits(options.get("format_seconds", _FORMATS.seconds), options.get("format_memory", _FORMATS.memory)),
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
    names = ("scheme", "perms", "seed", "recall", "bands", "rows", "buckets", "verify", "max_bucket")
    refuse(ctx, names, "with --exact")


def warn_of_changes(session: Session, documents: "DocumentList", answer: "NDArray[np.int64]") -> None:
    """Say so if an answer that comes from the store alone names documents that are not what they were."""
    if session.request.documents:
        return
    changed = len(documents.changed(answer))
    if changed:
        session.console.warn(
            f"{counted(changed, 'document')} of this answer changed or vanished since the last run; name DOCS to look again"
        )


def write(console: Console, target: Target, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a listing; say so if names make its lines ambiguous."""
    if not target.write(columns, rows):
        _warn_of_ambiguity(console)


def write_pieces(console: Console, target: Target, columns: Sequence[str], pieces: Iterable[Piece]) -> None:
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
    names = {field.name for kind in (ShingleParams, CommonParams, SketchParams, BandParams) for field in fields(kind)}
    default = click.core.ParameterSource.DEFAULT
    for name, value in options.items():
        if value is None or ctx.get_parameter_source(name) == default:
            continue
        if name == "no_normalize":
            given["normalize"] = not value
        elif name == "hash_key":
            if not value:
                message = "--hash-key is empty"
                raise ParameterError(message, "give some random characters, sixteen or more, or leave it out")
            given["secret"] = os.fsencode(value)
            given["key"] = params.key_name(given["secret"])
        elif name in names and not isinstance(value, tuple):
            given[name] = value
    return given


def _documents(options: dict[str, Any]) -> tuple[bytes, ...]:
    documents = tuple(options.get("docs", ()))
    if b"-" in documents:
        message = "standard input is no document here"
        raise InputError(message, "ask with `lshdup query -`, or name the file ./- if that is meant")
    source = options.get("files_from")
    if source is None:
        return documents
    try:
        data = sys.stdin.buffer.read() if source == b"-" else Path(os.fsdecode(source)).read_bytes()
    except OSError as error:
        message = f"--files-from {os.fsdecode(source)}: {error.strerror}"
        raise InputError(message, "name a file with one document a line, or - for standard input") from None
    separator = b"\0" if options.get("nul") else b"\n"
    listed = tuple(name for name in data.split(separator) if name)
    if not documents and not listed:
        message = f"--files-from {os.fsdecode(source)} names no documents"
        raise InputError(message, "name DOCS, or leave --files-from out to continue from the store")
    return documents + listed
