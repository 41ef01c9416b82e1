"""Near-duplicate pairs with datasketch 2: `MinHash.bulk`, `MinHashLSH`, candidates verified.

CRC-32 from the standard library hashes the shingles: several times as fast as the library's default
of SHA-1, and enough for its 32-bit values. `--hash sha1` takes the default.
"""

import zlib

from datasketch import MinHash, MinHashLSH
from datasketch.hashfunc import sha1_hash32

from benchmarks.peers.texts import arguments, print_pairs, shingled, verified

PERMUTATIONS = 128


def main() -> None:
    """Read, sketch, index, look up, verify."""
    parser = arguments()
    parser.add_argument("--hash", choices=("crc32", "sha1"), default="crc32")
    options = parser.parse_args()
    names, sets = shingled(options.folder)
    hashed = sha1_hash32 if options.hash == "sha1" else zlib.crc32
    signatures = MinHash.bulk(
        ([shingle.encode() for shingle in each] for each in sets),
        num_perm=PERMUTATIONS,
        hashfunc=hashed,
    )
    index = MinHashLSH(threshold=options.threshold, num_perm=PERMUTATIONS)
    candidates: list[tuple[int, int]] = []
    for number, signature in enumerate(signatures):
        candidates += ((other, number) for other in index.query(signature))
        index.insert(number, signature)
    print_pairs(names, verified(candidates, sets, options.threshold))


if __name__ == "__main__":
    main()
