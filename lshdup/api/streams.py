"""Texts that come one after the other: which of them repeats an earlier one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Unpack

from lshdup.api.options import Options, collect_documents, in_keywords, params_of, run_of
from lshdup.base.params import STORED_SCHEMES, BandParams, ShingleParams
from lshdup.base.run import Run
from lshdup.collection.from_texts import cells_of, check_text
from lshdup.errors import InputError, ParameterError
from lshdup.lsh.band_plan import plan_bands
from lshdup.workspace.layers import Layer

#: Most texts, and about most bytes of them, that are looked up together.
_TOGETHER, _BYTES = 512, 4 << 20


def dedupe(
    texts: Iterable[str],
    threshold: float = 0.8,
    *,
    num_permutations: int = 128,
    num_bands: int | None = None,
    recall: float = 0.99,
    **options: Unpack[Options],
) -> Iterator[tuple[int, int | None]]:
    """Yield the number of each text, and that of the earlier text that it repeats, or None.

    A text without one is kept; others repeat the kept text before them that is most similar, of
    equally similar ones the first. Similarities are exact; `recall` is the chance to find a kept
    text of exactly the threshold.

    Texts are taken as answers are: the first alone, then twice as many together as before, up to
    512 or 4 MB. Of the kept ones only their sets stay, in temporary files once they exceed half of
    the memory of a run, which is a quarter of the machine's. So `texts` may have no end.

    Parameters
    ----------
    texts : str, one after the other.
    threshold : Jaccard similarity of the shingle sets, above 0, at most 1.
    num_permutations, num_bands, recall, options : as of `Index.open`, but not `ignore_common`,
        `text_field` and `id_field`.

    Errors: ParameterError at once. InputError for what is no text, when all before is answered.

    >>> list(dedupe(["one two three four", "quite another text", "One, two, three, four!"]))
    [(0, None), (1, None), (2, 0)]

    """
    is_iterable = isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping)
    if not is_iterable or hasattr(texts, "columns"):
        message = f"texts are given as {type(texts).__name__}"
        raise InputError(message, "give a list, a generator, or a column of texts")
    with in_keywords():
        if options.get("ignore_common"):
            message = "ignore_common counts all documents, and here others may come"
            raise ParameterError(message, "name the shared texts with templates")
        params = params_of(num_permutations, options, "num_bands", "threshold", "recall")
        if params.sketch.scheme not in STORED_SCHEMES:
            message = f"scheme is {params.sketch.scheme}, of which all texts must be known"
            raise ParameterError(message, f"use {' or '.join(STORED_SCHEMES)}")
        bands = BandParams(threshold, recall, bands=num_bands or 0)
        plan_bands(num_permutations, bands)
        run = run_of(options)
        none = collect_documents(run, {}, replace(params, bands=bands), options)
        return _find_repeats(run, Layer(run, none), bands, iter(cells_of(texts)))


def _find_repeats(
    run: Run, base: Layer, bands: BandParams, texts: Iterator[str]
) -> Iterator[tuple[int, int | None]]:
    """Yield what `dedupe` does. base : says how sets and signatures are made."""
    layers: tuple[Layer, ...] = (base,)
    for piece in _cut(texts, base.collection.shingle):
        new, numbers = base.sign(piece), list(map(int, piece))
        near: list[list[tuple[float, int]]] = [[] for _ in piece]
        for layer in (*layers[1:], new):
            found = layer.find(new.side, bands, "jaccard")
            earlier = map(int, layer.names(found.documents))
            rows = zip(found.left.tolist(), found.similarity.tolist(), earlier, strict=True)
            for at, similarity, number in rows:
                if number < numbers[at]:
                    near[at].append((-similarity, number))
        repeats: dict[int, int] = {}
        for at, number in enumerate(numbers):
            kept = [each for each in near[at] if each[1] not in repeats]
            if kept:
                repeats[number] = min(kept)[1]
                new.removed[at] = True
        if len(new):
            layers = Layer.push(run, layers, new.without_removed())
        yield from ((number, repeats.get(number)) for number in numbers)


def _cut(texts: Iterator[str], definition: ShingleParams) -> Iterator[dict[str, bytes]]:
    """Yield texts by their numbers, some together; what cannot go on is raised behind them."""
    piece, size, most = dict[str, bytes](), 0, 1
    try:
        for number, text in enumerate(texts):
            piece[f"{number}"] = check_text(f"{number}", text, definition)
            size += len(text)
            if len(piece) == most or size > _BYTES:
                yield piece
                piece, size, most = {}, 0, min(2 * most, _TOGETHER)
    except Exception:
        if piece:
            yield piece
        raise
    if piece:
        yield piece
