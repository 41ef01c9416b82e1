"""The decorator of kernels, the cache of their machine code, and the calls into it.

A kernel is a Python function on arrays and numbers. Its first call on a machine compiles it with
numba (compiling.py) and stores the object code on disk. Later processes load that code and never
import numba, which takes half a second: every command would wait for it, `query` above all.
numba's own cache cannot do that, because reading it needs numba. The price is a dependence on
numba's calling convention, which is not documented: pyproject.toml therefore excludes versions
that have not been tested. Kernels run without the GIL.
"""

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

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

_lock = threading.RLock()
_before_compiling: list[Callable[[], None]] = []


class Kernel:
    """A function that runs as machine code.

    Takes C-contiguous arrays of one or two dimensions, int, float, bool, `numpy.uint64`, and named
    tuples of these. Returns an int or nothing. Allocates nothing and raises nothing.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._loaded: dict[tuple[Any, ...], Callable[..., int]] = {}

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
                words += (
                    None,
                    None,
                    arg.size,
                    arg.itemsize,
                    arg.__array_interface__["data"][0],
                    *arg.shape,
                    *arg.strides,
                )
            else:
                types.append(type(arg))
                words.append(arg if isinstance(arg, bool | float) else int(arg))
        key = tuple(types)
        call = self._loaded.get(key)
        if call is None:
            with _lock:
                call = self._loaded.get(key) or _load(self, [*map(_kind, args)], map(_kind, parts))
                self._loaded[key] = call
        result, exception = ctypes.c_int64(0), ctypes.c_void_p()
        if call(ctypes.byref(result), ctypes.byref(exception), *words):
            message = f"kernel {self.__name__} failed"
            raise RuntimeError(message)
        return result.value


def kernel(function: F) -> F:
    """Compile the function for the argument types of each call."""
    return cast("F", Kernel(function))


def on_first_compilation(callback: Callable[[], None]) -> None:
    """Call back once if this process has to compile a kernel, because the cache lacks it."""
    _before_compiling[:] = [callback]


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


def _load(wanted: Kernel, kinds: list[str], parts: Iterable[str]) -> Callable[..., int]:
    """Load machine code from the cache on disk, or compile it and store it there.

    kinds : types of the arguments. parts : the same with the elements of tuples in their place.
    """
    llvm, engine, machine = _engine()
    module = wanted.function.__module__.removeprefix("lshdup.")
    version = {"sources": _sources(), "machine": machine, "kinds": kinds}
    digest = hashlib.blake2b(json.dumps([machine, kinds]).encode(), digest_size=6).hexdigest()
    name = f"{module}.{wanted.__name__}-{digest}.kernel"
    symbol_and_code = _read(name, version)
    if symbol_and_code is None:
        for callback in _before_compiling:
            callback()
        _before_compiling.clear()
        from lshdup.kernels.compiling import compile_kernel

        symbol_and_code = compile_kernel(wanted.function, kinds)
        _write(name, version, *symbol_and_code)
    symbol, code = symbol_and_code
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind in parts:
        scalar = _SCALARS.get(kind)
        types += [scalar] if scalar is not None else [*_ARRAY, *_EXTENT * int(kind[-2])]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(engine.get_function_address(symbol))


@functools.cache
def _engine() -> tuple[Any, Any, str]:
    """Return LLVM, the engine that links object code into this process, and its machine type."""
    import llvmlite
    import llvmlite.binding as llvm

    for start in (llvm.initialize_native_target, llvm.initialize_native_asmprinter):
        # numba has done so already, or this version of LLVM does it by itself.
        with contextlib.suppress(RuntimeError):
            start()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    features = llvm.get_host_cpu_features().flatten()
    machine = (
        f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {features} "
        f"llvmlite {llvmlite.__version__}"
    )
    return llvm, llvm.create_mcjit_compiler(llvm.parse_assembly(""), target), machine


@functools.cache
def _sources() -> str:
    """Return a digest of all files of kernels.

    A change of any file recompiles all kernels, because they call each other's helpers.
    """
    digest = hashlib.blake2b(digest_size=16)
    # A package that is shipped as a zip file (Spark's --py-files) has no folder.
    archive = getattr(globals().get("__loader__"), "archive", None)
    folder = Path(__file__).parent
    for path in sorted(folder.glob("*.py")) if archive is None else [Path(archive)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


# --- the cache: one small file a kernel, beside the byte code or in the user's cache folder ---


def _folders() -> Iterator[Path]:
    yield Path(__file__).parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 (a missing home stays "~")
    if os.path.isabs(home):  # noqa: PTH117
        yield Path(home) / "lshdup"


def _read(name: str, version: dict[str, Any]) -> tuple[str, bytes] | None:
    for folder in _folders():
        try:
            head, _, code = (folder / name).read_bytes().partition(b"\n")
            stored = json.loads(head)
        except (OSError, ValueError):
            continue
        if stored == _header(version, stored.get("symbol", ""), code):
            return stored["symbol"], code
    return None


def _write(name: str, version: dict[str, Any], symbol: str, code: bytes) -> None:
    """Store machine code in the first folder that can be written; if none can, do nothing."""
    head = json.dumps(_header(version, symbol, code)).encode()
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(head + b"\n" + code)
            Path(file.name).chmod(0o644)  # Other users of this installation load the code too.
            Path(file.name).replace(folder / name)
            return


def _header(version: dict[str, Any], symbol: str, code: bytes) -> dict[str, Any]:
    check = hashlib.blake2b(code, digest_size=16).hexdigest()
    return {**version, "symbol": symbol, "check": check}
