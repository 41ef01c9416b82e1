"""`query - --lines`: each line of JSON is answered by one, before the next one is read."""

import json
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.cli.commands import query
from tests import reference
from tests.cli.test_streams import make_texts, rows_of
from tests.running import clean_environment

TEXTS = make_texts(12)


@pytest.fixture
def store(run, here):
    (here / "rows.jsonl").write_bytes(rows_of(TEXTS))
    run("index rows.jsonl -t 0.5")


def test_an_answer_is_what_brute_force_finds_and_what_query_prints(store, run):
    asked = [*make_texts(6), TEXTS[4] + " more", "unheard of", ""]
    lines = b"".join(json.dumps(text).encode() + b"\n" for text in asked)
    answers = [json.loads(line) for line in run("query - --lines -t 0.5", stdin=lines).lines]
    assert [answer["id"] for answer in answers] == [*range(1, len(asked) + 1)]
    sets = [set(reference.shingle_list(text)) for text in TEXTS]
    for text, answer in zip(asked, answers, strict=True):
        own = set(reference.shingle_list(text))
        near = {
            f"rows.jsonl:{at}": similarity
            for at, other in enumerate(sets, 1)
            if (similarity := len(own & other) / (len(own | other) or 1)) >= 0.5
        }
        assert {each["name"]: each["similarity"] for each in answer["matches"]} == near
        printed = run("query - -t 0.5 --format jsonl", stdin=text.encode()).lines
        of_both = answer["matches"], map(json.loads, printed)
        shown, wanted = ([[*each.items()][:3] for each in rows] for rows in of_both)
        assert shown == wanted
        assert {each["verified"] for each in answer["matches"]} <= {"exact"}
    assert sum(bool(answer["matches"]) for answer in answers) == 7
    top = run("query - --lines -t 0.5 --top 1 --same text --check", stdin=lines, code=1).lines
    matches = [json.loads(line)["matches"] for line in top]
    assert [[each["same"] for each in some] for some in matches[:7]] == [["bytes"]] * 6 + [[]]


def test_a_pipeline_asks_before_it_writes(store, here):
    """Each answer is there before the next line is sent; then the input ends, or Ctrl-C comes."""
    command = [sys.executable, "-m", "lshdup", "query", "-", "--lines"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    for is_interrupted in (False, True):
        with subprocess.Popen(command, env=clean_environment(), **pipes) as process:
            alarm = threading.Timer(120, process.kill)
            alarm.start()
            for at, row in enumerate(rows_of(TEXTS).splitlines(keepends=True)):
                process.stdin.write(row[:20])
                process.stdin.flush()
                process.stdin.write(row[20:])
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["id"] == f"n{at}"
            if is_interrupted:
                process.send_signal(signal.SIGINT)
            else:
                process.stdin.close()
            assert process.stdout.read() == b""
            said = process.stderr.read()
            assert process.wait() == (130 if is_interrupted else 0), said
            assert (b"12 lines, 12 of them with near-duplicates" in said) != is_interrupted
            alarm.cancel()


@given(st.lists(st.text("ab\n", max_size=9)), st.integers(1, 5))
def test_lines_are_cut_whatever_comes_together(parts, longest):
    class Stream:
        def read1(self, _):
            return parts.pop(0).encode() if parts else b""

    parts = [part for part in parts if part]
    data, most = "".join(parts), max(map(len, parts), default=0)
    query_longest, query._LONGEST_LINE = query._LONGEST_LINE, longest
    try:
        lines = [line.decode() for batch in query._read_batches(Stream()) for line in batch]
    finally:
        query._LONGEST_LINE = query_longest
    wanted = data.removesuffix("\n").split("\n") if data else []
    assert [line[:longest] for line in lines] == [line[:longest] for line in wanted]
    assert all(len(line) <= longest + most for line in lines)
