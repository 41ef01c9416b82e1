"""`lshdup report`."""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.messages import count_of, printable, quote_command, quoted
from lshdup.base.system import is_stdout
from lshdup.cli.commands.report_folders import collect_folders
from lshdup.cli.conflicts import is_typed, refuse_with_exact
from lshdup.cli.find_pairs import PairsListed, find_pairs
from lshdup.cli.findings import describe_rule, warn_of_changes
from lshdup.cli.help import Command, plain_option
from lshdup.cli.messages import find_empty
from lshdup.cli.options import (
    check_files_option,
    exact_option,
    keep_options,
    max_bucket_option,
    option,
    run_options,
    table_options,
)
from lshdup.cli.output.target import Target
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import OutputPath
from lshdup.errors import InputError, ParameterError
from lshdup.params import ClusterParams, PassageParams
from lshdup.version import __version__
from lshdup.workspace.lookup import NamedDocument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.base.skipped import Skipped
    from lshdup.collection.collection import Collection
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.shingling.inspection import LocatedText
    from lshdup.views.passages import Passages
    from lshdup.views.selection import Selection

#: The distance of two thresholds of the slider.
_STEP = 0.005

#: Bytes of a page that no option makes larger, and pairs whose differences are in it.
_PAGE_BYTES, _PASSAGES = 7_800_000, 5_000

#: Passages that recur in the page, places of each, and characters.
_RECURRING, _PLACES, _LONGEST = 200, 20, 2_000

#: Most bytes of a document whose passages are in the page; `lshdup show` takes seconds for more.
_MOST_BYTES = 1 << 20
_TOO_LONG = "a document has more than 1 MiB of text, for which there is `lshdup show`"


@click.command(
    "report",
    cls=Command,
    short_help="one HTML page to look through what was found",
    epilog="""\b
Examples:
  lshdup report sample_corpus -t 0.6 -o report.html && wc -c report.html
  lshdup index sample_corpus && lshdup report > near.html && ls -l near.html
""",
)
@table_options
@exact_option
@max_bucket_option
@keep_options
@option("--most", type=click.IntRange(1), metavar="N",
        show_default="100,000, as far as they fit into 8 MB",
        help="List N documents in groups and N pairs: the largest groups and the most similar "
             "pairs. The page counts all, and says how many it lists.")  # fmt: skip
@option("--differences", type=click.IntRange(0), metavar="N",
        show_default="5,000, as far as they fit into 8 MB",
        help="Show where N pairs differ: the members of groups and the one that is kept, then the "
             "least similar pairs.")  # fmt: skip
@plain_option(
    "--passages-of-corpus",
    is_flag=True,
    help="Also the passages that recur anywhere, as `lshdup passages` finds them.",
)
@check_files_option
@run_options
@plain_option("-o", "--output", type=OutputPath(Path), metavar="FILE",
              default=Path("-"),
              show_default="standard output",
              help="Write the page there, all or nothing.")  # fmt: skip
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make one HTML page of the near-duplicates: a histogram whose threshold can be moved, the
    groups, the pairs, and where they differ; and the folders that hold nearly the same.

    The page is whole in itself: it loads nothing, from a file or a server, and shows what stands in
    documents without obeying it. Its groups are those of `lshdup clusters` at the threshold that is
    chosen there, with the bands of --threshold; it saves the names to keep and the names to drop as
    `lshdup clusters --emit` prints them. It names what was not compared. Without DOCS, of the last
    run.
    """
    path = options["output"]
    _refuse_page_as_document(options["docs"], path)
    target = Target(path=None if is_stdout(path) else path, color=options["color"])
    if target.columns is not None:
        message = "the page is not for a terminal"
        raise InputError(message, "name a file with -o, for instance -o report.html")
    refuse_with_exact(ctx)
    if options["keep"] == "central":
        message = "the page makes groups at every threshold, for which --keep central is too slow"
        raise ParameterError(message, "use `lshdup clusters --keep central`, or another --keep")
    with open_session(ctx, options) as session:
        import numpy as np

        from lshdup.collection.name_lists import names_to_keep
        from lshdup.evaluation.histogram import list_thresholds
        from lshdup.sources.preference import preference
        from lshdup.views import html
        from lshdup.views.selection import select

        console = session.console
        skipped: list[Skipped] = []
        console.on_skipped = skipped.append
        answer = find_pairs(session, options)
        collection, duplicate_of, plan = answer.collection, answer.duplicate_of, answer.plan
        documents = collection.documents
        changed = warn_of_changes(session, documents, answer.pairs.documents())
        rule = ClusterParams(keep=options["keep"] or "", prefer=options["prefer"])
        preferred = preference(documents, collection.sizes, rule, session.request.documents)
        order = preferred.order
        for line in preferred.unused:
            console.warn(line)
        selection = select(
            answer.distinct_pairs,
            answer.pairs,
            duplicate_of,
            order,
            documents.names.sizes,
            list_thresholds(answer.threshold, _STEP),
            options["most"] or 0,
            changed,
        )
        uncompared = _list_uncompared(session, collection, skipped)
        facts = html.Facts(
            what=_describe_documents(session, options["store"]),
            documents=len(documents),
            bands=plan.bands if plan else 0,
            rows=plan.rows if plan else 0,
            kept=describe_rule(rule, documents),
            command=_clusters_command(ctx, plan),
            newest=_newest_day(collection),
            changed=len(changed),
            skipped=console.skipped_counts | {why: len(of) for why, of in uncompared.items()},
            parameters=list(_parameters(answer)),
        )
        data = html.collect_data(
            selection,
            duplicate_of,
            collection.sizes,
            order,
            documents.typed_names,
            facts,
            collection.prints.compare,
        )
        data["folders"] = collect_folders(session, answer, order)
        if options["passages_of_corpus"]:
            data["recurring"] = _find_recurring(session)
        room = _PAGE_BYTES - len(html.render_page(data))
        passages = _find_passages(session, answer, selection, order, options["differences"], room)
        html.add_passages(data, passages, selection, duplicate_of)
        every = np.arange(len(documents))
        names = list(chain.from_iterable(names_to_keep(collection, every[:0])))
        for gone in (row for row in changed.tolist() if not os.path.lexists(documents.path(row))):
            names[gone] = b""
        html.add_lists(data, selection, names, documents.are_parts(every), uncompared)
        page = html.render_page(data)
        target.write_raw([page])
        for line in filter(None, (selection.describe_omitted(), data["missing"])):
            console.say(line)
        console.say(f"the page has {len(page):,} bytes")
        return console.exit_code


def _list_uncompared(
    session: Session, collection: "Collection", seen: "list[Skipped]"
) -> dict[str, list[tuple[str, str]]]:
    """Return the names and details of what was not compared, by reason, but for what patterns leave
    out.

    seen : what this run skipped. Without DOCS, an earlier run has skipped it.
    """
    documents, listed = collection.documents, defaultdict(list)
    if not session.request.documents:
        typed = documents.typed_skipped
        seen = [replace(each.skipped, name=typed(each)) for each in collection.list_skipped()]
    for each in seen:
        if not each.reason.is_of_pattern:
            listed[str(each.reason)].append((printable(each.name), printable(each.detail)))
    for why, which in find_empty(collection).items():
        listed[why] += [(printable(name), "") for name in documents.typed_names(which)]
    return {why: names for why, names in listed.items() if names}


def _find_recurring(session: Session) -> dict[str, Any]:
    """Return the passages that recur in all documents, and places of each, as the page has them."""
    import numpy as np

    from lshdup.base.run import Run
    from lshdup.cli.commands.passages.listing import PassageListing
    from lshdup.views.passages import escape, shorten
    from lshdup.workspace.context import RunContext
    from lshdup.workspace.passages import load_or_find_passages

    request, store = session.request, session.workspace.store
    # What is said of the documents has been said.
    quiet = Run(session.run.arrays, session.run.jobs, session.console.progress)
    run = RunContext(
        quiet, store.folder if store is not None else None, request.given.get("secret", b"")
    )
    params = PassageParams()
    found = load_or_find_passages(run, request, params, (), run.memory)
    top = found.passages.take(np.arange(min(_RECURRING, len(found.passages))))
    listed: list[list[Any]] = []
    for piece in PassageListing(session, found, top).rows(whole=True, most=_PLACES):
        for _, tokens, places, documents, text, name, *where, _, _, of in zip(*piece, strict=True):
            if text is not None:
                listed.append([tokens, places, documents, escape(shorten(text, _LONGEST)), []])
            if listed:
                listed[-1][-1].append([printable(name), *where, of])
    return {"count": len(found.passages), "least": params.least, "listed": listed}


def _refuse_page_as_document(names: tuple[bytes, ...], path: Path) -> None:
    """Raise InputError if DOCS seem to name the page that is to be written.

    That is a page that does not exist, or the only name in DOCS.
    """
    for name in map(os.fsdecode, names):
        exists = os.path.lexists(name)
        if (
            path == Path("-")
            and name.lower().endswith((".html", ".htm"))
            and not os.path.isdir(name)
            and (not exists or len(names) == 1)
        ):
            others = [each for each in map(os.fsdecode, names) if each != name]
            gone = "" if exists else ", and is not there"
            message = f"{quoted(name)} is named as a document{gone}"
            raise InputError(
                message,
                "if the page is to be written there: "
                f"{quote_command('lshdup', 'report', *others, '-o', name)}",
            )


def _describe_documents(session: Session, store: Path) -> str:
    """Return the names in DOCS, or the store of the last run."""
    names = session.request.documents
    first = ", ".join(_readable(name) for name in names[:3])
    if len(names) > 3:
        return f"{first} and {len(names) - 3} more"
    return first or f"the last run in the store {store.resolve()}"


def _readable(argument: bytes) -> str:
    """Return a name as typed; for ".", ".." and the like, the folder that it means."""
    name = os.path.realpath(argument) if argument.strip(b"./") == b"" else argument
    return name.decode("utf-8", "backslashreplace")


def _newest_day(collection: "Collection") -> str:
    """Return the day of the newest document.

    The day of the run would make another page of the same documents.
    """
    mtimes = collection.documents.mtimes
    return (
        datetime.fromtimestamp(int(mtimes.max()) // 10**9, UTC).strftime("%-d %B %Y")
        if len(mtimes)
        else ""
    )


def _parameters(answer: PairsListed) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the run, for later readers of the page."""
    collection, plan = answer.collection, answer.plan
    shingle, sketch = collection.shingle, collection.sketch
    yield "threshold", f"{answer.threshold:g}"
    yield "shingles", f"{shingle.k} {shingle.tokens}"
    flags = {
        "--bag": shingle.bag,
        "--keep-case": shingle.keep_case,
        "--no-normalize": not shingle.normalize,
        "--hash-key": shingle.key,
    }
    for name in (name for name, is_set in flags.items() if is_set):
        yield name, "yes"
    if collection.shingle_filter is not None:
        yield (
            "removed from every set",
            count_of(
                len(collection.shingle_filter.template) + len(collection.shingle_filter.common),
                "shingle",
            ),
        )
    if plan is None:
        yield "found by", "the exact join of all sets"
    elif sketch is not None:
        yield "signatures", f"{sketch.scheme}, K = {sketch.perms}, seed {sketch.seed}"
        yield "found by", f"{plan.bands} bands of {plan.rows} rows"
    yield "made by", f"lshdup {__version__}"


#: Options that the command line in the page does not repeat.
_NOT_REPEATED = set(
    "threshold recall bands rows output nul hash_key jobs verbose quiet progress color".split()
)


def _clusters_command(ctx: click.Context, plan: "BandPlan | None") -> str:
    """Return the beginning of a command line that lists the groups of the page.

    It has the options that were typed and that `clusters` has too, but for the threshold, and no
    secret. The bands are those of the page: bands that are planned for a higher threshold may miss
    pairs that the page has.
    """
    from lshdup.cli.commands.clusters import command as clusters

    known = {param.name for param in clusters.params} - _NOT_REPEATED
    words = ["lshdup", "clusters", *map(os.fsdecode, ctx.params["docs"])]
    for param in ctx.command.params:
        name = param.name or ""
        if not isinstance(param, click.Option) or name not in known or not is_typed(ctx, name):
            continue
        value = ctx.params[name]
        flags = param.opts if value else param.secondary_opts
        for each in value if param.multiple else [value]:
            words.append(max(flags or param.opts, key=len))
            words += (
                []
                if param.is_flag
                else [os.fsdecode(each) if isinstance(each, bytes) else str(each)]
            )
    if plan is not None:
        words += ["--bands", str(plan.bands), "--rows", str(plan.rows)]
    return quote_command(*words).strip("`")


def _find_passages(
    session: Session,
    answer: PairsListed,
    selection: "Selection",
    order: "NDArray[np.int64]",
    most: int | None,
    room: int,
) -> "Passages":
    """Return the passages in which documents differ.

    order : documents in the order in which one of a group is kept.
    most : pairs that have passages; None: some, as far as there is room.
    room : bytes of the page that are left.
    """
    from lshdup.compare.clusters import choose_representatives
    from lshdup.shingling.inspection import locate_tokens
    from lshdup.views.passages import Passages, find_passages

    collection = answer.collection
    shingle = collection.shingle
    if shingle.tokens == "ids":
        return Passages(without={None: "ids are no text"})

    @lru_cache(16)
    def read(document: int) -> "LocatedText | str":
        name = collection.documents.names[document]
        try:
            text = NamedDocument(name, document, collection=collection).text(shingle)
        except InputError:
            return "a document cannot be read any more"
        return _TOO_LONG if len(text) > _MOST_BYTES else locate_tokens(text, shingle)

    best = choose_representatives(session.run, answer.duplicate_of, order).tolist()
    number, room = (_PASSAGES, room) if most is None else (most, 1 << 62)
    groups = (
        (best[kept], [best[member] for member in members])
        for kept, members in selection.list_groups(number)
    )
    pairs = selection.pairs
    rest = zip(pairs.left[::-1].tolist(), pairs.right[::-1].tolist(), strict=True)
    others = ((best[a], best[b]) for a, b in rest)
    return find_passages(groups, others, read, shingle, number, room, session.console.progress)
