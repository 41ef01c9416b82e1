"""Arrays in which kernels cut a document into tokens and shingles."""

import numpy as np

from lshdup.kernels.helpers import PADDING
from lshdup.params import LONGEST


class ScratchArrays:
    """Arrays for the work on one document of up to `room` bytes at a time.

    Pages of memory that no document touches cost nothing. Bags are sorted where hashes were.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        space = room + 2 * PADDING
        self.folded = np.empty(min(2 * space, LONGEST + 2 * PADDING), np.uint8)
        self.edges = np.empty(4 * space, np.int32)
        self.hashes = np.empty(space, np.uint64)
        self.shingles = np.empty(space, np.uint64)
        self.counts = self.hashes.view(np.int32)
