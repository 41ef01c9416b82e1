"""`.npz` files with a header: saved whole or not at all, verified, and mapped into memory.

Plain NumPy opens them (``numpy.load(path, allow_pickle=False)``): a zip of uncompressed `.npy`
members, each with the checksum that zip has. `header` is JSON as uint8. Members begin at multiples
of 64 bytes, so that they can be mapped.
"""

import contextlib
import json
import math
import mmap
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import Folder, explained
from lshdup.base.frozen import dataclass
from lshdup.base.ragged import StringTable
from lshdup.base.system import release
from lshdup.base.version import __version__
from lshdup.errors import ArtifactError, ParameterError

#: Increased whenever an older lshdup would misread a newer artifact.
FORMAT_VERSION = 10

Array = NDArray[Any]

_ALIGNMENT = 64
_PADDING_FIELD = 0x4C44  # the zip extra field that pads; readers skip fields they do not know
_ALWAYS_VERIFIED = 4 << 20

#: Bytes that are written at a time.
_CHUNK = 64 << 20

#: An artifact has few members. Thousands in the same bytes would take hours to verify.
_MOST_MEMBERS = 64

#: The header of a `.npy` as `save` and NumPy write it. Any other header is refused unread.
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][uifb]\d)', 'fortran_order': False, "
    rb"'shape': \((?:(\d{1,18}),|(\d{1,18}), (\d{1,18}))\), \} *\n",
    re.DOTALL,
)

#: Errors of `zipfile`, `json` and NumPy for files of another format.
_BROKEN = (
    zipfile.BadZipFile, struct.error, EOFError, NotImplementedError, ValueError, LookupError,
    ArithmeticError, TypeError, MemoryError, RecursionError,
)  # fmt: skip


@dataclass(frozen=True)
class Artifact:
    """A loaded artifact: its header, and its arrays, mapped copy-on-write.

    unverified : names of the large arrays of which `load` has read nothing.
    """

    header: dict[str, Any]
    arrays: dict[str, Array]
    unverified: frozenset[str] = frozenset()


def save(
    path: Path,
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    *,
    before: Callable[[], None] | None = None,
) -> None:
    """Write an artifact beside `path`, sync it, and rename it.

    before : called when it is written, before it replaces the old one.

    Killed at any instant, the old or the new file is there, whole. Raises ArtifactError if the
    folder cannot be written or the disk is full; the old file is then untouched.

    Determinism: equal headers and arrays give equal bytes.
    """
    with explained(f"{path} cannot be written"), Folder(path.parent).replace(path.name) as file:
        write(file, kind, header, arrays)
        if before is not None:
            before()


def write(
    file: IO[bytes], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write an artifact to an open file. Raises OSError as the file system does."""
    header = {"kind": kind, "format": FORMAT_VERSION, "lshdup": __version__, **header}
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    members = {"header": np.frombuffer(text.encode("ascii"), np.uint8), **arrays}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        assert archive.fp is not None
        for name, array in members.items():
            array = np.ascontiguousarray(array)
            info = zipfile.ZipInfo(f"{name}.npy")  # With a fixed date.
            # The local header has 30 bytes, this field 4, and the zip64 field, always written, 20.
            fixed = archive.fp.tell() + 30 + len(info.filename) + 4 + 20
            padding = -fixed % _ALIGNMENT
            info.extra = struct.pack("<HH", _PADDING_FIELD, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(
                    member, np.lib.format.header_data_from_array_1_0(array)
                )
                flat = array.reshape(-1).view(np.uint8).data
                for start in range(0, len(flat), _CHUNK):
                    member.write(flat[start : start + _CHUNK])


def load(
    path: Path,
    kind: str | tuple[str, ...],
    remedy: str,
    *,
    verify: bool = True,
    always: tuple[str, ...] = (),
) -> Artifact | None:
    """Map an artifact. Return None if there is no such file.

    Raises ArtifactError for a file that is damaged, of another kind, or of another format.

    kind : that it must have, or one of several.
    remedy : the command that rebuilds the artifact, for the error.
    verify : whether every byte is verified. Otherwise members above 4 MB are only mapped: a query
        touches a few pages of them.
    always : members that are verified in any case.
    """
    try:
        with Folder(path.parent).open(path.name) as file:
            artifact = _map_members(file, verify=verify, always=always)
        header = artifact.header
        kinds = (kind,) if isinstance(kind, str) else kind
        if header.get("kind") not in kinds:
            message = f"{path} holds {header.get('kind')}, not {kinds[0]}"
            raise ArtifactError(message, remedy)
        if header["format"] != FORMAT_VERSION:
            message = (
                f"{path} has format {header['format']} (lshdup {header.get('lshdup')});"
                f" this lshdup reads {FORMAT_VERSION}"
            )
            raise ArtifactError(message, remedy)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise ArtifactError(message, remedy) from None
    except _BROKEN as error:
        message = f"{path} is damaged or no lshdup artifact ({error})"
        raise ArtifactError(message, remedy) from None
    return artifact


def _map_members(file: IO[bytes], *, verify: bool, always: tuple[str, ...]) -> Artifact:
    """Map the members of a file; raise OSError, or one of _BROKEN."""
    arrays, unverified = {}, set()
    file.read(1)  # `zipfile` says of a file that cannot be read that it is no archive.
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
    names = {info.filename.removesuffix(".npy") for info in infos}
    fits = len(names) == len(infos) <= _MOST_MEMBERS
    refuse_if(not fits, "it has too many members, or two of one name")
    total = sum(info.file_size for info in infos)
    refuse_if(total > os.fstat(file.fileno()).st_size, "its members overlap")
    # Copy-on-write instead of read-only: kernels are compiled for writable arrays, once.
    whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    for info in infos:
        name = info.filename.removesuffix(".npy")
        is_small = info.file_size <= _ALWAYS_VERIFIED or name in ("header", *always)
        if not (verify or is_small):
            unverified.add(name)
        arrays[name] = _map_member(whole, info, verify=name not in unverified)
        if not verify:  # Pages that were verified need not stay in memory.
            release(whole)
    header = json.loads(arrays.pop("header").tobytes())
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        message = "it has no header"
        raise KeyError(message)
    return Artifact(header, arrays, frozenset(unverified))


def _map_member(whole: mmap.mmap, info: zipfile.ZipInfo, *, verify: bool) -> Array:
    packed = info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1
    refuse_if(packed, f"member {info.filename} is compressed or encrypted")
    refuse_if(info.header_offset < 0, f"member {info.filename} lies outside the file")
    signature, name_size, extra_size = struct.unpack_from("<4s22xHH", whole, info.header_offset)
    name = whole[info.header_offset + 30 : info.header_offset + 30 + name_size]
    start = info.header_offset + 30 + name_size + extra_size
    end = start + info.file_size
    fits = signature == b"PK\x03\x04" and name == info.orig_filename.encode()
    fits = fits and end <= len(whole) and info.file_size == info.compress_size
    refuse_if(not fits, f"member {info.filename} lies outside the file, or where another one is")
    view = memoryview(whole)[start:end]
    damaged = verify and zlib.crc32(view) != info.CRC
    refuse_if(damaged, f"member {info.filename} has a wrong checksum")
    head = _NPY_HEADER.match(view[:256])
    if head is None:
        message = f"member {info.filename} is no array of a shape and type that lshdup writes"
        raise ValueError(message)
    dtype = np.dtype(head[1].decode("ascii"))
    shape = tuple(int(size) for size in head.groups()[1:] if size is not None)
    count = math.prod(shape)
    fits = not head.end() % _ALIGNMENT and not start % _ALIGNMENT
    fits = fits and count * dtype.itemsize == len(view) - head.end()
    place = "has a shape that does not fit its size, or lies between the places for members"
    refuse_if(not fits, f"member {info.filename} {place}")
    if not count:
        return np.empty(shape, dtype)
    return np.frombuffer(whole, dtype, count, start + head.end()).reshape(shape)


# --- what the use of an artifact needs of its arrays ---

#: Errors of an artifact whose header or arrays do not fit.
DAMAGED = (KeyError, TypeError, ValueError, IndexError, ParameterError)


@contextlib.contextmanager
def damage_explained(path: Path, remedy: str) -> Iterator[None]:
    """Raise ArtifactError instead of the errors of an artifact that does not fit."""
    try:
        yield
    except DAMAGED as error:
        message = f"{path} is damaged ({error})"
        raise ArtifactError(message, remedy) from None


def refuse_if(wrong: object, message: str) -> None:
    """Raise ValueError if a condition holds."""
    if wrong:
        raise ValueError(message)


@dataclass(frozen=True)
class Member:
    """What the use of an array of an artifact needs of it.

    dtype : its type; kernels take nothing else.
    shape : numbers, or names of sizes. A size that is not known yet is that of this array.
    below : values are indices of so many things: a number, or the name of a size.
    is_ascending : each value is larger than the one before.
    offsets_of : the array of whose runs it holds the offsets, one more than `shape` says.
    """

    dtype: type
    shape: tuple[int | str, ...]
    below: int | str | None = None
    is_ascending: bool = False
    offsets_of: str = ""


#: The members of an artifact by name, or some that are there together.
Declaration = dict[str, Member]


def declare_columns(size: str, **dtypes: type) -> Declaration:
    """Return the declaration of arrays of one size, of any values."""
    return {name: Member(dtype, (size,)) for name, dtype in dtypes.items()}


def declare_sets(size: str) -> Declaration:
    """Return the declaration of so many sets, as of `RaggedSets`."""
    offsets = Member(np.int64, (size,), offsets_of="values")
    return {"values": Member(np.uint64, ("elements",)), "offsets": offsets}


def declare_strings(name: str, size: str) -> Declaration:
    """Return the declaration of a table of so many strings; `table_of` returns the table."""
    blob, offsets = f"{name}_blob", f"{name}_offsets"
    lengths = Member(np.int64, (size,), offsets_of=blob)
    return {blob: Member(np.uint8, (f"bytes of {name}",)), offsets: lengths}


def table_of(arrays: Mapping[str, Array], name: str) -> StringTable:
    """Return a table of strings from the arrays that `declare_strings` declares."""
    return StringTable(arrays[f"{name}_blob"], arrays[f"{name}_offsets"])


def string_arrays(name: str, table: StringTable) -> dict[str, Array]:
    """Return the arrays of a table of strings, as `declare_strings` declares them."""
    return {f"{name}_blob": table.values, f"{name}_offsets": table.offsets}


def check_arrays(
    artifact: Artifact, declaration: Declaration, sizes: dict[str, int]
) -> dict[str, Array]:
    """Return the declared arrays. Raise KeyError or ValueError if one is not as its use needs.

    sizes : what is known of them; the others are added.

    Of an unverified array only offsets are looked at: a query reads few of its pages, and looks at
    the values that it takes.
    """
    arrays = {name: artifact.arrays[name] for name in declaration}
    for name, member in declaration.items():
        array, is_whole = arrays[name], name not in artifact.unverified
        fits = array.dtype == member.dtype and array.ndim == len(member.shape)
        refuse_if(not fits, f"{name} do not fit")
        for size, found in zip(member.shape, array.shape, strict=True):
            found -= member.offsets_of != ""
            known = size if isinstance(size, int) else sizes.setdefault(size, found)
            refuse_if(found != known or found < 0, f"{name} do not fit")
        if member.offsets_of:
            ends = array[0] == 0 and array[-1] == len(arrays[member.offsets_of])
            refuse_if(not (ends and (array[1:] >= array[:-1]).all()), f"{name} do not fit")
        if member.below is not None and is_whole and array.size:
            below = member.below if isinstance(member.below, int) else sizes[member.below]
            inside = int(array.min()) >= 0 and int(array.max()) < below
            refuse_if(not inside, f"{name} has numbers of what is not there")
        if member.is_ascending and is_whole:
            refuse_if(not (array[1:] > array[:-1]).all(), f"{name} are not in order")
    return arrays
