"""What ends a run: the exit codes, and the errors that a user can mend. `cli/` prints one line for
each error, and exits with TROUBLE.
"""

OK = 0
FOUND = 1  # only with --check
TROUBLE = 2
INTERRUPTED = 130

#: A hint, or the beginning of one, in which `cli` puts the command that was typed.
RERUN = "run the command with DOCS"

#: Characters of a message that quotes an artifact.
_LONGEST = 500


class LshdupError(Exception):
    """An error that names the value and the cause, with a hint that names the next command.

    Parameters
    ----------
    message : the problem, with the value; one line.
    hint : the remedy; one line, may be empty.
    names : names that the message is about, printed one a line.

    """

    def __init__(self, message: str, hint: str = "", names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.names = names

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.message, self.hint, *([self.names] if self.names else []))


class ParameterError(LshdupError):
    """A parameter is outside its domain, or two parameters exclude each other."""


class InputError(LshdupError):
    """Named documents cannot be read at all. A document that is skipped is counted instead."""


class ArtifactError(LshdupError):
    """An artifact is missing, damaged, of another kind or version, or made with other parameters.

    The message may quote a file of unknown origin, so it becomes one line of bounded length without
    control characters.
    """

    def __init__(self, message: str, hint: str) -> None:
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
        message = "".join(c if c.isprintable() else escaped(c) for c in message)
        super().__init__(message, hint)


def escaped(c: str) -> str:
    """Return the escape of a character; a byte of `os.fsdecode` has that of the byte."""
    if "\udc80" <= c <= "\udcff":
        return f"\\x{ord(c) - 0xDC00:x}"
    return c.encode("unicode_escape").decode("ascii")
