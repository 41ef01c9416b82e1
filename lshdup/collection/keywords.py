"""The keywords of the class interface -> parameters."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, TypedDict, get_type_hints

from lshdup.base.messages import did_you_mean
from lshdup.base.parallel import count_processors
from lshdup.errors import LshdupError, ParameterError
from lshdup.params import DocumentParams, Params, ShingleParams, SketchParams


class Options(TypedDict, total=False):
    """The keywords of `MinHash` and `NearDuplicates`; defaults are those of the command line."""

    #: How a text becomes a shingle set: see `ShingleParams`. R1's terms are ``tokens="terms"``.
    tokens: str
    k: int | None
    bag: bool
    normalize: bool
    keep_case: bool
    markup: str
    mail: bool
    min_tokens: int
    hash_key: str
    #: "fast", "classic" or "linear" (see `lshdup.lsh.signatures`), and the source of randomness.
    scheme: str
    seed: int
    #: The filter: shingles of more documents than this limit, and shingles of these texts.
    ignore_common: float
    templates: Iterable[str]
    #: Of files of records: the fields of a record with its text and its name.
    text_field: str
    id_field: str
    #: Threads; None: one a processor. The result is the same for any number.
    jobs: int | None


#: What values of a type are called, and the classes of values that it takes.
_KINDS: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("a str", (str,)),
    bool: ("True or False", (bool,)),
    int: ("a whole number", (Integral,)),
    int | None: ("a whole number, or None", (Integral, type(None))),
    float: ("a number", (Real,)),
    Iterable[str]: ("a list of str", (Iterable,)),
}

#: Options of the command line whose keywords have other names.
_KEYWORDS = {"-k": "k", "--perms": "num_permutations", "--bands": "num_bands"}


def params_of(
    perms: int, options: Options, others: Mapping[str, tuple[Any, Any]] | None = None
) -> Params:
    """Return the parameters that keywords say.

    others : keywords of `NearDuplicates` that are none of `MinHash`, with their type and value.

    Raise ParameterError for an unknown keyword, or a value of another type.
    """
    kinds = {"num_permutations": int, **get_type_hints(Options)}
    values: dict[str, Any] = {"num_permutations": perms, **options}
    for name, (kind, value) in (others or {}).items():
        kinds[name], values[name] = kind, value
    for name, value in values.items():
        if name not in kinds:
            message = f"{name!r} is no keyword here"
            names = f"there are {', '.join(kinds)}"
            raise ParameterError(message, " ".join((did_you_mean(name, kinds), names)).strip())
        _check_kind(name, value, kinds[name])
    for name in ("k", "jobs"):
        value = values.get(name)
        if value is not None and value < 1:
            message = f"{name} is {value}; it must be at least 1"
            raise ParameterError(message, "or None, for the default")
    shingle = ShingleParams(
        options.get("tokens", "word"),
        options.get("k") or 0,
        options.get("bag", False),
        options.get("normalize", True),
        options.get("keep_case", False),
        markup=options.get("markup", "auto"),
        mail=options.get("mail", False),
        min_tokens=options.get("min_tokens", 0),
        secret=os.fsencode(options.get("hash_key", "")),
    )
    sketch = SketchParams(options.get("scheme", "fast"), perms, options.get("seed", 1))
    fields = DocumentParams(
        text_field=options.get("text_field", ""), id_field=options.get("id_field", "")
    )
    return Params(documents=fields, shingle=shingle, sketch=sketch)


def _check_kind(name: str, value: object, kind: Any) -> None:
    """Raise ParameterError if the value of a keyword has another type."""
    what, classes = _KINDS[kind]
    is_one = isinstance(value, classes) and (bool in classes or not isinstance(value, bool))
    if not is_one or (kind == Iterable[str] and isinstance(value, str)):
        message = f"{name} is {value!r}; it must be {what}"
        raise ParameterError(message)


@contextmanager
def in_keywords() -> Iterator[None]:
    """Name keywords instead of options of the command line in the errors of a block."""

    def keyword(option: re.Match[str]) -> str:
        name = _KEYWORDS.get(option[0], option[0].lstrip("-").replace("-", "_"))
        return name if name in known else option[0]

    known = {*_KEYWORDS.values(), "threshold", "recall", "measure", *Options.__annotations__}
    try:
        yield
    except LshdupError as error:
        error.message = re.sub(r"(?<![\w-])--?[a-z][a-z-]*", keyword, error.message)
        error.hint = re.sub(r"(?<![\w-])--?[a-z][a-z-]*", keyword, error.hint)
        error.args = (error.message,)
        raise


def jobs_of(options: Options) -> int:
    """Return the number of threads."""
    return options.get("jobs") or count_processors()


def is_filtered(options: Options) -> bool:
    """Return whether keywords say which shingles are filtered."""
    return bool(options.get("ignore_common") or options.get("templates"))
