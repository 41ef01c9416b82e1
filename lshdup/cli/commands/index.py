"""`lshdup index`."""

from typing import Any

import click

from lshdup.cli.findings import say_index, say_largest
from lshdup.cli.help import Command
from lshdup.cli.options import memory_option, run_options, table_options
from lshdup.cli.session import open_session


@click.command(
    "index",
    cls=Command,
    short_help="signatures -> band table (bands.npz)",
    epilog="""\b
Examples:
  lshdup index sample_corpus --threshold 0.7
  lshdup signatures sample_corpus && lshdup index
""",
)
@table_options
@memory_option
@run_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make the band table that `query` and `pairs` look candidates up in, and keep it in the store.

    Says how many bands of how many rows were chosen, and the chance to miss a pair at the threshold
    and above it. Without DOCS, the table is made from signatures.npz.
    """
    with open_session(ctx, options) as session:
        from lshdup.lsh.buckets import Buckets
        from lshdup.lsh.candidates import largest_buckets

        indexed = session.workspace.load_or_build_index(session.request)
        say_index(session, indexed, 1, whole=True)
        for size, first in largest_buckets(indexed.index.table, 1):
            session.workspace.say_large_bucket(indexed, Buckets(size, first))
        names = indexed.collection.documents.names.strings_at
        say_largest(session.console, indexed.index.table, names)
        return session.console.exit_code
