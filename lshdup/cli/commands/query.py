"""`lshdup query`, and `lshdup accept`."""

import json
import os
from collections.abc import Iterator
from itertools import chain, combinations, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import click

from lshdup.base.frozen import dataclass
from lshdup.base.params import (
    ACCEPTED_FILE,
    DEFAULT_MAX_BYTES,
    STDIN,
    WHOLE_DOCUMENTS,
    PassageParams,
)
from lshdup.base.system import standard_input
from lshdup.base.wording import chance, count_of, printable
from lshdup.cli.columns import Columns, columns_of
from lshdup.cli.console import Console
from lshdup.cli.help import amend, define, option, plain_option, refuse, stack
from lshdup.cli.messages import describe_rest, say_contract, say_last_run, warn_of_changes
from lshdup.cli.options import (
    accepted_options,
    band_options,
    list_columns,
    measure_option,
    noisy_option,
    of_the_index,
    output_options,
    passage_options,
    same_option,
    store_options,
)
from lshdup.cli.output import OutputOptions, Target, make_target, print_rows
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import DocumentName
from lshdup.errors import InputError, ParameterError

if TYPE_CHECKING:
    from lshdup.base.wording import Cell
    from lshdup.collection.collection import Collection
    from lshdup.compare.sides import Side
    from lshdup.workspace.index import IndexedCollection, Query
    from lshdup.workspace.lookup import NamedDocument


@dataclass(frozen=True)
class QueryOptions(OutputOptions):
    """The options of `query`."""

    docs: tuple[bytes, ...]
    threshold: float
    measure: str
    same: str | None
    top: int | None
    by: str
    least: int
    gap: int
    lines: bool = False
    accepted: Path | None = None
    show_accepted: bool = False


#: What has no meaning for passages, and what has none for lines.
_OF_SETS = ("threshold", "measure", "same", "accepted", "show_accepted")
_OF_NAMES = ("measure", "by", "accepted", "show_accepted", "format_", "nul", "output")


@list_columns("query", "query-containment", "query-passages")
@define(
    "query",
    QueryOptions,
    short_help="the near-duplicates of one document",
    epilog="""\b
Examples:
  lshdup index sample_corpus && lshdup query MIT.txt
  lshdup query - --threshold 0.9 < sample_corpus/licences/MIT.txt
  lshdup query MIT-feh.txt --by passages --least 20
""",
)
@stack(
    click.argument("docs", nargs=-1, required=True, type=DocumentName(), metavar="DOC..."),
    of_the_index,
    band_options,
    noisy_option,
    amend("measure", excludes=()),
    measure_option,
    option("--top", type=click.IntRange(1), metavar="N", show_default="all", brief=True,
           help="At most N documents for each DOC: the most similar ones; of equally similar "
                "ones, the first names."),
    same_option,
    plain_option("--by", type=click.Choice(("similarity", "passages")), default="similarity",
                 brief=True, help="passages: the documents that together cover the text of DOC, "
                 "the one with the most new tokens first."),
    plain_option("--lines", is_flag=True,
                 help='Answer each line of standard input at once: {"id": …, "text": …}, or a '
                      'string, by {"id": …, "matches": […]}.'),
    amend("least", "gap", requires=("--by passages",)),
    passage_options,
    accepted_options,
    option("--check", is_flag=True, brief=True,
            help="Exit with 1 if a DOC has a near-duplicate, with 2 if one could not be looked "
                 "up."),
    store_options,
    output_options,
)  # fmt: skip
def command(ctx: click.Context, options: QueryOptions) -> int:
    """Print the documents of the store that are near-duplicates of DOC: name, similarity, same (and
    DOC, if several are given).

    DOC is a name in the store or its unique end, any other file, or - for standard input. The store
    is that of the last run with DOCS; the similarity is exact. Same is bytes for equal files, text
    for the same words in the same order, else empty. Documents of the answer that were deleted or
    changed since are counted.

    With --measure containment, relation says which way: DOC is inside the document, holds it, or
    both, if they have as many shingles. With --by passages, a document has passages with DOC which
    those before it have not: new tokens, their share of DOC, and all tokens in common; all
    documents are read. With --lines, matches that cannot be read again are verified by estimate.
    """
    target, words = make_target(options), options.docs
    if options.lines:
        refuse(ctx, _OF_NAMES, "with --lines")
        if words != (STDIN,):
            message = "--lines reads standard input, and looks up no other document"
            raise ParameterError(message, "lshdup query - --lines")
    with open_session(ctx) as session:
        from lshdup.workspace.index import load_or_build_index
        from lshdup.workspace.loading import load_signatures
        from lshdup.workspace.lookup import look_up

        workspace, indexed = session.workspace, None
        if options.by == "passages":
            refuse(ctx, _OF_SETS, "with --by passages")
            from lshdup.workspace.passages import load_last

            collection = load_last(workspace, session.request)
        elif options.measure == "containment":
            collection = load_signatures(workspace, session.request)
        else:
            indexed = load_or_build_index(workspace, session.request, verify=False)
            collection = indexed.collection
        say_last_run(session.console, collection)
        if indexed is not None:
            say_contract(session.console, indexed.plan, indexed.params)
            if options.lines:
                return _answer_lines(session, indexed, options)
        several = len(words) > 1
        wide = several or target.style in ("json", "jsonl", "parquet")
        kind = "-passages" if options.by == "passages" else "" if indexed else "-containment"
        columns = columns_of(f"query{kind}")
        documents = []
        for word in words:
            try:
                documents.append(look_up(word, collection))
                if documents[-1].note:
                    session.console.say(documents[-1].note)
            except InputError as error:
                if not several:
                    raise
                session.console.error(error)
        if options.by == "passages":
            rows = _cover(session, collection, documents, options)
        else:
            rows = _rows(session, collection, indexed, documents, options)
        if not wide:
            types = {name: each for name, each in columns.types.items() if name != "query"}
            columns = Columns(columns.listing, types)
            rows = (row[:-1] for row in rows)
        first = list(islice(rows, 1))
        print_rows(session.console, target, columns, chain(first, rows))
        return session.console.exit_code(len(first))


def _rows(
    session: Session,
    collection: "Collection",
    indexed: "IndexedCollection | None",
    documents: "list[NamedDocument]",
    options: QueryOptions,
) -> "Iterator[tuple[Cell, ...]]":
    """Yield the rows of all documents. indexed : None for containment."""
    from lshdup.collection.set_source import side_of
    from lshdup.workspace.index import read_query

    console = session.console
    side = side_of(session.workspace, collection)
    for done, each in enumerate(documents):
        console.progress("queries", done, len(documents))
        query, shown = read_query(collection, each), printable(each.name)
        if query.has_changed:
            console.warn(f"{shown} has changed since it was indexed; its present text is looked up")
        if _may_be_near(console, collection, each, len(query.shingles)):
            rows = _find(session, collection, indexed, side, query, each, options)
            yield from ((*row, each.name) for row in rows)


def _cover(
    session: Session,
    collection: "Collection",
    documents: "list[NamedDocument]",
    options: QueryOptions,
) -> "Iterator[tuple[Cell, ...]]":
    """Yield the rows of `query-passages` for all documents."""
    import numpy as np

    from lshdup.passages.sharing import find_cover
    from lshdup.workspace.passages import find_with_document

    params = PassageParams(options.least, gap=options.gap)
    for each in documents:
        found, size = find_with_document(
            session.workspace, session.request, collection, each, params, find_cover
        )
        if not _may_be_near(session.console, collection, each, size):
            continue
        every, most_common = found.passages
        cover = every[: options.top]
        covered, n = sum(new for _, new, _ in cover), count_of(len(cover), "document")
        share = f"{chance(covered / size)} of {count_of(size, 'token')}"
        session.console.say(f"{n}: {share} of {printable(each.name)}")
        if most_common and not params.gap:
            session.console.say(
                f"what stands in more than {2 * params.max_documents:,} places of "
                f"{printable(each.name)} is not counted, but in longer passages"
            )
        rows = np.array([number - 1 for number, _, _ in cover], np.int64)
        names = found.here.documents.typed_names(rows)
        for name, (_, new, tokens) in zip(names, cover, strict=True):
            yield name, new, new / size, tokens, each.name


def _may_be_near(
    console: Console, collection: "Collection", document: "NamedDocument", size: int
) -> bool:
    """Return whether a document has tokens, so that others may be near it, or say what it lacks.

    size : its shingles or tokens. With --check, it is an error if no other document has any.
    """
    from lshdup.workspace.index import holds_another

    shown, least = printable(document.name), collection.shingle.min_tokens
    if size:
        if console.is_check and not holds_another(collection, document.index):
            message = f"{shown} was not checked: the store holds no other document with tokens"
            console.error(InputError(message, "run `lshdup index DOCS` over more documents"))
        return True
    lack = f"has fewer than {count_of(least, 'token')}" if least else "has no tokens"
    if collection.shingle_filter is not None:
        lack += f", or {describe_rest(collection.shingle_filter.params.least_shingles)}"
    if console.is_check:
        message = f"{shown} was not checked: it {lack}"
        console.error(InputError(message, "name a document that holds text"))
    else:
        console.say(f"{shown} {lack}: it has no near-duplicates")
    return False


def _find(
    session: Session,
    collection: "Collection",
    indexed: "IndexedCollection | None",
    side: "Side",
    query: "Query",
    document: "NamedDocument",
    options: QueryOptions,
) -> "Iterator[tuple[Cell, ...]]":
    """Yield the rows of a document, without its name."""
    import numpy as np

    from lshdup.compare.sides import LEVELS
    from lshdup.compare.verification import relations
    from lshdup.workspace.accepted import without_accepted
    from lshdup.workspace.index import find_near

    same, threshold = options.same, options.threshold
    near = find_near(session.workspace, side, query, threshold, indexed)
    if not options.show_accepted:
        text_prints = query.prints.text_prints
        near = without_accepted(
            session.run, options.accepted, near, collection, document, text_prints
        )
    levels = query.prints.compare_to(collection.prints, near.documents)
    chosen = np.flatnonzero(levels >= LEVELS.index(same))[: options.top]
    near, levels = near.take(chosen), levels[chosen]
    if not len(near.documents):
        stored = count_of(len(collection.documents), "document")
        likeness = f"is {threshold:g} similar or more to"
        if indexed is None:
            likeness = f"has containment {threshold:g} or more with"
        likeness = f"has the same {same} as" if same else likeness
        session.console.say(f"none of {stored} {likeness} {printable(document.name)}")
    warn_of_changes(session, collection.documents, near.documents)
    names = collection.documents.typed_names(near.documents)
    scores: list[list[Cell]] = [near.similarity.tolist()]
    if indexed is None:
        sizes = collection.sizes[near.documents]
        relation: list[Any] = relations(np.full(len(sizes), len(query.shingles)), sizes)
        shares = near.similarity.real.tolist(), near.similarity.imag.tolist()
        scores = [*shares, sizes.tolist(), relation]
    words = (LEVELS[level] for level in levels.tolist())
    return zip(names, *scores, words, strict=True)


# --- texts that come line by line ---

#: Bytes that are read at a time, and most of a line: a text may be as long as a file.
_CHUNK, _LONGEST_LINE = 1 << 16, 2 * DEFAULT_MAX_BYTES


def _answer_lines(session: Session, indexed: "IndexedCollection", options: QueryOptions) -> int:
    """Answer the lines of standard input that have come, before others are read; return the exit
    code.
    """
    from lshdup.base.params import Params
    from lshdup.compare.sides import LEVELS
    from lshdup.workspace.layers import Layer, find_in_layers

    run, collection, console = session.run, indexed.collection, session.console
    layer, params = Layer(run, collection, indexed.index), Params(bands=indexed.params)
    wanted = LEVELS[LEVELS.index(options.same) :]
    before = asked = found = failed = 0
    with Target().stream() as out:
        for lines in _read_batches(standard_input()):
            read = [
                _read_line(number, line, collection)
                for number, line in enumerate(lines, before + 1)
                if line.strip()
            ]
            before += len(lines)
            texts = {str(at): each.pop("text") for at, each in enumerate(read) if "text" in each}
            counts, *columns = find_in_layers([layer], layer.sign(texts).side, params)
            number = iter(counts.tolist())
            near = zip(*(column.tolist() for column in columns), strict=True)
            for answer in read:
                if "error" not in answer:
                    # As in the listing, of which `same` is null if neither is.
                    listed = (
                        {"name": name, "similarity": score, "same": same or None, "verified": how}
                        for name, score, same, how in [*islice(near, next(number))]
                    )
                    some = (each for each in listed if each["same"] in wanted)
                    answer["matches"] = [*islice(some, options.top)]
                out.write(json.dumps(answer).encode() + b"\n")
                asked, failed = asked + 1, failed + ("error" in answer)
                found += bool(answer.get("matches"))
            out.flush()
    console.summarize(f"{count_of(asked, 'line')}, {found:,} of them with near-duplicates")
    if failed:
        message = f"{count_of(failed, 'line')} could not be looked up"
        console.error(InputError(message, "an error instead of matches says why"))
    return console.exit_code(found)


def _read_batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield the lines that have come, as soon as there is one. Of a line that is too long, only the
    beginning is kept.
    """
    waiting, data = bytearray(), b"\n"
    while data:
        data = stream.read1(_CHUNK)  # type: ignore[attr-defined]
        waiting += data
        end = waiting.rfind(b"\n", len(waiting) - len(data)) + 1 if data else len(waiting)
        if end:
            yield bytes(waiting[:end]).removesuffix(b"\n").split(b"\n")
        del waiting[:end], waiting[_LONGEST_LINE:]


def _read_line(number: int, line: bytes, collection: "Collection") -> dict[str, Any]:
    """Return the id of a line, and its text or an error. collection : what it is compared with."""
    from lshdup.collection.from_texts import check_text

    read: dict[str, Any] = {"id": number}
    try:
        given = json.loads(line)
        if isinstance(given, str):
            given = {"text": given}
        if type(given.get("id")) in (str, int):  # Not true and false.
            read["id"] = given["id"]
        read["text"] = check_text(f"line {number}", given["text"], collection.shingle)
    except InputError as error:
        return read | {"error": error.message}
    except (ValueError, RecursionError) as error:
        return read | {"error": f"line {number} is no JSON: {error}"}
    except (KeyError, AttributeError):
        return read | {"error": f'line {number} is neither {{"text": …}} nor a string'}
    return read


# --- what is no duplicate ---


@dataclass(frozen=True)
class AcceptOptions:
    """The options of `accept`."""

    names: tuple[bytes, ...]
    note: str
    from_: IO[bytes] | None
    accepted: Path | None


@define(
    "accept",
    AcceptOptions,
    short_help="remember that documents are no duplicates",
    epilog="""\b
Examples:
  lshdup index sample_corpus && lshdup accept ISC.txt MIT.txt
  lshdup pairs sample_corpus/udhr -t 0.9 | lshdup accept -
""",
)
@stack(
    click.argument("names", nargs=-1, type=DocumentName(), metavar="[A B...|-]"),
    plain_option("--note", default="", metavar="TEXT", show_default=False, brief=True,
                 help="Why, for who reads the file."),
    plain_option("--from", "from_", metavar="FILE", brief=True, excludes=("NAMES",),
                 type=click.File("rb"),
                 help="Accept the pairs in this file: lines of `lshdup pairs`, or the list that "
                      "the page of `lshdup report` saves; - is standard input."),
    plain_option("--accepted", metavar="FILE", show_default=f"{ACCEPTED_FILE} beside DOCS",
                 type=click.Path(readable=False, dir_okay=False, path_type=Path), brief=True,
                 help="Add them there."),
    store_options,
)  # fmt: skip
def accept(ctx: click.Context, options: AcceptOptions) -> int:
    """Remember that documents are no duplicates: all pairs of those that are named, or with - the
    pairs on standard input.

    An accepted pair is in no answer of `pairs`, `clusters`, `folders`, `report`, `query` and `show
    NAME`, until the text of one of its two documents changes; of what is no text, the bytes.
    Neither is dropped for the other. A and B are names in the store or their unique ends, or other
    files. The pairs are written to a file in the folder that DOCS of the last run name, beside the
    file that they name, or beside a document that is not of the store; of two folders, it is that
    of the first document. A list with a wrong line changes nothing. To forget a pair, remove its
    line.
    """
    pairs = _read_pairs(options)
    with open_session(ctx) as session:
        from lshdup.workspace import accepted
        from lshdup.workspace.lookup import look_up, merge_shingle_params

        collection = session.load_last_collection()
        is_text = collection is not None and collection.shingle != WHOLE_DOCUMENTS
        shingle = merge_shingle_params(collection if is_text else None, session.request.given)
        found: dict[bytes, NamedDocument] = {}
        files: dict[Path, list[tuple[str, list[NamedDocument]]]] = {}
        lists = [] if collection is None else [collection.documents]
        folders = [(os.path.realpath(each or b"."), each) for each in accepted.list_folders(lists)]
        for where, *names in pairs:
            try:
                for name in names:
                    if name not in found:
                        found[name] = look_up(name, collection)
            except InputError as error:
                raise InputError(where + error.message, error.hint, error.names) from None
            both = [found[name] for name in names]
            both.sort(key=lambda each: (each.index < 0, each.index, each.name))
            path = options.accepted or _find_file(both[0], folders)
            files.setdefault(path, []).append((where, both))
        made = {}
        for path, some in files.items():
            before = accepted.Accepted(accepted.definition_of(shingle))
            if os.path.lexists(path):
                before = accepted.load_accepted(path, "--accepted" if options.accepted else "")
            before.check_key(path, shingle)
            every = [each for _, both in some for each in both]
            texts = before.texts.with_secret(shingle.secret)
            known = accepted.describe_documents(session.run, path, every, texts)
            lines = []
            for where, both in some:
                (a, a_text), (b, b_text) = (known[each.name] for each in both)
                if a == b:
                    message = f"{where}{printable(both[0].name)} is named twice"
                    raise InputError(message, "name two documents")
                if not a_text or not b_text:
                    lost = printable(both[1 if a_text else 0].name)
                    message = f"{where}{lost} has changed since it was compared, or is unreadable"
                    raise InputError(message, "run `lshdup pairs DOCS` again")
                lines.append(accepted.make_line(a, a_text, b, b_text))
            made[path] = before, before.add(lines, options.note)
        for path, (before, after) in made.items():
            after.save(path)
            new = count_of(len(after.lines.keys() - before.lines.keys()), "pair")
            session.console.summarize(f"{path}: {new} accepted, {len(after.lines):,} in all")
        return session.console.exit_code()


def _read_pairs(options: AcceptOptions) -> list[tuple[str, bytes, bytes]]:
    """Return the pairs of names, and where each stands in a list, for a message. Raise InputError
    without any, or for a line that is none.
    """
    names, hint = dict.fromkeys(options.names), "give lines as `lshdup pairs` prints them"
    source = standard_input() if tuple(names) == (b"-",) else options.from_
    pairs = [] if b"-" in names else [("", *pair) for pair in combinations(names, 2)]
    for number, line in enumerate(source.read().split(b"\n") if source is not None else (), 1):
        where = f"line {number} of the list"
        try:
            if line.startswith(b"{"):
                row = json.loads(os.fsdecode(line))
                a, b, *score = *(os.fsencode(row[name]) for name in "ab"), row.get("similarity", 0)
            elif line:
                a, b, *score = line.rstrip(b"\r").split(b"\t")
            else:
                continue
            if not 0.0 <= float(*score[:1]) <= 1.0:
                raise ValueError
            pairs.append((f"{where}: ", a, b))
        except (ValueError, KeyError, TypeError, RecursionError):
            message = f"{where} is no pair: {printable(line[:200])}"
            raise InputError(message, f"{hint}; nothing is accepted") from None
    if not pairs and source is None:
        message = "nothing to accept"
        raise InputError(message, f"name two documents or more, or {hint}")
    return pairs


def _find_file(document: "NamedDocument", folders: list[tuple[bytes, bytes]]) -> Path:
    """Return the file for the pairs of a document: in the folder of DOCS that holds it.

    folders : those of DOCS of the last run, their real paths and as typed.
    """
    folder = os.path.dirname(document.name)  # noqa: PTH120 (bytes path)
    if document.collection is not None:
        path = os.path.realpath(document.collection.documents.path(document.index))
        above = (each for each in folders if os.path.commonpath([each[0], path]) == each[0])
        _, folder = max(above, default=(b"", folder))
    return Path(os.fsdecode(folder)) / ACCEPTED_FILE
