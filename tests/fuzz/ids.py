"""Id lists: lines -> names and sets of integers, against what Python's own `split` and `int` say."""

import tempfile
from pathlib import Path

import numpy as np

from lshdup.base.params import ShingleParams
from lshdup.shingling.shingler import Shingler
from lshdup.sources.text_batches import read_batch
from tests.documents import find
from tests.fuzz import Tally
from tests.fuzz.fences import run_fenced

BLANKS = b" \t\x0b\x0c\r\x1c\x85\xa0"
TOKENS = [b"0", b"1", b"007", b"18446744073709551615", b"18446744073709551616", b"18446744073709551620", b"99999999999999999999",
          b"1" * 40, b"0" * 40 + b"5", b"-1", b"+1", b"1.0", b"1e3", b"x", b"\xb2", b"\xd9\xa1", b"", b"1\x002", b"9" * 19, b"1844674407370955162"]  # fmt: skip
NAMES = (b"name", b"\xff\xfe", b"1", b"", b"n\0m", "größe".encode())


def some_id(rng):
    if rng.randrange(6) == 0:
        return rng.choice(TOKENS)
    return b"%d" % rng.randrange(1 << rng.choice((4, 16, 40, 64)))


def some_line(rng):
    name = rng.choice((*[b"n%d" % rng.randrange(5000)] * 4, *NAMES))
    blanks = bytes(rng.choices(BLANKS[:5], k=rng.randrange(1, 3)))
    ids = blanks.join(some_id(rng) for _ in range(rng.randrange(12)))
    line = rng.choice((b"", b" ", b"\t")) + name + blanks + ids + rng.choice((b"", b" ", b"\r"))
    if rng.randrange(4) == 0 and line:
        at = rng.randrange(len(line))
        line = line[:at] + bytes([rng.randrange(256)]) + line[at + rng.randrange(2) :]
    return line.replace(b"\n", b" ")


def expected(lines):
    """{name: set of ids, or None if one is no integer of 64 bits}; the first line counts."""
    found = {}
    for line in lines:
        name, *ids = line.split() or [b""]
        if name and name not in found:
            good = all(each.isdigit() and int(each) < 1 << 64 for each in ids)
            found[name] = sorted({int(each) for each in ids}) if good else None
    return found


class Ids:
    """The target."""

    def batch(self, rng, size=1000):
        lines = [some_line(rng) for _ in range(size)]
        return self.compared(lines, b"\n" if rng.randrange(2) else b"")

    def compared(self, lines, end=b"\n"):
        tally = Tally(tried=len(lines))
        wanted = expected(lines)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "ids.txt")
            path.write_bytes(b"\n".join(lines) + end)
            documents, _ = find(path, id_lists=True)
            batch = read_batch(documents, np.arange(len(documents)))
        if list(documents.names) != list(wanted):
            tally.found("other names", lines)
            return tally
        shingler = Shingler(ShingleParams(tokens="ids"))
        _, _, whole = run_fenced(shingler, batch, np.zeros(len(documents), np.uint8))
        if not whole:
            tally.found("memory before an array was written", lines)
        made = shingler.shingle(batch)
        sets = [each.tolist() for each in made.sets.sort()]
        found = dict(zip(made.indices.tolist(), sets, strict=True))
        for index, name in enumerate(documents.names):
            tally.outcomes["refused" if wanted[name] is None else "set"] += 1
            if found.get(index) != wanted[name]:
                tally.found("other set", name, found.get(index), wanted[name])
        return tally
