"""Which options a command has; those that a run would ignore: golden/scenes/conflicts.txt."""

import click
import pytest

from lshdup.cli.main import load_command
from lshdup.cli.suggestions import translate_error
from tests.running import run_program


@pytest.mark.parametrize("command", ["pairs", "clusters", "query", "folders", "report", "show"])
def test_what_a_variable_sets_is_no_option(command):
    """It is refused with the variable, and with the step that has it as an option, if one has."""
    steps = {
        name for each in load_command("index").params for name in each.opts if not variable(each)
    }
    for option in filter(variable, load_command(command).params):
        name = max(option.opts, key=len)
        with pytest.raises(click.NoSuchOption) as error:
            load_command(command).make_context(command, ["d", name])
        hint = translate_error(error.value).hint
        assert f"{option.envvar}=" in hint
        assert (f"`lshdup index DOCS {name}" in hint) == (name in steps)


def variable(parameter):
    return getattr(parameter, "variable", "")


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_a_command_has_at_most_55_options(command):
    options = (each for each in load_command(command).params if isinstance(each, click.Option))
    assert sum(not variable(each) for each in options) + 1 <= 55  # and --help


def test_a_dumb_terminal_gets_no_colours(tmp_path):
    (tmp_path / "a").write_text("some words of a text")
    (tmp_path / "b").write_text("some words of another text")
    for terminal, is_painted in (("xterm", True), ("dumb", False)):
        env = {"TERM": terminal, "LSHDUP_NO_STORE": "1"}
        for command in (["pairs", "a", "b", "-t", "0.1"], ["show", "a", "b"]):
            printed = run_program(command, cwd=tmp_path, columns=80, env=env).stdout
            assert b"text" in printed or b"similarity" in printed
            assert (b"\x1b" in printed) == is_painted, command
