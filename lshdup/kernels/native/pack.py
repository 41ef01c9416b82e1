"""The pack: the LLVM IR of all kernels, which travels with their sources.

Numba yields the same IR on every machine, and takes many times longer for it than LLVM for machine
code. The command of lowering.py writes the pack. A pack of other sources is ignored: kernels are
then compiled by numba, which has to be installed.
"""

import functools
import json
import pkgutil
import zlib
from _blake2 import blake2b  # `hashlib` loads OpenSSL beside it, for 2 ms.
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent

PATH = _FOLDER / "kernels.ir"


@dataclass(frozen=True)
class Pack:
    """The IR of kernels.

    sources : digest of the sources that it was made from. compiler : versions that made it.
    kernels : IR of each kernel, as text without a target, by its symbol.
    """

    sources: str
    compiler: str
    kernels: dict[str, str]

    def to_bytes(self) -> bytes:
        """Return the content of the file: a line that is read at every start, and the packed IR."""
        head = json.dumps({"sources": self.sources, "compiler": self.compiler})
        body = json.dumps(self.kernels, sort_keys=True).encode()
        return head.encode() + b"\n" + zlib.compress(body, 9)


def read_pack() -> Pack | None:
    """Read the pack, or return None if there is none, or it is damaged."""
    try:
        head, _, body = (_file() or b"").partition(b"\n")
        return Pack(**json.loads(head), kernels=json.loads(zlib.decompress(body)))
    except (ValueError, zlib.error):
        return None


@functools.cache
def pack_compiler() -> str | None:
    """Return the versions that made the pack, or None if it is not that of the sources."""
    try:
        head = json.loads((_file() or b"{}").partition(b"\n")[0])
    except ValueError:
        return None
    return head["compiler"] if head.get("sources") == digest_of_sources() else None


@functools.cache
def packed_kernels() -> dict[str, str]:
    """Return the IR of kernels by their symbols; none if the pack is not that of the sources."""
    pack = read_pack() if pack_compiler() else None
    return pack.kernels if pack else {}


@functools.cache
def digest_of_sources() -> str:
    """Return a digest of all modules that the IR and the machine code of kernels depend on.

    A change of any module outdates all kernels, because they call each other's helpers.
    """
    digest = blake2b(digest_size=16)
    modules = (_FOLDER.parent / f"{name}.py" for name in kernel_modules())
    others = (_FOLDER / f"{name}.py" for name in ("lowering", "machine_code", "images"))
    for path in (*modules, *others):
        source = _get_data(path)
        digest.update(f"{path.name} {len(source)}\n".encode() + source)
    return digest.hexdigest()


def kernel_modules() -> list[str]:
    """Return the names of the modules that may hold kernels, in the package of kernels."""
    modules = pkgutil.iter_modules([str(_FOLDER.parent)])
    return sorted(module.name for module in modules if not module.ispkg)


@functools.cache
def _file() -> bytes | None:
    try:
        return _get_data(PATH)
    except OSError:
        return None


def _get_data(path: Path) -> bytes:
    """Read a file of the package, which may be a zip file (Spark's --py-files)."""
    loader: Any = globals()["__loader__"]
    data: bytes = loader.get_data(str(path))
    return data
