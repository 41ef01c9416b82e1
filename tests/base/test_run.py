"""Work on threads of its own."""

import contextlib
import time

import pytest

from lshdup.base.run import beside


@pytest.mark.parametrize("jobs", [1, 2])
def test_works_beside_a_block_are_over_at_its_end_and_an_error_is_raised(jobs):
    done = []

    def work():
        time.sleep(0.05)
        done.append(1)

    with beside(jobs, work) as follow:
        assert len(done) == (jobs == 1)
        follow(lambda: done.append(2))
        follow(work)
    assert done == [1, 2, 1]
    with contextlib.suppress(KeyError), beside(jobs, work):
        raise KeyError
    assert done == [1, 2, 1, 1]
    with pytest.raises(ZeroDivisionError), beside(jobs, lambda: 1 // 0) as follow:
        follow(work)
    with pytest.raises(ZeroDivisionError), beside(jobs, None) as follow:  # noqa: PT012
        follow(lambda: 1 // 0)
        follow(work)
    with pytest.raises(ZeroDivisionError), beside(jobs, lambda: None) as follow:  # noqa: PT012
        follow(lambda: 1 // 0)
        follow(work)
    assert done == [1, 2, 1, 1]
