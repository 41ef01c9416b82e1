"""Which documents are plain UTF-8 text, what kernels need to cut them into tokens, and the texts of
other documents.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import Form
from lshdup.kernels import text as kernels
from lshdup.params import FormatLimits, ShingleParams
from lshdup.shingling.char_table import NO_TABLE, CharTable, char_table
from lshdup.sources.reading import TextBatch
from lshdup.text.decoding import (
    Text,
    decode,
    decode_mails,
    decode_record,
    find_mails,
    may_need_decoding,
)
from lshdup.text.recognition import bare_mail_file, mail_form

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
) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.uint8]]:
    """Return the flags of `kernels.text.inspect`, which documents of a batch may be something other
    than plain UTF-8 text, and the forms of mails and of texts that begin as mails.
    """
    count = len(batch.indices)
    flags = np.zeros(count, np.uint8)
    kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
    special = np.ones(count, bool)
    if batch.is_text:
        flags &= ~np.uint8(kernels.HAS_NUL)  # A border between parts has one.
    spans = batch.text, batch.starts, batch.lengths, flags
    if not params.encoding or batch.is_text:
        special = may_need_decoding(batch.names, *spans)
    forms = find_mails(batch.names, batch.path, *spans, params)
    return flags, special | (forms == Form.MAIL), forms


def decode_batch(
    batch: TextBatch, positions: list[int], params: ShingleParams, limits: FormatLimits
) -> Iterator[tuple[int, Text]]:
    """Yield the positions and texts of some documents of a batch, in order; mails are read
    together.
    """
    files: dict[int, bytes] = {}
    for at in positions:
        data, path = batch.content(at), batch.path(at)
        if mail_form(data, path, params) == Form.MAIL:
            files[at] = bare_mail_file(data, path)
    mails = dict(zip(files, decode_mails(list(files.values()), params, limits), strict=True))
    del files
    for at in positions:
        path = batch.path(at)
        if at in mails:
            yield at, mails.pop(at)
        elif path is None:
            yield at, decode_record(batch.content(at), params, limits)
        else:
            yield at, decode(batch.content(at), path, params, batch.max_bytes, limits)


def find_table(params: ShingleParams, flags: NDArray[np.uint8]) -> CharTable:
    """Return the table for documents with these flags: none if their tokens are found without."""
    has_high = bool((flags & kernels.HAS_HIGH).any())
    if params.tokens == "ids" or (are_in_blocks(params) and not has_high):
        return NO_TABLE
    return char_table(params.tokens, params.normalize, params.keep_case)


def are_in_blocks(params: ShingleParams) -> bool:
    """Return whether `kernels.blocks` can take the characters of these tokens."""
    return params.tokens in ("word", "symbols")
