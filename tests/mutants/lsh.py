"""Faults of lshdup/lsh."""

from tests.mutants import Mutant

BANDS, SIGNATURES = "tests/lsh/test_bands.py", "tests/lsh/test_signatures.py"

MUTANTS = [
    Mutant(
        "plan: the promised recall is exclusive",
        "lshdup/lsh/band_plan.py",
        "round(chance, 12) >= params.recall:",
        "round(chance, 12) > params.recall + 0.001:",
        f"{BANDS}::test_the_plan_is_the_largest_r_that_keeps_the_promise",
    ),
    Mutant(
        "plan: any plan that keeps the promise, not the one of most rows",
        "lshdup/lsh/band_plan.py",
        "for rows in range(perms, 0, -1):",
        "for rows in range(1, perms + 1):",
        f"{BANDS}::test_known_plans",
    ),
    Mutant(
        "plan: the error names fewer rows than would do",
        "lshdup/lsh/band_plan.py",
        "enough = math.ceil(",
        "enough = math.floor(",
        f"{BANDS}::test_too_few_rows_name_how_many_would_do",
    ),
    Mutant(
        "plan: more bands and rows than the signatures have",
        "lshdup/lsh/band_plan.py",
        "if not (bands and rows) or bands * rows > perms:",
        "if not (bands and rows):",
        f"{BANDS}::test_overrides",
    ),
    Mutant(
        "key_order: a range of keys has the first key of the next one too",
        "lshdup/lsh/key_order.py",
        "max(after - 1, 0)",
        "max(after, 0)",
        "tests/lsh/test_key_order.py",
    ),
    Mutant(
        "arrays: memory is not given back",
        "lshdup/utils/arrays.py",
        "            weakref.finalize(array, self._account, size)\n",
        "",
        "tests/utils/test_arrays.py",
    ),
    Mutant(
        "candidates: documents without shingles are compared",
        "lshdup/lsh/candidates.py",
        "is_first & (np.asarray(sizes[some]) > 0)",
        "is_first & (np.asarray(sizes[some]) >= 0)",
        "tests/matching/test_clusters.py tests/test_api.py",
    ),
    Mutant(
        "candidates: a document that is not in its own bucket is not noticed",
        "lshdup/lsh/candidates.py",
        "if member >= 0 and not all(",
        "if member > 10**9 and not all(",
        BANDS,
    ),
    Mutant(
        "candidates: documents that the table does not have",
        "lshdup/lsh/candidates.py",
        "if len(near) and near[-1] >= table.documents:",
        "if len(near) and near[-1] > 1 << 40:",
        BANDS,
    ),
    Mutant(
        "band table: a document twice in a band is in order",
        "lshdup/lsh/band_table.py",
        "(order[:-1] < order[1:])",
        "(order[:-1] <= order[1:])",
        BANDS,
    ),
    Mutant(
        "band table: a bucket begins behind its first document",
        "lshdup/lsh/band_table.py",
        "if found < wanted:",
        "if found <= wanted:",
        f"{BANDS}::test_a_bucket_is_what_a_look_at_all_documents_finds",
    ),
    Mutant(
        "signatures: the seed is ignored",
        "lshdup/lsh/signatures.py",
        "        rng = np.random.Generator(np.random.PCG64(params.seed))\n        self._salt",
        "        rng = np.random.Generator(np.random.PCG64(1))\n        self._salt",
        SIGNATURES,
    ),
    Mutant(
        "signatures: factors may be even",
        "lshdup/lsh/signatures.py",
        ") | np.uint64(1)",
        ")",
        SIGNATURES,
    ),
    Mutant(
        "linear: the seed is ignored",
        "lshdup/lsh/signatures.py",
        "    rng = np.random.Generator(np.random.PCG64(params.seed))\n    a = ",
        "    rng = np.random.Generator(np.random.PCG64(1))\n    a = ",
        SIGNATURES,
    ),
    Mutant(
        "linear: coefficients repeat",
        "lshdup/lsh/signatures.py",
        "    b = rng.choice(p, params.perms, replace=False)",
        "    b = rng.choice(p, params.perms, replace=True)",
        SIGNATURES,
    ),
    Mutant(
        "linear: elements are numbered by value",
        "lshdup/lsh/signatures.py",
        "number_of[np.argsort(first)] = ",
        "number_of[np.arange(n)] = ",
        f"{SIGNATURES}::test_linear_is_r1_to_the_letter",
    ),
    Mutant(
        "estimates: the standard error is that of one row",
        "lshdup/lsh/signatures.py",
        "np.sqrt(similarity * (1 - similarity) / rows)",
        "np.sqrt(similarity * (1 - similarity))",
        f"{SIGNATURES} tests/test_api.py",
    ),
]
