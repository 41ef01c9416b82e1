"""Which documents are plain UTF-8 text, and what the kernels need to cut them into tokens."""

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.reading import TextBatch
from lshdup.kernels import text as kernels
from lshdup.params import ShingleParams
from lshdup.shingling.char_table import NO_TABLE, CharTable, char_table
from lshdup.text.decoding import find_mails, may_need_decoding

#: The kernel's rule for each kind of tokens.
TOKEN_RULES = {
    "word": kernels.RULE_PLAIN,
    "char": kernels.RULE_PLAIN,
    "terms": kernels.RULE_TERMS,
    "ids": kernels.RULE_IDS,
    "symbols": kernels.RULE_SYMBOLS,
}


def inspect_texts(
    batch: TextBatch, params: ShingleParams
) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the flags of `kernels.text.inspect`, which documents of a batch may be something other
    than plain UTF-8 text, and which of them are mails.
    """
    count = len(batch.indices)
    flags = np.zeros(count, np.uint8)
    kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
    special, mails = np.ones(count, bool), np.zeros(count, bool)
    if batch.is_text:
        flags &= ~np.uint8(kernels.HAS_NUL)  # A border between parts has one.
    if not params.encoding or batch.is_text:
        special = may_need_decoding(batch.names, batch.text, batch.starts, batch.lengths, flags)
    if not batch.is_text:
        mails = find_mails(batch.names, batch.text, batch.starts, batch.lengths, flags)
        special |= mails
    return flags, special, mails


def find_table(params: ShingleParams, flags: NDArray[np.uint8]) -> CharTable:
    """Return the table for documents with these flags: none if their tokens are found without."""
    has_high = bool((flags & kernels.HAS_HIGH).any())
    if params.tokens == "ids" or (are_in_blocks(params) and not has_high):
        return NO_TABLE
    return char_table(params.tokens, params.normalize, params.keep_case)


def are_in_blocks(params: ShingleParams) -> bool:
    """Return whether `kernels.blocks` can take the characters of these tokens."""
    return params.tokens in ("word", "symbols")
