"""Near-duplicate pairs with rensa 0.5: `RMinHash` and `RMinHashLSH`, candidates verified.

This is its ordinary path. Its faster path samples a few shingles of each document, and so misses
most near-duplicates.
"""

from rensa import RMinHash, RMinHashLSH

from benchmarks.peers.texts import arguments, print_pairs, shingled, verified

PERMUTATIONS = 128


def bands_for(threshold: float) -> int:
    """Return the fewest bands that find a pair at the threshold nine times in ten.

    The library leaves the choice to its user.
    """
    choices = [bands for bands in range(1, PERMUTATIONS + 1) if PERMUTATIONS % bands == 0]
    return next(
        bands for bands in choices if 1 - (1 - threshold ** (PERMUTATIONS // bands)) ** bands >= 0.9
    )


def main() -> None:
    """Read, sketch, index, look up, verify."""
    options = arguments().parse_args()
    names, sets = shingled(options.folder)
    signatures = RMinHash.from_token_sets(sets, num_perm=PERMUTATIONS, seed=1)
    index = RMinHashLSH(
        threshold=options.threshold, num_perm=PERMUTATIONS, num_bands=bands_for(options.threshold)
    )
    index.insert_many(signatures)
    near = index.query_all(signatures)
    candidates = (
        (number, other) for number, others in enumerate(near) for other in others if other > number
    )
    print_pairs(names, verified(candidates, sets, options.threshold))


if __name__ == "__main__":
    main()
