"""Parts of messages and of listings: counts with their nouns, names, numbers, the word perhaps
meant, and cells as JSON.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence

from lshdup.errors import escaped

#: A value in a row of a listing.
Cell = bytes | bool | float | int | str | None

#: Most characters of a name in a list of names.
_NAME_CHARACTERS = 60


def count_of(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    plural : if it is not the noun and an s.

    >>> count_of(1, "pair"), count_of(1200, "pair"), count_of(2, "row of text", "rows of text")
    ('1 pair', '1,200 pairs', '2 rows of text')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {plural or f'{noun}s'}"


def join_names(names: Iterable[str], most: int = 10) -> str:
    """Return names separated by commas, the first of many, and the beginning of long ones.

    >>> join_names(["id", "body"]), join_names("abcdefghijklm"), join_names([])
    ('id, body', 'a, b, c, d, e, f, g, h, i, j, …', 'none')
    """
    parts = [
        name if len(name) <= _NAME_CHARACTERS else f"{name[:_NAME_CHARACTERS]}…" for name in names
    ]
    return ", ".join([*parts[:most], "…"] if len(parts) > most else parts) or "none"


def did_you_mean(
    word: str, known: Iterable[str], say: Callable[[str], str] = str, least: float = 0.6
) -> str:
    """Return a question with the known word that is most like `word`, or "" if none is like it.

    say : how a known word is said in the question.
    least : how like the words must be, from 0 to 1.

    >>> did_you_mean("pair", ["query", "pairs"], "`lshdup {}`".format)
    'did you mean `lshdup pairs`?'
    >>> did_you_mean("TEXT", ["id", "text"]), did_you_mean("data", ["query", "pairs"])
    ('did you mean text?', '')
    """
    import difflib  # Imported here to keep the start of every command fast.

    by_small = {each.casefold(): each for each in known}
    nearest = difflib.get_close_matches(word.casefold(), by_small, n=1, cutoff=least)
    return f"did you mean {say(by_small[nearest[0]])}?" if nearest else ""


def quote_command(*words: str) -> str:
    """Return a command line as it would be typed, in backquotes.

    >>> quote_command("lshdup", "pairs", "my docs", "--include", "*.txt")
    "`lshdup pairs 'my docs' --include '*.txt'`"
    """
    import shlex

    return f"`{shlex.join(words)}`"


def printable(text: bytes | str) -> str:
    r"""Return a name, or text with names in it, for people.

    Bytes that are not UTF-8, control characters and marks of writing direction become escapes, so
    that no name can move the cursor, colour the terminal, or look like another.

    >>> [printable(each) for each in (b"red\x1b[31m", "gpj.\u202eexe", b"\xff.txt", "Größe 漢字")]
    ['red\\x1b[31m', 'gpj.\\u202eexe', '\\xff.txt', 'Größe 漢字']
    >>> import os
    >>> printable(os.fsdecode(b"row 1 of \xff.parquet"))
    'row 1 of \\xff.parquet'
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else escaped(c) for c in text)


def quoted(name: bytes | str) -> str:
    r"""Return a name in quotes, for people.

    >>> quoted("a b"), quoted(b"\xff.txt")
    ("'a b'", "'\\xff.txt'")
    """
    return f"'{printable(name)}'"


def decimal(x: float) -> str:
    """Return a number with four places, which looks like 0 or 1 only if it is 0 or 1.

    >>> [decimal(x) for x in (0.5, 0.99999, 0.0, 2e-5, -2e-5, 12345.6, float("nan"))]
    ['0.5000', '0.9999', '0.0000', '<0.0001', '>-0.0001', '12,345.6', '']
    """
    if x != x:
        return ""
    text = f"{x:.4f}" if abs(x) < 1000 else f"{x:,.1f}"
    if x and float(text.replace(",", "")) == 0:
        return "<0.0001" if x > 0 else ">-0.0001"
    return "0.9999" if text == "1.0000" and x < 1 else text


def significant(x: float) -> float:
    """Return a number rounded to six significant digits.

    The last digits of a logarithm, a power or a product of matrices differ between processors. A
    listing prints such numbers rounded, so that it is the same on every machine.

    >>> [significant(x) for x in (0.6812920690579614, 1e-05 / 3, 12.0)]
    [0.681292, 3.33333e-06, 12.0]
    """
    return float(f"{x:.6g}")


def chance(p: float, below: float = 1.0) -> str:
    """Return a chance or a share in percent; below a hundredth of a percent as one in a number.

    below : a bound that a smaller chance must not be rounded to.

    >>> [chance(p) for p in (0.0, 1.0, 0.5, 0.0058, 0.00049, 0.99996)]
    ['0 %', '100 %', '50 %', '0.58 %', '0.049 %', '99.996 %']
    >>> chance(0.9897), chance(0.9897, below=0.99)
    ('99 %', '98.97 %')
    >>> chance(1.7e-05), chance(9.6e-6), chance(3e-13)
    ('1 in 59,000', '1 in 100,000', 'less than 1 in a billion')
    """
    if p <= 0:
        return "0 %"
    if p < 1e-9:
        return "less than 1 in a billion"
    if p < 1e-4:
        return f"1 in {int(float(f'{1 / p:.2g}')):,}"
    places = 2
    while p < below and float(f"{100 * p:.{places}g}") >= 100 * below and places < 17:
        places += 1
    return f"{100 * p:.{places}g} %" if p < 1 else "100 %"


def json_cell(cell: Cell) -> object:
    """Return a cell as JSON has it: a name as text, NaN as None."""
    if isinstance(cell, float) and cell != cell:
        return None
    return os.fsdecode(cell) if isinstance(cell, bytes) else cell


def utf8_text(text: str) -> str:
    r"""Return text that is UTF-8: a lone surrogate is its escape in JSON.

    >>> utf8_text(os.fsdecode(b"\xff \xc3\xa9"))
    '\\udcff é'
    """
    return text.encode("utf-8", "backslashreplace").decode()


def json_line(columns: Sequence[str], row: Sequence[Cell]) -> bytes:
    """Return a row as a line of JSON Lines, in ASCII, without its end."""
    return json.dumps(dict(zip(columns, map(json_cell, row), strict=True))).encode("ascii")
