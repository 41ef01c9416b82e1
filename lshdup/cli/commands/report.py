"""`lshdup report`."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli.conflicts import refuse_with_exact
from lshdup.cli.find_pairs import PairsListed, find_pairs
from lshdup.cli.help import Command, plain_option
from lshdup.cli.messages import warn_of_changes
from lshdup.cli.options import (
    exact_option,
    keep_options,
    max_bucket_option,
    null_names_option,
    option,
    run_options,
    table_options,
)
from lshdup.cli.output import Target
from lshdup.cli.session import Session, open_session
from lshdup.errors import InputError
from lshdup.params import ClusterParams
from lshdup.utils.messages import count_of, quote_command
from lshdup.version import __version__
from lshdup.workspace.lookup import NamedDocument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.report.html import Segment, Selection

#: Tokens around a difference that the page shows.
_CONTEXT = {"word": 12, "symbols": 20, "char": 60, "terms": 12}

#: Most bytes of a document whose passages are in the page; `lshdup show` takes seconds for more.
_MOST_BYTES = 1 << 20
_TOO_LONG = "a document has more than 1 MiB of text, for which there is `lshdup show`"


@click.command(
    "report",
    cls=Command,
    short_help="one HTML page to look through what was found",
    epilog="""\b
Examples:
  lshdup report sample_corpus --threshold 0.6 -o report.html && wc -c report.html
  lshdup index sample_corpus && lshdup report --threshold 0.9 > near.html && ls -l near.html
""",
)
@table_options
@exact_option
@max_bucket_option
@keep_options
@option("--most", type=click.IntRange(1), default=10_000, metavar="N",
               help="Pairs in the page, copies counted once: the most similar ones. The page says "
                    "what is left out.")  # fmt: skip
@option("--passages", type=click.IntRange(0), default=1_000, metavar="N",
               help="Pairs whose differing passages are in the page: members of groups with the "
                    "one that is kept, then the least alike. More: a larger page.")  # fmt: skip
@run_options
@plain_option("-o", "--output", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
              default=Path("-"),
              show_default="standard output",
              help="Write the page there, all or nothing.")  # fmt: skip
@null_names_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make one HTML page of the near-duplicates: a histogram whose threshold can be moved, the
    groups, the pairs, and where they differ.

    The page is whole in itself: it loads nothing, from a file or a server, and shows what stands in
    documents without obeying it. Its groups are those of `lshdup clusters` at the threshold that is
    chosen there, from --threshold on. Without DOCS, of the last run.
    """
    path = options["output"]
    _refuse_page_as_document(options["docs"], path)
    target = Target(path=None if path == Path("-") else path, color=options["color"])
    if target.columns is not None:
        message = "the page is not for a terminal"
        raise InputError(message, "name a file with -o, for instance -o report.html")
    if options["exact"]:
        refuse_with_exact(ctx)
    with open_session(ctx, options) as session:
        from lshdup.documents.preference import preference
        from lshdup.report import html

        console = session.console
        answer = find_pairs(session, options)
        collection, plan = answer.collection, answer.plan
        rule = ClusterParams(keep=options["keep"], prefer=options["prefer"])
        order, unused = preference(
            collection.documents, collection.sizes, rule, session.request.documents
        )
        for line in unused:
            console.warn(line)
        promise = (
            html.Promise(answer.threshold, plan.bands, plan.rows)
            if plan
            else html.Promise(answer.threshold, exact=True)
        )
        selection = html.select_pairs(
            answer.distinct_pairs, answer.duplicate_of, promise, options["most"]
        )
        without: dict[int | str, str] = {"": f"more than --passages {options['passages']}"}
        passages = dict(_passages(session, answer, selection, order, options["passages"], without))
        skipped = dict(console.skipped_counts) if session.request.documents else None
        facts = html.Facts(
            _describe_documents(session, options["store"]),
            len(collection.documents),
            _newest_day(collection),
            skipped,
            list(_parameters(answer)),
            without,
        )
        data = html.collect_data(
            selection,
            answer.duplicate_of,
            collection.sizes,
            order,
            collection.documents.typed_names,
            passages,
            facts,
        )
        page = html.render_page(data)
        target.write_raw([page])
        if selection.omitted:
            console.say(selection.omitted)
        note = html.describe_missing_passages(len(selection.pairs), len(passages), without)
        console.say(
            f"the page has {len(page):,} bytes; "
            f"{note or f'with the passages of all {len(passages):,} pairs'}"
        )
        warn_of_changes(session, collection.documents, answer.pairs.documents())
        return console.exit_code


def _refuse_page_as_document(names: tuple[bytes, ...], path: Path) -> None:
    """Raise InputError if DOCS seem to name the page that is to be written.

    That is a page that does not exist, or the only name in DOCS.
    """
    for name in map(os.fsdecode, names):
        exists = os.path.lexists(name)
        if (
            path == Path("-")
            and name.lower().endswith((".html", ".htm"))
            and not os.path.isdir(name)
            and (not exists or len(names) == 1)
        ):
            others = [each for each in map(os.fsdecode, names) if each != name]
            message = f"{name!r} is named as a document{'' if exists else ', and is not there'}"
            raise InputError(
                message,
                "if the page is to be written there: "
                f"{quote_command('lshdup', 'report', *others, '-o', name)}",
            )


def _describe_documents(session: Session, store: Path) -> str:
    """Return the names in DOCS, or the store of the last run."""
    names = session.request.documents
    first = ", ".join(_readable(name) for name in names[:3])
    if len(names) > 3:
        return f"{first} and {len(names) - 3} more"
    return first or f"the last run in the store {store.resolve()}"


def _readable(argument: bytes) -> str:
    """Return a name as typed; for ".", ".." and the like, the folder that it means."""
    name = os.path.realpath(argument) if argument.strip(b"./") == b"" else argument
    return name.decode("utf-8", "backslashreplace")


def _newest_day(collection: "Collection") -> str:
    """Return the day of the newest document.

    The day of the run would make another page of the same documents.
    """
    mtimes = collection.documents.mtimes
    return (
        datetime.fromtimestamp(int(mtimes.max()) // 10**9, UTC).strftime("%-d %B %Y")
        if len(mtimes)
        else ""
    )


def _parameters(answer: PairsListed) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the run, for later readers of the page."""
    collection, plan = answer.collection, answer.plan
    shingle, sketch = collection.shingle, collection.sketch
    yield "threshold", f"{answer.threshold:g}"
    yield "shingles", f"{shingle.k} {shingle.tokens}"
    flags = {
        "--bag": shingle.bag,
        "--keep-case": shingle.keep_case,
        "--no-normalize": not shingle.normalize,
        "--hash-key": shingle.key,
    }
    for name in (name for name, is_set in flags.items() if is_set):
        yield name, "yes"
    if collection.shingle_filter is not None:
        yield (
            "removed from every set",
            count_of(
                len(collection.shingle_filter.template) + len(collection.shingle_filter.common),
                "shingle",
            ),
        )
    if plan is None:
        yield "found by", "the exact join of all sets"
    elif sketch is not None:
        yield "signatures", f"{sketch.scheme}, K = {sketch.perms}, seed {sketch.seed}"
        yield "found by", f"{plan.bands} bands of {plan.rows} rows"
    yield "made by", f"lshdup {__version__}"


def _passages(
    session: Session,
    answer: PairsListed,
    selection: "Selection",
    order: "NDArray[np.int64]",
    most: int,
    without: dict[int | str, str],
) -> "Iterator[tuple[int, list[Segment]]]":
    """Yield the passages in which the documents of pairs differ, with the number of the pair.

    order : documents in the order in which one of a group is kept.
    most : pairs that may have passages.
    without : receives the reason why a pair has no passages.
    """
    from lshdup.report.comparison import compare
    from lshdup.report.html import find_segments

    collection = answer.collection
    if collection.shingle.tokens == "ids":
        without[""] = "ids are no text"
        return
    texts = _Texts(collection)
    numbers = _order_pairs(answer, selection, order)[:most]
    left, right = selection.pairs.left, selection.pairs.right
    for done, at in enumerate(numbers, 1):
        a, b = texts.of(int(left[at])), texts.of(int(right[at]))
        if isinstance(a, str) or isinstance(b, str):
            without[at] = a if isinstance(a, str) else str(b)
        else:
            yield (
                at,
                find_segments(
                    compare(a, b, collection.shingle), _CONTEXT[collection.shingle.tokens]
                ),
            )
        session.console.progress("passages", done, len(numbers))


def _order_pairs(
    answer: PairsListed, selection: "Selection", order: "NDArray[np.int64]"
) -> list[int]:
    """Return numbers of pairs: members of groups with the kept one, then the least alike."""
    import numpy as np

    from lshdup.matching import clusters
    from lshdup.matching.pairs import pack_pairs

    pairs, duplicate_of = selection.pairs, answer.duplicate_of
    ranked = clusters.rank_documents(selection.representatives, duplicate_of, order)
    groups = clusters.cluster_pairs(pairs, ranked, len(duplicate_of), selection.promise.threshold)
    members = groups.dropped
    leaders = groups.representative[members]
    wanted = pack_pairs(np.minimum(members, leaders), np.maximum(members, leaders))
    is_member = np.isin(pairs.keys, wanted)
    at = np.arange(len(pairs))
    return [*at[is_member].tolist(), *at[~is_member][::-1].tolist()]


class _Texts:
    """A cache of the texts of documents, as the documents are now."""

    _MOST = 64

    def __init__(self, collection: "Collection") -> None:
        self._collection = collection
        self._texts: dict[int, bytes | str] = {}

    def of(self, document: int) -> bytes | str:
        """Return the text of a document as UTF-8; or, as a str, why it cannot be compared."""
        if document not in self._texts:
            if len(self._texts) >= self._MOST:
                del self._texts[next(iter(self._texts))]
            named = NamedDocument(
                self._collection.documents.names[document], document, collection=self._collection
            )
            try:
                text = named.text(self._collection.shingle.encoding)
                self._texts[document] = text if len(text) <= _MOST_BYTES else _TOO_LONG
            except InputError:
                self._texts[document] = "a document cannot be read any more"
        return self._texts[document]
