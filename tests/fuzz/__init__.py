"""A fuzzer: `python -m tests.fuzz`. Random and mutated input for everything that reads bytes which
lshdup did not write.

texts.py, html.py, ids.py, parquet.py and artifacts.py each hold one target: a function that is given a seeded
generator and a number of inputs, tries them, and returns a `Tally`. The test suite runs them for
seconds (tests/test_fuzz.py), the command for as long as it is told to.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """The number of trials by outcome, and the findings."""

    tried: int = 0
    outcomes: Counter = field(default_factory=Counter)
    findings: list = field(default_factory=list)

    def add(self, other):
        self.tried += other.tried
        self.outcomes += other.outcomes
        self.findings += other.findings

    def found(self, what, *details):
        self.outcomes["FINDING"] += 1
        self.findings.append(": ".join([what, *map(repr, details)]))
