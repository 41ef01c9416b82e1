"""The front door for Python programs: MinHash, LSH and NearDuplicates.

Everything is computed in the constructor: objects hold plain arrays and names, have no hidden
state, and can be pickled.
"""

from lshdup.api.minhash import LSH, MinHash
from lshdup.api.near_duplicates import NearDuplicates
from lshdup.api.options import Documents, Options

__all__ = ["LSH", "Documents", "MinHash", "NearDuplicates", "Options"]
