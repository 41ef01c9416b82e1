"""What a command requests, and the parameters of each stage that follow from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from lshdup.errors import ArtifactError
from lshdup.params import (
    BandParams,
    ClusterParams,
    DocumentParams,
    FilterParams,
    ShingleParams,
    SketchParams,
)

if TYPE_CHECKING:
    from lshdup.documents.document_list import DocumentList

P = TypeVar(
    "P", DocumentParams, ShingleParams, FilterParams, SketchParams, BandParams, ClusterParams
)

#: Options whose name is not that of their parameter.
_OPTIONS = {"k": "-k", "keep_case": "--keep-case", "normalize": "normalization"}


@dataclass(frozen=True)
class Request:
    """What a command requests.

    documents : folders and files; empty: the command continues from the store.
    files : which files below the folders are documents.
    given : parameters that were set explicitly, by field name.
    jobs : threads.
    check_content : read all documents, even if their size and time have not changed.
    templates : files and folders of the texts whose shingles are filtered.
    is_other : whether the store is one that --against names, which must hold an index.
    accept : notified (documents, whether they have been read), when they are found and when they
        have been read; raises if the command cannot work with them.
    """

    documents: tuple[bytes, ...]
    files: DocumentParams
    given: Mapping[str, Any]
    jobs: int
    check_content: bool = False
    templates: tuple[bytes, ...] = ()
    is_other: bool = False
    accept: Callable[["DocumentList", bool], None] = lambda _documents, _read: None


def merge_params(kind: type[P], given: Mapping[str, Any], base: P | None = None) -> P:
    """Return the parameters of one stage: explicit values, over `base`, over the defaults."""
    known = {field.name for field in fields(kind)}
    values = base.to_json() if base is not None else {}
    return kind(**(values | {name: value for name, value in given.items() if name in known}))


def reset_bands(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return explicit parameters in which bands or rows replace both stored numbers."""
    return {"bands": 0, "rows": 0, **given} if "bands" in given or "rows" in given else given


def check_conflict(
    name: str, stored: ShingleParams | SketchParams, given: Mapping[str, Any], remedy: str
) -> None:
    """Raise ArtifactError if an artifact was made with another value than the explicit one."""
    for field in fields(stored):
        actual = getattr(stored, field.name)
        if field.compare and field.name in given and given[field.name] != actual:
            if field.name == "key":
                message = f"{name} was made with {'another' if actual else 'no'} --hash-key"
                raise ArtifactError(message, remedy)
            option = _OPTIONS.get(field.name, f"--{field.name}")
            message = f"{name} was made with {option} {actual}, not {given[field.name]}"
            raise ArtifactError(message, remedy)
