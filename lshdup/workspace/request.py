"""What a command was asked, and how that becomes the parameters of each stage. Called by workspace.py and below, against.py, cli/."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from lshdup.errors import ArtifactError
from lshdup.params import BandParams, ClusterParams, DocumentParams, ShingleParams, SketchParams

if TYPE_CHECKING:
    from lshdup.documents.document_list import DocumentList

P = TypeVar("P", ShingleParams, SketchParams, BandParams, ClusterParams)

#: Options that are not called like their parameter.
_OPTIONS = {"k": "-k", "keep_case": "--keep-case", "normalize": "normalization"}


@dataclass(frozen=True)
class Request:
    """What a command was asked.

    documents : folders and files; empty: continue from the store. given : parameters that were set explicitly, by field name.
    check_content : read documents even if nothing about their files has changed. templates : files and folders of texts whose shingles are
    removed. command : what takes documents instead, where a step finds nothing to continue from; empty: the store was named, and must hold
    something. accept : told the documents that were found, False, and those that are left when they have been read, True; raises if what is
    to come cannot be done with them.
    """

    documents: tuple[bytes, ...]
    files: DocumentParams
    given: Mapping[str, Any]
    jobs: int
    check_content: bool = False
    templates: tuple[bytes, ...] = ()
    command: str = "index"
    accept: Callable[["DocumentList", bool], None] = lambda _documents, _read: None


def merged(kind: type[P], given: Mapping[str, Any], base: P | None = None) -> P:
    """The parameters of one stage: those given, over those of `base`, over the defaults."""
    known = {field.name for field in fields(kind)}
    values = base.to_json() if base is not None else {}
    return kind(**(values | {name: value for name, value in given.items() if name in known}))


def band_options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Bands or rows that are given replace both of the stored ones."""
    return {"bands": 0, "rows": 0, **given} if "bands" in given or "rows" in given else given


def check_conflict(
    name: str, stored: ShingleParams | SketchParams, given: Mapping[str, Any], remedy: str
) -> None:
    """Raise if an artifact was made with another value than the one given."""
    for field in fields(stored):
        actual = getattr(stored, field.name)
        if field.compare and field.name in given and given[field.name] != actual:
            if field.name == "key":
                message = f"{name} was made with {'another' if actual else 'no'} --hash-key"
                raise ArtifactError(message, remedy)
            option = _OPTIONS.get(field.name, f"--{field.name}")
            message = f"{name} was made with {option} {actual}, not {given[field.name]}"
            raise ArtifactError(message, remedy)
