"""`lshdup shingle`."""

from dataclasses import replace
from typing import Any

import click

from lshdup.cli import options as shared
from lshdup.cli.asking import ask, shingle_params, shingle_rows
from lshdup.cli.summary import say_collection


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
    type=click.Path(allow_dash=True, path_type=bytes),
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
            params = shingle_params(stored, session.request.given)
            text = asked.ids() if params.tokens == "ids" else asked.text(params.encoding)
            rows = shingle_rows(text, replace(params, bag=False))  # repeats are the same line again
            shared.write(session.console, target, ("shingle", "text"), ((number, words) for _, number, words in rows))
            return session.console.exit_code
        collection = session.workspace.shingled(session.request)
        say_collection(session.console, collection)
        return session.console.exit_code
