"""`lshdup spark pairs` and `lshdup spark clusters`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lshdup.base.frozen import dataclass
from lshdup.base.params import KEEP, SPARK_KEEP, BandParams, PairParams, ShingleParams, SketchParams
from lshdup.base.wording import count_of
from lshdup.cli.console import Console
from lshdup.cli.help import Command, option, plain_option, stack
from lshdup.cli.messages import say_contract, say_skipped
from lshdup.cli.options import (
    collapse_option,
    max_bucket_option,
    noisy_option,
    shape_options,
    sketch_options,
    spark_options,
    text_options,
    text_source_options,
    token_options,
)
from lshdup.cli.session import read_parameters, resume_collecting
from lshdup.errors import ParameterError
from lshdup.workspace.request import merge_params

if TYPE_CHECKING:
    from lshdup.spark.pipeline import Comparison

#: Attempts to make clusters, if executors are lost meanwhile.
_ATTEMPTS = 3

#: Skipped documents that are named, for each reason.
_NAMED = 1000


@click.group("spark", short_help="the same pairs and groups from Apache Spark")
def command() -> None:
    """Find near-duplicates on Apache Spark (needs lshdup[spark] and Java 17), for more documents
    than one machine can hold. Names, similarities and groups are those of `lshdup pairs` and
    `lshdup clusters`.
    """


@dataclass(frozen=True)
class SparkOptions:
    """The options of both commands. collapse_copies : of `pairs`. keep : of `clusters`."""

    inputs: tuple[str, ...]
    output: str
    threshold: float
    max_bucket: int | None
    master: str | None
    spark_conf: tuple[str, ...]
    quiet: bool
    collapse_copies: bool = False
    keep: str = SPARK_KEEP[0]


#: The input, the output, and the options that both commands have.
_options = stack(
    click.argument("inputs", nargs=-1, required=True, metavar="INPUT..."),
    plain_option("-o", "--output", required=True, metavar="OUT", group="Output", brief=True,
                 help="The folder that Spark writes: OUT.parquet or OUT.jsonl."),
    text_source_options, noisy_option, token_options, text_options, sketch_options, shape_options,
    max_bucket_option, spark_options,
)  # fmt: skip


@command.command(
    "pairs",
    cls=Command,
    takes=SparkOptions,
    short_help="all near-duplicate pairs",
    epilog="""\b
Examples:
  lshdup spark pairs sample_corpus -o pairs.jsonl --master 'local[2]'
  lshdup spark pairs s3a://bucket/pages/*.parquet --id-field url -o s3a://bucket/pairs.parquet
""",
)
@_options
@collapse_option
def pairs(ctx: click.Context, options: SparkOptions) -> int:
    """Write all pairs of documents whose similarity is at least the threshold: a, b, similarity.

    INPUT are files, folders and patterns on any path that Spark reads. Files are Parquet or JSON
    Lines, whose rows need --id-field, or text and HTML. In folders, rows are read with
    --text-field. The pairs are those of `lshdup pairs`, in no order.
    """
    with _comparison(ctx, options) as (console, comparison):
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        from lshdup.spark.files import write

        counts = Observation()
        found = comparison.pairs(collapse=options.collapse_copies)
        found = found.observe(counts, f.count("*").alias("pairs"))
        write(found, options.output, comparison.sketches)
        _say_skipped_buckets(console, comparison)
        _say_answer(console, options, count_of(counts.get["pairs"], "pair"))
        return console.exit_code()


@command.command(
    "clusters",
    cls=Command,
    takes=SparkOptions,
    short_help="groups of near-duplicates, and which of each to keep",
    epilog="""\b
Examples:
  lshdup spark clusters sample_corpus -o groups.parquet --master 'local[2]'
  lshdup spark clusters hdfs:///pages/*.jsonl --id-field url -o hdfs:///groups.jsonl
""",
)
@_options
@option("--keep", type=click.Choice(SPARK_KEEP), default=SPARK_KEEP[0], brief=True,
        help="Which of a group to keep: the shortest path (no name of a copy, fewest folders, then "
             "characters), the longest or shortest, or the first in byte order.")  # fmt: skip
def clusters(ctx: click.Context, options: SparkOptions) -> int:
    """Write a row for each compared document: id, representative (itself, if it is kept),
    similarity to that, and whether it is a copy, with equal shingles.

    INPUT is as of `lshdup spark pairs`. Groups are those of `lshdup clusters`, in no order.
    """
    with _comparison(ctx, options) as (console, comparison):
        from lshdup.spark.clusters import Clusters, lost
        from lshdup.spark.files import write

        for left in reversed(range(_ATTEMPTS)):
            try:
                found = Clusters(comparison, options.keep)
                mode = "errorifexists" if left == _ATTEMPTS - 1 else "overwrite"
                write(found.documents, options.output, comparison.sketches, mode)
                groups, kept, dropped, copies = found.counts()
                break
            except Exception as error:
                if not (left and lost(error)):
                    raise
                console.say("an executor was lost with a round of the groups: they begin again")
        _say_skipped_buckets(console, comparison)
        console.summarize(f"kept: {KEEP[options.keep]}")
        rest = f" with {count_of(groups + dropped, 'document')}"
        rest += f"; keep {kept:,}, {kept - groups:,} alone; drop {dropped:,}, {copies:,} copies"
        _say_answer(console, options, count_of(groups, "group"), rest)
        return console.exit_code()


@contextmanager
def _comparison(
    ctx: click.Context, options: SparkOptions
) -> Iterator[tuple[Console, "Comparison"]]:
    """Start Spark, find the documents and say their number; yield the comparison."""
    with Console(**ctx.params) as console:
        explicit, _, files = read_parameters(ctx, console)
        band, sketch = merge_params(BandParams, explicit), merge_params(SketchParams, explicit)
        limit = PairParams(max_bucket=options.max_bucket or 0).max_bucket
        settings = settings_of(options.spark_conf)
        resume_collecting()
        from lshdup.spark import session as spark_session

        spark_session.check_packages()
        from lshdup.spark import files as spark_files
        from lshdup.spark.pipeline import Comparison, make_recipe

        spark_files.format_of(options.output)
        shingle = merge_params(ShingleParams, explicit)
        recipe = make_recipe(shingle, sketch, band, files.max_bytes)
        starting = spark_session.session(options.master, settings, quiet=options.quiet)
        with starting as session, spark_session.one_line():
            spark_files.refuse_existing(session, options.output)
            documents = spark_files.find_documents(session, options.inputs, files)
            spark_session.set_partitions(documents, settings)
            with Comparison(documents, recipe, limit) as comparison:
                _say_documents(console, comparison)
                say_contract(console, recipe.plan, band, whole=True)
                yield console, comparison


def settings_of(typed: tuple[str, ...]) -> dict[str, str]:
    """Return the settings of `--spark-conf`. Raise ParameterError if one has no value."""
    settings = {}
    for setting in filter(str.strip, typed):  # a variable may have empty lines
        name, separator, value = setting.partition("=")
        if not (name.strip() and separator):
            message = f"--spark-conf is {setting!r}; it must be a setting and its value"
            raise ParameterError(message, "for instance --spark-conf spark.executor.memory=4g")
        settings[name.strip()] = value.strip()
    return settings


def _say_documents(console: Console, comparison: "Comparison") -> None:
    """Say the numbers of documents, shingles and skipped documents; name the skipped ones."""
    from lshdup.base.skipped import Reason, Skipped

    summary, sketch = comparison.summary(), comparison.recipe.sketch
    for reason, n in sorted(summary.skipped.items()):
        rows = comparison.sketches.where(f"reason = '{reason}'").select("id", "detail")
        named = rows.orderBy("id").limit(_NAMED).collect()
        for row in named:
            console.report_skipped(Skipped(bytes(row.id), Reason(reason), row.detail or ""))
        console.skipped_counts[reason] += n - len(named)
    documents = count_of(summary.documents, "document")
    shingles = count_of(summary.shingles, "shingle")
    signatures = f"signatures: {sketch.scheme}, K = {sketch.perms}"
    console.say(f"{documents} -> {shingles} -> {signatures}")
    if summary.empty:
        console.say(f"skipped {count_of(summary.empty, 'document')} without tokens, or with few")
    say_skipped(console, console.skipped_counts)


def _say_skipped_buckets(console: Console, comparison: "Comparison") -> None:
    buckets, candidates = comparison.count_skipped_buckets() if comparison.max_bucket else (0, 0)
    if buckets:
        console.warn(
            f"--max-bucket {comparison.max_bucket} skipped {count_of(buckets, 'bucket')}: up to "
            f"{count_of(candidates, 'pair')} not looked at"
        )


def _say_answer(console: Console, options: SparkOptions, what: str, rest: str = "") -> None:
    """Say what was found, where it is, and how long that took."""
    found = f"{what} of similarity {options.threshold:g} or more{rest}"
    console.summarize(f"{found} -> {options.output}{console.took()}")
