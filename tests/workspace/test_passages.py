"""Passages of folders: kept between runs, damaged, planted and found again."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lshdup.base.params import DocumentParams, PassageParams
from lshdup.errors import ArtifactError
from lshdup.store import npz
from lshdup.store.results_io import load_passages
from lshdup.store.store import Store
from lshdup.workspace import passages as module
from lshdup.workspace.loading import load_signatures
from lshdup.workspace.passages import load_or_find_passages
from lshdup.workspace.request import Request
from tests.conftest import open_workspace

pytestmark = pytest.mark.usefixtures("here")


def words(chance, count):
    return [f"w{chance.randrange(1_000_000)}" for _ in range(count)]


def write(name, text):
    Path(name).parent.mkdir(exist_ok=True, parents=True)
    Path(name).write_text(" ".join(text))


def find(*docs, store="store", params=None, said=None, jobs=2, **options):
    run = open_workspace(store, (said if said is not None else []).append, jobs=jobs)
    request = Request(docs, DocumentParams(), {}, **options)
    return load_or_find_passages(run, request, params or PassageParams())


def listed(found):
    """(tokens, [(name, first token), …]) of each passage."""
    names, passages = [*found.here.documents.names], found.passages
    columns = passages.documents.tolist(), passages.first.tolist()
    places = [(names[document].decode(), first) for document, first in zip(*columns, strict=True)]
    cuts = passages.starts.tolist()
    return [(n, places[cuts[i] : cuts[i + 1]]) for i, n in enumerate(passages.tokens.tolist())]


@pytest.fixture
def quotes(here):
    """Two texts that quote one passage of 60 words, and one that does not."""
    chance = random.Random(3)
    quote = words(chance, 60)
    write("d/a.txt", [*words(chance, 20), *quote, *words(chance, 30)])
    write("d/b.txt", [*words(chance, 5), *quote])
    write("d/c.txt", words(chance, 100))


EXPECTED = [(60, [("d/a.txt", 20), ("d/b.txt", 5)])]


@pytest.mark.usefixtures("quotes")
def test_a_second_run_reads_nothing(monkeypatch):
    assert listed(find(b"d")) == EXPECTED
    with monkeypatch.context() as patch:
        patch.setattr(module, "collect", None)
        again = find(b"d")
        assert listed(again) == EXPECTED
        assert again.here.read == 0
        assert listed(find()) == EXPECTED
    assert listed(find(b"d", params=PassageParams(least=61))) == []
    assert listed(find(b"d", check_content=True)) == EXPECTED


@pytest.mark.usefixtures("quotes")
def test_forged_and_damaged_artifacts_are_made_anew():
    find(b"d")
    whole = Path("store/passages.npz").read_bytes()
    for damaged in (whole[:1000], whole[:-900] + bytes(900), b""):
        Path("store/passages.npz").write_bytes(damaged)
        said = []
        assert listed(find(b"d", said=said)) == EXPECTED
        assert any("rebuilt" in line for line in said)
    store = Store(Path("store"))
    collection, params, passages = load_passages(store, here=True)
    for place in ({"first": passages.first + 1000}, {"documents": passages.documents + 3}):
        module.save_passages(store, collection, params, replace(passages, **place))
        with pytest.raises(ArtifactError, match="damaged"):
            load_passages(store, here=True)
        assert listed(find(b"d")) == EXPECTED


@pytest.mark.usefixtures("quotes")
def test_a_collection_with_a_flipped_bit_is_not_continued_with(monkeypatch):
    """Anywhere in it, though it is large: a list of documents may be acted on."""
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    load_signatures(open_workspace("store"), Request((b"d",), DocumentParams(), {}))
    path = Path("store/signatures.npz")
    data = path.read_bytes()
    rows = npz.load(path, "signatures", "").arrays["signatures"]
    at = data.index(rows.tobytes())
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(ArtifactError, match="damaged"):
        find()


@pytest.mark.usefixtures("quotes")
def test_a_disk_without_room_is_said_before_the_work(monkeypatch):
    usage = module.shutil.disk_usage
    monkeypatch.setattr(module.shutil, "disk_usage", lambda place: usage(place)._replace(free=10))
    with pytest.raises(ArtifactError, match="has no room"):
        find(b"d")


def test_planted_passages_are_found_where_they_stand():
    """Of passages of 30 to 300 words in 1,000 texts, all that are verbatim, at any jobs."""
    chance = random.Random(5)
    texts = [words(chance, 300) for _ in range(1000)]
    planted = {}
    for i in range(60):
        passage = words(chance, chance.randrange(50, 300))
        first, second = chance.sample(range(10 * i, 10 * i + 10), 2)
        for text in (first, second):
            texts[text] = [*texts[text][:100], *passage, *texts[text][100:]]
        planted[min(first, second)] = (len(passage), min(first, second), max(first, second))
    for i, text in enumerate(texts):
        write(f"d/{i:04}.txt", text)
    found = listed(find(b"d"))
    places = ((size, [f"d/{a:04}.txt", f"d/{b:04}.txt"]) for size, a, b in planted.values())
    expected = [(size, [(name, 100) for name in names]) for size, names in places]
    assert sorted(found) == sorted(expected)
    assert all(listed(find(b"d", store=None, jobs=jobs)) == found for jobs in (1, 4))
    assert np.all(np.diff([-size for size, _ in found]) >= 0)
