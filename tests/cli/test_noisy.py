"""--noisy stands for other options: a typed one wins over it, and it wins over a variable."""

import pytest

from lshdup.params import NOISY, NOISY_PASSAGES
from tests.running import run_program

SAID = "--noisy is --tokens {tokens} -k {k} --threshold {threshold} --perms {perms}"

#: A command, what is typed beside it, the variables, and the values that hold instead of those of
#: the table.
CASES = [
    ("pairs", "", {}, {}),
    ("clusters", "", {}, {}),
    ("pairs", "-k 7 -t 0.3", {}, {"k": 7, "threshold": 0.3}),
    ("pairs", "--threshold 0.8", {"LSHDUP_THRESHOLD": "0.9"}, {"threshold": 0.8}),
    ("pairs", "", {"LSHDUP_THRESHOLD": "0.9", "LSHDUP_PERMS": "64", "LSHDUP_TOKENS": "word"}, {}),
]


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_text("the quick brown fox jumps over the lazy dog in the morning")
    (tmp_path / "d/b").write_text("the qu1ck brown fox jumps ovcr the lazy dog in thc morning")
    return tmp_path


@pytest.mark.parametrize(("command", "typed", "variables", "values"), CASES)
def test_what_is_typed_wins_over_the_preset_and_the_preset_over_variables(
    command, typed, variables, values, texts
):
    held = {**NOISY, **values}
    result = run_program([command, "d", "--noisy", *typed.split()], cwd=texts, env=variables)
    assert SAID.format(**held) in result.stderr.decode()
    spelled = ("--tokens", held["tokens"], "-k", held["k"], "--threshold", held["threshold"])
    env = {"LSHDUP_PERMS": str(held["perms"])}
    plain = run_program([command, "d", "--no-store", *map(str, spelled)], cwd=texts, env=env)
    assert result.stdout == plain.stdout
    assert bool(result.stdout) == (held["threshold"] < 0.5)


def test_a_command_without_documents_continues_as_if_the_values_were_typed(texts):
    assert run_program(["index", "d"], cwd=texts).returncode == 0
    for command in (["pairs", "--noisy"], ["query", "d/a", "--noisy"]):
        result = run_program(command, cwd=texts)
        assert result.returncode == 2
        assert b"was made with --tokens word, not char" in result.stderr
        index = command[0] if command[0] == "pairs" else "index"
        assert f"run `lshdup {index} DOCS --noisy`" in result.stderr.decode()
    hint = b"it is of `lshdup index DOCS`: run that with --noisy before"
    assert hint in run_program(["show", "d/a", "d/b", "--noisy"], cwd=texts).stderr
    assert b"index" not in run_program(["curve", "--noisy"], cwd=texts).stderr
    assert run_program(["index", "d", "--noisy"], cwd=texts).returncode == 0
    pair = run_program(["pairs", "--noisy"], cwd=texts).stdout.split(b"\t")
    row = run_program(["query", "d/a", "--noisy"], cwd=texts).stdout.split(b"\t")
    assert (pair[1], float(pair[2])) == (row[0], float(row[1]))
    assert not run_program(["pairs"], cwd=texts).stdout  # at 0.8, which was not typed


def test_passages_have_values_of_their_own(texts):
    plain = " ".join(f"--{name} {value}" for name, value in NOISY_PASSAGES.items()).split()
    found = [run_program(["passages", "d", *words], cwd=texts) for words in (["--noisy"], plain)]
    assert found[0].stdout == found[1].stdout
    assert found[0].stdout
    assert f"--noisy is {' '.join(plain)}" in found[0].stderr.decode()
    assert not run_program(["passages", "d", "--noisy", "--gap", "0"], cwd=texts).stdout
