"""Shingle sets of texts (docs/reference/definitions.md), by the loops of `kernels.shingles`."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import MAIL_ENDINGS, PAGE_ENDINGS, Form
from lshdup.base.frozen import dataclass
from lshdup.base.mbox import is_mailbox
from lshdup.base.memory import MOST_HELD, Buffer
from lshdup.base.params import DEFAULT_FORMATS, LONGEST, FormatLimits, ShingleParams
from lshdup.base.ragged import RaggedSets, ranges
from lshdup.base.skipped import Reason
from lshdup.base.system import blake2b
from lshdup.errors import InputError, ParameterError
from lshdup.kernels import flags as flag_kernels
from lshdup.kernels import shingles as kernels
from lshdup.kernels import text as text_kernels
from lshdup.kernels.helpers import PADDING
from lshdup.kernels.shingles import HASH_KEYED, HASH_MIX64, HASH_POLY31, Scratch, ShingleHash
from lshdup.kernels.text import Cutting
from lshdup.shingling.normalization import NO_TABLE, char_table, hide_hyphens, normal_form
from lshdup.text.decoding import MAGICS, Text, decode, decode_mails, decode_record
from lshdup.text.mail import HEADER_WINDOW, bare_mail_file, mail_form
from lshdup.text.text_batch import TextBatch

#: The kernel's rule for each kind of tokens.
TOKEN_RULES = {
    "word": text_kernels.RULE_PLAIN,
    "char": text_kernels.RULE_CHARACTERS,
    "terms": text_kernels.RULE_TERMS,
    "ids": text_kernels.RULE_IDS,
    "symbols": text_kernels.RULE_SYMBOLS,
}

#: Whether two bytes, as a little-endian number, begin one of MAGICS.
_BEGINS_MAGIC = np.zeros(1 << 16, bool)
_BEGINS_MAGIC[[int.from_bytes(magic[:2], "little") for magic in MAGICS]] = True

#: Decoded texts are shingled together up to so many bytes; a text of more bytes than the second
#: number is shingled while no other thread shingles such a text.
_DECODED_TOGETHER, _LARGE_TEXT = 16 << 20, 64 << 20
_large_text_lock = threading.Lock()

_TOO_LONG = "as UTF-8 in normal form it is longer than 2 GB, or more than twice as long as it was"


#: Documents without a set: number, reason and detail of each.
Skips = list[tuple[int, Reason, str]]

#: The sets of a batch whose sets are not kept.
NO_SETS = RaggedSets.from_sets([])


# --- what the kernels need to know of documents ---


def inspect_texts(
    batch: TextBatch, params: ShingleParams
) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.uint8]]:
    """Return the flags of `kernels.flags.inspect`, which documents of a batch may be other than
    plain UTF-8 text, and the forms of mails and of texts that begin as mails.
    """
    count = len(batch.indices)
    flags = np.zeros(count, np.uint8)
    flag_kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
    special = np.ones(count, bool)
    if batch.is_text:
        flags &= ~np.uint8(flag_kernels.HAS_NUL)  # A border between parts has one.
    names = batch.names.values.tobytes().lower()  # One look at all is much faster than one at each.
    if not params.encoding or batch.is_text:
        known = flag_kernels.HAS_NUL | flag_kernels.STARTS_MARKUP | _broken_flag(params)
        special = ((flags & known) != 0) | _begins_with_magic(batch)
        if b"htm" in names:
            special |= [name.lower().endswith(PAGE_ENDINGS) for name in batch.names]
    forms, may_be_mails = np.zeros(count, np.uint8), (flags & flag_kernels.STARTS_HEADER) != 0
    if b"emlx" in names:
        may_be_mails |= [name.lower().endswith(MAIL_ENDINGS[1]) for name in batch.names]
    for at in np.flatnonzero(may_be_mails).tolist():
        start = batch.starts[at]
        head = batch.text[start : start + min(HEADER_WINDOW, int(batch.lengths[at]))].tobytes()
        forms[at] = mail_form(head, batch.path(at), params)
    if batch.form:
        forms[forms != Form.MAIL] = batch.form
    return flags, special | (forms == Form.MAIL), forms


def _broken_flag(params: ShingleParams) -> int:
    """Return the flag of texts in which `hide_hyphens` may hide any."""
    return flag_kernels.BREAKS_WORD if params.join_hyphens else flag_kernels.BREAKS_WORDS


def _inspect(texts: list[bytes]) -> tuple[TextBatch, NDArray[np.uint8]]:
    """Return valid UTF-8 as a batch, and its flags."""
    batch, flags = TextBatch.of(range(len(texts)), texts), np.zeros(len(texts), np.uint8)
    flag_kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
    return batch, flags


def _begins_with_magic(batch: TextBatch) -> NDArray[np.bool_]:
    """Return which documents begin with one of MAGICS."""
    first_two = batch.text[batch.starts] | batch.text[batch.starts + 1].astype(np.uint16) << 8
    begins: NDArray[np.bool_] = _BEGINS_MAGIC[first_two]
    for at in np.flatnonzero(begins).tolist():
        start = batch.starts[at]
        head = batch.text[start : start + min(8, batch.lengths[at])].tobytes()
        begins[at] = head.startswith(MAGICS)
    return begins


def decode_batch(
    batch: TextBatch,
    positions: list[int],
    params: ShingleParams,
    limits: FormatLimits,
    forms: NDArray[np.uint8] | None = None,
) -> Iterator[tuple[int, Text]]:
    """Yield the positions and texts of some documents of a batch, in order; mails are read
    together.

    forms : as of `inspect_texts`, if the batch was inspected.
    """
    if forms is None:
        forms = inspect_texts(batch, params)[2]
    mails = [at for at in positions if forms[at] == Form.MAIL]
    files = [bare_mail_file(batch.content(at), batch.path(at)) for at in mails]
    read = dict(zip(mails, decode_mails(files, params, limits), strict=True))
    del files
    for at in positions:
        path, form = batch.path(at), Form(forms[at])
        if form == Form.MAIL:
            yield at, read.pop(at)
        elif path is None:
            yield at, decode_record(batch.content(at), params, limits, form)
        else:
            yield at, decode(batch.content(at), path, params, batch.max_bytes, limits, form)


def find_cutting(params: ShingleParams, flags: NDArray[np.uint8]) -> Cutting:
    """Return how documents with these flags are cut into tokens.

    There is no table if their tokens are found without.
    """
    in_blocks = params.tokens in ("word", "symbols")
    has_high = bool((flags & flag_kernels.HAS_HIGH).any())
    if params.tokens == "ids" or (in_blocks and not has_high):
        table = NO_TABLE
    else:
        table = char_table(params.tokens, params.normalize, params.keep_case, params.fold)
    return Cutting(*table, in_blocks, params.keep_case, TOKEN_RULES[params.tokens])


def shingle_hash(params: ShingleParams) -> ShingleHash:
    """Return the hash of these parameters. Raise ParameterError if its key is missing."""
    if not params.key:
        poly31 = params.hash == "poly31"
        return ShingleHash(HASH_POLY31 if poly31 else HASH_MIX64)
    if not params.secret:
        message = (
            "the store was made with an LSHDUP_HASH_KEY, "
            "and it is not the one that was given, or none was"
        )
        raise ParameterError(message, "give the key in LSHDUP_HASH_KEY")
    digest = blake2b(params.secret, digest_size=32, person=b"lshdup shingles").digest()
    seed, factor, step, set_seed = np.frombuffer(digest, "<u8").astype(np.uint64)
    one = np.uint64(1)  # Factors must be odd.
    return ShingleHash(HASH_KEYED, seed, factor | one, step | one, set_seed)


def scratch_arrays(room: int) -> Scratch:
    """Return arrays for the work on one document of up to `room` bytes at a time.

    Pages of memory that no document touches cost nothing.
    """
    space = room + 2 * PADDING
    return Scratch(
        np.empty(min(2 * space, LONGEST + 2 * PADDING), np.uint8),
        np.empty(4 * space, np.int32),
        np.empty(space, np.uint64),
        np.empty(space, np.uint64),
    )


class ScratchHolder:
    """The scratch arrays of one thread, between batches."""

    _held: Scratch | None = None

    def take(self, longest: int) -> Scratch:
        """Return arrays for documents of up to `longest` bytes, valid until the next call."""
        scratch = self._held
        if scratch is None or longest > len(scratch.hashes) - 2 * PADDING:
            self._held = scratch = scratch_arrays(max(longest, 1 << 16))
        if longest > MOST_HELD:  # A thread does not hold what it seldom needs.
            self._held = None
        return scratch


def are_ids(words: list[bytes]) -> bool:
    """Return whether words are integers from 0 to 2^64 - 1."""
    # The largest id has twenty digits; Python refuses to parse thousands of digits.
    return all(
        each.isdigit() and len(each.lstrip(b"0")) <= 20 and int(each[-20:]) < 1 << 64
        for each in words
    )


# --- sets ---


@dataclass(frozen=True)
class ShingleBatch:
    """The shingle sets of a batch of documents, in the order of the batch.

    indices : int64 array of shape (m,), the numbers of the documents in their list.
    sets : m shingle sets, with their elements in no particular order (see `RaggedSets.sort`).
    columns : arrays of shape (m,): fingerprints, uint64, of the sets (`fingerprint_sets`);
        byte_prints and text_prints, uint64, of the bytes as they were read, and of the sequence of
        tokens (0 without tokens); forms, uint8, what each was read as (`base.forms.Form`).
    skipped : number, reason and detail of each document that has no set.
    guesses : number and encoding of each document whose encoding was detected.
    mailboxes : numbers of the files that hold many mails, and have no set.
    signatures : uint32 array of shape (m, K), once the sets are sketched.
    """

    indices: NDArray[np.int64]
    sets: RaggedSets
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    skipped: Skips = field(default_factory=list)
    guesses: list[tuple[int, str]] = field(default_factory=list)
    mailboxes: list[int] = field(default_factory=list)
    signatures: NDArray[np.uint32] | None = None

    def copy(self) -> "ShingleBatch":
        """Return a copy of the sets in memory of their own, with the same columns."""
        return replace(self, sets=self.sets.copy())

    def replaced(self, positions: list[int], others: list["ShingleBatch"]) -> "ShingleBatch":
        """Return the sets with others at these positions, which ascend; change the columns that the
        others have.
        """
        if not positions:
            return self
        made = RaggedSets.concatenate(each.sets for each in others)
        for name in others[0].columns:
            self.columns[name][positions] = np.concatenate([each.columns[name] for each in others])
        if len(positions) == len(self.sets):
            return replace(self, sets=made)
        sizes, starts = self.sets.sizes, self.sets.offsets[:-1].copy()
        starts[positions] = made.offsets[:-1] + len(self.sets.values)
        sizes[positions] = made.sizes
        pool = np.concatenate([self.sets.values, made.values])
        return replace(self, sets=RaggedSets.from_sizes(pool[ranges(starts, sizes)], sizes))


class Shingler:
    """A maker of shingle sets, for one thread: it holds the scratch arrays between batches.

    in_order : make the sequence of a document's tokens in the place of its set: their hashes, in
        the order of the text, with repeats.

    Determinism: a set depends on the text and the parameters only.
    Cost: about 1 ns a byte for ASCII words; more for decoding, normalising and parsing.
    Memory: for the longest document, 2 bytes for each of its bytes and 32 for each token (8 times
    an English text, 34 times a text cut into characters), released at once above MOST_HELD bytes;
    decoding, normalising and parsing take memory beside it.
    """

    def __init__(self, params: ShingleParams, *, in_order: bool = False) -> None:
        if params.tokens not in TOKEN_RULES:
            message = f"--tokens is {params.tokens!r}; it must be one of {', '.join(TOKEN_RULES)}"
            raise ParameterError(message)
        self.params = params
        self._in_order = in_order
        self._hash = shingle_hash(params)
        self._scratch = ScratchHolder()
        self._values = Buffer(np.uint64)

    def shingle(self, batch: TextBatch, limits: FormatLimits = DEFAULT_FORMATS) -> ShingleBatch:
        """Return the shingle sets of a batch of raw documents, valid until the next call.

        The fast path takes a document as it is in the buffer. A document that may be something
        other than UTF-8 text, or turns out not to be, is decoded; a text that NFKC may reorder or
        compose goes through `unicodedata`.

        batch : the names of documents tell HTML pages and mails by their endings.
        limits : bounds for reading one office document.
        """
        are_ids = self.params.tokens == "ids"
        if are_ids:
            flags = forms = np.zeros(len(batch.indices), np.uint8)
            special = flags.astype(bool)
        else:
            flags, special, forms = inspect_texts(batch, self.params)
        # An empty text costs nothing and has an empty set.
        lengths = np.where(special, 0, batch.lengths)
        borders = int(batch.is_text and not are_ids)
        made, outcomes = self._run(replace(batch, lengths=lengths), flags, borders)
        made.columns.update(byte_prints=fingerprint_bytes(batch, self.params), forms=forms)
        result = replace(made, skipped=list(batch.skipped))
        slow = np.flatnonzero(special | (outcomes != text_kernels.DONE))
        if not len(slow):
            return result
        if not are_ids:
            return self._shingle_decoded(batch, result.copy(), slow.tolist(), limits)
        not_ids = Reason.NOT_IDS, "ids are integers from 0 to 2^64 - 1"
        result.skipped.extend((at, *not_ids) for at in batch.indices[slow].tolist())
        return _drop(result, slow)

    def _shingle_decoded(
        self, batch: TextBatch, result: ShingleBatch, positions: list[int], limits: FormatLimits
    ) -> ShingleBatch:
        """Complete the sets of a batch by those of the documents at these positions."""
        forms = result.columns["forms"]
        mails = (at for at in positions if batch.are_files and forms[at] == Form.MAIL)
        bad = [at for at in mails if is_mailbox(batch.content(at))]
        result.mailboxes.extend(batch.indices[bad].tolist())
        positions = [at for at in positions if at not in bad]
        decoded: list[int] = []  # Positions of the documents that are texts.
        parts: list[ShingleBatch] = []
        waiting: list[bytes] = []
        size = 0
        for position, text in decode_batch(batch, positions, self.params, limits, forms):
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
        return _drop(result.replaced(decoded, parts), np.array(bad, np.int64))

    def shingle_texts(self, texts: list[bytes]) -> RaggedSets:
        """Return the sorted shingle sets of texts in valid UTF-8, perhaps of several parts.

        Raise InputError if one is too long.
        """
        return self.shingle_decoded(texts)[0]

    def shingle_decoded(self, texts: list[bytes]) -> tuple[RaggedSets, NDArray[np.uint64]]:
        """Return the sorted shingle sets of texts, as `shingle_texts`, or their sequences; and
        their `text_prints`.

        Raise InputError if one is too long.
        """
        made, too_long = self._shingle_texts(texts)
        if too_long:
            raise too_long_error(texts[too_long[0]])
        return made.sets if self._in_order else made.sets.sort(), made.columns["text_prints"]

    def _shingle_texts(self, texts: list[bytes]) -> tuple[ShingleBatch, list[int]]:
        """Return sets in memory of their own, and which texts are too long and have empty sets.

        texts : valid UTF-8.
        """
        too_long = [i for i, text in enumerate(texts) if len(text) > LONGEST]
        if too_long:
            texts = [b"" if i in too_long else text for i, text in enumerate(texts)]
        batch, flags = _inspect(texts)
        broken = np.flatnonzero(flags & _broken_flag(self.params)).tolist()
        if broken:
            texts = texts.copy()
            for i in broken:
                texts[i] = hide_hyphens(texts[i], self.params)
            batch, flags = _inspect(texts)
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
        # This table leaves characters as they are.
        entries, classes = char_table(self.params.tokens, False, True, self.params.fold)
        cutting = find_cutting(self.params, flags[:0])._replace(table=entries, classes=classes)
        normal_made, _ = self._run(batch, flags, 2, cutting)
        return made.replaced(denormal, [normal_made.copy()]), too_long

    def _run(
        self,
        batch: TextBatch,
        flags: NDArray[np.uint8],
        borders: int,
        cutting: Cutting | None = None,
    ) -> tuple[ShingleBatch, NDArray[np.uint8]]:
        """Return the sets, valid until the next run, with their fingerprints, and the kernel's
        outcomes.

        borders : as for `find_border`.
        """
        params = self.params
        room = int(batch.lengths.sum()) + 1
        scratch = self._scratch.take(int(batch.lengths.max(initial=0)))
        values = self._values.room(room)
        sizes = np.empty(len(batch.indices), np.int64)
        set_prints, text_prints = (np.empty(len(batch.indices), np.uint64) for _ in range(2))
        outcomes = np.empty(len(batch.indices), np.uint8)
        total = kernels.shingle_batch(
            batch.text, batch.starts, batch.lengths,
            cutting or find_cutting(params, flags), borders, self._hash,
            0 if self._in_order else params.k, params.bag or self._in_order, params.min_tokens,
            scratch, values, sizes, set_prints, text_prints, outcomes,
        )  # fmt: skip
        is_bag = params.bag and not self._in_order
        if is_bag:
            total = kernels.count_repeats(
                values, sizes, self._hash.step, scratch.shingles, scratch.hashes.view(np.int32)
            )
        sets = RaggedSets.from_sizes(values[:total], sizes)
        if is_bag:
            set_prints = fingerprint_sets(sets, params)
        columns = {"fingerprints": set_prints, "text_prints": text_prints}
        return ShingleBatch(batch.indices, sets, columns), outcomes


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
    kernels.byte_fingerprints(batch.text, batch.starts, batch.lengths, shingle_hash(params), out)
    return out


def _drop(batch: ShingleBatch, bad: NDArray[np.int64]) -> ShingleBatch:
    """Return a batch without the documents at positions `bad`, whose sets are empty."""
    sets = RaggedSets.from_sizes(batch.sets.values, np.delete(batch.sets.sizes, bad))
    columns = {name: np.delete(column, bad) for name, column in batch.columns.items()}
    return replace(batch, indices=np.delete(batch.indices, bad), sets=sets, columns=columns)
