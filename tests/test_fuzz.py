"""The fuzzer for some seconds, and what it has found, by name."""

import json
import random
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from lshdup.base.forms import Form
from lshdup.base.params import BandParams, ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.compare.clusters import choose_representatives
from lshdup.errors import ArtifactError, ParameterError
from lshdup.kernels import text as text_kernels
from lshdup.shingling.shingler import Shingler
from lshdup.store import npz
from lshdup.text.decoding import decode
from lshdup.text.text_batch import TextBatch
from tests.conftest import ROOT, RUN, part, require
from tests.fuzz import artifacts
from tests.fuzz.artifacts import archive_of, array_of, npy
from tests.fuzz.html import Html
from tests.fuzz.texts import Texts
from tests.office import unzipped
from tests.running import clean_environment

SEED = 20


@pytest.mark.parametrize(("target", "batches"), [(Texts, 10), (Html, 1)])
def test_texts_and_pages(target, batches):
    target = target()
    for number in range(batches):
        tally = target.batch(random.Random(f"{SEED} {number}"))
        assert tally.tried
        assert not tally.findings, tally.findings[0]


def fuzz(folder, *arguments):
    """Run the fuzzer in a process, which writes outside of arrays would kill; return its words."""
    command = [sys.executable, "-m", "tests.fuzz", *map(str, arguments)]
    env = clean_environment() | {"TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    ("name", "least", "seed"),
    [
        ("ids", 1000, SEED),
        ("parquet", 100, 26),  # The fourth batch ended lshdup 1.0.0.
        pytest.param("artifacts", 300, SEED, marks=pytest.mark.long),
        pytest.param("parquet", 3000, SEED, marks=pytest.mark.long),
    ],
)
def test_in_a_process_of_their_own(tmp_path, name, least, seed):
    if name == "parquet":
        require("parquet", "pyarrow")
    options = ("--only", name, "--seconds", 0, "--least", least, "--seed", seed)
    assert f"{least:,} tried" in fuzz(tmp_path, *options)


@pytest.mark.long
@pytest.mark.parametrize("name", ["html", "artifacts"])
def test_guided_by_coverage(tmp_path, name):
    require("fuzz", "atheris")
    options = ("--atheris", "--only", name, "--seconds", 60, "--runs", 300, "--seed", SEED)
    said = r"tried by atheris in \d+ s, 0 findings \(coverage [\d,]+ -> [1-9][\d,]+ edges"
    assert re.search(said, fuzz(tmp_path, *options))


# --- found cases: texts and pages -----------------------------------------------------------------


def test_text_that_outgrows_its_room_by_a_hair():
    """The last bytes of a token were loaded from behind the array, as a fence there found."""
    text = "\u0149\u0149" + "\u0390" * 130 + "aaaa\u0905"
    script = f"""
import numpy as np
from lshdup.text.text_batch import TextBatch
from lshdup.base.params import ShingleParams
from lshdup.shingling.shingler import Shingler
from tests.fuzz.fences import run_fenced
batch = TextBatch.of([0], [{text.encode()!r}])
_, outcomes, whole = run_fenced(Shingler(ShingleParams()), batch, np.full(1, 2, np.uint8))
print(whole, outcomes.tolist())"""
    printed = subprocess.check_output([sys.executable, "-c", script], text=True, cwd=ROOT)
    assert printed.split() == ["True", f"[{text_kernels.NEEDS_NORMALIZING}]"]


def test_rows_of_comments_are_read_once():
    """To look for `<html` took time exponential in the comments before it."""
    assert decode(b"<!---->" * 500 + b"text", b"a.txt").utf8.startswith(b"<!---->")
    page = b"<!----> \n" * 400 + b"<html>text"
    assert decode(page, b"a.txt").form == Form.MARKUP
    assert decode(page, b"a.txt", ShingleParams(markup="visible")).utf8 == b"text"


@pytest.mark.parametrize(
    ("values", "secret"),
    [
        ([i << 40 | 1 for i in range(3)], b""),
        ([i % 300 << 50 for i in range(60_000)], b""),
        ([(1 << 63) + i for i in range(60_000)], b"key"),
        pytest.param(range(1 << 63, (1 << 63) + 2_000_000), b"", marks=pytest.mark.long),
    ],
    ids=["few", "repeated", "with a key", "very many"],
)
def test_many_ids_with_equal_leading_bits(values, secret):
    """Adversarial sets cost n log n; to sort the last one by insertion would take 10^12 steps."""
    shuffled = np.array([*values, 0, (1 << 64) - 1], np.uint64)
    np.random.default_rng(1).shuffle(shuffled)
    batch = TextBatch.of([0], [" ".join(map(str, shuffled.tolist())).encode()])
    (found,) = Shingler(ShingleParams(tokens="ids", secret=secret)).shingle(batch).sets
    assert np.array_equal(np.sort(found), np.unique(shuffled))


# --- found cases: artifacts -----------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "x.npz"
    npz.save(path, "things", {"seed": 1}, {"a": np.arange(5, dtype=np.uint64)})
    return path


def rewrite(path, changed, **options):
    """Replace members of an artifact, or leave them out if they are None."""
    members = unzipped(path.read_bytes()) | changed
    members = [(name, data) for name, data in members.items() if data is not None]
    path.write_bytes(archive_of(members, **options))


def header_of(data):
    return {"header.npy": npy(np.frombuffer(data, np.uint8))}


def refused(path, match="damaged"):
    with pytest.raises(ArtifactError, match=match) as error:
        npz.load(path, "things", "mend")
    assert error.value.message.isprintable()
    assert len(error.value.message) < 700


def test_headers_that_are_no_headers_and_messages_on_one_line(saved):
    for header in (b"[" * 100_000, b'{"a":' * 50_000, b"\xff", b"1" * 10_000, b"[]"):
        rewrite(saved, header_of(header))
        refused(saved)
    header = {"kind": "\x1b[31m\n" + "x" * 100_000, "format": 1}
    rewrite(saved, header_of(json.dumps(header).encode()))
    refused(saved, "not things")


def test_npy_headers_are_not_evaluated(saved):
    members = unzipped(saved.read_bytes())
    objects = "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"
    huge = "{'descr': '<u8', 'fortran_order': False, 'shape': (99999999999999,), }"
    for head in ("'''", "(" * 5000, "-" * 9000 + "1", objects, huge, "\0"):
        for name in ("a.npy", "header.npy"):
            saved.write_bytes(archive_of([*members.items()]))
            rewrite(saved, {name: artifacts.npy_with(head, members[name])})
            what = "has a shape that does not fit" if head is huge else "is no array of a shape"
            refused(saved, f"{name} {what}")


def test_members_that_are_many_or_twice_or_out_of_place(saved):
    members = list(unzipped(saved.read_bytes()).items())
    saved.write_bytes(archive_of([*members, members[0]]))
    refused(saved, "two of one name")
    saved.write_bytes(archive_of([*members, *((f"m{i}.npy", members[0][1]) for i in range(100))]))
    refused(saved, "too many")
    saved.write_bytes(archive_of(members, padding=False))
    refused(saved, "places for members")
    saved.write_bytes(archive_of(members, method=8))
    refused(saved, "compressed")
    saved.write_bytes(archive_of(members))
    assert npz.load(saved, "things", "mend").arrays["a"].tolist() == [0, 1, 2, 3, 4]


def test_offsets_that_wrap_are_out_of_range():
    """start + size was below the end because it had wrapped: all memory was copied."""
    high = 1 << 62
    offsets = np.array([0, high, -high - 5], np.int64)
    with pytest.raises(IndexError):
        RaggedSets(np.arange(9, dtype=np.uint64), offsets).take(np.array([1]))
    table = StringTable(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 0, 3], np.int64))
    assert table.ending_with(b"c") in ([], [2])


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (ShingleParams, [{"k": 2.0}, {"bag": "no"}]),
        (SketchParams, [{"perms": 128.0}, {"seed": True}]),
        (BandParams, [{"threshold": 10**4000}, {"threshold": "0.8"}, {"rows": None}]),
    ],
)
def test_parameters_of_the_wrong_type(kind, changes):
    for data in (list(kind().to_json()), *(kind().to_json() | each for each in changes)):
        with pytest.raises(ParameterError):
            kind.from_json(data)


def forge(folder, kind, name, change):
    """Change one array of an artifact, and its checksum with it."""
    path = folder / ".lshdup" / f"{kind}.npz"
    data = unzipped(path.read_bytes())[f"{name}.npy"]
    size = 10 + int.from_bytes(data[8:10], "little")
    array = array_of(data).copy()
    change(array) if callable(change) else array.fill(change)
    rewrite(path, {f"{name}.npy": data[:size] + array.tobytes()})


def twice(order):
    order[:, 1] = order[:, 0]


def backwards(array):
    array[:] = array[::-1].copy()


def in_a_row(firsts):
    firsts[:-1] = np.arange(1, len(firsts))


FORGED = [
    # A band with a document twice: kernels wrote before the places of documents.
    ("bands", "order", twice, "not in order"),
    ("bands", "firsts", 1 << 31, "not there"),
    # Every document a copy of the next one, but for the last: a best copy was read from memory
    # that had not been written.
    ("bands", "firsts", in_a_row, "does not represent itself"),
    # A negative size: files were read to before the buffer.
    ("signatures", "file_sizes", -50, "size that none can have"),
    # More shingles than there is memory for.
    ("signatures", "set_sizes", (1 << 62) - 1, "sets of a size that none"),
    ("signatures", "names_blob", 0, "NUL"), ("signatures", "forms", 255, "not there"),
]  # fmt: skip
#: What was guessed, and what was removed: out of order, or of no document.
FORGED_MORE = [
    *(("signatures", "guessed", change, "damaged") for change in (backwards, 100, -100)),
    *(("signatures", "common", backwards, "damaged"), ("signatures", "template", 7, "damaged")),
    ("signatures", "guesses_offsets", 2, "damaged"),
]
#: These are ignored.
PAIRS = [("left", 3_000_000), ("right", 0), ("similarity", np.nan)]
PAIRS = [("pairs", *change, "") for change in PAIRS]
FILTERED = "index d --ignore-common 3 --template d/ISC.txt"


@pytest.mark.parametrize(
    ("line", "forged"), [("index d", FORGED), (FILTERED, FORGED_MORE), ("pairs d", PAIRS)]
)
def test_forged_arrays_are_refused_or_ignored(corpus, run, tmp_path, line, forged):
    shutil.copytree(corpus / "licences", tmp_path / "d")
    for name in ("a", "b"):
        (tmp_path / "d" / name).write_bytes("Größe und Übermut ".encode("latin-1") * 9)
    right = run(line).out
    stored = {path: path.read_bytes() for path in (tmp_path / ".lshdup").glob("*.npz")}
    for kind, name, change, says in forged:
        for path, data in stored.items():
            path.write_bytes(data)
        forge(tmp_path, kind, name, change)
        for command in ("pairs", "report") if says else ("pairs",):
            result = run(command, code=2 if says else 0)
            assert says in result.err if says else result.out == right, result
            assert "Traceback" not in result.err
            assert len(result.err.splitlines()) <= 5


def test_sets_that_are_only_mapped_are_joined(corpus, monkeypatch):
    """`shingle`, then `pairs`, then containment ended in a TypeError, above 4 MB of shingles."""
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    monkeypatch.chdir(corpus)
    for command in ("shingle", "pairs"):
        assert artifacts.run([command, "licences"], 300).startswith("answer 0")
    stored = artifacts.run(["pairs", "--measure", "containment"], 300)
    afresh = artifacts.run(["pairs", "--measure", "containment", "--no-store", "licences"], 300)
    assert stored == afresh
    assert stored.startswith("answer 0 licences/")


def test_the_best_copy_of_every_document_is_a_document():
    """Also of one that represents none: memory that was not written is no answer."""
    best = choose_representatives(RUN, np.array([0, 0, 2, 2]), np.array([3, 1, 0, 2]))
    assert best.tolist() == [1, 1, 3, 3]  # 1 and 3 represent none


def test_a_home_with_nul_is_refused(corpus, run, tmp_path):
    run("index sample_corpus/licences")
    path = tmp_path / ".lshdup/signatures.npz"
    header = json.loads(array_of(unzipped(path.read_bytes())["header.npy"]).tobytes())
    rewrite(path, header_of(json.dumps(header | {"base": "a\0b"}).encode()))
    result = run("query MIT.txt", code=2)
    assert "signatures.npz is damaged" in result.err
    assert "Traceback" not in result.err


def test_shingles_without_sets_are_refused(corpus, run, tmp_path):
    run("shingle sample_corpus/licences")
    rewrite(tmp_path / ".lshdup/shingles.npz", {"values.npy": None})
    assert "is missing" in run("pairs --exact", code=2).err


@pytest.mark.parametrize("pattern", part([(1 << 64) - 1, 0x3FF0000000000000], 2))
def test_no_memory_is_used_before_it_is_written(tmp_path, monkeypatch, pattern):
    """Whatever new arrays hold, every command gives the same bytes."""
    monkeypatch.chdir(tmp_path)
    files, empty = artifacts.make_folder(tmp_path), np.empty

    def answers():
        for tokens, commands in artifacts.COMMANDS.items():
            for command in part(commands, 4):
                for name, data in files[tokens].items():
                    (tmp_path / tokens / f"{name}.npz").write_bytes(data)
                for store in (["--store", tokens], ["--store", tokens], ["--no-store"]):
                    if tokens in store or (tokens == "word" and "docs" in command):
                        yield command, artifacts.run([*command, *store], 300)

    def filled(shape, dtype=float, **options):
        array = empty(shape, dtype, **options)
        if array.dtype != object:
            some = np.frombuffer(pattern.to_bytes(8, "little") * (array.nbytes // 8 + 1), np.uint8)
            array.reshape(-1).view(np.uint8)[:] = some[: array.nbytes]
        return array

    right = list(answers())
    monkeypatch.setattr(np, "empty", filled)
    for expected, answer in zip(right, answers(), strict=True):
        assert answer == expected
