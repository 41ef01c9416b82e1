"""Text -> shingle sets: the definitions of DESIGN 4 in one place, over the loops of the same name. Called by collection.py."""

import contextlib
import hashlib
import threading
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import Reason
from lshdup.documents.files import LARGE
from lshdup.documents.reading import TextBatch
from lshdup.errors import InputError, ParameterError
from lshdup.kernels import shingles as kernels
from lshdup.kernels import text as text_kernels
from lshdup.kernels.helpers import PADDING, mix64
from lshdup.params import DEFAULT_FORMATS, LONGEST, FormatLimits, ShingleParams
from lshdup.shingling.char_table import NO_TABLE, CharTable, char_table
from lshdup.shingling.normalization import normal_form
from lshdup.text.decoding import decode, decode_record, may_need_decoding
from lshdup.utils.ragged import RaggedSets, ranges

_RULES = {
    "word": text_kernels.RULE_PLAIN,
    "char": text_kernels.RULE_PLAIN,
    "terms": text_kernels.RULE_TERMS,
    "ids": text_kernels.RULE_IDS,
}


@dataclass(frozen=True)
class _Hash:
    """Identity of shingles: which kind, and the numbers in it. seed, factor, step : of tokens, sequences and repeats. prints : of sets."""

    kind: int
    seed: np.uint64 = kernels.TOKEN_SEED
    factor: np.uint64 = kernels.SHINGLE_FACTOR
    step: np.uint64 = kernels.BAG_STEP
    prints: np.uint64 = kernels.TOKEN_SEED


def _hash_of(params: ShingleParams) -> _Hash:
    """The hash that parameters mean. Raises ParameterError if it has a key that was not given."""
    if not params.key:
        return _Hash(kernels.HASH_POLY31 if params.hash == "poly31" else kernels.HASH_MIX64)
    if not params.secret:
        message = "the store was made with a --hash-key, and it is not the one that was given, or none was"
        raise ParameterError(message, "give the key in LSHDUP_HASH_KEY")
    digest = hashlib.blake2b(params.secret, digest_size=32, person=b"lshdup shingles").digest()
    seed, factor, step, prints = np.frombuffer(digest, "<u8").astype(np.uint64)
    return _Hash(kernels.HASH_KEYED, seed, factor | np.uint64(1), step | np.uint64(1), prints)


@dataclass(frozen=True)
class ShingleBatch:
    """Shingle sets of a batch, in the batch's order.

    indices : int64 array of shape (m,), which documents of the list these are. sets : m shingle sets. skipped : (document, reason,
    detail) for those that have none. guessed : (document, encoding) where the encoding was detected. extracted : documents whose text a
    reader of office formats gave.
    """

    indices: NDArray[np.int64]
    sets: RaggedSets
    skipped: list[tuple[int, Reason, str]] = field(default_factory=list)
    guessed: list[tuple[int, str]] = field(default_factory=list)
    extracted: list[int] = field(default_factory=list)


#: Texts that are made of documents in any other form than UTF-8 are shingled when there are so many bytes of them; of those that are larger
#: than the second, one at a time.
_TEXTS_AT_ONCE, _LARGE_TEXT = 16 << 20, 64 << 20
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Located:
    """A text's tokens and where they stand.

    text : UTF-8, in the spelling of the document as far as that can be had (see `Shingler._walked`). starts, ends : int64 arrays of shape
    (tokens,), bytes of `text`. tokens : uint64 array of shape (tokens,), equal where tokens are in normal form. shingles : uint64 array of
    shape (max(1, tokens - k + 1),), or (0,) without tokens.
    """

    text: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    tokens: NDArray[np.uint64]
    shingles: NDArray[np.uint64]


_TOO_LONG = "as UTF-8 in normal form it is longer than 2 GB, or more than twice as long as it was"


class _Scratch:
    """Arrays for one document of up to `room` bytes at a time; pages that no document touches cost nothing.

    What is needed only while shingles are sorted lies where their tokens were.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        space = room + 2 * PADDING
        self.folded = np.empty(min(2 * space, LONGEST + 2 * PADDING), np.uint8)
        self.edges = np.empty(4 * space, np.int32)
        self.work = np.empty(space, np.uint8)
        self.hashes = np.empty(space, np.uint64)
        self.spare = self.edges.view(np.uint64)
        self.counts = self.hashes.view(np.int32)


class Shingler:
    """Makes shingle sets; one for each thread, because it keeps the scratch arrays between batches.

    Determinism: a set depends on the text and the parameters only. Cost: about 1 ns a byte for ASCII words. Memory: for the longest
    document, 3 bytes for each of its bytes and 24 for each token (7 times an English text, 26 times one cut into characters); given back at
    once where that was more than LARGE bytes. What must be decoded, normalised or parsed takes that beside it.
    """

    def __init__(self, params: ShingleParams) -> None:
        self.params = params
        # Only folded, composed, 7-bit words are what the fast loop makes.
        self._hash = _hash_of(params)
        self._ascii_words = params.tokens == "word" and not params.keep_case
        self._scratch = _Scratch(1 << 16)
        self._values = np.empty(0, np.uint64)

    def shingle(self, batch: TextBatch, limits: FormatLimits = DEFAULT_FORMATS) -> ShingleBatch:
        """Shingle sets of a batch of raw documents, whose names may tell HTML and mail by their endings. Valid until the next call.

        The fast path takes a document as it is in the buffer. What may be something other than UTF-8 text, and what turns out not
        to be, goes through `decode`, one by one; what NFKC may reorder or compose goes through `unicodedata`.
        """
        count = len(batch.indices)
        params, names = self.params, batch.names
        skipped = list(batch.skipped)
        if params.tokens == "ids":
            sets, outcomes = self._run(batch, np.zeros(count, np.uint8))
            bad = np.flatnonzero(outcomes != text_kernels.DONE)
            skipped += [
                (int(batch.indices[i]), Reason.NOT_IDS, "ids are integers from 0 to 2^64 - 1")
                for i in bad
            ]
            return _without(batch.indices, sets, bad, skipped, [])
        flags = np.zeros(count, np.uint8)
        text_kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
        patient = np.ones(count, bool)
        if not params.encoding or batch.is_text:
            patient = may_need_decoding(names, batch.text, batch.starts, batch.lengths, flags)
        lengths = np.where(
            patient, 0, batch.lengths
        )  # an empty text costs nothing and gives an empty set
        sets, outcomes = self._run(replace(batch, lengths=lengths), flags)
        again = np.flatnonzero(patient | (outcomes != text_kernels.DONE))
        if not len(again):
            return ShingleBatch(batch.indices, sets, skipped)
        sets = sets.copy()  # the next run overwrites them
        made: list[RaggedSets] = []
        places: list[int] = []  # in the batch, of those that are made
        waiting: list[bytes] = []
        size = 0  # of those that wait
        guessed: list[tuple[int, str]] = []
        extracted: list[int] = []
        bad_ones: list[int] = []
        for i in again.tolist():
            raw = batch.text[batch.starts[i] : batch.starts[i] + batch.lengths[i]].tobytes()
            text = (
                decode_record(raw)
                if batch.is_text
                else decode(raw, names[i], params.encoding, batch.max_bytes, limits)
            )
            if text.reason is not None:
                skipped.append((int(batch.indices[i]), text.reason, text.detail))
                bad_ones.append(i)
            else:
                places.append(i)
                waiting.append(text.utf8)
                size += len(text.utf8)
                if text.office:
                    extracted.append(int(batch.indices[i]))
                if text.encoding:
                    guessed.append((int(batch.indices[i]), text.encoding))
            # A few small files may have been unpacked to more than memory should hold.
            if waiting and (i == again[-1] or size > _TEXTS_AT_ONCE):
                with _one_at_a_time if len(waiting[-1]) > _LARGE_TEXT else contextlib.nullcontext():
                    others, too_long = self._of_texts(waiting)
                for at in too_long:
                    bad_ones.append(places[at - len(waiting)])
                    skipped.append((int(batch.indices[bad_ones[-1]]), Reason.TOO_LARGE, _TOO_LONG))
                made.append(others)
                waiting, size = [], 0
        sets = _replaced(sets, places, RaggedSets.concatenate(made))
        result = _without(batch.indices, sets, np.array(bad_ones, np.int64), skipped, guessed)
        return replace(result, extracted=extracted)

    def shingle_texts(self, texts: list[bytes]) -> RaggedSets:
        """Shingle sets of texts that are valid UTF-8. Raises InputError if one is too long."""
        sets, too_long = self._of_texts(texts)
        if too_long:
            raise _too_long(texts[too_long[0]])
        return sets

    def _of_texts(self, texts: list[bytes]) -> tuple[RaggedSets, list[int]]:
        """Shingle sets of texts that are valid UTF-8, in memory of their own; and which are too long, whose sets are empty."""
        too_long = [i for i, text in enumerate(texts) if len(text) > LONGEST]
        batch = TextBatch.of(
            range(len(texts)),
            [b"" if i in too_long else text for i, text in enumerate(texts)] if too_long else texts,
        )
        flags = np.zeros(len(texts), np.uint8)
        text_kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
        sets, outcomes = self._run(batch, flags)
        sets = sets.copy()
        again = np.flatnonzero(outcomes == text_kernels.NEEDS_NORMALIZING).tolist()
        if not again:
            return sets, too_long
        normal = []
        for i in again:
            text = normal_form(texts[i], self.params)
            if text is None or len(text) > LONGEST:
                too_long.append(i)
                text = b""
            normal.append(text)
        batch = TextBatch.of(range(len(normal)), normal)
        normal_flags = np.full(
            len(normal), text_kernels.HAS_HIGH, np.uint8
        )  # by the table that changes nothing
        normal_sets, _ = self._run(
            batch, normal_flags, char_table(self.params.tokens, normalize=False, keep_case=True)
        )
        return _replaced(sets, again, normal_sets.copy()), too_long

    def in_order(self, text: bytes) -> tuple[list[bytes], NDArray[np.uint64]]:
        """A text's tokens and its shingles in the order of the text, repeats too: for people to look at.

        text : valid UTF-8. Returns the tokens in normal form, and a uint64 array of max(1, tokens - k + 1) shingles (none without tokens).
        Ids have no text: their tokens are the numbers themselves, ascending.
        """
        if self.params.tokens == "ids":
            ids = self._ids(text)
            return [str(each).encode() for each in ids.tolist()], ids
        _, _, tokens, shingles = self._walked(text)
        data = self._scratch.folded.tobytes()
        ends = self._scratch.edges[: 2 * tokens].tolist()
        return [data[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)], shingles

    def elements(self, shingles: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """What each shingle of a text, in its order, is in the set: uint64 array. Itself; with `bag`, repeats are elements of their own."""
        if not self.params.bag or self.params.tokens == "ids":
            return shingles
        order = np.argsort(shingles, kind="stable")
        ascending = shingles[order]
        repeats = np.empty(len(shingles), np.uint64)
        repeats[order] = np.arange(len(shingles)) - np.searchsorted(ascending, ascending)
        return np.where(repeats == 0, shingles, mix64(shingles + repeats * self._hash.step))  # type: ignore[arg-type]

    def located(self, text: bytes) -> "Located":
        """A text's tokens, in the order of the text, and where each stands: for people to look at.

        text : valid UTF-8. Ids have no order: they are located in their list, ascending. Cost: linear, without an object per token.
        """
        if self.params.tokens == "ids":
            ids = self._ids(text)
            words = [str(each).encode() for each in ids.tolist()]
            sizes = np.fromiter(map(len, words), np.int64, len(words))
            starts = np.cumsum(sizes + 1) - sizes - 1
            return Located(b" ".join(words), starts, starts + sizes, ids, ids)
        spelling, table, tokens, shingles = self._walked(text)
        scratch = self._scratch
        begins, ends = (
            np.empty(len(scratch.folded), np.int32),
            np.empty(len(scratch.folded), np.int32),
        )
        document = TextBatch.of([0], [spelling]).text[: len(spelling)]
        kernels.origins(document, table.entries, table.expansions, begins, ends)
        edges = scratch.edges[: 2 * tokens].reshape(-1, 2)
        hashes = scratch.hashes[:tokens].copy()
        return Located(
            spelling,
            begins[edges[:, 0]].astype(np.int64),
            ends[edges[:, 1] - 1].astype(np.int64),
            hashes,
            shingles,
        )

    def _ids(self, text: bytes) -> NDArray[np.uint64]:
        return self._run(TextBatch.of([0], [text]), np.zeros(1, np.uint8))[0].values.copy()

    def _walked(self, text: bytes) -> tuple[bytes, CharTable, int, NDArray[np.uint64]]:
        """Tokenise one text into the scratch arrays: the spelling and the table that gave its normal form, tokens, and shingles.

        The spelling is the text itself, unless its normal form is not that of each character alone: then it is NFKC, and where even that
        outgrows the scratch arrays, the normal form.
        """
        params = self.params
        table = char_table(params.tokens, params.normalize, params.keep_case)
        spelling, counts = text, np.zeros(2, np.int64)
        for form in (None, replace(params, keep_case=True), params):
            made = text if form is None else normal_form(text, form)
            if made is None or len(made) > LONGEST:
                raise _too_long(text)
            spelling = made
            if form is not None:
                table = char_table(
                    params.tokens, normalize=False, keep_case=params.keep_case or form is params
                )
            document = TextBatch.of([0], [spelling]).text[: len(spelling)]
            self._reserve(len(spelling))
            scratch = self._scratch
            shingles = np.empty(len(spelling) + 1, np.uint64)
            outcome = kernels.shingles_in_order(
                document, table.entries, table.expansions, table.classes,
                _RULES[params.tokens], self._hash.kind, self._hash.seed, self._hash.factor, params.k,
                scratch.folded, scratch.edges, scratch.hashes, shingles, counts,
            )  # fmt: skip
            if outcome == text_kernels.DONE:
                break
        tokens, count = counts.tolist()
        return spelling, table, tokens, shingles[:count]

    def _run(
        self, batch: TextBatch, flags: NDArray[np.uint8], table: CharTable | None = None
    ) -> tuple[RaggedSets, NDArray[np.uint8]]:
        """The sets, which the next run overwrites, and what became of each document."""
        params = self.params
        if table is None:
            needed = params.tokens != "ids" and (
                not self._ascii_words or bool((flags & text_kernels.HAS_HIGH).any())
            )
            table = (
                char_table(params.tokens, params.normalize, params.keep_case)
                if needed
                else NO_TABLE
            )
        room = int(batch.lengths.sum()) + 1
        self._reserve(int(batch.lengths.max(initial=0)))
        scratch = self._scratch
        if room > len(self._values):
            self._values = np.empty(room, np.uint64)
        values = self._values
        if room > LARGE:  # what is seldom wanted is not kept by every thread
            self._scratch, self._values = _Scratch(1 << 16), np.empty(0, np.uint64)
        sizes = np.empty(len(batch.indices), np.int64)
        outcomes = np.empty(len(batch.indices), np.uint8)
        total = kernels.shingle_batch(
            batch.text,
            batch.starts,
            batch.lengths,
            flags,
            table.entries,
            table.expansions,
            table.classes,
            self._ascii_words,
            _RULES[params.tokens],
            self._hash.kind,
            self._hash.seed,
            self._hash.factor,
            self._hash.step,
            params.k,
            params.bag,
            scratch.folded,
            scratch.edges,
            scratch.work,
            scratch.hashes,
            scratch.spare,
            scratch.counts,
            values,
            sizes,
            outcomes,
        )
        return RaggedSets.from_sizes(values[:total], sizes), outcomes

    def _reserve(self, longest: int) -> None:
        if longest > self._scratch.room:
            self._scratch = _Scratch(longest)


def _too_long(text: bytes) -> InputError:
    return InputError(f"a text of {len(text):,} bytes is too long: {_TOO_LONG}", "split it")


def fingerprints(sets: RaggedSets, params: ShingleParams) -> NDArray[np.uint64]:
    """uint64 array of shape (n_sets,): equal exactly where the sets are (but for a chance of 2^-64 a pair); 0 for an empty set."""
    out = np.empty(len(sets), np.uint64)
    kernels.set_fingerprints(sets.values, sets.offsets, _hash_of(params).prints, out)
    return out


def _replaced(sets: RaggedSets, positions: list[int], others: RaggedSets) -> RaggedSets:
    """`sets` with those at `positions` (ascending) taken from `others`."""
    if len(positions) == len(sets):
        return others
    sizes = sets.sizes
    starts = sets.offsets[:-1].copy()
    starts[positions] = others.offsets[:-1] + len(sets.values)
    sizes[positions] = others.sizes
    pool = np.concatenate([sets.values, others.values])
    return RaggedSets.from_sizes(pool[ranges(starts, sizes)], sizes)


def _without(
    indices: NDArray[np.int64],
    sets: RaggedSets,
    bad: NDArray[np.int64],
    skipped: list[tuple[int, Reason, str]],
    guessed: list[tuple[int, str]],
) -> ShingleBatch:
    """A batch without the documents at positions `bad`, whose sets are empty."""
    keep = np.delete(np.arange(len(indices)), bad)
    return ShingleBatch(
        indices[keep], RaggedSets.from_sizes(sets.values, sets.sizes[keep]), skipped, guessed
    )
