"""JSON Schemas (2020-12) of what is printed and written as JSON, made from the columns of listings.

A later version of the program prints what the schema of an earlier one describes, and perhaps more
columns behind the others, as long as `columns.VERSION` is the same.
"""

import json
from collections.abc import Container, Mapping
from typing import Any

import click

from lshdup.base.params import ACCEPTED_FILE, ShingleParams
from lshdup.base.wording import did_you_mean, quoted
from lshdup.cli.columns import (
    BY_VALUE,
    COMPARISON,
    DOCUMENT,
    ID,
    LISTINGS,
    LISTS,
    NAME,
    OPTIONAL,
    TEXT,
    VERSION,
    Type,
)
from lshdup.errors import ParameterError

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"

_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}

#: The rows in the objects of `show --format json`, which are one object instead of an array.
_ROWS = {"show": "differences", "show-shared": "passages"}

#: Lines that are of no listing, and the title of their schema.
_LINES = {
    "query-lines": "lshdup query - --lines",
    "accepted": ACCEPTED_FILE,
    "baseline": "a file of --baseline",
}

#: The fingerprint of a text.
_PRINT = {"type": "string", "pattern": "^[0-9a-f]{16}$"}


def list_schemas() -> list[str]:
    """Return the names of all schemas: of a document of JSON, or of a line of JSON Lines.

    >>> list_schemas()[:3]
    ['pairs.json', 'pairs.jsonl', 'pairs-against.json']
    """
    both = (f"{name}.{ending}" for name in LISTINGS | LISTS for ending in ("json", "jsonl"))
    # Files of rows are annotated as they are, and there are none of JSON.
    named = [each for each in both if each != "clusters-annotated.json"]
    return [*named, *(f"{name}.jsonl" for name in _LINES)]


def make_schema(name: str) -> Schema:
    """Return a schema by its name. A name without an ending is that of a line of JSON Lines.

    Errors: ParameterError for another name.

    >>> make_schema("pairs")["properties"]["similarity"]
    {'type': 'number', 'minimum': 0, 'maximum': 1}
    """
    names, (stem, _, ending) = list_schemas(), name.partition(".")
    if f"{stem}.{ending or 'jsonl'}" not in names:
        known = names if ending else [each.partition(".")[0] for each in names]
        hint = did_you_mean(name, known, "`lshdup help schema {}`".format)
        message = f"there is no schema {quoted(name)}"
        raise ParameterError(message, hint or "`lshdup help schema` lists the names")
    title = f"{_LINES.get(stem, stem)}: {'one document' if ending == 'json' else 'one line'}"
    made = {
        "$schema": _DRAFT,
        "$id": f"urn:lshdup:{VERSION}:{stem}.{ending or 'jsonl'}",
        "title": title,
    }
    if stem in _LINES:
        return made | (_of_answer() if stem == "query-lines" else _of_known_pairs())
    if ending != "json":
        return made | _of_row(stem)
    rows = {"type": "array", "items": _of_row(stem)}
    if stem not in _ROWS:
        return made | rows
    document = schema_of_object(schemas_of_cells(DOCUMENT))
    more = {"shingle": schema_of_object(_of_params()), _ROWS[stem]: rows}
    return made | schema_of_object(
        {"a": document, "b": document} | schemas_of_cells(COMPARISON) | more
    )


def print_schema(words: list[str]) -> None:
    """Print the schema that is named, or the names of all.

    Errors: ParameterError for another name, or several.
    """
    if len(words) > 1:
        message = f"`lshdup help schema` takes one name, and here are {len(words)}"
        raise ParameterError(message, f"run `lshdup help schema {quoted(words[0])}`")
    text = json.dumps(make_schema(words[0]), indent=1) if words else "\n".join(list_schemas())
    click.echo(text)


def _of_row(name: str) -> Schema:
    columns, more = (LISTINGS | LISTS)[name], OPTIONAL.get(name, {})
    row = schema_of_object(schemas_of_cells(columns | more), more)
    by_value = schemas_of_cells(BY_VALUE.get(name, {}))
    return row | ({"patternProperties": by_value} if by_value else {})


def schema_of_object(properties: Mapping[str, Schema], optional: Container[str] = ()) -> Schema:
    """Return the schema of an object, which may have more properties: later versions add some."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def schemas_of_cells(columns: Mapping[str, Type]) -> dict[str, Schema]:
    """Return the schemas of cells, by the names of their columns."""
    return {name: _of_cell(column) for name, column in columns.items()}


def _of_cell(column: Type) -> Schema:
    kinds = [_KINDS[column.cell]] + ["integer"] * column.or_integer + ["null"] * column.nullable
    cell: Schema = {"type": kinds if kinds[1:] else kinds[0]}
    if column.values:
        cell["enum"] = [*column.values, *([None] if column.nullable else [])]
    if column.cell is int or column.most is not None:
        cell["minimum"] = 0
    return cell if column.most is None else cell | {"maximum": column.most}


def _of_params() -> dict[str, Schema]:
    """Return the schemas of the parameters of shingles."""
    return {name: {"type": _KINDS[type(x)]} for name, x in ShingleParams().to_json().items()}


def _of_answer() -> Schema:
    """Return the schema of the answer to a line: matches, or an error."""
    row = schemas_of_cells(LISTINGS["query"] | {"verified": LISTINGS["pairs-against"]["verified"]})
    del row["query"]
    found = {"id": _of_cell(ID), "matches": {"type": "array", "items": schema_of_object(row)}}
    return {
        "anyOf": [
            schema_of_object(found),
            schema_of_object(schemas_of_cells({"id": ID, "error": TEXT})),
        ]
    }


def _of_known_pairs() -> Schema:
    """Return the schema of a line of a file of known pairs: of the first one, or of a pair."""
    # Imported here, as it needs NumPy.
    from lshdup.workspace.accepted import CELLS, HEAD, NOT_OF_TEXTS

    texts = {name: cell for name, cell in _of_params().items() if name not in NOT_OF_TEXTS}
    # A parameter that is newer than the file has its default.
    defined = schema_of_object(texts, {*texts} - {"tokens"})
    constants: dict[str, Schema] = {name: {"const": value} for name, value in HEAD.items()}
    head = constants | {"of": {"enum": ["texts", "pairs"]}, "texts": defined}
    cells = schemas_of_cells(dict.fromkeys(CELLS, NAME) | {"note": TEXT})
    pair = {name: _PRINT if name.endswith("_text") else cell for name, cell in cells.items()}
    return {"anyOf": [schema_of_object(head), schema_of_object(pair, ["note"])]}
