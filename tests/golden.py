"""Files of what was printed and looked at.

LSHDUP_UPDATE_GOLDEN=1 writes them anew: look at what changed before you keep it.
"""

import os

from tests.conftest import ROOT

GOLDEN = ROOT / "tests/golden"


def check(name, printed):
    """Compare bytes with the golden file of that name."""
    path = GOLDEN / name
    if os.environ.get("LSHDUP_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(printed)
    assert path.is_file(), f"{name} is missing: LSHDUP_UPDATE_GOLDEN=1 makes it"
    assert printed == path.read_bytes(), name
