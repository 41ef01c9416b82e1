"""Parquet files: mutated ones beside a whole one, of which every run must tell the copies.

pyarrow reads them, in C++: what it does not expect may end the process.
"""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz import Tally
from tests.fuzz.artifacts import kept, run

COPIES = "whole.parquet:1\twhole.parquet:2\t1.0"
PAIRS = ["pairs", "a.parquet", "whole.parquet", "--no-store"]
COMMANDS = [PAIRS, [*PAIRS, "--text-field", "text,more"], [*PAIRS, "--id-field", "id"]]
COMMANDS += [["clusters", *PAIRS[1:], "--write", "clean"]]


def seeds():
    """Small files of all compressions and several row groups, with a dictionary and without."""
    texts = [f"{row} " + " ".join(map(str, range(row % 9))) for row in range(90)]
    table = pa.table({"id": range(90), "text": texts, "more": [None, *texts[:0:-1]]})
    found = []
    for compression in ("zstd", "snappy", "none"):
        for dictionary in (True, False):
            how = {"compression": compression, "use_dictionary": dictionary}
            pq.write_table(table, "seed", **how, row_group_size=40)
            found.append(Path("seed").read_bytes())
    return found


def mutated(rng, data):
    """Bytes that were a Parquet file once; two of three are in the footer, which the rest hangs on."""
    footer = max(len(data) - int.from_bytes(data[-8:-4], "little") - 8, 0)
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(min(footer if rng.randrange(3) else 0, len(data)), len(data) + 1)
        kind = rng.randrange(8)
        if kind < 4:
            byte = rng.choice((0, 3, 0x24, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            data[at : at + 1] = bytes([byte])
        elif kind == 4 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 5:
            data[at : at + rng.randrange(1, 9)] = rng.randbytes(rng.randrange(9))
        elif kind == 6:
            data[at:at] = data[: rng.randrange(1, 40)]
        else:
            data[at : at + rng.choice((1, 4, 300))] = b""
    return bytes(data)


class Parquet:
    """The target; needs an empty folder, which becomes the current one."""

    def __init__(self, folder):
        os.chdir(folder)
        self.seeds = seeds()
        text = "one two three four five six seven eight nine ten"
        whole = pa.table({"id": [1000, 1001], "text": [text] * 2, "more": ["", ""]})
        pq.write_table(whole, "whole.parquet")
        for command in COMMANDS:
            tally = Tally()
            self.tried(tally, command, self.seeds[0])
            assert not tally.findings, tally.findings

    def batch(self, rng, size=20):
        tally = Tally()
        for _ in range(size):
            self.tried(tally, rng.choice(COMMANDS), mutated(rng, rng.choice(self.seeds)))
        return tally

    def tried(self, tally, command, data):
        tally.tried += 1
        Path("a.parquet").write_bytes(data)
        shutil.rmtree("clean", ignore_errors=True)
        outcome = run(command)
        word, code, *_ = outcome.split(maxsplit=2)
        # What --write cannot read it refuses; the console escapes what a message quotes.
        is_refused = "--write" in command and word in ("error", "NOT")
        is_complete = "--write" in command or "--id-field" in command or COPIES in outcome
        tally.outcomes["read" if code == "0" else "skipped" if word == "answer" else word] += 1
        if not is_refused and (word != "answer" or not is_complete):
            tally.found(word, command, outcome[:300], kept(data))
