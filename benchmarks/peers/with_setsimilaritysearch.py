"""All near-duplicate pairs, exactly, with SetSimilaritySearch."""

from SetSimilaritySearch import all_pairs

from benchmarks.peers.texts import arguments, print_pairs, shingled


def main() -> None:
    """Read, join."""
    options = arguments().parse_args()
    names, sets = shingled(options.folder)
    found = all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=options.threshold)
    print_pairs(names, ((min(a, b), max(a, b)) for a, b, _ in found))


if __name__ == "__main__":
    main()
