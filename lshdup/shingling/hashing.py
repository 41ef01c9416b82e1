"""The hash that identifies shingles, by its parameters."""

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.errors import ParameterError
from lshdup.kernels import shingles as kernels
from lshdup.params import ShingleParams


@dataclass(frozen=True)
class ShingleHash:
    """The hash that identifies shingles.

    kind : one of the kernel's hashes.
    seed, factor, step : numbers in the hash of tokens, of sequences, and of repeats in a bag.
    set_seed : number in the fingerprint of a set.
    """

    kind: int
    seed: np.uint64 = kernels.TOKEN_SEED
    factor: np.uint64 = kernels.SHINGLE_FACTOR
    step: np.uint64 = kernels.BAG_STEP
    set_seed: np.uint64 = kernels.TOKEN_SEED


def shingle_hash(params: ShingleParams) -> ShingleHash:
    """Return the hash of these parameters. Raise ParameterError if its key is missing."""
    if not params.key:
        poly31 = params.hash == "poly31"
        return ShingleHash(kernels.HASH_POLY31 if poly31 else kernels.HASH_MIX64)
    if not params.secret:
        message = (
            "the store was made with an LSHDUP_HASH_KEY, "
            "and it is not the one that was given, or none was"
        )
        raise ParameterError(message, "give the key in LSHDUP_HASH_KEY")
    import hashlib  # Imported here to keep `query` fast.

    digest = hashlib.blake2b(params.secret, digest_size=32, person=b"lshdup shingles").digest()
    seed, factor, step, set_seed = np.frombuffer(digest, "<u8").astype(np.uint64)
    one = np.uint64(1)  # Factors must be odd.
    return ShingleHash(kernels.HASH_KEYED, seed, factor | one, step | one, set_seed)
