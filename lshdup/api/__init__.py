"""The front door for Python programs: Index, dedupe, NearDuplicates, MinHash, and LSH.

Names are documents' names as str, results are sequences of tuples that keep their columns, and
errors are those of `lshdup.errors`.
"""

from lshdup.api.index import Index, Match, Pair
from lshdup.api.minhash import LSH, MinHash
from lshdup.api.near_duplicates import NearDuplicates
from lshdup.api.options import Documents, Options
from lshdup.api.streams import dedupe

__all__ = [
    "LSH", "Documents", "Index", "Match", "MinHash", "NearDuplicates", "Options", "Pair", "dedupe"
]  # fmt: skip
