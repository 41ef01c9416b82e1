"""What recurs in the words of the files of a folder, by a suffix array, with pydivsufsort.

As tools for training data do it: a suffix array, the common prefixes of its neighbours, and the
stretches of bytes that stand elsewhere too. Prints start and end of each in the joined words.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pydivsufsort

_WORD = re.compile(rb"\w+")


def main() -> None:
    """Read, sort, print."""
    parser = argparse.ArgumentParser(description="Print stretches of bytes that recur.")
    parser.add_argument("folder")
    parser.add_argument("least", type=int, help="bytes of the shortest stretch")
    options = parser.parse_args()
    files = sorted(path for path in Path(options.folder).rglob("*") if path.is_file())
    texts = (b" ".join(_WORD.findall(path.read_bytes().lower())) for path in files)
    # A bytearray, because the library takes no array that is read-only.
    text = np.frombuffer(bytearray(b"\0".join(texts)), np.uint8)
    order = pydivsufsort.divsufsort(text)
    common = pydivsufsort.kasai(text, order)
    at = np.flatnonzero(common >= options.least)
    starts = np.concatenate([order[at], order[np.minimum(at + 1, len(order) - 1)]]).astype(np.int64)
    ends = starts + np.concatenate([common[at], common[at]])
    by_start = np.argsort(starts, kind="stable")
    starts, ends = starts[by_start], np.maximum.accumulate(ends[by_start])
    first = np.append(True, starts[1:] > ends[:-1])[: len(starts)]
    last = np.append(first[1:], True)[: len(starts)]
    for start, end in zip(starts[first].tolist(), ends[last].tolist(), strict=True):
        sys.stdout.write(f"{start}\t{end}\n")


if __name__ == "__main__":
    main()
