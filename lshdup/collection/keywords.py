"""The keywords of the class interface -> parameters."""

import os
from collections.abc import Iterable
from typing import TypedDict

from lshdup.errors import ParameterError
from lshdup.params import DocumentParams, Params, ShingleParams, SketchParams
from lshdup.utils.messages import did_you_mean
from lshdup.utils.parallel import count_processors


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


#: The keywords of `NearDuplicates` that are none of `MinHash`.
OF_PAIRS = ("num_bands", "threshold", "recall", "measure")


def params_of(perms: int, options: Options, others: tuple[str, ...] = ()) -> Params:
    """Return the parameters that keywords say. others : keywords that are said in another way.

    Raise ParameterError for an unknown keyword.
    """
    known = ["num_permutations", *others, *Options.__annotations__]
    for name in options.keys() - set(known):
        message = f"{name!r} is no keyword here"
        raise ParameterError(message, did_you_mean(name, known) or f"there are {', '.join(known)}")
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


def jobs_of(options: Options) -> int:
    """Return the number of threads."""
    return options.get("jobs") or count_processors()


def is_filtered(options: Options) -> bool:
    """Return whether keywords say which shingles are filtered."""
    return bool(options.get("ignore_common") or options.get("templates"))
