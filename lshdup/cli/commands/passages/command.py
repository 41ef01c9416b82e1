"""`lshdup passages`."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup import choices
from lshdup.base.messages import chance, count_of
from lshdup.base.skipped import Reason
from lshdup.cli.columns import REMOVED_PASSAGES, column_names
from lshdup.cli.commands import writing
from lshdup.cli.conflicts import refuse
from lshdup.cli.findings import warn_of_changes
from lshdup.cli.help import Command, plain_option
from lshdup.cli.messages import say_collection, say_skipped
from lshdup.cli.options import (
    check_files_option,
    check_option,
    documents_options,
    hiding,
    keep_one_by_one_options,
    list_columns,
    memory_option,
    option,
    output_options,
    run_options,
    text_options,
)
from lshdup.cli.printing import make_target, print_pieces
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import OutputPath
from lshdup.errors import ParameterError
from lshdup.params import ClusterParams, PassageParams

if TYPE_CHECKING:
    from lshdup.cli.commands.passages.listing import PassageListing
    from lshdup.cli.output.target import Layout, Target
    from lshdup.collection.collection import Collection
    from lshdup.compare.passages import Passages
    from lshdup.sources.document_list import DocumentList
    from lshdup.views.repeats import TokenRuns
    from lshdup.workspace.passages import PassagesFound

_DEFAULT = PassageParams()

#: Options of listings, which a template is none of.
_OF_LISTINGS = ("format_", "header", "max_rows", "nul")


@list_columns("passages", "passages-spans")
@click.command(
    "passages",
    cls=Command,
    short_help="passages that stand in several places",
    epilog="""\b
Examples:
  lshdup passages sample_corpus --least 100
  lshdup passages sample_corpus/udhr --against sample_corpus/licences --least 5
""",
)
@hiding("min_tokens")
@documents_options
@option("--least", type=click.IntRange(2), default=_DEFAULT.least, metavar="N",
        help="Tokens of the shortest passage.")  # fmt: skip
@option("--gap", type=click.IntRange(0), default=_DEFAULT.gap, metavar="N",
        help="Places may differ in up to N tokens in a row; 0: word for word.")  # fmt: skip
@option("--documents", "in_documents", type=click.IntRange(1), default=1, metavar="N",
        help="Only passages that are in at least N documents.")  # fmt: skip
@option("--max-documents", type=click.IntRange(1), default=_DEFAULT.max_documents, metavar="N",
        help="What stands in more than N documents, or in twice as many places, is common: its "
             "places are not compared in pairs, but extended together as long as most of them "
             "agree.")  # fmt: skip
@option("--against", multiple=True, type=click.Path(path_type=bytes), metavar="OTHER",
        help="Only passages with a place in DOCS and one in OTHER: a folder, a file, or the store "
             "of an earlier run; repeatable for folders and files.")  # fmt: skip
@plain_option("--emit", type=click.Choice(("all", "template", "spans")), default="all",
              help="Passages with all places; their texts alone, as --template of other commands "
                   "takes them; or what to cut so that each stays once, as jsonl.")  # fmt: skip
@plain_option("--write", type=OutputPath(str), metavar="FILE|DIR/",
              help="Write the JSON Lines or Parquet files with each passage in one place "
                   "only, all else as it is; below DIR they keep their names; - is standard "
                   "output. Prints passages only with --emit or -o.")  # fmt: skip
@plain_option("--removed", type=OutputPath(Path), metavar="FILE",
              help="List there what --write cuts, and the repeats that it cannot cut; - is "
                   "standard output.")  # fmt: skip
@keep_one_by_one_options
@check_option("passages")
@option("--tokens", type=click.Choice([each for each in choices.TOKENS if each != "ids"]),
        default="word", help="What passages are made of: words; symbols (words and every other "
                             "visible character); characters; or terms.")  # fmt: skip
@text_options
@check_files_option
@memory_option
@run_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print the passages that stand in several places, word for word, the most repeated first: each
    with its places, as tokens and as bytes to cut.

    A passage is as long as it can be, and is no part of a longer one with the same places. Start
    and end are bytes of the document as it is stored; where the text was extracted (pages, mails,
    office documents, compressed files) of that text, where it is the field of a row of the field;
    the column offsets says which.

    With --emit spans and --write a passage stays in one place: in the document that --prefer and
    --keep say, as in `lshdup clusters`. With --against, all places in DOCS are cut. Without DOCS,
    of the last run.
    """
    if options["emit"] == "template":
        refuse(ctx, _OF_LISTINGS, "with --emit template")
    if options["emit"] == "spans" and not options["nul"]:
        options["format_"] = options["format_"] or "jsonl"
    if options["gap"] and (options["emit"] == "spans" or options["write"] is not None):
        message = "--gap cannot be combined with --emit spans or --write, which cut equal places"
        raise ParameterError(message, "leave --gap out")
    if options["emit"] != "spans" and options["write"] is None:
        refuse(ctx, ("keep", "prefer"), "without --emit spans or --write")
    refuse(ctx, ("min_tokens",), "where no passage is shorter than --least")
    target = make_target(options)
    writing.check_outputs(ctx, options)
    rule = ClusterParams(keep=options["keep"] or "", prefer=options["prefer"])
    wanted = PassageParams(options["least"], options["max_documents"], options["gap"])
    with open_session(ctx, options, partial(_check_write, options)) as session:
        from lshdup.cli.commands.passages.listing import PassageListing
        from lshdup.sources.preference import preference
        from lshdup.views.repeats import find_repeats
        from lshdup.workspace.passages import load_or_find_passages

        request, others = session.request, options["against"]
        found = load_or_find_passages(
            session.workspace, request, wanted, others, session.run.memory
        )
        passages = _of_enough(found.passages, options["in_documents"])
        split = len(found.here.documents) if found.there is not None else None
        preferred = preference(found.here.documents, found.here.sizes, rule, request.documents)
        for line in preferred.unused:
            session.console.warn(line)
        repeats = find_repeats(passages, preferred.order, split)
        _say(session, found, passages, repeats, wanted)
        listing = PassageListing(session, found, passages)
        if options["write"] is not None:
            _write(session, found, listing, repeats, options)
        if writing.prints_listing(ctx, options):
            _print(session, target, listing, passages, repeats, options["emit"])
        listing.warn_of_lost()
        return session.console.exit_code_of(len(passages))


def _check_write(
    options: dict[str, Any], documents: "DocumentList", read: bool
) -> Iterator[tuple[str, str]]:
    """Yield the files that --write writes. Raise before the work if it cannot be carried out, as
    far as is known then.
    """
    yield from writing.check_documents(options, documents, read)
    if options["write"] is not None:
        from lshdup.sources.rewriting.cutting import check_cutting

        check_cutting(documents)


def _of_enough(passages: "Passages", documents: int) -> "Passages":
    """Return the passages that are in at least so many documents."""
    import numpy as np

    from lshdup.views.repeats import count_documents

    if documents == 1:
        return passages
    return passages.take(np.flatnonzero(count_documents(passages) >= documents))


def _say(
    session: Session,
    found: "PassagesFound",
    passages: "Passages",
    repeats: "TokenRuns",
    wanted: PassageParams,
) -> None:
    """Say what was read, and how much of it is repeated."""
    import numpy as np

    console = session.console
    say_collection(session, found.here, 1, "" if found.there is None else " of DOCS", "token")
    named = np.unique(passages.documents)
    if found.there is not None:
        console.say(f"against {count_of(len(found.there.documents), 'document')} of OTHER")
        say_skipped(console, console.other_skipped_counts, " of OTHER")
        named = named[named < len(found.here.documents)]
        _warn_of_short(session, found.there, wanted.least)
    warn_of_changes(session, found.here.documents, named)
    total, repeated = int(found.here.sizes.sum()), int(repeats.sizes.sum())
    line = f"{count_of(len(passages), 'passage')} of {wanted.least:,} tokens or more"
    if len(passages):
        places = count_of(len(passages.documents), "place")
        what = "repeats" if found.there is None else "in OTHER too"
        line += f", in {places}; {chance(repeated / total)} of all tokens are {what}"
    duration = console.duration_of("passages") if console.is_verbose else ""
    console.summarize(f"{line}{duration}; {console.seconds:.2f} s in all")


def _warn_of_short(session: Session, other: "Collection", least: int) -> None:
    """Warn of the documents of OTHER that are shorter than any passage."""
    short = int(((other.sizes > 0) & (other.sizes < least)).sum())
    if short:
        session.console.warn(
            f"{short:,} of {count_of(len(other.documents), 'document')} of OTHER have fewer than "
            f"{least:,} tokens (--least) and cannot be found; a smaller --least finds them"
        )


def _write(
    session: Session,
    found: "PassagesFound",
    listing: "PassageListing",
    repeats: "TokenRuns",
    options: dict[str, Any],
) -> None:
    """Write the rows without repeats, and say how much was cut."""
    import numpy as np

    from lshdup.sources.rewriting.cutting import write_cut
    from lshdup.views.places import SCOPES

    console, here = session.console, found.here
    skipped = here.list_skipped_records()
    compared = int((here.sizes > 0).sum())
    writing.refuse_nothing(console, compared, [each.skipped for each in skipped])
    places = listing.note_lost(listing.locate_to_cut(repeats))
    can = (places.scopes == SCOPES.index("field")) & (places.starts >= 0)
    starts, ends = places.starts[can], places.ends[can]
    cut = here.documents, repeats.documents[can], starts, ends
    paths, uncut = write_cut(*cut, options["write"], writing.open_target)
    writing.say_written(console, paths, options["write"])
    is_cut = can & ~np.isin(repeats.documents, list(uncut))
    rows = len(np.unique(repeats.documents[is_cut]))
    again = [each for each in skipped if each.skipped.reason in (Reason.REPEATED, Reason.COPY)]
    removed = listing.removed(repeats, uncut, again)
    writing.list_removed(console, options, REMOVED_PASSAGES, removed, "repeat")
    console.say(
        f"cut: {count_of(int(repeats.sizes[is_cut].sum()), 'token')}, "
        f"{int((places.ends - places.starts)[is_cut].sum()):,} bytes, from {count_of(rows, 'row')}"
    )
    left = len(np.unique(repeats.documents[~is_cut]))
    if left:
        one = "row with repeats is not cut: its text is a page"
        more = "rows with repeats are not cut: their texts are pages"
        console.warn(f"{count_of(left, one, more)}, or not where they can be cut")
    if again:
        one, more = "row with the id of another is", "rows with the ids of others are"
        console.warn(f"{count_of(len(again), one, more)} not cut; leave --id-field out to cut all")


def _print(
    session: Session,
    target: "Target",
    listing: "PassageListing",
    passages: "Passages",
    repeats: "TokenRuns",
    what: str,
) -> None:
    if what == "template":
        target.write_raw(listing.template())
        return
    console = session.console
    if what == "spans":
        columns = column_names("passages-spans")
        print_pieces(console, target, columns, listing.spans(repeats), len(repeats))
        return
    from lshdup.cli.commands.passages.listing import PLACES
    from lshdup.cli.output.tables import passages as layout

    lines: Layout | None = None if target.header else layout
    most = PLACES if target.style == "table" and not target.header else None
    total = len(passages.documents) if most is None else int(passages.places.clip(max=most).sum())
    rows = listing.rows(whole=target.style not in ("table", "tsv"), most=most)
    print_pieces(console, target, column_names("passages"), rows, total, lines)
