"""What the listings look like as JSON: the columns of each, in their order, as a JSON Schema. Printed by `lshdup schema`.

The promise: within a version, columns keep their names, types and places; new ones come last. Pure Python, no NumPy.
"""

from typing import Any

VERSION = 1

Schema = dict[str, Any]

_NAME = {
    "type": "string",
    "description": "A path. A byte that is not UTF-8 is a lone surrogate, U+DC80 to U+DCFF, as of os.fsdecode.",
}
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_FLAG = {"type": "boolean"}


def _or_null(schema: Schema) -> Schema:
    return schema | {"type": [schema["type"], "null"]}


#: A bound that says nothing where it is more than 1.
_UNION = _NUMBER | {
    "description": "bands * similarity^rows: at least the probability, near it where both are small; may exceed 1."
}
_BAND_NUMBERS = (
    "near", "found", "found_low", "found_high", "found_expected", "false_positives", "false_positives_low", "false_positives_high",
    "false_positives_expected", "false_positive_rate", "false_negatives", "false_negatives_expected", "false_negative_rate",
)  # fmt: skip
_PAIR = {"a": _NAME, "b": _NAME, "similarity": _SHARE}
_BANDS = {"scheme": _TEXT, "perms": _COUNT, "bands": _COUNT, "rows": _COUNT}

#: The columns of each listing, in order.
LISTINGS: dict[str, Schema] = {
    "pairs": _PAIR,
    "pairs-against": _PAIR | {"verified": {"enum": ["exact", "estimate"]}},
    "pairs-histogram": {"threshold": _SHARE, "pairs": _COUNT, "documents": _COUNT, "groups": _COUNT},
    "clusters": {"group": _COUNT, "role": {"enum": ["keep", "drop"]}, "name": _NAME, "similarity": _SHARE,
                 "copy": {"enum": ["yes", "no"]}, "smallest": _SHARE},
    "clusters-names": {"name": _NAME},
    "query": {"similarity": _SHARE, "name": _NAME, "query": _NAME},
    "shingle": {"shingle": _TEXT, "text": _TEXT},
    "show": {"kind": {"enum": ["alike", "removed", "added", "moved away", "moved here"]}, "tokens": _COUNT, "a_start": _COUNT,
             "b_start": _COUNT, "a": _or_null(_TEXT), "b": _or_null(_TEXT)},
    "show-shingles": {"in": {"enum": ["both", "a", "b"]}, "shingle": _TEXT, "text": _TEXT},
    "accuracy": {"scheme": _TEXT, "perms": _COUNT, "epsilon": _SHARE, "runs": _COUNT, "pairs": _COUNT, "off": _NUMBER,
                 "off_error": _or_null(_NUMBER), "off_worst": _NUMBER, "expected": _NUMBER, "bias": _NUMBER, "rmse": _NUMBER,
                 "largest": _NUMBER},
    "accuracy-bands": _BANDS | {"half": _SHARE, "queries": _COUNT} | dict.fromkeys(_BAND_NUMBERS, _NUMBER),
    "accuracy-found": _BANDS | {"similarity_from": _SHARE, "similarity_to": _SHARE, "pairs": _COUNT, "found": _COUNT}
                      | dict.fromkeys(("share", "share_low", "share_high", "expected"), _or_null(_SHARE)),
    "timing": {"scheme": _TEXT, "perms": _COUNT, "part": _TEXT, "comparisons": _COUNT, "median": _NUMBER, "smallest": _NUMBER,
               "largest": _NUMBER, "runs": _COUNT},
    "curve": {"similarity": _SHARE, "probability": _SHARE, "approximation": _UNION},
    "curve-all": {"bands": _COUNT, "rows": _COUNT, "half": _SHARE, "estimate": _SHARE, "chosen": {"enum": ["chosen", ""]}},
}  # fmt: skip

_REMOVED = {"removed": {"enum": ["template", "common", ""]}}

#: Columns that follow where an option asks for them: --examples of the histogram; --template and --ignore-common, now or in the last run.
SOMETIMES: dict[str, Schema] = {
    "pairs-histogram": {"similarity": _or_null(_SHARE), "a": _or_null(_NAME), "b": _or_null(_NAME)},
    "shingle": _REMOVED,
    "show-shingles": _REMOVED,
}

#: Columns that are named after a value that was asked for: `miss at 0.9`, `candidate at 0.8`.
_NAMED_BY_VALUE = {"curve-all": {"^(miss|candidate) at [0-9.]+$": _SHARE}}

#: When some columns are there, for people.
_WHEN = {
    "pairs-histogram": "the last three unless --examples 0",
    "query": "query if several DOC are asked for, or in json",
    "shingle": "removed if --template or --ignore-common is in force",
    "show-shingles": "removed if --template or --ignore-common is in force",
    "curve-all": "before the last one: miss at T, candidate at S, …",
}

_DOCUMENT = {
    "name": _NAME,
    "bytes": _COUNT,
    "encoding": _TEXT,
    "detected": _FLAG,
    "html": _FLAG,
    "extracted": _FLAG,
    "tokens": _COUNT,
    "shingles": _COUNT,
    "office": {
        "type": "string",
        "description": "The kind of office document: pdf, docx, … or empty.",
    },
    "packed": {"enum": ["gzip", "zstd", ""]},
}


def columns(listing: str, *, sometimes: bool = False) -> tuple[str, ...]:
    """Their names, in order. sometimes : with those that follow where an option asks for them.

    >>> columns("pairs"), columns("shingle", sometimes=True)
    (('a', 'b', 'similarity'), ('shingle', 'text', 'removed'))
    """
    return (*LISTINGS[listing], *(SOMETIMES.get(listing, ()) if sometimes else ()))


def described(listing: str) -> str:
    """All columns for people, in order, with when they are there.

    >>> described("pairs-against"), described("query")
    ('a, b, similarity, verified', 'similarity, name, query (query if several DOC are asked for, or in json)')
    """
    when = f" ({_WHEN[listing]})" if listing in _WHEN else ""
    return f"{', '.join(columns(listing, sometimes=True))}{when}"


def _object(properties: Schema, sometimes: Schema | None = None, **more: Any) -> Schema:
    return {
        "type": "object",
        "properties": properties | (sometimes or {}),
        "required": list(properties),
        **more,
    }


def row_schema(listing: str) -> Schema:
    """Of one row: a line of jsonl, an element of json."""
    named = _NAMED_BY_VALUE.get(listing)
    return _object(
        LISTINGS[listing], SOMETIMES.get(listing), **({"patternProperties": named} if named else {})
    )


def schema(listing: str) -> Schema:
    """Of all that `--format json` prints: an array of rows; for `show` one object."""
    if listing != "show":
        return {"type": "array", "items": row_schema(listing)}
    return _object(
        {
            "a": _object(_DOCUMENT),
            "b": _object(_DOCUMENT),
            "similarity": _SHARE,
            "estimate": _or_null(_SHARE),
            "standard_error": _or_null(_NUMBER),
            "shared": _COUNT,
            "only_a": _COUNT,
            "only_b": _COUNT,
            "removed_a": _COUNT,
            "removed_b": _COUNT,
            "shingle": {"type": "object", "description": "The parameters that made the shingles."},
            "differences": {"type": "array", "items": row_schema("show")},
        }
    )


def document(listing: str, *, row: bool = False) -> Schema:
    """A schema as it stands alone, with its version."""
    what = f"one line of --format jsonl: {listing}" if row else f"--format json: {listing}"
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:lshdup:{listing}{':row' if row else ''}:{VERSION}",
        "title": f"lshdup, {what}",
    }
    return head | (row_schema(listing) if row else schema(listing))
