"""`lshdup mcp`: a client of the SDK asks a server that is a process of its own."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest

from lshdup.cli.columns import COMPARISON
from tests.cli.test_untouched import state
from tests.conftest import ROOT, require, write_files
from tests.running import clean_environment, shell

anyio = require("mcp", "anyio")
mcp = require("mcp", "mcp")
stdio_client = require("mcp", "mcp.client.stdio").stdio_client

#: What is patched in a server, so that one of its answers never ends.
ENDLESS = """
from lshdup.cli.listings import agents
def answer(self, run, request):
    import time
    while True:
        run.progress("documents", 0, 0)
        time.sleep(0.01)
agents.ListPairs.answer = answer
"""


@asynccontextmanager
async def connect(*arguments, cwd=ROOT, patch="", **variables):
    """A session with a server."""
    words = ["lshdup", "mcp", *map(str, arguments)]
    script = f"{patch}\nimport sys; sys.argv = {words!r}\nfrom lshdup.cli.main import program\n"
    args, env = ["-c", f"{script}program()"], clean_environment() | variables
    server = mcp.StdioServerParameters(command=sys.executable, args=args, env=env, cwd=cwd)
    with Path(os.devnull).open("w") as nowhere:
        async with stdio_client(server, nowhere) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            yield session


def ask(*arguments, questions, **settings):
    """The answers of one server. A question that can be called is done instead."""

    async def main():
        answers = []
        async with connect(*arguments, **settings) as session:
            for question in questions:
                if callable(question):
                    question()
                else:
                    name, given = question
                    answers.append(await session.call_tool(name, given))
        return answers

    return anyio.run(main)


def text_of(answer):
    (content,) = answer.content
    return content.text


def refusal(answer):
    assert answer.is_error, answer
    assert answer.structured_content is None
    return text_of(answer)


def table(answer):
    """The rows, which the text has too; nothing is left out of them."""
    found = answer.structured_content
    assert not answer.is_error, answer
    assert (found["total"], found["not_shown"]) == (len(found["rows"]), 0)
    lines = text_of(answer).splitlines()
    assert lines[0] == found["summary"]
    columns = list(found["rows"][0])
    cells = [["" if x is None else str(x) for x in row.values()] for row in found["rows"]]
    assert [line.split("\t") for line in lines[1 : 2 + len(cells)]] == [columns, *cells]
    return found["rows"]


def test_tools_say_when_to_use_them():
    async def main():
        async with connect("sample_corpus") as session:
            return (await session.list_tools()).tools

    tools = anyio.run(main)
    names = "find_near_duplicates list_pairs show_differences find_passages"
    assert [each.name for each in tools] == names.split()
    for each in tools:
        hints = each.annotations
        flags = hints.read_only_hint, hints.destructive_hint, hints.open_world_hint
        assert flags == (True, False, False)
        assert "\n\nUse it " in each.description
        takes, gives = each.input_schema, each.output_schema
        assert not takes["additionalProperties"]
        assert all(argument["description"] for argument in takes["properties"].values())
        assert {"summary", "rows", "total", "not_shown", "notes"} <= {*gives["required"]}


def test_answers_are_those_of_the_commands(corpus, run, tmp_path):
    scratch, before = tmp_path.with_name(f"{tmp_path.name}-scratch"), state(tmp_path)
    scratch.mkdir()
    text = (corpus / "licences/MIT.txt").read_text()[:800]
    a, b, below = (f"sample_corpus/licences{name}" for name in ("/ISC.txt", "/MIT.txt", ""))
    questions = [
        ("find_near_duplicates", {"path": b, "threshold": 0.6}),
        ("find_near_duplicates", {"text": text, "threshold": 0.5}),
        ("list_pairs", {"threshold": 0.8}),
        ("list_pairs", {"threshold": 0.8, "folder": below}),
        ("find_passages", {"text": text, "least": 40}),
        ("show_differences", {"a": "ISC.txt", "b": b}),
        ("find_passages", {"path": b, "least": 60}),
    ]
    answers = ask("sample_corpus", questions=questions, cwd=tmp_path, TMPDIR=str(scratch))
    assert (state(tmp_path), [*scratch.iterdir()]) == (before, [])

    def printed(*words, **settings):
        return json.loads(run(*words, "--format", "json", **settings).out)

    run("index", "sample_corpus")
    near = printed("query", b, "-t", "0.6"), printed("query", "-", "-t", "0.5", stdin=text.encode())
    assert min(map(len, near)) > 5
    for answer, rows in zip(answers, near, strict=False):
        assert table(answer) == [{x: row[x] for x in row if x != "query"} for row in rows]
    assert table(answers[2]) == printed("pairs", "sample_corpus")
    assert table(answers[3]) == printed("pairs", below)
    (tmp_path / "text").write_text(text)
    rows = printed("passages", "text", "--against", "sample_corpus", "--least", "40")
    found = table(answers[4])
    check_passages(found, text, tmp_path)
    for number in {row["passage"] for row in rows}:
        places = [row for row in rows if row["passage"] == number and row["document"] != "text"]
        mine = [row for row in found if row["passage"] == number]
        assert [row["document"] for row in mine] == [row["document"] for row in places[:5]]
        assert {row["places"] for row in mine} == {len(places)}
    assert max(row["places"] for row in found) > 5
    found = table(answers[6])
    check_passages(found, (corpus / "licences/MIT.txt").read_text(), tmp_path)
    assert b not in {row["document"] for row in found}

    found, compared = answers[5].structured_content, printed("show", a, b)
    changes = [row for row in compared["differences"] if row["kind"] != "alike"]
    assert (found["rows"], found["total"]) == (changes, len(changes))
    assert all(found[name] == compared[name] for name in COMPARISON)
    shown = run("show", a, b).lines
    assert sorted(text_of(answers[5]).splitlines()) == sorted(shown[:-1])


def check_passages(rows, text, folder):
    """Passages stand in the text and in the documents, in the lines that are said."""
    assert rows
    words = ""
    for row in rows:
        words = row["text"] or words
        document = (folder / row["document"]).read_text()
        for lines, line in ((text, row["text_line"]), (document, row["line"])):
            there = " ".join(words_of("\n".join(lines.splitlines()[line - 1 :])))
            parts = [" ".join(words_of(part)) for part in words.split(" … ")]
            start = there.find(parts[0])
            assert 0 <= start < len(lines.splitlines()[line - 1])
            end = there.find(parts[-1], start) + len(parts[-1])
            # A text is cut in the middle, perhaps within words.
            assert len(there[start:end].split()) == row["tokens"]


def words_of(text):
    return re.findall(r"\w+", text.casefold())


def test_an_answer_is_bounded_and_the_same_each_time(tmp_path):
    docs, text = tmp_path / "docs", "one of many copies of some text"
    write_files(docs, {f"{number:02}": f"{text} {number % 2}" for number in range(60)})
    for name, start in (("long a", 0), ("long b", 10**6)):
        # Every other word is another one.
        words = (f"{start + at} same{at}" for at in range(5_000))
        (docs / name).write_text("\n".join(words))
    questions = [
        ("list_pairs", {"threshold": 0.5}),
        ("show_differences", {"a": "long a", "b": "long b"}),
        ("find_passages", {"path": "00", "least": 3}),
    ]
    answers = ask(docs, questions=[*questions, *questions], cwd=tmp_path)
    for answer, again in zip(answers[:3], answers[3:], strict=True):
        assert answer == again
        assert len(text_of(answer)) < 30_000
        assert len(json.dumps(answer.structured_content)) < 30_000
    pairs, differences, passages = (answer.structured_content for answer in answers[:3])
    assert (len(pairs["rows"]), pairs["total"], pairs["not_shown"]) == (100, 1770, 1670)
    note = "1,670 rows not shown: ask with a higher threshold, or about one folder"
    assert [text_of(answers[0]).splitlines()[-1]] == pairs["notes"] == [note]
    assert differences["total"] == len(differences["rows"]) + differences["not_shown"] > 5_000
    assert "\n… the text is cut here\n" in text_of(answers[1])
    assert {row["places"] for row in passages["rows"]} <= {59, 29}
    assert passages["not_shown"] == 0


def test_a_folder_that_changes(tmp_path):
    text = "a text of some words that many others have too"
    write_a, write_b = (partial((tmp_path / name).write_text, text) for name in "ab")
    near = "find_near_duplicates", {"text": text}

    def link():
        (tmp_path / "b").unlink()
        (tmp_path / "b").symlink_to("/etc/passwd")

    answers = ask(
        ".",
        questions=[near, write_a, near, ("list_pairs", {}), write_b, near, ("list_pairs", {}),
                   (tmp_path / "a").unlink, near, ("find_near_duplicates", {"path": "a"}),
                   link, near],
        cwd=tmp_path,
    )  # fmt: skip
    empty, one, no_pair, two, pair, other, gone, linked = answers
    assert (empty.is_error, empty.structured_content["rows"]) == (False, [])
    assert text_of(empty) == "0 of 0 documents are 0.8 similar or more to the text"
    assert [row["name"] for row in table(one)] == ["a"]
    assert no_pair.structured_content["rows"] == []
    assert [(row["name"], row["same"]) for row in table(two)] == [("a", "bytes"), ("b", "bytes")]
    assert [(row["a"], row["b"]) for row in table(pair)] == [("a", "b")]
    assert [row["name"] for row in table(other)] == ["b"]
    assert refusal(gone).startswith("a is no document of these folders")
    assert linked.structured_content["notes"] == ["skipped: 1 symbolic link"]


def test_options_say_what_is_read_and_how(tmp_path):
    """No option makes a document one that another one has left out."""
    same = dict.fromkeys(["a.txt", "sub/b.txt", "sub/c.md", "sub/.d.txt"], "x = y + 1; z = x")
    write_files(tmp_path, same | {"e.txt": "x: y - 1, z; x"})
    questions = [("list_pairs", {}), ("list_pairs", {"folder": "sub"})]
    questions += [("find_near_duplicates", {"path": "sub/c.md"})]
    options = ["--tokens", "symbols", "-k", "1", "--exclude", "/sub/*.md", "--hidden"]
    pairs, below, left_out = ask(".", *options, questions=questions, cwd=tmp_path)
    names = ["a.txt", "sub/.d.txt", "sub/b.txt"]
    assert [(row["a"], row["b"]) for row in table(pairs)] == [*combinations(names, 2)]
    assert [(row["a"], row["b"]) for row in table(below)] == [("sub/.d.txt", "sub/b.txt")]
    assert refusal(left_out).startswith("sub/c.md is no document of these folders")
    assert pairs.structured_content["notes"] == ["skipped: 1 excluded by --exclude"]


def test_what_is_outside_is_not_there(tmp_path):
    """Nor is told whether it is; names that are not UTF-8 and such with line ends can be asked."""
    docs, secret = tmp_path / "docs", tmp_path / "secret"
    names = ["secret", "docs/.hidden", "docs/a", "docs/inside/b", b"docs/\xff\n"]
    text = "some words of a text that is in two of these documents"
    write_files(tmp_path, dict.fromkeys(names, text))
    (docs / "link").symlink_to(secret)
    (docs / "folder").symlink_to(tmp_path)
    (tmp_path / "way").symlink_to(docs)
    outside = [
        "../secret", str(secret), "docs/../secret", "link", str(docs / "link"), "folder/secret",
        "docs/folder/secret", ".hidden", "docs/.hidden", "/etc/passwd", "-", "", "docs", "a\0b",
        "../absent", str(tmp_path / "absent"),
    ]  # fmt: skip
    paths = [("find_near_duplicates", {"path": each}) for each in outside]
    paths += [("show_differences", {"a": each, "b": "a"}) for each in outside if each]
    folders = [("list_pairs", {"folder": each}) for each in ("..", "/", "/etc", "docs/.x", "a\0b")]
    inside = ["a", "docs/a", "docs/inside/../a", str(docs / "a"), "way/a"]
    inside = [("find_near_duplicates", {"path": each}) for each in inside]
    inside += [("list_pairs", {"folder": each}) for each in ("way/inside/..", "docs/folder")]
    questions = [*paths, *folders, *inside]
    answers = ask("docs", questions=questions, cwd=tmp_path)
    for (_, given), answer in zip(questions, answers, strict=True):
        word = given.get("path", given.get("a", given.get("folder")))
        if len(answers) > (at := answers.index(answer)) >= len(paths) + len(folders):
            names = [row.get("name", row.get("b")) for row in answer.structured_content["rows"]]
            assert {*names} == {"docs/inside/b", "docs/\\xff\n"}, at
        elif word:
            what = "holds" if "folder" in given else "is"
            said, word = refusal(answer), word.replace("\0", "\\x00")
            assert said.startswith(f"{word} {what} no document of these folders\n"), said
        else:
            assert refusal(answer).startswith("one of text and path is needed\n")
    assert "secret" not in json.dumps([each.structured_content for each in answers])
    # As rows have the name, and as the text has it.
    spelled = [("find_near_duplicates", {"path": f"docs/\\xff{end}"}) for end in ("\n", "\\n")]
    for again in ask("docs", questions=spelled, cwd=tmp_path):
        names = [row["name"] for row in again.structured_content["rows"]]
        assert names == ["docs/a", "docs/inside/b"]


REFUSED = {
    "find_near_duplicates": [
        ({"text": "a", "path": "a"}, "one of text and path is needed"),
        ({"texts": "a"}, "unknown field `texts`"),
        ({"text": 5}, "Expected `str`, got `int` - at `$.text`"),
        ({"text": "a", "threshold": 0}, "`float` > 0.0"),
        ({"text": "a", "threshold": "high"}, "Expected `float`, got `str`"),
    ],
    "list_pairs": [({"threshold": 1.5}, "`float` <= 1.0")],
    "show_differences": [({"a": "a"}, "missing required field `b`")],
    "find_passages": [({"text": "a", "least": 1}, "`int` >= 2"), ({}, "one of text and path")],
    "remove": [({}, "the question remove was not understood")],
}  # fmt: skip


def test_questions_that_are_wrong(tmp_path):
    """A question without words is none of them."""
    write_files(tmp_path, {"a": "some words of a text", "picture": b"\0\1\2"})
    cases = [(name, *case) for name, those in REFUSED.items() for case in those]
    cases += [("find_near_duplicates", {"path": "long" * 100_000}, "longlong")]
    empty = [(name, {"text": "--- !"}) for name in ("find_near_duplicates", "find_passages")]
    answers = ask(".", questions=[*(case[:2] for case in cases), *empty], cwd=tmp_path)
    for case, answer in zip(cases, answers, strict=False):
        message, _, hint = refusal(answer).partition("\n")
        assert case[2] in message
        assert len(message + hint) <= 2003
        assert hint
    near, passages = answers[-2:]
    assert text_of(near) == "the text has no words to compare\nskipped: 1 binary"
    assert near.structured_content["notes"] == ["skipped: 1 binary"]
    assert text_of(passages).startswith("0 passages of 20 words or more of the text, in 0 docu")


def test_a_long_answer_keeps_nobody_waiting(tmp_path):
    (tmp_path / "a").write_text("some words of a text")

    async def main():
        async with connect(".", cwd=tmp_path, patch=ENDLESS) as session:
            with anyio.move_on_after(1) as scope:
                await session.call_tool("list_pairs", {})
            assert scope.cancelled_caught
            async with anyio.create_task_group() as group:
                group.start_soon(session.call_tool, "list_pairs", {})
                await anyio.sleep(0.5)
                await session.send_ping()
                group.cancel_scope.cancel()
            with anyio.fail_after(30):
                return await session.call_tool("find_near_duplicates", {"text": "some words"})

    assert not anyio.run(main).is_error


INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "a test", "version": "1"}},
}  # fmt: skip


def leave(server):
    server.stdout.close()
    say(server, {**INITIALIZE, "id": 2})
    server.stdin.close()


def say(server, message):
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


ENDS = [
    (lambda server: server.stdin.close(), 0), (leave, 0),
    (lambda server: server.send_signal(signal.SIGINT), 130),
    (lambda server: server.send_signal(signal.SIGTERM), 143),
]  # fmt: skip


@pytest.mark.parametrize(("finish", "code"), ENDS, ids=["input", "pipes", "SIGINT", "SIGTERM"])
def test_it_ends_quietly(tmp_path, finish, code):
    """Nothing but the protocol is on standard output, and nothing stays behind."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "scratch").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "lshdup", "mcp", "docs"], cwd=tmp_path,
        env=clean_environment() | {"TMPDIR": str(tmp_path / "scratch")},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        say(server, INITIALIZE)
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "lshdup"
        assert [*(tmp_path / "scratch").iterdir()]
        finish(server)
        assert server.wait(60) == code
        assert server.stderr.read() == b""
        assert server.stdout.closed or server.stdout.read() == b""
    assert [*(tmp_path / "scratch").iterdir()] == []


def test_command_lines_that_are_refused(tmp_path, refused, monkeypatch):
    (tmp_path / "docs").mkdir()
    assert "no documents were named" in refused("mcp")
    assert "--files-from cannot be" in refused("mcp", "--files-from", "-")
    assert "--stdin cannot be" in refused("mcp", "-", "--stdin", "jsonl")
    assert "docs/s would be written, which is below" in refused("mcp", "docs", "--store", "docs/s")
    with monkeypatch.context() as patched:
        patched.setenv("TMPDIR", str(tmp_path))
        patched.setattr("tempfile.tempdir", None)
        assert "or with TMPDIR" in refused("mcp", ".")
    python = shlex.quote(sys.executable)
    lacks = "import sys; sys.modules['mcp_types'] = None; sys.argv = ['lshdup', 'mcp', 'docs']; "
    start = "from lshdup.cli.main import program; program()"
    for line, said in {
        f'{python} -c "{lacks}{start}"': b"pip install 'lshdup[mcp]'",
        f"{python} -m lshdup mcp docs <&-": b"standard input or standard output is closed",
        f"{python} -m lshdup mcp docs >&-": b"standard input or standard output is closed",
    }.items():
        done = shell(line, tmp_path)
        assert (done.returncode, done.stdout) == (2, b""), done
        assert said in done.stderr
    assert [*tmp_path.iterdir()] == [tmp_path / "docs"]
