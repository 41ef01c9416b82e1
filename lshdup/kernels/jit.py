"""How kernels become machine code, and how they are called: compiled once on a machine, then loaded without the compiler.

A kernel is a Python function on arrays and numbers. Its first call on a machine compiles it by numba (compiling.py) and keeps the object
code on disk; every later process maps that code and calls it, and never imports numba: a few milliseconds instead of half a second. The
GIL is free while a kernel runs. Called by the other files of this folder only.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from lshdup.kernels.helpers import F

#: How numba's calling convention passes an argument: the C types it is spread over. Arrays: owner, parent, elements, bytes of an element,
#: data, then the shape and the strides.
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
    """A function that runs as machine code. Takes C-contiguous arrays of one or two dimensions, int, float, bool and `numpy.uint64`;
    returns an int or nothing; allocates nothing and raises nothing.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._loaded: dict[tuple[Any, ...], Callable[..., int]] = {}

    def __call__(self, *args: Any) -> Any:
        # A call costs as much as some thousand bytes of text: so what numba's dispatcher would look up, a tuple of types does.
        types: list[Any] = []
        words: list[Any] = []
        for arg in args:
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
                call = self._loaded[key] = self._loaded.get(key) or _load(
                    self, tuple(map(_kind, args))
                )
        result, exception = ctypes.c_int64(0), ctypes.c_void_p()
        if call(ctypes.byref(result), ctypes.byref(exception), *words):
            message = f"kernel {self.__name__} failed"
            raise RuntimeError(message)
        return result.value


def kernel(function: F) -> F:
    """A function to be compiled for the argument types it is called with."""
    return cast("F", Kernel(function))


def on_first_compilation(callback: Callable[[], None]) -> None:
    """Call back once if a kernel has to be compiled in this process, because this machine has not done so yet."""
    _before_compiling[:] = [callback]


# --- instructions and helpers that every kernel may use -----------------------------------------------------------------------


# --- from a call to machine code ------------------------------------------------------------------------------------------------


def _kind(arg: Any) -> str:
    """How an argument is passed: ``uint8[1]`` is a one-dimensional array."""
    if isinstance(arg, np.ndarray):
        if not (arg.flags.c_contiguous and arg.dtype.isnative):
            message = f"kernels take contiguous arrays of the machine's byte order, not strides {arg.strides} of {arg.shape} {arg.dtype}"
            raise TypeError(message)
        return f"{arg.dtype.name}[{arg.ndim}]"
    if isinstance(arg, bool | np.bool_):
        return "bool"
    if isinstance(arg, np.uint64):
        return "uint64"
    return "float64" if isinstance(arg, float) else "int64"


def _load(wanted: Kernel, kinds: tuple[str, ...]) -> Callable[..., int]:
    """Machine code from the cache on disk, or compiled now and put there."""
    llvm, engine, machine = _engine()
    place = f"{wanted.function.__module__.removeprefix('lshdup.')}.{wanted.__name__}"
    version = {"sources": _sources(), "machine": machine, "kinds": kinds}
    digest = hashlib.blake2b(json.dumps([machine, kinds]).encode(), digest_size=6).hexdigest()
    name = f"{place}-{digest}.kernel"
    found = _read(name, version)
    if found is None:
        for callback in _before_compiling:
            callback()
        _before_compiling.clear()
        from lshdup.kernels.compiling import compiled

        found = compiled(wanted.function, kinds)
        _write(name, version, *found)
    symbol, code = found
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind in kinds:
        scalar = _SCALARS.get(kind)
        types += [scalar] if scalar is not None else [*_ARRAY, *_EXTENT * int(kind[-2])]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(engine.get_function_address(symbol))


_engines: list[tuple[Any, Any, str]] = []


def _engine() -> tuple[Any, Any, str]:
    """LLVM, the engine that links object code into this process, and what machine its code is for."""
    if not _engines:
        import llvmlite
        import llvmlite.binding as llvm

        for start in (llvm.initialize_native_target, llvm.initialize_native_asmprinter):
            with contextlib.suppress(
                RuntimeError
            ):  # numba has done so already, or LLVM does it by itself
                start()
        target = llvm.Target.from_default_triple().create_target_machine(jit=True)
        features = llvm.get_host_cpu_features().flatten()
        machine = f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {features} llvmlite {llvmlite.__version__}"
        _engines.append(
            (llvm, llvm.create_mcjit_compiler(llvm.parse_assembly(""), target), machine)
        )
    return _engines[0]


def _sources() -> str:
    """What all kernels are compiled from: a change of any file compiles all of them anew, because they call each other's helpers."""
    if not _stamp:
        digest = hashlib.blake2b(digest_size=16)
        archive = getattr(
            globals().get("__loader__"), "archive", None
        )  # a package that was shipped as a zip file has no folder
        for path in (
            sorted(Path(__file__).parent.glob("*.py")) if archive is None else [Path(archive)]
        ):
            digest.update(path.read_bytes())
        _stamp.append(digest.hexdigest())
    return _stamp[0]


_stamp: list[str] = []


# --- the cache: one small file for each kernel, beside the byte code or in the user's cache folder -------------------------------


def _folders() -> Iterator[Path]:
    yield Path(__file__).parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 (an absent home stays "~")
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
    """Where the first folder takes it; nowhere if none does: then every run compiles."""
    head = json.dumps(_header(version, symbol, code)).encode()
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(head + b"\n" + code)
            Path(file.name).chmod(
                0o644
            )  # whoever may run this installation need not compile it again
            Path(file.name).replace(folder / name)
            return


def _header(version: dict[str, Any], symbol: str, code: bytes) -> dict[str, Any]:
    check = hashlib.blake2b(code, digest_size=16).hexdigest()
    return {**version, "kinds": list(version["kinds"]), "symbol": symbol, "check": check}
