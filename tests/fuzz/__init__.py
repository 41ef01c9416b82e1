"""A fuzzer: `python -m tests.fuzz`. Random and mutated input for everything that reads bytes which
lshdup did not write. Each module holds one target, whose `batch` tries inputs of a seeded generator
and returns a `Tally`. The test suite runs them for seconds, the command as long as it is told to.
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


def mutated(rng, data, pieces, times=(1, 1, 2, 4)):
    """Return what `data` was once: in some places bytes are gone, and pieces, random bytes or bytes
    from elsewhere are there.
    """
    data = bytearray(data)
    for _ in range(rng.choice(times)):
        at, start = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
        elsewhere = data[start : start + rng.randrange(1, 200)]
        piece = rng.choice(pieces) * rng.choice((1, 1, 1, 1, 2, 50))
        new = rng.choice((piece, piece, rng.randbytes(1), rng.randbytes(4), elsewhere, b""))
        data[at : at + rng.choice((0, 0, 1, 1, 3, 40, len(data)))] = new
    return bytes(data)
