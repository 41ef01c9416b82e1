"""Pairs that a person has accepted, in a file of JSON Lines: beside the documents, or the baseline
of a gate.

A pair is known by the names of its documents and by the fingerprints of their sequences of tokens.
A document that has changed is not known. One that was renamed is: it takes a name that is gone.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import explained, replace_file
from lshdup.base.frozen import dataclass
from lshdup.base.memory import Buffer, rows_of, slices_of
from lshdup.base.params import ACCEPTED_FILE, ShingleParams
from lshdup.base.ragged import distinct
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.wording import count_of, printable
from lshdup.collection.collection import Collection
from lshdup.collection.equal_files import digest_documents
from lshdup.compare.results import Neighbours
from lshdup.compare.scored_pairs import contains, hold_pairs, pack_pairs, unpack_pairs
from lshdup.errors import InputError, LshdupError, ParameterError
from lshdup.shingling.shingler import Shingler
from lshdup.sources.document_list import DocumentList, names_of
from lshdup.sources.text_batches import batches, read_batch
from lshdup.workspace.lookup import NamedDocument, list_named

#: The names of two documents, ascending, and the fingerprints of their texts.
Line = tuple[bytes, bytes, int, int]

#: What the first line of a file has, beside `of` and `texts`.
HEAD = {"lshdup": "accepted pairs", "version": 1}

#: What the other lines have; `note` may be missing.
CELLS = ("a", "b", "a_text", "b_text", "note")

#: Parameters on which the fingerprint of a text does not depend.
NOT_OF_TEXTS = {"k": 0, "bag": False, "min_tokens": 0}

#: Distinct pairs of classes that are gathered before they are merged.
_GATHERED = 1 << 20


def definition_of(shingle: ShingleParams) -> ShingleParams:
    """Return the parameters that fingerprints of texts depend on; all others have their default."""
    return ShingleParams.from_json(shingle.to_json() | NOT_OF_TEXTS)


@dataclass(frozen=True)
class Accepted:
    """Known pairs, as a file has them.

    texts : of `definition_of`.
    lines : the note of each pair.
    of_texts : whether all pairs of documents that lines name are known whose texts are a pair in
        any line; so a baseline needs one line for each further copy. Else the lines are all.
    """

    texts: ShingleParams
    lines: Mapping[Line, str] = field(default_factory=dict)
    of_texts: bool = False

    @cached_property
    def names(self) -> dict[int, set[bytes]]:
        """The names of the documents of each fingerprint."""
        names: dict[int, set[bytes]] = {}
        for a, b, text_a, text_b in self.lines:
            names.setdefault(text_a, set()).add(a)
            names.setdefault(text_b, set()).add(b)
        return names

    def count_gone(self, now: "Accepted") -> int:
        """Return how many lines stand for nothing that is in `now`."""
        before, after = (Counter(tuple(sorted(x[2:])) for x in each.lines) for each in (self, now))
        return (before - after).total()

    def check_key(self, path: Path, shingle: ShingleParams) -> None:
        """Raise ParameterError if fingerprints have a key that the run has not."""
        if self.texts.key not in ("", shingle.key):
            message = f"line 1 of {path}: the fingerprints are of another LSHDUP_HASH_KEY"
            raise ParameterError(message, "give that key, or name another list: --accepted FILE")

    def add(self, lines: Iterable[Line], note: str) -> "Accepted":
        """Return the pairs with some more; lines of their names with other texts go."""
        more = {line: note or self.lines.get(line, "") for line in lines}
        named = {line[:2] for line in more}
        kept = {line: old for line, old in self.lines.items() if line[:2] not in named}
        return replace(self, lines=kept | more)

    def save(self, path: Path) -> None:
        """Write the file: a line a pair, sorted by names. Raise InputError if that fails."""
        texts = {
            name: is_ for name, is_ in self.texts.to_json().items() if name not in NOT_OF_TEXTS
        }
        rows: list[dict[str, Any]] = [
            HEAD | {"of": "texts" if self.of_texts else "pairs", "texts": texts}
        ]
        for line in sorted(self.lines):
            cells = *map(os.fsdecode, line[:2]), *(f"{each:016x}" for each in line[2:])
            rows.append(dict(zip(CELLS, (*cells, self.lines[line]), strict=True)))
        hint = "make room, or name another file"
        with explained(f"{path} cannot be written", hint, InputError), replace_file(path) as file:
            for row in rows:
                text = json.dumps(row, ensure_ascii=False)
                file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def make_line(a: bytes, text_a: int, b: bytes, text_b: int) -> Line:
    """Return the line of two documents, by their names and fingerprints."""
    (a, text_a), (b, text_b) = sorted(((a, text_a), (b, text_b)))
    return a, b, text_a, text_b


def load_accepted(path: Path, option: str, *, repair: bool = False) -> Accepted:
    """Load a file of known pairs.

    option : that names it; "" for one beside the documents.
    repair : skip lines that are no pair, as of a merge conflict, instead of refusing them.

    Errors: InputError if there is none, ParameterError if the file is another one, or is damaged.
    """
    what, kind, anew = f"{option} {path}".strip(), "list of accepted pairs", "`lshdup accept A B`"
    if option == "--baseline":
        kind, anew = "baseline", "--update-baseline"
    hint = f"name another file; {anew} writes one"
    with explained(f"{what} cannot be read", hint, InputError):
        head, *texts = path.read_bytes().splitlines() or [b""]
    try:
        said = json.loads(head)
        texts_by = said.pop("texts") | NOT_OF_TEXTS
        # A parameter that is newer than the file has its default.
        shingle = ShingleParams.from_json(ShingleParams(texts_by["tokens"]).to_json() | texts_by)
        of = said.pop("of")
        is_one = said == HEAD and of in ("texts", "pairs")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, LshdupError):
        is_one = False
    if not is_one:
        message = f"{what} is no {kind} of this version of lshdup: see its line 1"
        raise ParameterError(message, f"name another file, or remove it: {anew} writes it anew")
    lines = dict[Line, str]()
    for number, text in enumerate(texts, 2):
        try:
            line, note = _parse(text)
            lines[line] = note
        except (ValueError, KeyError, TypeError, RecursionError):
            if not repair:
                message = f"{what} is damaged: line {number} is no pair"
                hint = "mend a merge that left its marks there, or remove the line"
                raise ParameterError(message, hint) from None
    return Accepted(shingle, lines, of == "texts")


def _parse(text: bytes) -> tuple[Line, str]:
    a, b, *prints, note = map(({"note": ""} | json.loads(text)).__getitem__, CELLS)
    a_text, b_text = map(bytes.fromhex, prints)
    if not len(a_text) == len(b_text) == 8 or not isinstance(note, str):
        raise ValueError
    texts = int.from_bytes(a_text), int.from_bytes(b_text)
    if 0 in texts:
        raise ValueError
    return make_line(os.fsencode(a), texts[0], os.fsencode(b), texts[1]), note


class Review:
    """The documents of a run, held against known pairs.

    Parameters
    ----------
    accepted : the known pairs.
    prints : uint64 array of shape (n,), fingerprints of the token sequences.
    documents : int64 array, ascending, the documents that may be in a known pair.
    names : their names, as in the file.

    is_known : bool array of shape (n,), which documents the file names.
    renamed : how many of them have another name there.

    """

    def __init__(
        self,
        accepted: Accepted,
        prints: NDArray[np.uint64],
        documents: NDArray[np.int64],
        names: list[bytes],
    ) -> None:
        self._accepted, self._prints, self._documents = accepted, prints, documents
        #: The documents of each name, by fingerprint.
        self._names: dict[int, dict[bytes, list[int]]] = {}
        texts = prints[documents].tolist()
        for document, text, name in zip(documents.tolist(), texts, names, strict=True):
            self._names.setdefault(text, {}).setdefault(name, []).append(document)
        #: What stands in the file for each document: a name, or with `of_texts` a text.
        self._place = np.full(len(prints), -1, np.int64)
        numbers: dict[tuple[int, bytes], int] = {}

        def number(text: int, name: bytes) -> int:
            return numbers.setdefault((text, b"" if accepted.of_texts else name), len(numbers))

        self.renamed = 0
        for text, known in accepted.names.items():
            group = self._names.get(text, {})
            gone, new = sorted(known.difference(group)), [n for n in group if n not in known]
            there = {name: name for name in known.intersection(group)}
            moved = dict(zip(new, gone, strict=False))
            self.renamed += len(moved)
            for name, same in (there | moved).items():
                self._place[group[name]] = number(text, same)
        self.is_known = self._place >= 0
        ends = [(number(x, a), number(y, b)) for a, b, x, y in accepted.lines]
        left, right = np.sort(np.array(ends, np.int64).reshape(-1, 2)).T
        self._keys = distinct(pack_pairs(left, right))[0]

    def is_new(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which pairs are not known: bool array of the shape of `left`."""
        known = self.is_known[left] & self.is_known[right]
        known &= hold_pairs(self._keys, self._place[left], self._place[right])
        new: NDArray[np.bool_] = ~known
        return new

    def list_pairs(self) -> tuple[NDArray[np.uint64], int]:
        """Return all known pairs of documents, ascending keys, the lower number left; and how many
        lines of the file stand for none.
        """
        members: dict[int, list[int]] = {}
        documents = np.flatnonzero(self.is_known)
        for document, at in zip(documents.tolist(), self._place[documents].tolist(), strict=True):
            members.setdefault(at, []).append(document)
        ends = zip(*(each.tolist() for each in unpack_pairs(self._keys)), strict=True)
        some = [list(product(members.get(a, ()), members.get(b, ()))) for a, b in ends]
        pairs = {(min(i, j) << 32) + max(i, j) for each in some for i, j in each if i != j}
        return np.array(sorted(pairs), np.uint64), some.count([])

    def summarize(self, pieces: Iterable[tuple[Any, ...]]) -> Accepted:
        """Return the baseline in which all pairs of the run are known.

        pieces : arrays left, right, and perhaps more, of the documents.
        """
        values, texts = distinct(self._prints[self._documents])[0], self._prints
        keys, parts = np.zeros(0, np.uint64), list[NDArray[np.uint64]]()
        for left, right, *_ in pieces:
            a, b = (np.searchsorted(values, texts[each]) for each in (left, right))
            parts.append(distinct(pack_pairs(np.minimum(a, b), np.maximum(a, b)))[0])
            if sum(map(len, parts)) > _GATHERED:
                keys, parts = distinct(np.concatenate([keys, *parts]))[0], []
        keys = distinct(np.concatenate([keys, *parts]))[0]
        notes, known = self._accepted.lines, values.tolist()
        ends = ([known[at] for at in each.tolist()] for each in unpack_pairs(keys))
        lines = {line: notes.get(line, "") for line in self._lines(zip(*ends, strict=True))}
        return Accepted(self._accepted.texts, lines, of_texts=True)

    def _lines(self, pairs: Iterable[tuple[int, int]]) -> Iterator[Line]:
        """Yield the lines of pairs of texts, and one for each further document of a text."""
        names = {
            text: [name for name, some in group.items() for _ in some]
            for text, group in self._names.items()
        }
        partner: dict[int, int] = {}
        for a, b in pairs:
            if a == b:
                partner[a] = a
                continue
            partner.setdefault(a, b)
            partner.setdefault(b, a)
            yield make_line(names[a][0], a, names[b][0], b)
        for a, b in partner.items():
            for name in names[a][1:]:
                yield make_line(name, a, names[b][0], b)


# --- the files beside the documents ---


def folder_of(path: Path) -> bytes:
    """Return the real path of the folder that a file of known pairs names documents from."""
    return os.path.realpath(os.fsencode(path.parent))


def list_folders(lists: Iterable[DocumentList]) -> list[bytes]:
    """Return the folders that DOCS name, and those of the files that they name, each once."""
    paths = (documents.path_of(name) for documents in lists for name in documents.docs)
    folders = (p if os.path.isdir(p) else os.path.dirname(p) for p in paths)  # noqa: PTH120
    return list({os.path.realpath(each or b"."): each for each in folders}.values())


def find_files(lists: Sequence[DocumentList]) -> list[Path]:
    """Return the files of accepted pairs that hold for documents: in the current folder, in the
    folders of DOCS, and where the search for documents met one.
    """
    name = os.fsencode(ACCEPTED_FILE)
    paths = [os.path.join(each, name) for each in (b"", *list_folders(lists))]  # noqa: PTH118
    for documents in lists:
        met = (each.skipped for each in documents.skipped)
        paths += [documents.path_of(each.name) for each in met if each.reason == Reason.ACCEPTED]
    found = {os.path.realpath(each): Path(os.fsdecode(each)) for each in reversed(paths)}
    return sorted(filter(Path.is_file, found.values()))


def without_accepted(
    run: Run,
    path: Path | None,
    near: Neighbours,
    collection: Collection,
    document: NamedDocument,
    text_prints: NDArray[np.uint64],
) -> Neighbours:
    """Return the near-duplicates of a document that are in no accepted pair with it.

    text_prints : uint64 array of shape (1,), of the document. Else as of `find_accepted`.
    """
    n = len(near.documents)
    prints = np.append(collection.prints.text_prints[near.documents], text_prints)
    lists = [collection.documents.take(run, near.documents), *list_named(run, [document])[0]]
    accepted = find_accepted(run, path, lists, collection.shingle, prints, of=n)
    return near.take(np.delete(np.arange(n), unpack_pairs(accepted)[0]))


def read_prints(
    run: Run, documents: DocumentList, rows: NDArray[np.int64], texts: ShingleParams
) -> NDArray[np.uint64]:
    """Read some of n documents, and return the fingerprints of their texts: uint64 array of shape
    (n,). Of what is no text, or has no tokens, it is that of the bytes; of all others 0.

    rows : ascending int64 array. texts : the definition of the texts.
    """
    shingler, buffer, prints = Shingler(texts), Buffer(), np.zeros(len(documents), np.uint64)
    for some in batches(run, documents, rows):
        batch = read_batch(documents, some, buffer)
        if len(batch.indices):
            made = shingler.shingle(batch)
            prints[made.indices] = made.columns["text_prints"]
    for some in batches(run, documents, rows[prints[rows] == 0]):
        digests = digest_documents(documents, some, buffer)
        prints[digests.indices] = digests.columns["byte_prints"]
    return prints


def describe_documents(
    run: Run, path: Path, documents: Sequence[NamedDocument], texts: ShingleParams
) -> dict[bytes, tuple[bytes, int]]:
    """Return for the name of each document the one that is in a file, and the fingerprint
    of its text: 0 if it has changed since it was compared, or cannot be read.
    """
    lists, names = list_named(run, documents)
    prints = [read_prints(run, each, rows_of(slice(0, len(each))), texts) for each in lists]
    for each, found in zip(lists[1:], prints[1:], strict=True):
        found[each.changed(rows_of(slice(0, len(each))))] = 0
    there = names_of(lists, rows_of(slice(0, len(names))), folder_of(path))
    return dict(zip(names, zip(there, np.concatenate(prints).tolist(), strict=True), strict=True))


def find_prints(
    run: Run,
    accepted: Accepted,
    path: Path,
    lists: Sequence[DocumentList],
    shingle: ShingleParams,
    prints: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """Return fingerprints of the texts of documents, as the file of known pairs has them.

    Where texts were compared by another definition, or by their bytes, documents that the file
    names are read; of all others the fingerprint is 0.

    prints : fingerprints by `shingle`, the definition of the run.

    Errors: ParameterError if the fingerprints of the file have another key.
    """
    if accepted.texts == definition_of(shingle):
        return prints
    accepted.check_key(path, shingle)
    texts, parts = accepted.texts.with_secret(shingle.secret), list[NDArray[np.uint64]]()
    known = {name for line in accepted.lines for name in line[:2]}
    for documents in lists:
        names = documents.typed_names(rows_of(slice(0, len(documents))), folder_of(path))
        rows = np.flatnonzero([name in known for name in names])
        parts.append(read_prints(run, documents, rows, texts))
    return np.concatenate(parts)


def find_accepted(
    run: Run,
    path: Path | None,
    lists: Sequence[DocumentList],
    shingle: ShingleParams,
    prints: NDArray[np.uint64],
    of: int | None = None,
) -> NDArray[np.uint64]:
    """Return the accepted pairs among documents, and say how many there are: ascending keys, the
    lower number left.

    Parameters
    ----------
    path : the file; None: those of `find_files`.
    lists : the documents, by their number one list after the other.
    shingle : how fingerprints were made.
    prints : uint64 array of shape (n,), fingerprints of the token sequences.
    of : the last document, if only its pairs are wanted.

    Errors: as of `load_accepted` and `find_prints`; ParameterError if the file is a document.

    """
    found = [np.zeros(0, np.uint64)]
    for each in [path] if path is not None else find_files(lists):
        shown = printable(str(each))
        accepted = load_accepted(each, "--accepted" if path is not None else "")
        for documents in lists:
            file = documents.find_file(str(each)) if path is not None else None
            if file is not None and documents.files.find(file) is not None:
                message = f"--accepted {shown} is one of the documents that are compared"
                raise ParameterError(message, "--exclude it, or keep it in another folder")
        prints_there = find_prints(run, accepted, each, lists, shingle, prints)
        texts = np.array(sorted(accepted.names), np.uint64)
        parts = slices_of(len(prints))
        some = [rows_of(part)[contains(texts, prints_there[part])] for part in parts]
        few = np.concatenate([np.zeros(0, np.int64), *some])
        review = Review(accepted, prints_there, few, names_of(lists, few, folder_of(each)))
        pairs, idle = review.list_pairs()
        if of is not None:
            pairs, idle = pairs[unpack_pairs(pairs)[1] == of], 0
        if len(pairs) or idle:
            one, many = f"accepted pair of {shown} is", f"accepted pairs of {shown} are"
            line = f"{count_of(len(pairs), one, many)} left out"
            if review.renamed:
                line += (
                    f"; {count_of(review.renamed, 'document has', 'documents have')} another name"
                )
            why = "a text has changed, or a document is not compared here"
            run.say(f"{line}; {count_of(idle, 'line')} without effect: {why}" if idle else line)
        found.append(pairs)
    return distinct(np.concatenate(found))[0]
