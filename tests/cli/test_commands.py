"""The program as a person runs it: real processes, real folders, exact streams and exit codes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lshdup.base import memory
from lshdup.cli import commands
from lshdup.cli.help import GROUPS
from lshdup.cli.main import lshdup, main
from tests import reference, running
from tests.cli.test_streams import in_bash
from tests.conftest import ROOT, failing, part

COMMANDS = [name for name in commands.COMMANDS if name != "spark"]


@pytest.fixture(scope="module")
def sample_pairs(sample_sets):
    """{threshold: (a, b, similarity) as `pairs` must print them}, of the sample corpus."""
    names = sorted(sample_sets, key=os.fsencode)
    pairs = reference.all_pairs([sample_sets[name] for name in names], 0.5)
    pairs = [(names[i], names[j], s) for i, j, s in sorted(pairs, key=lambda row: -row[2])]
    return {t: [each for each in pairs if each[2] >= t] for t in (0.5, 0.7, 0.9)}


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9])
def test_pairs_are_those_of_brute_force(run, sample_pairs, threshold):
    expected = sample_pairs[threshold]
    exact = [["--exact", "--jobs", jobs] for jobs in ("124" if threshold == 0.5 else "2")]
    for options in (*exact, ["--recall", "0.9999", "--perms", "256"], []):
        command = ["pairs sample_corpus -t", str(threshold), *options, "--no-store"]
        other_order = {"PYTHONHASHSEED": "4"} if "4" in options else {}  # of sets
        rows = run(*command, cwd=ROOT, env=other_order).rows
        found = [(a, b, float(s)) for a, b, s, _ in rows]
        assert set(found) <= set(expected)
        assert found == [each for each in expected if each in set(found)], "order"
        assert len(expected) - len(found) <= (0 if options else len(expected) // 100)


def test_sample_corpus_covers_the_range(sample_pairs):
    similarities = [s for _, _, s in sample_pairs[0.5]]
    for low in (0.5, 0.6, 0.7, 0.8, 0.9):
        assert sum(low <= s < low + 0.1 for s in similarities) >= 5, low
    ours = ("README.md", "make.py")
    assert not any(name.endswith(ours) for pair in sample_pairs[0.5] for name in pair[:2])


COUNTING = """
import sys
from lshdup.cli.listings import pairs as pairs_listing
describe = pairs_listing._describe
def counting(*arguments):
    print("a piece", file=sys.stderr)
    return describe(*arguments)
pairs_listing._describe = counting
from lshdup.cli.main import program
program()"""


def test_thousands_of_identical_documents_are_linear(run, tmp_path):
    """Collapsed, in one row each; and a reader that leaves ends millions of pairs at once."""
    (tmp_path / "ids").write_text("".join(f"{i:05} 1 2 3 4 5\n" for i in range(6000)))
    assert len(run("pairs ids --tokens ids --collapse-copies").rows) == 5999
    (tmp_path / "counting.py").write_text(COUNTING)
    program = f"PYTHONPATH={ROOT} {sys.executable} counting.py pairs"
    head = in_bash(f"{program} | head -2; exit ${{PIPESTATUS[0]}}", tmp_path).ok()
    assert head.out == b"00000\t00001\t1.0\tbytes\n00000\t00002\t1.0\tbytes\n"
    assert "17,997,000 pairs" in head.err
    assert head.err.count("a piece") < 100  # of 2,200


def test_candidates_are_read_again(run, corpus, here, monkeypatch, capfdbinary):
    """Without sets that are kept, signatures in a file: the same answers; changes are noticed."""
    monkeypatch.setattr(memory, "MOST_IN_MEMORY", 0)

    def small(line, code=0):
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as end:
            main(line.split())
        assert (end.value.code or 0) == code
        return capfdbinary.readouterr()

    first = small("pairs sample_corpus -t 0.9").out
    assert not Path(".lshdup/shingles.npz").exists()
    assert first == run("pairs sample_corpus -t 0.9 --no-store").out
    path = corpus / "udhr/eng.txt.copy1"  # a candidate: were it read again, it would be missed
    content, status = path.read_bytes(), path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert small("pairs sample_corpus -t 0.9").out == first
    small("pairs sample_corpus -t 0.85", code=2)  # In another table, other candidates must be read.
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert small("pairs sample_corpus -t 0.9").out == first
    Path(".lshdup/pairs.npz").write_bytes(b"junk")
    with (corpus / "udhr/fra.txt").open("a") as file:
        file.write("encore du texte\n")
    changed = small("pairs -t 0.9", code=2)
    assert b"udhr/fra.txt: changed while in use" in changed.err
    rest = [line for line in first.splitlines() if b"fra.txt\t" not in line]
    assert changed.out.splitlines() == rest


def test_query_agrees_with_pairs(run, corpus):
    pairs = run("pairs sample_corpus -t 0.6").rows
    names = {pair[0] for pair in pairs[::7]}
    found = run("query", *names, "-t", "0.6").rows
    for name in names:
        expected = {(b if a == name else a, *rest) for a, b, *rest in pairs if name in (a, b)}
        assert {tuple(row[:-1]) for row in found if row[-1] == name} == expected


def test_r5_hand_out(run, pages):
    shingles, duplicates = pages
    expected = {tuple(line.split(",")) for line in duplicates.read_text().split()}
    for options in ([], ["--perms", "10000", "--bands", "500"], ["--exact"]):
        rows = run("pairs --tokens ids -t 0.85 --no-store", str(shingles), *options).rows
        assert {(str(int(a[5:])), str(int(b[5:]))) for a, b, *_ in rows} == expected
    assert len(expected) == 50


def test_defects_never_exit_with_the_code_for_pairs(refused, monkeypatch):
    monkeypatch.setattr("lshdup.cli.output.Target.write_pieces", failing(ZeroDivisionError()))
    said = refused("curve")
    assert "ZeroDivisionError" in said
    assert "defect of lshdup" in said


def test_streams_that_are_closed(corpus, tmp_path):
    for words in ("--help", "--version", "pairs --help", "pairs sample_corpus -q"):
        reading, writing = os.pipe()
        os.close(reading)  # A reader that has left before anything is written.
        command, env = [sys.executable, "-m", "lshdup", *words.split()], running.clean_environment()
        left = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path, env=env, check=False
        )
        os.close(writing)
        assert (left.returncode, left.stderr) == (0, b""), words
    closed = in_bash("lshdup pairs sample_corpus -t 0.9 >&-", tmp_path)
    assert closed.code == 2
    assert "standard output is closed" in closed.err
    mute = in_bash("lshdup pairs sample_corpus -t 0.9 2>&-", tmp_path).ok()
    assert len(mute.lines) == 22


#: Commands that print no listing.
PLAIN = ("index", "signatures", "shingle", "accept", "mcp")


def examples(text):
    lines = map(str.strip, text.split("Examples:")[1].splitlines())
    return [line for line in lines if line.startswith("lshdup")]


@pytest.mark.parametrize("command", COMMANDS)
def test_help(run, command):
    """In groups, within 80 columns, with the default or variable of each option, and examples."""
    short, text = (run(command, word).out.decode() for word in ("-h", "--help"))
    loaded = lshdup.get_command(None, command)
    options = [each for each in loaded.params if isinstance(each, click.Option)]
    assert len(short.splitlines()) <= 40
    assert f"\nAll {sum(not each.hidden for each in options) - 1} options: " in short  # without -h
    assert examples(short) == examples(text)[:2]
    assert len(text.splitlines()) <= 190
    assert max(map(len, (short + text.partition("Examples:")[0]).splitlines())) <= 80
    titles = re.findall(r"^([A-Z][a-z ]+):$", text.partition("Examples:")[0], re.M)
    assert titles == [title for title in GROUPS if title in titles]
    assert {"Options", "Output", "Running"} <= {*titles} or command in PLAIN
    assert not re.search(r"\(tables? \d|\bR[1-5]\b|lecture|class experiment", text)
    variable = "LSHDUP_PERMS" if command == "curve" else "LSHDUP_STORE"
    assert f"[{variable}" in re.sub(r"\s+", " ", text)
    assert "default: " in text
    context = click.Context(loaded, info_name=command)
    assert all(each.envvar in text for each in loaded.settings())
    for option in [each for each in options if each.show_envvar and not each.hidden]:
        long = next(name for name in option.opts if name.startswith("--"))
        assert option.envvar == "LSHDUP_" + long[2:].replace("-", "_").upper()
        assert f"[{option.envvar}" in option.get_help_record(context)[1]


@pytest.mark.parametrize("command", part(COMMANDS, 2))
def test_help_ends_with_examples_that_run(run, corpus, tmp_path, command):
    found = examples(run(command, "--help").out.decode())
    assert len(found) >= 2
    for line in found:
        process = running.shell(line, tmp_path)
        assert process.returncode == 0, (line, process.stderr)
        assert process.stdout or command in PLAIN, line


@pytest.mark.parametrize("command", ["spark pairs", "spark clusters"])
def test_help_of_spark_fits(run, command):
    text = run(command, "--help").out.decode().partition("Examples:")[0]
    assert max(map(len, text.splitlines())) <= 80
    titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.M)
    assert titles == [title for title in GROUPS if title in titles]
