"""What the store survives: other runs, SIGKILL and SIGINT at any instant, full disks, flipped bits;
and that a long run can be resumed.
"""

import contextlib
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import lshdup.base.memory
import lshdup.sources.reading
import lshdup.store.memo
import lshdup.store.npz
import lshdup.workspace.loading
from lshdup.base.run import Run
from lshdup.collection.set_source import set_source
from lshdup.errors import ArtifactError, InputError
from lshdup.params import DocumentParams, PairParams
from lshdup.store import npz
from lshdup.store.store import Store
from lshdup.workspace.index import load_or_build_index, load_or_find_pairs
from lshdup.workspace.loading import make_shingles
from lshdup.workspace.request import Request
from tests.conftest import RUN, killed_behind_a_journal, many, open_workspace
from tests.running import clean_environment

KINDS = ("signatures", "bands", "pairs")
ENVIRONMENT = clean_environment()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_documents(folder, n, words=60):
    """Files in threes that are 0.93 or more alike, and not at all like the others: no sane choice
    of bands misses a pair.
    """
    chance = random.Random(n)
    folder.mkdir()
    for i in range(0, n, 3):
        text = [f"word{chance.randrange(1_000_000)}" for _ in range(words)]
        for j in range(3):
            (folder / f"{i + j:05}.txt").write_text(
                " ".join(
                    ["other", *text[1:]] if j == 1 else [*text[:-1], "other"] if j == 2 else text
                )
            )


def steps(store, said=None, jobs=2, check_content=False, documents=(b"d",), **given):
    """`lshdup pairs d` in this process: every pair with its similarity."""
    workspace = open_workspace(store, (said if said is not None else []).append, jobs=jobs)
    indexed = load_or_build_index(
        workspace, Request(documents, DocumentParams(), given, check_content), save=False
    )
    found = load_or_find_pairs(workspace, indexed, PairParams()).pairs
    names = list(indexed.collection.documents.names)
    left, right, similarity = found.part(0, len(found))
    return [
        (names[a], names[b], s)
        for a, b, s in zip(left.tolist(), right.tolist(), similarity.tolist(), strict=True)
    ]


def contents(store):
    return {path.name: path.read_bytes() for path in Path(store).iterdir() if path.suffix == ".npz"}


def assert_whole(store):
    for kind in KINDS:
        npz.load(Path(store) / f"{kind}.npz", kind, "mend")


def remains(store):
    return sorted(
        path.name
        for path in Path(store).iterdir()
        if path.suffix != ".npz"
        and path.name not in (".gitignore", ".lock", "CACHEDIR.TAG", "manifest.json")
    )


# --- one writer at a time -------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_readers_are_not(run, here):
    make_documents(here / "d", 30)
    expected = run("pairs", "d").out
    (here / ".lshdup/pairs.npz").unlink()
    with Store(here / ".lshdup").writing():
        for command in (["pairs", "d"], ["index"], ["shingle", "d"], ["signatures"]):
            result = run(*command, code=2)
            assert f"another lshdup run (process {os.getpid()}) is writing to .lshdup" in result.err
            assert len(result.err.splitlines()) == 2
        assert run("query", "d/00000.txt").lines
        reader = run("pairs")
        assert reader.out == expected
        assert "pairs.npz is not kept: another lshdup run" in reader.err
        assert run("pairs", "d", "--no-store").out == expected
    assert not (here / ".lshdup/pairs.npz").exists()
    run("pairs", "d")
    assert (here / ".lshdup/pairs.npz").exists()


def test_two_runs_at_once_both_end_cleanly(run, here):
    make_documents(here / "d", 900)
    expected = run("pairs", "d", "--no-store").out
    refused = 0
    for attempt in range(4):
        command = [sys.executable, "-m", "lshdup", "pairs", "d"]
        environment = {**ENVIRONMENT, "LSHDUP_SEED": str(attempt)}
        pair = [
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for _ in range(2)
        ]
        for process in pair:
            out, err = process.communicate(timeout=60)
            if process.returncode == 0:
                assert out == expected
            else:
                assert process.returncode == 2
                assert b"another lshdup run" in err
                refused += 1
        assert refused <= attempt + 1
        assert_whole(".lshdup")
        assert run("pairs", "d", "--seed", str(attempt)).out == expected


def test_a_writer_that_is_killed_leaves_no_lock(run, here):
    make_documents(here / "d", 30)
    script = """
import time; from pathlib import Path; from lshdup.store.store import Store
with Store(Path('.lshdup')).writing():
    print(1, flush=True)
    time.sleep(60)"""
    with subprocess.Popen(
        [sys.executable, "-c", script], env=ENVIRONMENT, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert f"(process {process.pid})" in run("index", "d", code=2).err
        process.kill()
    run("index", "d")


def test_what_killed_runs_leave_is_removed_and_nothing_else(here):
    make_documents(here / "d", 30)
    steps(".lshdup")
    ours = [".lshdup-abcd_123.tmp", ".lshdup-00000000.tmp"]
    others = [".lshdup-abcd_1234.tmp", ".lshdup-.tmp", "lshdup-abcd_123.tmp", "notes.txt"]
    for name in [*ours, *others]:
        (here / ".lshdup" / name).write_text("x")
    (here / ".lshdup-abcd_123.tmp").write_text("x")  # Not in the store.
    steps(".lshdup", perms=64)
    assert remains(".lshdup") == sorted([*others, "memo"])  # which has the first definition
    assert (here / ".lshdup-abcd_123.tmp").exists()


def test_a_store_that_was_only_begun_is_gone_on_with(here):
    make_documents(here / "d", 30)
    for begun in (b"", b"# Made by"):
        (here / "st").mkdir()
        (here / "st/.gitignore").write_bytes(begun)
        assert steps("st") == steps(".lshdup")
        shutil.rmtree("st")


def test_no_mix_of_old_and_new_artifacts_gives_another_answer(here):
    """A reader may find each artifact of the collection before or of the one after, in any mix,
    with any times.
    """
    make_documents(here / "d", 30)
    make_documents(here / "e", 60, words=50)
    answers = [steps("old", documents=(b"d",)), steps("new", documents=(b"e",))]
    folders = [here / "old", here / "new"]
    for mix in range(1 << len(KINDS)):
        for order in (KINDS, KINDS[::-1]):
            shutil.rmtree("mix", ignore_errors=True)
            shutil.copytree("old", "mix")
            for time_, kind in enumerate(order):
                path = shutil.copy(folders[mix >> KINDS.index(kind) & 1] / f"{kind}.npz", "mix")
                os.utime(path, (time_, time_))
            assert steps("mix", documents=()) in answers


# --- killed, interrupted --------------------------------------------------------------------------

ZYGOTE = """
import os, signal, sys
import lshdup.sources.reading, lshdup.store.memo
from lshdup.cli.main import main, program

lshdup.sources.reading.BATCH_DOCUMENTS = 100
signal.signal(signal.SIGINT, signal.default_int_handler)
quiet = os.open(os.devnull, os.O_WRONLY)
errors = os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
answers, out = os.dup(1), os.dup2(quiet, 1)
try:
    main(["pairs", "d", "-q", "--store", "warm"])
except SystemExit as done:
    assert not done.code
interrupt = {signal.SIGINT}
for number, line in enumerate(sys.stdin):
    lshdup.store.memo.PATIENCE = 0.0 if number % 2 else 10.0  # every other run adds to the memo
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupt)
    child = os.fork()
    if not child:
        try:
            os.dup2(errors, 2)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupt)
            perms, *words = line.split()
            os.environ["LSHDUP_PERMS"] = perms
            sys.argv = ["lshdup", *words]
            program()
        except KeyboardInterrupt:  # before the program began
            os._exit(130)
    os.write(answers, b"%d\\n" % child)
    os.write(answers, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Started:
    """Runs of the program that have imported everything when they begin: what they do then is what
    a signal shall meet.
    """

    def __init__(self):
        command = [sys.executable, "-c", ZYGOTE]
        self._process = subprocess.Popen(
            command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self):
        self.run("pairs d -q --store warm")
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)

    def run(self, arguments, number=None, delay=0.0, perms=128):
        """Exit code, and seconds from the signal, if one was sent, else from the beginning."""
        self._process.stdin.write(f"{perms} {arguments}\n".encode())
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        began = time.monotonic()
        if number is not None:
            time.sleep(delay)
            began = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
        return int(self._process.stdout.readline()), time.monotonic() - began


def disturbed(here, number, wanted):
    """Send a signal at random instants of runs that have more or less to do; gives what became of
    each, and checks the store.
    """
    make_documents(here / "d", 1500)
    chance = random.Random(number)
    expected = steps("undisturbed")
    names = sorted(os.listdir("d"))
    seconds = []
    with Started() as started:
        for _ in range(3):
            shutil.rmtree(".lshdup", ignore_errors=True)
            code, took = started.run("pairs d -q")
            assert code == 0
            seconds.append(took)
        longest = 1.2 * max(seconds)
        hit = tried = 0
        while hit < wanted:
            tried += 1
            assert tried < 10 * wanted
            if chance.random() < 0.2:
                shutil.rmtree(".lshdup", ignore_errors=True)
            now = time.time_ns()
            for name in chance.sample(names, chance.choice((0, 1, 500))):
                os.utime(f"d/{name}", ns=(now, now))
            perms = chance.choice((64, 128))
            delay = chance.random() * longest
            code, _ = started.run("pairs d -q", number, delay, perms)
            hit += code != 0
            yield code
            if not os.path.isdir(".lshdup"):
                continue
            assert_whole(".lshdup")
            shutil.rmtree("next", ignore_errors=True)
            shutil.copytree(".lshdup", "next")
            assert steps("next", perms=perms) == expected
        assert started.run("pairs d -q")[0] == 0
        # What a killed run has made with the other number of rows may be asked for again.
        assert set(remains(".lshdup")) <= {"memo"}
        assert {path.suffix for path in Path(".lshdup").glob("memo/*")} <= {".npz"}
        assert steps(".lshdup") == expected


@pytest.mark.parametrize("instants", [3, pytest.param(100, marks=pytest.mark.long)])
def test_killed_at_any_instant(here, instants):
    """SIGKILL: every artifact that is there is whole, and the next run gives the answer of an
    undisturbed one.
    """
    assert set(disturbed(here, signal.SIGKILL, instants)) <= {0, -signal.SIGKILL}


@pytest.mark.parametrize("instants", [3, pytest.param(40, marks=pytest.mark.long)])
def test_interrupted_at_any_instant(here, instants):
    """SIGINT: exit code 130, one line, nothing left behind."""
    for code in disturbed(here, signal.SIGINT, instants):
        assert code in (0, 130)
        if os.path.isdir(".lshdup"):
            assert set(remains(".lshdup")) <= {"memo"}
    kept = ("nothing of this run was kept", "what was finished is kept, whole")
    said = set(Path("errors").read_text().splitlines())
    assert said
    assert said <= {
        f"lshdup: interrupted; {each}"
        for each in (*kept, "what was read is kept, and the same command goes on from there")
    }


@pytest.mark.parametrize("delay", [0.01, 0.2, 0.4, 0.6])
def test_interrupted_while_starting(run, here, delay):
    make_documents(here / "d", 1500)
    run("index", "d")
    # A program that an interactive shell starts has SIGINT at its default, whatever this test's
    # parent did.
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from lshdup.cli.main import program\nprint('ready', flush=True)\nprogram()"
    )
    # It waits for more names than d, so it cannot end before the signal.
    command = [sys.executable, "-c", script, "index", "d", "--files-from", "-", "-q"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == b"lshdup: interrupted; nothing of this run was kept\n"
    assert remains(".lshdup") == []
    run("pairs", "-o", "out")


# --- resumed --------------------------------------------------------------------------------------


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(lshdup.sources.reading, "BATCH_DOCUMENTS", 20)
    monkeypatch.setattr(lshdup.store.memo, "PATIENCE", 0.0)


def interrupted_after(monkeypatch, batches, **given):
    """A run that is interrupted when it has written so many batches to its journal."""
    add, left = lshdup.store.memo.Memo.add, [batches]

    def count(self, part):
        add(self, part)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lshdup.store.memo.Memo, "add", count)
        with pytest.raises(KeyboardInterrupt):
            steps(".lshdup", **given)


@pytest.mark.parametrize("room", [512 << 20, 0], ids=["sets kept", "sets not kept"])
def test_resumed(here, monkeypatch, small_batches, room):
    monkeypatch.setattr(lshdup.workspace.loading, "SET_BYTES", room)
    make_documents(here / "d", 300)
    (here / "d/00100.txt").write_bytes(b"\0 binary")
    (here / "d/00200.txt").write_text("")
    expected = steps("undisturbed")
    for batches in (1, 8, 15):
        interrupted_after(monkeypatch, batches)
        said = []
        assert steps(".lshdup", said) == expected
        resumed = 20 * batches - (batches > 5)  # less the binary one
        assert [line for line in said if "resumed" in line] == [
            f"resumed: {resumed} documents of an interrupted run are not read again"
        ]
        assert contents(".lshdup") == contents("undisturbed")
        assert remains(".lshdup") == []
        shutil.rmtree(".lshdup")


def test_a_journal_of_other_parameters_is_ignored(here, monkeypatch, small_batches):
    make_documents(here / "d", 300)
    interrupted_after(monkeypatch, 8)
    said = []
    assert steps(".lshdup", said, perms=64) == steps("undisturbed", perms=64)
    assert not [line for line in said if "resumed" in line]


def test_a_journal_of_more_parts_than_a_process_may_open(here, monkeypatch, small_batches):
    """Each mapped part holds a file descriptor."""
    make_documents(here / "d", 300)
    interrupted_after(monkeypatch, 14)
    Path(".lshdup/memo/other.npz").write_bytes(b"of nobody")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 9, hard))
    said = []
    try:
        steps(".lshdup", said)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "resumed: 280 documents of an interrupted run are not read again" in said


def test_resumed_again_after_changes_and_beside_older_artifacts(here, monkeypatch, small_batches):
    make_documents(here / "d", 300)
    steps(".lshdup")
    for name in sorted(os.listdir("d"))[:200]:
        with open(f"d/{name}", "a") as file:
            file.write(" and so on")
    interrupted_after(monkeypatch, 3)
    interrupted_after(monkeypatch, 4)  # 60 documents are taken over, and 80 more read
    with open("d/00003.txt", "a") as file:
        file.write(" and so forth")
    os.remove("d/00004.txt")
    parts = sorted(Path(".lshdup/memo").iterdir())
    parts[-1].with_name("00000099.npz").write_bytes(parts[-1].read_bytes()[:-10])  # torn
    other = []
    assert steps("other", other, perms=64)  # other parameters, other store
    said = []
    assert steps(".lshdup", said) == steps("undisturbed")
    assert "resumed: 138 documents of an interrupted run are not read again" in said
    assert contents(".lshdup") == contents("undisturbed")


def test_a_damaged_part_of_a_journal_is_ignored(here, monkeypatch, small_batches):
    make_documents(here / "d", 300)
    expected = steps("undisturbed")
    interrupted_after(monkeypatch, 10)
    parts = sorted((here / ".lshdup/memo").iterdir())
    chance = random.Random(1)
    ignored = 0
    times = many(30) // 2
    for _ in range(times):
        part = chance.choice(parts)
        data = part.read_bytes()
        at = chance.randrange(len(data))
        damaged = data[:at] + (
            bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
            if chance.random() < 0.5
            else b""
        )
        shutil.rmtree("damaged", ignore_errors=True)
        shutil.copytree(".lshdup", "damaged")
        (here / "damaged/memo" / part.name).write_bytes(damaged)
        said = []
        assert steps("damaged", said) == expected
        assert contents("damaged") == contents("undisturbed")
        ignored += not any("200 documents" in line for line in said)
        assert ignored or damaged  # bytes between members mean nothing
    assert ignored > 0.8 * times
    said = []
    steps(".lshdup", said, perms=64)  # a journal of other parameters is none
    assert not any("resumed" in line for line in said)


def test_killed_runs_are_resumed_by_the_program(run, here):
    make_documents(here / "d", 300)
    killed_behind_a_journal("pairs", "d", batch=20, parts=5)
    result = run("pairs", "d")
    assert "resumed: 100 documents of an interrupted run are not read again" in result.err
    assert "200 documents read, 100 unchanged" in result.err
    assert result.out == run("pairs", "d", "--store", "undisturbed").out
    assert contents(".lshdup") == contents("undisturbed")


def test_killed_runs_over_rows_are_resumed(run, here):
    """Of two files, the second of which the interrupted run had begun."""
    make_documents(here / "d", 600)
    texts = [path.read_text() for path in sorted(Path("d").iterdir())]
    for part in range(2):
        rows = (json.dumps({"text": text}) for text in texts[part::2])
        Path(f"{part}.jsonl").write_text("\n".join(rows))
    names = ("0.jsonl", "1.jsonl")
    killed_behind_a_journal("pairs", *names, batch=20, parts=20)
    result = run("pairs", *names)
    assert "resumed: 400 documents of an interrupted run are not read again" in result.err
    assert result.out == run("pairs", *names, "--store", "undisturbed").out
    assert result.out.count(b"\n") > 250
    assert contents(".lshdup") == contents("undisturbed")


def test_short_runs_write_no_journal(here, monkeypatch):
    monkeypatch.setattr(
        lshdup.store.memo.Memo, "add", lambda *_: pytest.fail("a short run wrote a journal")
    )
    make_documents(here / "d", 30)
    steps(".lshdup")


# --- the disk is full -----------------------------------------------------------------------------


@contextlib.contextmanager
def files_of_at_most(size):
    """Every write past so many bytes of a file fails, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def shingled(store, said, **given):
    make_shingles(open_workspace(store, said.append), Request((b"d",), DocumentParams(), given))


def continued(store, said, **given):
    load_or_build_index(
        open_workspace(store, said.append),
        Request((), DocumentParams(), {"threshold": 0.9, **given}),
        save=True,
    )


def before_and_after(step, store, saved):
    """What a store holds before and after a step over documents that all changed; `saved` is a copy
    of it as it was before.
    """
    make_documents(Path("d"), 240)
    if step is shingled:
        step(store, [])
    steps(store)
    old = contents(store)
    for name in os.listdir("d"):
        with open(f"d/{name}", "a") as file:
            file.write(" and so on")
    shutil.copytree(store, saved)
    step(store, [])
    return old, contents(store)


@pytest.mark.parametrize(
    "step", [steps, *(pytest.param(each, marks=pytest.mark.long) for each in (shingled, continued))]
)
def test_a_full_file_system_leaves_old_artifacts_whole(
    run, here, monkeypatch, small_batches, small_disk, step
):
    """The same on a disk that is really full, more or less."""
    monkeypatch.setattr(lshdup.base.memory, "MOST_IN_MEMORY", 0)
    old, new = before_and_after(step, "disk/store", "saved")
    refused = 0
    for pages in [0, 1, 2, 3, 4, *range(5, 100, 4), *range(100, 500, 50)]:
        shutil.rmtree("disk/store")
        shutil.copytree("saved", "disk/store")
        with open("disk/filler", "wb") as filler:
            status = os.statvfs("disk")
            os.posix_fallocate(
                filler.fileno(), 0, max(1, (status.f_bavail - pages) * status.f_bsize)
            )
        try:
            step("disk/store", [])
        except ArtifactError as error:
            refused += "No space left on device" in error.message
            if refused == 1 and step is not continued:
                result = run(
                    "shingle" if step is shingled else "pairs",
                    "d",
                    "--store",
                    "disk/store",
                    "-q",
                    code=2,
                )
                assert "No space left on device" in result.err
                assert len(result.err.splitlines()) == 2
        now = contents("disk/store")
        assert set(now) in (set(old), set(new))  # `shingle` leaves no older signatures
        assert all(now[name] in (old.get(name), new.get(name)) for name in now)
        assert set(remains("disk/store")) <= {"memo"}  # documents that were finished
        os.remove("disk/filler")
    assert refused > 3
    assert now == new


WITHOUT_ROOM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from lshdup.cli.main import program
program()"""


@pytest.mark.parametrize(
    ("line", "size", "said"),
    [
        ("pairs d", 0, "name another with --store DIR"),
        ("pairs d", 10, "name another with --store DIR"),
        ("pairs d", 20_000, "--store DIR"),
        ("shingle d", 5000, "--store DIR"),
        ("pairs d --no-store --baseline k --update-baseline", 99, "k cannot be written: File too"),
        ("pairs d --no-store -o out.tsv", 99, "out.tsv"),
        ("report d --no-store -o page.html", 99, "page.html"),
        ("clusters rows.jsonl --no-store --write w.jsonl", 9, "w.jsonl"),
        ("clusters rows.jsonl --no-store --write w.jsonl --removed gone", 90, "gone"),
        ("curve --bands 5 --rows 4 --plot c.svg", 99, "c.svg"),
    ],
)
def test_a_full_disk_in_one_line(here, line, size, said):
    """With the name of what cannot be written, and what helps."""
    make_documents(here / "d", 150)
    Path("rows.jsonl").write_text('{"text": "one two three four"}\n' * 3)
    command = [sys.executable, "-c", WITHOUT_ROOM, str(size), *line.split(), "-q"]
    process = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert process.returncode == 2, process
    assert b"File too large" in process.stderr
    assert said in process.stderr.decode()
    assert process.stderr.count(b"\n") <= 2, process
    assert {path.name for path in here.iterdir()} <= {"d", "rows.jsonl", ".lshdup"}


def test_no_room_for_the_journal(here, monkeypatch, small_batches):
    make_documents(here / "d", 300)
    expected = steps("undisturbed")
    written = max(map(len, contents("undisturbed").values()))
    monkeypatch.setattr(
        lshdup.store.memo, "collection_arrays", lambda *_: {"much": np.zeros(written, np.uint64)}
    )
    said, added = [], []
    add = lshdup.store.memo.Memo.add
    monkeypatch.setattr(lshdup.store.memo.Memo, "add", lambda *each: added.append(add(*each)))
    with files_of_at_most(written):
        assert steps(".lshdup", said) == expected
    assert len(added) == 300 // 20  # No batch waits for a journal that cannot be written.
    assert [line for line in said if "cannot be resumed" in line] == said
    assert len(said) == 1
    assert contents(".lshdup") == contents("undisturbed")
    assert remains(".lshdup") == []


# --- flipped bits ---------------------------------------------------------------------------------


def member(path, name):
    """Where the values of a member are in the file: start and end."""
    array = npz.load(path, path.stem, "mend").arrays[name]
    at = path.read_bytes().index(array.tobytes())
    return at, at + array.nbytes


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("shingles", "values"),
        ("shingles", "offsets"),
        ("signatures", "signatures"),
        ("bands", "order"),
        ("bands", "firsts"),
    ],
)
def test_flipped_bits_never_change_an_answer(here, monkeypatch, kind, name):
    """What decides an answer is checked where it is used, also of a file too large to be checked
    whole.
    """
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    make_documents(here / "d", 60)
    expected = steps(".lshdup")
    if kind == "shingles":
        shingled(".lshdup", [])
    path = here / f".lshdup/{kind}.npz"
    (here / ".lshdup/pairs.npz").unlink()
    data = path.read_bytes()
    start, end = member(path, name)
    chance = random.Random(2)
    refused = 0
    for _ in range(100):
        at = chance.randrange(start, end)
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        try:
            assert steps(".lshdup", documents=()) == expected
        except ArtifactError as error:
            refused += f"{kind}.npz is damaged" in error.message
        (here / ".lshdup/pairs.npz").unlink(missing_ok=True)
    assert refused > 50
    if kind == "shingles":  # only `shingle` makes it anew
        shingled(".lshdup", [])
    assert steps(".lshdup") == expected  # named documents make it anew
    assert steps(".lshdup", documents=()) == expected


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("shingles", True), *itertools.product(["signatures", "bands"], [True, False])],
)
@pytest.mark.parametrize(
    ("step", "more", "least"), [(25, 80, 5), pytest.param(5, 500, 20, marks=pytest.mark.long)]
)
def test_a_query_of_flipped_bits_is_right_or_refused(
    here, monkeypatch, kind, kept, step, more, least
):
    """Any bit of any artifact, as if all its members were too large to be looked at whole; a bit of
    every byte that a query may need.

    kept : whether there are the sets of the documents, which are read again otherwise.
    """
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    make_documents(here / "d", 6, words=20)
    if kept:
        shingled(".lshdup", [])
    # A neighbour is met in this band or not at all.
    steps(".lshdup", perms=16, threshold=0.7, bands=1, rows=1)
    path = here / f".lshdup/{kind}.npz"
    data = path.read_bytes()
    expected = queried()
    assert len(expected[0]) == 2
    chance = random.Random(3)
    needed = member(
        path, {"shingles": "values", "signatures": "fingerprints", "bands": "order"}[kind]
    )
    refused = 0
    for at in [*range(*needed, step), *chance.sample(range(len(data)), more)]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        try:
            assert queried() == expected
        except (ArtifactError, InputError):
            refused += 1
    assert refused > least


def test_a_block_that_no_query_needs_may_be_damaged(here, monkeypatch):
    """What is looked at is checked, and not more: that is why a query is quick."""
    make_documents(here / "d", 9000, words=3)
    steps(".lshdup", perms=16)
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    path = here / ".lshdup/signatures.npz"
    data = bytearray(path.read_bytes())
    expected = queried()
    for name in ("signatures", "file_mtimes", "fingerprints"):
        data[member(path, name)[1] - 1] ^= 1  # of the last document
    path.write_bytes(data)
    assert queried() == expected
    with pytest.raises(ArtifactError, match=r"signatures\.npz is damaged"):
        queried(b"d/08999.txt")
    with pytest.raises(ArtifactError, match=r"signatures\.npz is damaged"):
        queried(threshold=0.5)  # another table has to be made, from all signatures
    with pytest.raises(ArtifactError, match=r"signatures\.npz is damaged"):
        steps(".lshdup", documents=())


def test_a_lower_threshold_is_queried_in_arrays_that_are_checked_as_they_are_read(
    here, monkeypatch
):
    """Arrays of more than 4 MB are: half a million documents."""
    make_documents(here / "d", 300)
    steps(".lshdup")
    expected = queried(threshold=0.3)
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    assert queried(threshold=0.3) == expected


def test_a_document_that_is_not_in_its_own_bucket_is_noticed(here, monkeypatch):
    """Its other bands would find its neighbours all the same, but nobody knows what else is
    wrong.
    """
    make_documents(here / "d", 30)
    steps(".lshdup")
    monkeypatch.setattr(lshdup.store.npz, "_ALWAYS_VERIFIED", 0)
    path = here / ".lshdup/bands.npz"
    data = path.read_bytes()
    order = npz.load(path, "bands", "mend").arrays["order"]
    start, _ = member(path, "order")
    for place in np.flatnonzero(order == 0).tolist():  # the first document, band by band
        at = start + 4 * place
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ArtifactError, match=r"bands\.npz is damaged"):
            queried()


def queried(name=b"d/00000.txt", **given):
    """What `lshdup query` prints of a document of the store."""
    from lshdup.workspace.index import find_by_bands, read_query
    from lshdup.workspace.lookup import look_up

    workspace = open_workspace(".lshdup")
    indexed = load_or_build_index(
        workspace, Request((), DocumentParams(), given), save=False, verify=False
    )
    collection = indexed.collection
    asked = look_up(name, collection)
    if asked.index < 0:
        message = "a file that is not in the store"
        raise InputError(message)
    missing = []
    source = set_source(Run.quiet().but(skipped=missing.append), collection)
    near = find_by_bands(RUN, indexed, source, read_query(collection, asked), 0.5)
    assert not missing
    assert not len(collection.documents.changed(near.documents))
    return collection.documents.typed_names(near.documents), near.similarity.tolist()
