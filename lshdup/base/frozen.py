"""Frozen dataclasses whose definition is cheap.

`dataclasses.dataclass` compiles six methods for each class. The eighty classes that a short command
needs would take a fifth of its time. Here all classes share their methods, which look the fields
up. They behave as those of the standard library, but that an attribute which is no field can be
set, once.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

_Class = TypeVar("_Class", bound=type)


def _init(self: Any, *args: Any, **named: Any) -> None:
    """Set the fields from arguments and defaults, then call `__post_init__`, if there is one."""
    names = self.__match_args__
    values = dict(zip(names, args, strict=False)) | named
    is_valid = len(values) == len(args) + len(named)
    for name in names:
        if name not in values:
            field = self.__dataclass_fields__[name]
            has_factory = field.default_factory is not dataclasses.MISSING
            values[name] = field.default_factory() if has_factory else field.default
            is_valid &= values[name] is not dataclasses.MISSING
    if not is_valid or len(values) > len(names):
        message = f"{type(self).__qualname__} takes {', '.join(names)}, not {args} and {named}"
        raise TypeError(message)
    vars(self).update(values)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


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
    "__init__": _init,
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
            made = dataclasses.dataclass(init=False, repr=False, eq=False)(defined)
            for name, method in _METHODS.items():
                if getattr(made, name) is getattr(object, name):
                    setattr(made, name, method)
            return made

        return decorate
