"""The decorator of kernels, and the calls into their machine code.

A kernel is a Python function on arrays and numbers. numba turns it into LLVM IR, which travels with
the sources (native/pack.py). LLVM turns the IR into machine code of this processor at the first
call on a machine, and the code is stored on disk (native/machine_code.py); or LLVM did so when a
wheel was built (native/prebuilt.py). numba is imported only if the sources were changed.
Calls rely on its calling convention, which is not documented: pyproject.toml therefore excludes
versions that have not been tested. Kernels run without the GIL.
"""

import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from lshdup.kernels.native import prebuilt

F = TypeVar("F", bound=Callable[..., Any])

#: The C types by which numba's calling convention passes an argument. An array is spread over
#: owner, parent, number of elements, bytes of an element, data, then the shape and the strides.
_SCALARS = {
    "int64": ctypes.c_int64,
    "float64": ctypes.c_double,
    "uint64": ctypes.c_uint64,
    "bool": ctypes.c_uint8,
}
_ARRAY = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_void_p)
_EXTENT = (ctypes.c_ssize_t, ctypes.c_ssize_t)

_KERNELS = "lshdup.kernels."

_lock = threading.RLock()
_notify: list[Callable[[str], None]] = []
_expected: list[tuple[Iterable[str], int]] = []


class Kernel:
    """A function that runs as machine code.

    Takes C-contiguous arrays, int, float, bool, `numpy.uint64`, and named tuples of these, as its
    annotations say: ``NDArray[dtype]`` has one dimension, ``Annotated[NDArray[dtype], 2]`` two. A
    TypeVar stands for each of its constraints. Returns an int or nothing. Allocates nothing and
    raises nothing.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._loaded: dict[tuple[Any, ...], Callable[..., int]] = {}

    @functools.cached_property
    def variants(self) -> dict[str, list[str]]:
        """The kinds of arguments that the kernel takes, by the symbol of its machine code."""
        hints = get_type_hints(self.function, include_extras=True)
        hints.pop("return", None)
        module = self.function.__module__.removeprefix(_KERNELS)
        symbol = f"{module}.{self.__name__}"
        dtypes = {each for hint in hints.values() for each in getattr(hint, "__parameters__", ())}
        if not dtypes:
            return {symbol: [_declared(hint) for hint in hints.values()]}
        return {
            f"{symbol}.{dtype.__name__}": [_declared(hint, dtype) for hint in hints.values()]
            for dtype in dtypes.pop().__constraints__
        }

    def __call__(self, *args: Any) -> Any:
        # A tuple of types replaces numba's dispatcher: a call costs as much as shingling about
        # a thousand bytes of text, and small batches make many calls.
        types: list[Any] = []
        words: list[Any] = []
        parts: list[Any] = []
        for arg in args:
            if isinstance(arg, tuple):
                types.append(type(arg))
                parts += arg
            else:
                parts.append(arg)
        for arg in parts:
            if isinstance(arg, np.ndarray):
                types += (arg.dtype, arg.ndim, arg.flags.c_contiguous)
                data = arg.__array_interface__["data"][0]
                words += (None, None, arg.size, arg.itemsize, data, *arg.shape, *arg.strides)
            else:
                types.append(type(arg))
                words.append(arg if isinstance(arg, bool | float) else int(arg))
        key = tuple(types)
        call = self._loaded.get(key)
        if call is None:
            with _lock:
                call = self._loaded.get(key) or self._load([*map(_kind, args)])
                self._loaded[key] = call
        result, exception = ctypes.c_int64(0), ctypes.c_void_p()
        if call(ctypes.byref(result), ctypes.byref(exception), *words):
            message = f"kernel {self.__name__} failed"
            raise RuntimeError(message)
        return result.value

    def _load(self, kinds: list[str]) -> Callable[..., int]:
        """Return the machine code for the kinds of a call. Raises TypeError if there is none."""
        for symbol, declared in self.variants.items():
            if len(kinds) == len(declared) and all(map(_fits, kinds, declared)):
                return _c_function(_load(self.function, symbol, declared), declared)
        message = f"kernel {self.__name__} takes {[*self.variants.values()]}, not {kinds}"
        raise TypeError(message)


def kernel(function: F) -> F:
    """Compile the function for the argument types of each call."""
    return cast("F", Kernel(function))


def notify_of_waits(notify: Callable[[str], None]) -> None:
    """Set the function that is called, once each, with what a user should know about waits."""
    _notify[:] = [notify]


def expect(symbols: Iterable[str], processes: int) -> None:
    """Name kernels that this program will call, by module and name.

    As soon as one kernel has to be compiled, these are too, in several processes of Python.
    """
    _expected[:] = [(symbols, processes)] if processes > 1 and sys.executable else []


# --- from a call to machine code ---


def _kind(arg: Any) -> str:
    """Return the type of an argument; ``uint8[1]`` is a one-dimensional array."""
    if isinstance(arg, tuple):
        return f"{type(arg).__name__}({' '.join(map(_kind, arg))})"
    if isinstance(arg, np.ndarray):
        if not (arg.flags.c_contiguous and arg.dtype.isnative):
            message = (
                "kernels take contiguous arrays of the machine's byte order, "
                f"not strides {arg.strides} of {arg.shape} {arg.dtype}"
            )
            raise TypeError(message)
        return f"{arg.dtype.name}[{arg.ndim}]"
    if isinstance(arg, bool | np.bool_):
        return "bool"
    if isinstance(arg, np.uint64):
        return "uint64"
    return "float64" if isinstance(arg, float) else "int64"


def _declared(hint: Any, dtype: Any = None) -> str:
    """Return the kind that an annotation means. dtype : in the place of a TypeVar."""
    if hasattr(get_origin(hint), "__value__"):  # NumPy's NDArray, from Python 3.12 on, by version
        hint = get_origin(hint).__value__[get_args(hint)]
    if get_origin(hint) is Annotated:
        array, dimensions = get_args(hint)
        return f"{_declared(array, dtype)[:-3]}[{dimensions}]"
    if get_origin(hint) is np.ndarray:
        (own,) = get_args(get_args(hint)[1])
        return f"{(dtype if isinstance(own, TypeVar) else own).__name__}[1]"
    if hasattr(hint, "_fields"):
        return f"{hint.__name__}({' '.join(map(_declared, get_type_hints(hint).values()))})"
    return {int: "int64", float: "float64", bool: "bool", np.uint64: "uint64"}[hint]


def _fits(kind: str, declared: str) -> bool:
    """Return whether an argument is of the declared kind; an int is a float too."""
    return kind == declared or (kind, declared) == ("int64", "float64")


def _c_function(address: int, kinds: list[str]) -> Callable[..., int]:
    """Return the function at an address that takes arguments of these kinds."""
    types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind in " ".join(kinds).replace("(", " ").replace(")", "").split():
        if kind in _SCALARS:
            types.append(_SCALARS[kind])
        elif kind.endswith("]"):
            types += [*_ARRAY, *_EXTENT * int(kind[-2])]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)


def _load(function: Callable[..., Any], symbol: str, kinds: list[str]) -> int:
    """Return the address of a kernel's machine code: prebuilt, cached, or compiled and stored."""
    is_own = function.__module__.startswith(_KERNELS)  # or of a test
    address = prebuilt.address(symbol) if is_own else None
    if address is not None:
        return address
    from lshdup.kernels.native import cache, images, pack

    version = cache.version_of(pack.pack_compiler() or f"numba {_numba_version()}")
    code = cache.read(symbol, version) if is_own else None
    if code is None:
        code = _compile(function, symbol, kinds, version if is_own else "")
    address = images.load(code)
    if address is not None:
        return address
    from lshdup.kernels.native import machine_code

    return machine_code.load(code, symbol)


def _compile(function: Callable[..., Any], symbol: str, kinds: list[str], version: str) -> bytes:
    """Return machine code of a kernel, which is stored unless the version is ""."""
    # Imported here because LLVM takes long.
    from lshdup.kernels.native import cache, machine_code, pack

    if not version:
        return machine_code.compile_ir(_lower(function, kinds, symbol), symbol)
    if _expected:
        machine_code.store_together(*_expected.pop())
        if (stored := cache.read(symbol, version)) is not None:
            return stored
    ir = pack.packed_kernels().get(symbol) or _lower(function, kinds, symbol)
    code = machine_code.compile_ir(ir, symbol)
    if not cache.write(symbol, version, code):
        _say(
            "compiled kernels are kept only in a folder that nobody else can write, and there "
            "is none, so every run compiles them: set XDG_CACHE_HOME to a folder of your own"
        )
    return code


def _lower(function: Callable[..., Any], kinds: list[str], symbol: str) -> str:
    """Return the IR of a kernel, made by numba."""
    _numba_version()
    _say("compiling kernels whose sources were changed (some seconds)")
    from lshdup.kernels.native.lowering import lower

    return lower(function, kinds, symbol)


@functools.cache
def _numba_version() -> str:
    """Return the version of numba. Raises ModuleNotFoundError if it is not installed."""
    import importlib.metadata

    try:
        return importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        message = (
            "the sources of kernels were changed, or their compiled form (kernels.ir) is missing "
            "or damaged: numba has to compile them"
        )
        raise ModuleNotFoundError(message, name="numba") from None


@functools.cache
def _say(message: str) -> None:
    for notify in _notify:
        notify(message)
