"""Faults in exit codes, and in what is said on stderr."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "--check: what was found outweighs an input that could not be read",
        "lshdup/cli/console.py",
        "self._check and found and not self._errors",
        "self._check and found",
        "tests/cli/test_gates.py -k 'outweighs or exit_code'",
    ),
    Mutant(
        "--check passes when nothing was compared",
        "lshdup/cli/console.py",
        '        if self._check:\n            self.error(LshdupError(f"nothing was checked',
        '        if not why:\n            self.error(LshdupError(f"nothing was checked',
        "tests/cli/test_gates.py -k 'check_answers'",
    ),
    Mutant(
        "pairs --check ends with 0",
        "lshdup/cli/commands/pairs.py",
        "exit_code_of(len(pairs))",
        "exit_code_of(0)",
        "tests/cli/test_gates.py -k 'check_answers and pairs'",
    ),
    Mutant(
        "pairs --against --check ends with 0",
        "lshdup/cli/commands/pairs_against.py",
        "exit_code_of(len(pairs))",
        "exit_code_of(0)",
        "tests/cli/test_gates.py -k check_against",
    ),
    Mutant(
        "pairs --check: a document against itself is a comparison",
        "lshdup/cli/commands/pairs_against.py",
        "elif both.sides.is_one_document():",
        "elif not both.sides:",
        "tests/cli/test_gates.py -k check_against",
    ),
    Mutant(
        "clusters --check ends with 0",
        "lshdup/cli/commands/clusters.py",
        "exit_code_of(result.clusters.count)",
        "exit_code_of(0)",
        "tests/cli/test_gates.py -k 'check_answers and clusters'",
    ),
    Mutant(
        "query --check passes in a store without another document",
        "lshdup/cli/commands/query.py",
        "if console.is_check and not _holds_another(collection, each.index):",
        "if console.is_check and not collection:",
        "tests/cli/test_gates.py -k nothing_to_compare_with",
    ),
    Mutant(
        "too little memory ends with 0",
        "lshdup/cli/main.py",
        "        code = TROUBLE\n",
        "        code = OK if isinstance(error, MemoryError) else TROUBLE\n",
        "tests/cli/test_gates.py -k memory",
    ),
    Mutant(
        "the summary does not count skipped files",
        "lshdup/cli/messages.py",
        "    say_skipped(console, console.skipped_counts, side)\n",
        "",
        "tests/cli/test_gates.py -k summary",
    ),
    Mutant(
        "-v names what patterns skip",
        "lshdup/cli/console.py",
        "if self._verbose > what.reason.is_of_pattern:",
        "if self._verbose:",
        "tests/cli/test_gates.py -k patterns",
    ),
    Mutant(
        "a list with NUL is read as lines",
        "lshdup/cli/session.py",
        'if separator == b"\\n" and b"\\0" in data:',
        'if separator == b"\\0" and b"\\n" in data[:0]:',
        "tests/cli/test_gates.py -k list_with_nul",
    ),
    Mutant(
        "a suggested command repeats the hash key",
        "lshdup/cli/help.py",
        'words[words.index("--hash-key") + 1] = "KEY"',
        "pass",
        "tests/cli/test_gates.py -k first_run",
    ),
]
