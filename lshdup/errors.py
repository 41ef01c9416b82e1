"""What can go wrong in a way a person can mend. Knows no Click; `cli/` turns these into one line on stderr and exit code 2."""

#: Of a message that quotes an artifact, so many characters are enough.
_LONGEST = 500


class LshdupError(Exception):
    """An error that names the value and the cause, with a hint that names the next command.

    Parameters
    ----------
    message : what is wrong, with the value; one line.
    hint : what to do about it; one line, may be empty.
    names : what the message is about, each for a line of its own.

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
    """Documents that were named cannot be had at all (soft errors, where the rest goes on, are counted instead)."""


class ArtifactError(LshdupError):
    """An artifact is missing, damaged, of another kind or version, or made with other parameters.

    The message may quote what somebody wrote into the artifact: it becomes one line of bounded length, without control characters.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
        message = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in message
        )
        super().__init__(message, hint)
