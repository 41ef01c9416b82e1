"""Options that a run would ignore are refused, each of them."""

import click
import pytest

from lshdup.cli.main import load_command
from lshdup.cli.suggestions import translate_error
from tests.running import run_program

#: A command, options that its run ignores, and why.
IGNORED = """
pairs d --exact | --max-bucket=3 --memory=64MB | with --exact
clusters --exact | --max-bucket=3 --memory=64MB | with --exact
folders d --exact | --max-bucket=3 | with --exact
report --exact | --max-bucket=3 | with --exact
pairs d --measure containment | --max-bucket=3 --histogram | with --measure containment
pairs d --same text | --measure=jaccard --exact --max-bucket=3 --histogram | with --same text
pairs d --same text | --noisy --plot=p.png | with --same text
clusters --same bytes | --exact --linkage=single --max-bucket=3 --noisy | with --same bytes
folders d --same bytes | --exact --max-bucket=3 | with --same bytes
pairs d --same bytes | --tokens=char --template=d --ignore-common=3 | with --same bytes
clusters d --same bytes | --min-tokens=3 --encoding=cp437 --markup=keep --mail | with --same bytes
folders d --same text | --min-bytes=0 | without --same bytes
pairs d | --unmatched | without --against OTHER
pairs d --against d --unmatched | --collapse-copies | with --unmatched
pairs d --against d | --across=folder | with --against OTHER
passages d --against d | --across=folder | with --against OTHER
pairs d --histogram | --across=folder | with --histogram
clusters d --keep central | --across=folder | with --keep central
pairs d --histogram | --against=d --baseline=f --changed-since=HEAD | with --histogram
pairs d --against d --unmatched | --baseline=f --changed-since=HEAD | with --unmatched
pairs d | --update-baseline | without --baseline FILE
pairs d --baseline f --update-baseline | --changed-since=HEAD | with --update-baseline
pairs d --accepted f | --show-accepted | with --accepted
clusters d --accepted f | --show-accepted | with --accepted
folders d --accepted f | --show-accepted | with --accepted
report d --accepted f | --show-accepted | with --accepted
query d --by passages | --threshold=0.9 --measure=jaccard --same=text | with --by passages
query d --by passages | --show-accepted | with --by passages
query d | --least=9 --gap=1 | without --by passages
query - --lines | --measure=jaccard --by=similarity --show-accepted --format=json | with --lines
query d --accepted f | --show-accepted | with --accepted
accept a b | --from=- | with NAMES
show a b --shared | --lines --measure=jaccard | with --shared
show a b -0 | --inline --context=3 --words --measure=jaccard | with -0 or a --format of data
clusters d --linkage single | --against=d | with --linkage single
pairs d | --removed=f | without --write
pairs d | --write=f | without --against OTHER
pairs d --measure containment | --relation=holds | without --against OTHER
pairs d --against d | --relation=holds | with --measure jaccard
pairs d --against d --unmatched --measure containment | --relation=both --write=f | with --unmatched
pairs d --against d --baseline f --measure containment | --write=f | with --baseline
clusters d --write w | --annotate=f | with --write FILE|DIR/
clusters d --keep central | --keep-by=x | with --keep central
passages d | --removed=f | without --write
passages d | --threshold=0.5 | without --emit pairs
passages d --emit pairs | --documents=2 --write=f | with --emit pairs
pairs | --include=x --exclude=x --gitignore --hidden --follow --max-bytes=1000 | without DOCS
pairs | --text-field=x --id-field=x --archives --split=x --stdin=csv | without DOCS
signatures | --include=x --exclude=x --gitignore --hidden --follow --max-bytes=1000 | without DOCS
signatures | --text-field=x --id-field=x --archives --split=x | without DOCS
pairs d | --plot=p.png | without --histogram
shingle d | --format=csv -o=x | without --show
pairs d --tokens ids | --text-field=a --id-field=a --noisy --split=x --archives | with --tokens ids
pairs d --tokens ids | --fold=marks --join-hyphens --encoding=cp437 --mail | with --tokens ids
pairs d --tokens ids | --stdin=csv | with --tokens ids
pairs d --tokens terms | --join-hyphens | with --tokens terms
clusters d --same bytes | --fold=marks --join-hyphens | with --same bytes
accuracy d --bands 9 | --epsilon=0.1 --runs=2 | with --bands
accuracy d --found | --epsilon=0.1 --runs=2 --sample=3 --queries=x --plot=p.png | with --found
accuracy d | --sample=3 --queries=x | without --bands
accuracy d | --threshold=0.9 --buckets=9 | without --bands or --found
accuracy d | --recall=0.9 | without --found
"""


@pytest.mark.parametrize("line", IGNORED.strip().splitlines())
def test_each_option_that_would_be_ignored_is_refused(line, here, refused):
    command, options, where = line.split(" | ")
    (here / "d").mkdir()
    for option in options.split():
        name = "--output" if option == "-o=x" else option.partition("=")[0]
        why = "has no effect" if where.startswith("without") else "cannot be combined"
        assert f"{name} {why} {where}" in refused(command, option), option
    assert not (here / ".lshdup").exists()


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
