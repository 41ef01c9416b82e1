"""`lshdup report`."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli import options as shared
from lshdup.cli import session as sessions
from lshdup.cli.find_pairs import Answer, found_pairs
from lshdup.cli.output import Target
from lshdup.errors import InputError
from lshdup.params import ClusterParams
from lshdup.utils.messages import counted, typed
from lshdup.version import __version__
from lshdup.workspace.lookup import Asked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.report.html import Segment, Selection

#: Tokens that stay around a difference.
_CONTEXT = {"word": 12, "char": 60, "terms": 12}

#: Documents of more bytes are not compared for a page: `lshdup show` does it in seconds, one pair at a time.
_LONGEST = 1 << 20
_TOO_LONG = "a document has more than 1 MiB of text, for which there is `lshdup show`"


@click.command(
    "report",
    cls=shared.Command,
    short_help="one HTML page to look through what was found",
    epilog="""\b
Examples:
  lshdup report sample_corpus --threshold 0.6 -o report.html && wc -c report.html
  lshdup index sample_corpus && lshdup report --threshold 0.9 > near.html && ls -l near.html
""",
)
@shared.table_options
@shared.exact_option
@shared.max_bucket_option
@shared.keep_options
@shared.option("--most", type=click.IntRange(1), default=10_000, show_default=True, metavar="N",
               help="Pairs in the page, copies counted once: the most similar ones. The page says what is left out.")  # fmt: skip
@shared.option("--passages", type=click.IntRange(0), default=1_000, show_default=True, metavar="N",
               help="Pairs whose differing passages are in the page: members of groups with the one that is kept, then the least alike. "
                    "More: a larger page.")  # fmt: skip
@shared.run_options
@shared.plain_option("-o", "--output", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE", default=Path("-"),
              show_default="standard output", help="Write the page there, all or nothing.")  # fmt: skip
@shared.plain_option(
    "-0", "--null", "nul", is_flag=True, help="Names of --files-from are NUL-separated."
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make one HTML page of the near-duplicates: a histogram whose threshold can be moved, the groups, the pairs, and where they differ.

    The page is whole in itself: it loads nothing, from a file or a server, and shows what stands in documents without obeying it. Its
    groups are those of `lshdup clusters` at the threshold that is chosen there, from --threshold on. Without DOCS, of the last run.
    """  # fmt: skip
    path = options["output"]
    _refuse_page_as_document(options["docs"], path)
    target = Target(path=None if path == Path("-") else path, color=options["color"])
    if target.columns is not None:
        message = "the page is not for a terminal"
        raise InputError(message, "name a file with -o, for instance -o report.html")
    if options["exact"]:
        sessions.refuse_with_exact(ctx)
    with sessions.session(ctx, options) as session:
        from lshdup.documents.preference import preference
        from lshdup.report import html

        console = session.console
        answer = found_pairs(session, options)
        collection, plan = answer.collection, answer.plan
        asked = ClusterParams(keep=options["keep"], prefer=options["prefer"])
        order, unused = preference(
            collection.documents, collection.sizes, asked, session.request.documents
        )
        for line in unused:
            console.warn(line)
        promise = (
            html.Promise(answer.threshold, plan.bands, plan.rows)
            if plan
            else html.Promise(answer.threshold, exact=True)
        )
        selection = html.select_pairs(answer.found, answer.duplicate_of, promise, options["most"])
        without: dict[int | str, str] = {"": f"more than --passages {options['passages']}"}
        passages = dict(_passages(session, answer, selection, order, options["passages"], without))
        skipped = dict(console.left_out_counts) if session.request.documents else None
        what, n = _what(session, options["store"]), len(collection.documents)
        facts = html.Facts(
            what, n, _newest(collection), skipped, list(_parameters(answer)), without
        )
        known = html.collect_data(
            selection,
            answer.duplicate_of,
            collection.sizes,
            order,
            collection.documents.typed_names,
            passages,
            facts,
        )
        page = html.render_page(known)
        target.write_raw([page])
        if selection.omitted:
            console.say(selection.omitted)
        note = html.describe_missing_passages(len(selection.pairs), len(passages), without)
        console.say(
            f"the page has {len(page):,} bytes; {note or f'with the passages of all {len(passages):,} pairs'}"
        )
        sessions.warn_of_changes(session, collection.documents, answer.pairs.documents())
        return console.exit_code


def _refuse_page_as_document(names: tuple[bytes, ...], path: Path) -> None:
    """Raise if DOCS names what is probably the page: one that is not there, or the only thing that is named."""
    for name in map(os.fsdecode, names):
        is_there = os.path.lexists(name)
        if (
            path == Path("-")
            and name.lower().endswith((".html", ".htm"))
            and not os.path.isdir(name)
            and (not is_there or len(names) == 1)
        ):
            others = [each for each in map(os.fsdecode, names) if each != name]
            message = f"{name!r} is named as a document{'' if is_there else ', and is not there'}"
            raise InputError(
                message,
                f"if the page is to be written there: {typed('lshdup', 'report', *others, '-o', name)}",
            )


def _what(session: sessions.Session, store: Path) -> str:
    names = session.request.documents
    some = ", ".join(_named(name) for name in names[:3])
    return (
        f"{some} and {len(names) - 3} more"
        if len(names) > 3
        else some or f"the last run in the store {store.resolve()}"
    )


def _named(argument: bytes) -> str:
    """What was typed; where that says nothing to who does not sit there, the folder that it means."""
    name = os.path.realpath(argument) if argument.strip(b"./") == b"" else argument
    return name.decode("utf-8", "backslashreplace")


def _newest(collection: "Collection") -> str:
    """The day to which the page is true at least. Not that of the run: the same documents make the same page."""
    mtimes = collection.documents.mtimes
    return (
        datetime.fromtimestamp(int(mtimes.max()) // 10**9, UTC).strftime("%-d %B %Y")
        if len(mtimes)
        else ""
    )


def _parameters(answer: Answer) -> Iterator[tuple[str, str]]:
    """What was asked, for who reads the page later."""
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
    for name in (name for name, given in flags.items() if given):
        yield name, "yes"
    if collection.shingle_filter is not None:
        yield (
            "removed from every set",
            counted(
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
    session: sessions.Session,
    answer: Answer,
    selection: "Selection",
    order: "NDArray[np.int64]",
    most: int,
    without: dict[int | str, str],
) -> "Iterator[tuple[int, list[Segment]]]":
    """Where the texts of some pairs differ, by number of the pair; not of ids, which have no text, nor of what has gone since.

    without : is told why a pair has none.
    """
    from lshdup.report.comparison import compare
    from lshdup.report.html import find_segments

    collection = answer.collection
    if collection.shingle.tokens == "ids":
        without[""] = "ids are no text"
        return
    texts = _Texts(collection)
    chosen = _chosen(answer, selection, order)[:most]
    left, right = selection.pairs.left, selection.pairs.right
    for done, at in enumerate(chosen, 1):
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
        session.console.progress("passages", done, len(chosen))


def _chosen(answer: Answer, selection: "Selection", order: "NDArray[np.int64]") -> list[int]:
    """Numbers of pairs in the order in which people will want to see them."""
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
    """The texts of documents as they are now, the last few of them kept."""

    _KEPT = 64

    def __init__(self, collection: "Collection") -> None:
        self._collection = collection
        self._known: dict[int, bytes | str] = {}

    def of(self, document: int) -> bytes | str:
        """UTF-8; or, as a str, why there is none: it has gone, is no text any more, or is too long."""
        if document not in self._known:
            if len(self._known) >= self._KEPT:
                del self._known[next(iter(self._known))]
            asked = Asked(
                self._collection.documents.names[document], document, collection=self._collection
            )
            try:
                text = asked.text(self._collection.shingle.encoding)
                self._known[document] = text if len(text) <= _LONGEST else _TOO_LONG
            except InputError:
                self._known[document] = "a document cannot be read any more"
        return self._known[document]
