"""Faults that are drawn from the source: which there are, and which change no answer."""

import ast
import sys

from tests.conftest import ROOT
from tests.mutants import __main__ as trying
from tests.mutants.drawing import draw, list_faults, read_equivalents
from tests.running import clean_environment


def test_every_kind_of_fault_is_drawn(tmp_path):
    source = '''
def f(a, b=1, *, c=True):
    """Words stay: 1 < 2."""
    if a < b and not c:
        g(a, b + 2)
        raise ValueError("a message " f"{a + 1}")
    for each in zip(max(a, b), strict=True):
        continue
    try:
        a += 1
    except KeyError:
        pass
'''
    path = tmp_path / "f.py"
    path.write_text(source)
    faults = list_faults(str(path))
    changes = {(fault.kind, fault.before, fault.after) for fault in faults}
    assert changes == {
        ("default", "def f(a, b=1, *, c=True):", "def f(a, b=2, *, c=True):"),
        ("default", "def f(a, b=1, *, c=True):", "def f(a, b=1, *, c=False):"),
        ("comparison", "if a < b and not c:", "if a <= b and not c:"),
        ("and/or", "if a < b and not c:", "if a < b or not c:"),
        ("not", "if a < b and not c:", "if a < b and c:"),
        ("condition", "if a < b and not c:", "if not (a < b and not c):"),
        ("arguments swapped", "g(a, b + 2)", "g(b + 2, a)"),
        ("arithmetic", "g(a, b + 2)", "g(a, b - 2)"), ("constant", "g(a, b + 2)", "g(a, b + 3)"),
        ("statement removed", "g(a, b + 2)", "pass"),
        ("statement removed", 'raise ValueError("a message " f"{a + 1}")', "pass"),
        ("statement", "continue", "break"), ("statement removed", "a += 1", "pass"),
        ("constant", "a += 1", "a += 2"), ("handler", "pass", "raise"),
    }  # fmt: skip
    assert all(fault.can_run() for fault in faults)
    assert {fault.function for fault in faults} == {0, 2}  # a default is set when `def` runs


def test_the_same_faults_are_drawn_for_the_same_commit():
    files = sorted((ROOT / "lshdup/sources").glob("[ef]*.py"))
    faults = [each for file in files for each in list_faults(str(file.relative_to(ROOT)))]
    drawn = draw(faults, 15, "a")
    assert drawn == draw(faults[::-1], 15, "a") != draw(faults, 15, "b")
    assert len({fault.kind for fault in drawn}) == 11
    assert all(ast.parse(fault.changed()) for fault in drawn)


def test_every_fault_that_changes_no_answer_is_there_and_has_a_reason():
    for (file, before, after), reason in read_equivalents().items():
        if file == "*":
            sources = (ROOT / "lshdup").rglob("*.py")
            assert any(before in path.read_text() for path in sources), before
            continue
        assert (ROOT / file).is_file(), file
        keys = set().union(*(fault.keys for fault in list_faults(file)))
        assert (file, before, after) in keys, f"{before!r} is in {file} no more"
        assert len(reason) > 20, before


def test_it_is_known_which_test_a_run_of_the_program_is_of():
    """Without its name, what a run reaches would be recorded for no test."""
    assert "::test_it_is_known_which" in clean_environment()["PYTEST_CURRENT_TEST"]


class NoCopy:
    """Whose tests notice all faults but those of constants."""

    def __init__(self, folder):
        pass

    def try_out(self, fault, tests, seconds):
        return "" if fault.kind == "constant" else "a test"


def test_tests_are_chosen_by_what_they_enter_and_survivors_are_printed(
    tmp_path, monkeypatch, capsys
):
    faults = [each for each in list_faults("lshdup/base/wording.py") if each.function]
    at = f"{faults[0].file}:{faults[0].function}"
    tests = ["tests/base/a.py::slow", "tests/cli/b.py::quick", "tests/cli/c.py::elsewhere"]
    lines = (f"{3 - number} {test}\n" for number, test in enumerate(tests))
    (tmp_path / "seconds").write_text("".join(lines))
    entered = zip(tests, (at, at, "lshdup/api/minhash.py:1"), strict=True)
    (tmp_path / "1").write_text("".join(f"> {test}\n{each}\n" for test, each in entered))
    assert trying.Reached(tmp_path).tests_of(faults[0]) == tests[:2]
    monkeypatch.setattr(trying, "Copy", NoCopy)
    words = ["", "--reached", str(tmp_path), "--draw", "9", "--seed", "a"]
    monkeypatch.setattr(sys, "argv", words)
    constants = [each for each in faults if each.kind == "constant"]
    for some, is_failure in ((faults, False), (constants, True)):
        monkeypatch.setattr(trying, "all_faults", lambda some=some: some)
        assert trying.main() == is_failure
        drawn = draw(some, 9, "a")
        left = [each for each in drawn if each.kind == "constant"]
        out = capsys.readouterr().out
        said = out.partition(f"{9 - len(left)} of 9 faults were noticed, these were not:\n")[2]
        assert left
        assert all(f"  {each}\n" in said for each in left)
        assert said.count("\n") == 3 * len(left)
