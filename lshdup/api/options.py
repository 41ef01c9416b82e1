"""The keywords of programs -> parameters, a run, and the collection of their documents."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from lshdup.base.params import (
    FEW_TOKENS,
    STORED_SCHEMES,
    DocumentParams,
    Params,
    ShingleParams,
    SketchParams,
    key_name,
)
from lshdup.base.ragged import distinct
from lshdup.base.run import Run, count_processors
from lshdup.base.wording import did_you_mean
from lshdup.collection.collect import EVERY_SET, collect, sketch_collection
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import build_filter, filter_collection
from lshdup.collection.from_texts import Texts, check_text, collect_texts
from lshdup.errors import RERUN, ArtifactError, InputError, ParameterError
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import Shingler
from lshdup.sources.finding import find_documents
from lshdup.workspace.request import merge_params

#: A folder or file; or texts in memory.
Documents = str | os.PathLike[str] | Texts


class Options(TypedDict, total=False):
    """The keywords of `MinHash` and `NearDuplicates`; defaults are those of the command line."""

    #: How a text becomes a shingle set: see `ShingleParams`. R1's terms are ``tokens="terms"``.
    tokens: str
    k: int | None
    bag: bool
    normalize: bool
    keep_case: bool
    join_hyphens: bool
    fold: str
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
    #: Of files of records, and of tables: the fields of a record with its text and its name.
    text_field: str
    id_field: str
    #: Threads; None: one a processor. The result is the same for any number.
    jobs: int | None


def run_of(options: Options) -> Run:
    """Return a run that says nothing, with as many threads as `jobs` says."""
    return Run.quiet(options.get("jobs") or count_processors())


def collect_documents(
    run: Run, documents: Documents, params: Params, options: Options
) -> Collection:
    """Return a collection with its sets and signatures, filtered."""
    is_filtered = bool(options.get("ignore_common") or options.get("templates"))
    is_signed = params.sketch.scheme in STORED_SCHEMES and not is_filtered
    collection = _collect_sets(run, documents, params, params.sketch if is_signed else None)
    if not is_filtered:
        is_made = collection.signatures is not None
        return collection if is_made else sketch_collection(run, collection, params.sketch)
    listed = enumerate(options.get("templates", ()))
    texts = [check_text(f"templates[{at}]", text, params.shingle) for at, text in listed]
    template = distinct(Shingler(params.shingle.of_any_size()).shingle_texts(texts).values)[0]
    least = params.shingle.count_shingles(options.get("min_tokens", FEW_TOKENS))
    requested = ShingleFilter.requested(template, options.get("ignore_common", 0.0), least)
    shingle_filter = build_filter(run, collection, requested)
    filtered = filter_collection(run, collection, shingle_filter)
    return sketch_collection(run, filtered, params.sketch)


def _collect_sets(
    run: Run, documents: Documents, params: Params, sketch: SketchParams | None
) -> Collection:
    shingle = params.shingle
    if isinstance(documents, str | os.PathLike):
        ids = shingle.tokens == "ids"
        found = find_documents(run, [os.fsencode(documents)], params.documents, id_lists=ids)
        collection = collect(run, found, shingle, sketch, keep=EVERY_SET)
        _refuse_nothing(run, documents, collection, params)
        return collection
    return collect_texts(documents, shingle, params.documents)


def _refuse_nothing(
    run: Run, documents: str | os.PathLike[str], collection: Collection, params: Params
) -> None:
    """Raise InputError if a folder or file holds no documents, or only records without texts."""
    if len(collection.documents):
        return
    skipped = [each.skipped for each in collection.skipped]
    find_documents(run.but(skipped=skipped.append), [os.fsencode(documents)], params.documents)
    row = next((each for each in skipped if each.reason.is_of_row), None)
    if row is not None:
        message = f"{documents}: no record has a text ({os.fsdecode(row.name)}: {row.reason})"
        hint = "name its field with text_field, or give texts: a list, or a mapping of names"
        raise InputError(message, hint)
    if not collection.skipped:
        message = f"{documents}: there are no documents in it"
        raise InputError(message, "name a folder with text files")


# --- keywords -> parameters -----------------------------------------------------------------------

#: Options of the command line whose keywords have other names.
_KEYWORDS = {"perms": "num_permutations", "bands": "num_bands"}


def params_of(perms: int, options: Options, *others: str) -> Params:
    """Return the parameters that keywords say. others : keywords that are none of `Options`.

    Raise ParameterError for an unknown keyword, or a value outside its domain.
    """
    known = ("num_permutations", *Options.__annotations__, *others)
    for name in options:
        if name not in known:
            message = f"{name!r} is no keyword here"
            names = f"there are {', '.join(known)}"
            raise ParameterError(message, " ".join((did_you_mean(name, known), names)).strip())
    for name, value in (("k", options.get("k")), ("jobs", options.get("jobs"))):
        is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (is_whole and value >= 1):
            must = "at least 1" if is_whole else "a whole number"
            message = f"{name} is {value!r}; it must be {must}"
            raise ParameterError(message, "or None, for the default")
    templates, key = options.get("templates", ()), options.get("hash_key", "")
    is_list = isinstance(templates, Iterable) and not isinstance(templates, str | bytes)
    for name, given, fits, must in (
        ("templates", templates, is_list, "a list of str"),
        ("hash_key", key, isinstance(key, str), "a text"),
    ):
        if not fits:
            message = f"{name} is {given!r}; it must be {must}"
            raise ParameterError(message)
    given = {**options, "k": options.get("k") or 0, "perms": perms, "secret": os.fsencode(key)}
    return Params(
        merge_params(DocumentParams, given),
        merge_params(ShingleParams, given),
        merge_params(SketchParams, given),
    )


def path_of(given: object) -> Path:
    """Return an absolute path. Raise InputError for what no file system can name."""
    if isinstance(given, str | os.PathLike):
        with suppress(UnicodeEncodeError):
            name = os.fsencode(given)
            if b"\0" not in name:
                return Path(os.fsdecode(name)).absolute()
    message = f"{given!r} is no path"
    raise InputError(message, "give the path of a folder or file")


def given_of(perms: int | None, options: Options) -> dict[str, Any]:
    """Return the parameters that keywords set explicitly, by field name, as those of a command.

    Raise ParameterError for keywords that say which documents are read.
    """
    for name in ("templates", "text_field", "id_field"):
        if options.get(name):
            message = f"{name} is given, but the documents of a store have been read"
            raise ParameterError(message, f"leave {name} out")
    given = {name: value for name, value in options.items() if value is not None}
    if perms is not None:
        given["perms"] = perms
    if secret := os.fsencode(options.get("hash_key", "")):
        given |= {"secret": secret, "key": key_name(secret)}
    return given


@contextmanager
def in_keywords() -> Iterator[None]:
    """Name keywords instead of options of the command line in the errors of a block."""

    def name_keywords(words: str) -> str:
        words = words.replace("an LSHDUP_HASH_KEY", "a hash_key")
        return re.sub(
            r"(?<![\w-])(?:--|-(?=k\b))([a-z][a-z-]*)",
            lambda option: _KEYWORDS.get(option[1], option[1].replace("-", "_")),
            words.replace("LSHDUP_HASH_KEY", "hash_key"),
        )

    try:
        yield
    except ParameterError as error:
        raise ParameterError(name_keywords(error.message), name_keywords(error.hint)) from None
    except ArtifactError as error:  # Its hint is a command to type.
        hint = error.hint.replace(RERUN, "run `lshdup index DOCS`").replace("--store DIR", "store")
        hint = re.sub(r"( \(LSHDUP_WAIT=SECONDS\))?, or use .*|; a store elsewhere .*", "", hint)
        raise ArtifactError(name_keywords(error.message), hint) from None
