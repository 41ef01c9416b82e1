"""`lshdup show`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import columns as listing_columns
from lshdup.cli import options as shared
from lshdup.cli import session as sessions
from lshdup.cli.console import Console
from lshdup.errors import InputError
from lshdup.params import ShingleParams, SketchParams
from lshdup.utils.messages import counted, decimal, shown
from lshdup.workspace.lookup import Asked, ask, shingle_params, shingle_rows, why_removed

if TYPE_CHECKING:
    from lshdup.cli.output import Cell, Target
    from lshdup.collection.collection import Collection
    from lshdup.report.comparison import Comparison
    from lshdup.shingling.shingle_filter import ShingleFilter


@shared.columns_of("show", "show-shingles")
@click.command(
    "show",
    cls=shared.Command,
    short_help="why two documents match, and where they differ",
    epilog="""\b
Examples:
  lshdup show sample_corpus/licences/ISC.txt sample_corpus/licences/MIT.txt
  lshdup show sample_corpus/udhr/deu_1901.html sample_corpus/udhr/deu_1996.html --context 4
""",
)
@click.argument(
    "a",
    type=click.Path(allow_dash=True, path_type=bytes),
    metavar="A",
    shell_complete=shared.stored_names,
)
@click.argument(
    "b",
    type=click.Path(allow_dash=True, path_type=bytes),
    metavar="B",
    shell_complete=shared.stored_names,
)
@shared.plain_option(
    "--inline",
    "layout",
    flag_value="inline",
    help="One text, with what was removed, added and moved in it.",
)
@shared.plain_option(
    "--side-by-side",
    "layout",
    flag_value="side",
    help="Two columns.  [default: on terminals of 120 columns and more]",
)
@shared.plain_option("--context", type=click.IntRange(0), metavar="N", show_default="12 words, 60 characters",
              help="Words (or other tokens) to show around each difference; what is alike beyond them is folded.")  # fmt: skip
@shared.plain_option(
    "--shingles",
    is_flag=True,
    help="List the shingles instead: those of both, those of A only, those of B only.",
)
@shared.shingle_options
@shared.run_options
@shared.output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Show why two documents match: their similarity, what their shingle sets share, and the words in which their texts differ.

    A and B are names in the store or unique ends of names, files, or - for standard input. The normal form is compared, without what
    --template and --ignore-common remove now, or did in the last run. The texts are shown as they are written, so differences of case,
    punctuation and layout alone are not marked. [-removed-] and {+added+} are words of A and of B only; [~moved~] and {~moved~} are
    passages that stand elsewhere in the other. On a terminal with colours, those say it.

    With --format tsv, csv, json or jsonl: the differences as data (json: with all that is known of the two).
    """  # fmt: skip
    target = sessions.target(options)
    if target.format in ("", "table") and not options["shingles"] and not options["nul"]:
        sessions.refuse(ctx, ("header",), "without --shingles, -0, or --format tsv or csv")
    if options["shingles"]:
        sessions.refuse(ctx, ("layout", "context"), "with --shingles")
    if options["a"] == options["b"] == b"-":
        message = "A and B are both standard input"
        raise InputError(message, "name a file for one of them")
    with sessions.session(ctx, options) as session:
        stored = session.workspace.load_last_collection()
        params = shingle_params(stored, session.request.given)
        a, b = (_read(ask(options[name], stored), params) for name in "ab")
        for each in (a, b):
            if each.asked.note:
                session.console.say(each.asked.note)
        shingle_filter = session.workspace.load_or_build_filter(session.request, params, stored)
        if options["shingles"]:
            columns = listing_columns.columns("show-shingles", sometimes=shingle_filter is not None)
            sessions.write(
                session.console, target, columns, _shingles(a.text, b.text, params, shingle_filter)
            )
            return session.console.exit_code
        from lshdup.report.comparison import compare

        for each in (a, b):
            _warn_if_changed(session.console, each, params)
        found = compare(a.text, b.text, params, _sketch(stored), shingle_filter)
        if target.format == "json":
            target.write_object(_object(a, b, found, params))
        elif target.format in ("tsv", "csv", "jsonl") or options["nul"]:
            sessions.write(session.console, target, listing_columns.columns("show"), _rows(found))
        else:
            target.write_lines(_picture(a, b, found, params, target, options, _sketch(stored)))
        return session.console.exit_code


@dataclass(frozen=True)
class _Document:
    """One of the two. size : bytes of its file. text : UTF-8, or ids.

    codec : what it was decoded from; detected : whether that is a guess. page : of HTML. office : the kind of office document it was in.
    packed : gzip or zstd, if it was.
    """

    asked: Asked
    size: int
    text: bytes
    codec: str = "utf-8"
    detected: bool = False
    page: bool = False
    office: str = ""
    packed: str = ""

    @property
    def name(self) -> bytes:
        return self.asked.name


def _read(asked: Asked, params: ShingleParams) -> _Document:
    raw, is_text = asked.content()
    if params.tokens == "ids":
        return _Document(asked, len(raw), asked.ids())
    text = asked.read(raw, is_text, params.encoding)
    return _Document(
        asked,
        len(raw),
        text.utf8,
        text.codec,
        bool(text.encoding),
        text.page,
        text.office,
        text.packed,
    )


def _sketch(stored: "Collection | None") -> SketchParams | None:
    """How the store makes signatures, if it can make those of two documents alone."""
    return (
        stored.sketch
        if stored is not None and stored.sketch is not None and stored.sketch.scheme != "linear"
        else None
    )


def _warn_if_changed(console: Console, document: _Document, params: ShingleParams) -> None:
    from lshdup.shingling.shingler import Shingler, fingerprint_sets

    asked = document.asked
    if asked.collection is None or params != asked.collection.shingle:
        return
    sets = Shingler(params).shingle_texts([document.text])
    if asked.collection.shingle_filter is not None:
        sets = asked.collection.shingle_filter.apply(sets)
    if fingerprint_sets(sets, params)[0] != asked.collection.fingerprints[asked.index]:
        console.warn(
            f"{shown(document.name)} has changed since it was indexed; its present text is shown"
        )


def _shingles(
    a: bytes, b: bytes, params: ShingleParams, shingle_filter: "ShingleFilter | None"
) -> "Iterator[tuple[Cell, ...]]":
    """Those of both and of A in the order of A, then those of B only."""
    why = why_removed(shingle_filter) if shingle_filter is not None else None

    def row(where: str, element: int, number: str, text: bytes) -> "tuple[Cell, ...]":
        return (where, number, text) if why is None else (where, number, text, why(element))

    of_b = {element for element, _, _ in shingle_rows(b, params)}
    of_a = set()
    only_a = []
    for each in shingle_rows(a, params):
        of_a.add(each[0])
        if each[0] in of_b:
            yield row("both", *each)
        else:
            only_a.append(row("a", *each))
    yield from only_a
    for each in shingle_rows(b, params):
        if each[0] not in of_a:
            yield row("b", *each)


def _rows(found: "Comparison") -> "Iterator[tuple[Cell, ...]]":
    from lshdup.report.comparison import extract_passage
    from lshdup.report.token_diff import ALIKE

    for change in found.changes:
        alike = change.kind == ALIKE
        texts = (
            " ".join(extract_passage(*each).split())
            for each in (
                (found.a, change.a_start, change.a_end),
                (found.b, change.b_start, change.b_end),
            )
        )
        yield (
            change.kind,
            change.tokens,
            change.a_start,
            change.b_start,
            *((None, None) if alike else texts),
        )


def _facts(document: _Document, tokens: int, shingles: int) -> dict[str, Any]:
    return {
        "name": document.name,
        "bytes": document.size,
        "encoding": document.codec,
        "detected": document.detected,
        "html": document.page,
        "extracted": bool(document.office),
        "tokens": tokens,
        "shingles": shingles,
        "office": document.office,
        "packed": document.packed,
    }


def _object(
    a: _Document, b: _Document, found: "Comparison", params: ShingleParams
) -> dict[str, Any]:
    return {
        "a": _facts(a, len(found.a.tokens), found.shared + found.only_a + found.removed_a),
        "b": _facts(b, len(found.b.tokens), found.shared + found.only_b + found.removed_b),
        "similarity": found.similarity,
        "estimate": found.estimate,
        "standard_error": found.standard_error,
        "shared": found.shared,
        "only_a": found.only_a,
        "only_b": found.only_b,
        "removed_a": found.removed_a,
        "removed_b": found.removed_b,
        "shingle": params.to_json(),
        "differences": [
            dict(zip(listing_columns.columns("show"), row, strict=True)) for row in _rows(found)
        ],
    }


def _picture(
    a: _Document,
    b: _Document,
    found: "Comparison",
    params: ShingleParams,
    target: "Target",
    options: dict[str, Any],
    sketch: SketchParams | None,
) -> Iterator[str]:
    from lshdup.report.terminal import CONTEXT, NOUNS, WIDE, Layout, render, summarize

    noun = NOUNS[params.tokens]
    heads = []
    for letter, document, located, rest in (
        ("A", a, found.a, found.only_a + found.removed_a),
        ("B", b, found.b, found.only_b + found.removed_b),
    ):
        facts = [counted(document.size, "byte")]
        facts += [_kind(document, located.text)] if params.tokens != "ids" else []
        facts += [counted(len(located.tokens), noun)]
        heads.append(
            (
                f"{letter}  {shown(document.name)}:",
                ", ".join([*facts, counted(found.shared + rest, "shingle")]),
            )
        )
    fits = target.columns is None or all(
        len(name) + 1 + len(known) <= target.columns for name, known in heads
    )
    for name, known in heads:  # a terminal would break a line in the middle of a word
        yield from [f"{name} {known}"] if fits else [name, f"   {known}"]
    yield (
        f"similarity {decimal(found.similarity)}, exact: {counted(found.shared, 'shingle')} shared, {found.only_a:,} only in A, "
        f"{found.only_b:,} only in B"
    )
    if found.removed_a or found.removed_b:
        yield f"removed before: {counted(found.removed_a, 'shingle')} of A, {found.removed_b:,} of B, by --template or --ignore-common"
    if found.estimate is not None and sketch is not None:
        yield f"estimate {decimal(found.estimate)} ± {found.standard_error:.4f}, by signatures: {sketch.scheme}, K = {sketch.perms}"
    yield summarize(found, noun)
    if len(found.changes) == 1 and found.similarity == 1.0:
        same = (
            "the texts are equal byte for byte"
            if a.text == b.text
            else f"they differ in no {noun}, only in case, punctuation or layout"
        )
        yield from (same, "")
        return
    yield ""
    wide = target.columns is not None and target.columns >= WIDE
    side = options["layout"] == "side" or (options["layout"] is None and wide)
    context = CONTEXT[params.tokens] if options["context"] is None else options["context"]
    width = target.columns or (160 if side else None)
    yield from render(found, Layout(side, width, target.colored, context, noun))
    yield ""  # pictures of several runs, as of xargs, stand apart


def _kind(document: _Document, spelling: bytes) -> str:
    """What kind of text it was, from the outside in: gzip, HTML UTF-8."""
    parts = [document.packed] if document.packed else []
    if document.office:
        parts.append("mail" if document.office == "eml" else document.office.upper())
    else:
        codec = document.codec.upper().replace("UTF-8-SIG", "UTF-8 with byte-order mark")
        parts.append(
            f"{'HTML ' if document.page else ''}{codec}{' (detected)' if document.detected else ''}"
        )
    if spelling != document.text:
        parts.append("shown in NFKC")
    return ", ".join(parts)
