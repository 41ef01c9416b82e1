"""Images of kernels: machine code that runs wherever it is in memory, and is loaded without LLVM.

An image is what a linker would make of an object file: its code and constants in one piece, in
which all references are resolved, and behind them a jump to each function of the C library that is
called. The address of such a function is filled in when the image is loaded. The first line of an
image says where the kernel begins, and where these addresses go. Made for x86-64 on Linux; other
systems keep object files, which LLVM links and loads (machine_code.py), in ten times the time.

Format of object files: "System V Application Binary Interface, AMD64 supplement", chapter 4.
"""

import ctypes
import functools
import mmap
import struct

_MAGIC = b"image "

#: Types of sections, the flag of those that are loaded, and the kinds of references: to a place,
#: and to a function, both relative to the reference.
_SYMBOLS, _REFERENCES, _UNWINDING = 2, 4, 0x70000001
_LOADED = 2
_RELATIVE = {2, 4}

#: jmp to the address in the 8 bytes behind it, which are aligned.
_JUMP = bytes.fromhex("ff25 0200 0000 6690") + bytes(8)

#: Memory that is mapped as long as the process runs.
_mapped: list[mmap.mmap] = []


def fit(triple: str) -> bool:
    """Return whether images are made for a target such as "x86_64-unknown-linux-gnu"."""
    return triple.startswith("x86_64") and "linux" in triple


def link(code: bytes, symbol: str) -> bytes | None:
    """Return the image of an object file with a kernel; None if it has what no image can have.

    symbol : where the kernel begins.
    """
    if code[:6] != b"\x7fELF\2\1":
        return None
    (start,), (count,) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<H", code, 60)
    headers = struct.iter_unpack("<IIQQQQIIQQ", code[start : start + 64 * count])
    sections = [(*each[1:3], *each[4:9]) for each in headers]
    image, starts, calls = bytearray(), dict[int, int](), dict[str, int]()
    for number, (kind, flags, offset, size, _, _, align) in enumerate(sections):
        if flags & _LOADED and kind != _UNWINDING:
            image += bytes(-len(image) % align)
            starts[number] = len(image)
            image += code[offset : offset + size]
    _, _, offset, size, names, *_ = next(each for each in sections if each[0] == _SYMBOLS)
    symbols, table = [], code[offset : offset + size]
    for name, _, _, section, value, _ in struct.iter_unpack("<IBBHQQ", table):
        start = sections[names][2] + name
        text = code[start : code.index(0, start)].decode()
        if not section and text and text not in calls:
            image += bytes(-len(image) % len(_JUMP))
            calls[text] = len(image)
            image += _JUMP
        symbols.append((text, calls[text] if text in calls else starts.get(section, 0) + value))
    for kind, _, offset, size, _, section, _ in sections:
        if kind != _REFERENCES or section not in starts:
            continue
        for at, to, addend in struct.iter_unpack("<QQq", code[offset : offset + size]):
            if to & 0xFFFFFFFF not in _RELATIVE:
                return None
            place = starts[section] + at
            distance = symbols[to >> 32][1] + addend - place
            struct.pack_into("<i", image, place, distance)
    slots = (f"{name}:{at + 8}" for name, at in calls.items())
    return _MAGIC + " ".join([str(dict(symbols)[symbol]), *slots]).encode() + b"\n" + image


def load(code: bytes) -> int | None:
    """Load an image; return the address at which the kernel begins, or None if it is no image."""
    if not code.startswith(_MAGIC):
        return None
    line, _, image = code.partition(b"\n")
    begin, *slots = line.removeprefix(_MAGIC).decode().split()
    memory = mmap.mmap(-1, len(image), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = image
    for slot in slots:
        name, _, at = slot.partition(":")
        address = ctypes.cast(getattr(_c_library(), name), ctypes.c_void_p).value
        struct.pack_into("<Q", memory, int(at), address)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    executable = mmap.PROT_READ | mmap.PROT_EXEC
    if _c_library().mprotect(ctypes.c_void_p(start), ctypes.c_size_t(len(image)), executable):
        raise OSError(ctypes.get_errno(), "machine code cannot be made executable")
    _mapped.append(memory)
    return start + int(begin)


@functools.cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
