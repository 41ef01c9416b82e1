"""lshdup finds near-duplicate documents: shingles, MinHash signatures, banded LSH, verified pairs.

What it has is imported when it is first used: the command ``lshdup`` handles Ctrl-C only behind
this module, and ``lshdup --help`` stays light.
"""

TYPE_CHECKING = False  # Type checkers know the name; typing takes as long as Python to import.
if TYPE_CHECKING:
    from typing import Any

    from lshdup.api import LSH, Index, MinHash, NearDuplicates, dedupe
    from lshdup.base.version import __version__

__all__ = ["LSH", "Index", "MinHash", "NearDuplicates", "__version__", "dedupe"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        from lshdup.base.version import __version__

        return __version__
    if name in __all__:
        from lshdup import api

        return getattr(api, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
