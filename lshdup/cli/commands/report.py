"""`lshdup report`."""

from pathlib import Path

import click

from lshdup.base.system import is_stdout
from lshdup.cli import options as shared
from lshdup.cli.help import define, option, plain_option, refuse
from lshdup.cli.output import PAGE_FORMATS, Target, format_of
from lshdup.cli.session import open_session
from lshdup.cli.types import OutputPath
from lshdup.errors import InputError, ParameterError


@define(
    "report",
    shared.ReportOptions,
    short_help="one HTML page to look through what was found",
    epilog="""\b
Examples:
  lshdup report sample_corpus -t 0.6 -o report.html && wc -c report.html
  lshdup report sample_corpus --measure containment -o shared.html && ls *.html
  lshdup index sample_corpus && lshdup report > near.html && ls -l near.html
""",
)
@shared.table_options
@shared.measure_option
@shared.against_option("Only pairs of DOCS with documents of OTHER, and what they share")
@shared.keep_options
@option("--most", type=click.IntRange(1), metavar="N",
        show_default="100,000, as far as they fit into 8 MB",
        help="List N documents in groups and N pairs: the largest groups and the most similar "
             "pairs. The page counts all, and says how many it lists.")  # fmt: skip
@option("--differences", type=click.IntRange(0), metavar="N",
        show_default="5,000, as far as they fit into 8 MB",
        help="Show where N pairs differ: the members of groups and the one that is kept, then the "
             "least similar pairs. On a page of what is shared: of the first N pairs.")  # fmt: skip
@plain_option("--passages-of-corpus", is_flag=True,
              help="Also the passages that recur anywhere, as `lshdup passages` finds "
                   "them.")  # fmt: skip
@shared.run_options
@plain_option("-o", "--output", type=OutputPath(Path), metavar="FILE", group="Output",
              default=Path("-"),
              show_default="standard output",
              help="Write the page there, all or nothing.")  # fmt: skip
def command(ctx: click.Context, options: shared.ReportOptions) -> int:
    """Make one HTML page of the near-duplicates: a histogram whose threshold can be moved, the
    groups, the pairs, and where they differ; and the folders that hold nearly the same. With
    --against or --measure containment: the pairs, as `lshdup pairs` lists them, the share of each
    document, and what they share, side by side; no lists of names.

    The page is whole in itself: it loads nothing, from a file or a server, and shows what stands in
    documents without obeying it. Its groups are those of `lshdup clusters` at the threshold that is
    chosen there, with the bands of --threshold; it saves the names to keep and the names to drop as
    `lshdup clusters --emit` prints them. It names what was not compared. Without DOCS, of the last
    run.
    """
    path = options.output
    if not is_stdout(path):
        format_of(path, formats=PAGE_FORMATS)
    target = Target(path=None if is_stdout(path) else path, color=options.color)
    if target.columns is not None:
        message = "the page is not for a terminal"
        raise InputError(message, "name a file with -o, for instance -o report.html")
    if options.keep == "central":
        message = "the page makes groups at every threshold, for which --keep central is too slow"
        raise ParameterError(message, "use `lshdup clusters --keep central`, or another --keep")
    is_of_pairs = options.measure == "containment" or bool(options.against)
    if is_of_pairs:
        where = "with --against" if options.against else "with --measure containment"
        refuse(ctx, ("keep", "prefer", "passages_of_corpus"), where)
    with open_session(ctx) as session:
        from lshdup.cli.listings.page import write_page, write_shared_page

        if is_of_pairs:
            return write_shared_page(session, options, target)
        return write_page(session, options, target)
