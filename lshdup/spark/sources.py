"""Sources of documents on Spark: the one way from input to documents, for sketches and for sets."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from lshdup.errors import InputError
from lshdup.params import LONGEST
from lshdup.spark import functions as f
from lshdup.spark.caching import sift
from lshdup.spark.workers.documents import DOCUMENTS, Batches
from lshdup.utils.messages import join_names
from lshdup.utils.parts import PART

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Source:
    """Rows of input, and the function by which a worker reads documents from them.

    rows : a DataFrame; if it has a column `id`, each row is one document.
    read : function from batches of the rows to batches of `workers.documents.DOCUMENTS`; None if
        the rows are documents, with the columns `id` and `text` and any others of DOCUMENTS.
    """

    rows: "DataFrame"
    read: Callable[[Batches], Batches] | None = None

    @property
    def documents(self) -> "DataFrame":
        """The documents, with all columns of DOCUMENTS."""
        if self.read is not None:
            return self.rows.mapInArrow(self.read, DOCUMENTS)
        columns = (field.split() for field in DOCUMENTS.split(", "))
        return self.rows.select(
            *(
                (f.col(name) if name in self.rows.columns else f.lit(None))
                .cast(of_type)
                .alias(name)
                for name, of_type in columns
            )
        )


def map_documents(
    sources: tuple[Source, ...], work: Callable[[Batches], Batches], schema: str
) -> "DataFrame":
    """Return the results of a worker's function over the documents of all sources.

    The worker that reads a document works on it, so Spark does not carry texts between workers.

    work : function from batches of DOCUMENTS to batches of `schema`.
    """
    mapped = (
        source.rows.mapInArrow(partial(_read_and_work, source.read, work), schema)
        for source in sources
    )
    return reduce(lambda rows, more: rows.unionByName(more), mapped)


def _read_and_work(
    read: Callable[[Batches], Batches] | None, work: Callable[[Batches], Batches], rows: Batches
) -> Batches:
    return work(read(rows) if read else rows)


def select_documents(
    sources: tuple[Source, ...], wanted: "DataFrame", n: int
) -> tuple[Source, ...]:
    """Return sources of the documents with one of n wanted ids, and of a few others (`sift`).

    A file is selected before it is read. Other documents have no id before they are read.

    wanted : a DataFrame with a column `id`.
    """
    selected = [source for source in sources if source.read and "id" in source.rows.columns]
    others = [source.documents for source in sources if source not in selected]
    if others:
        selected.append(Source(reduce(lambda rows, more: rows.unionByName(more), others)))
    return tuple(replace(source, rows=sift(source.rows, wanted, n, "id")) for source in selected)


def id_and_text(rows: "DataFrame", name: str, *texts: str) -> "DataFrame":
    """Return the columns `id`, as bytes, and `text` of rows.

    name, texts : columns, or fields within columns (``a.b``); several texts are joined.

    Raises InputError if there are no such columns, or if they are of another type.
    """
    from pyspark.sql import types

    # Spark takes names that differ only by case for one name, so columns are called by number.
    numbered = rows.toDF(*(f"c{number}" for number in range(len(rows.columns))))
    columns = []
    text_types = types.StringType, types.BinaryType
    for option, field, allowed in (
        ("--id-field", name, (*text_types, types.IntegralType)),
        *(("--text-field", text, text_types) for text in texts),
    ):
        way = [field] if field in rows.columns else field.split(".")
        found: list[types.DataType] = [rows.schema]
        for step in way:
            structs = (each for each in found if isinstance(each, types.StructType))
            found = [part.dataType for struct in structs for part in struct if part.name == step]
        if len(found) != 1:
            message = f"there is no column {field!r}, but {join_names(rows.columns)}"
            if found:
                message = f"there are {len(found)} columns {field!r}"
            raise InputError(message, f"{option} names another")
        found_type = found[0]
        if not isinstance(found_type, allowed):
            message = f"the column {field!r} is of type {found_type.simpleString()}"
            raise InputError(message, f"{option} names another")
        within = (".`" + part.replace("`", "``") + "`" for part in way[1:])
        column = f.col("".join([f"c{rows.columns.index(way[0])}", *within]))
        if option == "--id-field" and not isinstance(found_type, types.BinaryType):
            column = column.cast("string").cast("binary")  # a text is not cast, to save a copy
        columns.append(column)
    text = columns[1]
    if len(texts) > 1:
        strings = [column.cast("binary") for column in columns[1:]]
        parts = [f.coalesce(f.concat(f.lit(PART), each), f.lit(b"")) for each in strings]
        joined = f.substring(f.concat(*parts), len(PART) + 1, LONGEST)  # none before the first
        text = f.when(f.coalesce(*strings).isNotNull(), joined)
    return numbered.select(columns[0].alias("id"), text.alias("text"))
