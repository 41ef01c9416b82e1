"""`--engine spark`: the commands `pairs` and `clusters` there. No command of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lshdup.choices import KEEP
from lshdup.cli.columns import column_names
from lshdup.cli.console import Console
from lshdup.cli.find_pairs import most_shingles_of_few_tokens, say_promise, say_short
from lshdup.cli.findings import say_buckets, say_contract, say_pairs, say_uncompared
from lshdup.cli.messages import describe_forms, say_forms, say_guesses, say_skipped, warn_if_nothing
from lshdup.cli.output.files import Outputs
from lshdup.cli.printing import group_layout, make_target, print_pieces, print_rows
from lshdup.cli.session import read_parameters, resume_collecting
from lshdup.errors import ParameterError
from lshdup.params import BandParams, PairParams, ShingleParams, SketchParams
from lshdup.spark.files.paths import check_output, format_of, has_scheme
from lshdup.utils.messages import count_of, printable
from lshdup.workspace.request import merge_params

if TYPE_CHECKING:
    from lshdup.lsh.sample_plan import SamplePlan
    from lshdup.spark.containment import Containment
    from lshdup.spark.pipeline import Comparison, Summary
    from lshdup.spark.tiles import Tiles

#: Attempts to make clusters, if executors are lost meanwhile.
_ATTEMPTS = 3

#: Skipped documents that are named, for each reason.
_NAMED = 1000


def pairs(ctx: click.Context, options: dict[str, Any]) -> int:
    """Run `lshdup pairs --engine spark`, and return the exit code."""
    with _comparison(ctx, options) as (console, comparison, answer):
        return _repeat_if_lost(
            console, lambda: _pairs(console, comparison, answer, options), comparison.begin_again
        )


def _pairs(
    console: Console, comparison: "Comparison", answer: "Destination", options: dict[str, Any]
) -> int:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    from lshdup.spark.containment import Containment
    from lshdup.spark.files.outputs import ordered_pairs

    if isinstance(comparison, Containment):
        _say_contained(console, comparison)
    else:
        _say_buckets(console, comparison, comparison.tiles)
    measure, recipe = options["measure"], comparison.recipe
    console.progress("candidates", 0, 0)
    counts, counted = Observation("answer"), [f.count("*").alias("pairs")]
    found = comparison.pairs(collapse=options["collapse_copies"])
    if measure == "containment":
        few = most_shingles_of_few_tokens(recipe.shingle)
        counted.append(f.count_if(f.col("a_shingles") <= few).alias("short"))
    table = answer.take(found.observe(counts, *counted), comparison)
    total = int(counts.get["pairs"]) if table is None else table.num_rows
    verified = comparison.tiles.found()
    # A task that ran again for a lost executor counts again; then copies cannot be told.
    different = min(verified["pairs"], total)
    candidates = verified["candidates"]
    say_pairs(console, total, recipe.threshold, candidates, different, measure=measure, whole=True)
    if measure == "containment":
        say_short(console, int(counts.get["short"]), total, recipe.shingle)
    if table is not None:
        listing = "pairs" if measure == "jaccard" else "pairs-containment"
        columns = column_names(listing)[:-1]  # Workers make no fingerprints of texts.
        print_pieces(console, make_target(options), columns, ordered_pairs(table))
    return console.exit_code_of(total)


def _repeat_if_lost(
    console: Console, work: Callable[[], int], begin_again: Callable[[], None]
) -> int:
    """Return what `work` returns; do it again if an executor is lost with a checkpoint."""
    from lshdup.spark.clusters import lost

    for left in reversed(range(_ATTEMPTS)):
        try:
            return work()
        except Exception as error:
            if not (left and lost(error)):
                raise
            console.say(
                "an executor was lost, and with it what the rounds had come to: they begin again"
            )
            begin_again()
    raise AssertionError


def clusters(ctx: click.Context, options: dict[str, Any]) -> int:
    """Run `lshdup clusters --engine spark`, and return the exit code.

    Spark writes a row for every document, with its representative.
    """
    if options["linkage"] != "representative":
        message = f"--linkage is {options['linkage']}; on Spark it is representative"
        raise ParameterError(message, "leave it out")
    if options["emit"] == "drop-files":
        message = "--emit drop-files cannot be combined with --engine spark"
        raise ParameterError(message, "--emit drop names all documents that may go")
    from lshdup.spark.clusters import check_keep

    options = {**options, "keep": options["keep"] or "shortest-path"}
    check_keep(options["keep"])
    with _comparison(ctx, options) as (console, comparison, answer):
        return _repeat_if_lost(
            console, lambda: _clusters(console, comparison, answer, options), lambda: None
        )


def _clusters(
    console: Console, comparison: "Comparison", answer: "Destination", options: dict[str, Any]
) -> int:
    from pyspark.sql import functions as f

    from lshdup.spark.clusters import Clusters
    from lshdup.spark.files.outputs import ordered_clusters

    emit, threshold = options["emit"], comparison.recipe.threshold
    with Clusters(comparison, options["keep"]) as found:
        _say_buckets(console, comparison, found.tiles)
        console.progress("groups", 0, 0)
        wanted = {"all": found.listed, "keep": found.kept, "drop": found.dropped}[emit]
        if answer.is_written and emit == "all":
            copy = f.when(f.col("copy"), f.lit("yes")).otherwise(f.lit("no"))
            wanted = found.documents.withColumn("copy", copy)
        elif answer.is_written:
            wanted = wanted.withColumnRenamed("id", "name")
        total, kept, dropped, copies = found.counts
        table = answer.take(wanted, comparison)
        seconds = f"{console.duration_of('groups')}; {console.seconds:.2f} s in all"
        alike = f"of similarity {threshold:g} or more"
        if dropped:
            documents = count_of(total + dropped, "document")
            groups, rounds = count_of(total, "group"), count_of(found.rounds, "round")
            console.detail(rounds)
            console.summarize(f"kept: {KEEP[options['keep']]}")
            console.summarize(
                f"{groups} {alike} with {documents}; "
                f"keep {count_of(kept, 'document')}, {kept - total:,} alone; "
                f"drop {dropped:,}, {copies:,} of them copies{seconds}"
            )
        else:
            console.summarize(f"no groups {alike}: {count_of(kept, 'document')} alone{seconds}")
        if table is not None and emit == "all":
            rows, target = ordered_clusters(table), make_target(options)
            columns = column_names("clusters")[:6]
            print_rows(console, target, columns, rows, group_layout(target))
        elif table is not None:
            say_uncompared(console, (len(table) - kept) * (emit == "keep"))
            names = ((name,) for name in sorted(table.column("id").to_pylist()))
            print_rows(console, make_target(options), column_names("clusters-names"), names)
    return console.exit_code_of(dropped)


@contextmanager
def _comparison(
    ctx: click.Context, options: dict[str, Any]
) -> Iterator[tuple[Console, "Comparison", "Destination"]]:
    """Start Spark, find the documents and say their number; yield the comparison."""
    console = Console.of(options)
    with console:
        given, names, files = read_parameters(ctx, options, console)
        Outputs.of(ctx).refuse_below("", names, files)
        resume_collecting()
        shingle = merge_params(ShingleParams, given)
        sketch, band = merge_params(SketchParams, given), merge_params(BandParams, given)
        measure = options.get("measure", PairParams().measure)
        pair = PairParams(max_bucket=options.get("max_bucket") or 0, measure=measure)
        answer, settings = Destination(options), settings_of(options["spark_conf"])
        from lshdup.spark import session as spark_session
        from lshdup.spark.errors import one_line

        spark_session.check_packages()
        from lshdup.lsh.band_plan import BandPlan
        from lshdup.spark.containment import Containment
        from lshdup.spark.files import inputs
        from lshdup.spark.pipeline import Comparison
        from lshdup.spark.recipe import make_recipe

        inputs.check_named(names)
        recipe = make_recipe(shingle, sketch, band, pair)
        recipe = replace(recipe, max_bytes=files.max_bytes, formats=files.formats)
        console.say(_starting(options["master"] or settings.get("spark.master", "")))
        starting = spark_session.session(
            options["master"],
            settings,
            loud=console.is_verbose,
            progress=console.shows_progress,
            warn=console.warn,
        )
        with starting as session, one_line():
            answer.check(session)
            documents = inputs.find_documents(
                session,
                names,
                files,
                ids=shingle.tokens == "ids",
                skipped=console.report_skipped,
                say=console.say,
                warn=console.warn,
            )
            partitions = spark_session.default_partitions(session, settings, documents.size)
            master = session.sparkContext.master
            console.say(
                f"Spark {session.version} at {master},"
                f" {count_of(partitions, 'partition')} a shuffle"
            )
            made = Comparison if measure == "jaccard" else Containment
            with made(documents.sources, recipe, pair.max_bucket) as comparison:
                summary = _say_documents(console, comparison)
                n, skipped = summary.documents, console.skipped_counts
                warn_if_nothing(
                    console,
                    names,
                    n,
                    n - summary.empty - summary.small,
                    skipped,
                    has_rows=documents.has_rows,
                    min_tokens=recipe.shingle.min_tokens,
                )
                if isinstance(recipe.plan, BandPlan):
                    say_contract(console, recipe.plan, band, whole=True)
                else:
                    _say_promise(console, comparison, recipe.plan)
                console.progress("buckets", 0, 0)
                yield console, comparison, answer


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


def _starting(master: str) -> str:
    if master.startswith(("spark://", "yarn", "k8s://")):
        return (
            f"starting Spark; waiting for {master} "
            "(if nothing answers there, Spark says so after a minute or more)"
        )
    return f"starting Spark{' at ' + master if master else ''}"


def _say_documents(console: Console, comparison: "Comparison") -> "Summary":
    """Say the numbers of documents, shingles and skipped documents; with -v name documents."""
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.skipped import Reason, Skipped

    def named(condition: str, column: str) -> list[Any]:
        rows = comparison.sketches.where(condition).select("id", column)
        return list(rows.orderBy("id").limit(_NAMED).collect())

    console.progress("documents", 0, 0)
    summary = comparison.summary()
    took = console.duration_of("documents")
    for reason, n in sorted(summary.skipped.items()):
        rows = named(f"reason = '{reason}'", "detail")
        for row in rows:
            console.report_skipped(Skipped(bytes(row.id), Reason(reason), row.detail or ""))
        console.skipped_counts[reason] += n - len(rows)
    plan, sketch = comparison.recipe.plan, comparison.recipe.sketch
    made = f"signatures: {sketch.scheme}, K = {sketch.perms}"
    if not isinstance(plan, BandPlan):
        made = f"samples of 1 shingle in {plan.rate}"
    documents = f"{count_of(summary.documents, 'document')}{describe_forms(summary.forms, 0)}"
    console.say(f"{documents} -> {count_of(summary.shingles, 'shingle')} -> {made}{took}")
    few = f"with fewer than {count_of(comparison.recipe.shingle.min_tokens, 'token')}"
    for n, what in ((summary.empty, "without tokens"), (summary.small, few)):
        if n:
            empty = count_of(n, "document")
            console.say(f"{empty} {what}: not compared (-v names them)")
    say_forms(console, summary.forms, comparison.recipe.shingle)
    say_guesses(console, summary.guesses)
    say_skipped(console, console.skipped_counts)
    if console.is_verbose:
        for row in named("size = 0 and reason is null", "detail"):
            console.detail(f"{printable(bytes(row.id))}: {row.detail or 'no tokens'}")
        for row in named("encoding is not null", "encoding"):
            console.detail(f"{printable(bytes(row.id))}: read as {row.encoding}")
    return summary


def _say_promise(console: Console, comparison: "Comparison", plan: "SamplePlan") -> None:
    """Say which pairs samples may miss."""
    small = comparison.distinct_sets.where(f"first.size < {plan.promised_from}").count()
    say_promise(console, plan, small, "--engine local --exact")


def _say_contained(console: Console, comparison: "Containment") -> None:
    """Say how many documents have candidates, and what a larger floor promises."""
    if comparison.samples.floor > 1:
        _say_promise(console, comparison, comparison.samples)
    documents = count_of(comparison.tiles.counts[1], "document")
    console.say(f"{documents} with candidates{console.duration_of('buckets')}")


def _say_buckets(console: Console, comparison: "Comparison", tiles: "Tiles") -> None:
    """Say how many documents have candidates, and on request the size of the largest bucket."""
    rows, documents = tiles.counts
    with_candidates = f"{count_of(documents, 'document')} with candidates"
    in_buckets = f"{count_of(rows, 'row')} in buckets to be compared"
    console.say(f"{with_candidates}, {in_buckets}{console.duration_of('buckets')}")
    limit = comparison.max_bucket
    if not (limit or console.is_verbose):
        return
    from lshdup.lsh.buckets import Buckets

    largest, example, skipped, sets, candidates = comparison.bucket_counts()
    buckets = Buckets(largest, 0, skipped, sets, candidates)
    say_buckets(console, buckets, lambda _: [example], limit)
    if largest and not skipped:
        console.detail(
            f"the largest bucket: {count_of(largest, 'document')}, with {printable(example)}"
        )


class Destination:
    """The destination of an answer: a folder that Spark writes, or the listing of `cli.output`.

    is_written : whether Spark writes it, as Parquet or JSON Lines.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._name = options["output"] or ""
        self._format = format_of(self._name)
        self.is_written = bool(self._format)
        self._path = ""
        self._begun = False
        typed = options["format_"] not in (None, "jsonl" if self._format == "json" else "")
        if self.is_written and (typed or options["nul"] or options["header"] is not None):
            message = f"-o {self._name} is written by Spark as its ending says"
            raise ParameterError(message, "leave --format, --header and -0 out")
        if not self.is_written:
            if has_scheme(self._name):
                message = (
                    f"-o {self._name}: Spark writes .parquet and .jsonl, "
                    "and all else goes through this machine"
                )
                raise ParameterError(
                    message, "give it such an ending, or name a file of this machine"
                )
            make_target(options)  # raises if it cannot be written

    def check(self, session: Any) -> None:
        """Raise InputError, before the work, if the answer cannot be written or exists."""
        if self.is_written:
            self._path = check_output(session, self._name)

    def take(self, answer: Any, comparison: "Comparison") -> Any:
        """Let Spark write the answer; or return it as an Arrow table."""
        if not self.is_written:
            return answer.toArrow()
        from lshdup.spark.files.outputs import write

        overwrite, self._begun = self._begun, True
        ids = comparison.sketches.where("reason is null")
        write(answer, self._path, self._format, ids, overwrite=overwrite)
        return None
