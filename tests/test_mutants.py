"""The lists of faults, as far as can be seen without a run of `python -m tests.mutants`."""

import ast

import pytest

from tests.conftest import ROOT
from tests.mutants.__main__ import all_mutants, draw


@pytest.mark.parametrize("mutant", all_mutants(), ids=lambda mutant: mutant.name)
def test_a_fault_is_where_its_entry_says(mutant):
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.old) == 1, f"{mutant.old!r} is in {mutant.file} not once: move it"
    changed = text.replace(mutant.old, mutant.new)
    if mutant.file.endswith(".py"):
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    named = mutant.tests.split()[0].partition("::")[0]
    assert (ROOT / named).exists(), named


def test_the_same_faults_are_drawn_for_the_same_commit():
    mutants = all_mutants()
    assert draw(mutants, 10, "a") == draw(mutants[::-1], 10, "a") != draw(mutants, 10, "b")
    assert len(set(draw(mutants, 10, "a"))) == min(10, len(mutants))
