"""`lshdup show A B`: why two documents match, and where they differ; and `lshdup show NAME`: the
group of a document, and what its members have otherwise.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from rich.text import Text

from lshdup.base.forms import visible_text
from lshdup.base.params import ShingleParams, SketchParams
from lshdup.base.wording import Cell, count_of, decimal, join_names, json_cell, printable
from lshdup.cli.columns import COMPARISON, DOCUMENT, Columns, columns_of
from lshdup.cli.layouts import common_folder, fold_cell, groups
from lshdup.cli.messages import say_last_run
from lshdup.cli.options import ShowOptions
from lshdup.cli.output import Target, print_rows
from lshdup.cli.session import Session
from lshdup.collection.collection import Collection
from lshdup.errors import InputError
from lshdup.shingling.inspection import LocatedText, list_shingles, locate_tokens
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.views import comparison, terminal
from lshdup.views.changes import ADDED, ALIKE, REMOVED
from lshdup.views.pair_view import Variant, VariantCollector, shorten
from lshdup.workspace.accepted import find_accepted
from lshdup.workspace.comparing import load_or_find_clusters
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.loading import load_or_build_filter
from lshdup.workspace.lookup import (
    DocumentRead,
    NamedDocument,
    look_up,
    merge_shingle_params,
    of_documents,
)


def show_documents(
    session: Session, options: ShowOptions, target: Target, last: Collection | None
) -> int:
    """Print the comparison of two documents, or their shingles, and return the exit code.

    last : the collection of the last run, in which names are looked up.
    """
    console = session.console
    named, stored, params, shingle_filter = look_up_documents(session, last, *options.both)
    if named[0].name == named[1].name:
        console.say(f"A and B are one and the same document: {printable(named[0].name)}")
    a, b = (each.read(params) for each in named)
    if options.shingles:
        columns = columns_of("show-shingles", optional=shingle_filter is not None)
        rows = _list_shingles(a.text.utf8, b.text.utf8, params, shingle_filter)
        print_rows(console, target, columns, rows)
        return console.exit_code()
    for each in (a, b):
        if each.has_changed(params):
            console.warn(
                f"{printable(each.named.name)} has changed since it was indexed; its present text"
                " is shown"
            )
    sketch = stored.sketch if stored is not None else None
    texts = a.text.utf8, b.text.utf8
    both = comparison.compare(
        session.run, *texts, params, sketch, shingle_filter, sharing=options.shared
    )
    if target.format == "json":
        answer = _object(a, b, both, params)
        target.write_lines([json.dumps(answer, indent=1, default=json_cell)])
    elif target.is_for_people:
        target.write_lines(_picture(a, b, both, params, target, options, sketch))
    else:
        print_rows(console, target, *_listing(both))
    return console.exit_code()


def look_up_documents(
    session: Session, last: Collection | None, *words: bytes
) -> tuple[list[NamedDocument], Collection | None, ShingleParams, ShingleFilter | None]:
    """Return named documents, the collection that they are of, and what makes their shingle sets.

    last : the collection of the last run. Which one it is, and what else a name may mean, is said.
    """
    named = [look_up(word, last) for word in words]
    stored = of_documents(last, named)
    if stored is not None:
        say_last_run(session.console, stored)
    for note in (each.note for each in named if each.note):
        session.console.say(note)
    params = merge_shingle_params(stored, session.request.given)
    chosen = load_or_build_filter(session.workspace, session.request, params, stored)
    return named, stored, params, chosen


def _list_shingles(
    a: bytes, b: bytes, params: ShingleParams, shingle_filter: ShingleFilter | None
) -> Iterator[tuple[Cell, ...]]:
    """Yield the shingles of both and of A in the order of A, then those of B only."""
    of_a, of_b = (
        {element: (number, tokens) for element, number, tokens in list_shingles(text, params)}
        for text in (a, b)
    )
    for where, listed, is_wanted in (
        ("both", of_a, lambda element: element in of_b),
        ("a", of_a, lambda element: element not in of_b),
        ("b", of_b, lambda element: element not in of_a),
    ):
        for element in filter(is_wanted, listed):
            why = () if shingle_filter is None else (shingle_filter.explain(element),)
            yield (where, *listed[element], *why)


def _listing(both: comparison.Comparison) -> tuple[Columns, Iterator[tuple[Cell, ...]]]:
    """Return the columns, and the rows: the differences, or what is shared."""
    is_shared = isinstance(both.texts, comparison.SharedTexts)
    columns = columns_of("show-shared" if is_shared else "show")
    return columns, list_changes(both.texts)


def list_changes(texts: comparison.Alignment) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of `show`, or of `show-shared`."""
    is_shared = isinstance(texts, comparison.SharedTexts)
    for change in texts.changes:
        kind, a, a_end, b, b_end = change
        of_a, of_b = (
            None if kind == ALIKE and not is_shared else _extract_words(*each)
            for each in ((texts.a, a, a_end), (texts.b, b, b_end))
        )
        if is_shared:
            lines = comparison.find_line(texts.a, a), comparison.find_line(texts.b, b)
            yield change.tokens, a, b, *lines, of_a, of_b
        else:
            yield kind, change.tokens, a, b, of_a, of_b


def _extract_words(text: LocatedText, start: int, end: int) -> str:
    """Return tokens as written, with one blank between words."""
    return " ".join(comparison.extract_passage(text, start, end).split())


def _describe_document(document: DocumentRead, tokens: int, shingles: int) -> dict[str, Any]:
    text = document.text
    facts = document.named.name, document.size, text.codec, bool(text.encoding), text.page
    more = bool(text.office), tokens, shingles, text.office, text.packed
    return dict(zip(DOCUMENT, (*facts, *more), strict=True))


def _object(
    a: DocumentRead, b: DocumentRead, both: comparison.Comparison, params: ShingleParams
) -> dict[str, Any]:
    texts, (of_a, of_b) = both.texts, both.sizes
    columns, rows = _listing(both)
    listed = [dict(zip(columns, row, strict=True)) for row in rows]
    return {
        "a": _describe_document(a, len(texts.a.tokens), of_a),
        "b": _describe_document(b, len(texts.b.tokens), of_b),
        **{name: getattr(both, name) for name in COMPARISON},
        "shingle": params.to_json(),
        "passages" if isinstance(texts, comparison.SharedTexts) else "differences": listed,
    }


def _picture(
    a: DocumentRead,
    b: DocumentRead,
    both: comparison.Comparison,
    params: ShingleParams,
    target: Target,
    options: ShowOptions,
    sketch: SketchParams | None,
) -> Iterator[str]:
    """Yield the lines for people: what both are, how much they share, and where they differ, or
    what they share.
    """
    noun, texts, by_lines = terminal.NOUNS[params.tokens], both.texts, options.by_lines
    yield from describe_documents(a, b, both, params, target.columns)
    yield from describe_shares(both, options.measure, sketch)
    yield terminal.summarize(texts, noun)
    if by_lines is None:
        by_lines = not options.shared and comparison.have_same_lines(texts)
    if len(texts.changes) == 1 and both.similarity == 1.0 and not options.shared:
        is_equal = a.text.utf8 == b.text.utf8
        unseen = terminal.UNSEEN.get(params.tokens, "case or layout")
        if visible_text(a.text.utf8) == visible_text(b.text.utf8):
            unseen = "what is attached"
        same = f"they differ in no {noun}, only in {unseen}"
        yield "what was read of the two texts is equal" if is_equal else same
        if is_equal or not by_lines:
            yield ""
            return
    yield ""
    if options.shared and not texts.changes:
        return
    wide = target.columns is not None and target.columns >= terminal.WIDE and not by_lines
    side = options.layout == "side" or (options.layout is None and wide)
    context = terminal.LINES if by_lines else terminal.CONTEXT[params.tokens]
    context = context if options.context is None else options.context
    width = target.columns or (160 if side else None)
    shown = comparison.align_lines(texts.a.text, texts.b.text) if by_lines else texts
    unit = "line" if by_lines else noun
    layout = terminal.Layout(side, width, target.colored, context, unit, options.shared)
    yield from terminal.render(shown, layout)
    yield ""  # It separates the outputs of several runs, as of xargs.


def describe_documents(
    a: DocumentRead,
    b: DocumentRead,
    both: comparison.Comparison,
    params: ShingleParams,
    columns: int | None,
) -> Iterator[str]:
    """Yield the lines that say what the documents are: one for each, if there is room.

    columns : of a line; None: there is always room.
    """
    heads, texts = [], (both.texts.a, both.texts.b)
    sides = zip("AB", (a, b), texts, both.sizes, strict=True)
    for letter, document, located, size in sides:
        facts = [count_of(document.size, "byte")]
        facts += [_describe_format(document)] if params.tokens != "ids" else []
        facts += [count_of(len(located.tokens), terminal.NOUNS[params.tokens])]
        facts += [count_of(size, "shingle")]
        heads.append((f"{letter}  {printable(document.named.name)}:", ", ".join(facts)))
    fits = columns is None or all(
        len(name) + 1 + len(facts_line) <= columns for name, facts_line in heads
    )
    for name, facts_line in heads:
        yield from [f"{name} {facts_line}"] if fits else [name, f"   {facts_line}"]


def describe_shares(
    both: comparison.Comparison, measure: str, sketch: SketchParams | None
) -> Iterator[str]:
    """Yield the lines that say how much the shingle sets share."""
    shares = f"similarity {decimal(both.similarity)}"
    if isinstance(both.texts, comparison.SharedTexts):
        of_a, of_b = decimal(both.share_a), decimal(both.share_b)
        shares = f"containment {of_a} of A, {of_b} of B, {shares}"
    elif measure == "containment":
        smaller = "A" if both.only_a <= both.only_b else "B"
        shares = f"containment {decimal(both.containment)} of {smaller}, {shares}"
    yield (
        f"{shares}, exact: {count_of(both.shared, 'shingle')} shared, "
        f"{both.only_a:,} only in A, {both.only_b:,} only in B"
    )
    if both.removed_a or both.removed_b:
        yield (
            f"removed before: {count_of(both.removed_a, 'shingle')} of A, "
            f"{both.removed_b:,} of B, by --template or --ignore-common"
        )
    if both.estimate is not None and sketch is not None:
        yield (
            f"estimate {decimal(both.estimate)} ± {both.standard_error:.4f}, by "
            f"signatures: {sketch.scheme}, K = {sketch.perms}"
        )


def _describe_format(document: DocumentRead) -> str:
    """Return the formats of a document from the outside in, for instance gzip, HTML UTF-8."""
    parts = [document.text.packed] if document.text.packed else []
    if document.text.office:
        parts.append("mail" if document.text.office == "eml" else document.text.office.upper())
    else:
        codec = document.text.codec.upper().replace("UTF-8-SIG", "UTF-8 with byte-order mark")
        page = "HTML " if document.text.page else ""
        parts.append(f"{page}{codec}{' (detected)' if document.text.encoding else ''}")
    return ", ".join(parts)


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
    prints = collection.prints.text_prints
    apart = find_accepted(session.run, None, [collection.documents], params, prints)
    found = load_or_find_clusters(
        session.workspace, indexed, options.make_rule(), session.request, apart
    )
    clusters = found.clusters
    kept, *others = members = clusters.group_of(named.index)
    if not others:
        console.say(
            f"{printable(named.name)} is alone: no document is {indexed.params.threshold:g} "
            "similar or more to it (-t asks for less)"
        )
        return console.exit_code()
    names = collection.documents.typed_names(np.array(members))

    def read(at: int) -> LocatedText:
        document = NamedDocument(names[at], members[at], collection=collection)
        return locate_tokens(document.utf8(params), params)

    text, collector, having = read(0), VariantCollector(), list[bytes]()
    for at in range(1, len(members)):
        try:
            collector.add(len(having), comparison.align_tokens(text, read(at), params))
            having.append(names[at])
        except InputError as error:
            console.error(error)
    variants = collector.variants()
    if target.is_for_people:
        same = ["", *collection.prints.words(np.array(others), np.full(len(others), kept))]
        roles = ["keep"] + ["drop"] * len(others)
        similarity = clusters.similarity[members].tolist()
        rows = [
            ("1", role, printable(name), decimal(each), "", "", word or "")
            for role, name, each, word in zip(roles, names, similarity, same, strict=True)
        ]
        target.write_lines(_group_picture(rows, text, variants, having, target))
    else:
        print_rows(console, target, columns_of("show-group"), _group_rows(text, variants, having))
    return console.exit_code()


def _group_rows(
    kept: LocatedText, variants: Sequence[Variant], names: list[bytes]
) -> Iterator[tuple[Cell, ...]]:
    for number, variant in enumerate(variants, 1):
        before = _extract_words(kept, variant.start, variant.end)
        after, line = " ".join(variant.text.split()), comparison.find_line(kept, variant.start)
        yield from ((number, line, before, after, names[member]) for member in variant.members)


def _group_picture(
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
    layout = terminal.Layout(width=target.columns, color=target.colored)

    for (start, end), of_place in groupby(variants, lambda each: (each.start, each.end)):
        before = printable(_extract_words(kept, max(0, start - _CONTEXT), start))
        after = printable(_extract_words(kept, end, min(len(kept.starts), end + _CONTEXT)))
        words = shorten(_extract_words(kept, start, end), _LONGEST)
        passage = terminal.mark(words, REMOVED, layout)
        place = (f"line {comparison.find_line(kept, start)}: ", "dim")
        yield ""
        yield from terminal.paint(
            Text.assemble(place, f"{before} ".lstrip(), passage, f" {after}"), layout, layout.width
        )
        for variant in of_place:
            who = join_names([short[member] for member in variant.members], _NAMED)
            count = f"  {len(variant.members):,} of {len(names):,}: {who}"
            instead = shorten(" ".join(variant.text.split()), _LONGEST)
            text = terminal.mark(instead, ADDED, layout) if variant.text else Text("without it")
            yield from terminal.paint(
                Text.assemble("  ", text, (count, "dim")), layout, layout.width
            )
    unchanged = set(range(len(names))) - {at for variant in variants for at in variant.members}
    if unchanged:
        who = join_names([short[at] for at in sorted(unchanged)], _NAMED)
        line = f"no difference in words: {len(unchanged):,} of {len(names):,}: {who}"
        yield from ("", *fold_cell(line, target.columns))
    yield ""
