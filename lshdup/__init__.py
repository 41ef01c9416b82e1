"""lshdup finds near-duplicate documents: shingles, MinHash signatures, banded LSH, verified pairs.

The classes of the Python interface are imported when they are first used, so that ``lshdup --help``
stays light.
"""

from typing import TYPE_CHECKING, Any

from lshdup.version import __version__

__all__ = ["LSH", "MinHash", "NearDuplicates", "__version__"]

if TYPE_CHECKING:
    from lshdup.api import LSH, MinHash, NearDuplicates


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in ("LSH", "MinHash", "NearDuplicates"):
        from lshdup import api

        return getattr(api, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
