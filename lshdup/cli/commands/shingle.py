"""`lshdup shingle`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import columns as listing_columns
from lshdup.cli import options as shared
from lshdup.cli import session as sessions
from lshdup.cli.messages import say_collection, say_if_nothing
from lshdup.errors import InputError
from lshdup.params import ShingleParams
from lshdup.workspace.lookup import Asked, ask, shingle_params, shingle_rows, why_removed

if TYPE_CHECKING:
    from lshdup.cli.output import Cell
    from lshdup.collection.collection import Collection
    from lshdup.shingling.shingle_filter import ShingleFilter

#: Removed shingles that -v shows, and the characters that it shows of each.
_MOST_COMMON, _LONGEST = 10, 80


@shared.columns_of("shingle")
@click.command(
    "shingle",
    cls=shared.Command,
    short_help="documents -> shingle sets (shingles.npz)",
    epilog="""\b
Examples:
  lshdup shingle sample_corpus
  lshdup shingle --show sample_corpus/licences/MIT.txt -k 2
""",
)
@shared.documents_options
@shared.shingle_options
@shared.plain_option(
    "--show",
    metavar="DOC",
    type=click.Path(readable=False, allow_dash=True, path_type=bytes),
    shell_complete=shared.stored_names,
    help="Print the shingles of this file, document of the store, or - (standard input): hash and text. Writes nothing.",
)
@shared.run_options
@shared.output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make the shingle sets of all documents and keep them in the store.

    A shingle is a run of k consecutive tokens of the normal form of the text; a document becomes the set of its shingles. Only
    new and changed documents are read when it is run again. With --template or --ignore-common it says what they would remove (with -v,
    the shingles that most documents have as text too), and --show marks it.
    """  # fmt: skip
    target = sessions.target(options)
    if options["show"] is None:
        sessions.refuse(ctx, ("format_", "header", "output"), "without --show")
    with sessions.session(ctx, options) as session:
        if options["show"] is not None:
            stored = session.workspace.load_last_collection()
            asked = ask(options["show"], stored)
            if asked.note:
                session.console.say(asked.note)
            params = shingle_params(stored, session.request.given)
            text = asked.ids() if params.tokens == "ids" else asked.text(params.encoding)
            shingle_filter = session.workspace.load_or_build_filter(session.request, params, stored)
            columns = listing_columns.columns("shingle", sometimes=shingle_filter is not None)
            sessions.write(session.console, target, columns, _rows(text, params, shingle_filter))
            return session.console.exit_code
        collection = session.workspace.make_shingles(session.request)
        say_collection(session.console, collection)
        say_if_nothing(session, collection, 1)
        if collection.shingle_filter is not None:
            session.console.say(
                "shingles.npz keeps the whole sets: give --template and --ignore-common to `signatures` too"
            )
            if options["verbose"]:
                _say_most_common(session, collection)
        return session.console.exit_code


def _rows(
    text: bytes, params: ShingleParams, shingle_filter: "ShingleFilter | None"
) -> "Iterator[tuple[Cell, ...]]":
    rows = shingle_rows(text, replace(params, bag=False))  # repeats are the same line again
    if shingle_filter is None:
        return ((number, words) for _, number, words in rows)
    why = why_removed(shingle_filter)
    return ((number, words, why(element)) for element, number, words in rows)


def _say_most_common(session: sessions.Session, collection: "Collection") -> None:
    """For -v: the shingles that were removed because most documents have them, as text."""
    params = collection.shingle
    names = collection.documents.names
    for shingle, count, document in session.workspace.most_common_shingles(
        collection, _MOST_COMMON
    ):
        asked = Asked(names[document], document, collection=collection)
        try:
            rows = shingle_rows(
                asked.ids() if params.tokens == "ids" else asked.text(params.encoding), params
            )
            words = next((words for element, _, words in rows if element == shingle), b"")
        except InputError:  # it has gone, or is no longer what it was
            words = b""
        text = words.decode("utf-8", "replace")
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        session.console.detail(f"in {count:,} different documents: {text!r} ({shingle:x})")
