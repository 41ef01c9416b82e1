"""`--engine spark`: what `pairs` and `clusters` do there. No command of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli.columns import column_names
from lshdup.cli.console import OK, PAIRS_FOUND, Console
from lshdup.cli.listings import listing_target, print_pieces, print_rows
from lshdup.cli.messages import (
    say_buckets,
    say_contract,
    say_funnel,
    say_guesses,
    say_skipped,
    warn_if_nothing,
)
from lshdup.cli.session import read_parameters
from lshdup.errors import ParameterError
from lshdup.params import BandParams, PairParams, ShingleParams, SketchParams
from lshdup.spark.paths import has_scheme
from lshdup.utils.messages import counted, shown
from lshdup.workspace.request import merge_params

if TYPE_CHECKING:
    from lshdup.cli.output import Piece
    from lshdup.spark.comparison import Comparison, Summary
    from lshdup.spark.tiles import Tiles
    from lshdup.utils.json_cells import Cell

#: So often groups are made, if executors are lost meanwhile.
_TRIES = 3

#: Of the documents that are left out so many are named, for each reason.
_NAMED = 1000


@dataclass(frozen=True)
class _Run:
    """A comparison that has read its documents and said so."""

    console: Console
    comparison: "Comparison"
    threshold: float


def pairs(ctx: click.Context, options: dict[str, Any]) -> int:
    """`lshdup pairs --engine spark`."""
    with _run(ctx, options) as (run, target):
        console, comparison = run.console, run.comparison
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        _say_buckets(console, comparison, comparison.tiles)
        console.progress("candidates", 0, 0)
        counts = Observation("answer")
        answer = comparison.pairs(collapse=options["collapse_copies"]).observe(
            counts, f.count("*").alias("pairs")
        )
        table = target.taken(answer, comparison)
        found, total = (
            comparison.tiles.found(),
            int(counts.get["pairs"]) if table is None else table.num_rows,
        )
        # Tasks that ran again for a lost executor are counted again: then it is not known what are copies.
        say_funnel(console, found["candidates"], min(found["pairs"], total), total, run.threshold)
        if table is not None:
            print_pieces(console, listing_target(options), column_names("pairs"), _in_order(table))
        if options["check"] and console.exit_code == OK and total:
            return PAIRS_FOUND
        return console.exit_code


def clusters(ctx: click.Context, options: dict[str, Any]) -> int:
    """`lshdup clusters --engine spark`: the same columns; written by Spark, every document with who represents it."""
    if options["linkage"] != "representative":
        message = f"--linkage is {options['linkage']}; on Spark it is representative"
        raise ParameterError(message, "leave it out")
    from lshdup.spark.clusters import check_keep, lost

    check_keep(options["keep"])
    with _run(ctx, options) as (run, target):
        for left in reversed(range(_TRIES)):
            try:
                return _grouped(run, target, options)
            except Exception as error:
                if not (left and lost(error)):
                    raise
                run.console.say(
                    "an executor was lost, and with it what the rounds had come to: they begin again"
                )
        raise AssertionError


def _grouped(run: _Run, target: "_Target", options: dict[str, Any]) -> int:
    from lshdup.spark.clusters import Clusters

    console = run.console
    with Clusters(run.comparison, options["keep"]) as groups:
        _say_buckets(console, run.comparison, groups.tiles)
        console.progress("groups", 0, 0)
        wanted = {"all": groups.listed, "keep": groups.kept, "drop": groups.dropped}[
            options["emit"]
        ]
        if target.is_written:
            wanted = (
                _as_words(groups.documents)
                if options["emit"] == "all"
                else wanted.withColumnRenamed("id", "name")
            )
        total, kept, dropped, copies = groups.counts
        table = target.taken(wanted, run.comparison)
        seconds = f"{console.took('groups')}; {console.seconds:.2f} s in all"
        if dropped:
            what = f"{counted(total, 'group')} of similarity {run.threshold:g} or more with {counted(total + dropped, 'document')}"
            console.say(f"{what}; {counted(groups.rounds, 'round')}")
            line = f"keep {counted(kept, 'document')}, {kept - total:,} alone; drop {dropped:,}, {copies:,} of them copies"
            console.say(f"{line}{seconds}")
        else:
            console.say(
                f"no groups of similarity {run.threshold:g} or more: {counted(kept, 'document')} alone{seconds}"
            )
        if table is not None and options["emit"] == "all":
            print_rows(console, listing_target(options), column_names("clusters"), _groups(table))
        elif table is not None:
            names = ((name,) for name in sorted(table.column("id").to_pylist()))
            print_rows(console, listing_target(options), column_names("clusters-names"), names)
    if options["check"] and console.exit_code == OK and dropped:
        return PAIRS_FOUND
    return console.exit_code


def _as_words(documents: Any) -> Any:
    """Documents with `copy` in the words that are printed."""
    from pyspark.sql import functions as f

    return documents.withColumn("copy", f.when(f.col("copy"), f.lit("yes")).otherwise(f.lit("no")))


@contextmanager
def _run(ctx: click.Context, options: dict[str, Any]) -> Iterator[tuple[_Run, "_Target"]]:
    """From parsed options to a comparison on Spark, with what the first stages have to say."""
    console = Console(
        quiet=options["quiet"],
        verbose=options["verbose"],
        progress=options["progress"],
        color=options["color"],
    )
    with console:
        given, names, files = read_parameters(ctx, options, console)
        shingle, sketch, band = (
            merge_params(ShingleParams, given),
            merge_params(SketchParams, given),
            merge_params(BandParams, given),
        )
        asked = PairParams(max_bucket=options.get("max_bucket") or 0)
        target = _Target(options)
        settings = _settings(options["spark_conf"])
        from lshdup.spark import session as spark_session
        from lshdup.spark.errors import one_line

        spark_session.check_packages()
        from lshdup.spark import comparison as spark_comparison
        from lshdup.spark import inputs

        inputs.check_named(names)
        recipe = spark_comparison.recipe(shingle, sketch, band, asked)
        console.say(_starting(options["master"] or settings.get("spark.master", "")))
        starting = spark_session.session(
            options["master"],
            settings,
            loud=options["verbose"],
            progress=console.shows_progress,
            warn=console.warn,
        )
        with starting as session, one_line():
            target.prove(session)
            ids = shingle.tokens == "ids"
            documents = inputs.read(
                session,
                names,
                files,
                ids=ids,
                skipped=console.skipped,
                say=console.say,
                warn=console.warn,
            )
            partitions = spark_session.default_partitions(session, settings, documents.size)
            context = session.sparkContext
            console.say(
                f"Spark {session.version} at {context.master}, {counted(partitions, 'partition')} a shuffle"
            )
            recipe = replace(
                recipe,
                kind=documents.kind,
                home=documents.home,
                max_bytes=files.max_bytes,
                formats=files.formats,
            )
            with spark_comparison.Comparison(
                documents.rows, recipe, asked.max_bucket, documents.sources
            ) as comparison:
                summary = _say_documents(console, comparison, sketch)
                n, compared = summary.documents, summary.documents - summary.empty
                warn_if_nothing(
                    console, names, n, compared, console.skipped_counts, has_rows=documents.has_rows
                )
                say_contract(console, recipe.plan, band)
                console.progress("buckets", 0, 0)
                yield _Run(console, comparison, band.threshold), target


def _settings(typed: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for each in filter(str.strip, typed):  # a variable may have empty lines
        name, separator, value = each.partition("=")
        if not (name.strip() and separator):
            message = f"--spark-conf is {each!r}; it must be a setting and its value"
            raise ParameterError(message, "for instance --spark-conf spark.executor.memory=4g")
        settings[name.strip()] = value.strip()
    return settings


# --- what is said -----------------------------------------------------------------------------------------------------------------


def _starting(master: str) -> str:
    """What is said before it is waited."""
    if master.startswith(("spark://", "yarn", "k8s://")):
        return f"starting Spark; waiting for {master} (if nothing answers there, Spark says so after a minute or more)"
    return f"starting Spark{' at ' + master if master else ''}"


def _say_documents(console: Console, comparison: "Comparison", sketch: SketchParams) -> "Summary":
    from lshdup.skipped import Reason, Skipped

    console.progress("documents", 0, 0)
    summary = comparison.summary()
    took = console.took("documents")
    for reason, n in sorted(summary.skipped.items()):
        rows = (
            comparison.sketches.where(f"reason = '{reason}'")
            .select("id", "detail")
            .orderBy("id")
            .limit(_NAMED)
            .collect()
        )
        for row in rows:
            console.skipped(Skipped(bytes(row.id), Reason(reason), row.detail or ""))
        console.skipped_counts[reason] += n - len(rows)
    line = f"{counted(summary.documents, 'document')} -> {counted(summary.shingles, 'shingle')}"
    line += f" -> signatures: {sketch.scheme}, K = {sketch.perms}{took}"

    console.say(line)
    if summary.empty:
        console.say(
            f"{counted(summary.empty, 'document')} without tokens: near nothing, not compared (-v names them)"
        )
    say_guesses(console, summary.guessed)
    say_skipped(console, console.skipped_counts)
    if console.is_verbose:
        for row in (
            comparison.sketches.where("size = 0 and reason is null")
            .select("id")
            .orderBy("id")
            .limit(_NAMED)
            .collect()
        ):
            console.detail(f"{shown(bytes(row.id))}: no tokens")
        for row in (
            comparison.sketches.where("encoding is not null")
            .select("id", "encoding")
            .orderBy("id")
            .limit(_NAMED)
            .collect()
        ):
            console.detail(f"{shown(bytes(row.id))}: read as {row.encoding}")
    return summary


def _say_buckets(console: Console, comparison: "Comparison", tiles: "Tiles") -> None:
    """How many documents have candidates; the largest bucket, as far as it is wanted."""
    rows, documents = tiles.counts
    found = f"{counted(documents, 'document')} with candidates, {counted(rows, 'row')} in buckets to be compared"
    console.say(found + console.took("buckets"))
    limit = comparison.max_bucket
    if not (limit or console.is_verbose):
        return
    from lshdup.lsh.candidates import Buckets

    largest, example, skipped, kinds, looked = comparison.bucket_counts()
    say_buckets(console, Buckets(largest, 0, skipped, kinds, looked), lambda _: [example], limit)
    if largest and not skipped:
        console.detail(f"the largest bucket: {counted(largest, 'document')}, with {shown(example)}")


# --- where the answer goes --------------------------------------------------------------------------------------------------------


class _Target:
    """Where -o says: Spark writes Parquet and JSON Lines, a folder of part files; everything else comes here and through output.py."""

    def __init__(self, options: dict[str, Any]) -> None:
        from lshdup.spark.outputs import kind_of

        self._name = options["output"] or ""
        self._kind = kind_of(self._name)
        self.is_written = bool(self._kind)
        self._path = ""
        self._begun = False
        typed = options["format_"] not in (None, "jsonl" if self._kind == "json" else "")
        if self.is_written and (typed or options["nul"] or options["header"] is not None):
            message = f"-o {self._name} is written by Spark as its ending says"
            raise ParameterError(message, "leave --format, --header and -0 out")
        if not self.is_written:
            if has_scheme(self._name):
                message = f"-o {self._name}: Spark writes .parquet and .jsonl, and all else goes through this machine"
                raise ParameterError(
                    message, "give it such an ending, or name a file of this machine"
                )
            listing_target(options)  # whether it can be written, before the work

    def prove(self, session: Any) -> None:
        """Before the work: raise InputError if it cannot be written, or if something is there, because a folder is not replaced."""
        if self.is_written:
            from lshdup.spark.outputs import place

            self._path = place(session, self._name)

    def taken(self, answer: Any, comparison: "Comparison") -> Any:
        """Have Spark write the answer; or the answer itself, as a table."""
        if not self.is_written:
            return answer.toArrow()
        from lshdup.spark.outputs import write

        again, self._begun = self._begun, True
        write(
            answer, self._path, self._kind, comparison.sketches.where("reason is null"), again=again
        )
        return None


def _groups(table: Any) -> "Iterator[tuple[Cell, ...]]":
    """Groups of two or more, by size descending, then by representative; within one the representative, then by similarity descending."""
    groups: dict[bytes, list[tuple[bool, float, bytes, bool]]] = {}
    for name, leader, similarity, copy in zip(
        *(column.to_pylist() for column in table.columns), strict=True
    ):
        groups.setdefault(leader, []).append((name != leader, -similarity, name, copy))
    for number, (_, members) in enumerate(
        sorted(groups.items(), key=lambda each: (-len(each[1]), each[0])), 1
    ):
        members.sort()
        smallest = -members[-1][1]
        for is_member, score, name, copy in members:
            yield (
                number,
                "drop" if is_member else "keep",
                name,
                -score,
                "yes" if copy else "no",
                smallest,
            )


def _in_order(table: Any) -> "Iterator[Piece]":
    """A table of pairs in the order of every output: by similarity descending, then by names."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from lshdup.matching.pairs import Pairs
    from lshdup.utils.arrow import as_binary

    columns = [as_binary(table.column(name).combine_chunks()) for name in ("a", "b")]
    names = pc.unique(pa.chunked_array(columns, pa.binary()))
    names = names.take(pc.sort_indices(names))
    left, right = (pc.index_in(column, names).to_numpy().astype(np.int64) for column in columns)
    found = Pairs.of(left, right, table.column("similarity").to_numpy())
    objects = np.array([*names.to_pylist(), None], object)[:-1]
    for start in range(0, len(found), 1 << 13):
        a, b, similarity = found.part(start, min(start + (1 << 13), len(found)))
        yield objects[a].tolist(), objects[b].tolist(), similarity.tolist()
