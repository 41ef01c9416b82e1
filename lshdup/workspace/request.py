"""What a command requests, and the parameters of each stage that follow from it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from lshdup.base.frozen import dataclass
from lshdup.base.params import DocumentParams, FilterParams, ShingleParams, SketchParams
from lshdup.errors import ArtifactError

if TYPE_CHECKING:
    from lshdup.collection.collection import Collection
    from lshdup.sources.document_list import DocumentList

#: A class of `base.params`.
P = TypeVar("P", bound=Any)

#: Options whose name is not that of their parameter.
_OPTIONS = {"k": "-k", "keep_case": "--keep-case", "normalize": "normalization"}

#: Options whose value is a secret, a fingerprint, or said by the option itself.
_UNQUOTED = {"key": "LSHDUP_HASH_KEY=…", "template": "--template …", "normalize": "--no-normalize"}


@dataclass(frozen=True)
class Request:
    """What a command requests.

    documents : folders and files; empty: the command continues from the store.
    files : which files below the folders are documents.
    given : parameters that were set explicitly, by field name.
    check_content : read all documents, even if their size and time have not changed.
    templates : files and folders of the texts whose shingles are filtered.
    is_other : whether the store is one that --against names, which must hold an index.
    accept : notified (documents, whether they have been read), when they are found and when they
        have been read; raises if the command cannot work with them.
    accept_source : notified likewise of the documents that another option names, and of the option.
    """

    documents: tuple[bytes, ...]
    files: DocumentParams
    given: Mapping[str, Any]
    check_content: bool = False
    templates: tuple[bytes, ...] = ()
    is_other: bool = False
    accept: Callable[["DocumentList", bool], None] = lambda _documents, _read: None
    accept_source: Callable[["DocumentList", str], None] = lambda _documents, _option: None


def merge_params(kind: type[P], given: Mapping[str, Any]) -> P:
    """Return the parameters of one stage: explicit values, and defaults for all others."""
    known = {field.name for field in fields(kind)}
    made: P = kind(**{name: value for name, value in given.items() if name in known})
    return made


def check_conflict(
    name: str, stored: ShingleParams | SketchParams, given: Mapping[str, Any], remedy: str
) -> None:
    """Raise ArtifactError if an artifact was made with another value than the explicit one."""
    for field in fields(stored):
        actual = getattr(stored, field.name)
        if field.compare and field.name in given and given[field.name] != actual:
            option = _OPTIONS.get(field.name, f"--{field.name.replace('_', '-')}")
            message = f"{name} was made with {option} {actual}, not {given[field.name]}"
            if field.name == "key":
                message = f"{name} was made with {'another' if actual else 'no'} LSHDUP_HASH_KEY"
            raise ArtifactError(message, remedy)


def list_definition(collection: "Collection") -> Iterator[str]:
    """Yield the options that define the sets and signatures of a collection, as typed.

    Those that have their default are skipped, but for --tokens and -k.
    """
    if collection.shingle.of_bytes:
        yield "--same bytes"
        return
    yield f"--tokens {collection.shingle.tokens} -k {collection.shingle.k}"
    sketch, shingle_filter = collection.sketch, collection.shingle_filter
    filter_params = shingle_filter.params if shingle_filter is not None else FilterParams()
    for params in (collection.shingle, sketch or SketchParams(), filter_params):
        default = type(params)()
        for name, value in params.to_json().items():
            if name in ("tokens", "k", "least_shingles") or value == getattr(default, name):
                continue
            flag = f"--{name.replace('_', '-')}"
            written = f"{value:g}" if isinstance(value, float) else value
            yield _UNQUOTED.get(name, flag if value is True else f"{flag} {written}")
