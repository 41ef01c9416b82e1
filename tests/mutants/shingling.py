"""Faults of lshdup/shingling."""

from tests.mutants import Mutant

FILTER = "tests/shingling/test_shingle_filter.py"

MUTANTS = [
    Mutant(
        "filter: a share is rounded up",
        "lshdup/shingling/shingle_filter.py",
        "return max(2, math.floor(most) + 1)",
        "return max(2, math.ceil(most))",
        "lshdup/shingling/shingle_filter.py",
    ),
    Mutant(
        "filter: a shingle of one document is common",
        "lshdup/shingling/shingle_filter.py",
        "return max(2, math.floor(most) + 1)",
        "return math.floor(most) + 1",
        f"{FILTER} -k 'share or limit or number'",
    ),
    Mutant(
        "filter: a share is what a double makes of it",
        "lshdup/shingling/shingle_filter.py",
        "Fraction(repr(limit)) * documents if limit < 1",
        "limit * documents if limit < 1",
        "lshdup/shingling/shingle_filter.py",
    ),
    Mutant(
        "filter: counts at the limit are not common",
        "lshdup/shingling/shingle_filter.py",
        "enough = counts >= least",
        "enough = counts > least",
        f"{FILTER}::test_counts_are_those_of_a_counter",
    ),
    Mutant(
        "filter: filters with other shingles are the same",
        "lshdup/shingling/shingle_filter.py",
        'return self.params.to_json() | {"common": fingerprint(self.common)}',
        'return self.params.to_json() | {"common": ""}',
        f"{FILTER}",
    ),
    Mutant(
        "hash key: factors may be even",
        "lshdup/shingling/hashing.py",
        "factor | one, step | one, set_seed",
        "factor, step, set_seed",
        "tests/store/test_hash_key.py",
    ),
    Mutant(
        "hash key: sets are fingerprinted with the public number",
        "lshdup/shingling/hashing.py",
        "factor | one, step | one, set_seed",
        "factor | one, step | one",
        "tests/store/test_hash_key.py",
    ),
    Mutant(
        "parts: a shingle goes on behind a border",
        "lshdup/kernels/text.py",
        "document[i + 1] < borders:",
        "document[i + 1] > borders:",
        "tests/shingling/test_parts.py",
    ),
    Mutant(
        "parts: the same tokens in other parts are the same text",
        "lshdup/kernels/shingles.py",
        "                    words += 1\n                made",
        "                    words += 0\n                made",
        "tests/shingling/test_parts.py",
    ),
    Mutant(
        "parts: what is sealed has shingles",
        "lshdup/kernels/shingles.py",
        "if kind == np.uint64(0):",
        "if kind < np.uint64(9):",
        "tests/shingling/test_parts.py",
    ),
    Mutant(
        "parts: fields of another encoding are one part",
        "lshdup/text/decoding.py",
        "fields = data.removeprefix(codecs.BOM_UTF8).split(PART)",
        "fields = [data.removeprefix(codecs.BOM_UTF8)]",
        "tests/documents/test_several_fields.py -k latin",
    ),
]
