"""`lshdup clusters`."""

from functools import partial
from pathlib import Path

import click

from lshdup.base.params import LINKAGES
from lshdup.cli import removal
from lshdup.cli.help import define, option, plain_option, stack
from lshdup.cli.options import (
    ClustersOptions,
    across_option,
    against_option,
    check_option,
    keep_by_option,
    keep_options,
    list_columns,
    memory_option,
    output_options,
    run_options,
    same_options,
    table_options,
)
from lshdup.cli.output import make_target
from lshdup.cli.session import open_session
from lshdup.cli.types import OutputPath


@list_columns("clusters", "clusters-names")
@define(
    "clusters",
    ClustersOptions,
    short_help="groups of near-duplicates, and which of each to keep",
    epilog="""\b
Examples:
  lshdup clusters sample_corpus --prefer '*.txt'
  lshdup clusters sample_corpus --emit drop -0 | xargs -0 -r ls -l
  lshdup clusters sample_corpus/udhr --against sample_corpus/licences -t 0.6
""",
)
@stack(
    table_options,
    keep_options,
    keep_by_option,
    against_option("What is near a document of OTHER goes too; OTHER stays"),
    across_option,
    plain_option("--emit", type=click.Choice(("all", "keep", "drop", "drop-files")), default="all",
                  brief=True,
                  help="Groups with all that is known; or names only: all that stays; what may "
                       "go; of that only whole files."),
    plain_option("--write", type=OutputPath(str), metavar="FILE|DIR/", brief=True,
                 help="Write the JSON Lines, CSV or Parquet files, mailboxes or Maildirs without "
                      "what may go, all else as it is; - is standard output. Groups only with "
                      "--emit or -o."),
    plain_option("--removed", type=OutputPath(Path), metavar="FILE",
                  help="List there what --write leaves out; without it all that may go, with "
                       "reasons and checksums, instead of groups; - likewise."),
    plain_option("--annotate", type=OutputPath(str), metavar="FILE|DIR/", excludes=("--write",),
                  help="Write the JSON Lines, CSV or Parquet files with all rows, and columns that "
                       "say the group, what is kept, and why; - likewise."),
    option("--linkage", type=click.Choice(LINKAGES), default=ClustersOptions.linkage,
            excludes=("--same",),
            help="All similar enough to the one that is kept; or what chains of pairs "
                 "connect."),
    same_options,
    check_option("groups"),
    memory_option,
    run_options,
    output_options,
)  # fmt: skip
def command(ctx: click.Context, options: ClustersOptions) -> int:
    """Print groups of near-duplicates: group, keep or drop, name, similarity, copy, smallest
    similarity of the group, same.

    Every document of a group is at least the threshold similar to the one that is kept. It is a
    copy if it has the same shingles; same is bytes for equal files, text for the same words in the
    same order, else empty. Nothing is moved or deleted.

    Without DOCS, the documents of the last run are grouped. With --against, the document of OTHER
    that others are near has the role other. Nothing of OTHER goes.
    """
    target = make_target(options)
    removal.check_outputs(ctx, options)
    options.make_rule()  # It is checked before anything is loaded.
    with open_session(ctx, partial(removal.check_documents, options)) as session:
        from lshdup.cli.listings.clusters import list_groups

        return list_groups(ctx, session, options, target)
