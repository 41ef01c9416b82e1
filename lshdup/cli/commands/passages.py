"""`lshdup passages`."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lshdup.base.params import TOKENS, PassageParams
from lshdup.cli import removal
from lshdup.cli.help import amend, define, option, plain_option, refuse
from lshdup.cli.options import (
    PassagesOptions,
    across_option,
    check_content_option,
    check_option,
    documents_options,
    keep_one_by_one_options,
    list_columns,
    memory_option,
    noisy_option,
    output_options,
    passage_options,
    run_options,
    text_options,
)
from lshdup.cli.output import format_of, make_target
from lshdup.cli.session import open_session
from lshdup.cli.types import OutputPath, Share
from lshdup.errors import ParameterError

if TYPE_CHECKING:
    from lshdup.sources.document_list import DocumentList

_DEFAULT = PassageParams()

#: Options of listings, which a template is none of.
_OF_LISTINGS = ("format_", "header", "max_rows", "nul")


@list_columns("passages", "passages-pairs", "passages-spans")
@define(
    "passages",
    PassagesOptions,
    short_help="passages that stand in several places",
    epilog="""\b
Examples:
  lshdup passages sample_corpus --least 100
  lshdup passages sample_corpus/udhr --against sample_corpus/licences --least 5
  lshdup passages sample_corpus --emit pairs --threshold 20%
""",
)
@amend("min_tokens", hidden=True)
@amend("keep", "prefer", brief=False, requires=("--emit spans", "--write"))
@documents_options
@check_content_option
@noisy_option
@passage_options
@option("--documents", "in_documents", type=click.IntRange(1), default=1, metavar="N",
        excludes=("--emit pairs",), help="Only passages in at least N documents.")  # fmt: skip
@option("--max-documents", type=click.IntRange(1), default=_DEFAULT.max_documents, metavar="N",
        help="What stands in more than N documents, or in twice as many places, is common: its "
             "places are not compared in pairs, but extended together as long as most of them "
             "agree.")  # fmt: skip
@option("--against", multiple=True, type=click.Path(path_type=bytes), metavar="OTHER", brief=True,
        help="Only passages with a place in DOCS and one in OTHER: a folder, a file, or the store "
             "of an earlier run; repeatable for folders and files.")  # fmt: skip
@across_option
@plain_option("--emit", type=click.Choice(("all", "pairs", "template", "spans")), default="all",
              brief=True, help="Passages with all places; the pairs of documents that share "
              "passages, and how much; texts of passages alone, as --template of other commands "
              "takes them; or what to cut so that each stays once, as jsonl.")  # fmt: skip
@plain_option("-t", "--threshold", type=Share(), metavar="T", default=0.0, show_default="all",
              brief=True, requires=("--emit pairs",),
              help="Only pairs of which one document shares so many of its tokens.")  # fmt: skip
@plain_option("--write", type=OutputPath(str), metavar="FILE|DIR/", brief=True,
              excludes=("--emit pairs",), help="Write the JSON Lines or Parquet files with each "
              "passage in one place only, all else as it is; below DIR they keep their names; - is "
              "standard output. Prints passages only with --emit or -o.")  # fmt: skip
@plain_option("--removed", type=OutputPath(Path), metavar="FILE", requires=("--write",),
              help="List there what --write cuts, and the repeats that it cannot cut; - is "
                   "standard output.")  # fmt: skip
@keep_one_by_one_options
@check_option("passages")
@option("--tokens", type=click.Choice([each for each in TOKENS if each != "ids"]),
        default="word", help="What passages are made of: words; symbols (words and every other "
                             "visible character); characters; or terms.")  # fmt: skip
@text_options
@memory_option
@run_options
@output_options
def command(ctx: click.Context, options: PassagesOptions) -> int:
    """Print the passages that stand in several places, word for word, the most repeated first: each
    with its places, as tokens and as bytes to cut.

    A passage is as long as it can be, and is no part of a longer one with the same places. Start
    and end are bytes of the document as it is stored; where the text was extracted (pages, mails,
    office documents, compressed files) of that text, where it is the field of a row of the field;
    the column offsets says which.

    With --emit pairs, tokens of a pair are those of its passages, each counted once; of the two
    documents the smaller number counts, as of passages. A share is of the tokens of its document.
    The largest share comes first.

    With --emit spans and --write a passage stays in one place: in the document that --prefer and
    --keep say, as in `lshdup clusters`. With --against, all places in DOCS are cut. Without DOCS,
    of the last run.
    """
    if options.emit == "template":
        refuse(ctx, _OF_LISTINGS, "with --emit template")
        if options.output is not None:
            format_of(Path(options.output), formats={".txt": ""})
    if options.emit == "spans" and not options.nul:
        options = replace(options, format_=options.format_ or "jsonl")
    if options.gap and (options.emit == "spans" or options.write is not None):
        message = "--gap cannot be combined with --emit spans or --write, which cut equal places"
        raise ParameterError(message, "leave --gap out")
    refuse(ctx, ("min_tokens",), "where no passage is shorter than --least")
    target = make_target(options)
    removal.check_outputs(ctx, options)
    options.make_rule()  # They are checked before anything is loaded.
    options.make_params()
    with open_session(ctx, partial(_check_write, options)) as session:
        from lshdup.cli.listings.passages import print_pairs, print_passages

        if options.emit == "pairs":
            return print_pairs(session, options, target)
        return print_passages(ctx, session, options, target)


def _check_write(
    options: PassagesOptions, documents: "DocumentList", read: bool
) -> Iterator[tuple[str, str]]:
    """Yield the files that --write writes. Raise before the work if it cannot be carried out, as
    far as is known then.
    """
    yield from removal.check_documents(options, documents, read, mails=False)
    if options.write is not None:
        from lshdup.passages.cutting import check_cutting

        check_cutting(documents)
