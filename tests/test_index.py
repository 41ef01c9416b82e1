"""`lshdup.Index`: whatever was added and removed, the answers are those of the documents that are
there, from nothing and on the command line.
"""

import json
import pickle
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lshdup
from lshdup.api import index as api_index
from lshdup.api import kept
from lshdup.errors import ArtifactError, InputError, ParameterError
from lshdup.store import npz
from lshdup.workspace import layers
from tests import reference
from tests.conftest import Result, many, write_files
from tests.running import run_program

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
#: Texts that are near each other, the same in other letters or order, short, or empty.
TEXTS = [" ".join(WORDS[:end]) for end in range(4, 12)]
TEXTS += [TEXTS[3].upper(), f"{TEXTS[3]}, three four five", "one two", "", "else altogether here"]
NAMES = [f"n{number}" for number in range(8)]

texts, names = st.sampled_from(TEXTS), st.sampled_from(NAMES)
some_texts = st.dictionaries(names, texts)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), names, texts), st.tuples(st.just("remove"), names),
        st.tuples(st.just("query"), texts), st.tuples(st.just("add_many"), some_texts),
        st.sampled_from([("flush",), ("reopen",)]),
    ),
    max_size=25,
)  # fmt: skip
OPTIONS = {"threshold": 0.5, "k": 2}


def answers(index):
    """Everything an index can be asked."""
    asked = [*index.query_many(TEXTS), *(index.query(text, 0.8) for text in TEXTS[:4])]
    own = [index.of(name) for name in index]
    return list(index), len(index), index.pairs(), index.clusters(), asked, own


class Checked:
    """An index, and a dict that holds what the index should; in memory, or in a store."""

    def __init__(self, documents, folder=None):
        self.model, self.folder = dict(documents), folder
        self.index = lshdup.Index.open(documents, **OPTIONS, store=folder)

    def query(self, text):
        found = {name for name, *_ in self.index.query(text)}
        sets = {name: set(reference.shingle_list(each, k=2)) for name, each in self.model.items()}
        one = set(reference.shingle_list(text, k=2))
        near = {name for name, each in sets.items() if reference.jaccard(one, each) >= 0.5 and one}
        assert found <= near  # bands may miss some
        assert {name for name in near if sets[name] == one} <= found

    def flush(self):
        if self.folder is not None:
            self.index.flush()
            assert answers(lshdup.Index.open(self.folder, **OPTIONS)) == answers(self.index)

    def reopen(self):
        if self.folder is None:
            self.index = pickle.loads(pickle.dumps(self.index))
        else:
            self.index.close()
            self.index = lshdup.Index.open(self.folder, **OPTIONS)

    def add_many(self, documents):
        self.index.add_many(documents)
        self.model |= documents

    def add(self, name, text):
        self.index.add(name, text)
        self.model[name] = text

    def remove(self, name):
        self.index.remove(name)
        del self.model[name]

    def do(self, steps):
        for kind, *rest in steps:
            known = {*rest[:1]} if kind in ("add", "remove") else {*(rest[0] if rest else ())}
            is_refused = kind.startswith("add") and known & self.model.keys()
            if is_refused or (kind == "remove" and not known & self.model.keys()):
                with pytest.raises((InputError, KeyError), match="document"):
                    getattr(self, kind)(*rest)
            else:
                getattr(self, kind)(*rest)
            assert len(self.index) == len(self.model)
            assert all((name in self.index) == (name in self.model) for name in NAMES)
        return self


@given(st.dictionaries(names, texts, max_size=4), steps, st.booleans())
def test_an_index_is_what_is_in_it(first, some, is_stored):
    # Layers take further documents while they have two at most, so that there are many.
    small = mock.patch.object(kept, "SMALL", 2), mock.patch.object(layers, "SMALL", 2)
    with tempfile.TemporaryDirectory() as folder, small[0], small[1]:
        made = Checked(first, f"{folder}/store" if is_stored else None).do(some)
        assert answers(made.index) == answers(lshdup.Index.open(made.model, **OPTIONS))
        made.index.close()


@settings(max_examples=many(40))
@given(st.dictionaries(names, texts, max_size=4), steps, texts)
def test_its_answers_are_those_of_the_command_line(tmp_path_factory, first, some, text):
    folder = tmp_path_factory.mktemp("documents")
    made = Checked(first).do(some)
    index, model = made.index, made.model
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
    groups = enumerate(index.clusters(), 1)
    groups = [(str(at), name, repr(score)) for at, group in groups for name, score in group]
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
    found = [[a, b, repr(s), same] for a, b, s, same, _ in index.pairs()]
    assert found == run("pairs").rows
    groups = [(name, repr(score)) for group in index.clusters() for name, score in group]
    assert groups == [(name, score) for _, _, name, score, *_ in run("clusters").rows]
    for name in ("licences/MIT.txt", "udhr/eng.txt", "licences/Apache-1.1.txt"):
        found = [[n, repr(s), same] for n, s, same, _ in index.of(f"sample_corpus/{name}")]
        assert found == run("query", f"sample_corpus/{name}").rows
        text = (corpus / name).read_bytes()
        for threshold in (0.6, 0.8):
            found = [[n, repr(s), same] for n, s, same, _ in index.query(text.decode(), threshold)]
            assert found == run(f"query - -t {threshold}", stdin=text).rows


# --- stores -----------------------------------------------------------------------------------

SAME = "one two three four five six"


def test_what_is_flushed_survives_a_kill(here):
    script = """
import os, signal, sys, lshdup
with lshdup.Index.open({"first": sys.argv[1]}, store="kept") as index:
    for number in range(200):
        index.add(f"n{number}", sys.argv[1])
        if number % 7 == 6:
            index.flush()
    index.remove("first")
    index.flush()
    index.add("late", sys.argv[1])
    index.query(sys.argv[1])
    os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", script, SAME]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    # One that is killed while it writes leaves this.
    (here / "kept/added/.lshdup-0123abcd.tmp").touch()
    with lshdup.Index.open("kept") as index:
        assert {name for name, *_ in index.query(SAME)} == {f"n{n}" for n in range(200)}
        index.add("late", SAME)
    assert len(lshdup.Index.open("kept")) == 201
    names = [each.name for each in (here / "kept/added").iterdir()]
    assert len(names) <= 3  # Small segments are written again.
    assert all(name.endswith(".npz") for name in names)


def test_two_processes_read_while_one_adds(here):
    script = """
import sys, time, lshdup
index, seen = lshdup.Index.open("kept"), 0
print("ready", flush=True)
while seen < 300:
    found = [int(name) for name, *_ in index.query(sys.argv[1])]
    assert found == list(range(len(found))) and len(found) >= seen, (seen, found)
    seen = len(found)
print(index.pairs()[:1], len(index))
"""
    with lshdup.Index.open({"0": SAME}, store="kept") as index:
        readers = [
            subprocess.Popen([sys.executable, "-c", script, SAME], stdout=-1, stderr=-1, text=True)
            for _ in range(2)
        ]
        assert [each.stdout.readline() for each in readers] == ["ready\n"] * 2
        for number in range(1, 300):
            index.add(f"{number}", SAME)
            index.flush()
        for each in readers:
            out, err = each.communicate(timeout=60)
            assert (each.returncode, err) == (0, "")
            assert out.endswith("300\n")
        with pytest.raises(ArtifactError, match=r"another lshdup run .* is writing to "):
            lshdup.Index.open("kept").add("no", SAME)


def test_threads_ask_and_add(here):
    index = lshdup.Index.open({"0": SAME}, store="kept")

    def work(number):
        found = []
        for at in range(30):
            index.add(f"{number}-{at}", f"{SAME} {'x' * (at % 3)}")
            found.append(len(index.query(SAME)))
            if at % 10 == 9:
                index.flush()
        return found

    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(work, range(6)):
            assert found == sorted(found)
            assert found[-1] >= 31
    assert len(index.query(SAME)) == len(index) == 181
    index.close()
    assert len(lshdup.Index.open("kept").query(SAME)) == 181


def test_files_that_are_gone_are_estimated(here, run):
    words = [f"w{number}" for number in range(400)]
    files = {"a": words, "b": [*words[:390], "other"], "copy": words, "far": words[:200]}
    write_files(here / "docs", {name: " ".join(each) for name, each in files.items()})
    run("index docs")
    text = " ".join(words)
    exact = lshdup.Index.open(".lshdup").query(text, 0.7)
    assert [(name, verified) for name, *_, verified in exact] == [
        ("docs/a", "exact"), ("docs/copy", "exact"), ("docs/b", "exact")
    ]  # fmt: skip
    (here / "docs/b").unlink()
    (here / "docs/a").unlink()
    index = lshdup.Index.open(".lshdup")
    found = index.query(text, 0.7)
    assert found[:2] == exact[:2]
    # The set of a is that of its copy, which is still there.
    shorter = {name: verified for name, *_, verified in index.query(" ".join(words[:396]), 0.7)}
    assert shorter == {"docs/a": "exact", "docs/copy": "exact", "docs/b": "estimate"}
    assert (found[2].name, found[2].verified) == ("docs/b", "estimate")
    spread = (exact[2].similarity * (1 - exact[2].similarity) / 128) ** 0.5
    assert abs(found[2].similarity - exact[2].similarity) < 5 * spread
    ends = {(a, b): verified for a, b, *_, verified in index.pairs()}
    assert ends == {
        ("docs/a", "docs/copy"): "exact",
        ("docs/a", "docs/b"): "estimate", ("docs/b", "docs/copy"): "estimate",
    }  # fmt: skip
    assert [each.verified for each in index.of("docs/b")] == ["estimate"] * 2
    index.remove("docs/copy")
    assert [each.name for each in index.query(text)] == ["docs/a", "docs/b"]
    index.close()


def test_documents_are_indexed_again_beside_what_was_added(here, run):
    write_files(here / "docs", {"a": SAME, "b": SAME, "c": "something else entirely here"})
    run("index docs")
    open_one = lshdup.Index.open(".lshdup")
    with lshdup.Index.open(".lshdup") as index:
        index.add("docs/d", f"{SAME} seven")
        index.add("memory", SAME)
        index.remove("docs/b")
        expected = index.query(SAME, 0.5)
    assert [each.name for each in expected] == ["docs/a", "memory", "docs/d"]
    assert open_one.query(SAME, 0.5) == expected
    said = run("query -", stdin=SAME.encode()).err
    assert "documents that were added by programs" in said
    write_files(here / "docs", {"d": f"{SAME} seven eight"})
    run("index docs")
    asked = (
        lambda: open_one.query(SAME), lambda: open_one.add("x", SAME), open_one.pairs,
        lambda: "x" in open_one,
    )  # fmt: skip
    for ask in asked:
        with pytest.raises(ArtifactError, match="another process has replaced") as refused:
            ask()
        assert refused.value.hint == "open it again with Index.open"
    again = lshdup.Index.open(".lshdup")
    found = [(name, score) for name, score, *_ in again.query(SAME, 0.5)]
    # docs/d is what was indexed last; what was removed stays so.
    assert found == [("docs/a", 1.0), ("memory", 1.0), ("docs/d", 4 / 6)]
    run("index docs -k 2")
    with pytest.raises(ArtifactError, match="was added with tokens word k 3; the store has") as no:
        lshdup.Index.open(".lshdup")
    assert "lshdup index DOCS" in no.value.hint
    run("index docs")
    assert [each[:2] for each in lshdup.Index.open(".lshdup").query(SAME, 0.5)] == found


def test_a_store_of_texts_is_opened_from_anywhere(here, monkeypatch):
    """The names of texts are no paths; a segment that was replaced does not count any more."""
    texts = {"m/1": SAME, "m/2": f"{SAME} seven", "m/3": "one two"}
    with lshdup.Index.open(texts, store="kept", threshold=0.5, hash_key="secret") as index:
        index.add("m/4", SAME)
        index.flush()
        first = here / "kept/added/00000001.npz"
        held = first.read_bytes()
        index.remove("m/1")
        index.add("m/5", SAME)
        expected = answers(index)
    first.write_bytes(held)  # as of a process that was killed before it had removed it
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    for _ in range(2):
        with lshdup.Index.open("../kept", threshold=0.5, hash_key="secret") as again:
            assert answers(again) == expected
            again.add("x", "y")
            again.remove("x")
            again.remove("m/4")
            again.add("m/4", SAME)
            expected = answers(again)
    with pytest.raises(ParameterError, match="hash_key"):
        lshdup.Index.open("../kept")


def test_what_is_removed_stays_so_from_anywhere(here, run, monkeypatch):
    """Of files, names as they are printed depend on the current folder; an open index does not."""
    write_files(here / "docs", {"a": SAME, "b": SAME, "c": SAME})
    run("index docs")
    (here / "elsewhere").mkdir()
    with lshdup.Index.open(".lshdup") as index:
        index.remove("docs/a")
        index.add("memory", SAME)
        monkeypatch.chdir("elsewhere")
        assert [each.name for each in index.query(SAME)] == ["docs/b", "docs/c", "memory"]
    with lshdup.Index.open("../.lshdup") as index:
        assert list(index) == ["../docs/b", "../docs/c", "memory"]
        with pytest.raises(InputError, match="there is a document called 'docs/b' already"):
            index.add("docs/b", SAME)
        index.remove("../docs/b")
    monkeypatch.chdir(here)
    assert list(lshdup.Index.open(".lshdup")) == ["docs/c", "memory"]


def test_pairs_that_were_sought_meanwhile_are_not_kept(monkeypatch):
    index = lshdup.Index.open({"a": SAME})

    def search(*arguments, **options):
        monkeypatch.undo()
        index.add("b", SAME)  # as another thread does
        return find(*arguments, **options)

    find = api_index.find_near_duplicates
    monkeypatch.setattr(api_index, "find_near_duplicates", search)
    assert index.pairs() == []
    assert [(a, b) for a, b, *_ in index.pairs()] == [("a", "b")]


def test_an_index_that_cannot_be_closed_keeps_what_was_added(here):
    index = lshdup.Index.open({"a": SAME}, store="kept")
    index.add("b", SAME)
    full = mock.patch.object(npz, "save", side_effect=ArtifactError("the disk is full", ""))
    with full, pytest.raises(ArtifactError, match="the disk is full"):
        index.close()
    with pytest.raises(ArtifactError, match="is writing to") as refused:
        lshdup.Index.open("kept").add("c", SAME)
    assert refused.value.hint == "wait until it is done"
    index.close()
    assert list(lshdup.Index.open("kept")) == ["a", "b"]


WRONG = [
    (lambda i: i.query(None), InputError, "text of document '0' is null, not str"),
    (lambda i: i.query(b"one"), InputError, "is bytes, not str"),
    (lambda i: i.query_many("one"), InputError, "documents are given as str"),
    (lambda i: i.query_many(["one", None]), InputError, "text of document '1' is null"),
    (lambda i: i.query("one", 1.5), ParameterError, "threshold is 1.5; it must be above 0"),
    (lambda i: i.query("one", 0.001), ParameterError, "cannot meet a pair of similarity 0.001"),
    (lambda i: i.add("b", None), InputError, "text of document 'b' is null"),
    (lambda i: i.add(7, "one"), InputError, "name of document 7 is int, not str"),
    (lambda i: i.add("b", "x \ud800"), InputError, "cannot be UTF-8"),
    (lambda i: i.add("a", "one"), InputError, "there is a document called 'a' already"),
    (lambda i: i.add_many({"b": "x", "a": "y"}), InputError, "called 'a' already"),
    (lambda i: i.add_many({"b": "x", "c": b"y"}), InputError, "text of document 'c' is bytes"),
    (lambda i: i.add_many(["x", None]), InputError, "text of document '1' is null"),
    (lambda i: i.remove("b"), KeyError, "no document is called 'b'; names: 'a'"),
    (lambda i: i.of("b"), KeyError, "no document is called 'b'; names: 'a'"),
    (lambda i: "\ud800" in i or i.remove("\ud800"), KeyError, "no document is called"),
]


@pytest.mark.parametrize(("ask", "error", "said"), WRONG)
@pytest.mark.parametrize("store", [None, "kept"])
def test_what_is_wrong_is_refused_and_nothing_is_lost(here, ask, error, said, store):
    index = lshdup.Index.open({"a": SAME}, store=store)
    with pytest.raises(error, match=said) as refused:
        ask(index)
    assert "--" not in getattr(refused.value, "hint", "")
    index.add("late", SAME)
    assert [each.name for each in index.query(SAME)] == ["a", "late"]
    index.close()
    with pytest.raises(ArtifactError, match="the index is closed"):
        ask(index) if error is KeyError else index.query(SAME)


def test_what_cannot_be_opened_is_refused(here, run):
    write_files(here / "docs", {"a": SAME})
    (here / "empty").mkdir()
    run("index docs --store made --perms 64")
    run("passages docs --store passages")
    opened = lshdup.Index.open
    linear = opened({"a": SAME}, 4, scheme="linear")
    for ask, error, said in (
        (lambda: opened("empty"), InputError, "empty: there are no documents in it"),
        (lambda: opened("nowhere"), InputError, "nowhere"),
        (lambda: opened("a\0b"), InputError, "x00b' is no path"),
        (lambda: opened("\ud800"), InputError, "ud800' is no path"),
        (lambda: opened({"a": "b"}, store=5), InputError, "5 is no path"),
        (lambda: opened(["a", None]), InputError, "is null, not str"),
        (lambda: opened("made", 128), ArtifactError, "was made with num_permutations 64, not 128"),
        (lambda: opened("made", k=2), ArtifactError, "was made with k 3, not 2"),
        (lambda: opened("made", templates=["x"]), ParameterError, "templates is given, but"),
        (lambda: opened("made", ignore_common=0.5), ArtifactError, "without ignore_common"),
        (lambda: opened({}, store="made"), ParameterError, "made holds documents already"),
        (lambda: opened("made", store="b"), ParameterError, "made is a store, and store is given"),
        (lambda: opened({}, store="docs"), ArtifactError, "holds other files and is no store"),
        (lambda: opened({}, store="new", scheme="linear"), ParameterError, "none for a store"),
        (lambda: opened("passages"), ArtifactError, "there is no signatures.npz in .*passages"),
        (lambda: opened({}).flush(), ParameterError, "it has no store"),
        (lambda: linear.query("x"), ParameterError, "changes every signature"),
        (lambda: opened({}, measure="containment").clusters(), ParameterError, "no clusters"),
        (lambda: opened({}, num_perm=7), ParameterError, "did you mean|'num_perm' is no keyword"),
        (lambda: pickle.dumps(opened("made")), TypeError, "cannot be pickled"),
    ):
        with pytest.raises(error, match=said) as refused:
            ask()
        assert "--" not in getattr(refused.value, "hint", "")
        assert "a store elsewhere" not in getattr(refused.value, "hint", "")
    assert not {"new", "b"} & {path.name for path in here.iterdir()}
    assert opened("made").query(SAME)[0].name == "docs/a"
    with opened("made") as index:
        index.add("b", SAME)
    segment = here / "made/added/00000001.npz"
    segment.write_bytes(segment.read_bytes()[:-100])
    with pytest.raises(ArtifactError, match=r"00000001.npz is damaged") as refused:
        opened("made")
    assert refused.value.hint == "remove it, and add what was in it again"


def test_containment():
    texts = {"whole": " ".join(WORDS), "part": " ".join(WORDS[3:8]), "else": "nothing of that"}
    index = lshdup.Index.open(texts, measure="containment")
    index.add("small", " ".join(WORDS[4:7]))
    found = [(name, score) for name, score, *_ in index.query(" ".join(WORDS[2:9]))]
    assert found == [("part", 1.0), ("whole", 1.0), ("small", 1.0)]
    assert [tuple(pair)[:3] for pair in index.pairs()] == [
        ("small", "part", 1.0), ("part", "whole", 1.0), ("small", "whole", 1.0)
    ]  # fmt: skip
