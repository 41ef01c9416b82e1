"""Faults of lshdup/store, lshdup/collection and lshdup/utils."""

from tests.mutants import Mutant

CHECKS, SAME = "tests/store/test_checks.py", "tests/matching/test_sameness.py"

MUTANTS = [
    Mutant(
        "artifacts: members that are always verified are not",
        "lshdup/store/npz.py",
        'in ("header", "checks", *always)',
        'in ("header", "checks")',
        f"{CHECKS} -k always_verified",
    ),
    Mutant(
        "artifacts: overlapping members are accepted",
        "lshdup/store/npz.py",
        "sum(info.file_size for info in infos) > size",
        "sum(info.file_size for info in infos) > 2 * size",
        f"{CHECKS} -k overlap",
    ),
    Mutant(
        "artifacts: another Unicode version is accepted",
        "lshdup/store/store.py",
        "if made != present:",
        "if made is present and not made:",
        f"{CHECKS} -k unicode",
    ),
    Mutant(
        "store: what a live run may write is removed without the lock",
        "lshdup/store/store.py",
        "if held:  # Without",
        "if held or True:  # Without",
        f"{CHECKS} -k under_a_lock",
    ),
    Mutant(
        "collection: the identity is without the offsets of names",
        "lshdup/collection/collection.py",
        "in (names.offsets, names.blob, *columns):",
        "in (names.blob, *columns):",
        f"{CHECKS} -k identity",
    ),
    Mutant(
        "artifacts: another reader of office documents is no difference",
        "lshdup/store/collection_io.py",
        'arrays["reader"] = np.frombuffer(notes.reader.encode(), np.uint8)',
        'arrays["reader"] = np.frombuffer(b"any", np.uint8)',
        f"{CHECKS} -k another_reader",
    ),
    Mutant(
        "reuse: the newer of two sources is never taken",
        "lshdup/workspace/from_documents.py",
        "return shingles if count_known(shingles, documents) >= count_known(old, documents) else old",
        "return old",
        f"{CHECKS} -k knows_more",
    ),
    Mutant(
        "files: the folder is not synced",
        "lshdup/utils/atomic.py",
        "                os.fsync(folder)\n",
        "                pass\n",
        f"{CHECKS} -k synced",
    ),
    Mutant(
        "signatures: no room is taken without posix_fallocate",
        "lshdup/utils/scratch.py",
        'if hasattr(os, "posix_fallocate"):',
        "if os.posix_fallocate:",
        f"{CHECKS} -k cannot_allocate",
    ),
    Mutant(
        "same: the length is not part of a fingerprint",
        "lshdup/kernels/sequences.py",
        "mix64(a ^ np.uint64(length))",
        "mix64(a ^ np.uint64(0))",
        f"{SAME} -k slow_program",
    ),
    Mutant(
        "same: words enter their lanes as they are",
        "lshdup/kernels/sequences.py",
        "lane ^= folded_product(word ^ seed, factor)",
        "lane ^= word",
        f"{SAME} -k 'changed_back or changed_in_two'",
    ),
    Mutant(
        "same: the last bytes of a document do not count",
        "lshdup/kernels/sequences.py",
        "while left > 0:",
        "while left >= 8:",
        f"{SAME} -k slow_program",
    ),
    Mutant(
        "same: equal bytes are the same, however they are read",
        "lshdup/matching/sameness.py",
        "same_text * (1 + same_bytes.astype(np.int64))",
        "same_text + 2 * same_bytes.astype(np.int64) * ~same_text",
        f"{SAME} -k keys_are_equal",
    ),
    Mutant(
        "same: documents without tokens are the same as each other",
        "lshdup/matching/sameness.py",
        "(texts == self.text_prints[right]) & (texts != 0)",
        "texts == self.text_prints[right]",
        f"{SAME} -k 'laws or keys_are_equal'",
    ),
    Mutant(
        "same: --same bytes groups equal texts",
        "lshdup/matching/sameness.py",
        'if same == "bytes":',
        'if same == "byte":',
        f"{SAME} -k keys_are_equal",
    ),
]
