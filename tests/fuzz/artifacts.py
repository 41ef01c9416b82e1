"""Artifacts: `.npz` files that were damaged, or made by somebody who means ill, loaded and used by
the commands themselves.

What is damaged without care must be refused, count as not there, or have changed nothing: the
answer is then the right one. What is forged with care, checksums and all, is another artifact and
may give another answer; but it must not end in a traceback, in memory that is not the program's, or
never.
"""

import io
import json
import math
import os
import re
import struct
import tempfile
import zlib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np

from lshdup.cli.main import lshdup as program
from lshdup.errors import LshdupError
from lshdup.store import npz
from tests.fuzz import Tally
from tests.fuzz.html import PATIENCE, impatient
from tests.office import unzipped
from tests.running import as_variables

KINDS = ("shingles", "signatures", "bands", "pairs", "clusters", "passages")
TOKENS = ("word", "ids")
INTEGERS = (
    0, 1, -1, 2, 7, 24, 25, 255, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62,
    (1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1, 0x3FF0000000000000,  # the bits of 1.0
)  # fmt: skip
VALUES = (None, True, False, 0, 1, -1, 2.5, 1e308, float("nan"), float("inf"), "", "x", "\x1b[31m\n\r\u2028red", "x" * 100_000, [], [1], {},
          {"a": 1}, [[[]]], "\0", "../../..", "/", "\udcff", "\ud800", "word", "fast", "linear", 1 << 31, 1 << 63, 1 << 64, -(1 << 63), 65536, 10**4000)  # fmt: skip
HEADERS = (
    b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000,
    b"1" * 10_000, b"{}" * 3, b"NaN",
)  # fmt: skip
NPY = (
    *("__import__('os').abort()", "{", "'''", "\0", " " * 9000),
    *(f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}" for kind, order, shape in (
        ("'|O'", False, "(3,)"), ("'<u8'", True, "(2, 3)"), ("'>u8'", False, "(3,)"), ("'<u8'", False, "(-3,)"), ("'|V0'", False, "(9,)"),
        ("'<u8'", False, "(99999999999999,)"), ("'<u8'", False, "(0, 99999999999999999999)"), ("[('a', '<u8')]", False, "(3,)"),
        ("'<u8'", False, "(4294967296, 4294967296)"), ("'<u8'", False, "(5L,)"), ("'<u8'", False, "(True,)"), ("'<u8'", False, "(" * 300),
        ("'<u8'", False, "-" * 9000 + "3"), ("'<u8'", False, "()"), ("'<M8[s]'", False, "(3,)"), ("'<u8,<u8'", False, "(3,)"),
    )),
)  # fmt: skip
FIELDS = (0, 1, 8, 0xFFFF, 0xFFFE, 1 << 15)

PASSAGES = ["passages", "docs", "--least", "5"]

#: A command that uses an artifact of a kind.
USERS = {"clusters": ["clusters"], "passages": PASSAGES}

COMMANDS = {
    "word": (
        ["pairs"], ["query", "d3"], ["pairs"], ["query", "a0.txt"], ["pairs", "--exact"], ["index"], ["signatures", "--perms", "64"],
        ["pairs", "docs"], ["pairs", "--threshold", "0.9"], ["shingle", "--show", "a1.txt"], ["query", "new.txt"],
        ["clusters"], ["clusters", "docs", "--emit", "drop"], ["clusters", "--linkage", "single", "--keep", "shortest"],
        ["pairs", "--collapse-copies", "--max-bucket", "2"], ["index", "docs", "--threshold", "0.7"], ["accuracy", "--found", "--perms", "32"],
        ["report"], ["report", "--keep", "central"], ["show", "d3"], ["show", "d3", "a0.txt"], ["show", "docs", "other"], ["folders"],
        ["folders", "docs", "other"], ["clusters", "--keep", "central"], ["clusters", "--emit", "keep"], ["pairs", "--measure", "containment"], PASSAGES,
        ["pairs", "docs", "--against", "other"],
    ),
    "ids": (["pairs"], ["query", "d3"], ["clusters"], ["pairs", "--exact"], ["pairs", "--tokens", "ids", "ids.txt"], ["signatures", "--perms", "64"], ["query", "new.txt"], ["pairs", "--measure", "containment"]),
}  # fmt: skip


# --- the artifacts that are mutated ---------------------------------------------------------------


def make_folder(folder):
    """Make two stores in `folder`, which becomes the current one; return tokens -> kind -> bytes."""
    os.chdir(folder)
    words = [f"w{i}" for i in range(60)]
    texts = {"docs/d3": words[1:], "new.txt": words, "docs/empty": [], "docs/binary": ["\0" * 9]}
    for i in range(24):
        own = words[: 40 + i % 5] + [f"x{i // 6}"] * (i % 3)
        own = own if i < 18 else [f"y{i * j}" for j in range(30)]
        name = f"{'abcd'[i % 4]}{i}.txt"
        texts[f"docs/{name}"] = texts[f"other/{name}"] = words if i in (3, 4, 5, 20) else own
    for name, text in texts.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(" ".join(text))
    lines = [f"d{i} " + " ".join(str(j * j) for j in range(i // 4, 40)) for i in range(24)]
    Path("ids.txt").write_text("\n".join([*lines, "bad x", ""]))
    files = {}
    for tokens, documents in (("word", "docs"), ("ids", "ids.txt")):
        for command in ("shingle", "pairs"):
            typed = [command, documents, "--tokens", tokens, "--store", tokens]
            outcome = run(typed, patience=300)  # kernels may have to be compiled
            assert outcome.startswith("answer"), outcome
        for command in (["clusters"], *([PASSAGES] * (tokens == "word"))):
            assert run([*command, "--store", tokens], patience=300).startswith("answer")
        saved = {kind: Path(tokens, f"{kind}.npz") for kind in KINDS}
        files[tokens] = {kind: path.read_bytes() for kind, path in saved.items() if path.exists()}
    return files


def archive_of(members, *, padding=True, method=0):
    """Return a zip of (name, bytes) with correct fields, checksums and alignment."""
    out, central = bytearray(), bytearray()
    for name, data in members:
        raw, extra, stored = name.encode(), b"", data
        if padding:
            gap = -(len(out) + 30 + len(raw) + 4) % 64
            extra = struct.pack("<HH", 0x4C44, gap) + bytes(gap)
        if method == 8:
            packer = zlib.compressobj(wbits=-15)
            stored = packer.compress(data) + packer.flush()
        sizes = (zlib.crc32(data), len(stored), len(data), len(raw))
        fields = struct.pack("<HHHHHIIIH", 45, 0, method, 0, 33, *sizes)
        place = struct.pack("<HHHHII", 0, 0, 0, 0, 0, len(out))
        central += b"PK\x01\x02" + struct.pack("<H", 45) + fields + place + raw
        out += b"PK\x03\x04" + fields + struct.pack("<H", len(extra)) + raw + extra + stored
    counts = (len(members), len(members), len(central), len(out))
    return bytes(out + central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, *counts, 0))


def npy(array):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def array_of(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


# --- mutations -----------------------------------------------------------------------------------


def cut(rng, data):
    return data[: rng.randrange(len(data))]


def flipped(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def spliced(rng, data, other):
    at, size = rng.randrange(len(data)), rng.randrange(1, 500)
    start = rng.randrange(len(other))
    piece = rng.choice((other[start : start + size], bytes(size), b""))
    return data[:at] + piece + data[at + rng.choice((0, len(piece), size)) :]


def directory_changed(rng, data):
    """Overwrite a field of the central directory, of a local header, or of the end record."""
    data = bytearray(data)
    records = re.finditer(rb"PK(?:\x01\x02|\x03\x04|\x05\x06|\x06\x06|\x06\x07)", bytes(data))
    places = [record.start() for record in records]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.choice(places) + rng.randrange(0, 46)
        size = rng.choice((1, 2, 4, 8))
        value = rng.choice((*FIELDS, *INTEGERS, len(data), rng.randrange(len(data))))
        value &= (1 << 8 * size) - 1
        if at + size <= len(data):
            data[at : at + size] = value.to_bytes(size, "little")
    return bytes(data)


def zip64_end(rng, data):
    """Insert a zip64 end record with arbitrary numbers before the end record."""
    at, most = data.rindex(b"PK\x05\x06"), (1 << 64) - 1
    some = (*INTEGERS[:2], len(data), at, 1 << 40, (1 << 63) - 1, 1 << 63, most)
    numbers = [rng.choice(some) & most for _ in range(4)]
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, *numbers)
    place = rng.choice((at, 0, (1 << 63) - 1, most))
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, place, 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:at] + record + locator + end


def values_changed(rng, members):
    """Overwrite some elements of an array."""
    name = rng.choice([name for name in members if name != "header.npy"])
    array = array_of(members[name]).copy()
    flat = array.reshape(-1)
    if not len(flat):
        return members | {name: npy(np.ones(3, array.dtype))}
    kind = rng.randrange(7)
    if kind == 0:
        flat[:] = flat[::-1].copy()
    elif kind == 1:
        flat[:] = rng.choice(flat.tolist())
    elif kind == 2:
        flat.view(np.uint8)[:] = np.frombuffer(rng.randbytes(flat.nbytes), np.uint8)
    else:
        for _ in range(rng.choice((1, 1, 2, 4, 9))):
            at = rng.choice((0, len(flat) - 1, rng.randrange(len(flat))))
            if array.dtype.kind == "f":
                flat[at] = rng.choice((0.0, -1.0, 2.0, math.nan, math.inf, 1e-300, 0.5))
            else:
                near = (int(flat[rng.randrange(len(flat))]), int(flat[at]) + 1)
                value = rng.choice((*INTEGERS, *near)) & ((1 << 8 * array.itemsize) - 1)
                flat.view(f"<u{array.itemsize}")[at] = value
    return members | {name: npy(array)}


DTYPES = "<i8 <u8 <u4 |u1 <f8 |b1 <i4 <f4 >i8 <c16 |S8 <U4".split()


def shape_changed(rng, members):
    name = rng.choice([name for name in members if name != "header.npy"])
    array = array_of(members[name])
    changes = (
        lambda: array.reshape(-1, 1), lambda: array.reshape(1, -1), lambda: array[:0],
        lambda: array.reshape(-1)[: rng.randrange(array.size + 1)],
        lambda: np.concatenate([array, array]), lambda: np.array(rng.choice(INTEGERS[:7])),
        lambda: array.astype(rng.choice(DTYPES)), lambda: array.reshape(-1).view(np.uint8),
    )  # fmt: skip
    kind = rng.randrange(9)
    if kind == len(changes):
        return members | {name: npy_with(rng.choice(NPY), members[name])}
    return members | {name: npy(changes[kind]())}


def npy_with(head, data):
    size = struct.unpack_from("<H", data, 8)[0]
    text = head.encode("latin-1").ljust(117) + b"\n"
    return data[:8] + struct.pack("<H", len(text)) + text + data[10 + size :]


def header_changed(rng, members):
    header = json.loads(array_of(members["header.npy"]).tobytes())
    kind = rng.randrange(8)
    if kind == 0:
        text = rng.choice(HEADERS)
    else:
        place, key = header, rng.choice(list(header))
        while isinstance(place[key], dict) and place[key] and rng.randrange(4):
            place, key = place[key], rng.choice(list(place[key]))
        if kind == 1:
            del place[key]
        elif kind == 2:
            place["more"] = rng.choice(VALUES)
        elif kind == 3:
            place[key] = list(place)
        else:
            place[key] = rng.choice((*VALUES, *header.values()))
        text = json.dumps(header).encode()
    return members | {"header.npy": npy(np.frombuffer(text, np.uint8))}


NAMES = ("x.npy", "", "header", "../x.npy", "\x1b[31m\n.npy", "a" * 60_000, "é.npy", "header.npy.npy")  # fmt: skip


def members_changed(rng, members, other):
    """Drop, double, rename, exchange or replace members of an artifact."""
    pairs = list(members.items())
    at, to = rng.randrange(len(pairs)), rng.randrange(len(pairs))
    kind = rng.randrange(7)
    if kind == 0:
        del pairs[at]
    elif kind == 1:
        pairs.append((pairs[to][0], pairs[at][1]))
    elif kind == 2:
        pairs[at] = rng.choice(NAMES), pairs[at][1]
    elif kind == 3:
        pairs[at], pairs[to] = (pairs[at][0], pairs[to][1]), (pairs[to][0], pairs[at][1])
    elif kind == 4:
        name = rng.choice(list(other))
        pairs = [*((n, d) for n, d in pairs if n != name), (name, other[name])]
    elif kind == 5:
        pairs += [(f"m{i}.npy", pairs[at][1]) for i in range(rng.choice((1, 100, 3000)))]
    else:
        rng.shuffle(pairs)
    return pairs


def mutated(rng, data, other):
    """(bytes, whether they are a forgery whose checksums are right)."""
    way = rng.randrange(20)
    if way == 3:
        return spliced(rng, data, other), False
    if way < 3:
        return (cut, flipped, flipped)[way](rng, data), False
    if way == 6:
        return zip64_end(rng, data), True
    if way <= 7:  # a name, or which bytes a member is: checksums may be those of another member
        changed = data if way < 7 else archive_of(list(unzipped(data).items()))
        return directory_changed(rng, changed), True
    members = unzipped(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice((*[values_changed] * 3, shape_changed, header_changed))
        try:
            members = change(rng, members)
        except Exception:  # it does not go together with the one before
            break
    pairs = list(members.items())
    if way == 8:
        pairs = members_changed(rng, members, unzipped(other))
    if way == 9:
        return archive_of(pairs, padding=False), True
    if way == 10:
        behind = rng.choice((b"", b"x" * 70_000))
        return archive_of(pairs, method=rng.choice((0, 8, 12))) + behind, True
    if way == 11:
        return rng.choice((b"x" * 63, b"PK\x03\x04")) + archive_of(pairs), True
    return archive_of(pairs), True


# --- trying them ----------------------------------------------------------------------------------


def run(arguments, patience=PATIENCE):
    """Return the outcome of a command in one line: its answer, its error, or a defect."""
    with open("answer", "w", encoding="utf-8", errors="surrogateescape") as text:
        outcome = outcome_of(arguments, text, patience)
    answer = Path("answer").read_bytes().decode("utf-8", "surrogateescape")
    return outcome + answer * outcome.startswith("answer")


def outcome_of(arguments, text, patience):
    try:
        with impatient(patience), redirect_stdout(text), redirect_stderr(io.StringIO()):
            words, variables = as_variables([*arguments, "--jobs", "1"])
            with patch.dict(os.environ, variables):
                code = program.main(args=words, standalone_mode=False, obj=words)
    except LshdupError as error:
        if not f"{error.message}{error.hint}".isprintable() or len(error.message) > 1000:
            return f"NOT ONE LINE {error.message[:1000]!r}"
        return f"error {type(error).__name__} {error.message}"
    except TimeoutError:
        return "HANGS"
    except MemoryError as error:
        return f"error MemoryError {error}"
    except SystemExit as error:
        return f"EXIT {error.code}"
    except BaseException as error:
        at = error.__traceback__
        while at.tb_next is not None:
            at = at.tb_next
        return f"TRACEBACK {type(error).__name__} in {at.tb_frame.f_code.co_qualname}:{at.tb_lineno}: {error}"
    return f"answer {code} "


class Artifacts:
    """The target, in an empty folder that becomes the current one, and a directory beside it."""

    def __init__(self, folder):
        os.fsync = lambda descriptor: None  # nobody pulls the plug here
        self.files = make_folder(folder)
        self._known = {}
        for tokens in TOKENS:
            for command in COMMANDS[tokens]:
                known = self._answer(tokens, command, {}, patience=300)
                self._known[tokens, tuple(command)] = known
                assert known.startswith(("answer", "error")), known

    def batch(self, rng, size=50):
        tally = Tally()
        for _ in range(size):
            tokens = rng.choice(("word", "word", "ids"))
            kind = rng.choice(list(self.files[tokens]))
            other = rng.choice(list(self.files[rng.choice(TOKENS)].values()))
            data, forged = mutated(rng, self.files[tokens][kind], other)
            usual = COMMANDS[tokens][rng.randrange(2) if kind != "pairs" else 0]
            first = USERS.get(kind, usual)
            command = rng.choice((first, rng.choice(COMMANDS[tokens])))
            self.tried(tally, tokens, kind, data, forged, command, checked=rng.randrange(2) == 0)
        return tally

    def tried(self, tally, tokens, kind, data, forged, command, *, checked):
        """checked : whether members are as small as they are, or so large that a command that only
        looks something up does not verify them.
        """
        tally.tried += 1
        most = npz._ALWAYS_VERIFIED
        with patch.object(npz, "_ALWAYS_VERIFIED", most if checked else 0):
            outcome = self._answer(tokens, command, {kind: data})
        word, known = outcome.split()[0], outcome == self._known[tokens, tuple(command)]
        kinds = {"error": "refused", "answer": "another answer"}
        tally.outcomes["as before" if known else kinds.get(word, word)] += 1
        looks_up = command[0] in ("query", "show") and not checked
        wrong = word == "answer" and not known and not forged and not looks_up
        if word not in kinds or wrong:
            what = "wrong answer" if wrong else word
            tally.found(what, tokens, kind, command, checked, outcome[:300], kept(data))

    def _answer(self, tokens, command, changed, patience=PATIENCE):
        for kind, data in (self.files[tokens] | changed).items():
            Path(tokens, f"{kind}.npz").write_bytes(data)
        return run([*command, "--store", tokens], patience)


def kept(data):
    """Save an artifact that revealed a defect; return its path."""
    folder = Path(tempfile.gettempdir(), "lshdup-fuzz")
    folder.mkdir(exist_ok=True)
    path = folder / f"{zlib.crc32(data):08x}.npz"
    path.write_bytes(data)
    return str(path)
