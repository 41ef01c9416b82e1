"""What can go wrong in a way a person can mend. Knows no Click; `cli/` turns these into one line on stderr and exit code 2."""


class LshdupError(Exception):
    """An error that names the value and the cause, with a hint that names the next command.

    Parameters
    ----------
    message : what is wrong, with the value; one line.
    hint : what to do about it; one line, may be empty.

    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.message, self.hint)


class ParameterError(LshdupError):
    """A parameter is outside its domain, or two parameters exclude each other."""


class InputError(LshdupError):
    """Documents that were named cannot be had at all (soft errors, where the rest goes on, are counted instead)."""


class ArtifactError(LshdupError):
    """An artifact is missing, damaged, of another kind or version, or made with other parameters."""
