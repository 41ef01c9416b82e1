"""Work on threads of its own."""

import contextlib
import time

import pytest

from lshdup.base.run import beside


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_work_beside_a_block_is_over_at_its_end_and_its_error_is_raised(jobs):
    done = []

    def work():
        time.sleep(0.05)
        done.append(1)

    with beside(jobs, work) as wait:
        assert len(done) == (jobs == 1)
        wait()
        assert done == [1]
    with beside(jobs, work):
        pass
    with contextlib.suppress(KeyError), beside(jobs, work):
        raise KeyError
    assert done == [1, 1, 1]
    for waits in (True, False):
        with pytest.raises(ZeroDivisionError), beside(jobs, lambda: 1 // 0) as wait:  # noqa: PT012
            if waits:
                wait()
                pytest.fail("it did not wait")
