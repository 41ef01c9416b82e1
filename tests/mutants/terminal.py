"""Faults of what a terminal gets."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "colours: a terminal that has none gets them",
        "lshdup/cli/console.py",
        ' and os.environ.get("TERM") != "dumb"',
        "",
        "tests/cli/test_messages.py::test_when_there_are_colours",
    ),
    Mutant(
        "colours: NO_COLOR counts even if it is empty",
        "lshdup/cli/console.py",
        'not os.environ.get("NO_COLOR")',
        'os.environ.get("NO_COLOR") is None',
        "tests/cli/test_messages.py::test_when_there_are_colours",
    ),
]
