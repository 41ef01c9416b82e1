"""Shingle sets of texts (docs/reference/definitions.md), by the loops of `kernels.shingles`."""

import contextlib
import threading
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import Form
from lshdup.base.frozen import dataclass
from lshdup.base.mailbox import is_mailbox
from lshdup.base.ragged import RaggedSets, ranges
from lshdup.base.skipped import Reason
from lshdup.errors import InputError
from lshdup.kernels import shingles as kernels
from lshdup.kernels import text as text_kernels
from lshdup.kernels.sequences import byte_fingerprints
from lshdup.params import DEFAULT_FORMATS, LONGEST, FormatLimits, ShingleParams
from lshdup.shingling.char_table import CharTable, char_table
from lshdup.shingling.hashing import shingle_hash
from lshdup.shingling.normalization import normal_form
from lshdup.shingling.plain_texts import (
    TOKEN_RULES,
    are_in_blocks,
    decode_batch,
    find_table,
    inspect_texts,
)
from lshdup.shingling.scratch_arrays import ScratchArrays
from lshdup.sources.files import LARGE
from lshdup.sources.reading import TextBatch

#: Decoded texts are shingled together up to so many bytes; a text of more bytes than the second
#: number is shingled while no other thread shingles such a text.
_DECODED_TOGETHER, _LARGE_TEXT = 16 << 20, 64 << 20
_large_text_lock = threading.Lock()

_TOO_LONG = "as UTF-8 in normal form it is longer than 2 GB, or more than twice as long as it was"


#: Documents without a set: number, reason and detail of each.
Skips = list[tuple[int, Reason, str]]

#: The sets of a batch whose sets are not kept.
NO_SETS = RaggedSets.from_sets([])


@dataclass(frozen=True)
class ShingleBatch:
    """The shingle sets of a batch of documents, in the order of the batch.

    indices : int64 array of shape (m,), the numbers of the documents in their list.
    sets : m shingle sets, with their elements in no particular order (see `RaggedSets.sort`).
    set_prints, byte_prints, text_prints : uint64 arrays of shape (m,), fingerprints of the sets
        (`fingerprint_sets`), of the bytes as they were read, and of the sequence of tokens (0
        without tokens).
    skipped : number, reason and detail of each document that has no set.
    guesses : number and encoding of each document whose encoding was detected.
    forms : uint8 array of shape (m,), what each was read as (`base.forms.Form`).
    mailboxes : numbers of the files that hold many mails, and have no set.
    """

    indices: NDArray[np.int64]
    sets: RaggedSets
    set_prints: NDArray[np.uint64]
    byte_prints: NDArray[np.uint64]
    text_prints: NDArray[np.uint64]
    forms: NDArray[np.uint8]
    skipped: Skips = field(default_factory=list)
    guesses: list[tuple[int, str]] = field(default_factory=list)
    mailboxes: list[int] = field(default_factory=list)

    @classmethod
    def empty(cls, skipped: Skips) -> "ShingleBatch":
        """Return a batch without documents, but for those that were skipped."""
        none = np.zeros(0, np.uint64)
        return cls(none.view(np.int64), NO_SETS, none, none, none, none.view(np.uint8), skipped)


@dataclass(frozen=True)
class _ShingledTexts:
    """Shingle sets of texts with their fingerprints, as in `ShingleBatch`."""

    sets: RaggedSets
    set_prints: NDArray[np.uint64]
    text_prints: NDArray[np.uint64]

    def in_batch(
        self,
        batch: TextBatch,
        byte_prints: NDArray[np.uint64],
        forms: NDArray[np.uint8],
        skipped: Skips,
    ) -> ShingleBatch:
        """Return the sets as those of a batch of documents."""
        prints = self.set_prints, byte_prints, self.text_prints
        return ShingleBatch(batch.indices, self.sets, *prints, forms, skipped)

    def copy(self) -> "_ShingledTexts":
        """Return a copy of the sets in memory of their own, with the same fingerprints."""
        return replace(self, sets=self.sets.copy())

    def replaced(self, positions: list[int], others: list["_ShingledTexts"]) -> "_ShingledTexts":
        """Return the sets with others at these positions, which ascend; change fingerprints."""
        if not positions:
            return self
        sets = RaggedSets.concatenate(each.sets for each in others)
        self.set_prints[positions] = np.concatenate([each.set_prints for each in others])
        self.text_prints[positions] = np.concatenate([each.text_prints for each in others])
        return replace(self, sets=_replace_sets(self.sets, positions, sets))


class Shingler:
    """A maker of shingle sets, for one thread: it holds the scratch arrays between batches.

    in_order : make the sequence of a document's tokens in the place of its set: their hashes, in
        the order of the text, with repeats.

    Determinism: a set depends on the text and the parameters only.
    Cost: about 1 ns a byte for ASCII words; more for decoding, normalising and parsing.
    Memory: for the longest document, 2 bytes for each of its bytes and 32 for each token (8 times
    an English text, 34 times a text cut into characters), released at once above LARGE bytes;
    decoding, normalising and parsing take memory beside it.
    """

    def __init__(self, params: ShingleParams, *, in_order: bool = False) -> None:
        self.params = params
        self._in_order = in_order
        self._hash = shingle_hash(params)
        self._in_blocks = are_in_blocks(params)
        self._scratch = ScratchArrays(1 << 16)
        self._values = np.empty(0, np.uint64)

    def shingle(self, batch: TextBatch, limits: FormatLimits = DEFAULT_FORMATS) -> ShingleBatch:
        """Return the shingle sets of a batch of raw documents, valid until the next call.

        The fast path takes a document as it is in the buffer. A document that may be something
        other than UTF-8 text, or turns out not to be, is decoded; a text that NFKC may reorder or
        compose goes through `unicodedata`.

        batch : the names of documents tell HTML pages and mails by their endings.
        limits : bounds for reading one office document.
        """
        count = len(batch.indices)
        byte_prints = fingerprint_bytes(batch, self.params)
        if self.params.tokens == "ids":
            plain = np.zeros(count, np.uint8)
            made, outcomes = self._run(batch, plain)
            bad = np.flatnonzero(outcomes != text_kernels.DONE)
            not_ids = Reason.NOT_IDS, "ids are integers from 0 to 2^64 - 1"
            skipped = [*batch.skipped, *((at, *not_ids) for at in batch.indices[bad].tolist())]
            return _drop(made.in_batch(batch, byte_prints, plain, skipped), bad)
        flags, special, forms = inspect_texts(batch, self.params)
        # An empty text costs nothing and has an empty set.
        lengths = np.where(special, 0, batch.lengths)
        made, outcomes = self._run(replace(batch, lengths=lengths), flags, int(batch.is_text))
        result = made.in_batch(batch, byte_prints, forms, list(batch.skipped))
        slow = np.flatnonzero(special | (outcomes != text_kernels.DONE))
        if not len(slow):
            return result
        return self._shingle_decoded(batch, result, made.copy(), slow.tolist(), limits)

    def _shingle_decoded(
        self,
        batch: TextBatch,
        result: ShingleBatch,
        made: _ShingledTexts,
        positions: list[int],
        limits: FormatLimits,
    ) -> ShingleBatch:
        """Complete the sets of a batch by those of the documents at these positions."""
        forms = result.forms
        mails = (at for at in positions if batch.are_files and forms[at] == Form.MAIL)
        bad = [at for at in mails if is_mailbox(batch.content(at))]
        result.mailboxes.extend(batch.indices[bad].tolist())
        positions = [at for at in positions if at not in bad]
        decoded: list[int] = []  # Positions of the documents that are texts.
        parts: list[_ShingledTexts] = []
        waiting: list[bytes] = []
        size = 0
        for position, text in decode_batch(batch, positions, self.params, limits):
            index = int(batch.indices[position])
            if text.reason is not None:
                result.skipped.append((index, text.reason, text.detail))
                bad.append(position)
            else:
                decoded.append(position)
                waiting.append(text.utf8)
                size += len(text.utf8)
                forms[position] = text.form
                if text.encoding:
                    result.guesses.append((index, text.encoding))
            # In pieces, because a few small files may decompress to more than memory should hold.
            if waiting and (position == positions[-1] or size > _DECODED_TOGETHER):
                large = len(waiting[-1]) > _LARGE_TEXT
                with _large_text_lock if large else contextlib.nullcontext():
                    part, too_long = self._shingle_texts(waiting)
                for at in too_long:
                    bad.append(decoded[at - len(waiting)])
                    index = int(batch.indices[bad[-1]])
                    result.skipped.append((index, Reason.TOO_LARGE, _TOO_LONG))
                parts.append(part)
                waiting, size = [], 0
        sets = made.replaced(decoded, parts).sets
        return _drop(replace(result, sets=sets), np.array(bad, np.int64))

    def shingle_texts(self, texts: list[bytes]) -> RaggedSets:
        """Return the sorted shingle sets of texts in valid UTF-8, perhaps of several parts.

        Raise InputError if one is too long.
        """
        return self.shingle_decoded(texts)[0]

    def shingle_decoded(self, texts: list[bytes]) -> tuple[RaggedSets, NDArray[np.uint64]]:
        """Return the sorted shingle sets of texts, as `shingle_texts`, and their `text_prints`.

        Raise InputError if one is too long.
        """
        made, too_long = self._shingle_texts(texts)
        if too_long:
            raise too_long_error(texts[too_long[0]])
        return made.sets.sort(), made.text_prints

    def _shingle_texts(self, texts: list[bytes]) -> tuple[_ShingledTexts, list[int]]:
        """Return sets in memory of their own, and which texts are too long and have empty sets.

        texts : valid UTF-8.
        """
        too_long = [i for i, text in enumerate(texts) if len(text) > LONGEST]
        if too_long:
            texts = [b"" if i in too_long else text for i, text in enumerate(texts)]
        batch = TextBatch.of(range(len(texts)), texts)
        flags = np.zeros(len(texts), np.uint8)
        text_kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
        made, outcomes = self._run(batch, flags, 2)
        made = made.copy()
        denormal = np.flatnonzero(outcomes == text_kernels.NEEDS_NORMALIZING).tolist()
        if not denormal:
            return made, too_long
        normal = []
        for i in denormal:
            text = normal_form(texts[i], self.params)
            if text is None or len(text) > LONGEST:
                too_long.append(i)
                text = b""
            normal.append(text)
        batch = TextBatch.of(range(len(normal)), normal)
        # With this flag the kernel uses the table, which leaves characters as they are.
        flags = np.full(len(normal), text_kernels.HAS_HIGH, np.uint8)
        table = char_table(self.params.tokens, normalize=False, keep_case=True)
        normal_made, _ = self._run(batch, flags, 2, table)
        return made.replaced(denormal, [normal_made.copy()]), too_long

    def _run(
        self,
        batch: TextBatch,
        flags: NDArray[np.uint8],
        borders: int = 0,
        table: CharTable | None = None,
    ) -> tuple[_ShingledTexts, NDArray[np.uint8]]:
        """Return the sets, valid until the next run, and the kernel's outcomes.

        borders : as for `find_border`.
        """
        params = self.params
        if table is None:
            table = find_table(params, flags)
        room = int(batch.lengths.sum()) + 1
        longest = int(batch.lengths.max(initial=0))
        if longest > self._scratch.room:
            self._scratch = ScratchArrays(longest)
        if room > len(self._values):
            self._values = np.empty(room, np.uint64)
        scratch, values = self._scratch, self._values
        if room > LARGE:  # A thread does not hold what it seldom needs.
            self._scratch, self._values = ScratchArrays(1 << 16), np.empty(0, np.uint64)
        sizes = np.empty(len(batch.indices), np.int64)
        set_prints, text_prints = (np.empty(len(batch.indices), np.uint64) for _ in range(2))
        outcomes = np.empty(len(batch.indices), np.uint8)
        total = kernels.shingle_batch(
            batch.text, batch.starts, batch.lengths,
            table.entries, table.classes,
            self._in_blocks, params.keep_case, borders, TOKEN_RULES[params.tokens],
            self._hash.kind, self._hash.seed, self._hash.factor, self._hash.set_seed,
            1 if self._in_order else params.k, params.bag or self._in_order, params.min_tokens,
            scratch.folded, scratch.edges, scratch.hashes, scratch.shingles,
            values, sizes, set_prints, text_prints, outcomes,
        )  # fmt: skip
        is_bag = params.bag and not self._in_order
        if is_bag:
            total = kernels.count_repeats(
                values, sizes, self._hash.step, scratch.shingles, scratch.counts
            )
        sets = RaggedSets.from_sizes(values[:total], sizes)
        if is_bag:
            set_prints = fingerprint_sets(sets, params)
        return _ShingledTexts(sets, set_prints, text_prints), outcomes


def too_long_error(text: bytes) -> InputError:
    """Return the error for a text whose normal form is too long."""
    return InputError(f"a text of {len(text):,} bytes is too long: {_TOO_LONG}", "split it")


def fingerprint_sets(sets: RaggedSets, params: ShingleParams) -> NDArray[np.uint64]:
    """Return a fingerprint of each set: uint64 array of shape (n_sets,), 0 for an empty set.

    The order of elements does not matter.
    Fingerprints are equal where sets are; unequal sets have equal fingerprints with probability
    2^-64 a pair.
    """
    out = np.empty(len(sets), np.uint64)
    kernels.set_fingerprints(sets.values, sets.offsets, shingle_hash(params).set_seed, out)
    return out


def fingerprint_bytes(batch: TextBatch, params: ShingleParams) -> NDArray[np.uint64]:
    """Return a fingerprint of the bytes of each document: uint64 array of shape (m,), never 0."""
    out = np.empty(len(batch.indices), np.uint64)
    used = shingle_hash(params)
    byte_fingerprints(batch.text, batch.starts, batch.lengths, used.seed, used.factor, out)
    return out


def _replace_sets(sets: RaggedSets, positions: list[int], others: RaggedSets) -> RaggedSets:
    """Return `sets` with `others` at these positions, which ascend."""
    if len(positions) == len(sets):
        return others
    sizes = sets.sizes
    starts = sets.offsets[:-1].copy()
    starts[positions] = others.offsets[:-1] + len(sets.values)
    sizes[positions] = others.sizes
    pool = np.concatenate([sets.values, others.values])
    return RaggedSets.from_sizes(pool[ranges(starts, sizes)], sizes)


def _drop(batch: ShingleBatch, bad: NDArray[np.int64]) -> ShingleBatch:
    """Return a batch without the documents at positions `bad`, whose sets are empty."""
    sets = RaggedSets.from_sizes(batch.sets.values, np.delete(batch.sets.sizes, bad))
    return replace(
        batch,
        indices=np.delete(batch.indices, bad),
        sets=sets,
        set_prints=np.delete(batch.set_prints, bad),
        byte_prints=np.delete(batch.byte_prints, bad),
        text_prints=np.delete(batch.text_prints, bad),
        forms=np.delete(batch.forms, bad),
    )
