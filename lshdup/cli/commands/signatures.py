"""`lshdup signatures`."""

from typing import Any

import click

from lshdup.cli import options as shared
from lshdup.cli import session as sessions
from lshdup.cli.messages import say_collection, say_if_nothing


@click.command(
    "signatures",
    cls=shared.Command,
    short_help="shingle sets -> signatures (signatures.npz)",
    epilog="""\b
Examples:
  lshdup signatures sample_corpus
  lshdup shingle sample_corpus && lshdup signatures --perms 400
""",
)
@shared.documents_options
@shared.shingle_options
@shared.sketch_options
@shared.run_options
@shared.plain_option(
    "-0", "--null", "nul", is_flag=True, help="Names of --files-from are NUL-separated."
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make the signatures of all documents and keep them in the store.

    Two signatures agree in a row with a chance equal to the Jaccard similarity of the shingle sets. Without DOCS, signatures are
    made from shingles.npz.
    """
    with sessions.session(ctx, options) as session:
        collection = session.workspace.make_signatures(session.request)
        say_collection(session.console, collection)
        say_if_nothing(session, collection, 1)
        return session.console.exit_code
