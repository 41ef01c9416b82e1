"""The page of `lshdup report`: what is in it, and what is said of it."""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from lshdup.base.run import Run
from lshdup.base.skipped import Skipped
from lshdup.base.wording import count_of, printable, quote_command
from lshdup.cli.commands.clusters import command as clusters_command
from lshdup.cli.commands.passages_listing import PassageListing
from lshdup.cli.find_pairs import find_pairs
from lshdup.cli.help import Option, is_set, is_typed
from lshdup.cli.messages import describe_rule, find_empty, warn_of_changes
from lshdup.cli.options import ReportOptions
from lshdup.cli.output import Target
from lshdup.cli.session import Session
from lshdup.collection.collection import Collection
from lshdup.collection.name_lists import names_to_keep
from lshdup.collection.set_source import set_source
from lshdup.compare.clusters import (
    choose_representatives,
    cluster_pairs,
    expand_clusters,
    rank_documents,
)
from lshdup.compare.keep_rules import preference
from lshdup.errors import InputError
from lshdup.evaluation.histogram import list_thresholds
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.candidates import documents_to_compare
from lshdup.params import ClusterParams, PassageParams
from lshdup.shingling.inspection import LocatedText, locate_tokens
from lshdup.version import __version__
from lshdup.views import html
from lshdup.views.pair_view import Differences, escape, find_differences, shorten
from lshdup.views.selection import Selection, select
from lshdup.workspace.comparing import Comparison
from lshdup.workspace.folders import describe_folders
from lshdup.workspace.lookup import NamedDocument
from lshdup.workspace.passages import load_or_find_passages
from lshdup.workspace.workspace import Workspace

#: The distance of two thresholds of the slider.
_STEP = 0.005

#: Bytes of a page that no option makes larger, and pairs whose differences are in it.
_PAGE_BYTES, _PASSAGES = 7_800_000, 5_000

#: Passages that recur in the page, places of each, and characters.
_RECURRING, _PLACES, _LONGEST = 200, 20, 2_000

#: Most bytes of a document whose passages are in the page; `lshdup show` takes seconds for more.
_MOST_BYTES = 1 << 20
_TOO_LONG = "a document has more than 1 MiB of text, for which there is `lshdup show`"


def write_page(ctx: click.Context, session: Session, options: ReportOptions, target: Target) -> int:
    """Write the page of all pairs, and return the exit code."""
    console = session.console
    run: Run = session.workspace
    skipped: list[Skipped] = []
    console.on_skipped = skipped.append
    opened, distinct_pairs, pairs = find_pairs(session, options)
    collection, duplicate_of, plan = opened.here, opened.sides.duplicate_of, opened.plan
    documents = collection.documents
    changed = warn_of_changes(session, documents, pairs.documents())
    rule = ClusterParams(keep=options.keep or "", prefer=options.prefer)
    preferred = preference(run, documents, collection.sizes, rule, session.request.documents)
    order = preferred.order
    for line in preferred.unused:
        console.warn(line)
    selection = select(
        run,
        distinct_pairs,
        pairs,
        duplicate_of,
        order,
        documents.names.sizes,
        list_thresholds(opened.params.threshold, _STEP),
        options.most or 0,
        changed,
    )
    uncompared = _list_uncompared(session, collection, skipped)
    facts = html.Facts(
        what=printable(_describe_documents(session)),
        document_count=len(documents),
        bands=plan.bands if plan else 0,
        rows=plan.rows if plan else 0,
        kept=describe_rule(rule, documents),
        command=printable(_clusters_command(ctx, plan)),
        newest=_newest_day(collection),
        changed=len(changed),
        skipped=console.skipped_counts | {why: len(of) for why, of in uncompared.items()},
        parameters=[(name, printable(value)) for name, value in _parameters(opened)],
    )
    data = html.collect_data(
        run,
        selection,
        duplicate_of,
        collection.sizes,
        order,
        documents.typed_names,
        facts,
        collection.prints.compare,
    )
    source = set_source(session.workspace, collection)
    members = documents_to_compare(run, duplicate_of, collection.sizes)
    ranked = rank_documents(run, members, duplicate_of, order)
    groups = cluster_pairs(run, distinct_pairs, ranked, len(documents), opened.params.threshold)
    clusters = expand_clusters(groups, duplicate_of, order)
    data["folders"] = describe_folders(run, collection, clusters, source)
    if options.passages_of_corpus:
        data["recurring"] = _find_recurring(run, session)
    room = _PAGE_BYTES - len(html.render_page(data))
    found = _find_differences(run, opened, selection, order, options.differences, room)
    html.add_differences(data, found, selection, duplicate_of)
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
    return console.exit_code()


def _list_uncompared(
    session: Session, collection: Collection, seen: list[Skipped]
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


def _find_recurring(run: Run, session: Session) -> dict[str, Any]:
    """Return the passages that recur in all documents, and places of each, as the page has them."""
    request = session.request
    # What is said of the documents has been said.
    quiet = Run(session.run.arrays, run.jobs, run.progress)
    alone = Workspace(quiet, session.workspace.store)
    params = PassageParams()
    found = load_or_find_passages(alone, request, params)
    top = found.passages.take(np.arange(min(_RECURRING, len(found.passages))))
    listed: list[list[Any]] = []
    for piece in PassageListing(run, found, top).rows(whole=True, most=_PLACES):
        for _, tokens, places, documents, text, name, *where, _, _, of in zip(*piece, strict=True):
            if text is not None:
                listed.append([tokens, places, documents, escape(shorten(text, _LONGEST)), []])
            if listed:
                listed[-1][-1].append([printable(name), *where, of])
    return {"count": len(found.passages), "least": params.least, "listed": listed}


def _describe_documents(session: Session) -> str:
    """Return the names in DOCS, or the store of the last run."""
    names = session.request.documents
    first = ", ".join(_readable(name) for name in names[:3])
    if len(names) > 3:
        return f"{first} and {len(names) - 3} more"
    return first or f"the last run in the store {session.store and session.store.resolve()}"


def _readable(argument: bytes) -> str:
    """Return a name as typed; for ".", ".." and the like, the folder that it means."""
    name = os.path.realpath(argument) if argument.strip(b"./") == b"" else argument
    return name.decode("utf-8", "backslashreplace")


def _newest_day(collection: Collection) -> str:
    """Return the day of the newest document.

    The day of the run would make another page of the same documents.
    """
    mtimes = collection.documents.mtimes
    if not len(mtimes):
        return ""
    return datetime.fromtimestamp(int(mtimes.max()) // 10**9, UTC).strftime("%-d %B %Y")


def _parameters(opened: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the run, for later readers of the page."""
    collection, plan = opened.here, opened.plan
    shingle, sketch = collection.shingle, collection.sketch
    yield "threshold", f"{opened.params.threshold:g}"
    yield "shingles", f"{shingle.k} {shingle.tokens}"
    for name, is_on in (
        ("--bag", shingle.bag),
        ("--keep-case", shingle.keep_case),
        ("--no-normalize", not shingle.normalize),
        ("--hash-key", shingle.key),
    ):
        if is_on:
            yield name, "yes"
    if (removed := collection.shingle_filter) is not None:
        count = len(removed.template) + len(removed.common)
        yield "removed from every set", count_of(count, "shingle")
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


def _clusters_command(ctx: click.Context, plan: BandPlan | None) -> str:
    """Return the beginning of a command line that lists the groups of the page.

    It has the settings of variables, and the options that were typed and that `clusters` has too,
    but for the threshold, and no secret. The bands are those of the page: bands that are planned
    for a higher threshold may miss pairs that the page has.
    """
    known = {param.name for param in clusters_command.params} - _NOT_REPEATED
    variables = [
        f"{param.envvar}={int(value) if isinstance(value, bool) else value}"
        for param in ctx.command.params
        if isinstance(param, Option) and param.variable and param.name in known
        if is_set(ctx, param.name) and (value := ctx.params[param.name]) is not None
    ]
    if plan is not None:
        variables += [f"LSHDUP_BANDS={plan.bands}", f"LSHDUP_ROWS={plan.rows}"]
    words = [*variables, "lshdup", "clusters", *map(os.fsdecode, ctx.params["docs"])]
    for param in ctx.command.params:
        name = param.name or ""
        if not isinstance(param, click.Option) or name not in known or not is_typed(ctx, name):
            continue
        value = ctx.params[name]
        flags = param.opts if value else param.secondary_opts
        for each in value if param.multiple else [value]:
            words.append(max(flags or param.opts, key=len))
            if not param.is_flag:
                words.append(os.fsdecode(each) if isinstance(each, bytes) else str(each))
    return quote_command(*words).strip("`")


def _find_differences(
    run: Run,
    opened: Comparison,
    selection: Selection,
    order: NDArray[np.int64],
    most: int | None,
    room: int,
) -> Differences:
    """Return where documents differ.

    order : documents in the order in which one of a group is kept.
    most : pairs that are compared; None: some, as far as there is room.
    room : bytes of the page that are left.
    """
    collection, shingle = opened.here, opened.here.shingle
    if shingle.tokens == "ids":
        return Differences(without={None: "ids are no text"})

    @lru_cache(16)
    def read(document: int) -> LocatedText | str:
        name = collection.documents.names[document]
        try:
            text = NamedDocument(name, document, collection=collection).utf8(shingle)
        except InputError:
            return "a document cannot be read any more"
        return _TOO_LONG if len(text) > _MOST_BYTES else locate_tokens(text, shingle)

    best = choose_representatives(run, opened.sides.duplicate_of, order).tolist()
    number, room = (_PASSAGES, room) if most is None else (most, 1 << 62)
    pairs = selection.pairs
    rest = zip(pairs.left[::-1].tolist(), pairs.right[::-1].tolist(), strict=True)
    groups = chain(selection.list_groups(number), ((a, [b]) for a, b in rest))
    shown = ((best[kept], [best[member] for member in members]) for kept, members in groups)
    return find_differences(run, shown, read, shingle, number, room)
