"""LLVM IR -> machine code of a processor: compiled, kept on disk, and loaded into this process.

The cache has one small file a kernel, beside the byte code of the package or, where that cannot be
written, in the user's cache folder. Machine code is loaded only from files that nobody but the user
or root can write.
"""

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import llvmlite
import llvmlite.binding as llvm

from lshdup.kernels.native import pack

#: Processes that compile at the same time. One kernel takes half the time of all that `pairs`
#: needs, so more of them would wait for that one.
_MOST_PROCESSES = 3

_PROGRAM = """import json, sys
sys.path[:], sys.dont_write_bytecode, sys.pycache_prefix = json.loads(sys.argv[1])
from lshdup.kernels.native import machine_code
machine_code.store(sys.argv[2:])"""

_SUFFIX = ".kernel"
_UNFINISHED = ".kernel-part"
#: Seconds after which a file is deleted: one of a killed writer, and one that is outdated or may
#: be. A kernel that is still needed is compiled again, in a fraction of a second.
_LONGEST = {_UNFINISHED: 3600, _SUFFIX: 180 * 24 * 3600}


def target(triple: str, **options: Any) -> Any:
    """Return the target machine of a triple such as "x86_64-unknown-linux-gnu"."""
    _start(triple == llvm.get_process_triple())
    return llvm.Target.from_triple(triple).create_target_machine(opt=3, **options)


@functools.cache
def _start(is_native: bool) -> None:
    """Make targets known to LLVM: that of this process, or all, which takes longer."""
    if is_native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


@functools.cache
def this_machine() -> Any:
    """Return the target machine of this process, with all features of its processor."""
    triple = llvm.get_process_triple()
    return target(
        triple,
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        reloc="static" if triple.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


def object_code(ir: str, machine: Any) -> bytes:
    """Return the object code of a module without a target, optimised for a target machine."""
    module = llvm.parse_assembly(ir)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    optimise(module, machine, for_machine=True)
    code: bytes = machine.emit_object(module)
    return code


def optimise(module: Any, machine: Any, *, for_machine: bool) -> None:
    """Optimise a module in place, with or without what depends on the width of vectors."""
    options = llvm.create_pipeline_tuning_options(3 if for_machine else 2)
    options.loop_vectorization = options.slp_vectorization = for_machine
    options.loop_interleaving = options.loop_unrolling = for_machine
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def load(code: bytes, symbol: str) -> int:
    """Load object code into this process; return the address of a symbol."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    return address


@functools.cache
def _engine() -> Any:
    machine = target(llvm.get_process_triple(), jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def compile_ir(symbol: str, version: str, ir: str) -> tuple[bytes, bool]:
    """Return the machine code of a kernel, and whether it could be stored."""
    code = object_code(ir, this_machine())
    return code, write(symbol, version, code)


def store(symbols: Iterable[str]) -> None:
    """Compile and store packed kernels."""
    version = version_of(pack.pack_compiler() or "")
    for symbol in symbols:
        compile_ir(symbol, version, pack.packed_kernels()[symbol])


def store_together(symbols: Iterable[str], processes: int) -> None:
    """Compile and store the packed kernels that the cache lacks, in several processes.

    Threads would wait for each other: llvmlite lets one at a time into LLVM. A process that fails
    leaves its share to the call that needs it.
    """
    if not can_write():
        return
    kernels, version = pack.packed_kernels(), version_of(pack.pack_compiler() or "")
    missing = [each for each in symbols if each in kernels and read(each, version) is None]
    shares: list[list[str]] = [[] for _ in range(min(processes, _MOST_PROCESSES))]
    for symbol in sorted(missing, key=lambda each: -len(kernels[each])):
        min(shares, key=lambda share: sum(len(kernels[each]) for each in share)).append(symbol)
    # Not the current folder, where a file may be named like a module.
    import_path = [str(Path(__file__).parents[3]), *filter(None, sys.path)]
    settings = json.dumps([import_path, sys.dont_write_bytecode, sys.pycache_prefix])
    started = []
    for share in filter(None, shares[1:]):
        with contextlib.suppress(OSError):  # no more processes are allowed
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, settings, *share],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            started.append(process)
    store(shares[0])
    for process in started:
        process.wait()


# --- the cache on disk ---


@functools.cache
def version_of(compiler: str) -> str:
    """Return what machine code depends on: sources, compilers, processor.

    compiler : the versions that made its IR.
    """
    features = llvm.get_host_cpu_features().flatten()
    return (
        f"{pack.digest_of_sources()} {compiler} {llvm.get_process_triple()} "
        f"{llvm.get_host_cpu_name()} {features} llvmlite {llvmlite.__version__}"
    )


def read(symbol: str, version: str) -> bytes | None:
    """Return the machine code of a kernel, or None if no file can be trusted to have it.

    version : of `version_of`.
    """
    name, key = _name(symbol, version)
    for folder in _folders():
        with contextlib.suppress(OSError), _open_safe(folder, name) as file:
            check, code = file.read(len(key)), file.read()
            if check == _check(key, code):
                return code
    return None


def write(symbol: str, version: str, code: bytes) -> bool:
    """Store machine code in the first folder that can be written; return whether one can."""
    name, key = _name(symbol, version)
    for folder in _writable_folders():
        with contextlib.suppress(OSError):
            _delete_old_files(folder)
            # A new file, which replaces what has the name: a link there is not followed.
            with tempfile.NamedTemporaryFile(
                dir=folder, prefix=name, suffix=_UNFINISHED, delete=False
            ) as file:
                file.write(_check(key, code) + code)
            Path(file.name).chmod(0o644)  # Other users of this installation load the code too.
            Path(file.name).replace(folder / name)
            return True
    return False


def can_write() -> bool:
    """Return whether machine code can be stored, as far as is known before."""
    return any(os.access(folder, os.W_OK) for folder in _writable_folders())


def _writable_folders() -> Iterator[Path]:
    """Yield the folders for new files, which are made, and which others cannot write."""
    for folder in _folders():
        if folder != _beside() or not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                if _is_safe(folder.stat()):
                    yield folder


def _folders() -> Iterator[Path]:
    yield _beside()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 (a missing home stays "~")
    if os.path.isabs(home):  # noqa: PTH117
        yield Path(home) / "lshdup"


@functools.cache
def _beside() -> Path:
    """Return the folder for byte code of modules beside the package.

    Not a folder in the package: what stays there when the package is uninstalled would keep an
    empty package importable.
    """
    package = Path(__file__).parents[2]
    return Path(importlib.util.cache_from_source(f"{package}.py")).parent


def _name(symbol: str, version: str) -> tuple[str, bytes]:
    """Return the name of the file of a kernel, and the key of its check."""
    key = hashlib.blake2b(f"{symbol} {version}".encode(), digest_size=16)
    return f"lshdup.{symbol}-{key.hexdigest()}{_SUFFIX}", key.digest()


def _open_safe(folder: Path, name: str) -> IO[bytes]:
    """Open a file, itself no link, in a folder. Raises OSError also if others can write either."""
    if not hasattr(os, "O_DIRECTORY"):  # `_is_safe` says why.
        return (folder / name).open("rb")
    # Opened first and looked at then: nobody can put another one in its place.
    folder_descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _is_safe(os.fstat(folder_descriptor)):
            raise PermissionError
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        file = os.fdopen(os.open(name, flags, dir_fd=folder_descriptor), "rb")
        if not _is_safe(os.fstat(file.fileno())):
            file.close()
            raise PermissionError
        return file
    finally:
        os.close(folder_descriptor)


def _check(key: bytes, code: bytes) -> bytes:
    return hashlib.blake2b(code, key=key, digest_size=len(key)).digest()


def _is_safe(status: os.stat_result) -> bool:
    """Return whether nobody but this user or root can write a file or folder."""
    if not hasattr(os, "geteuid"):  # Windows keeps others out of a user's folders.
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


@functools.cache
def _delete_old_files(folder: Path) -> None:
    """Delete files of killed writers and outdated machine code."""
    now = time.time()
    for path in folder.glob("lshdup.*.kernel*"):
        with contextlib.suppress(OSError):
            if now - path.lstat().st_mtime > _LONGEST.get(path.suffix, now):
                path.unlink()
