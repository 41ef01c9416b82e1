"""`lshdup shingle`."""

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import options as shared
from lshdup.cli.asking import Asked, ask
from lshdup.cli.summary import say_collection
from lshdup.errors import InputError
from lshdup.params import ShingleParams

if TYPE_CHECKING:
    from lshdup.collection import Collection
    from lshdup.common import Removal
    from lshdup.output import Cell

#: Removed shingles that -v shows, and the characters that it shows of each.
_MOST_COMMON, _LONGEST = 10, 80


@click.command(
    "shingle",
    short_help="documents -> shingle sets (shingles.npz)",
    epilog="""\b
Examples:
  lshdup shingle sample_corpus
  lshdup shingle --show sample_corpus/licences/MIT.txt -k 2
""",
)
@shared.documents_options
@shared.shingle_options
@click.option(
    "--show",
    metavar="DOC",
    type=click.Path(readable=False, allow_dash=True, path_type=bytes),
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
    target = shared.target(options)
    if options["show"] is None:
        shared.refuse(ctx, ("format_", "output"), "without --show")
    with shared.session(ctx, options) as session:
        if options["show"] is not None:
            stored = session.workspace.last_collection()
            asked = ask(options["show"], stored)
            known = {field.name for field in fields(ShingleParams)}
            given = {name: value for name, value in session.request.given.items() if name in known}
            base = stored.shingle.to_json() if stored is not None and "tokens" not in given else {}
            params = ShingleParams(**(base | given))
            text = asked.ids() if params.tokens == "ids" else asked.text(params.encoding)
            removal = session.workspace.removal_to_show(session.request, params)
            columns = ("shingle", "text") if removal is None else ("shingle", "text", "removed")
            target.write(columns, _rows(text, params, removal))
            return session.console.exit_code
        collection = session.workspace.shingled(session.request)
        say_collection(session.console, collection)
        if collection.removal is not None:
            session.console.say("shingles.npz keeps the whole sets: give --template and --ignore-common to `signatures` too")
            if options["verbose"]:
                _say_most_common(session, collection)
        return session.console.exit_code


def _texts(text: bytes, params: ShingleParams) -> dict[int, bytes]:
    """The shingles of a text in its order, with the tokens of each."""
    from lshdup.shingles import Shingler

    tokens, shingles = Shingler(params).in_order(text)
    between = b"" if params.tokens == "char" else b" "
    texts: dict[int, bytes] = {}
    for at, shingle in enumerate(shingles.tolist()):
        if shingle not in texts:
            texts[shingle] = between.join(tokens[at : at + params.k])
    return texts


def _rows(text: bytes, params: ShingleParams, removal: "Removal | None") -> "Iterator[tuple[Cell, ...]]":
    width = 8 if params.hash == "poly31" else 16
    template = set(removal.template.tolist()) if removal is not None else ()
    common = set(removal.common.tolist()) if removal is not None else ()
    for shingle, words in _texts(text, params).items():
        shown = str(shingle) if params.tokens == "ids" or params.hash == "poly31" else f"{shingle:0{width}x}"
        if removal is None:
            yield shown, words
        else:
            yield shown, words, "template" if shingle in template else "common" if shingle in common else ""


def _say_most_common(session: shared.Session, collection: "Collection") -> None:
    """For -v: the shingles that were removed because most documents have them, as text."""
    params = collection.shingle
    names = collection.documents.names
    for shingle, count, document in session.workspace.most_common(collection, _MOST_COMMON):
        asked = Asked(names[document], document, collection=collection)
        try:
            words = _texts(asked.ids() if params.tokens == "ids" else asked.text(params.encoding), params).get(shingle, b"")
        except InputError:  # it has gone, or is no longer what it was
            words = b""
        text = words.decode("utf-8", "replace")
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        session.console.detail(f"in {count:,} different documents: {text!r} ({shingle:x})")
