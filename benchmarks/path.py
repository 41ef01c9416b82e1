"""The path of data through the house: which functions one command enters, in which order.

`python -m benchmarks.path [FOLDER]` runs `lshdup pairs FOLDER` into a new store, once to import all
modules and once, elsewhere, to count: functions of lshdup that are entered, modules they are in,
and, in the order of first entries, changes from room to room and climbs to a higher floor. Rooms
are packages, and modules of the top folder; `tests/test_layers.py` has their floors.
Compiled kernels are entered by one function.
"""

import itertools
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.test_layers import LEVEL

ROOT = Path(__file__).parents[1] / "lshdup"


def trace(arguments: list[str]) -> list[CodeType]:
    """Return the functions of lshdup that a command enters, in the order of their first entry."""
    from lshdup.cli.main import main

    entered: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in entered and code.co_filename.startswith(f"{ROOT}/"):
            entered[code] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        main(arguments)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [code for code in entered if not code.co_name.startswith("<")]


def place_of(code: CodeType) -> tuple[str, str]:
    """Return the module and the room of a function."""
    parts = Path(code.co_filename).relative_to(ROOT).with_suffix("").parts
    return ".".join(parts), parts[0]


def count_changes(rooms: list[str]) -> tuple[int, int]:
    """Return how many steps of a walk change the room, and how many climb to a higher floor.

    >>> count_changes(["cli", "pipeline", "lsh", "lsh", "pipeline"])
    (3, 1)
    """
    steps = [(a, b) for a, b in itertools.pairwise(rooms) if a != b]
    climbs = [step for step in steps if LEVEL.get(step[1], 99) > LEVEL.get(step[0], 99)]
    return len(steps), len(climbs)


def main() -> None:
    """Print the figures, and the functions of each room."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "sample_corpus").resolve()
    verbose = os.environ.get("PATH_VERBOSE")
    for _ in range(2):
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            functions = trace(["pairs", str(folder), "--quiet", "-o", "pairs.tsv"])
            os.chdir("/")
    places = [place_of(code) for code in functions]
    changes, climbs = count_changes([room for _, room in places])
    modules = {module for module, _ in places}
    print(
        f"{len(functions)} functions in {len(modules)} modules, {changes} changes of room,"
        f" {climbs} climbs"
    )
    for room, count in Counter(room for _, room in places).most_common():
        print(f"{count:5} {room}")
    if verbose:
        for code, (module, _) in zip(functions, places, strict=True):
            print(f"{module}.{code.co_qualname}")


if __name__ == "__main__":
    main()
