"""Faults in bounds that are exact to the byte, and in lists of names."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "--max-bytes: a record of just so many bytes is skipped",
        "lshdup/documents/readers/jsonlines.py",
        "(lengths > 0) & (lengths <= longest)",
        "(lengths > 0) & (lengths < longest)",
        "tests/documents/test_documents.py -k max_bytes",
    ),
    Mutant(
        "--max-bytes: a file that grew to one byte more is read",
        "lshdup/documents/files.py",
        "if size > most:",
        "if size > most + 1:",
        "tests/documents/test_documents.py -k max_bytes",
    ),
    Mutant(
        "--max-bytes: a packed text of one byte more is read",
        "lshdup/utils/compression.py",
        "if size > most:",
        "if size > most + 1:",
        "tests/documents/test_documents.py -k max_bytes",
    ),
    Mutant(
        "two spellings of one name are two documents",
        "lshdup/documents/finding.py",
        "and os.path.realpath(named) == os.path.realpath(path)",
        "and not path",
        "tests/documents/test_documents.py -k 'hard_links or as_typed'",
    ),
    Mutant(
        "what --include skips is said to be of --exclude",
        "lshdup/documents/patterns.py",
        "return None if included else Reason.NOT_INCLUDED",
        "return None if included else Reason.EXCLUDED",
        "tests/cli/test_gates.py -k patterns",
    ),
    Mutant(
        "id lists: a line that is cut off is read",
        "lshdup/documents/record_files.py",
        "there = starts + lengths <= os.fstat(plain.fileno()).st_size",
        "there = starts < os.fstat(plain.fileno()).st_size",
        "tests/test_bad_input.py -k id_list_that_shrinks",
    ),
]
