"""What several tests of machine code use."""

import pytest

from lshdup.kernels.clusters import find_roots
from lshdup.kernels.sketch import agreeing_rows
from tests.conftest import require


@pytest.fixture(scope="session")
def kernels():
    """The IR of two kernels, whatever became of the pack that is there."""
    require("kernels", "numba")
    from lshdup.kernels.native.lowering import lower

    return {
        symbol: lower(each.function, kinds, symbol)
        for each in (agreeing_rows, find_roots)
        for symbol, kinds in each.variants.items()
    }
