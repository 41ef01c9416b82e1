"""The README says what is so: its shell examples run, its Python example too."""

import re

from tests.conftest import ROOT
from tests.running import shell

README = (ROOT / "README.md").read_text("utf-8")


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


def test_shell_examples_run(corpus, tmp_path):
    ran = 0
    for block in blocks("sh"):
        for line in block.splitlines():
            if line.startswith("python3 -m venv"):
                continue  # the set-up commands are what CI runs
            process = shell(line, tmp_path)
            assert process.returncode == 0, (line, process.stderr)
            assert process.stdout or line.startswith("lshdup index"), line
            ran += 1
    assert ran >= 20


def test_shown_output_is_what_is_printed(corpus, tmp_path):
    """The tour, from its first command to its last, in one folder.

    A last line … stands for more lines; what a clock says may differ.
    """

    def steady(lines):
        return [re.sub(r"\d+\.\d\d s\b", "# s", line) for line in lines]

    tour = blocks("console")
    assert len(tour) >= 5
    for block in tour:
        command, *shown = block.splitlines()
        process = shell(command.removeprefix("$ "), tmp_path)
        assert process.returncode == 0, (command, process.stderr)
        printed = process.stdout.decode().splitlines()
        if shown[-1] == "…":
            shown = shown[:-1]
            assert len(printed) > len(shown)
            printed = printed[: len(shown)]
        assert steady(printed) == steady(shown), command


def test_python_example_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    (block,) = blocks("python")
    exec(compile(block, "README.md", "exec"), {})


def test_the_picture_is_what_is_printed():
    """`python -m benchmarks.picture` draws it anew; it is small, and fetches nothing."""
    from benchmarks.picture import PICTURE, TYPED, picture

    drawn = PICTURE.read_text("utf-8")
    assert drawn == picture()
    assert len(drawn) < 20_000
    assert not re.search(r"https?://(?!www\.w3\.org/|www\.textualize\.io)", drawn)
    assert all("lshdup" in line for line, _ in TYPED)


def test_figures_and_links_are_there():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("http") or (ROOT / link).is_file(), link


def test_set_up_commands():
    commands = [
        line
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("python3 -m venv")
    ]
    assert len(commands) == 2
    assert "lshdup pairs sample_corpus --threshold 0.9" in commands[0]
    assert "pytest" in commands[1]
    assert "README.md" in (ROOT / ".ci/run").read_text()
