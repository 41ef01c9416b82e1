"""`--same bytes` held against hashlib: which files are equal, and which of them are read."""

import json
import os
import random
import re
from collections import defaultdict
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.base.memory import Buffer
from lshdup.base.params import BandParams, ClusterParams, DocumentParams, PairParams
from lshdup.base.skipped import Reason
from lshdup.collection.equal_files import digest_documents
from lshdup.compare.best_matches import find_best_matches
from lshdup.compare.comparing import compare
from lshdup.compare.sides import Fingerprints, Side, Sides
from lshdup.sources.finding import find_documents
from lshdup.workspace.comparing import load_comparison
from lshdup.workspace.loading import load_whole_documents
from lshdup.workspace.request import Request
from lshdup.workspace.workspace import Workspace
from tests.conftest import RUN, write_files
from tests.documents import tar_of, zip_of

MAIL = b"From a@b.c Thu Aug 22 12:36:23 2002\nSubject: one\n\nThe text of a mail.\n\n"
#: More than a file that is read as a whole.
LARGE = 5 << 20


def contents_of(rng):
    """Contents of few sizes: pictures, programs, texts, white space, and what differs in a byte."""
    made = [bytes([0, number]) * 40 for number in range(8)]  # as binary files begin
    made += [b"\0" + rng.randbytes(rng.choice((0, 1, 79, 4095, 70_000))) for _ in range(60)]
    made += [b" " * 80, b"\n" * 80, b"word\n" * 16, b"<html>" + b"x" * 74, b"word " * 16]
    return [*made, bytes(LARGE), bytes(LARGE - 1) + b"\1", bytes(LARGE + 1)]


def fill(folder, rng, n):
    """Write n files below a folder, about a third of them copies."""
    contents = contents_of(rng)
    for number in range(n):
        path = folder / f"{number % 4}" / f"{number:03}{rng.choice(('', '.txt', '.png', '.html'))}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents[number % len(contents)])
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for number, path in enumerate(rng.sample(files, n // 3)):
        (folder / f"copy {number}").write_bytes(path.read_bytes())
    os.link(files[0], folder / "link.txt")
    write_files(folder, dict.fromkeys(("empty", "1/empty.txt", "none.png"), b""))
    write_files(folder, {"3/.hidden": b"hidden", "hidden too": b"hidden"})
    (folder / "to it").symlink_to("empty")
    write_files(folder, {name: zip_of([("in it", contents[0])]) for name in ("a.zip", "2/b.zip")})
    write_files(folder, dict.fromkeys(("Inbox", "1/Inbox"), 2 * MAIL))


@pytest.fixture
def tree(here):
    fill(here / "t", random.Random(1), 90)
    return here


def files_below(folder, least=1):
    """{name: SHA-256} of all regular files, without hidden ones and smaller ones."""
    paths = (p for p in Path(folder).rglob("*") if p.is_file() and not p.is_symlink())
    shown = (p for p in paths if not p.name.startswith(".") and p.stat().st_size >= least)
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in shown}


def groups_of(files):
    """The names of each content that several files have."""
    groups = defaultdict(set)
    for name, digest in files.items():
        groups[digest].add(name)
    return sorted(sorted(each) for each in groups.values() if len(each) > 1)


def listed(rows):
    """The groups of a listing of `clusters`."""
    groups = defaultdict(set)
    for row in map(json.loads, rows):
        assert row["similarity"] == 1
        assert row["same"] == (None if row["role"] == "keep" else "bytes")
        groups[row["group"]].add(row["name"])
    return sorted(map(sorted, groups.values()))


@pytest.mark.parametrize("options", [[], ["--min-bytes", "0"], ["--min-bytes", "4KB"]])
def test_equal_files_are_those_of_brute_force(tree, run, options):
    least = {"0": 0, "4KB": 4096}.get(options[1], 1) if options else 1
    expected = groups_of(files_below("t", least))
    assert any("t/none.png" in group for group in expected) == (least == 0)
    for name in ("t/link.txt", "t/1/Inbox"):
        assert any(name in group for group in expected) == (least <= 1)
    same = ("t", "--same", "bytes", *options)
    for more in (["--no-store"], ["--no-store", "-j", "1"], [], []):  # the last is a second run
        assert listed(run("clusters", *same, *more, "--format", "jsonl").lines) == expected
    pairs = run("pairs", *same).rows
    assert [row[2:] for row in pairs] == [["1.0", "bytes"]] * len(pairs)
    every = sorted(pair for group in expected for pair in combinations(group, 2))
    assert sorted(tuple(row[:2]) for row in pairs) == every
    drop = run("clusters", *same, "--emit", "drop-files", "-0").out.decode().split("\0")[:-1]
    kept = run("clusters", *same, "--emit", "keep").lines
    assert not {*drop} & {*kept}
    assert {*drop, *kept} == set(files_below("t", 0))
    digests = files_below("t", 0)
    assert len(drop) == sum(map(len, expected)) - len(expected)
    assert {digests[name] for name in drop} <= {digests[name] for name in kept}


def counted(err):
    """(documents read, unchanged, not read) of a run."""
    read = re.search(r"; (\d+) documents? read, (\d+) unchanged", err)
    alone = re.search(r"; (\d+) not read, as no other has their size", err)
    counts = (*(read.groups() if read else (0, 0)), alone[1] if alone else 0)
    return tuple(map(int, counts))


def test_only_files_of_equal_size_are_read_and_those_once(tree, run):
    """A file that is not read may say anything, as long as its size and time stay the same."""
    sizes = defaultdict(list)
    for name in files_below("t"):
        sizes[os.stat(name).st_size].append(name)
    alone = [names[0] for names in sizes.values() if len(names) == 1]
    several = [name for names in sizes.values() if len(names) > 1 for name in names]
    first = run("clusters t --same bytes --format jsonl")
    assert counted(first.err) == (0, 0, len(alone))
    again = run("clusters t --same bytes --format jsonl")
    assert counted(again.err) == (0, len(several), len(alone))
    assert again.out == first.out
    for name in files_below("t"):
        status = os.stat(name)
        Path(name).write_bytes(os.urandom(status.st_size))
        os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run("clusters t --same bytes --format jsonl").out == first.out
    checked = run("clusters t --same bytes --format jsonl", env={"LSHDUP_CHECK_CONTENT": "1"})
    assert listed(checked.lines) == groups_of(files_below("t")) != listed(first.lines)
    # A file that was not read is, once another has its size.
    Path("t/new").write_bytes(Path(alone[0]).read_bytes())
    found = run("clusters t --same bytes --format jsonl")
    assert sorted(["t/new", alone[0]]) in listed(found.lines)
    assert counted(found.err) == (2, len(several), len(alone) - 1)


def test_what_other_runs_knew_changes_no_answer(tree, run):
    """Other DOCS, another least size, texts, and an index between: each answer is that of a run
    from nothing, and what was read of a folder is known after a run of another one.
    """
    fill(tree / "u", random.Random(2), 40)
    commands = ["t", "u", "t --min-bytes 4096", "t/1 u", "t u --min-bytes 0", "t"]
    for docs in commands:
        line = f"clusters {docs} --same bytes --format jsonl"
        made = run(line)
        assert made.out == run(f"{line} --no-store").out, docs
        run("index u -t 0.9 -q")
    assert counted(made.err)[:2] == (0, len(files_below("t")))
    before = run("pairs -q").out
    run("clusters t --same bytes -q")
    assert run("pairs -q").out == before  # The index continues.


def test_members_of_archives_may_be_equal_to_files(here, run):
    rng = random.Random(3)
    contents = contents_of(rng)[:-3]
    names = [f"m{number}" for number in range(len(contents))]
    write_files(".", {f"t/{number}": content for number, content in enumerate(contents[::3])})
    Path("t/a.zip").write_bytes(zip_of(zip(names, contents, strict=True)))
    Path("t/b.tgz").write_bytes(tar_of(zip(names[:20], contents[:20], strict=True), "w:gz"))
    files = {name: each for name, each in files_below("t").items() if name[-1].isdigit()}
    for archive, count in (("t/a.zip", len(names)), ("t/b.tgz", 20)):
        some = zip(names[:count], contents[:count], strict=True)
        files |= {f"{archive}/{name}": sha256(each).hexdigest() for name, each in some}
    found = run("clusters t --same bytes --archives --format jsonl --no-store")
    assert listed(found.lines) == groups_of(files)
    whole = run("clusters t --same bytes --archives --emit drop-files --no-store").lines
    assert all(Path(name).is_file() for name in whole)


def test_two_sides(tree, run):
    fill(tree / "u", random.Random(2), 60)
    Path("u/alone").write_bytes(b"the size of this is that of one file of the other side")
    Path("t/alone").write_bytes(Path("u/alone").read_bytes())
    here, there = files_below("t"), files_below("u")
    shared = set(there.values())
    same = ("t", "--against", "u", "--same", "bytes", "--no-store")
    pairs = run("pairs", *same).rows
    expected = [(a, b) for a, x in here.items() for b, y in there.items() if x == y]
    assert sorted(tuple(row[:2]) for row in pairs) == sorted(expected)
    assert ["t/alone", "u/alone", "1.0", "exact", "bytes"] in pairs
    unmatched = run("pairs", *same, "--unmatched").lines
    assert {*unmatched} == {name for name in files_below("t", 0) if here.get(name) not in shared}
    dropped = set(run("clusters", *same, "--emit", "drop").lines)
    assert dropped >= {name for name, digest in here.items() if digest in shared}
    rest = {name: digest for name, digest in here.items() if digest not in shared}
    alone = [group for group in groups_of(rest) if len(dropped & {*group}) == len(group) - 1]
    assert alone == groups_of(rest)
    assert not any(name.startswith("u/") for name in dropped)


@pytest.mark.parametrize("size", [100, LARGE])
def test_a_file_that_changes_while_it_is_read_has_no_fingerprint(here, size):
    write_files(".", {name: bytes(size) for name in "abcd"})
    documents = find_documents(RUN, [b"a", b"b", b"c", b"d"], DocumentParams())
    write_files(".", {"a": bytes(size - 1), "b": bytes(size + 1)})
    Path("c").unlink()
    made = [digest_documents(documents, np.array([at]), Buffer()) for at in range(4)]
    reasons = [each.skipped[0][1] for each in made[:3]]
    assert reasons == [Reason.CHANGED, Reason.CHANGED, Reason.VANISHED]
    assert [len(each.indices) for each in made] == [0, 0, 0, 1]
    first = int.from_bytes(sha256(bytes(size)).digest()[:16], "little")
    halves = (made[3].columns[name].tolist() for name in ("byte_prints", "text_prints"))
    assert list(halves) == [[first % 2**64], [first >> 64]]


def test_an_unreadable_file_is_said_and_stays(here, run):
    write_files("d", {name: bytes(100) for name in "abc"})
    Path("d/c").chmod(0)
    if os.access("d/c", os.R_OK):
        pytest.skip("root cannot do without its rights here")
    found = run("clusters d --same bytes --emit drop --no-store", code=2)
    assert found.lines == ["d/b"]
    assert "d/c: unreadable" in found.err


def test_documents_that_share_a_key_only_are_not_the_same():
    """Two halves of a fingerprint make a key of 64 bits, by which documents are sorted."""
    rng = np.random.default_rng(4)
    texts = rng.integers(1, 1 << 63, 6).astype(np.uint64)
    odd = np.uint64(0x9E3779B97F4A7C15)
    prints = Fingerprints((texts * odd) ^ np.uint64(77), texts)
    assert set(prints.keys(RUN, "bytes", np.ones(6, np.int64)).tolist()) == {77}
    sizes = np.ones(6, np.int64)
    one = Sides.of(RUN, Side(sizes, texts, prints, None), same="bytes")
    assert one.duplicate_of.tolist() == list(range(6))
    parts = (
        Fingerprints(prints.byte_prints[some], texts[some]) for some in (slice(3), slice(3, 6))
    )
    sides = [Side(sizes[:3], each.text_prints, each, None) for each in parts]
    both = Sides.of(RUN, *sides, same="bytes")
    method = PairParams(same="bytes")
    assert not len(compare(RUN, both, BandParams(), method).pairs)
    assert find_best_matches(RUN, both, BandParams(), method).right.tolist() == [-1] * 3


#: Contents of few sizes.
SMALL = st.sampled_from([b"", b"a", b"b", b"ab", b"ba", b"\0\0", b"...", b"word ", b"wort "])


@given(st.lists(SMALL, max_size=9), st.lists(SMALL, max_size=9), st.integers(0, 3))
def test_any_two_folders(tmp_path_factory, left, right, least):
    """Groups of one side, and what two sides share."""
    top = tmp_path_factory.mktemp("t")
    for side, contents in (("l", left), ("r", right)):
        write_files(top / side, {f"{number}": content for number, content in enumerate(contents)})
    run, given_ = Workspace(RUN), {"min_bytes": least}
    left_request, right_request = (
        Request((os.fsencode(top / side),), DocumentParams(), given_) for side in "lr"
    )
    method = PairParams(same="bytes")
    opened = load_comparison(run, left_request, method, clustering=True)
    found = opened.find_clusters(ClusterParams(keep="path-order")).clusters.representative
    one = opened.here
    names = [int(os.path.basename(name)) for name in one.documents.names]
    of_name = {name: int(own) for name, own in zip(names, found, strict=True)}
    for a, b in combinations(range(len(left)), 2):
        is_one = left[a] == left[b] and len(left[a]) >= least
        assert (of_name[a] == of_name[b] >= 0) == is_one
    for name, content in enumerate(left):
        assert (of_name[name] >= 0) == (len(content) >= least)
    here, there = load_whole_documents((run, left_request), (run, right_request))
    keys = [each.prints.keys(run, "bytes", each.sizes) for each in (here, there)]
    expected = {each for each in left if each in right and len(each) >= least}
    shared = {each for each in set(keys[0].tolist()) & set(keys[1].tolist()) if each}
    assert len(shared) == len(expected)
