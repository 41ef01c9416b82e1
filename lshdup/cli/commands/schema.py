"""`lshdup schema`."""

from pathlib import Path
from typing import Any

import click

from lshdup.cli.columns import LISTINGS, document
from lshdup.cli.output import Target


@click.command(
    "schema",
    short_help="the JSON Schema of what a command prints",
    epilog="""\b
Examples:
  lshdup schema pairs
  lshdup schema query --row
""",
)
@click.argument("listing", type=click.Choice(list(LISTINGS)), metavar="LISTING")
@click.option(
    "--row",
    is_flag=True,
    help="Of one line of --format jsonl, instead of all that --format json prints.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write there instead of standard output (-).",
)
def command(**options: Any) -> int:
    """Print the JSON Schema (draft 2020-12) of what a command prints with --format json, or jsonl.

    LISTING is a command, with the mode that changes its columns: pairs, pairs-against, pairs-histogram, clusters, clusters-names (of --emit
    keep and drop), query, shingle, show, show-shingles, accuracy, accuracy-bands, accuracy-found, timing, curve, curve-all.
    Properties stand in the order of the columns, in every format. The number at the end of $id is
    the version: within it columns keep their names, types and places, and new ones come last.
    """
    path = options["output"]
    Target("json", path=None if path == Path("-") else path).write_object(
        document(options["listing"], row=options["row"])
    )
    return 0
