"""`lshdup show`."""

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.messages import count_of, decimal, printable
from lshdup.base.parts import visible_text
from lshdup.cli.columns import COMPARISON, column_names
from lshdup.cli.console import Console
from lshdup.cli.help import Command, plain_option, refuse, take
from lshdup.cli.messages import say_last_run
from lshdup.cli.options import (
    keep_options,
    list_columns,
    measure_option,
    output_options,
    run_options,
    shingle_options,
    threshold_option,
)
from lshdup.cli.output import OutputOptions, make_target, print_rows
from lshdup.cli.session import open_session
from lshdup.cli.types import DocumentName
from lshdup.errors import InputError
from lshdup.params import ClusterParams, ShingleParams, SketchParams
from lshdup.workspace.lookup import DocumentRead, look_up, merge_shingle_params, of_documents

if TYPE_CHECKING:
    from lshdup.base.messages import Cell
    from lshdup.cli.output import Target
    from lshdup.collection.collection import Collection
    from lshdup.shingling.shingle_filter import ShingleFilter
    from lshdup.views.comparison import Comparison


#: Options that say how a collection is made, which the group of a document comes from.
_DEFINE = (*(field.name for field in fields(ShingleParams)), "templates", "ignore_common")


@list_columns("show", "show-group", "show-folders", "show-shingles")
@click.command(
    "show",
    cls=Command,
    short_help="why two documents match, and where they differ",
    epilog="""\b
Examples:
  lshdup show sample_corpus/licences/ISC.txt sample_corpus/licences/MIT.txt
  lshdup index sample_corpus && lshdup show MIT.txt
""",
)
@click.argument("a", type=DocumentName(), metavar="A")
@click.argument("b", type=DocumentName(), metavar="[B]", required=False)
@plain_option(
    "--inline",
    "layout",
    flag_value="inline",
    help="One text, with what was removed, added and moved in it.",
)
@plain_option(
    "--side-by-side",
    "layout",
    flag_value="side",
    help="Two columns.  [default: of words, on terminals of 120 columns and more]",
)
@plain_option(
    "--lines/--words",
    "by_lines",
    default=None,
    help="Differences by lines, with line numbers, or by words in running text.  [default: by "
    "lines if both texts have lines that end at the same words]",
)
@plain_option("--context", type=click.IntRange(0), metavar="N",
              show_default="3 lines, 12 words, 60 characters",
              help="Lines, or words (or other tokens), to show around each difference; what is "
                   "alike beyond them is folded.")  # fmt: skip
@plain_option(
    "--shingles",
    is_flag=True,
    help="List the shingles instead: those of both, those of A only, those of B only.",
)
@measure_option
@threshold_option
@keep_options
@shingle_options
@run_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Show why two documents match: their similarity, what their shingle sets share, and where
    their texts differ. Of one document, show the group: what the others have instead of passages of
    the one that is kept, each variant once, with the documents that have it.

    A and B are names in the store or unique ends of names, files, or - for standard input. The
    similarity is without what --template and --ignore-common remove now, or did in the last run.
    Texts with the same lines are compared by lines, as they are written: - is a line of A only, +
    one of B only. Other texts are compared by words: differences of case, punctuation and layout
    alone are not marked then. [-removed-] and {+added+} are words of A and of B only; [~moved~] and
    {~moved~} stand elsewhere in the other. On a terminal, colours say it.

    Of two folders, show the documents that are in one only, have changed, or are the same, also
    under another path. They are of the store, or else are read now.

    With --format tsv, csv, json or jsonl: the differences as data (json: with all that is known of
    the two).
    """
    target = make_target(take(OutputOptions, options))
    if target.format in ("", "table") and not options["shingles"] and not options["nul"]:
        refuse(ctx, ("header",), "without --shingles, -0, or --format tsv or csv")
    if options["shingles"]:
        refuse(ctx, ("layout", "context", "by_lines", "measure"), "with --shingles")
    if options["b"] is None:
        refuse(ctx, ("max_rows",), "with one document")
        refuse(ctx, ("layout", "context", "by_lines", "shingles", "measure"), "with one document")
        refuse(ctx, _DEFINE, "with one document, whose group is that of the last run")
        ClusterParams(prefer=options["prefer"])  # is checked before anything is loaded
        with open_session(ctx) as session:
            from lshdup.cli.commands.show.group import show_group

            return show_group(session, options, target)
    refuse(ctx, ("keep", "prefer"), "with two documents")
    if options["a"] == options["b"] == b"-":
        message = "A and B are both standard input"
        raise InputError(message, "name a file for one of them")
    with open_session(ctx) as session:
        from lshdup.cli.commands.show.folders import are_folders, refuse_one_folder, show_folders

        last = session.load_last_collection()
        if are_folders(last, (options["a"], options["b"])):
            refuse(ctx, ("layout", "context", "by_lines", "shingles", "measure"), "with folders")
            return show_folders(session, options, target, last)
        refuse_one_folder((options["a"], options["b"]))
        refuse(ctx, ("threshold",), "with two documents")
        if not options["shingles"]:
            refuse(ctx, ("max_rows",), "without --shingles")
        named = [look_up(options[name], last) for name in "ab"]
        stored = of_documents(last, named)
        if stored is not None:
            say_last_run(session.console, stored)
        params = merge_shingle_params(stored, session.request.given)
        a, b = (each.read(params) for each in named)
        for each in (a, b):
            if each.named.note:
                session.console.say(each.named.note)
        shingle_filter = session.workspace.load_or_build_filter(session.request, params, stored)
        if options["shingles"]:
            columns = column_names("show-shingles", optional=shingle_filter is not None)
            print_rows(
                session.console,
                target,
                columns,
                _list_shingles(a.text.utf8, b.text.utf8, params, shingle_filter),
            )
            return session.console.exit_code
        from lshdup.views.comparison import compare

        for each in (a, b):
            _warn_if_changed(session.console, each, params)
        comparison = compare(a.text.utf8, b.text.utf8, params, _sketch(stored), shingle_filter)
        if target.format == "json":
            target.write_object(_object(a, b, comparison, params))
        elif target.format in ("tsv", "csv", "jsonl") or options["nul"]:
            print_rows(session.console, target, column_names("show"), _rows(comparison))
        else:
            target.write_lines(_picture(a, b, comparison, params, target, options, _sketch(stored)))
        return session.console.exit_code


def _sketch(stored: "Collection | None") -> SketchParams | None:
    """Return how the store makes signatures; None without a store."""
    return stored.sketch if stored is not None else None


def _warn_if_changed(console: Console, document: DocumentRead, params: ShingleParams) -> None:
    from lshdup.shingling.shingler import Shingler, fingerprint_sets

    collection = document.named.collection
    if collection is None or params != collection.shingle:
        return
    sets = Shingler(params).shingle_texts([document.text.utf8])
    if collection.shingle_filter is not None:
        sets = collection.shingle_filter.apply(sets)
    if fingerprint_sets(sets, params)[0] != collection.fingerprints[document.named.index]:
        console.warn(
            f"{printable(document.named.name)} has changed since it was indexed; its present text"
            " is shown"
        )


def _list_shingles(
    a: bytes, b: bytes, params: ShingleParams, shingle_filter: "ShingleFilter | None"
) -> "Iterator[tuple[Cell, ...]]":
    """Yield the shingles of both and of A in the order of A, then those of B only."""
    from lshdup.shingling.inspection import list_shingles

    why = shingle_filter.explain if shingle_filter is not None else None

    def row(where: str, element: int, number: str, text: bytes) -> "tuple[Cell, ...]":
        return (where, number, text) if why is None else (where, number, text, why(element))

    of_b = {element for element, _, _ in list_shingles(b, params)}
    of_a = set()
    only_a = []
    for each in list_shingles(a, params):
        of_a.add(each[0])
        if each[0] in of_b:
            yield row("both", *each)
        else:
            only_a.append(row("a", *each))
    yield from only_a
    for each in list_shingles(b, params):
        if each[0] not in of_a:
            yield row("b", *each)


def _rows(comparison: "Comparison") -> "Iterator[tuple[Cell, ...]]":
    from lshdup.views.comparison import extract_passage
    from lshdup.views.token_diff import ALIKE

    for change in comparison.changes:
        alike = change.kind == ALIKE
        texts = (
            " ".join(extract_passage(*each).split())
            for each in (
                (comparison.a, change.a_start, change.a_end),
                (comparison.b, change.b_start, change.b_end),
            )
        )
        yield (
            change.kind,
            change.tokens,
            change.a_start,
            change.b_start,
            *((None, None) if alike else texts),
        )


def _describe_document(document: DocumentRead, tokens: int, shingles: int) -> dict[str, Any]:
    text = document.text
    return {
        "name": document.named.name,
        "bytes": document.size,
        "encoding": text.codec,
        "detected": bool(text.encoding),
        "html": text.page,
        "extracted": bool(text.office),
        "tokens": tokens,
        "shingles": shingles,
        "office": text.office,
        "packed": text.packed,
    }


def _object(
    a: DocumentRead, b: DocumentRead, comparison: "Comparison", params: ShingleParams
) -> dict[str, Any]:
    shared, tokens = comparison.shared, (len(comparison.a.tokens), len(comparison.b.tokens))
    rows = (dict(zip(column_names("show"), row, strict=True)) for row in _rows(comparison))
    return {
        "a": _describe_document(a, tokens[0], shared + comparison.only_a + comparison.removed_a),
        "b": _describe_document(b, tokens[1], shared + comparison.only_b + comparison.removed_b),
        **{name: getattr(comparison, name) for name in COMPARISON},
        "shingle": params.to_json(),
        "differences": list(rows),
    }


def _picture(
    a: DocumentRead,
    b: DocumentRead,
    comparison: "Comparison",
    params: ShingleParams,
    target: "Target",
    options: dict[str, Any],
    sketch: SketchParams | None,
) -> Iterator[str]:
    from lshdup.views.line_diff import have_same_lines
    from lshdup.views.line_view import LINES, render_lines
    from lshdup.views.terminal import CONTEXT, NOUNS, UNSEEN, WIDE, Layout, render, summarize

    noun = NOUNS[params.tokens]
    heads = []
    for letter, document, located, rest in (
        ("A", a, comparison.a, comparison.only_a + comparison.removed_a),
        ("B", b, comparison.b, comparison.only_b + comparison.removed_b),
    ):
        facts = [count_of(document.size, "byte")]
        facts += [_describe_format(document)] if params.tokens != "ids" else []
        facts += [count_of(len(located.tokens), noun)]
        heads.append(
            (
                f"{letter}  {printable(document.named.name)}:",
                ", ".join([*facts, count_of(comparison.shared + rest, "shingle")]),
            )
        )
    fits = target.columns is None or all(
        len(name) + 1 + len(facts_line) <= target.columns for name, facts_line in heads
    )
    for name, facts_line in heads:
        yield from [f"{name} {facts_line}"] if fits else [name, f"   {facts_line}"]
    shares = f"similarity {decimal(comparison.similarity)}"
    if options["measure"] == "containment":
        smaller = "A" if comparison.only_a <= comparison.only_b else "B"
        shares = f"containment {decimal(comparison.containment)} of {smaller}, {shares}"
    yield (
        f"{shares}, exact: "
        f"{count_of(comparison.shared, 'shingle')} "
        f"shared, {comparison.only_a:,} only in A, "
        f"{comparison.only_b:,} only in B"
    )
    if comparison.removed_a or comparison.removed_b:
        yield (
            f"removed before: {count_of(comparison.removed_a, 'shingle')} of A, "
            f"{comparison.removed_b:,} "
            "of B, by --template or --ignore-common"
        )
    if comparison.estimate is not None and sketch is not None:
        yield (
            f"estimate {decimal(comparison.estimate)} ± {comparison.standard_error:.4f}, by "
            "signatures: "
            f"{sketch.scheme}, K = {sketch.perms}"
        )
    yield summarize(comparison, noun)
    by_lines = options["by_lines"]
    if by_lines is None:
        by_lines = have_same_lines(comparison.a, comparison.b, comparison.changes)
    if len(comparison.changes) == 1 and comparison.similarity == 1.0:
        is_equal, unseen = a.text.utf8 == b.text.utf8, UNSEEN.get(params.tokens, "case or layout")
        if visible_text(a.text.utf8) == visible_text(b.text.utf8):
            unseen = "what is attached"
        same = f"they differ in no {noun}, only in {unseen}"
        yield "what was read of the two texts is equal" if is_equal else same
        if is_equal or not by_lines:
            yield ""
            return
    yield ""
    wide = target.columns is not None and target.columns >= WIDE and not by_lines
    side = options["layout"] == "side" or (options["layout"] is None and wide)
    context = LINES if by_lines else CONTEXT[params.tokens]
    context = context if options["context"] is None else options["context"]
    layout = Layout(side, target.columns or (160 if side else None), target.colored, context, noun)
    if by_lines:
        yield from render_lines(comparison.a.text, comparison.b.text, layout)
    else:
        yield from render(comparison, layout)
    yield ""  # It separates the outputs of several runs, as of xargs.


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
