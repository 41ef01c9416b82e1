"""`lshdup shingle`."""

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import options as shared
from lshdup.cli.asking import ask
from lshdup.cli.summary import say_collection
from lshdup.params import ShingleParams

if TYPE_CHECKING:
    from lshdup.output import Cell


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
    new and changed documents are read when it is run again.
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
            target.write(("shingle", "text"), _rows(text, params))
            return session.console.exit_code
        collection = session.workspace.shingled(session.request)
        say_collection(session.console, collection)
        return session.console.exit_code


def _rows(text: bytes, params: ShingleParams) -> "Iterator[tuple[Cell, ...]]":
    from lshdup.shingles import Shingler

    tokens, shingles = Shingler(params).in_order(text)
    between = b"" if params.tokens == "char" else b" "
    width = 8 if params.hash == "poly31" else 16
    seen = set()
    for at, shingle in enumerate(shingles.tolist()):
        if shingle not in seen:
            seen.add(shingle)
            shown = str(shingle) if params.tokens == "ids" or params.hash == "poly31" else f"{shingle:0{width}x}"
            yield shown, between.join(tokens[at : at + params.k])
