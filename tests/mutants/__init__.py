"""Small faults, each with the tests that must fail on it: `python -m tests.mutants` tries them.

To add one, append an entry to the list of the room, in `tests/mutants/<package>.py` (a new file
needs no registration):

    Mutant(
        "pairs: the threshold is exclusive",     # a name that no other one has
        "lshdup/matching/similarity.py",         # the file that the fault is put into
        "keep = similarity >= threshold",             # text that stands exactly once in the file
        "keep = similarity > threshold",              # the text that takes its place
        "tests/matching/test_similarity.py -k exactly_at",  # tests that must fail: files, nodes, -k
    )

Then run `python -m tests.mutants "exclusive"`. Choose the smallest set of tests that notices the
fault: it runs often. When code moves, move the text; an entry whose text is not found, or whose
tests fail without the fault, is an error that is named.

Faults that nothing needs to notice (the result is the same, only slower; or the code is a second
line of defence) are not listed. If a fault survives, write the test or remove the code.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A fault: in `file`, `new` takes the place of `old`, and `tests` must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str
