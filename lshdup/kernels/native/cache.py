"""Machine code on disk: one small file a kernel, beside the byte code of the package or, where that
cannot be written, in the user's cache folder.

Machine code is loaded only from files that nobody but the user or root can write.
"""

import contextlib
import functools
import importlib.util
import os
import sys
import time
from _blake2 import blake2b  # `hashlib` loads OpenSSL beside it, for 2 ms.
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lshdup.kernels.native import pack

_SUFFIX = ".kernel"
_UNFINISHED = ".kernel-part"
#: Seconds after which a file is deleted: one of a killed writer, and one that is outdated or may
#: be. A kernel that is still needed is compiled again, in a fraction of a second.
_LONGEST = {_UNFINISHED: 3600, _SUFFIX: 180 * 24 * 3600}

#: The names in /proc/cpuinfo that tell one processor from another: of x86, and of ARM.
_MODEL = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "cpu implementer", "cpu architecture", "cpu variant", "cpu part", "cpu revision", "features",
)  # fmt: skip


@functools.cache
def version_of(compiler: str) -> str:
    """Return what machine code depends on: sources, compilers, processor.

    compiler : the versions that made its IR.
    """
    import llvmlite  # and not its binding, which loads LLVM

    return (
        f"{pack.digest_of_sources()} {compiler} {sys.platform} {_describe_processor()} "
        f"llvmlite {llvmlite.__version__}"
    )


@functools.cache
def _describe_processor() -> str:
    """Return what machine code depends on: by the system, or by LLVM where it is silent."""
    said = processor()
    if fields := [said[name] for name in _MODEL if name in said]:
        return f"{os.uname().machine} {fields}"
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


def processor() -> dict[str, str]:
    """Return what the system says of the first processor, by names in lower case; {} if nothing."""
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as file:
            first, _, _ = file.read(1 << 13).partition("\n\n")
    except OSError:
        return {}
    lines = (line.partition(":") for line in first.splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in lines}


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
    import tempfile  # Imported here, as all that only the first run needs, to keep others fast.

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
    key = blake2b(f"{symbol} {version}".encode(), digest_size=16)
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
    return blake2b(code, key=key, digest_size=len(key)).digest()


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
