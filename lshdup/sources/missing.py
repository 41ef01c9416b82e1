"""Names of files and folders that do not exist: the error, and the name that was probably meant."""

import os
import shlex
from collections.abc import Iterable
from itertools import islice

from lshdup.base.messages import did_you_mean, quoted
from lshdup.base.skipped import Skipped
from lshdup.errors import InputError
from lshdup.sources.patterns import GLOB

#: A name that is nearly the missing one is looked for among so many names of its folder.
_FEW_NAMES = 1000


def check_named(arguments: Iterable[bytes], what: str, hint: str, *, included: bool) -> None:
    """Raise InputError if none of the arguments exists.

    arguments : folders and files.
    what : option that names them, for the beginning of the message.
    hint : what to type, if no better hint is known.
    included : whether --include applies to them.
    """
    missing = []
    for argument in arguments:
        try:
            os.stat(argument)
        except OSError as error:
            missing.append(Skipped.because(argument, error))
        else:
            return
    if missing:
        raise not_there(missing[0], what, hint, included=included)


def not_there(missed: Skipped, what: str, hint: str, *, included: bool) -> InputError:
    """Return the error for a name that does not exist."""
    return InputError(
        f"{what}{quoted(missed.name)}: {missed.detail}",
        perhaps_meant(missed.name, included=included) or hint,
    )


def perhaps_meant(argument: bytes, *, included: bool) -> str:
    """Return what to type instead of a name that does not exist, or "".

    Recognised are patterns that the shell did not expand, and names that are nearly right.
    """
    name = os.fsdecode(argument)
    if os.path.lexists(name):
        return ""
    if name.startswith("~"):
        home = os.path.expanduser(name)  # noqa: PTH111 (a name as typed)
        instead = home if home != name else "name the folder"
        return f"a shell puts the home folder for ~ only outside quotes: {instead}"
    parts = name.split("/")
    odd = next((at for at, part in enumerate(parts) if GLOB.search(part)), None)
    if odd is not None:
        folder = "/".join(parts[:odd]) or ("/" if odd else ".")
        if not os.path.isdir(folder):
            return perhaps_meant(os.fsencode(folder), included=included)
        instead = (
            f"name the folder and the pattern: {shlex.join([folder, '--include', parts[-1]])}"
            if included
            else "name the folder"
        )
        return (
            f"the shell did not expand the pattern, as it is quoted or matches nothing; {instead}"
        )
    parent, base = os.path.split(name)
    try:
        with os.scandir(parent or ".") as entries:
            beside = sorted(entry.name for entry in islice(entries, _FEW_NAMES))
    except OSError:
        return ""
    return did_you_mean(base, beside, lambda name: shlex.quote(os.path.join(parent, name)))  # noqa: PTH118 (a name as typed)
