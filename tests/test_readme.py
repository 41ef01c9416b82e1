"""The README says what is so: its shell examples run, its Python example too."""

import os
import re
import shlex
import subprocess
import sys

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


def test_shell_examples_run(corpus, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    function = f'lshdup() {{ {shlex.quote(sys.executable)} -m lshdup "$@"; }}; export -f lshdup'
    ran = 0
    for block in blocks("sh"):
        for line in block.splitlines():
            if line.startswith("python3 -m venv"):
                continue  # the set-up commands are what CI runs
            process = subprocess.run(
                ["bash", "-o", "pipefail", "-c", f"{function}\n{line}"], capture_output=True, cwd=tmp_path, env=env, check=False
            )
            assert process.returncode == 0, (line, process.stderr)
            assert process.stdout or line.startswith("lshdup index"), line
            ran += 1
    assert ran >= 9


def test_shown_output_is_what_is_printed(run):
    (block,) = blocks("console")
    command, *shown = block.splitlines()
    arguments = shlex.split(command.removeprefix("$ lshdup"))
    printed = run(*arguments, "--no-store", cwd=ROOT).lines
    assert shown[-1] == "…"
    assert printed[: len(shown) - 1] == shown[:-1]


def test_python_example_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    (block,) = blocks("python")
    exec(compile(block, "README.md", "exec"), {})


def test_set_up_commands():
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert "lshdup pairs sample_corpus --threshold 0.9" in commands[0]
    assert "pytest" in commands[1]
    assert "README.md" in (ROOT / ".ci/run").read_text()
