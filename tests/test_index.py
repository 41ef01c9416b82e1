"""`lshdup.Index`: whatever was added and removed, the answers are those of the documents that are
there, from nothing and on the command line.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lshdup
from lshdup.errors import InputError
from tests import reference
from tests.conftest import Result, many
from tests.running import run_program

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
#: Texts that are near each other, the same in other letters or order, short, or empty.
TEXTS = [" ".join(WORDS[:end]) for end in range(4, 12)]
TEXTS += [TEXTS[3].upper(), f"{TEXTS[3]}, three four five", "one two", "", "else altogether here"]
NAMES = [f"n{number}" for number in range(8)]

texts, names = st.sampled_from(TEXTS), st.sampled_from(NAMES)
steps = st.lists(st.one_of(
    st.tuples(st.just("add"), names, texts), st.tuples(st.just("remove"), names),
    st.tuples(st.just("query"), texts), st.tuples(st.just("many"), st.dictionaries(names, texts)),
), max_size=25)  # fmt: skip
OPTIONS = {"threshold": 0.5, "k": 2}


def answers(index):
    """Everything an index can be asked, but names in the order of the index."""
    asked = [*index.query_many(TEXTS), *(index.query(text, 0.8) for text in TEXTS[:4])]
    own = [index.of(name) for name in index]
    return list(index), len(index), index.pairs(), index.clusters(), asked, own


def apply(index, model, step):
    """Do a step to an index, and to a dict that holds what the index should."""
    kind, *given = step
    if kind == "query":
        found = {name for name, *_ in index.query(*given)}
        sets = {name: set(reference.shingle_list(text, k=2)) for name, text in model.items()}
        one = set(reference.shingle_list(*given, k=2))
        near = {name for name, each in sets.items() if reference.jaccard(one, each) >= 0.5 and one}
        assert found <= near  # bands may miss some
        assert {name for name in near if sets[name] == one} <= found
    elif kind == "many":
        if given[0].keys() & model.keys():
            with pytest.raises(InputError, match="there is a document called"):
                index.add_many(*given)
        else:
            index.add_many(*given)
            model |= given[0]
    elif (given[0] in model) == (kind == "add"):
        before = list(model)
        with pytest.raises((InputError, KeyError)):
            getattr(index, kind)(*given)
        assert list(index) == before
    elif kind == "add":
        index.add(*given)
        model[given[0]] = given[1]
    else:
        index.remove(*given)
        del model[given[0]]
    assert len(index) == len(model)
    assert all((name in index) == (name in model) for name in NAMES)


@given(st.dictionaries(names, texts, max_size=4), steps)
def test_an_index_is_what_is_in_it(first, some):
    index, model = lshdup.Index.open(first, **OPTIONS), dict(first)
    for step in some:
        apply(index, model, step)
    assert answers(index) == answers(lshdup.Index.open(model, **OPTIONS))


@settings(max_examples=many(40))
@given(st.dictionaries(names, texts, max_size=4), steps, texts)
def test_its_answers_are_those_of_the_command_line(tmp_path_factory, first, some, text):
    folder = tmp_path_factory.mktemp("documents")
    index, model = lshdup.Index.open(first, **OPTIONS), dict(first)
    for step in some:
        apply(index, model, step)
    if not model:
        return
    lines = (json.dumps({"id": name, "text": each}) for name, each in model.items())
    (folder / "x.jsonl").write_text("\n".join(lines))

    def rows(line, stdin=b""):
        found = Result(run_program(line, cwd=folder, stdin=stdin))
        assert found.code == 0, found
        return [tuple(row) for row in found.rows]

    fields = "-k 2 --text-field text --id-field id"
    printed = rows(f"pairs x.jsonl -t 0.5 {fields}")
    assert printed == [(*names, repr(score), same) for *names, score, same, _ in index.pairs()]
    groups = [
        (str(number), name, repr(score))
        for number, group in enumerate(index.clusters(), 1)
        for name, score in group
    ]
    printed = rows(f"clusters x.jsonl -t 0.5 {fields}")
    assert [(number, name, score) for number, _, name, score, *_ in printed] == groups
    for threshold in (0.5, 0.8):
        found = rows(f"query - -t {threshold}", text.encode())
        near = index.query(text, threshold)
        assert found == [(name, repr(score), same) for name, score, same, _ in near]


def test_a_store_gives_what_the_command_line_gives(run, corpus, monkeypatch):
    monkeypatch.chdir(corpus.parent)
    run("index sample_corpus")
    index = lshdup.Index.open(".lshdup")
    assert [(a, b, repr(s), same) for a, b, s, same, _ in index.pairs()] == [
        tuple(row) for row in run("pairs").rows
    ]
    groups = [(name, repr(score)) for group in index.clusters() for name, score in group]
    assert groups == [(name, score) for _, _, name, score, *_ in run("clusters").rows]
    for name in ("licences/MIT.txt", "udhr/eng.txt", "licences/Apache-1.1.txt"):
        found = [(n, repr(s), same) for n, s, same, _ in index.of(f"sample_corpus/{name}")]
        assert found == [tuple(row) for row in run("query", f"sample_corpus/{name}").rows]
        text = (corpus / name).read_bytes()
        for threshold in (0.6, 0.8):
            found = [(n, repr(s), same) for n, s, same, _ in index.query(text.decode(), threshold)]
            asked = run(f"query - -t {threshold}", stdin=text).rows
            assert found == [tuple(row) for row in asked]
