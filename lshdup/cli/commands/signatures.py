"""`lshdup signatures`."""

from typing import Any

import click

from lshdup.cli.help import Command
from lshdup.cli.messages import say_collection
from lshdup.cli.options import (
    documents_options,
    memory_option,
    run_options,
    shingle_options,
    sketch_options,
)
from lshdup.cli.session import open_session


@click.command(
    "signatures",
    cls=Command,
    short_help="shingle sets -> signatures (signatures.npz)",
    epilog="""\b
Examples:
  lshdup signatures sample_corpus
  lshdup shingle sample_corpus && lshdup signatures --perms 400
""",
)
@documents_options
@shingle_options
@sketch_options
@memory_option
@run_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make the signatures of all documents and keep them in the store.

    Two signatures agree in a row with a chance equal to the Jaccard similarity of the shingle sets.
    Without DOCS, the sets of the last run are used; unless it kept them, its documents are read.
    """
    with open_session(ctx, options) as session:
        collection = session.workspace.make_signatures(session.request)
        say_collection(session, collection, 1, whole=True)
        return session.console.exit_code
