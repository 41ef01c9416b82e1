"""Decorators that give a command its options: groups that several commands share."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lshdup import choices, params
from lshdup.base.system import LEAST_LIMIT
from lshdup.cli.columns import describe
from lshdup.cli.help import F, plain_option
from lshdup.cli.output.target import ANNOTATIONS, FORMATS
from lshdup.cli.types import Level, Lines, Listed, OutputPath, Pattern, Share, Size
from lshdup.params import BandParams, ClusterParams, PairParams, ShingleParams, SketchParams

_SHINGLE, _SKETCH, _BANDS = ShingleParams(), SketchParams(), BandParams()
_PAIRS, _CLUSTERS, _FORMATS = PairParams(), ClusterParams(), params.DEFAULT_FORMATS


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Return a decorator for an option that has a variable, LSHDUP_…; the help shows both."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    settings.setdefault("envvar", "LSHDUP_" + long[2:].replace("-", "_").upper())
    return plain_option(*names, show_envvar=True, **settings)


def _stack(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def hiding(*names: str) -> Callable[[F], F]:
    """Return a decorator that leaves options which the command refuses out of its help."""

    def decorate(function: F) -> F:
        for parameter in getattr(function, "__click_params__", ()):
            if parameter.name in names:
                parameter.hidden = True
        return function

    return decorate


#: Which texts of rows and files are compared.
text_source_options = _stack(
    option("--min-tokens", type=click.IntRange(0), default=_SHINGLE.min_tokens,
           help="Compare no documents of fewer tokens."),
    option("--max-bytes", type=Size(), default=f"{params.DEFAULT_MAX_BYTES >> 20}MB",
           metavar="BYTES",
           help="Leave out larger files, and report them."),
    option("--text-field", default="", metavar="NAME", show_default=params.DEFAULT_TEXT_FIELD,
           help="Field with the text of a row of JSON Lines, CSV or Parquet, in folders too (a.b: "
                "b in a; a,b: both)."),
    option("--id-field", default="", metavar="NAME", show_default="FILE:ROW",
           help="Field with the name of a row: a string or integer, each once."),
)  # fmt: skip

documents_options = _stack(
    click.argument("docs", nargs=-1, type=click.Path(readable=False, path_type=bytes),
                   metavar="[DOCS]..."),
    option("--files-from", type=click.Path(readable=False, allow_dash=True, path_type=bytes),
           metavar="FILE",
           help="Names of documents or folders, one a line; - is standard input."),
    plain_option("--files0-from", metavar="FILE",
                 type=click.Path(readable=False, allow_dash=True, path_type=bytes),
                 help="The same with NUL, as of `find -print0`."),
    option("--include", multiple=True, metavar="GLOB",
           help="Only files that match, by name, path or folder, as in .gitignore; repeatable."),
    option("--exclude", multiple=True, metavar="GLOB",
           help="None that match; repeatable."),
    option("--gitignore", is_flag=True, help="Use .gitignore files."),
    option("--max-depth", type=click.IntRange(1), metavar="N", show_default="any",
           help="1: only files directly in DOCS; 2: also one folder down."),
    option("--hidden", is_flag=True, help="Also names that begin with a dot."),
    option("-L", "--follow", is_flag=True, help="Follow symbolic links."),
    option("--format-seconds", type=float, default=_FORMATS.seconds, metavar="S",
           help="Most seconds to read an office document."),
    option("--format-memory", type=Size(), default="2GB", metavar="BYTES",
           help="Most memory for one: bytes, or like 500MB."),
    text_source_options,
    option("--archives", is_flag=True,
           help="Open archives in folders too: tar, zip, WARC, wiki dumps."),
    option("--split", type=Pattern(), default="", metavar="REGEX", show_default="no",
           help="A new document begins at each line that matches."),
    option("--check-content", is_flag=True,
           help="Read all documents again."),
)  # fmt: skip

check_files_option = plain_option(
    "--check-files", is_flag=True, help="Without DOCS: leave out deleted and changed ones."
)

#: How a document becomes a text, and a text becomes tokens.
text_options = _stack(
    option("--keep-case", is_flag=True, help="No case folding."),
    option("--no-normalize", is_flag=True, help="No Unicode normalization (NFKC)."),
    option("--encoding", default="", metavar="NAME",
           show_default="UTF-8, byte-order marks, else detected",
           help="Read every document as this."),
    option("--markup", type=click.Choice(choices.MARKUP), default=_SHINGLE.markup,
           metavar="HOW", help="Of HTML: auto, visible (rows too), or keep the tags."),
    option("--mail", is_flag=True, help="Text with mail headers is mail."),
    option("--mail-headers", is_flag=True, help="All headers of mails."),
    option("--mail-quotes", type=click.Choice(choices.MAIL_QUOTES), default=_SHINGLE.mail_quotes,
           metavar="keep|drop", help="Quoted lines."),
)  # fmt: skip

token_options = _stack(
    option("--tokens", type=click.Choice(choices.TOKENS), default=_SHINGLE.tokens,
           help="What a shingle is made of: words; symbols (words and every other visible mark, "
                "for program text); characters; terms (lower-case words of three letters or "
                "more, without 'the'); or lines of ids."),
    option("-k", "--shingle-size", "k", type=click.IntRange(1, params.MAX_K),
           show_default="3 words, 5 symbols, 9 characters, 1 term",
           help="Tokens in a shingle. More: stricter; fewer: short texts compare better."),
    option("--bag", is_flag=True, help="Count repeats: the j-th occurrence of a shingle is an "
                                       "element of its own."),
)  # fmt: skip

shingle_options = _stack(
    token_options,
    text_options,
    option("--hash", type=click.Choice(choices.HASHES), default=_SHINGLE.hash,
           help="Of shingles: 64 bits, or, of characters only, a 32-bit polynomial."),
    option("--template", "templates", multiple=True, type=click.Path(path_type=bytes),
           metavar="FILE",
           help="Remove the shingles of this text, or of those in this folder, from every "
                "document; repeatable."),
    option("--ignore-common", type=Share(or_number=True), metavar="X",
           help="Remove shingles that more than X documents have, or, below 1, more than this "
                "share of them (copies count once)."),
)  # fmt: skip

perms_option = option(
    "--perms",
    type=int,
    default=_SKETCH.perms,
    metavar="K",
    help="Rows of a signature. More: smaller error, longer time, larger index.",
)

sketch_options = _stack(
    option("--scheme", type=click.Choice(choices.STORED_SCHEMES), default=_SKETCH.scheme,
           help="How signatures are made: Fast Similarity Sketching, or K independent "
                "permutations."),
    perms_option,
    option("--seed", type=int, default=_SKETCH.seed,
           help="Makes all randomness."),
)  # fmt: skip

threshold_option = option(
    "-t",
    "--threshold",
    type=Share(),
    default=_BANDS.threshold,
    metavar="T",
    help="Similarity of near-duplicates: above 0, at most 1.",
)

shape_options = _stack(
    threshold_option,
    option("--recall", type=Share(), default=_BANDS.recall, metavar="P",
           help="Smallest chance to find a pair of exactly T. More: longer time."),
    option("--bands", type=click.IntRange(1),
           help="Override the number of bands. More: more recall, more candidates, larger index."),
    option("--rows", type=click.IntRange(1),
           help="Override the rows of a band. More: fewer candidates, less recall."),
)  # fmt: skip

band_options = _stack(
    shape_options,
    option("--buckets", type=click.IntRange(1),
           help="Fold the band keys into N buckets: more candidates."),
)  # fmt: skip

#: All parameters of a band table.
table_options = _stack(documents_options, shingle_options, sketch_options, band_options)

exact_option = option(
    "--exact",
    is_flag=True,
    help="Join all sets instead of looking candidates up: every pair, no misses.",
)


memory_option = option(
    "--memory",
    type=Size(least=LEAST_LIMIT),
    metavar="BYTES",
    show_default="a quarter of it",
    help="Bytes to plan for arrays, like 2GB.",
)


def check_option(what: str) -> Callable[[F], F]:
    """Return the decorator for --check. what : what must be there for exit code 1."""
    help_ = f"Exit with 1 if there are {what}, with 2 if nothing was compared."
    return option("--check", is_flag=True, help=help_)


max_bucket_option = option(
    "--max-bucket",
    type=click.IntRange(1),
    metavar="N",
    show_default="no limit",
    help="Look nothing up in buckets of more than N documents (copies count once).",
)

same_option = plain_option(
    "--same",
    type=click.Choice(choices.SAME),
    metavar="bytes|text",
    help="Only equal files, or equal sequences of words.",
)

measure_option = plain_option(
    "--measure",
    type=click.Choice(choices.MEASURES),
    default=_PAIRS.measure,
    metavar="NAME",
    help="jaccard, or containment: the share of the smaller one that is in the larger one.",
)


def against_option(what: str) -> Callable[[F], F]:
    """Return the decorator for --against. what : what the command does with OTHER."""
    other = "a folder, a file (repeatable), or the store of an earlier run."
    return option("--against", multiple=True, type=click.Path(path_type=bytes), metavar="OTHER",
                  help=f"{what}: {other}")  # fmt: skip


collapse_option = option(
    "--collapse-copies", is_flag=True, help="Each exact duplicate once, beside the first one."
)

pair_options = _stack(
    measure_option,
    exact_option,
    plain_option("--verify", type=click.Choice(choices.VERIFY), default=_PAIRS.verify,
                 metavar="exact|estimate",
                 help="What decides and is printed: of the sets, or as signatures estimate it."),
    max_bucket_option,
    collapse_option,
)  # fmt: skip


def _keep_options(*left_out: str) -> Callable[[F], F]:
    central = "" if "central" in left_out else "the most similar to all others; "
    return _stack(
        option("--keep", type=click.Choice([each for each in choices.KEEP if each not in left_out]),
               show_default="shortest-path; of records first",
               help="Which of a group to keep: the shortest path (no name of a copy, fewest "
                    "folders, then characters); the first as DOCS were named; "
                    f"{central}the longest or shortest; the newest or oldest; the first in byte "
                    "order."),
        option("--prefer", multiple=True, metavar="GLOB",
               help="Documents below this folder, or whose name or path matches, win before "
                    "--keep; repeatable, the first is strongest."),
    )  # fmt: skip


keep_options = _keep_options()

#: Those of commands that know no groups, whose most central document could be kept.
keep_one_by_one_options = _keep_options("central")

talk_options = _stack(
    option("-q", "--quiet", is_flag=True, help="Only errors and warnings."),
    option("--color/--no-color", default=None,
           help="Colour.  [default: on a terminal, unless NO_COLOR is set]"),
)  # fmt: skip

hash_key_option = option(
    "--hash-key", metavar="KEY", show_default="none",
    help="A secret against texts that are made to collide; best in the variable, as others see "
         "commands.",
)  # fmt: skip

verbose_option = option(
    "-v", "--verbose", count=True, type=Level(), show_default=False,
    help="Name what is skipped, and why; -vv also what patterns skip.",
)  # fmt: skip

store_option = option("--store", type=click.Path(readable=False, path_type=Path),
                      show_default=params.DEFAULT_STORE, metavar="DIR",
                      help="Folder of artifacts; without DOCS also one above.")  # fmt: skip

store_options = _stack(
    store_option,
    option("--wait", type=click.FloatRange(0), metavar="SECONDS", show_default="0",
           help="Wait so long for another run that writes to the store."),
    hash_key_option,
    option("-j", "--jobs", type=click.IntRange(1), show_default="all processors", help="Threads."),
    verbose_option,
    option("--progress/--no-progress", default=None,
           help="Show progress.  [default: on a terminal]"),
    talk_options,
)  # fmt: skip

run_options = _stack(
    store_options,
    option("--no-store", is_flag=True, help="Neither write nor use artifacts."),
)  # fmt: skip

spark_options = _stack(
    option("--master", metavar="URL", show_default="Spark's, else local[*]",
           help="local[N], spark://HOST:PORT, yarn, k8s://…"),
    option("--spark-conf", type=Lines(), multiple=True, metavar="K=V",
           help="A setting of Spark; repeatable; in the variable one a line."),
    hash_key_option,
    verbose_option,
    talk_options,
)  # fmt: skip


def _format_option(formats: tuple[str, ...]) -> Callable[[F], F]:
    return option("--format", "format_", type=click.Choice(formats),
                  show_default="of -o; else table on a terminal, tsv elsewhere",
                  help="How it is written; a csv name with =, +, - or @ is a formula to "
                       "spreadsheets.")  # fmt: skip


_layout_options = _stack(
    option("--header/--no-header", default=None,
           help="Names of the columns in the first line.  [default: in tables and csv]"),
    option("--max-rows", type=click.IntRange(0), metavar="N",
           show_default="ten screens",
           help="Most rows of a table; 0: all of them."),
    plain_option("-0", "--null", "nul", is_flag=True,
                 help="NUL after every field, for xargs -0."),
    plain_option("-o", "--output", type=OutputPath(str), metavar="FILE",
                 help="Write there instead. The ending .tsv, .csv, .json, .jsonl or .ndjson says "
                      "the format, unless --format is typed."),
)  # fmt: skip

output_options = _stack(_format_option(FORMATS), _layout_options)

#: Those of a command whose answer may be annotations of files.
pair_output_options = _stack(_format_option((*FORMATS, *ANNOTATIONS)), _layout_options)


def _check_plot(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Raise before any work starts if a figure cannot be made, or not be written there."""
    if path is not None and not ctx.resilient_parsing:
        from lshdup.evaluation.plots import check_path

        check_path(path)
    return path


plot_option = plain_option(
    "--plot",
    type=OutputPath(Path),
    metavar="FILE",
    callback=_check_plot,
    help="Draw it too: FILE.png, .svg or .pdf.",
)

schemes_option = plain_option(
    "--scheme",
    "schemes",
    type=Listed(str),
    default=_SKETCH.scheme,
    help=f"Schemes, separated by commas: {', '.join(choices.SCHEMES)}.",
)


def list_columns(*listings: str) -> Callable[[click.Command], click.Command]:
    """Return a decorator that lists the columns of listings at the end of a command's help."""

    def decorate(command: click.Command) -> click.Command:
        width = max(map(len, listings)) + 2
        lines = ["\b", "Columns (--header prints their names too):"]
        for each in listings:
            lines += textwrap.wrap(
                describe(each),
                76,
                initial_indent=f"  {each:{width}}",
                subsequent_indent=" " * (width + 2),
            )
        command.epilog = "\n".join(lines) + f"\n\n{command.epilog or ''}"
        return command

    return decorate
