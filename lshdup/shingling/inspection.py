"""Tokens and shingles of texts in their order, and where they stand, for people to look at."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import BLANK_LINE, split_parts
from lshdup.base.frozen import dataclass
from lshdup.base.params import LONGEST, ShingleParams
from lshdup.base.ragged import ranges
from lshdup.kernels import shingles as kernels
from lshdup.kernels import text as text_kernels
from lshdup.kernels.helpers import I64, mix64_array
from lshdup.kernels.text import Cutting
from lshdup.shingling.normalization import align_normal_form, char_table, hide_hyphens, normal_form
from lshdup.shingling.shingler import (
    TOKEN_RULES,
    ScratchHolder,
    Shingler,
    find_cutting,
    inspect_texts,
    scratch_arrays,
    shingle_hash,
    too_long_error,
)
from lshdup.text.text_batch import TextBatch


@dataclass(frozen=True)
class LocatedText:
    """A text, its tokens, and where each token stands.

    text : UTF-8, in the spelling of the document; between parts stands a blank line.
    starts, ends : int64 arrays of shape (n_tokens,), in bytes of text. Tokens of characters that
        are normalised together have the same ones.
    tokens : uint64 array of shape (n_tokens,), equal where the normal forms of tokens are.
    """

    text: bytes
    starts: I64
    ends: I64
    tokens: NDArray[np.uint64]

    @cached_property
    def line_ends(self) -> I64:
        """The places of the ends of lines: int64 array, ascending."""
        return np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord("\n"))


@dataclass(frozen=True)
class ShingledText(LocatedText):
    """A text with its tokens and its shingles, in the order of the text.

    begins, sizes : int64 arrays of shape (n_shingles,), the first token of each shingle, and the
        number of tokens that it is made from.
    elements : uint64 array of shape (n_shingles,), the element of the shingle set.
    """

    begins: I64
    sizes: I64
    elements: NDArray[np.uint64]


class _Part(NamedTuple):
    """A part of a text that was cut into n tokens.

    shingles : uint64 array of shape (max(1, n - k + 1),), in the order of the text; (0,) without
        tokens.
    sizes : int64 array of its shape, the number of tokens that each is made from.
    folded : uint8 array, the normal form.
    edges : int32 array of shape (n, 2), start and end of each token in it.
    """

    located: LocatedText
    shingles: NDArray[np.uint64]
    sizes: I64
    folded: NDArray[np.uint8]
    edges: NDArray[np.int32]

    def tokens(self) -> list[bytes]:
        """Return the tokens in normal form."""
        forms = self.folded.tobytes()
        return [forms[start:end] for start, end in self.edges.tolist()]


def locate_tokens(text: bytes, params: ShingleParams) -> LocatedText:
    """Locate the tokens of a text, in the order of the text.

    text : valid UTF-8, perhaps of several parts. Ids have no order: they are located in their list,
        ascending.
    Cost: linear, without an object a token.
    """
    return _join_parts(cut_parts(text, params))


def locate_shingles(text: bytes, params: ShingleParams) -> ShingledText:
    """Locate the tokens and the shingles of a text. text : as of `locate_tokens`."""
    parts = cut_parts(text, params)
    located = _join_parts(parts)
    tokens, shingles = (
        np.array([len(each) for each in column])
        for column in zip(*((part.edges, part.shingles) for part in parts), strict=True)
    )
    elements = number_repeats(np.concatenate([part.shingles for part in parts]), params)
    begins = ranges(np.cumsum(tokens) - tokens, shingles)
    sizes = np.concatenate([part.sizes for part in parts])
    return ShingledText(
        located.text, located.starts, located.ends, located.tokens, begins, sizes, elements
    )


def _join_parts(parts: list[_Part]) -> LocatedText:
    """Return the tokens of all parts, with a blank line between parts."""
    located = [part.located for part in parts]
    if len(located) == 1:
        return located[0]
    sizes = np.array([len(each.text) + len(BLANK_LINE) for each in located])
    before = zip(located, (np.cumsum(sizes) - sizes).tolist(), strict=True)
    starts, ends = zip(*((each.starts + at, each.ends + at) for each, at in before), strict=True)
    whole = BLANK_LINE.join(each.text for each in located)
    tokens = np.concatenate([each.tokens for each in located])
    return LocatedText(whole, np.concatenate(starts), np.concatenate(ends), tokens)


def number_repeats(shingles: NDArray[np.uint64], params: ShingleParams) -> NDArray[np.uint64]:
    """Return the element of the shingle set for each shingle of a text.

    An element is the shingle itself; in a bag, each repeat of a shingle is an element of its own.

    shingles : uint64 array, in the order of the text. Returns a uint64 array of its shape.
    """
    if not params.bag or params.tokens == "ids":
        return shingles
    order = np.argsort(shingles, kind="stable")
    ascending = shingles[order]
    repeats = np.empty(len(shingles), np.uint64)
    repeats[order] = np.arange(len(shingles)) - np.searchsorted(ascending, ascending)
    elements = mix64_array(shingles + repeats * shingle_hash(params).step)  # type: ignore[arg-type]
    return np.where(repeats == 0, shingles, elements)


def list_shingles(text: bytes, params: ShingleParams) -> Iterator[tuple[int, str, bytes]]:
    """Yield the shingles of a text in its order, each once: element, printed form, tokens.

    text : valid UTF-8, perhaps of several parts. In a bag, each repeat of a shingle is an element
        of its own.
    """
    parts = cut_parts(text, params)
    shingles = np.concatenate([part.shingles for part in parts])
    elements = iter(number_repeats(shingles, params).tolist())
    between = b"" if params.tokens == "char" else b" "
    decimal = params.tokens == "ids" or params.hash == "poly31"
    seen: set[int] = set()
    for part in parts:
        tokens = part.tokens()
        sizes = part.sizes.tolist()
        for at, shingle in enumerate(part.shingles.tolist()):
            element = next(elements)
            if element not in seen:
                seen.add(element)
                printed = str(shingle) if decimal else f"{shingle:016x}"
                yield element, printed, between.join(tokens[at : at + sizes[at]])


@lru_cache(8)
def _keeping_case(params: ShingleParams) -> ShingleParams:
    return replace(params, keep_case=True)


def cut_parts(text: bytes, params: ShingleParams) -> list[_Part]:
    """Cut each part of a text into tokens. Raise InputError if it is too long."""
    spellings = split_parts(text), split_parts(hide_hyphens(text, params))
    return [_cut(*part, params) for part in zip(*spellings, strict=True)]


def _cut(text: bytes, whole: bytes, params: ShingleParams) -> _Part:
    """Cut a part of a text into tokens. Raise InputError if it is too long.

    whole : the same with hidden hyphens, of the same length.

    The tokens are those of the text itself if its normal form is that of each character alone.
    Otherwise they are found in its NFKC, or, where even that outgrows the scratch arrays, in its
    normal form, and located by `align_normal_form`.
    """
    if params.tokens == "ids":
        ids = Shingler(params.of_any_size()).shingle_texts([text]).values
        words = [b"%d" % number for number in ids.tolist()]
        sizes = np.fromiter(map(len, words), np.int64, len(words))
        ends = np.cumsum(sizes + 1) - 1
        joined, edges = b" ".join(words), np.column_stack([ends - sizes, ends]).astype(np.int32)
        located = LocatedText(joined, ends - sizes, ends, ids)
        return _Part(located, ids, np.ones_like(ends), np.frombuffer(joined, np.uint8), edges)
    table = char_table(params.tokens, params.normalize, params.keep_case, params.fold)
    hashing = shingle_hash(params)
    for form in (None, _keeping_case(params), params):
        spelling = whole if form is None else normal_form(whole, form)
        if spelling is None or len(spelling) > LONGEST:
            raise too_long_error(text)
        if form is not None:
            keep_case = params.keep_case or form is params
            table = char_table(params.tokens, False, keep_case, params.fold)
        document = TextBatch.of([0], [spelling]).text[: len(spelling)]
        scratch = scratch_arrays(len(spelling))
        origins = np.empty((len(scratch.folded), 2), np.int32)
        shingles = np.empty(len(spelling) + 1, np.uint64)
        lengths, counts = np.zeros(len(shingles), np.uint64), np.zeros(2, np.int64)
        outcome = kernels.shingles_in_order(
            document, Cutting(*table, False, False, TOKEN_RULES[params.tokens]), hashing, params.k,
            scratch, origins.ravel(), shingles, lengths, counts,
        )  # fmt: skip
        if outcome == text_kernels.DONE:
            break
    n_tokens, count = counts.tolist()
    edges = scratch.edges[: 2 * n_tokens].reshape(-1, 2)
    starts = origins[edges[:, 0], 0].astype(np.int64)
    ends = origins[edges[:, 1] - 1, 1].astype(np.int64)
    if form is not None:
        begins, past, forms = align_normal_form(whole, form)
        starts = begins[np.searchsorted(forms, starts, side="right") - 1]
        ends = past[np.searchsorted(forms, ends) - 1]
    located = LocatedText(text, starts, ends, scratch.hashes[:n_tokens].copy())
    sizes = lengths[:count].astype(np.int64)
    return _Part(located, shingles[:count], sizes, scratch.folded, edges)


class RunLocator:
    """Locate runs of tokens of batches of documents, for one thread: it holds the scratch arrays.

    Memory: for the longest document, about 45 bytes for each of its bytes.
    """

    def __init__(self, params: ShingleParams) -> None:
        self._params = params
        self._scratch = ScratchHolder()

    def locate(
        self, batch: TextBatch, bounds: I64, first: I64, sizes: I64, *, alone: bool
    ) -> tuple[I64, I64, NDArray[np.bool_]]:
        """Return the first byte of each run, the byte behind its last one, and which documents are
        plain text, of which alone runs are located.

        bounds : int64 array of shape (m + 1,); the runs of document d of the batch are bounds[d] …
            bounds[d + 1] - 1.
        first, sizes : int64 arrays of shape (n,), number of the first token, and tokens.
        alone : whether to leave out characters that are also of a token beside the run.

        Returns int64 arrays of shape (n,), -1 for runs that are not located or behind the last
        token, and a bool array of shape (m,).
        """
        flags, special, _ = inspect_texts(batch, self._params)
        lengths = np.where(special, 0, batch.lengths)
        scratch = self._scratch.take(int(lengths.max(initial=0)))
        begins, ends = np.full(len(first), -1, np.int64), np.full(len(first), -1, np.int64)
        outcomes = np.empty(len(lengths), np.uint8)
        kernels.locate_runs(
            batch.text, batch.starts, lengths, find_cutting(self._params, flags),
            bounds, first, sizes, alone,
            scratch, np.empty(2 * len(scratch.folded), np.int32), begins, ends, outcomes,
        )  # fmt: skip
        return begins, ends, ~special & (outcomes == text_kernels.DONE)
