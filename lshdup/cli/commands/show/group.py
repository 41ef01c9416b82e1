"""`lshdup show NAME`: the group of a document, and what its members have otherwise."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lshdup.base.messages import decimal, join_names, printable
from lshdup.cli.columns import column_names
from lshdup.cli.messages import say_last_run
from lshdup.cli.output import Target, print_rows
from lshdup.cli.session import Session
from lshdup.errors import InputError
from lshdup.params import ClusterParams
from lshdup.workspace.lookup import NamedDocument, look_up

if TYPE_CHECKING:
    from lshdup.base.messages import Cell
    from lshdup.shingling.inspection import LocatedText
    from lshdup.views.variants import Variant

#: Tokens around a passage, and most characters of a passage or variant.
_CONTEXT, _LONGEST = 6, 240

#: Names of the documents that have a variant.
_NAMED = 5


def show_group(session: Session, options: dict[str, Any], target: Target) -> int:
    """Print the variants of the group of a document, and return the exit code."""
    import numpy as np

    from lshdup.shingling.inspection import locate_tokens
    from lshdup.views.variants import find_variants

    console, word = session.console, options["a"]
    indexed = session.workspace.load_or_build_index(session.request, save=False)
    say_last_run(console, indexed.collection)
    collection, params = indexed.collection, indexed.collection.shingle
    named = look_up(word, collection)
    if named.note:
        console.say(named.note)
    if named.index < 0:
        message = f"{printable(named.name)} is not in the store: its group is not known"
        raise InputError(message, "run `lshdup index DOCS` with it, or name two documents")
    rule = ClusterParams(keep=options["keep"] or "", prefer=options["prefer"])
    clusters = session.workspace.find_clusters(indexed, rule, session.request).clusters
    kept = int(clusters.representative[named.index])
    members = np.flatnonzero((clusters.representative == kept) & (kept >= 0))
    members = members[np.lexsort((members, -clusters.similarity[members], members != kept))]
    if len(members) < 2:
        console.say(
            f"{printable(named.name)} is alone: no document is {indexed.params.threshold:g} "
            "similar or more to it (-t asks for less)"
        )
        return console.exit_code
    names = collection.documents.typed_names(members)
    similarity = clusters.similarity[members].tolist()
    texts: list[LocatedText] = []
    read: list[int] = []
    for at, (name, index) in enumerate(zip(names, members.tolist(), strict=True)):
        document = NamedDocument(name, index, collection=collection)
        try:
            texts.append(locate_tokens(document.utf8(params), params))
            read.append(at)
        except InputError as error:
            if not at:
                raise
            console.error(error)
    variants = find_variants(texts[0], texts[1:], params)
    having = [names[at] for at in read[1:]]
    if target.style == "table" or (not target.format and not target.nul):
        same = ["", *collection.prints.words(members[1:], np.full(len(members) - 1, kept))]
        roles = ["keep"] + ["drop"] * (len(names) - 1)
        rows = [
            ("1", role, printable(name), decimal(each), "", "", word or "")
            for role, name, each, word in zip(roles, names, similarity, same, strict=True)
        ]
        target.write_lines(_picture(rows, texts[0], variants, having, target))
    else:
        columns = column_names("show-group")
        print_rows(console, target, columns, _rows(texts[0], variants, having))
    return console.exit_code


def _rows(
    kept: "LocatedText", variants: "list[Variant]", names: list[bytes]
) -> "Iterator[tuple[Cell, ...]]":
    from lshdup.views.comparison import extract_passage

    for number, variant in enumerate(variants, 1):
        passage = extract_passage(kept, variant.start, variant.end)
        words = (" ".join(text.split()) for text in (passage, variant.text))
        line, (before, after) = _line(kept, variant.start), words
        yield from ((number, line, before, after, names[member]) for member in variant.members)


def _line(kept: "LocatedText", token: int) -> int:
    """Return the number, from 1, of the line in which a token stands."""
    starts = kept.starts
    end = int(starts[token]) if token < len(starts) else len(kept.text.rstrip())
    return kept.text.count(b"\n", 0, end) + 1


def _picture(
    rows: Sequence[tuple[str, ...]],
    kept: "LocatedText",
    variants: "list[Variant]",
    names: list[bytes],
    target: Target,
) -> Iterator[str]:
    """Yield the lines for people: the members, then each passage with its variants."""
    from rich.text import Text

    from lshdup.cli.tables import common_folder, fold_cell, groups
    from lshdup.views.comparison import extract_passage
    from lshdup.views.terminal import MARKS, STYLES, fold_line, to_ansi
    from lshdup.views.token_diff import ADDED, REMOVED

    def mark(text: str, kind: str) -> Text:
        text = " ".join(text.split())
        text = (
            text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
        )
        opening, closing = ("", "") if target.colored and text else MARKS[kind]
        return Text(f"{opening}{printable(text)}{closing}", STYLES[kind])

    def paint(text: Text) -> Iterator[str]:
        for line in fold_line(text, target.columns):
            line.rstrip()
            yield to_ansi(line) if target.colored else line.plain

    yield from groups(rows, target.columns, target.colored)
    folder = common_folder([row[2] for row in rows])
    short = [printable(name).removeprefix(folder) for name in names]
    last = None
    for variant in variants:
        place = variant.start, variant.end
        if place != last:
            sides = (
                extract_passage(kept, max(0, variant.start - _CONTEXT), variant.start),
                extract_passage(kept, variant.end, min(len(kept.starts), variant.end + _CONTEXT)),
            )
            before, after = (printable(" ".join(side.split())) for side in sides)
            passage = mark(extract_passage(kept, *place), REMOVED)
            yield ""
            yield from paint(
                Text.assemble(
                    (f"line {_line(kept, variant.start)}: ", "dim"),
                    f"{before} ".lstrip(),
                    passage,
                    f" {after}",
                )
            )
        last = place
        who = join_names([short[member] for member in variant.members], _NAMED)
        count = f"{len(variant.members):,} of {len(names):,}: {who}"
        text = mark(variant.text, ADDED) if variant.text else Text("without it")
        yield from paint(Text.assemble("  ", text, (f"  {count}", "dim")))
    unchanged = set(range(len(names))) - {at for variant in variants for at in variant.members}
    if unchanged:
        who = join_names([short[at] for at in sorted(unchanged)], _NAMED)
        yield ""
        yield from fold_cell(
            f"no difference in words: {len(unchanged):,} of {len(names):,}: {who}",
            target.columns or 1 << 30,
        )
    yield ""
