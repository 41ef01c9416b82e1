"""All pairs by similarity or containment, exactly, with SetSimilaritySearch."""

from collections.abc import Iterator

from SetSimilaritySearch import SearchIndex, all_pairs

from benchmarks.peers.texts import arguments, print_pairs, shingled


def main() -> None:
    """Read, join."""
    parser = arguments()
    parser.add_argument("measure", nargs="?", default="jaccard")
    options = parser.parse_args()
    names, sets = shingled(options.folder)
    threshold = options.threshold
    if options.measure == "containment":
        pairs = _insides(sets, threshold)
    else:
        found = all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=threshold)
        pairs = ((min(a, b), max(a, b)) for a, b, _ in found)
    print_pairs(names, pairs)


def _insides(sets: list[set[str]], threshold: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs of which a share of the smaller set is in the larger one: a query a set."""
    index = SearchIndex(sets, similarity_func_name="containment", similarity_threshold=threshold)
    for a, each in enumerate(sets):
        for b, _ in index.query(each):
            if (len(each), a) < (len(sets[b]), b):
                yield min(a, b), max(a, b)


if __name__ == "__main__":
    main()
