"""Frozen dataclasses whose definition is cheap.

`dataclasses.dataclass` compiles six methods for each class. The fifty classes that a short command
needs would take a fifth of its time. Here a class has only `__init__` compiled; the other methods
are shared, and look the fields up. They behave as those of the standard library, but that an
attribute which is no field can be set, once.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

_Class = TypeVar("_Class", bound=type)


def _repr(self: Any) -> str:
    shown = [field.name for field in dataclasses.fields(self) if field.repr]
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _compared(instance: Any) -> tuple[Any, ...]:
    fields = dataclasses.fields(instance)
    return tuple(getattr(instance, field.name) for field in fields if field.compare)


def _eq(self: object, other: object) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_compared(self))


def _setattr(self: object, name: str, value: object) -> None:
    """Set an attribute for the first time, as `__init__` does."""
    if name in vars(self):
        message = f"cannot assign to field {name!r}"
        raise dataclasses.FrozenInstanceError(message)
    object.__setattr__(self, name, value)


def _delattr(self: object, name: str) -> None:
    message = f"cannot delete field {name!r}"
    raise dataclasses.FrozenInstanceError(message)


_METHODS: dict[str, Callable[..., Any]] = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
}

if TYPE_CHECKING:  # so that mypy knows the classes as dataclasses
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool) -> Callable[[_Class], _Class]:
        """Return the decorator that makes a class a frozen dataclass, without slots."""
        assert frozen

        def decorate(defined: _Class) -> _Class:
            made = dataclasses.dataclass(repr=False, eq=False)(defined)
            for name, method in _METHODS.items():
                if getattr(made, name) is getattr(object, name):
                    setattr(made, name, method)
            return made

        return decorate
