"""The columns of every listing: the single source of names, types and places.

Within a version of lshdup's output, columns keep their names, types and places; new ones come last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lshdup.base.frozen import dataclass


@dataclass(frozen=True)
class Type:
    """The type of a column's cells.

    words : what docs/reference/columns.md calls the type.
    cell : the Python type of a cell.
    values : the only cells; empty if any cell of this type may be.
    nullable : whether a cell may be empty, null in JSON.
    most : the largest number, if there is one; the smallest is 0 then.
    or_integer : whether a text may be an integer in JSON.
    """

    words: str
    cell: type
    values: tuple[str, ...] = ()
    nullable: bool = False
    most: float | None = None
    or_integer: bool = False


#: The version of the columns. It rises when a column changes, goes or moves, not for a new one.
VERSION = 1

NAME, TEXT = Type("name", str), Type("text", str)
ID = Type("name; in JSON an integer if the id is one", str, or_integer=True)
COUNT, NUMBER, SHARE = Type("count", int), Type("number", float), Type("share", float, most=1)
FLAG = Type("`yes` or `no`; in JSON true or false", bool)


def _or_empty(column: Type) -> Type:
    return replace(column, words=f"{column.words}, or empty", nullable=True)


#: How much two documents are the same.
SAME = Type("`bytes`, `text`, or empty", str, ("bytes", "text"), nullable=True)


def _one_of(*values: str) -> Type:
    words = " or ".join(f"`{value}`" if value else "empty" for value in values)
    return Type(words, str, values)


#: What start and end count bytes of.
_OFFSETS = Type(
    "bytes of what start and end are: `bytes`, the document as it is stored; `field`, the text "
    "field of a row; `text`, the text that was extracted (of a page the visible one), as UTF-8",
    str,
    ("bytes", "field", "text"),
)

_PAIR = {"a": NAME, "b": NAME, "similarity": SHARE}
_SHARES = {"containment": SHARE, "similarity": SHARE}
_SIZES = {"a_shingles": COUNT, "b_shingles": COUNT}
#: Which of two documents is inside the other; "both" if they have as many shingles.
_RELATION = {"relation": _one_of("inside", "holds", "both")}
_BANDS = {"scheme": TEXT, "perms": COUNT, "bands": COUNT, "rows": COUNT}
_BAND_NUMBERS = (
    "near", "found", "found_low", "found_high", "found_expected", "false_positives",
    "false_positives_low", "false_positives_high",
    "false_positives_expected", "false_positive_rate", "false_negatives",
    "false_negatives_expected", "false_negative_rate",
)  # fmt: skip

#: The columns of each listing, in order.
LISTINGS: dict[str, dict[str, Type]] = {
    "pairs": _PAIR | {"same": SAME},
    "pairs-against": _PAIR | {"verified": _one_of("exact", "estimate"), "same": SAME},
    "pairs-containment": {"a": NAME, "b": NAME} | _SHARES | _SIZES | {"same": SAME},
    "pairs-unmatched": {"name": NAME},
    "pairs-histogram": {"threshold": SHARE, "pairs": COUNT, "documents": COUNT, "groups": COUNT,
                        "similarity": _or_empty(SHARE), "a": _or_empty(NAME),
                        "b": _or_empty(NAME)},
    "clusters": {"group": COUNT, "role": _one_of("keep", "drop", "other"), "name": NAME,
                 "similarity": SHARE, "copy": FLAG, "smallest": SHARE, "same": SAME},
    "clusters-names": {"name": NAME},
    "folders": {"a": NAME, "b": NAME, "similarity": SHARE, "containment": SHARE,
                "a_documents": COUNT, "b_documents": COUNT, "shared_documents": COUNT,
                "shared_bytes": COUNT},
    "passages": {"passage": COUNT, "tokens": COUNT, "places": COUNT, "documents": COUNT,
                 "text": _or_empty(TEXT), "document": NAME, "start": _or_empty(COUNT),
                 "end": _or_empty(COUNT), "token_start": COUNT, "token_end": COUNT,
                 "offsets": _OFFSETS},
    "passages-pairs": {"a": NAME, "b": NAME, "tokens": COUNT, "share_a": SHARE, "share_b": SHARE,
                       "longest": COUNT, "passages": COUNT},
    "passages-spans": {"document": NAME, "start": _or_empty(COUNT), "end": _or_empty(COUNT),
                       "offsets": _OFFSETS},
    "query": {"name": NAME, "similarity": SHARE, "same": SAME, "query": NAME},
    "query-containment": {"name": NAME} | _SHARES | {"shingles": COUNT} | _RELATION
                         | {"same": SAME, "query": NAME},
    "query-passages": {"name": NAME, "new_tokens": COUNT, "share": SHARE, "tokens": COUNT,
                       "query": NAME},
    "shingle": {"shingle": TEXT, "text": TEXT},
    "show": {"kind": _one_of("alike", "removed", "added", "moved away", "moved here"),
             "tokens": COUNT, "a_start": COUNT,
             "b_start": COUNT, "a": _or_empty(TEXT), "b": _or_empty(TEXT)},
    "show-folders": {"kind": _one_of("only a", "only b", "changed", "same"),
                     "a": _or_empty(NAME), "b": _or_empty(NAME), "similarity": _or_empty(SHARE),
                     "same": SAME},
    "show-group": {"variant": COUNT, "line": COUNT, "kept": TEXT, "text": TEXT, "name": NAME},
    "show-shared": {"tokens": COUNT, "a_start": COUNT, "b_start": COUNT, "a_line": COUNT,
                    "b_line": COUNT, "a": TEXT, "b": TEXT},
    "show-shingles": {"in": _one_of("both", "a", "b"), "shingle": TEXT, "text": TEXT},
    "accuracy": {"scheme": TEXT, "perms": COUNT, "epsilon": SHARE, "runs": COUNT, "pairs": COUNT,
                 "off": NUMBER,
                 "off_error": _or_empty(NUMBER), "off_worst": NUMBER, "expected": NUMBER,
                 "bias": NUMBER, "rmse": NUMBER,
                 "largest": NUMBER},
    "accuracy-bands": _BANDS | {"half": SHARE, "queries": COUNT} | dict.fromkeys(_BAND_NUMBERS,
                                                                                 NUMBER),
    "accuracy-found": _BANDS | {"similarity_from": SHARE, "similarity_to": SHARE, "pairs": COUNT,
                                "found": COUNT}
                      | dict.fromkeys(("share", "share_low", "share_high", "expected"),
                                      _or_empty(SHARE)),
    "timing": {"scheme": TEXT, "perms": COUNT, "part": TEXT, "comparisons": COUNT, "median": NUMBER,
               "smallest": NUMBER,
               "largest": NUMBER, "runs": COUNT},
    "curve": {"similarity": SHARE, "probability": SHARE, "approximation": NUMBER},
    "curve-all": {"bands": COUNT, "rows": COUNT, "half": SHARE, "estimate": SHARE,
                  "chosen": _one_of("chosen", "")},
}  # fmt: skip

#: When a column is printed, and columns with a value of an option in their name.
_NOTES = {
    "pairs": "tables of mails: subjects and dates too",
    "clusters": "tables of mails: subject and date too",
    "pairs-containment": "relation with --against",
    "passages": "text in the first row of each; whole but in tables and tsv",
    "query": "query if several DOC are asked for, or in json",
    "query-containment": "query likewise",
    "query-passages": "query likewise",
    "shingle": "removed if --template or --ignore-common is in force",
    "show-shingles": "removed if --template or --ignore-common is in force",
    "curve-all": "before the last one: miss at T, candidate at S, …",
}

#: One of the two documents of `show --format json`.
DOCUMENT = {"name": NAME, "bytes": COUNT, "encoding": TEXT, "detected": FLAG, "html": FLAG,
            "extracted": FLAG, "tokens": COUNT, "shingles": COUNT, "office": TEXT,
            "packed": _one_of("gzip", "zstd", "")}  # fmt: skip

#: Columns of `pairs --removed` behind those of `clusters`.
CONTAINED = {"containment": SHARE} | _RELATION

#: The last columns of `--removed` where mails are compared: of the mail that goes.
OF_MAILS = {"subject": _or_empty(TEXT), "date": _or_empty(TEXT),
            "message_id": _or_empty(TEXT)}  # fmt: skip

#: The columns of `clusters --removed`: what goes, and what is kept instead.
REMOVED = {"id": ID, "kept": ID, "similarity": SHARE, "file": NAME, "kept_file": NAME,
           "same": SAME}  # fmt: skip

#: The columns of `clusters --removed` without --write: what may go, and why.
MAY_GO = {"name": NAME, "kept": NAME, "reason": _one_of("bytes", "text", "similarity"),
          "similarity": SHARE, "size": COUNT, "time": TEXT, "sha256": TEXT,
          "kept_sha256": TEXT}  # fmt: skip

#: The columns that `clusters --annotate` adds: the group, empty for a row that is alone; what is
#: kept, the similarity to it, and whether the two are the same, all empty for a row that was not
#: compared; and the rows of the group.
ANNOTATIONS = {"duplicate_group": _or_empty(COUNT), "duplicate_kept": _or_empty(ID),
               "duplicate_similarity": _or_empty(SHARE), "duplicate_same": SAME,
               "duplicate_group_size": COUNT}  # fmt: skip

#: The columns of `passages --removed`: what is cut, and what is not, and why.
REMOVED_PASSAGES = {"id": ID, "file": NAME, "start": _or_empty(COUNT), "end": _or_empty(COUNT),
                    "text": _or_empty(TEXT), "skipped": _or_empty(TEXT)}  # fmt: skip

#: Lists that are files of their own, in the form of listings.
LISTS = {
    "clusters-removed": REMOVED,
    "clusters-may-go": MAY_GO,
    "clusters-annotated": ANNOTATIONS,
    "pairs-removed": REMOVED | CONTAINED,
    "passages-removed": REMOVED_PASSAGES,
}

_FILTERED = {"removed": _one_of("template", "common", "")}

#: Columns behind the others that an option adds, or that only mails have.
OPTIONAL: dict[str, dict[str, Type]] = {
    "pairs-containment": _RELATION,
    "shingle": _FILTERED,
    "show-shingles": _FILTERED,
    "clusters-removed": OF_MAILS,
    "pairs-removed": OF_MAILS,
}

#: Columns with a value of an option in their name, as a regular expression.
BY_VALUE = {"curve-all": {r"^(miss|candidate) at [0-9.]+$": SHARE}}

#: The numbers of `show --format json`, which prints one object.
COMPARISON = {"similarity": SHARE, "containment": SHARE, "estimate": _or_empty(SHARE),
              "standard_error": _or_empty(NUMBER), "shared": COUNT, "only_a": COUNT,
              "only_b": COUNT, "removed_a": COUNT, "removed_b": COUNT, "share_a": SHARE,
              "share_b": SHARE}  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """The columns of a listing, in order. An iteration yields their names.

    listing : its name. types : by the name of a column.
    """

    listing: str
    types: Mapping[str, Type]

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)


def columns_of(
    listing: str, more: Mapping[str, Type] | None = None, *, optional: bool = False
) -> Columns:
    """Return the columns of a listing or list in order.

    more : further ones, behind. optional : with the columns that an option adds.

    >>> [*columns_of("shingle")], [*columns_of("shingle", optional=True)]
    (['shingle', 'text'], ['shingle', 'text', 'removed'])
    """
    added = OPTIONAL.get(listing, {}) if optional else {}
    return Columns(listing, {**(LISTINGS | LISTS)[listing], **added, **(more or {})})


def describe(listing: str) -> str:
    """Return the names of all columns with a note on when they are printed.

    >>> describe("pairs-against")
    'a, b, similarity, verified, same'
    >>> describe("query")
    'name, similarity, same, query (query if several DOC are asked for, or in json)'
    """
    note = f" ({_NOTES[listing]})" if listing in _NOTES else ""
    return f"{', '.join(columns_of(listing, optional=True))}{note}"
