"""A folder that changes between runs: all is byte for byte as of a run from nothing."""

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings, stateful
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, multiple, rule

import lshdup.sources.text_batches
import lshdup.store.memo
from lshdup.base.params import ClusterParams, DocumentParams, PairParams
from lshdup.errors import LshdupError
from lshdup.store.memo import Memo
from lshdup.workspace.comparing import load_comparison, load_or_find_clusters, load_or_find_pairs
from lshdup.workspace.folders import compare_folders
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.loading import make_shingles
from lshdup.workspace.request import Request
from tests.conftest import RUN, open_workspace

WORDS = ["a", "rose", "is", "a", "rose,", "Größe", "日本語", "e\u0301t\u00e9", "ＦＵＬＬ", "x" * 70]

ODD = [b"", b" \n", b"one", b"\0binary", b"%PDF-1.4", b"caf\xe9 au lait"]
ODD += [b"<html><body>some words of a page</body></html>"]
sentences = st.lists(st.sampled_from(WORDS), min_size=2, max_size=30)
texts = st.one_of(sentences.map(lambda words: " ".join(words).encode()), st.sampled_from(ODD))


def pairs_of(store, request):
    """`lshdup pairs DOCS --store STORE`: all pairs, and what was skipped."""
    skipped = []
    workspace = open_workspace(store, skipped=skipped.append)
    indexed = load_or_build_index(workspace, request, save=False)
    found = load_or_find_pairs(workspace, indexed, PairParams()).pairs
    columns = [*found.part(0, len(found)), indexed.index.duplicate_of]
    return [column.tolist() for column in columns], sorted(map(str, skipped))


def folders_of(store, request):
    """`lshdup folders DOCS --containment 0.5 --store STORE`: folders and pairs of them."""
    workspace = open_workspace(store)
    indexed = load_or_build_index(workspace, request, save=False)
    found = load_or_find_clusters(workspace, indexed, ClusterParams(), request)
    folders, pairs = compare_folders(RUN, indexed.collection, found.clusters, 0.5)
    documents = indexed.collection.documents
    names = [folders.typed_names(documents, each) for each in (pairs.inside, pairs.holder)]
    columns = [getattr(pairs, name) for name in pairs.__dataclass_fields__ if name != "common"]
    return (*names, pairs.common), [column.tolist() for column in columns]


def contained_of(store, request):
    """`lshdup pairs DOCS --measure containment --store STORE`."""
    method = PairParams(measure="containment")
    opened = load_comparison(open_workspace(store), request, method, clustering=False)
    pairs = opened.find_pairs().pairs
    return [column.tolist() for column in pairs.part(0, len(pairs))]


def sets_of(store, request):
    """`lshdup shingle DOCS --store STORE`."""
    make_shingles(open_workspace(store), request)


#: DOCS of a run, its patterns, and its definition of shingles.
DOCS = [(b"d",), (b"d",), (b"d/q",), (b"d/q/s",), (b"d/q/s", b"d/5")]
INCLUDES = [(), (), ("*1*",), ("*", "!*2*")]
DEFINITIONS = [{}, {}, {"k": 2}, {"ignore_common": 0.8, "min_tokens": 1}]

#: A text, a chain of it and others, and a text that holds the first one.
_WORDS = [f"word{number}" for number in range(30)]
PLANTED = [
    _WORDS, _WORDS, [*_WORDS[:-1], "last"], ["first", *_WORDS[1:-1], "last"],
    [*_WORDS, *(f"more{number}" for number in range(60))], ["\0binary"],
]  # fmt: skip


class Growth(RuleBasedStateMachine):
    """Documents are added, changed, renamed and deleted; now and then lshdup runs over some or all
    of them, or is interrupted.

    Begins with exact duplicates, a chain of near-duplicates, and a text inside another.
    """

    names = Bundle("names")

    @stateful.initialize(target=names)
    def begin(self):
        self.before, self.home = Path.cwd(), tempfile.mkdtemp()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(os, "fsync", lambda _: None)  # no power cut will meet these artifacts
        self.patch.setattr(lshdup.sources.text_batches, "BATCH_DOCUMENTS", 2)
        self.patch.setattr(lshdup.store.memo, "PATIENCE", 0.0)
        os.chdir(self.home)
        os.makedirs("d/q/s")
        os.mkdir("d/5")
        self.clock, self.number, self.hidden_change = 10**18, 0, False
        planted = [(self.new_name(), " ".join(words).encode()) for words in PLANTED]
        for name, content in planted:
            self.write(name, content)
        (left, *_, duplicate_of), skipped = self.found(pairs_of, DOCS[0])
        assert left
        assert skipped
        assert duplicate_of != [*range(len(duplicate_of))]
        assert len(self.found(contained_of, DOCS[0])[0]) > len(left)
        return multiple(*(name for name, _ in planted))

    def teardown(self):
        self.patch.undo()
        os.chdir(self.before)
        shutil.rmtree(self.home)

    def write(self, name, content):
        self.clock += 1
        Path(name).write_bytes(content)
        os.utime(name, ns=(self.clock, self.clock))

    def new_name(self):
        # Of every place in the order of names, not only the last.
        self.number += 1
        folder = ("d", "d/5", "d/q", "d/q/s")[self.number * self.number % 7 % 4]
        ending = ".html" if self.number % 5 == 0 else ""
        return f"{folder}/{self.number * 7 % 10}{self.number}{ending}"

    @rule(target=names, content=texts, copies=st.integers(1, 3))
    def add(self, content, copies):
        added = [self.new_name() for _ in range(copies)]
        for name in added:
            self.write(name, content)
        return multiple(*added)

    @rule(name=names, content=texts)
    def change(self, name, content):
        self.write(name, content)

    @rule(name=names, end=st.sampled_from(WORDS))
    def append(self, name, end):
        self.write(name, Path(name).read_bytes() + b" " + end.encode())

    @rule(name=names)
    def touch(self, name):
        self.write(name, Path(name).read_bytes())

    @rule(target=names, name=consumes(names))
    def rename(self, name):
        new = self.new_name()
        os.rename(name, new)
        return new

    @rule(name=consumes(names))
    def delete(self, name):
        os.remove(name)

    @rule(name=names)
    def change_behind_its_back(self, name):
        """Another content of the same size, and the time put back."""
        status = os.stat(name)
        Path(name).write_bytes(Path(name).read_bytes()[::-1])
        os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.hidden_change = True

    def found(self, what, docs, include=(), given={}):  # noqa: B006
        """Return what is found, as by a run from nothing."""
        check, self.hidden_change = self.hidden_change, False
        docs, include = (DOCS[0], ()) if check else (docs, include)
        request = Request(docs, DocumentParams(include=include), {"threshold": 0.6, **given})
        try:
            expected = what("fresh", request)
            made = {path.name: path.read_bytes() for path in Path("fresh").glob("*.npz")}
        except LshdupError:  # There is nothing to compare.
            self.hidden_change = check
            return None
        finally:
            shutil.rmtree("fresh", ignore_errors=True)
        for check_content in (check, False):  # The second time nothing has changed.
            assert what("store", replace(request, check_content=check_content)) == expected
            for name, data in made.items():
                assert Path("store", name).read_bytes() == data, name
        return expected

    @rule(
        what=st.sampled_from([pairs_of, folders_of, contained_of, sets_of]),
        docs=st.sampled_from(DOCS), include=st.sampled_from(INCLUDES),
        given=st.sampled_from(DEFINITIONS),
    )  # fmt: skip
    def run(self, what, docs, include, given):
        self.found(what, docs, include, given)

    @rule(docs=st.sampled_from(DOCS), given=st.sampled_from(DEFINITIONS), left=st.integers(1, 4))
    def interrupt(self, docs, given, left):
        add = Memo.add

        def count(memo, part):
            nonlocal left
            add(memo, part)
            left -= 1
            if not left:
                raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Memo, "add", count)
            with suppress(KeyboardInterrupt, LshdupError):
                pairs_of("store", Request(docs, DocumentParams(), {"threshold": 0.6, **given}))

    @stateful.invariant()
    def nothing_is_left_behind(self):
        names = {path.name for path in Path("store").iterdir()} - {"memo", "manifest.json"}
        assert {Path(name).suffix for name in names} <= {".npz", "", ".TAG"}


@pytest.mark.parametrize(
    ("examples", "steps"), [(4, 14), pytest.param(60, 25, marks=pytest.mark.long)]
)
def test_growth(examples, steps):
    options = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    stateful.run_state_machine_as_test(Growth, settings=options)
