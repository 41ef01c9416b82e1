"""`lshdup show` by lines: which texts are compared so, what is marked, and what a person sees."""

import re
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.params import ShingleParams
from lshdup.views.changes import ALIKE
from lshdup.views.comparison import align_lines, compare, extract_line, have_same_lines, mark_pieces
from tests import golden
from tests.conftest import RUN, write_files
from tests.running import in_terminal
from tests.views.test_show import valid

CODE = '''import os
import sys


def compare(a, b):
    """Compare two numbers."""
    if (a < b): return -1
    return 0


def double(x):
    return x * 2


class Thing:
    def __init__(self, name, size=3.5):
        self.name = name
        self.size = size

    def show(self):
        print(self.name, self.size)
        for i in range(10):
            print(i)
        return None

    def close(self):
        os.remove(self.name)
'''
CHANGED = CODE
for old, new in {
    "(a < b): return -1": "(a > b): return +1",
    "def double(x):\n    return x * 2\n\n\n": "",
    "3.5": "3,5",
    "range(10)": "range(12)  # a remark that makes the line longer than a narrow screen has",
    "return None\n": "return None\n\n    def open(self):\n\treturn open(self.name)\x1b[31m\n",
}.items():
    CHANGED = CHANGED.replace(old, new)
TABLE = "name;price;stock\n" + "".join(f"thing {i};{i}.50;{i * 7}\n" for i in range(40))
PRICES = TABLE.replace("7.50", "7,50").replace("thing 20;20.50;140\n", "")
KINDS = {"code": ("a.py", "b.py"), "table": ("a.csv", "b.csv")}
PROSE = " ".join(f"word{i} and the {i}th thing." for i in range(60))


def wrapped(text, width):
    return "\n".join(re.findall(rf".{{1,{width}}}(?:\s|$)", text)) + "\n"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (CODE, CHANGED, True), (CODE, CODE.replace("<", ">"), True), (TABLE, PRICES, True),
        (TABLE, TABLE.replace("0;", "1;"), True),
        (wrapped(PROSE, 70), wrapped(PROSE.replace("word7 ", "word "), 70), True),
        (wrapped(PROSE, 70), wrapped(PROSE, 50), False), (wrapped(PROSE, 70), PROSE, False),
        (PROSE, PROSE.replace("word7", "word"), False),
        (f"{PROSE}\n\n{PROSE}\n", f"{PROSE}\n\n{PROSE} more\n", False),
        ("one\ntwo", "three\nfour", True), ("one", "two", False), ("", "", False),
        ("", CODE, False),
    ],
)  # fmt: skip
def test_texts_are_compared_by_lines_if_both_have_the_same(a, b, expected):
    comparison = compare(RUN, a.encode(), b.encode(), ShingleParams())
    assert have_same_lines(comparison.texts) is expected


LINES = st.lists(st.text("ab .<>=\t漢é", max_size=8), max_size=8)


@given(LINES, LINES)
def test_what_is_not_marked_is_in_both(a, b):
    for lines, others, spans in zip((a, b), (b, a), mark_pieces(a, b), strict=True):
        assert len(lines or [""]) == len(spans)
        for line, each in zip(lines, spans, strict=False):
            assert all(0 <= start < end <= len(line) for start, end in each)
            assert all(x[1] < y[0] for x, y in pairwise(each))
            if each:  # the rest, one character after the other, in this order
                there = iter("".join(others))
                rest = (c for i, c in enumerate(line) if not any(s <= i < e for s, e in each))
                assert all(c in there for c in rest)


@given(LINES, LINES)
def test_equal_lines_and_no_others_are_alike(a, b):
    texts = ("".join(f"{line}\n" for line in each).encode() for each in (a, b))
    counts = valid(np.array(a, object), np.array(b, object), align_lines(*texts).changes)
    assert a != b or counts[ALIKE] == len(a)


def test_marks_of_a_changed_line():
    for before, after, marked, there in (
        ("if (a < b) return -1;", "if (a > b) return +1;", *[[(6, 7), (18, 19)]] * 2),
        ("nothing alike", "other words", [], []),  # all of it differs
        ("  x = 1", "    x = 1", [(0, 2)], [(0, 4)]),
        ("漢字を読む", "漢字を書く", [(3, 5)], [(3, 5)]),
    ):
        assert mark_pieces([before], [after]) == ([marked], [there])


def test_lines_are_without_their_ends():
    for text, lines in {
        "": [], "a\n\nb": ["a", "", "b"], "a\n": ["a"], "a\r\n": ["a"],
        "a\r\n\r\nä": ["a", "", "ä"], "\n": [""],
    }.items():  # fmt: skip
        located = align_lines(text.encode(), b"").a
        assert [extract_line(located, at) for at in range(len(located.tokens))] == lines


def test_lines_as_they_are_seen(run, tmp_path):
    """Program text and a table, before and after some changes."""
    write_files(tmp_path, {"a.py": CODE, "b.py": CHANGED, "a.csv": TABLE, "b.csv": PRICES})
    layouts = {"": "", "-plain": "--no-color", "-beside": "--side-by-side --context 1"}
    seen = [("code", columns, name) for columns in (50, 160) for name in ("", "-beside")]
    for kind, columns, name in (*seen, *product(("code", "table"), (80,), layouts)):
        words = ["show", *KINDS[kind], *layouts[name].split()]
        code, out, err = in_terminal(words, columns, tmp_path)
        assert (code, err) == (0, "")
        golden.check(f"show/{kind}-{columns}{name}.txt", out)
        lines = re.sub(rb"\x1b\[[\d;]*m", b"", out).decode().splitlines()
        if name != "-plain":
            assert all(len(line) <= columns for line in lines[lines.index("") :])
        assert all(line.isprintable() for line in lines)
    for kind, names in KINDS.items():
        golden.check(f"show/{kind}-pipe.txt", run("show", *names).out)
