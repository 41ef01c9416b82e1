"""`lshdup show`."""

from dataclasses import fields

import click

from lshdup.base.params import ShingleParams
from lshdup.cli.help import define, plain_option, refuse
from lshdup.cli.options import (
    ShowOptions,
    keep_options,
    list_columns,
    measure_option,
    output_options,
    run_options,
    shingle_options,
    threshold_option,
)
from lshdup.cli.output import make_target
from lshdup.cli.session import open_session
from lshdup.cli.types import DocumentName
from lshdup.errors import InputError

#: Options that hold for two documents only.
_OF_TWO_DOCUMENTS = ("layout", "context", "by_lines", "shingles", "shared", "measure")

#: Options that say how a collection is made, which the group of a document comes from.
_DEFINE = (*(field.name for field in fields(ShingleParams)), "templates", "ignore_common")


@list_columns("show", "show-shared", "show-group", "show-folders", "show-shingles")
@define(
    "show",
    ShowOptions,
    short_help="why two documents match, and where they differ",
    epilog="""\b
Examples:
  lshdup show sample_corpus/licences/ISC.txt sample_corpus/licences/MIT.txt
  lshdup show sample_corpus/udhr/eng.txt sample_corpus/udhr/eng.html --shared
  lshdup index sample_corpus && lshdup show MIT.txt
""",
)
@click.argument("a", type=DocumentName(), metavar="A")
@click.argument("b", type=DocumentName(), metavar="[B]", required=False)
@plain_option("--inline", "layout", flag_value="inline",
              help="One text, with what was removed, added and moved in it.")  # fmt: skip
@plain_option("--side-by-side", "layout", flag_value="side",
              help="Two columns.  [default: of words, on terminals of 120 columns and "
                   "more]")  # fmt: skip
@plain_option("--lines/--words", "by_lines", default=None,
              help="Differences by lines, with line numbers, or by words in running text.  "
                   "[default: by lines if both texts have lines that end at the same "
                   "words]")  # fmt: skip
@plain_option("--context", type=click.IntRange(0), metavar="N",
              show_default="3 lines, 12 words, 60 characters",
              help="Lines, or words (or other tokens), to show around each difference, or shared "
                   "passage; what is beyond them is folded.")  # fmt: skip
@plain_option("--shared", is_flag=True, excludes=("--shingles",), brief=True,
              help="What both share instead of where they differ: the common passages and their "
                   "lines, those that share most first; and the share of each "
                   "document.")  # fmt: skip
@plain_option("--shingles", is_flag=True,
              help="List the shingles instead: those of both, those of A only, those of B "
                   "only.")  # fmt: skip
@measure_option
@threshold_option
@keep_options
@shingle_options
@run_options
@output_options
def command(ctx: click.Context, options: ShowOptions) -> int:
    """Show why two documents match: their similarity, what their shingle sets share, and where
    their texts differ. Of one document, show the group: what the others have instead of passages of
    the one that is kept, each variant once, with the documents that have it.

    A and B are names in the store or unique ends of names, files, or - for standard input. The
    similarity is without what --template and --ignore-common remove now, or did in the last run.
    Texts with the same lines are compared by lines, as they are written: - is a line of A only, +
    one of B only. Other texts are compared by words: differences of case, punctuation and layout
    alone are not marked then. [-removed-] and {+added+} are words of A and of B only; [~moved~] and
    {~moved~} stand elsewhere in the other. On a terminal, colours say it.

    Of two folders, show the documents that are in one only, have changed, or are the same, also
    under another path. They are of the store, or else are read now.

    --shared marks [=passages that stand in both=], at any place, in the words of A, with a few
    words around them, and says where they are in A and B; [~words~] around one are of another
    passage.

    With --format tsv, csv, json or jsonl: the differences, or passages, as data (json: with all
    that is known of the two).
    """
    target = make_target(options)
    of_people = ("layout", "context", "by_lines", "measure")
    if options.shingles:
        refuse(ctx, of_people, "with --shingles")
    elif target.is_for_people:
        refuse(ctx, ("header",), "without --shingles, -0, or --format tsv or csv")
    else:
        refuse(ctx, of_people, "with -0 or a --format of data")
    if options.b is None:
        refuse(ctx, ("max_rows", *_OF_TWO_DOCUMENTS), "with one document")
        refuse(ctx, _DEFINE, "with one document, whose group is that of the last run")
        options.make_rule()  # It is checked before anything is loaded.
        with open_session(ctx) as session:
            from lshdup.cli.listings.documents import show_group

            return show_group(session, options, target)
    refuse(ctx, ("keep", "prefer"), "with two documents")
    if options.a == options.b == b"-":
        message = "A and B are both standard input"
        raise InputError(message, "name a file for one of them")
    with open_session(ctx) as session:
        from lshdup.cli.listings.documents import show_documents
        from lshdup.cli.listings.folders import are_folders, show_folders

        last = session.load_last_collection()
        if are_folders(last, options.both):
            refuse(ctx, _OF_TWO_DOCUMENTS, "with folders")
            return show_folders(session, options, target)
        refuse(ctx, ("threshold",), "with two documents")
        if options.shared:
            refuse(ctx, ("by_lines", "measure"), "with --shared")
        if not options.shingles:
            refuse(ctx, ("max_rows",), "without --shingles")
        return show_documents(session, options, target, last)
