"""Tar archives: where the members are in the (unpacked) archive.

The standard library reads the headers. A member is a part of the file, and is read like one.
"""

import os
import tarfile
from collections.abc import Iterator
from typing import Any, BinaryIO, Self

from lshdup.base.skipped import Reason
from lshdup.sources.readers.members import Members, inner_path, refused_name
from lshdup.sources.records import RecordFields, RecordList

_END = bytes(tarfile.BLOCKSIZE)

#: Headers whose content is a name or fields of the next member, which the library keeps in memory,
#: and the most bytes of such content.
_EXTENSIONS = frozenset(
    (
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    )
)
_LONGEST_EXTENSION = 1 << 20


class _Member(tarfile.TarInfo):
    """A header whose sizes are no traps: the library would go back in the file, and never end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.size < 0:
            message = "negative size"
            raise tarfile.HeaderError(message)
        if member.type in _EXTENSIONS and member.size > _LONGEST_EXTENSION:
            message = f"a name or fields of {member.size} bytes, at most {_LONGEST_EXTENSION}"
            raise tarfile.HeaderError(message)
        return member


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList:
    """Return the members of an open archive. Raises RecordError if it is no archive.

    Parameters
    ----------
    file : descriptor of the archive, unpacked.
    fields : which members are documents.
    longest : members of more bytes are skipped.

    """
    members = Members(longest)
    size = os.fstat(file).st_size
    number = 0
    try:
        with open(os.dup(file), "rb", buffering=1 << 16) as archive:  # noqa: PTH123 (a descriptor)
            for number, member in enumerate(_members(archive), 1):
                if member.isdir():
                    continue
                name = inner_path(os.fsencode(member.name))
                if refused := _refusal(member, name, fields, size):
                    members.skip(number, name, *refused)
                else:
                    members.add(number, member.offset_data, member.size, name)
    except RecursionError:  # The library calls itself for a header in front of a header.
        members.damaged(number + 1, "too many headers in a row for one member")
    except (tarfile.TarError, ValueError, ArithmeticError, LookupError) as error:
        members.damaged(number + 1, str(error))
    return members.listed()


def _members(archive: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of an archive. Raises TarError if it ends without the mark of the end."""
    archive.seek(0)
    tar: Any = tarfile.TarFile(
        fileobj=archive, tarinfo=_Member, encoding="utf-8", errors="surrogateescape"
    )
    while (member := tar.next()) is not None:
        tar.members.clear()  # or the archive would remember all of them
        yield member
    archive.seek(tar.offset)
    if archive.read(tarfile.BLOCKSIZE) != _END:
        message = f"no header of a member at byte {tar.offset}"
        raise tarfile.ReadError(message)


def _refusal(
    member: tarfile.TarInfo, name: bytes, fields: RecordFields, size: int
) -> tuple[Reason, str] | None:
    if member.issym():
        return Reason.LINK, ""
    if member.islnk():
        return Reason.HARD_LINK, f"its content is that of {member.linkname}"
    if member.issparse():
        return Reason.FORMAT, "a sparse file in an archive"
    if not member.isreg():
        return Reason.SPECIAL, ""
    if member.offset_data + member.size > size:
        return Reason.DAMAGED, "the archive ends before its end: cut off?"
    return refused_name(name, hidden=fields.hidden)
