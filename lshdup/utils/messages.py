"""Words of messages: counts with their nouns, what was perhaps meant, a command to type. Pure Python; used by all that says something."""

from collections.abc import Callable, Iterable

#: Of a name so many characters are said.
_LONGEST = 60


def counted(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun. plural : where it is not the noun and an s.

    >>> counted(1, "pair"), counted(1200, "pair"), counted(2, "row without text", "rows without text")
    ('1 pair', '1,200 pairs', '2 rows without text')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {plural or f'{noun}s'}"


def some_of(names: Iterable[str], most: int = 10) -> str:
    """Names separated by commas: some, if there are many, and a part of those that are long.

    >>> some_of(["id", "body"]), some_of("abcdefghijklm"), some_of([])
    ('id, body', 'a, b, c, d, e, f, g, h, i, j, …', 'none')
    """
    listed = list(names)
    said = [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…" for name in listed[:most]]
    return ", ".join([*said, "…"] if len(listed) > most else said) or "none"


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


def typed(*words: str) -> str:
    """A command line, as one would type it, in backquotes.

    >>> typed("lshdup", "pairs", "my docs", "--include", "*.txt")
    "`lshdup pairs 'my docs' --include '*.txt'`"
    """
    import shlex

    return f"`{shlex.join(words)}`"


def shown(text: bytes | str) -> str:
    r"""A name, or text with names in it, for people: other bytes than UTF-8, control characters and what changes the direction of writing
    as escapes, so that no name can move the cursor, colour the terminal, or look like another.

    >>> shown(b"red\x1b[31m"), shown("gpj.\u202eexe"), shown(b"\xff.txt"), shown("Größe 漢字")
    ('red\\x1b[31m', 'gpj.\\u202eexe', '\\xff.txt', 'Größe 漢字')
    >>> import os
    >>> shown(os.fsdecode(b"row 1 of \xff.parquet"))
    'row 1 of \\xff.parquet'
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return (
        text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)
    )


def _escaped(c: str) -> str:
    """Bytes that are no UTF-8, as `os.fsdecode` has them, as bytes."""
    return (
        f"\\x{ord(c) - 0xDC00:x}"
        if "\udc80" <= c <= "\udcff"
        else c.encode("unicode_escape").decode("ascii")
    )


def decimal(x: float) -> str:
    """A number for people, four places; it never looks like another one: not like 0 or 1 if it is not.

    >>> decimal(0.5), decimal(0.99999), decimal(0.0), decimal(2e-5), decimal(-2e-5), decimal(12345.6), decimal(float("nan"))
    ('0.5000', '0.9999', '0.0000', '<0.0001', '>-0.0001', '12,345.6', '')
    """
    if x != x:
        return ""
    text = f"{x:.4f}" if abs(x) < 1000 else f"{x:,.1f}"
    if x and float(text.replace(",", "")) == 0:
        return "<0.0001" if x > 0 else ">-0.0001"
    return "0.9999" if text == "1.0000" and x < 1 else text


def chance(p: float, below: float = 1.0) -> str:
    """A chance or a share for people: in percent, below a hundredth of one as one in how many. What is less than `below` looks so.

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
    while (
        p < below and float(f"{100 * p:.{places}g}") >= 100 * below and places < 17
    ):  # nearly certain is not certain
        places += 1
    return f"{100 * p:.{places}g} %" if p < 1 else "100 %"


def fitting_start(text: str, cells: int) -> str:
    """As many characters as fit into so many cells."""
    from rich.cells import cell_len

    count = min(len(text), max(cells, 0))
    while count and cell_len(text[:count]) > cells:
        count -= 1
    return text[:count]
