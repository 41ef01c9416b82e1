"""`lshdup show NAME`: the group of a document, and what its members have otherwise."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from rich.text import Text

from lshdup.base.messages import Cell, decimal, join_names, printable
from lshdup.cli.columns import column_names
from lshdup.cli.messages import say_last_run
from lshdup.cli.options import ShowOptions
from lshdup.cli.output import Target, print_rows
from lshdup.cli.session import Session
from lshdup.cli.tables import common_folder, fold_cell, groups
from lshdup.errors import InputError
from lshdup.params import ClusterParams
from lshdup.shingling.inspection import LocatedText, locate_tokens
from lshdup.views.changes import ADDED, REMOVED
from lshdup.views.comparison import align_tokens, extract_passage
from lshdup.views.differences import Variant, VariantCollector, shorten
from lshdup.views.terminal import Layout, mark, paint
from lshdup.workspace.clustering import load_or_find_clusters
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.lookup import NamedDocument, look_up

#: Tokens around a passage, and most characters of a passage or variant.
_CONTEXT, _LONGEST = 6, 240

#: Names of the documents that have a variant.
_NAMED = 5


def show_group(session: Session, options: ShowOptions, target: Target) -> int:
    """Print the variants of the group of a document, and return the exit code."""
    console = session.console
    indexed = load_or_build_index(session.workspace, session.request)
    say_last_run(console, indexed.collection)
    collection, params = indexed.collection, indexed.collection.shingle
    named = look_up(options.a, collection)
    if named.note:
        console.say(named.note)
    if named.index < 0:
        message = f"{printable(named.name)} is not in the store: its group is not known"
        raise InputError(message, "run `lshdup index DOCS` with it, or name two documents")
    rule = ClusterParams(keep=options.keep or "", prefer=options.prefer)
    found = load_or_find_clusters(session.workspace, indexed, rule, session.request)
    clusters = found.clusters
    kept, *others = members = clusters.group_of(named.index)
    if not others:
        console.say(
            f"{printable(named.name)} is alone: no document is {indexed.params.threshold:g} "
            "similar or more to it (-t asks for less)"
        )
        return console.exit_code
    names = collection.documents.typed_names(np.array(members))

    def read(at: int) -> LocatedText:
        document = NamedDocument(names[at], members[at], collection=collection)
        return locate_tokens(document.utf8(params), params)

    text, collector, having = read(0), VariantCollector(), list[bytes]()
    for at in range(1, len(members)):
        try:
            collector.add(len(having), align_tokens(text, read(at), params))
            having.append(names[at])
        except InputError as error:
            console.error(error)
    variants = collector.variants()
    if target.style == "table" or (not target.format and not target.nul):
        same = ["", *collection.prints.words(np.array(others), np.full(len(others), kept))]
        roles = ["keep"] + ["drop"] * len(others)
        similarity = clusters.similarity[members].tolist()
        rows = [
            ("1", role, printable(name), decimal(each), "", "", word or "")
            for role, name, each, word in zip(roles, names, similarity, same, strict=True)
        ]
        target.write_lines(_picture(rows, text, variants, having, target))
    else:
        print_rows(console, target, column_names("show-group"), _rows(text, variants, having))
    return console.exit_code


def _rows(
    kept: LocatedText, variants: Sequence[Variant], names: list[bytes]
) -> Iterator[tuple[Cell, ...]]:
    for number, variant in enumerate(variants, 1):
        passage = extract_passage(kept, variant.start, variant.end)
        before, after = (" ".join(text.split()) for text in (passage, variant.text))
        line = _line(kept, variant.start)
        yield from ((number, line, before, after, names[member]) for member in variant.members)


def _line(kept: LocatedText, token: int) -> int:
    """Return the number, from 1, of the line in which a token stands."""
    starts = kept.starts
    end = int(starts[token]) if token < len(starts) else len(kept.text.rstrip())
    return kept.text.count(b"\n", 0, end) + 1


def _picture(
    rows: Sequence[tuple[str, ...]],
    kept: LocatedText,
    variants: Sequence[Variant],
    names: list[bytes],
    target: Target,
) -> Iterator[str]:
    """Yield the lines for people: the members, then each passage with its variants."""
    yield from groups(rows, target.columns, target.colored)
    folder = common_folder([row[2] for row in rows])
    short = [printable(name).removeprefix(folder) for name in names]
    layout = Layout(width=target.columns, color=target.colored)

    def words(start: int, end: int) -> str:
        return " ".join(extract_passage(kept, start, end).split())

    for (start, end), of_place in groupby(variants, lambda each: (each.start, each.end)):
        before = printable(words(max(0, start - _CONTEXT), start))
        after = printable(words(end, min(len(kept.starts), end + _CONTEXT)))
        passage = mark(shorten(words(start, end), _LONGEST), REMOVED, layout)
        place = (f"line {_line(kept, start)}: ", "dim")
        yield ""
        yield from paint(
            Text.assemble(place, f"{before} ".lstrip(), passage, f" {after}"), layout, layout.width
        )
        for variant in of_place:
            who = join_names([short[member] for member in variant.members], _NAMED)
            count = f"  {len(variant.members):,} of {len(names):,}: {who}"
            instead = shorten(" ".join(variant.text.split()), _LONGEST)
            text = mark(instead, ADDED, layout) if variant.text else Text("without it")
            yield from paint(Text.assemble("  ", text, (count, "dim")), layout, layout.width)
    unchanged = set(range(len(names))) - {at for variant in variants for at in variant.members}
    if unchanged:
        who = join_names([short[at] for at in sorted(unchanged)], _NAMED)
        line = f"no difference in words: {len(unchanged):,} of {len(names):,}: {who}"
        yield from ("", *fold_cell(line, target.columns or 1 << 30))
    yield ""
