"""The tools of `lshdup mcp`: what an agent may ask, and the answers, which are those of the
commands over the same folders.

A tool is a class: its fields are the arguments, its docstring says when to use it. A path means a
document that was found below the folders, by its name: no path of an agent is ever opened.
"""

import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from lshdup.base.frozen import dataclass
from lshdup.base.params import LONGEST, BandParams, PairParams, PassageParams
from lshdup.base.run import Progress
from lshdup.base.wording import Cell, count_of, printable
from lshdup.cli.columns import COMPARISON, COUNT, LISTINGS, NAME, TEXT, Type
from lshdup.cli.listings.documents import describe_documents, describe_shares, list_changes
from lshdup.cli.listings.pairs import Listing, list_rows
from lshdup.cli.messages import describe_reasons
from lshdup.cli.schemas import Schema, schema_of_object, schemas_of_cells
from lshdup.cli.session import Session
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import side_of
from lshdup.compare.sides import LEVELS, Sides
from lshdup.errors import InputError, ParameterError
from lshdup.lsh.band_plan import plan_bands
from lshdup.passages.finding import find_passages
from lshdup.shingling.inspection import LocatedText, locate_tokens
from lshdup.views import comparison
from lshdup.views.changes import ALIKE
from lshdup.views.pair_view import shorten
from lshdup.views.terminal import CONTEXT, LINES, NOUNS, Layout, render, summarize
from lshdup.workspace.accepted import find_accepted, without_accepted
from lshdup.workspace.comparing import Comparison
from lshdup.workspace.folders import find_below
from lshdup.workspace.index import find_near, load_or_build_index, read_query
from lshdup.workspace.loading import load_signatures
from lshdup.workspace.lookup import NamedDocument, look_up
from lshdup.workspace.passages import find_with_document
from lshdup.workspace.request import Request
from lshdup.workspace.workspace import Workspace

#: Rows of an answer; bytes of its rows, and of its text; characters of an error, and of a text in a
#: row; and places of a passage that are listed.
MOST_ROWS, MOST_BYTES, LONGEST_ERROR, _CHARACTERS, _PLACES = 100, 24_000, 2_000, 400, 5

#: A passage of the text, and one of its places in a document. The first one has the words.
_PASSAGES = {"passage": COUNT, "tokens": COUNT, "places": COUNT, "text_line": COUNT,
             "document": NAME, "line": COUNT, "text": LISTINGS["passages"]["text"]}  # fmt: skip

Threshold = Annotated[
    float,
    Meta(gt=0, le=1, description="Smallest similarity: of the sequences of three words that stand "
         "in either text, the share that stand in both. Near-duplicates have 0.8 or more."),
]  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a tool has found.

    summary : the answer in a sentence.
    rows : with the columns of the tool; made as they are taken.
    total : the number of all rows.
    narrower : what makes fewer rows.
    lines : the text for people, where it is not the rows.
    more : further values, as the tool names them.
    """

    summary: str
    rows: Iterable[Sequence[Cell]]
    total: int
    narrower: str
    lines: Iterable[str] | None = None
    more: tuple[float | int | None, ...] = ()

    def encode(self, tool: "Tool", notes: list[str]) -> tuple[str, dict[str, Any]]:
        """Return the answer as text and as an object, both of bounded size, which say how many
        rows are not shown.

        tool : whose answer it is. notes : what else is to say.
        """
        rows, size = list[dict[str, Any]](), 0
        for row in self.rows:
            cells = dict(zip(tool.columns, map(_encode, row), strict=True))
            size += len(json.dumps(cells))
            if len(rows) == MOST_ROWS or size > MOST_BYTES:
                break
            rows.append(cells)
        if not_shown := self.total - len(rows):
            notes = [*notes, f"{count_of(not_shown, 'row')} not shown: {self.narrower}"]
        table = chain([[*tool.columns]], (each.values() for each in rows))
        lines = self.lines or ("\t".join(map(_as_text, row)) for row in table if rows)
        shown, size = [self.summary], 0
        for line in lines:
            size += len(line.encode("utf-8", "backslashreplace")) + 1
            if size > MOST_BYTES:
                shown.append("… the text is cut here")
                break
            shown.append(line)
        found = {"rows": rows, "total": self.total, "not_shown": not_shown, "notes": notes}
        values = dict(zip(tool.more, self.more, strict=True))
        return "\n".join([*shown, *notes]), {"summary": self.summary, **values, **found}


def _encode(cell: Cell) -> Any:
    """Return a cell as JSON has it: a byte of a name that is not UTF-8 as an escape."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    return shorten(cell, _CHARACTERS) if isinstance(cell, str) else cell


def _as_text(cell: Any) -> str:
    return "" if cell is None else printable(str(cell))


class Tool(msgspec.Struct, forbid_unknown_fields=True):
    """A question of an agent, and its arguments.

    columns, more : types of the columns of the answer, and of further values.
    """

    columns = dict[str, Type]()
    more = dict[str, Type]()

    @classmethod
    def describe(cls) -> tuple[str, Schema, Schema]:
        """Return when to use the tool, and the JSON Schemas of its arguments and of its answer."""
        taken = msgspec.json.schema(cls)["$defs"][cls.__name__]
        description = inspect.cleandoc(taken.pop("description"))
        rows = schema_of_object(schemas_of_cells(cls.columns))
        values = schemas_of_cells(cls.more | {"total": COUNT, "not_shown": COUNT, "summary": TEXT})
        lists = {"rows": rows, "notes": {"type": "string"}}
        arrays = {name: {"type": "array", "items": items} for name, items in lists.items()}
        return description, taken, schema_of_object(values | arrays)

    def answer(self, run: Workspace, request: Request) -> Answer:
        """Return what the documents that are below the folders now answer.

        request : names the folders.

        Errors: as of the commands; InputError for a path that means no document.
        """
        raise NotImplementedError


class _OfText(Tool):
    """A question about a text, or about a document of the folders."""

    text: Annotated[str, Meta(description="A text that is no document of the folders.")] = ""
    path: Annotated[str, Meta(description="Instead of a text a document of the folders: its name, "
                              "or the end of its name.")] = ""  # fmt: skip

    def document(self, collection: Collection) -> NamedDocument:
        """Return the document that is meant. Raise ParameterError if it is none, or two."""
        if bool(self.text) == bool(self.path):
            message = "one of text and path is needed"
            raise ParameterError(message, "give either the text or the name of a document")
        if self.path:
            return _look_up(self.path, collection)
        return NamedDocument(b"the text", raw=self.text.encode("utf-8", "replace"))


def _look_up(path: str, collection: Collection) -> NamedDocument:
    """Return the document of a collection that a path means. Raise InputError if there is none."""
    names = collection.documents.names
    if "\\" in path:  # as JSON has a name, or as the text of an answer has it
        for at, name in enumerate(names):
            if path in (_encode(name), printable(name)):
                return NamedDocument(name, at, collection=collection)
    return look_up(_as_name(path), collection, only_stored=True)


def _as_name(path: str) -> bytes:
    """Return a path as bytes. NUL, which no name has, becomes an escape."""
    return path.replace("\0", "\\x00").encode("utf-8", "replace")


class FindNearDuplicates(_OfText):
    """Find the documents of the folders that are nearly the same as a text, or as one of them.

    Use it before you write a text, to see if there is one like it already, or to find the other
    versions of a document. Answers with name, similarity, and same: "bytes" for an equal file,
    "text" for the same words in the same order. To find shared parts of texts that are different
    as a whole, use find_passages.
    """

    threshold: Threshold = BandParams().threshold

    columns = {name: LISTINGS["query"][name] for name in ("name", "similarity", "same")}

    def answer(self, run: Workspace, request: Request) -> Answer:
        given = {**request.given, "threshold": self.threshold}
        indexed = load_or_build_index(run, replace(request, given=given))
        collection, document = indexed.collection, self.document(indexed.collection)
        query = read_query(collection, document)
        near = find_near(run, side_of(run, collection), query, self.threshold, indexed)
        if document.index >= 0:
            prints = query.prints.text_prints
            near = without_accepted(run, None, near, collection, document, prints)
        n, shown = len(near.documents), printable(document.name)
        summary = f"{n:,} of {count_of(len(collection.documents), 'document')} are "
        summary += f"{self.threshold:g} similar or more to {shown}"
        if not len(query.shingles):
            summary = f"{shown} has no words to compare"
        names = collection.documents.typed_names(near.documents)
        same = query.prints.compare_to(collection.prints, near.documents)
        words = (LEVELS[level] for level in same.tolist())
        rows = zip(names, near.similarity.tolist(), words, strict=True)
        return Answer(summary, rows, n, "ask with a higher threshold")


class ListPairs(Tool):
    """List all pairs of near-duplicate documents of the folders, or of one folder in them, the
    most similar first.

    Use it to see what a collection holds twice, or to clean it up. Answers with the names of both
    documents, similarity, and same: "bytes" for equal files, "text" for the same words in the same
    order. To see where two of them differ, use show_differences.
    """

    folder: Annotated[str, Meta(description="Only documents below this folder.")] = ""
    threshold: Threshold = BandParams().threshold

    columns = LISTINGS["pairs"]

    def answer(self, run: Workspace, request: Request) -> Answer:
        collection = load_signatures(run, request)
        if self.folder:
            below = find_below(_as_name(self.folder), collection.documents).documents
            if not len(below):
                message = f"{printable(self.folder)} holds no document of these folders"
                raise InputError(message, "name one of the folders, or a folder below them")
            collection = collection.take(run, below)
        assert collection.sketch is not None
        bands, n = BandParams(self.threshold), count_of(len(collection.documents), "document")
        plan = plan_bands(collection.sketch.perms, bands)
        texts, documents = collection.prints.text_prints, [collection.documents]
        apart = find_accepted(run, None, documents, collection.shingle, texts)
        sides = Sides.of(run, side_of(run, collection)).leave_out(run, apart)
        opened = Comparison(run, request, PairParams(), bands, collection, sides, plan=plan)
        pairs = opened.expand_copies(opened.find_pairs(), collapse=False)
        total = len(pairs)
        pieces = list_rows(Listing(opened, pairs, total, np.zeros(0, np.int64), pairs.pieces))
        rows = (row for piece in pieces for row in zip(*piece, strict=True))
        summary = f"{count_of(total, 'pair')} of similarity {self.threshold:g} or more among {n}"
        return Answer(summary, rows, total, "ask with a higher threshold, or about one folder")


class ShowDifferences(Tool):
    """Show how similar two documents of the folders are, and where their texts differ.

    Use it on a pair that list_pairs or find_near_duplicates has named, before you decide which of
    the two to keep. The text marks [-words of a only-] and {+words of b only+}; of lines, - is one
    of a and + one of b. The rows are the differences, by the numbers of words.
    """

    a: Annotated[str, Meta(description="A document: its name, or the end of its name.")]
    b: Annotated[str, Meta(description="Another document.")]

    columns = LISTINGS["show"]
    more = COMPARISON

    def answer(self, run: Workspace, request: Request) -> Answer:
        collection = load_signatures(run, request)
        params, sketch, filter_ = collection.shingle, collection.sketch, collection.shingle_filter
        a, b = (_look_up(each, collection).read(params) for each in (self.a, self.b))
        both = comparison.compare(run, a.text.utf8, b.text.utf8, params, sketch, filter_)
        texts, noun, context = both.texts, NOUNS[params.tokens], CONTEXT[params.tokens]
        total = sum(change.kind != ALIKE for change in texts.changes)
        rows = (row for row in list_changes(texts) if row[0] != ALIKE)
        shares, *more = describe_shares(both, "jaccard", sketch)
        heads = [*describe_documents(a, b, both, params, None), *more, summarize(texts, noun), ""]
        if comparison.have_same_lines(texts):
            texts, noun, context = comparison.align_lines(texts.a.text, texts.b.text), "line", LINES
        lines = chain(heads, render(texts, Layout(noun=noun, context=context)))
        values = tuple(getattr(both, name) for name in COMPARISON)
        return Answer(shares, rows, total, "`lshdup show` prints them all", lines, values)


class FindPassages(_OfText):
    """Find the passages of a text, or of a document, that stand word for word in the documents of
    the folders.

    Use it to find where a text, or a part of it, was taken from, or which documents quote it, even
    if they are different otherwise. Answers with the passages, the longest and most frequent first:
    how many words and how many places each has, the line where it begins in the text, and some of
    the documents with it, with the line there. Reads all documents, so it takes longer than
    find_near_duplicates.
    """

    least: Annotated[int, Meta(ge=2, lt=LONGEST, description="Words of the shortest passage.")] = 20

    columns = _PASSAGES

    def answer(self, run: Workspace, request: Request) -> Answer:
        last, params = load_signatures(run, request), PassageParams(self.least)
        shingle, document = last.shingle, self.document(last)
        found, _ = find_with_document(run, request, last, document, params, find_passages)
        passages, here = found.passages, found.here.documents
        text = locate_tokens(document.utf8(shingle), shingle)

        @cache
        def read(number: int) -> LocatedText:
            other = NamedDocument(here.names[number], number, collection=found.here)
            return locate_tokens(other.utf8(shingle), shingle)

        def rows() -> Iterator[tuple[Cell, ...]]:
            for at, (start, end) in enumerate(pairwise(passages.starts.tolist())):
                size, first = int(passages.tokens[at]), passages.first[start:end].tolist()
                # The text is document 0, so its place is the first one.
                words = comparison.extract_passage(text, first[0], first[0] + size)
                line, cells = comparison.find_line(text, first[0]), iter([" ".join(words.split())])
                places = zip(documents[start:end].tolist(), first, strict=True)
                others = [(number - 1, begin) for number, begin in places if number]
                for number, begin in others[:_PLACES]:
                    (name,) = here.typed_names(np.array([number]))
                    there = comparison.find_line(read(number), begin)
                    yield at + 1, size, len(others), line, name, there, next(cells, None)

        documents = passages.documents
        n = count_of(len(np.unique(documents)) - bool(len(documents)), "document")
        summary = f"{count_of(len(passages), 'passage')} of {self.least:,} words or more of "
        summary += f"{printable(document.name)}, in {n}"
        of_text = np.bincount(passages.runs_at(np.flatnonzero(documents == 0)).passages)
        total = int(np.minimum(passages.places - of_text, _PLACES).sum())
        return Answer(summary, rows(), total, "ask with a larger least, or about a part of it")


#: The tools, in the order in which an agent sees them.
TOOLS: dict[str, type[Tool]] = {
    "find_near_duplicates": FindNearDuplicates,
    "list_pairs": ListPairs,
    "show_differences": ShowDifferences,
    "find_passages": FindPassages,
}


def ask(
    session: Session, progress: Progress, name: str, arguments: object
) -> tuple[str, dict[str, Any]]:
    """Return the answer of a tool as text and as an object.

    session : of the command. progress : as of a run.

    Errors: LshdupError.
    """
    try:
        tool = msgspec.convert(arguments, TOOLS[name])
    except (KeyError, msgspec.ValidationError) as error:
        message = f"the question {name} was not understood: {error}"
        raise ParameterError(message, "the list of tools says what each of them takes") from None
    skipped = session.console.skipped_counts
    skipped.clear()
    run = Workspace(session.run.but(progress=progress), session.workspace.store)
    found = tool.answer(run, session.request)
    notes = [f"skipped: {describe_reasons(skipped)}"] if skipped else []
    return found.encode(tool, notes)
