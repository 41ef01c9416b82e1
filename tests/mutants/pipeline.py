"""Faults of the files at the top: pipeline, params, api."""

from tests.mutants import Mutant

QUERY = "tests/cli/test_commands.py -k 'query or exactly_at'"

MUTANTS = [
    Mutant(
        "context: a disk without room is noticed when it is full",
        "lshdup/workspace/context.py",
        "        if size > free:\n",
        "        if size < 0:\n",
        "tests/workspace/test_memory.py -k room",
    ),
    Mutant(
        "sets: of documents that were not expected those of others are returned",
        "lshdup/collection/set_source.py",
        "if not np.array_equal(expected[at], wanted):",
        "if len(wanted) == 0:",
        "tests/documents/test_parquet_folders.py -k not_expected",
    ),
    Mutant(
        "query: a document is its own neighbour",
        "lshdup/matching/results.py",
        "        answer = answer[answer != itself]\n",
        "",
        QUERY,
    ),
    Mutant(
        "query: equal similarities are in any order",
        "lshdup/matching/results.py",
        "order = np.lexsort((answer, -scores))",
        "order = np.lexsort((-answer, -scores))",
        QUERY,
    ),
    Mutant(
        "query: a neighbour at the threshold is none",
        "lshdup/pipeline.py",
        "    keep = score >= threshold\n    return Neighbours",
        "    keep = score > threshold\n    return Neighbours",
        QUERY,
    ),
    Mutant(
        "pairs by estimate: one at the threshold is none",
        "lshdup/pipeline.py",
        "        keep = found >= threshold\n",
        "        keep = found > threshold\n",
        "tests/workspace/test_rethreshold.py::test_an_estimate_exactly_at_the_threshold_is_found",
    ),
    Mutant(
        "clusters: documents whose sets are lost stay in their groups",
        "lshdup/pipeline.py",
        "groups.without(unreadable), duplicate_of",
        "groups, duplicate_of",
        "tests/matching/test_clusters.py",
    ),
    Mutant(
        "params: a threshold of 0",
        "lshdup/params.py",
        "0.0 < self.threshold <= 1.0",
        "0.0 <= self.threshold <= 1.0",
        "tests/cli/test_commands.py::test_usage_errors",
    ),
    Mutant(
        "params: a threshold of 1 is refused",
        "lshdup/params.py",
        "0.0 < self.threshold <= 1.0",
        "0.0 < self.threshold < 1.0",
        "tests/matching/test_clusters.py tests/lsh/test_bands.py",
    ),
    Mutant(
        "params: words are in shingles of four",
        "lshdup/params.py",
        '"word": 3',
        '"word": 4',
        "tests/shingling/test_text.py -k known_answers",
    ),
    Mutant(
        "params: the seed has another default",
        "lshdup/params.py",
        "    seed: int = 1\n",
        "    seed: int = 2\n",
        "tests/cli/test_reference.py",
    ),
    Mutant(
        "params: recall 1 is promised",
        "lshdup/params.py",
        "0.0 < self.recall < 1.0",
        "0.0 < self.recall <= 1.0",
        "tests/cli/test_commands.py::test_usage_errors",
    ),
    Mutant(
        "params: max_bytes of 0",
        "lshdup/params.py",
        "1 <= self.max_bytes <= LONGEST",
        "0 <= self.max_bytes <= LONGEST",
        "tests/cli/test_commands.py::test_usage_errors",
    ),
    Mutant(
        "api: the columns are rows",
        "lshdup/api.py",
        "np.ascontiguousarray(self.signatures.T)",
        "np.ascontiguousarray(self.signatures)",
        "tests/test_api.py",
    ),
    Mutant(
        "api: documents without tokens are alike",
        "lshdup/api.py",
        "        if not self.collection.sizes[left] or not self.collection.sizes[right]:\n            return 0.0\n",
        "",
        "tests/test_api.py",
    ),
    Mutant(
        "api: empty columns share a bucket",
        "lshdup/lsh/tables.py",
        "(signatures != 0xFFFFFFFF).any(axis=1)",
        "(signatures >= 0).any(axis=1)",
        "tests/test_api.py",
    ),
]
