"""Names of the members of archives: below the archive, each once, whatever an archive says."""

from collections.abc import Iterable

from lshdup.documents.records import RecordError, classify_file
from lshdup.skipped import Reason

#: An archive with members of more bytes than --max-bytes in all, and than so many times its own
#: size, is taken for a bomb. Texts shrink to a fifth, log files to a fiftieth.
_MOST_TIMES = 200


def inner_path(name: bytes) -> bytes:
    """Return the path of a member: relative, without ``.``, ``..``, empty parts and NUL.

    >>> inner_path(b"/etc/../a//b.txt"), inner_path(b"./c"), inner_path(b"..")
    (b'etc/a/b.txt', b'c', b'')
    """
    parts = name.replace(b"\0", b"").split(b"/")
    return b"/".join(part for part in parts if part not in (b"", b".", b".."))


def distinct_names(names: Iterable[bytes]) -> list[bytes]:
    """Return names of which each is different: of equal ones the second gets ``:2``, and so on.

    An empty name becomes a number. Cost: linear in the number of names.

    >>> distinct_names([b"a", b"b", b"a", b"a:2", b"a", b""])
    [b'a', b'b', b'a:3', b'a:2', b'a:4', b'6']
    """
    names = [name or b"%d" % number for number, name in enumerate(names, 1)]
    taken, counts = set(names), dict.fromkeys(names, 0)
    for at, name in enumerate(names):
        counts[name] += 1
        if counts[name] > 1:
            while b"%s:%d" % (name, counts[name]) in taken:
                counts[name] += 1
            names[at] = b"%s:%d" % (name, counts[name])
    return names


def refused_name(path: bytes, *, hidden: bool) -> tuple[Reason, str] | None:
    """Return why a member with this path is skipped, or None.

    hidden : whether names that begin with a dot are taken.
    """
    if not hidden and (b"/" + path).find(b"/.") >= 0:
        return Reason.HIDDEN, ""
    if classify_file(path, named=False, archives=True):
        return Reason.NESTED, "unpack the archive around it to compare what is in it"
    return None


def most_unpacked(packed: int, longest: int) -> int:
    """Return how many bytes an archive may hold.

    packed : bytes of the archive.
    longest : bytes that one member may have.
    """
    return max(longest, _MOST_TIMES * packed)


def too_large_unpacked(most: int, longest: int) -> RecordError:
    """Return the error for an archive that holds more than `most` bytes."""
    detail = (
        f"more than {most} bytes when unpacked: above {_MOST_TIMES} times its size and above "
        f"--max-bytes, which is {longest}"
    )
    return RecordError(Reason.TOO_LARGE, detail)
