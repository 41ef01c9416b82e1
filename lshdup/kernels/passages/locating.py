"""Token numbers -> bytes of the documents, for documents that are their own text.

Reference: `shingling.inspection.locate_tokens`, which locates the tokens of any text.
"""

from lshdup.kernels.helpers import I32, I64, U8, U32, inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.text import DONE, RULE_SYMBOLS, RULE_TERMS, keep_terms, tokens_by_table


@inlined
def _start_of(edges: I32, origins: I32, token: int) -> int:
    """Return the first byte of a token in the document."""
    return int(origins[2 * edges[2 * token]])


@inlined
def _end_of(edges: I32, origins: I32, token: int) -> int:
    """Return the byte behind a token in the document."""
    return int(origins[2 * edges[2 * token + 1] - 1])


@kernel
def locate_runs(
    text: U8,
    starts: I64,
    lengths: I64,
    table: U32,
    classes: U8,
    in_blocks: bool,
    keep_case: bool,
    rule: int,
    bounds: I64,
    first: I64,
    sizes: I64,
    alone: bool,
    folded: U8,
    edges: I32,
    origins: I32,
    begins: I64,
    ends: I64,
    outcomes: U8,
) -> None:
    """Set the first byte of runs of tokens, and the byte behind the last one, in their document.

    text, starts, lengths : the documents. in_blocks, keep_case : as for `tokens_by_table`.
    bounds : the runs of document d are bounds[d] … bounds[d + 1] - 1.
    first, sizes : number of the first token, and tokens, of each run.
    alone : whether to leave out characters that are also of a token beside the run.
    folded, edges, origins : scratch, as for `shingles_in_order`.
    begins, ends : the result; unchanged for runs behind the last token.
    outcomes : of each document; if it is not DONE, its runs are unchanged.
    """
    for d in range(len(starts)):
        document = text[starts[d] : starts[d] + lengths[d]]
        tokens, outcome = tokens_by_table(
            document, table, classes, folded, edges,
            in_blocks, keep_case, rule == RULE_SYMBOLS, True, origins,
        )  # fmt: skip
        outcomes[d] = outcome
        if outcome != DONE:
            continue
        if rule == RULE_TERMS:
            tokens = keep_terms(folded, edges, tokens)
        for run in range(bounds[d], bounds[d + 1]):
            after = first[run] + sizes[run]
            if after > tokens:
                continue
            begin = _start_of(edges, origins, first[run])
            end = _end_of(edges, origins, after - 1)
            if alone:
                if first[run] > 0:
                    begin = max(begin, _end_of(edges, origins, first[run] - 1))
                if after < tokens:
                    end = min(end, _start_of(edges, origins, after))
                end = max(begin, end)
            begins[run] = begin
            ends[run] = end
