"""Options that several commands share: their declarations, and the classes of their values."""

import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from lshdup.base import params
from lshdup.base.frozen import dataclass
from lshdup.base.system import LEAST_LIMIT
from lshdup.cli.columns import describe
from lshdup.cli.help import F, amend, option, plain_option, preset, setting, spell, stack
from lshdup.cli.output import ANNOTATIONS, FORMATS, OutputOptions, WriteOptions
from lshdup.cli.types import Level, Lines, Listed, OutputPath, Pattern, PlotPath, Share, Size

_SHINGLE, _SKETCH, _BANDS = params.ShingleParams(), params.SketchParams(), params.BandParams()
_PAIRS, _FORMATS = params.PairParams(), params.DEFAULT_FORMATS
_NOISY, _NOISY_PASSAGES = params.NOISY, params.NOISY_PASSAGES

_documents = partial(option, group="Documents")
_running = partial(option, group="Running")
_shingles = partial(option, group="Shingles")
_bands = partial(option, group="Signatures and bands")
_rare = partial(option, group="Rarely needed")
_output = partial(option, group="Output")

#: What chooses among DOCS, or reads DOCS: a command without DOCS continues from the store.
_of_docs = partial(_documents, requires=("DOCS",))

#: Of documents that are compared by their bytes alone, no text is read; ids have no characters.
_NO_TEXT = ("--same bytes",)
_NO_CHARACTERS = (*_NO_TEXT, "--tokens ids")

#: Which texts of rows and files are compared.
text_source_options = stack(
    _documents("--min-tokens", type=click.IntRange(0), default=_SHINGLE.min_tokens,
               excludes=_NO_TEXT,
               help="Compare no documents of fewer tokens."),
    _of_docs("--max-bytes", type=Size(), default=f"{params.DEFAULT_MAX_BYTES >> 20}MB",
             metavar="BYTES", help="Leave out larger files, and report them."),
    _of_docs("--text-field", default="", metavar="NAME", show_default=params.DEFAULT_TEXT_FIELD,
             excludes=("--tokens ids",), brief=True,
             help="Field with the text of a row of JSON Lines, CSV or Parquet, in folders too "
                  "(a.b: b in a; a,b: both)."),
    _of_docs("--id-field", default="", metavar="NAME", show_default="FILE:ROW",
             excludes=("--tokens ids",),
             help="Field with the name of a row: a string or integer, each once."),
)  # fmt: skip

documents_options = stack(
    click.argument("docs", nargs=-1, type=click.Path(readable=False, path_type=bytes),
                   metavar="[DOCS]..."),
    _documents("--files-from", type=click.Path(readable=False, allow_dash=True, path_type=bytes),
               metavar="FILE",
               help="Names of documents or folders, one a line or with NUL behind each, as of "
                    "`find -print0`; - is standard input."),
    plain_option("--stdin", type=click.Choice(params.STREAMS), excludes=("--tokens ids",),
             metavar="KIND", group="Documents", requires=("DOCS",),
             help="What is in DOCS - (standard input), and in pipes, perhaps compressed: "
                  f"{', '.join(params.STREAMS)}."),
    _of_docs("--include", multiple=True, metavar="GLOB",
             help="Only files that match, by name, path or folder, as in .gitignore; repeatable."),
    _of_docs("--exclude", multiple=True, metavar="GLOB", brief=True,
             help="None that match; repeatable."),
    _of_docs("--gitignore", is_flag=True, help="Use .gitignore files."),
    _of_docs("--hidden", is_flag=True, help="Also names that begin with a dot."),
    _of_docs("-L", "--follow", is_flag=True, help="Follow symbolic links."),
    setting("--format-seconds", type=float, default=_FORMATS.seconds, metavar="S",
            help="Most seconds to read an office document."),
    setting("--format-memory", type=Size(), default="2GB", metavar="BYTES",
            help="Most memory for one: bytes, or like 500MB."),
    text_source_options,
    _of_docs("--archives", is_flag=True, brief=True, excludes=("--tokens ids",),
             help="Open archives in folders too: tar, zip, WARC, wiki dumps."),
    _of_docs("--split", type=Pattern(), default="", metavar="HOW", show_default="no",
             excludes=("--tokens ids",),
             help="Documents in files: heading (Markdown, reStructuredText, HTML), page (PDF), "
                  "paragraph, or REGEX: from each line that matches."),
)  # fmt: skip

#: Of commands that take what is known of a document from the store.
check_content_option = setting("--check-content", is_flag=True, help="Read all documents again.")

#: How a document becomes a text, and a text becomes tokens.
text_options = stack(
    _shingles("--keep-case", is_flag=True, help="No case folding."),
    _shingles("--no-normalize", is_flag=True, help="No Unicode normalization (NFKC)."),
    _shingles("--join-hyphens", is_flag=True, show_default="where they end one line in 20",
             excludes=(*_NO_CHARACTERS, "--tokens terms"),
              help="Words broken by a hyphen at the end of a line are whole."),
    _shingles("--fold", type=click.Choice(params.FOLDS), default=_SHINGLE.fold,
              excludes=_NO_CHARACTERS,
              help="Drop the vowel signs of Arabic and Hebrew, or these and all accents."),
    _documents("--encoding", default="", metavar="NAME", excludes=_NO_CHARACTERS,
               show_default="UTF-8, byte-order marks, else detected",
               help="Read every document as this."),
    _documents("--markup", type=click.Choice(params.MARKUP), default=_SHINGLE.markup,
               excludes=_NO_CHARACTERS, metavar="HOW",
               help="Of HTML: auto, visible (rows too), or keep the tags."),
    _documents("--mail", is_flag=True, excludes=_NO_CHARACTERS,
               help="Text with mail headers is mail."),
    _documents("--mail-headers", is_flag=True, help="All headers of mails."),
    _documents("--mail-quotes", type=click.Choice(params.MAIL_QUOTES),
               default=_SHINGLE.mail_quotes, metavar="keep|drop", help="Quoted lines."),
)  # fmt: skip

noisy_option = preset(
    "--noisy", _NOISY, {"passages": _NOISY_PASSAGES, "query": {**_NOISY, **_NOISY_PASSAGES}},
    group="Shingles", excludes=("--same", "--tokens ids"),
    help=f"For texts with many wrong characters, as OCR leaves them: {spell(_NOISY)}; of passages "
         f"{spell(_NOISY_PASSAGES)}. What is typed beside it wins.",
)  # fmt: skip

token_options = stack(
    _shingles("--tokens", type=click.Choice(params.TOKENS), default=_SHINGLE.tokens, brief=True,
              excludes=_NO_TEXT,
              help="What a shingle is made of: words; symbols (words and every other visible "
                   "mark, for program text); characters; terms (lower-case words of three letters "
                   "or more, without 'the'); or lines of ids."),
    _shingles("-k", "--shingle-size", "k", type=click.IntRange(1, params.MAX_K), brief=True,
              excludes=_NO_TEXT,
              show_default="3 words, 5 symbols, 9 characters, 1 term",
              help="Tokens in a shingle. More: stricter; fewer: short texts compare better."),
    _shingles("--bag", is_flag=True,
              help="Count repeats: the j-th occurrence of a shingle is an element of its own."),
)  # fmt: skip

shingle_options = stack(
    token_options,
    text_options,
    _rare("--hash", type=click.Choice(params.HASHES), default=_SHINGLE.hash,
          help="Of shingles: 64 bits, or, of characters only, a 32-bit polynomial."),
    _shingles("--template", "templates", multiple=True, type=click.Path(path_type=bytes),
              metavar="FILE", excludes=_NO_TEXT,
              help="Remove the shingles of this text, or of those in this folder, from every "
                   "document; repeatable."),
    _shingles("--ignore-common", type=Share(or_number=True), metavar="X", excludes=_NO_TEXT,
              help="Remove shingles that more than X documents have, or, below 1, more than this "
                   "share of them (copies count once)."),
)  # fmt: skip

perms_option = _bands(
    "--perms", type=int, default=_SKETCH.perms, metavar="K", brief=True,
    help="Rows of a signature. More: smaller error, longer time, larger index.",
)  # fmt: skip

sketch_options = stack(
    _rare("--scheme", type=click.Choice(params.STORED_SCHEMES), default=_SKETCH.scheme,
          help="How signatures are made: Fast Similarity Sketching, or K independent "
               "permutations."),
    perms_option,
    _rare("--seed", type=int, default=_SKETCH.seed, help="Makes all randomness."),
)  # fmt: skip

threshold_option = option(
    "-t", "--threshold", type=Share(), default=_BANDS.threshold, metavar="T", brief=True,
    help="Similarity of near-duplicates: above 0, at most 1.",
)  # fmt: skip

shape_options = stack(
    threshold_option,
    _bands("--recall", type=Share(), default=_BANDS.recall, metavar="P",
           help="Smallest chance to find a pair of exactly T. More: longer time."),
    _bands("--bands", type=click.IntRange(1), brief=True,
           help="Override the number of bands. More: more recall, more candidates, larger index."),
    _bands("--rows", type=click.IntRange(1), brief=True,
           help="Override the rows of a band. More: fewer candidates, less recall."),
)  # fmt: skip

band_options = stack(
    shape_options,
    _rare("--buckets", type=click.IntRange(1),
          help="Fold the band keys into N buckets: more candidates."),
)  # fmt: skip

memory_option = _running(
    "--memory", type=Size(least=LEAST_LIMIT), metavar="BYTES", show_default="a quarter of it",
    excludes=("--exact",), help="Bytes to plan for arrays, like 2GB.",
)  # fmt: skip

#: What an index is made by.
index_options = stack(
    documents_options, check_content_option, noisy_option, shingle_options, sketch_options,
    band_options,
)  # fmt: skip

exact_option = option(
    "--exact", is_flag=True, group="Signatures and bands", excludes=("--same",),
    help="Join all sets instead of looking candidates up: every pair, no misses.",
)  # fmt: skip

max_bucket_option = _bands(
    "--max-bucket", type=click.IntRange(1), metavar="N", show_default="no limit",
    excludes=("--exact", "--measure containment", "--same"),
    help="Look nothing up in buckets of more than N documents (copies count once).",
)  # fmt: skip

same_option = plain_option(
    "--same", type=click.Choice(params.SAME), metavar="bytes|text",
    help="Only equal files, of DOCS of any kind and size; or equal sequences of words.",
)  # fmt: skip

#: Those of commands that read DOCS.
same_options = stack(
    same_option,
    plain_option(
        "--min-bytes", type=Size(), metavar="BYTES", show_default="1", requires=_NO_TEXT,
        help="With --same bytes, compare no smaller documents; 0: empty ones too.",
    ),
)  # fmt: skip

measure_option = plain_option(
    "--measure", type=click.Choice(params.MEASURES), default=_PAIRS.measure, metavar="NAME",
    excludes=("--same",), brief=True,
    help="jaccard, or containment: the share of the smaller one that is in the larger one.",
)  # fmt: skip

across_option = plain_option(
    "--across", type=params.AcrossParams.parse, metavar="folder[:DEPTH]|field:NAME|REGEX",
    excludes=("--against", "--histogram", "--keep central"),
    help="Compare no documents of one origin: of one folder, that is a DOC and the first DEPTH (1) "
         "folders in it; with one value of a field; or with one match of REGEX in their names (its "
         "first group).",
)  # fmt: skip

collapse_option = option(
    "--collapse-copies", is_flag=True, excludes=("--unmatched",), brief=True,
    help="Each exact duplicate once, beside the first one.",
)  # fmt: skip


def check_option(what: str) -> Callable[[F], F]:
    """Return the decorator for --check. what : what must be there for exit code 1."""
    help_ = f"Exit with 1 if there are {what}, with 2 if nothing was compared."
    return option("--check", is_flag=True, brief=True, help=help_)


def against_option(what: str) -> Callable[[F], F]:
    """Return the decorator for --against. what : what the command does with OTHER."""
    other = "a folder, a file (repeatable), or the store of an earlier run."
    return option("--against", multiple=True, type=click.Path(path_type=bytes), metavar="OTHER",
                  excludes=("--histogram", "--linkage single"), brief=True,
                  help=f"{what}: {other}")  # fmt: skip


#: What a passage is.
passage_options = stack(
    option("--least", type=click.IntRange(2), default=params.PassageParams.least, metavar="N",
           brief=True, help="Tokens of the shortest passage."),
    option("--gap", type=click.IntRange(0), default=params.PassageParams.gap, metavar="N",
           brief=True, help="Places may differ in up to N tokens in a row; 0: word for word."),
)  # fmt: skip

accepted_options = stack(
    _documents("--accepted", type=click.Path(readable=False, dir_okay=False, path_type=Path),
                 metavar="FILE", show_default=f"{params.ACCEPTED_FILE} beside DOCS",
                 help="Leave out the pairs that `lshdup accept` has written there."),
    _documents("--show-accepted", is_flag=True, excludes=("--accepted",),
                 help="Leave none out."),
)  # fmt: skip


#: What only the steps have as options: commands that ask take it from the index, or the variable.
_OF_STEPS = """
keep_case no_normalize mail_headers mail_quotes bag hash scheme perms seed
recall bands rows buckets wait
""".split()

#: Those of an index, for commands that ask: what defines it in detail is set by variables alone.
of_the_index = amend(*_OF_STEPS, variable="index", hidden=True)

#: Those of commands that find pairs by an index, or without one.
table_options = stack(
    of_the_index, index_options, accepted_options, exact_option, max_bucket_option
)


def _keep_options(*left_out: str) -> Callable[[F], F]:
    central = "" if "central" in left_out else "the most similar to all others; "
    return stack(
        option("--keep", type=click.Choice([each for each in params.KEEP if each not in left_out]),
               show_default="shortest-path; of records first", brief=True,
               help="Which of a group to keep: the shortest path (no name of a copy, fewest "
                    "folders, then characters); the first as DOCS were named; "
                    f"{central}the longest or shortest; the newest or oldest; the first in byte "
                    "order."),
        option("--prefer", multiple=True, metavar="GLOB", brief=True,
               help="Documents below this folder, or whose name or path matches, win before "
                    "--keep; repeatable, the first is strongest."),
    )  # fmt: skip


keep_options = _keep_options()

#: Of `clusters`: a field of rows decides before --keep.
keep_by_option = plain_option(
    "--keep-by", metavar="FIELD[:least]", excludes=("--keep central",),
    help="Of rows keep the one with the greatest value in this field, or the least: numbers, or "
         "dates and other text as text. --keep decides between equals.",
)  # fmt: skip

#: Those of commands that know no groups, whose most central document could be kept.
keep_one_by_one_options = _keep_options("central")

talk_options = stack(
    _running("-q", "--quiet", is_flag=True, help="Only errors and warnings."),
    setting("--color/--no-color", default=None,
            help="Colour.  [default: on a terminal, unless NO_COLOR is set]"),
)  # fmt: skip

hash_key_option = setting(
    "--hash-key", metavar="KEY", show_default="none",
    help="A secret against texts that are made to collide.",
)  # fmt: skip

verbose_option = _running(
    "-v", "--verbose", count=True, type=Level(), show_default=False, brief=True,
    help="Name what is skipped, and why; -vv also what patterns skip.",
)  # fmt: skip

store_options = stack(
    _running("--store", type=click.Path(readable=False, path_type=Path), metavar="DIR",
             show_default=params.DEFAULT_STORE, brief=True,
             help="Folder of artifacts; without DOCS also one above."),
    _running("--wait", type=click.FloatRange(0), metavar="SECONDS", show_default="0",
             excludes=("--no-store",),
             help="Wait so long for another run that writes to the store."),
    setting("--memo", type=Size(), default="4GB", metavar="BYTES",
            help="Most bytes of what a store keeps of other runs."),
    hash_key_option,
    _running("-j", "--jobs", type=click.IntRange(1), show_default="all processors",
             help="Threads."),
    verbose_option,
    setting("--progress/--no-progress", default=None,
            help="Show progress.  [default: on a terminal]"),
    talk_options,
)  # fmt: skip

run_options = stack(
    store_options,
    _running("--no-store", is_flag=True, help="Neither write nor use artifacts."),
)  # fmt: skip

spark_options = stack(
    option("--master", metavar="URL", show_default="Spark's, else local[*]", brief=True,
           help="local[N], spark://HOST:PORT, yarn, k8s://…"),
    option("--spark-conf", type=Lines(), multiple=True, metavar="K=V",
           help="A setting of Spark; repeatable; in the variable one a line."),
    hash_key_option,
    verbose_option,
    talk_options,
)  # fmt: skip


def _output_options(formats: tuple[str, ...]) -> Callable[[F], F]:
    return stack(
        _output("--format", "format_", type=click.Choice(formats), brief=True,
                show_default="of -o; else table on a terminal, tsv elsewhere",
                help="How it is written; a csv name with =, +, - or @ is a formula to "
                     "spreadsheets."),
        setting("--header/--no-header", default=None,
                help="Names of the columns in the first line.  [default: in tables and csv]"),
        setting("--max-rows", type=click.IntRange(0), metavar="N", show_default="ten screens",
                help="Most rows of a table; 0: all of them."),
        plain_option("-0", "--null", "nul", is_flag=True, group="Output",
                     help="NUL after every field, for xargs -0."),
        plain_option("-o", "--output", type=OutputPath(str), metavar="FILE", group="Output",
                     brief=True,
                     help="Write there instead. The ending .tsv, .csv, .json, .jsonl, .ndjson "
                          "or .parquet says the format, unless --format is typed."),
    )  # fmt: skip


output_options = _output_options(FORMATS)

#: Those of a command whose answer may be annotations of files.
pair_output_options = _output_options((*FORMATS, *ANNOTATIONS))

plot_option = plain_option(
    "--plot", type=PlotPath(), metavar="FILE", group="Output",
    requires=("--histogram",), excludes=("--found", "--same"),
    help="Draw it too: FILE.png, .svg or .pdf.",
)  # fmt: skip

schemes_option = plain_option(
    "--scheme", "schemes", type=Listed(str), default=_SKETCH.scheme, group="Signatures and bands",
    excludes=("--measure containment",),
    help=f"Schemes, separated by commas: {', '.join(params.SCHEMES)}.",
)  # fmt: skip


@dataclass(frozen=True)
class FindOptions:
    """What decides which pairs are found, and how. measure to collapse_copies : of `pairs`."""

    threshold: float
    exact: bool
    max_bucket: int | None
    same: str | None = None
    against: tuple[bytes, ...] = ()
    measure: str = _PAIRS.measure
    collapse_copies: bool = False
    across: params.AcrossParams | None = None
    accepted: Path | None = None
    show_accepted: bool = False


@dataclass(frozen=True)
class KeepOptions:
    """What decides which document of a group is kept."""

    keep: str | None
    prefer: tuple[str, ...]

    def make_rule(self) -> params.ClusterParams:
        """Return how documents are grouped. Raise ParameterError for a value outside its domain."""
        return params.ClusterParams(keep=self.keep or "", prefer=self.prefer)


@dataclass(frozen=True)
class ClustersOptions(FindOptions, WriteOptions, KeepOptions):
    """The options of `clusters`."""

    linkage: str = params.ClusterParams.linkage
    keep_by: str | None = None
    emit: str = "all"
    annotate: str | None = None

    @property
    def files(self) -> tuple[str, str | None]:
        return ("--annotate", self.annotate) if self.annotate else super().files

    def make_rule(self) -> params.ClusterParams:
        max_bucket, keep_by = self.max_bucket or 0, self.keep_by or ""
        return replace(
            super().make_rule(), linkage=self.linkage, max_bucket=max_bucket, keep_by=keep_by
        )


@dataclass(frozen=True)
class PairsOptions(FindOptions, WriteOptions):
    """The options of `pairs`."""

    relation: str | None = None
    unmatched: bool = False
    histogram: bool = False
    plot: Path | None = None
    baseline: Path | None = None
    update_baseline: bool = False
    changed_since: str | None = None


@dataclass(frozen=True)
class ReportOptions(FindOptions, KeepOptions):
    """The options of `report`."""

    docs: tuple[bytes, ...] = ()
    output: Path = Path("-")
    color: bool | None = None
    most: int | None = None
    differences: int | None = None
    passages_of_corpus: bool = False


@dataclass(frozen=True)
class ShowOptions(OutputOptions, KeepOptions):
    """The options of `show`."""

    a: bytes
    b: bytes | None
    layout: str | None
    by_lines: bool | None
    context: int | None
    shingles: bool
    shared: bool
    measure: str

    @property
    def both(self) -> tuple[bytes, bytes]:
        """The two documents or folders, where two were named."""
        return self.a, self.b or b""


@dataclass(frozen=True)
class PassagesOptions(WriteOptions, KeepOptions):
    """The options of `passages`."""

    least: int
    gap: int
    in_documents: int
    max_documents: int
    against: tuple[bytes, ...]
    across: params.AcrossParams | None
    emit: str
    threshold: float

    def make_params(self) -> params.PassageParams:
        """Return which passages are found. Raise ParameterError as `make_rule`."""
        return params.PassageParams(self.least, self.max_documents, self.gap)


def list_columns(*listings: str) -> Callable[[click.Command], click.Command]:
    """Return a decorator that lists the columns of listings at the end of a command's help."""

    def decorate(command: click.Command) -> click.Command:
        width = max(map(len, listings)) + 2
        lines = ["\b", "Columns (LSHDUP_HEADER=1 prints their names too):"]
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
