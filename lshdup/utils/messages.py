"""Words of messages: counts with their nouns, what was perhaps meant, a command to type. Pure Python; used by all that says something."""

from collections.abc import Iterable

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


def closest(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """What was perhaps meant by a word that is not known; empty if it is like none. least : how like it, from 0 to 1.

    >>> closest("pair", ["query", "pairs"]), closest("TEXT", ["id", "text"]), closest("data", ["query", "pairs"])
    ('pairs', 'text', '')
    """
    import difflib  # here, because every start of the program waits for what is above

    by_small = {each.casefold(): each for each in known}
    found = difflib.get_close_matches(word.casefold(), by_small, n=1, cutoff=least)
    return by_small[found[0]] if found else ""


def typed(*words: str) -> str:
    """A command line, as one would type it, in backquotes.

    >>> typed("lshdup", "pairs", "my docs", "--include", "*.txt")
    "`lshdup pairs 'my docs' --include '*.txt'`"
    """
    import shlex

    return f"`{shlex.join(words)}`"
