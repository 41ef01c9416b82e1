"""Frozen dataclasses of our own behave as those of the standard library."""

import copy
import dataclasses
import pickle

import pytest

from lshdup.base import frozen


def _define(dataclass):
    @dataclass(frozen=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list = dataclasses.field(default_factory=list, compare=False)
        secret: str = dataclasses.field(default="s", repr=False, compare=False)
        area: int = dataclasses.field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "area", self.x * self.y)

    return Point


#: At the top, so that it can be pickled.
Point = _define(frozen.dataclass)
Point.__qualname__ = "Point"


@pytest.fixture(params=[frozen.dataclass, dataclasses.dataclass], ids=["own", "standard"])
def point(request):
    return _define(request.param)


def test_values_and_comparison(point):
    one, same, other = point(1), point(x=1, secret="t", tags=[3]), point(1, 3)
    assert one == same != other
    assert hash(one) == hash(same)
    assert len({one, same, other}) == 2
    assert one != (1, 2)
    assert repr(one).endswith("Point(x=1, y=2, tags=[], area=2)")
    assert dataclasses.asdict(one) == {"x": 1, "y": 2, "tags": [], "secret": "s", "area": 2}
    assert dataclasses.replace(one, y=5).area == 5


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1, 2, [], "s", 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((1,), {"area": 2})],
)
def test_what_are_no_arguments(point, args, named):
    with pytest.raises(TypeError):
        point(*args, **named)


def test_nothing_is_assigned_or_deleted(point):
    one = point(1)
    for change in (lambda: setattr(one, "x", 2), lambda: delattr(one, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="field 'x'"):
            change()
    assert one.x == 1


def test_copies():
    one = Point(4, tags=[1])
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one) == one


def test_a_method_of_the_class_stays():
    @frozen.dataclass(frozen=True)
    class Named:
        """A class that says how it is printed."""

        name: str

        def __repr__(self):
            return self.name

    assert repr(Named("a")) == "a"
