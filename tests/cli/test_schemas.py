"""JSON Schemas: what is printed and written validates, and what a program relies on stays."""

import copy
import json
import re

import pytest

from lshdup.cli.columns import VERSION
from lshdup.cli.schemas import list_schemas, make_schema
from tests import golden
from tests.cli.test_mailboxes import mail
from tests.cli.test_output import OF
from tests.conftest import require

Draft = require("test", "jsonschema").Draft202012Validator

#: {listing: its golden file}
PRINTED = {path.stem: path.read_bytes() for path in (golden.GOLDEN / "output").iterdir()}

TEXT = "the quick brown fox jumps over the lazy dog and runs away from here into the deep wood"


def strict(schema):
    """The schema of this version alone, which knows no more columns."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    own = {"additionalProperties": False} if "properties" in schema else {}
    return own | {key: strict(value) for key, value in schema.items()}


def check(name, value, *, more=False):
    """Assert that a value has the columns of a schema, in their order. more : or others too."""
    schema = make_schema(name)
    Draft(schema if more else strict(schema)).validate(value)
    for row in value if isinstance(value, list) else [value]:
        columns = schema.get("items", schema).get("properties", row)
        assert [each for each in row if each in columns] == [
            each for each in columns if each in row
        ]


def printed(listing, style):
    """What a golden file shows of a format, without what was measured."""
    (data,) = re.findall(
        rf"^=== --format {style}, pipe\n(.*?)(?=^=== )".encode(), PRINTED[listing], re.M | re.S
    )
    return data.replace(b"#", b"0.5") if listing == "timing" else data


@pytest.mark.parametrize("listing", PRINTED)
def test_what_is_printed_validates_and_what_is_wrong_does_not(listing):
    """Each column in turn is missing, of another type, or null where it may not be."""
    name = OF.get(listing, listing)
    rows = [json.loads(line) for line in printed(listing, "jsonl").splitlines()]
    for row in rows:
        check(f"{name}.jsonl", row)
    whole = json.loads(printed(listing, "json"))
    check(f"{name}.json", whole)
    schema = make_schema(name)
    accepts = Draft(schema).is_valid
    for style, value in (("jsonl", rows[0]), ("json", whole)):
        assert accepts(value) == (style == "jsonl")
        assert not Draft(make_schema(f"{name}.{style}")).is_valid([value, 1])
    assert accepts(rows[0] | {"later": 1})
    for column, cell in schema["properties"].items():
        if column in rows[0]:
            for wrong in ([], {}, *([None] if "null" not in cell["type"] else [])):
                assert not accepts(rows[0] | {column: wrong})
            if cell.get("maximum"):
                assert not accepts(rows[0] | {column: 1.01})
            if "minimum" in cell or "enum" in cell:
                assert not accepts(rows[0] | {column: -1})
                assert not accepts(rows[0] | {column: "another"})
            rest = {each: value for each, value in rows[0].items() if each != column}
            assert accepts(rest) == (column not in schema["required"])


def test_files_that_are_written_validate(run, here):
    """Lists of what goes, rows that are annotated, and files of known pairs."""
    texts = {1: TEXT, "b": f"{TEXT} too", "c": f"{TEXT} too", "d": "else"}
    rows = "".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in texts.items())
    (here / "d").mkdir()
    (here / "d/r.jsonl").write_text(rows)
    (here / "d/a.txt").write_text(TEXT)
    (here / "t.jsonl").write_text(json.dumps({"id": 7, "text": TEXT}))
    letters = (mail(number, f"{TEXT} {TEXT}") for number in range(3))
    box = "".join(f"From a@b Thu Aug 22 12:36:23 2002\n{each.decode()}\n" for each in letters)
    (here / "in.mbox").write_text(box)
    kinds = {
        "clusters d/r.jsonl --id-field id --write w.jsonl --removed": "clusters-removed",
        "clusters in.mbox --write w.mbox --removed": "clusters-removed",
        "clusters d/r.jsonl d/a.txt -t 0.7 --removed": "clusters-may-go",
        "clusters d/r.jsonl --id-field id --annotate": "clusters-annotated",
        "pairs d/r.jsonl --id-field id --against t.jsonl --measure containment --write w.jsonl"
        " --removed": "pairs-removed",
        "pairs in.mbox --against d/a.txt --measure containment -t 0.5 --write w.mbox --removed":
            "pairs-removed",
        "passages d/r.jsonl --id-field id --least 8 --write w.jsonl --removed": "passages-removed",
        "pairs d/r.jsonl d/a.txt -t 0.7 --update-baseline --baseline": "baseline",
        "accept d/a.txt d/r.jsonl:1 --note meant --accepted": "accepted",
    }  # fmt: skip
    seen = {}
    for line, name in kinds.items():
        run(f"{line} {name}.jsonl -q --store s")
        lines = (here / f"{name}.jsonl").read_text().splitlines()
        assert lines, line
        for each in map(json.loads, lines):
            check(f"{name}.jsonl", each, more=name == "clusters-annotated")
            seen.setdefault(name, set()).update(each)
        if name.endswith(("removed", "may-go")):
            run(f"{line} {name}.json -q --store s")
            check(f"{name}.json", json.loads((here / f"{name}.json").read_text()))
    assert {*seen, "query-lines"} == {each.partition(".")[0] for each in list_schemas()} - {
        *OF.values()
    } - {*PRINTED}
    for name, columns in seen.items():
        if "removed" in name and "passages" not in name:
            assert columns == set(make_schema(name)["properties"])
    run("index d/r.jsonl d/a.txt -q --store s")
    asked = TEXT, {"id": "x", "text": "none"}, {"id": True, "text": f"{TEXT} also"}, []
    lines = "".join(f"{json.dumps(each)}\n" for each in asked).encode()
    answers = [*map(json.loads, run("query - --lines --store s", stdin=lines, code=2).lines)]
    for each in answers:
        check("query-lines", each)
    assert [len(each.get("matches", "  ")) for each in answers] == [4, 0, 4, 2]
    pair = json.loads((here / "accepted.jsonl").read_text().splitlines()[1])
    wrong = [pair | {"a_text": "12"}, pair | {"b": 1}, pair | {"note": None}, {"a": "x"}]
    assert not Draft(make_schema("query-lines")).is_valid({"id": 1, "matches": [{"name": "a"}]})
    wrong += [{"lshdup": "accepted pairs", "version": 2, "of": "pairs", "texts": {}}]
    assert [each for each in wrong if Draft(make_schema("accepted")).is_valid(each)] == []


# --- what programs rely on ---


def differences(old, new, place=()):
    """Where a later schema of one version breaks what programs take from an earlier one. Columns
    keep their types and places: new ones come last. Parameters of shingles have no order.
    """
    if place[-1:] == ("properties",):
        is_ordered = not {"shingle", "texts"} & {*place}
        if is_ordered and list(new)[: len(old)] != list(old):
            yield (*place, list(new))
        new = {key: new.get(key) for key in old}
    elif place[-1:] == ("required",):
        old, new = sorted(old), sorted({*old} & {*new})
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return (yield from [] if old == new else [(*place, new)])
    for key in old.keys() - {"title"}:
        yield from differences(old[key], new.get(key), (*place, key))


def all_schemas():
    return {name: make_schema(name) for name in list_schemas()}


def test_within_a_version_columns_are_only_added_at_the_end():
    """LSHDUP_UPDATE_GOLDEN=1 takes new columns at the end. Another change is a new `VERSION`, which
    the changelog tells.
    """
    every = all_schemas()
    path = golden.GOLDEN / "schemas.jsonl"
    before = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        before |= json.loads(line)
    versions = {int(each["$id"].split(":")[2]) for each in before.values()}
    assert versions <= {*range(1, VERSION + 1)}
    if versions == {VERSION}:
        assert list(differences(before, {name: every.get(name, {}) for name in before})) == []
    rows = {}
    for name, schema in every.items():
        if "items" not in schema:
            rows[name] = schema
            continue
        row = every[f"{name}l"]
        assert schema["items"] == {key: row[key] for key in row if key not in HEAD}
        assert {*schema} == {*HEAD, "type", "items"}
    lines = (json.dumps({name: schema}) + "\n" for name, schema in rows.items())
    golden.check("schemas.jsonl", "".join(lines).encode())


HEAD = ("$schema", "$id", "title")


def test_each_change_that_breaks_a_program_is_noticed():
    old = {"x": make_schema("pairs"), "y": make_schema("show.json")}

    def changed(change):
        new = copy.deepcopy(old)
        change(new["x"]["properties"], new["x"]["required"])
        return list(differences(old, new))

    def insert(columns, _):
        first = columns.pop("a")
        columns |= {"new": {}, "a": first}

    assert changed(lambda columns, required: columns.update(new={"type": "string"})) == []
    assert changed(lambda columns, required: required.append("new")) == []
    for change in (
        lambda columns, required: columns.pop("same"),
        lambda columns, required: columns.update(similarity={"type": "string"}),
        lambda columns, required: columns["same"]["enum"].append("words"),
        lambda columns, required: columns["a"].update(type=["string", "null"]),
        lambda columns, required: required.remove("b"),
        insert,
    ):
        assert len(changed(change)) >= 1
    params = old["y"]["properties"]["shingle"]["properties"]
    turned = old | {"y": copy.deepcopy(old["y"])}
    turned["y"]["properties"]["shingle"]["properties"] = dict([("new", {}), *params.items()])
    assert list(differences(old, turned)) == []


def test_schemas_are_printed_by_their_names(run):
    assert run("help schema").lines == list_schemas()
    assert len({each["$id"] for each in all_schemas().values()}) == len(list_schemas())
    for schema in all_schemas().values():
        Draft.check_schema(schema)
    for name in ("show.json", "pairs", "accepted.jsonl"):
        assert json.loads(run("help", "schema", name).out) == make_schema(name)
    assert make_schema("pairs") == make_schema("pairs.jsonl") != make_schema("pairs.json")
