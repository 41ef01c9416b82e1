"""The page of `lshdup report`: what is in it, and what is said of it."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import PassageParams, ShingleParams
from lshdup.base.run import Run
from lshdup.base.skipped import Skipped
from lshdup.base.version import __version__
from lshdup.base.wording import count_of, printable, quote_command
from lshdup.cli.commands.clusters import command as clusters_command
from lshdup.cli.console import Console
from lshdup.cli.find_pairs import find_pairs, warn_of_changed
from lshdup.cli.help import Option, is_set, is_typed
from lshdup.cli.listings.passages import PassageListing
from lshdup.cli.messages import describe_rule, find_empty, warn_of_changes
from lshdup.cli.options import ReportOptions
from lshdup.cli.output import Target
from lshdup.cli.session import Session
from lshdup.collection.keep_rules import preference
from lshdup.collection.name_lists import names_to_keep
from lshdup.collection.set_source import set_source
from lshdup.compare.clusters import (
    choose_representatives,
    cluster_pairs,
    expand_clusters,
    rank_documents,
)
from lshdup.errors import InputError
from lshdup.evaluation.histogram import list_thresholds
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.candidates import documents_to_compare
from lshdup.shingling.inspection import locate_shingles, locate_tokens
from lshdup.sources.document_list import DocumentList
from lshdup.views import html
from lshdup.views.comparison import align_tokens, find_shared
from lshdup.views.pair_view import Differences, Text, escape, find_differences, shorten
from lshdup.views.selection import Selection, select, select_pairs
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


def write_shared_page(session: Session, options: ReportOptions, target: Target) -> int:
    """Write the page of pairs and of what they share, and return the exit code."""
    console = session.console
    run: Run = session.workspace
    skipped: list[Skipped] = []
    console.on_skipped = skipped.append
    opened, _, pairs = find_pairs(session, options)
    sides, lists = opened.sides, opened.lists
    name_sizes = np.concatenate([each.names.sizes for each in lists])
    thresholds = list_thresholds(opened.params.threshold, _STEP)
    selection = select_pairs(run, pairs, name_sizes, thresholds, options.most or 0)
    listed, named = selection.pairs, np.sort(selection.kinds)
    changed = warn_of_changed(session, opened, named)
    uncompared = _list_uncompared(session, opened, skipped)
    what = _describe_documents(session)
    facts = html.Facts(
        what=printable(f"{what} against {_join(options.against)}" if options.against else what),
        changed=len(changed),
        shared=options.measure,
        **_describe_run(session, opened, uncompared),
    )
    every = np.arange(len(sides.sizes))
    data = html.collect_data(
        run, selection, every, sides.sizes, every, opened.names, facts, sides.prints.compare
    )
    data["documents"]["line"] = list(range(len(named)))
    data["pairs"]["same"] = sides.prints.compare(listed.left, listed.right).tolist()
    is_estimate = pairs.is_estimate(listed.left, listed.right)
    data["pairs"]["estimated"] = np.flatnonzero(is_estimate).tolist()
    html.add_lists(data, selection, opened.names(named), np.zeros(len(named), bool), uncompared)
    room = _PAGE_BYTES - len(html.render_page(data))
    groups = ((int(a), [int(b)]) for a, b in zip(listed.left, listed.right, strict=True))
    found = Differences(without={None: "ids are no text"})
    if opened.here.shingle.tokens != "ids":
        params, chosen = opened.here.shingle, opened.here.shingle_filter
        align = partial(find_shared, shingle_filter=chosen)
        read = _make_reader(opened, locate_shingles, changed)
        found = find_differences(run, groups, read, align, params, *_limit(options, room))
    html.add_differences(data, found, selection, every)
    return _write(console, target, data, selection)


def _write(console: Console, target: Target, data: dict[str, Any], selection: Selection) -> int:
    """Write a page, say what it has not, and return the exit code."""
    page = html.render_page(data)
    target.write_raw([page])
    for line in filter(None, (selection.describe_omitted(), data["missing"])):
        console.say(line)
    console.say(f"the page has {len(page):,} bytes")
    return console.exit_code()


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
    rule = options.make_rule()
    preferred = preference(run, documents, collection.sizes, rule, session.request.documents)
    order = preferred.order
    thresholds, most = list_thresholds(opened.params.threshold, _STEP), options.most or 0
    names, sizes, compare = documents.names, collection.sizes, collection.prints.compare
    selection = select(
        run, distinct_pairs, pairs, duplicate_of, order, names.sizes, thresholds, most, changed
    )
    uncompared = _list_uncompared(session, opened, skipped)
    facts = html.Facts(
        what=printable(_describe_documents(session)),
        kept=describe_rule(rule, documents),
        command=printable(_clusters_command(ctx, plan)),
        changed=len(changed),
        **_describe_run(session, opened, uncompared),
    )
    typed = documents.typed_names
    data = html.collect_data(run, selection, duplicate_of, sizes, order, typed, facts, compare)
    source = set_source(session.workspace, collection)
    members = documents_to_compare(run, duplicate_of, collection.sizes)
    ranked = rank_documents(run, members, duplicate_of, order)
    groups = cluster_pairs(run, distinct_pairs, ranked, len(documents), opened.params.threshold)
    clusters = expand_clusters(groups, duplicate_of, order)
    data["folders"] = describe_folders(run, collection, clusters, source)
    if options.passages_of_corpus:
        data["recurring"] = _find_recurring(run, session)
    room = _PAGE_BYTES - len(html.render_page(data))
    found = _find_differences(run, opened, selection, order, options, room)
    html.add_differences(data, found, selection, duplicate_of)
    every = np.arange(len(documents))
    stays = list(chain.from_iterable(names_to_keep(collection, every[:0])))
    for gone in (row for row in changed.tolist() if not os.path.lexists(documents.path(row))):
        stays[gone] = b""
    html.add_lists(data, selection, stays, documents.are_parts(every), uncompared)
    return _write(console, target, data, selection)


def _describe_run(
    session: Session, opened: Comparison, uncompared: Mapping[str, Sequence[object]]
) -> dict[str, Any]:
    """Return the facts that every page has."""
    console, plan = session.console, opened.plan
    counts = console.skipped_counts + console.other_skipped_counts
    return {
        "document_count": sum(map(len, opened.lists)),
        "bands": plan.bands if plan else 0,
        "rows": plan.rows if plan else 0,
        "newest": _newest_day(opened.lists),
        "skipped": counts | {why: len(of) for why, of in uncompared.items()},
        "parameters": [(name, printable(value)) for name, value in _parameters(opened)],
    }


def _list_uncompared(
    session: Session, opened: Comparison, seen: list[Skipped]
) -> dict[str, list[tuple[str, str]]]:
    """Return the names and details of what was not compared, by reason, but for what patterns leave
    out.

    seen : what this run skipped. Without DOCS, an earlier run has skipped it.
    """
    here, listed = opened.here, defaultdict(list)
    if not session.request.documents:
        typed, known = here.documents.typed_skipped, here.list_skipped()
        before = [replace(each.skipped, name=typed(each)) for each in known]
        seen = before if opened.there is None else [*before, *seen]
    for each in seen:
        if not each.reason.is_of_pattern:
            listed[str(each.reason)].append((printable(each.name), printable(each.detail)))
    for collection in filter(None, (here, opened.there)):
        for why, which in find_empty(collection).items():
            names = collection.documents.typed_names(which)
            listed[why] += [(printable(name), "") for name in names]
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
    store = session.workspace.store
    last = f"the last run in the store {store and store.folder.resolve()}"
    return _join(session.request.documents) or last


def _join(names: tuple[bytes, ...]) -> str:
    first = ", ".join(_readable(name) for name in names[:3])
    return first if len(names) <= 3 else f"{first} and {len(names) - 3} more"


def _readable(argument: bytes) -> str:
    """Return a name as typed; for ".", ".." and the like, the folder that it means."""
    name = os.path.realpath(argument) if argument.strip(b"./") == b"" else argument
    return name.decode("utf-8", "backslashreplace")


def _newest_day(lists: Iterable[DocumentList]) -> str:
    """Return the day of the newest document.

    The day of the run would make another page of the same documents.
    """
    newest = [int(each.mtimes.max()) for each in lists if len(each)]
    if not newest:
        return ""
    return datetime.fromtimestamp(max(newest) // 10**9, UTC).strftime("%-d %B %Y")


def _parameters(opened: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the run, for later readers of the page."""
    collection, plan = opened.here, opened.plan
    shingle, sketch = collection.shingle, collection.sketch
    yield "threshold", f"{opened.params.threshold:g}"
    yield "measure", opened.method.measure
    yield "shingles", f"{shingle.k} {shingle.tokens}"
    for name, is_on in (
        ("--bag", shingle.bag),
        ("--keep-case", shingle.keep_case),
        ("--no-normalize", not shingle.normalize),
        ("--join-hyphens", shingle.join_hyphens),
        (f"--fold {shingle.fold}", shingle.fold != "none"),
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
    options: ReportOptions,
    room: int,
) -> Differences:
    """Return where documents differ.

    order : documents in the order in which one of a group is kept.
    room : bytes of the page that are left.
    """
    shingle = opened.here.shingle
    if shingle.tokens == "ids":
        return Differences(without={None: "ids are no text"})

    read, align = _make_reader(opened, locate_tokens), partial(align_tokens, params=shingle)
    best = choose_representatives(run, opened.sides.duplicate_of, order).tolist()
    number, room = _limit(options, room)
    pairs = selection.pairs
    rest = zip(pairs.left[::-1].tolist(), pairs.right[::-1].tolist(), strict=True)
    groups = chain(selection.list_groups(number), ((a, [b]) for a, b in rest))
    shown = ((best[kept], [best[member] for member in members]) for kept, members in groups)
    return find_differences(run, shown, read, align, shingle, number, room)


def _limit(options: ReportOptions, room: int) -> tuple[int, int]:
    """Return how many pairs are compared, and the bytes that there are for their texts."""
    return (_PASSAGES, room) if options.differences is None else (options.differences, 1 << 62)


def _make_reader(
    opened: Comparison, locate: Callable[[bytes, ShingleParams], Text], changed: Iterable[int] = ()
) -> Callable[[int], Text | str]:
    """Return a function that reads a document, or says why it cannot be compared.

    locate : cuts a text. changed : documents that are not what was compared.
    """
    gone, shingle = set(changed), opened.here.shingle

    @lru_cache(16)
    def read(document: int) -> Text | str:
        if document in gone:
            return "a document changed or vanished since it was compared"
        collection, at = opened.here, document
        if opened.there is not None and at >= len(opened.here.documents):
            collection, at = opened.there, at - len(opened.here.documents)
        try:
            named = NamedDocument(collection.documents.names[at], at, collection=collection)
            text = named.utf8(shingle)
        except InputError:
            return "a document cannot be read any more"
        return _TOO_LONG if len(text) > _MOST_BYTES else locate(text, shingle)

    return read
