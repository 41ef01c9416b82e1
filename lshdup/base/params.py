"""Every parameter of the method: its default, its domain, its check. The only home of defaults.

Click parses text into these frozen classes, one for each arrow of the data flow. Algorithms see
only these classes. Pure Python, no NumPy.
"""

import os
import re
from collections.abc import Collection
from dataclasses import field, fields, replace
from numbers import Integral, Real
from typing import Any, Self

from lshdup.base.frozen import dataclass
from lshdup.base.system import blake2b
from lshdup.base.wording import quoted
from lshdup.errors import ParameterError

# --- the values of options that are one of a few words: a word is added here first ---

FOLDS = ("none", "marks", "accents")
TOKENS = ("word", "symbols", "char", "terms", "ids")
HASHES = ("mix64", "poly31")
#: Schemes of signatures; "linear" is for experiments, not for a store.
SCHEMES = ("fast", "classic", "linear")
STORED_SCHEMES = SCHEMES[:2]
MEASURES = ("jaccard", "containment")
SAME, MAIL_QUOTES = ("bytes", "text"), ("keep", "drop")
MARKUP = ("auto", "visible", "keep")  # of `--markup`
#: Sections that `--split` knows beside a regular expression.
SPLITS = ("heading", "page", "paragraph")
#: The name of standard input among DOCS; a file of this name is ``./-``.
STDIN = b"-"
#: What a stream may hold: the endings of such files, and mailboxes.
STREAMS = ("jsonl", "csv", "tsv", "parquet", "mbox", "tar", "zip", "warc")
LINKAGES = ("representative", "single")
#: Rules of `--keep`, and what each keeps.
KEEP = {
    "shortest-path": "the shortest path (no name of a copy, then fewest folders and characters)",
    "first": "the first as DOCS were named",
    "central": "the most similar to all others of its group",
    "longest": "the longest",
    "shortest": "the shortest",
    "newest": "the newest",
    "oldest": "the oldest",
    "path-order": "the first in byte order of the names",
}
#: The rules that Spark has.
SPARK_KEEP = ("shortest-path", "longest", "shortest", "path-order")

# --- defaults and limits ---

DEFAULT_K = {"word": 3, "symbols": 5, "char": 9, "terms": 1, "ids": 1}
#: What `--noisy` sets, for texts with many wrong characters, as OCR leaves them; and of `passages`.
#: With 720 rows of a signature, bands have four rows: far fewer candidates than with two or three.
NOISY = {"tokens": "char", "k": 5, "threshold": 0.4, "perms": 720}
NOISY_PASSAGES = {"tokens": "char", "least": 40, "gap": 8}
DEFAULT_MAX_BYTES = 256 * 1024 * 1024
DEFAULT_TEXT_FIELD = "text"
DEFAULT_STORE = ".lshdup"
#: The file of accepted pairs beside the documents; it is no document.
ACCEPTED_FILE = "lshdup-accepted.jsonl"
#: With less memory, the process that reads office documents does not start.
LEAST_MEMORY = 128 * 1024 * 1024
#: Bytes of the longest text: positions are 32-bit numbers, and kernels read past the end.
LONGEST = (1 << 31) - 1024
#: The most tokens in a shingle, and rows in a signature.
MAX_K, MAX_PERMS = 1000, 1 << 16
#: The most places that are compared in pairs.
MAX_COMMON = 1000


def _check(condition: bool, message: str, hint: str = "") -> None:
    if not condition:
        raise ParameterError(message, hint)


def _check_choice(option: str, value: str, choices: Collection[str]) -> None:
    _check(value in choices, f"{option} is {value!r}; it must be one of {', '.join(choices)}")


def _check_range(option: str, value: int, least: int, most: int, unit: str = "") -> None:
    is_in = least <= value <= most
    _check(is_in, f"{option} is {value}; it must be from {least} to {most}{unit}")


def _check_count(option: str, value: int) -> None:
    """Raise ParameterError for a number below 0, which stands for none."""
    _check(value >= 0, f"{option} is {value}; it must be at least 1")


def _check_share(ok: bool, value: float, option: str, domain: str) -> None:
    """Raise ParameterError if a share is outside its domain; suggest what a percentage would be."""
    typed = repr(float(value)).removesuffix(".0")  # All digits: 1.0000001 is not 1.
    _check(
        ok,
        f"{option} is {typed}; it must be {domain}",
        f"if {typed} % is meant, write {value / 100:.12g}" if 1.5 <= value <= 100 else "",
    )


#: What values of a type are called, and the class that they have.
_KINDS: dict[type, tuple[str, type]] = {
    str: ("a text", str),
    bool: ("true or false", bool),
    int: ("a whole number", Integral),
    float: ("a number", Real),
}


class _Params:
    """A class of parameters: its types, and its conversion to and from the header of artifacts."""

    def __post_init__(self) -> None:
        """Raise ParameterError for a value of another type than the default has."""
        for each in fields(self):  # type: ignore[arg-type]
            value, kind = getattr(self, each.name), type(each.default)
            if hasattr(value, "item"):  # NumPy's number, which JSON does not know.
                value = value.item()
                object.__setattr__(self, each.name, value)
            what, wanted = _KINDS.get(kind, (f"a {kind.__name__}", kind))
            fits = isinstance(value, wanted) and isinstance(value, bool) == (kind is bool)
            # A header may hold an integer that no float can be.
            fits = fits and (kind is not float or isinstance(value, float) or abs(value) < 1e308)
            if not fits:
                message = f"--{each.name.replace('_', '-')} is {value!r:.80}; it must be {what}"
                raise ParameterError(message)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters by name, without secrets."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.compare}  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the parameters that `to_json` gave. Raise ParameterError for anything else."""
        names = {each.name for each in fields(cls) if each.compare}  # type: ignore[arg-type]
        _check(isinstance(values, dict) and set(values) == names, "unknown or missing parameters")
        lists = {name: tuple(each) for name, each in values.items() if isinstance(each, list)}
        return cls(**values | lists)


@dataclass(frozen=True)
class FormatLimits(_Params):
    """Limits of the process that reads an office document.

    seconds : elapsed time.
    memory : bytes, where the system can limit them (Linux can).
    """

    seconds: float = 60.0
    memory: int = 2 << 30

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(
            0.0 < self.seconds <= 86400.0,
            f"--format-seconds is {self.seconds:g}; it must be above 0 and at most 86400",
        )
        _check(
            LEAST_MEMORY <= self.memory < 1 << 62,
            f"--format-memory is {self.memory}; it must be at least {LEAST_MEMORY}",
            "give it in bytes, or like 500MB or 2GB",
        )


DEFAULT_FORMATS = FormatLimits()


@dataclass(frozen=True)
class DocumentParams(_Params):
    """Which files below the named folders are documents, and the limits of reading.

    follow : follow symbolic links.
    hidden : take names that begin with a dot.
    gitignore : leave out what .gitignore files say.
    include, exclude : patterns of .gitignore.
    max_bytes : larger files are skipped.
    whole : what is compared are bytes, so that a mailbox in a folder is one file; and files of up
        to so many bytes are taken, whatever `max_bytes`. 0: texts are compared.
    text_field, id_field : fields of a record with its text and its name. Without a text field,
        records in folders are not read; without an id field, a record is called FILE:NUMBER.
    archives : open archives in folders.
    split : one of SPLITS, or a regular expression of lines that begin a document.
    stdin : one of STREAMS: what standard input, DOCS ``-``, and named pipes hold; "": they are no
        documents.
    formats : limits of reading office documents.
    """

    follow: bool = False
    hidden: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES
    whole: int = 0
    text_field: str = ""
    id_field: str = ""
    archives: bool = False
    split: str = ""
    stdin: str = ""
    formats: FormatLimits = DEFAULT_FORMATS

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_range("--max-bytes", self.max_bytes, 1, LONGEST)


@dataclass(frozen=True)
class ShingleParams(_Params):
    """How a text becomes a shingle set (docs/reference/definitions.md).

    tokens : word, symbols, char, terms or ids; of `WHOLE_DOCUMENTS` bytes, which no option says.
    k : tokens in a shingle; 0: the default of the tokens.
    bag : count repeats.
    normalize : NFKC.
    keep_case : no case folding.
    encoding : forced on every document; empty: recognised.
    markup : which documents are read as HTML, of which the visible text counts: auto, files named
        or begun so, and no records; visible, all that look like HTML; keep, none.
    mail : read every document that begins with mail headers as a mail.
    mail_headers : the text of a mail has all header fields, not only the subject.
    mail_quotes : keep or drop lines quoted from an earlier mail, and the signature.
    join_hyphens : a word that is broken by a hyphen at the end of a line is one word; else only in
        a text in which one line in 20 ends so.
    fold : marks, drop the vowel signs of Arabic and Hebrew, which readers leave out; accents, drop
        accents too.
    hash : mix64 (64 bits), or poly31 (the 32-bit hash of the lecture, R2; characters only).
    min_tokens : documents of fewer tokens have an empty set, and are not compared.
    key : name of the secret, by which artifacts know it; computed from the secret.
    secret : key for mix64, so that nobody without it can prepare texts with equal hashes; empty:
        none. It is never written.
    """

    tokens: str = "word"
    k: int = 0
    bag: bool = False
    normalize: bool = True
    keep_case: bool = False
    encoding: str = ""
    markup: str = "auto"
    mail: bool = False
    mail_headers: bool = False
    mail_quotes: str = "keep"
    join_hyphens: bool = False
    fold: str = "none"
    hash: str = "mix64"
    min_tokens: int = 0
    key: str = ""
    secret: bytes = field(default=b"", repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.secret:
            object.__setattr__(self, "key", key_name(self.secret))
        _check(
            not self.key or re.fullmatch("[0-9a-f]{32}", self.key) is not None,
            "the name of the hash key is none",
        )
        is_mix = self.hash == "mix64"
        _check(not self.key or is_mix, "--hash poly31 takes no key", "leave --hash-key out")
        _check_choice("--tokens", self.tokens, (*TOKENS, "bytes"))
        _check_choice("--hash", self.hash, HASHES)
        _check_choice("--markup", self.markup, MARKUP)
        _check_choice("--mail-quotes", self.mail_quotes, MAIL_QUOTES)
        _check_choice("--fold", self.fold, FOLDS)
        is_folded = self.fold == "accents" and not self.normalize
        _check(not is_folded, "--fold accents cannot be combined with --no-normalize")
        _check_range("--min-tokens", self.min_tokens, 0, LONGEST - 1)
        if self.k == 0:
            object.__setattr__(self, "k", DEFAULT_K.get(self.tokens, 1))
        _check_range("-k", self.k, 1, MAX_K, " tokens")
        _check(
            self.tokens != "ids" or self.k == 1,
            f"-k is {self.k}, but ids are shingles already",
            "leave -k out with --tokens ids",
        )
        _check(
            is_mix or self.tokens == "char",
            "--hash poly31 is defined on characters only",
            "add --tokens char",
        )
        if self.encoding:
            try:
                "a".encode(self.encoding)  # not every codec is of text
            except (LookupError, ValueError):
                unknown = "which Python does not know as an encoding of text"
                message = f"--encoding is {quoted(self.encoding)}, {unknown}"
                raise ParameterError(message, "try utf-8, latin-1, cp1252 or utf-16") from None

    @property
    def of_bytes(self) -> bool:
        """Whether a document is compared by its bytes alone: it has no text."""
        return self.tokens == "bytes"

    def count_shingles(self, tokens: int) -> int:
        """Return the number of shingles of a document of so many tokens, if none is repeated."""
        return max(1, tokens - self.k + 1)

    def of_any_size(self) -> "ShingleParams":
        """Return the parameters without `min_tokens`, for texts that are named themselves."""
        return replace(self, min_tokens=0)

    def with_secret(self, secret: bytes) -> "ShingleParams":
        """Return the parameters with the secret, if its name is theirs."""
        if not secret or self.key != key_name(secret):
            return self
        return ShingleParams(**self.to_json(), secret=secret)


def key_name(secret: bytes) -> str:
    """Return 32 hexadecimal digits that identify a hash key."""
    return blake2b(secret, digest_size=16, person=b"lshdup key name").hexdigest()


DEFAULT_SHINGLE = ShingleParams()

#: The definition of documents that are compared by their bytes alone.
WHOLE_DOCUMENTS = ShingleParams(tokens="bytes")

#: Tokens of the smallest document that is not inside others, or like them, by accident.
FEW_TOKENS = 20


@dataclass(frozen=True)
class FilterParams(_Params):
    """Which shingles are filtered from every set before documents are compared.

    ignore_common : shingles of more documents than this limit: below 1 a share of the documents,
        from 1 on a number of them; 0: no limit.
    template : fingerprint of the shingles of template texts; empty: no template.
    least_shingles : a document that keeps fewer shingles has an empty set, and is not compared.
    """

    ignore_common: float = 0.0
    template: str = ""
    least_shingles: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        limit = float(self.ignore_common)
        object.__setattr__(self, "ignore_common", limit)  # one way to write it in headers
        _check(
            0 <= limit < 1 or (limit >= 1 and limit.is_integer()),
            f"--ignore-common is {limit:g}; it must be a share of the documents, above 0 and below"
            " 1, or a whole number of them",
        )


@dataclass(frozen=True)
class SketchParams(_Params):
    """How a shingle set becomes a signature.

    scheme : fast, classic or linear.
    perms : rows of a signature, K. More rows: smaller error, longer time, larger index.
    seed : source of all randomness.
    """

    scheme: str = "fast"
    perms: int = 128
    seed: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("--scheme", self.scheme, SCHEMES)
        _check_range("--perms", self.perms, 1, MAX_PERMS)
        _check(0 <= self.seed < 1 << 63, f"--seed is {self.seed}; it must be from 0 to 2^63 - 1")


@dataclass(frozen=True)
class BandParams(_Params):
    """The recall that the bands promise, or their shape.

    threshold : similarity t from which pairs are wanted.
    recall : smallest chance to meet a pair of similarity t. More: more candidates, longer time.
    bands, rows : override the choice; 0: chosen.
    buckets : number of buckets that keys are folded into (R1); 0: whole 64-bit keys.
    """

    threshold: float = 0.8
    recall: float = 0.99
    bands: int = 0
    rows: int = 0
    buckets: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        threshold, recall = self.threshold, self.recall
        _check_share(0.0 < threshold <= 1.0, threshold, "--threshold", "above 0 and at most 1")
        example = "between 0 and 1, for instance 0.99"
        _check_share(0.0 < recall < 1.0, recall, "--recall", example)
        _check_count("--bands", self.bands)
        _check_count("--rows", self.rows)
        _check(0 <= self.buckets < 1 << 62, f"--buckets is {self.buckets}; it must be at least 1")


@dataclass(frozen=True)
class PairParams(_Params):
    """How documents are compared: how candidate pairs are found, and which of them are pairs.

    max_bucket : larger buckets, exact duplicates counted once, give no candidates; 0: no limit.
    measure : "jaccard", or "containment", |A ∩ B| / min(|A|, |B|), for which no bands serve.
    exact : whether no pair may be missed; none of containment is.
    same : "text" or "bytes", if documents must be the same instead of similar; else empty.
    """

    max_bucket: int = 0
    measure: str = "jaccard"
    exact: bool = False
    same: str = ""

    @property
    def is_join(self) -> bool:
        """Whether sets are joined: no pair is missed, and no signature is needed."""
        return self.exact or self.measure == "containment"

    @property
    def by_bands(self) -> bool:
        """Whether bands find the pairs."""
        return not self.is_join and not self.same

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("--measure", self.measure, MEASURES)
        if self.same:
            _check_choice("--same", self.same, SAME)
        _check_count("--max-bucket", self.max_bucket)


@dataclass(frozen=True)
class AcrossParams(_Params):
    """Which documents are of one origin, so that they are not compared: one of three.

    depth : documents below the same DOC and the same so many folders in it.
    field : records that have the same value of this field.
    pattern : documents in whose names the first group of this regular expression, or if it has none
        all of it, matches the same.
    """

    depth: int = 0
    field: str = ""
    pattern: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(os.fsencode(self.pattern))
        except re.error as error:
            message = f"--across {quoted(self.pattern)} is no regular expression: {error}"
            raise ParameterError(message, "write folder, field:NAME, or another one") from None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what is typed as folder, folder:DEPTH, field:NAME or REGEX.

        >>> AcrossParams.parse("folder:2").depth, AcrossParams.parse("field:a:b").field
        (2, 'a:b')
        >>> AcrossParams.parse("^([a-z]+)/").pattern
        '^([a-z]+)/'
        """
        kind, mark, value = text.partition(":")
        if kind == "folder":
            is_depth = value.isdecimal() and int(value[:9]) > 0 and len(value) < 9
            _check(is_depth or not mark, f"--across {text}: DEPTH must be a whole number from 1")
            return cls(depth=int(value) if mark else 1)
        if kind == "field" and mark:
            _check(bool(value), "--across field: names no field", "write field:NAME")
            return cls(field=value)
        _check(bool(text), "--across is empty", "write folder, field:NAME, or a regular expression")
        return cls(pattern=text)

    def __str__(self) -> str:
        """Return the parameters as they are typed."""
        folder = f"folder:{self.depth}" if self.depth > 1 else "folder"
        return folder if self.depth else (self.field and f"field:{self.field}") or self.pattern


@dataclass(frozen=True)
class ClusterParams(_Params):
    """How documents are clustered, and which document of a cluster is kept.

    linkage : "representative": every member is similar enough to the document that is kept;
        "single": chains of pairs connect.
    keep : one of KEEP; empty: "first" if all documents are records, otherwise "shortest-path".
        shortest-path: the path with the fewest components that are named as copies are, then the
        fewest components, then characters; of one file the first record. first: as documents
        were named, whole files before parts, and within a file. central: the largest sum of
        similarities to all documents of the cluster. longest, shortest: most or fewest shingles.
        newest, oldest: time of the file. path-order: byte order of the names. Ties go to the first
        name in byte order; of "central", to the default rule. Whole files come before parts.
    prefer : folders and patterns that come before `keep`, the strongest first.
    keep_by : a field of rows that comes between the two: the greatest value is kept, or with :least
        behind the name the least.
    max_bucket : as for pairs.
    """

    linkage: str = "representative"
    keep: str = ""
    prefer: tuple[str, ...] = ()
    max_bucket: int = 0
    keep_by: str = ""

    @property
    def keep_field(self) -> tuple[str, bool]:
        """The field of `keep_by`, and whether its least value is kept."""
        return self.keep_by.removesuffix(":least"), self.keep_by.endswith(":least")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("--linkage", self.linkage, LINKAGES)
        if self.keep:
            _check_choice("--keep", self.keep, KEEP)
        _check_count("--max-bucket", self.max_bucket)
        _check(all(self.prefer), "--prefer is empty", "name a folder or a pattern")
        is_named = bool(self.keep_field[0]) or not self.keep_by
        _check(is_named, f"--keep-by {self.keep_by} names no field", "name one, as in score:least")


@dataclass(frozen=True)
class PassageParams(_Params):
    """Which passages are found (`passages.finding` has their definition).

    least : tokens of the shortest passage.
    max_documents : what is in more documents, or in twice as many places, is extended together.
    gap : most tokens in a row that may differ between the places of a passage; 0: verbatim.
    """

    least: int = 50
    max_documents: int = 100
    gap: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_range("--least", self.least, 2, LONGEST - 1, " tokens")
        _check_range("--max-documents", self.max_documents, 1, MAX_COMMON)
        _check(self.gap >= 0, f"--gap is {self.gap}; it must be at least 0")


@dataclass(frozen=True)
class Params:
    """The parameters of `pipeline.find_near_duplicates`: one bundle for each stage."""

    documents: DocumentParams = DocumentParams()
    shingle: ShingleParams = ShingleParams()
    sketch: SketchParams = SketchParams()
    bands: BandParams = BandParams()
    pairs: PairParams = PairParams()
