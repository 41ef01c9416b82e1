"""What may go of a comparison: its list with reasons and checksums, the rows of files that are left
out, and the columns that say of each row what may go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of
from lshdup.base.ragged import distinct
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped, SkippedFile
from lshdup.base.wording import printable
from lshdup.collection.annotating import Annotating
from lshdup.collection.checksums import Checksums, make_checksums
from lshdup.collection.collection import Collection
from lshdup.compare.clusters import Clusters, list_clusters
from lshdup.compare.results import ClustersFound
from lshdup.compare.sides import LEVELS
from lshdup.errors import InputError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.rewriting import Open, rewrite
from lshdup.workspace.comparing import Comparison

_I64 = NDArray[np.int64]

#: Makes further columns of documents that go, given these and what is kept for them.
More = Callable[[_I64, _I64], Sequence[Sequence[Any]]]

#: Rows of a list that are made at a time.
PIECE = 1 << 13


def refuse_nothing(compared: int, collection: Collection) -> None:
    """Raise InputError if no document was compared: what is written would be a copy.

    compared : number of documents.
    """
    if not compared:
        every = (each.skipped for each in collection.list_skipped())
        example = min(every, key=lambda each: not each.is_error, default=None)
        hint = "no row has text that can be compared"
        if example is not None:
            hint = f"{printable(example.name)}: {example.reason}"
            hint += f" ({printable(example.detail)})" * bool(example.detail)
        message = "nothing was compared, so nothing is written"
        raise InputError(message, hint)


# --- what may go, of any kind ---------------------------------------------------------------------


def verify(run: Run, opened: Comparison, found: ClustersFound) -> tuple[ClustersFound, Checksums]:
    """Return the groups without documents that have changed since they were read, which are said,
    and the checksums of what may go and of what is kept for it.

    Equal files have equal checksums, or one of them has changed, though not its time.
    """
    clusters = found.clusters
    dropped, own = clusters.dropped, clusters.representative
    chosen = distinct(np.concatenate([dropped, own[dropped]]))[0]
    sums = make_checksums(run, opened.lists, chosen)
    is_lost = sums.sizes < 0
    for rows in _pieces(dropped):
        are_equal = opened.sides.prints.compare(rows, own[rows]) == LEVELS.index("bytes")
        is_lost[sums.rows(rows[are_equal & sums.differ(rows, own[rows])])] = True
    lost = chosen[is_lost]
    for name in opened.names(lost):
        run.skipped(Skipped(name, Reason.CHANGED, "since it was compared: not listed"))
    every = np.concatenate([found.lost, lost])
    return replace(found, clusters=clusters.without(lost), lost=every), sums


def list_may_go(
    opened: Comparison, clusters: Clusters, dropped: _I64, sums: Checksums
) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield pieces of the list of some documents that may go: its columns.

    dropped : int64 array, ascending: the documents. sums : of `verify`.
    """
    documents = opened.lists[0]
    for rows in _pieces(dropped):
        kept = clusters.representative[rows]
        times = np.asarray(documents.mtimes[rows]).astype("datetime64[ns]")
        yield (
            documents.typed_names(rows),
            opened.tell(kept, DocumentList.typed_names),
            [word or "similarity" for word in opened.sides.prints.words(rows, kept)],
            clusters.similarity[rows].tolist(),
            sums.sizes[sums.rows(rows)].tolist(),
            np.datetime_as_string(times, timezone="UTC").tolist(),
            sums.words(rows),
            sums.words(kept),
        )


def _pieces(rows: _I64) -> Iterator[_I64]:
    return (rows[start : start + PIECE] for start in range(0, len(rows), PIECE))


# --- rows of files --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gone:
    """The rows that are left out of files, in their order.

    documents : DOCS, with copies of their rows behind them.
    rows : int64 array of shape (n,), among these documents.
    origins : int64 array of shape (n,), the document whose group each row is of: itself, or the one
        that it is a copy of.
    """

    documents: DocumentList
    rows: _I64
    origins: _I64

    @classmethod
    def of(cls, opened: Comparison, clusters: Clusters, *, copies_go: bool) -> "Gone":
        """Return what clusters drop, and copies with their ids of that, or of all compared rows."""
        documents = opened.here.documents
        copies, firsts = _find_copies(opened, clusters, copies_go=copies_go)
        every = documents.with_records(copies)
        rows = np.append(clusters.dropped, len(documents) + np.arange(len(copies)))
        order = np.lexsort((every.locations.starts[rows], every.locations.file[rows]))
        return cls(every, rows[order], np.append(clusters.dropped, firsts)[order])

    def list(
        self, opened: Comparison, clusters: Clusters, more: Sequence[More]
    ) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield pieces of the list of these rows: its columns, and further ones."""
        for at in _pieces(np.arange(len(self.rows))):
            rows, origins = self.rows[at], self.origins[at]
            kept = clusters.representative[origins]
            yield (
                self.documents.ids(rows),
                opened.tell(kept, DocumentList.ids),
                np.where(kept == origins, 1.0, clusters.similarity[origins]).tolist(),
                self.documents.typed_files_of(rows),
                opened.tell(kept, DocumentList.typed_files_of),
                opened.sides.prints.words(origins, kept),
                *(column for make in more for column in make(origins, kept)),
            )


def _find_copies(
    opened: Comparison, clusters: Clusters, *, copies_go: bool = True
) -> tuple[list[SkippedFile], _I64]:
    """Return the rows with the id and the text of a compared row, and these: int64 array.

    copies_go : whether those of a row that stays are among them.
    """
    repeats = [
        each for each in opened.here.list_skipped_records() if each.skipped.reason == Reason.COPY
    ]
    found = opened.here.documents.find_all([each.skipped.name for each in repeats])
    firsts = np.array(found, np.int64)
    own = np.where(firsts >= 0, clusters.representative[firsts], -1)
    are_copies = np.flatnonzero((own >= 0) & (copies_go | (own != firsts)))
    return [repeats[at] for at in are_copies.tolist()], firsts[are_copies]


def annotate(
    run: Run,
    opened: Comparison,
    clusters: Clusters,
    columns: Mapping[str, type],
    target: Path | str,
    open_target: Open,
) -> tuple[list[Path], Annotating, int]:
    """Write the files with columns that say what of each row may go. Return these files, the change
    with the numbers of rows, and how many of these rows were compared.

    Rows with the id and the text of a compared one are of its group.

    columns : names and types of the group, what is kept, the similarity to it, whether the two are
        the same, and the size of the group.
    """
    documents, n, own = opened.here.documents, len(opened.here.documents), clusters.representative
    arrays, compared = run.arrays, int((own[:n] >= 0).sum())
    refuse_nothing(compared, opened.here)
    copies, origins = _find_copies(opened, clusters)
    # Copies are documents behind those of DOCS, and in groups behind those of all sides.
    others, own = len(own) - n, arrays.concatenate([own, own[origins]])
    score = arrays.concatenate([clusters.similarity, clusters.similarity[origins]])
    origin = arrays.concatenate([arrays.compute(n + others, np.int64, rows_of), origins])
    groups = Clusters(run, own, score)
    listed, sizes = list_clusters(groups), groups.sizes
    number: NDArray[np.int64] = arrays.zeros(len(own), np.int64)
    number[listed.documents] = listed.numbers

    def cells(rows: _I64) -> list[list[Any]]:
        """Return the cells of documents, or of rows that are none: -1 or less."""
        rows = np.where(rows < n, rows, rows + others)
        known = np.flatnonzero((rows >= 0) & (own[np.maximum(rows, 0)] >= 0))
        table = np.full((len(columns), len(rows)), None, object)
        table[-1] = 1
        rows, kept = rows[known], own[rows[known]]
        words = opened.sides.prints.words(origin[rows], kept)
        told = (
            [group or None for group in number[rows].tolist()],
            opened.tell(kept, DocumentList.ids),
            score[rows].tolist(),
            np.where(rows == kept, np.full(1, None), np.array(words, object)),
            sizes[kept].tolist(),
        )
        for row, column in zip(table, told, strict=True):
            row[known] = np.fromiter(column, object, len(known))
        return table.tolist()

    rows = documents.with_records(copies)
    change = Annotating(columns, cells, documents.record_files.fields.id)
    every = arrays.compute(len(rows), np.int64, rows_of)
    paths = rewrite(run, rows, every, target, change, open_target).paths
    return paths, change, compared + len(copies)
