"""Faults of lshdup/store."""

from tests.mutants import Mutant

NPZ, FAULTS = "tests/store/test_npz.py", "tests/store/test_faults.py"
LAZY = f"{NPZ} -k 'whichever or same_items'"

MUTANTS = [
    Mutant(
        "checked arrays: a row is not verified",
        "lshdup/store/checksums.py",
        "            self._blocks.verify(self._start + row * width, self._start + (row + 1) * width)\n",
        "",
        LAZY,
    ),
    Mutant(
        "checked arrays: a slice is not verified",
        "lshdup/store/checksums.py",
        "            self._blocks.verify(self._start + begin * width, self._start + end * width)\n",
        "",
        LAZY,
    ),
    Mutant(
        "checked arrays: chosen rows are not verified",
        "lshdup/store/checksums.py",
        "            self._blocks.verify_runs(starts, starts + width)\n",
        "",
        LAZY,
    ),
    Mutant(
        "checked arrays: runs are not verified",
        "lshdup/store/checksums.py",
        "        self._blocks.verify_runs(begin, begin + sizes * width)\n",
        "",
        LAZY,
    ),
    Mutant(
        "checked arrays: a whole array is not verified",
        "lshdup/store/checksums.py",
        "        self._blocks.verify(self._start, self._start + self._array.nbytes)\n",
        "",
        LAZY,
    ),
    Mutant(
        "checked arrays: the last block of a run is not verified",
        "lshdup/store/checksums.py",
        "-(-stops // BLOCK) - firsts, 0)",
        "np.maximum(-(-stops // BLOCK) - firsts - 1, 1), 0)",
        LAZY,
    ),
    Mutant(
        "checked arrays: only the first block is verified",
        "lshdup/store/checksums.py",
        "!= self.checksums[block]:",
        "!= self.checksums[block] and block == 0:",
        LAZY,
    ),
    Mutant(
        "members: offsets may descend",
        "lshdup/store/members.py",
        "(np.diff(offsets) >= 0).all()",
        "True",
        NPZ,
    ),
    Mutant(
        "members: indices of documents that are not there",
        "lshdup/store/members.py",
        "array[0] >= 0 and array[-1] < n and bool",
        "array[0] >= 0 and bool",
        "tests/text/test_kept_guesses.py",
    ),
    Mutant(
        "lock: a second run waits for nothing",
        "lshdup/store/lock.py",
        "        raise ArtifactError(message, hint) from None\n",
        "        return False\n",
        f"{FAULTS}::test_a_second_writer_is_refused_and_readers_are_not",
    ),
    Mutant(
        "journal: parts of another run are taken",
        "lshdup/store/journal.py",
        'if part is None or part.header != full_header("journal", self._header):',
        "if part is None:",
        f"{FAULTS} -k other_parameters",
    ),
    Mutant(
        "journal: its parts are overwritten when a run goes on",
        "lshdup/store/journal.py",
        "                self._last_number = int(paths[-1].stem)\n",
        "",
        f"{FAULTS} -k resumed",
    ),
]
