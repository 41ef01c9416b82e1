"""Faults of lshdup/utils."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "ragged: a tail of two names",
        "lshdup/utils/ragged.py",
        "if offsets[index + 1] == end and offsets[index] <= at:",
        "if offsets[index + 1] == end:",
        "tests/matching/test_similarity.py::test_string_tables",
    ),
    Mutant(
        "ragged: runs behind the end",
        "lshdup/utils/ragged.py",
        "or (sizes > n - starts).any()",
        "or (starts + sizes > n).any()",
        "tests/matching/test_similarity.py",
    ),
    Mutant(
        "threads: the last steps are not done",
        "lshdup/utils/parallel.py",
        "for part in range(parts + 1)]",
        "for part in range(parts)]",
        "tests/matching/test_similarity.py::test_many_pairs_on_several_threads",
    ),
    Mutant(
        "atomic: no fsync of the file",
        "lshdup/utils/atomic.py",
        "                os.fsync(descriptor)\n",
        "",
        "tests/utils/test_atomic.py",
    ),
    Mutant(
        "atomic: no fsync of the folder",
        "lshdup/utils/atomic.py",
        "                os.fsync(folder)  # Some file systems cannot sync a folder.\n",
        "                pass\n",
        "tests/utils/test_atomic.py",
    ),
    Mutant(
        "atomic: the permissions of the old file are lost",
        "lshdup/utils/atomic.py",
        "                set_mode(descriptor, mode)\n",
        "",
        "tests/utils/test_atomic.py",
    ),
    Mutant(
        "atomic: temporary files of live runs are removed",
        "lshdup/utils/atomic.py",
        "time.time() - status.st_mtime >= _SECONDS_IN_USE",
        "time.time() - status.st_mtime >= 0",
        "tests/utils/test_atomic.py",
    ),
    Mutant(
        "compression: one byte more than allowed",
        "lshdup/utils/compression.py",
        "        if size > most:\n",
        "        if size > most + 1:\n",
        "tests/utils/test_compression.py",
    ),
    Mutant(
        "compression: what is cut off is whole",
        "lshdup/utils/compression.py",
        '            message = "it ends before its end: cut off?"\n            raise PackedError(message) from None\n',
        "            return\n",
        "tests/utils/test_compression.py",
    ),
]
