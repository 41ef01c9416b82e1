"""What a stage keeps while it works, so that it goes on where an interrupted run has stopped."""

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray


class StageCheckpoint(Protocol):
    """What a stage has finished: arrays, in the order of its steps."""

    def load_finished(
        self, columns: Mapping[str, Any], below: int
    ) -> tuple[int, list[dict[str, NDArray[Any]]]]:
        """Return how many steps an interrupted run has finished, and what it made in them.

        columns : names and types of the arrays. below : whole numbers in them are smaller.
        """

    def is_due(self) -> bool:
        """Return whether what was finished since the last call of `add` is worth a part."""

    def add(self, steps: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep what was made up to step `steps`, since the last call."""
