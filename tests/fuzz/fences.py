"""Arrays that end where memory ends: a kernel that reads or writes one element too far is killed by
the processor. The scratch arrays of a fuzzed `Shingler` are put before a page that may not be
touched, and behind bytes of which it is known what they must be.
"""

import ctypes
import mmap

import numpy as np

from lshdup.base.memory import Buffer
from lshdup.shingling.shingler import ScratchHolder, scratch_arrays
from lshdup.text.text_batch import TextBatch

_PAGE = mmap.PAGESIZE
_CANARY = 0xA5
_libc = ctypes.CDLL(None, use_errno=True)


class Fence:
    """Memory for one array of a type and size, as tight as it can be."""

    def __init__(self, size, dtype):
        dtype = np.dtype(dtype)
        bytes_ = size * dtype.itemsize
        pages = -(-(bytes_ + 64) // _PAGE)
        self._memory = mmap.mmap(-1, (pages + 1) * _PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        if _libc.mprotect(ctypes.c_void_p(address + pages * _PAGE), _PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
        self._before = np.frombuffer(self._memory, np.uint8, pages * _PAGE - bytes_)
        self._before[:] = _CANARY
        self.array = np.frombuffer(self._memory, dtype, size, pages * _PAGE - bytes_)
        self.array.view(np.uint8)[:] = _CANARY  # what is used before it is written shows

    def is_whole(self):
        return bool((self._before == _CANARY).all())


class FencedScratch(ScratchHolder):
    """Scratch arrays of exactly the sizes that `Shingler` gives them."""

    def __init__(self, room):
        arrays = scratch_arrays(room)
        self.fences = [Fence(len(array), array.dtype) for array in arrays]
        self._fenced = arrays._make(fence.array for fence in self.fences)

    def take(self, longest):
        return self._fenced


def fenced_batch(batch):
    """Copy the texts in front of a fence, with the padding that kernels may read."""
    fence = Fence(len(batch.text), np.uint8)
    fence.array[:] = batch.text
    return TextBatch(batch.indices, batch.names, fence.array, batch.starts, batch.lengths), fence


def run_fenced(shingler, batch, flags):
    """Call `Shingler._run` between fences; return sets, outcomes, and whether the fences are whole."""
    batch, text_fence = fenced_batch(batch)
    values = Fence(int(batch.lengths.sum()) + 1, np.uint64)
    shingler._scratch = FencedScratch(int(batch.lengths.max(initial=0)))
    shingler._values._held = values.array
    made, outcomes = shingler._run(batch, flags, 0)
    whole = all(fence.is_whole() for fence in (text_fence, values, *shingler._scratch.fences))
    sets = made.sets.copy().sort()
    shingler._scratch, shingler._values = ScratchHolder(), Buffer(np.uint64)
    return sets, outcomes, whole
