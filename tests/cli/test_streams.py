"""Records from standard input and from pipes: what a file of the same bytes gives."""

import gzip
import json
import mailbox
import os
import pty
import random
import signal
import subprocess
import sys

import pytest

from tests.conftest import Result
from tests.documents import tar_of, warc_record, write_rows, zip_of
from tests.running import clean_environment

WORDS = [f"w{number}" for number in range(300)]


def make_texts(n, seed=1):
    """Texts of which every third is nearly the one before it."""
    rng = random.Random(seed)
    texts = [rng.choices(WORDS, k=40) for _ in range(n)]
    for at in range(2, n, 3):
        texts[at] = [*texts[at - 1][:-1], "end"]
    return [" ".join(words) for words in texts]


def rows_of(texts):
    rows = ({"id": f"n{at}", "text": text} for at, text in enumerate(texts))
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def in_bash(line, cwd):
    """A line in bash, whose descriptors the program inherits: `shell` hands over three."""
    line = f'lshdup() {{ {sys.executable} -m lshdup "$@"; }}; {line}'
    command = ["bash", "-o", "pipefail", "-c", line]
    options = {"cwd": cwd, "env": clean_environment(), "capture_output": True, "check": False}
    return Result(subprocess.run(command, **options))


def make(kind, texts, path):
    """Return the bytes of a file of this kind, which an independent writer makes at a path."""
    members = [(f"t/{at}.txt", text.encode()) for at, text in enumerate(texts)]
    if kind == "mbox":
        box = mailbox.mbox(path)
        for at, text in enumerate(texts):
            box.add(f"From: a@b.c\nSubject: number {at}\n\n{text}\n")
        box.close()
    elif kind == "warc":
        records = (warc_record("conversion", f"http://x/{name}", text) for name, text in members)
        path.write_bytes(b"".join(records))
    elif kind in ("tar", "zip"):
        path.write_bytes({"tar": tar_of, "zip": zip_of}[kind](members))
    else:
        write_rows(path, [{"id": f"n{at}", "text": text} for at, text in enumerate(texts)])
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet", "mbox", "tar", "zip", "warc"])
def test_a_stream_of_each_kind_is_what_a_file_is(kind, run, here):
    name = "Inbox" if kind == "mbox" else f"rows.{kind}"
    data = make(kind, make_texts(12), here / name)
    commands = ["pairs", "pairs --exact", "clusters", "passages --least 9"]
    if kind not in ("tar", "zip", "warc"):
        commands += ["clusters --write -"]
    if kind == "jsonl":
        commands += ["clusters --annotate -", "passages --least 9 --write -"]
    for command in commands:
        wanted = run(f"{command} {name} --no-store").out
        assert wanted
        for packed in (data, gzip.compress(data)) if kind not in ("parquet", "zip") else (data,):
            got = run(f"{command} - --stdin {kind}", stdin=packed).out
            assert got == wanted.replace(name.encode(), b"-"), (command, len(packed))
    assert not (here / ".lshdup").exists()


def test_pipes_are_read_as_files_are(run, here):
    """Process substitution, and pipes with names, on either side."""
    texts = make_texts(12)
    (here / "z.jsonl.gz").write_bytes(gzip.compress(rows_of(texts[:6])))
    (here / "b.jsonl").write_bytes(rows_of(texts[4:]))
    wanted = run("pairs z.jsonl.gz b.jsonl --no-store").out
    assert wanted
    got = in_bash("lshdup pairs <(zcat z.jsonl.gz) <(cat b.jsonl) --stdin jsonl -q", here)
    printed = got.out.replace(b"/dev/fd/63", b"z.jsonl.gz").replace(b"/dev/fd/62", b"b.jsonl")
    assert printed == wanted
    os.mkfifo(here / "pipe")
    for line in (
        "cat b.jsonl > pipe & lshdup clusters pipe --stdin jsonl -q --write -",
        "cat b.jsonl > pipe & lshdup clusters z.jsonl.gz --against pipe --stdin jsonl -q",
        "cat b.jsonl | lshdup clusters z.jsonl.gz - --stdin jsonl -q",
        "cat b.jsonl | lshdup clusters z.jsonl.gz - - --stdin jsonl -q",
    ):
        file = line.partition("lshdup ")[2].replace("pipe", "b.jsonl").replace("- - ", "b.jsonl ")
        file = file.replace(" - ", " b.jsonl ").replace("--stdin jsonl", "--no-store")
        got = in_bash(line, here).ok()
        assert got.out.replace(b"-:", b"b.jsonl:").replace(b"pipe:", b"b.jsonl:") == run(file).out


def test_a_terminal_and_a_closed_standard_input_send_nothing(run, here):
    (here / "a").write_text("some words")
    run("index a")
    ours, theirs = pty.openpty()
    with open(theirs, "rb") as terminal:
        command = [sys.executable, "-m", "lshdup", "pairs", "-", "--stdin", "jsonl"]
        done = subprocess.run(
            command, stdin=terminal, env=clean_environment(), capture_output=True, check=False
        )
    os.close(ours)
    assert done.returncode == 2
    assert b"standard input is a terminal" in done.stderr
    assert b"zcat FILE.gz | lshdup pairs - --stdin jsonl" in done.stderr
    lines = "pairs - --stdin csv|query -|query - --lines|accept -|pairs --files-from -"
    for line in lines.split("|"):
        closed = in_bash(f"lshdup {line} <&-", here)
        assert closed.code == 2, closed
        assert "standard input is closed" in closed.err


def test_a_long_stream_takes_no_memory_and_leaves_no_file(here):
    """Beyond what a file takes; and also if the run is killed while it reads."""
    rng, peaks = random.Random(1), []
    scratch = here / "scratch"
    scratch.mkdir()
    with open("rows.jsonl", "wb") as file:
        for _ in range(100):
            file.write(b'{"text": "%s"}\n' % " ".join(rng.choices(WORDS, k=250)).encode() * 400)
    size = os.path.getsize("rows.jsonl")
    environment = {**clean_environment(), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "lshdup", "index", "--no-store", "--memory=32MB", "-j1"]
    for words in (["pairs", "rows.jsonl"], ["pairs", "-", "--stdin", "jsonl"]):
        command[3:] = [*words, "--no-store", "--memory", "32MB", "-j1", "-q", "--collapse-copies"]
        with open("rows.jsonl", "rb") as stream:
            process = subprocess.Popen(command, env=environment, stdin=stream)
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(used.ru_maxrss << 10)
    assert size > 40 << 20
    assert peaks[1] < peaks[0] + size // 4, peaks
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as process:
        process.stdin.write(bytes(8 << 20))
        process.stdin.flush()  # All but what the pipe holds has been read.
        process.send_signal(signal.SIGKILL)
    assert not list(scratch.iterdir())
    assert not (here / ".lshdup").exists()
