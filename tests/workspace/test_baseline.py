"""The baseline of `pairs`: pairs are known by the texts of their documents, and counted."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from lshdup.base.params import ShingleParams
from lshdup.errors import LshdupError
from lshdup.workspace.accepted import Accepted, Review, definition_of, load_accepted

WORDS = definition_of(ShingleParams(k=5, bag=True, min_tokens=9))
assert definition_of(ShingleParams()) == WORDS

NAMES = st.sampled_from(
    [b"a", b"b", b"docs/c", b"docs/\xff", b"tab\t", b"new\nline", b'"q', b"z z"]
)
TEXTS = st.integers(0, 7)


def near(one, other):
    """Texts whose numbers differ by at most one are near-duplicates."""
    return abs(one - other) <= 1


class Folder:
    """A folder of documents with numbered texts, and its pairs."""

    def __init__(self, texts):
        self.names = sorted(texts)
        self.texts = [texts[name] for name in self.names]
        self.pairs = [
            (i, j)
            for i, j in combinations(range(len(self.names)), 2)
            if near(self.texts[i], self.texts[j])
        ]
        self.paired = sorted({each for pair in self.pairs for each in pair})

    def count(self):
        """The documents of each text that are in pairs, and the pairs of texts."""
        documents = Counter(self.texts[each] for each in self.paired)
        return documents, {tuple(sorted((self.texts[i], self.texts[j]))) for i, j in self.pairs}

    def review(self, baseline):
        prints = np.array([_print(text) for text in self.texts], np.uint64)
        documents = np.array(self.paired, np.int64)
        return Review(baseline, prints, documents, [self.names[each] for each in self.paired])

    def pieces(self):
        """The pairs in two pieces, as arrays."""
        for part in (self.pairs[::2], self.pairs[1::2]):
            yield tuple(np.array(part, np.int64).reshape(-1, 2).T)

    def new(self, baseline):
        review = self.review(baseline)
        return {
            (self.names[i], self.names[j])
            for left, right in self.pieces()
            for i, j, new in zip(left, right, review.is_new(left, right), strict=True)
            if new
        }


def _print(text):
    return (text * 0x9E3779B97F4A7C15 + 77) % 2**64


class Days(RuleBasedStateMachine):
    """Documents come, move, change and go; now and then all that is there is accepted.

    Begins with copies and a chain of near-duplicates that are known. After each day that was
    accepted two documents become another pair, so that one is gone and one is new.
    occurred : counts of what the runs had.
    """

    def __init__(self, occurred):
        super().__init__()
        self.occurred = occurred

    @initialize(known=st.permutations([0, 0, 1, 2]))
    def begin(self, known):
        self.texts = dict(zip([b"a", b"b", b"docs/c", b"tab\t"], known, strict=True))
        self.baseline, self.next = Accepted(WORDS), 10
        self.begin_day()
        self.accept()

    def begin_day(self):
        self.texts |= {b"new\nline": self.next, b"z z": self.next + 1}
        self.next += 10

    @rule(name=NAMES, text=TEXTS)
    def write(self, name, text):
        self.texts[name] = text

    @rule(name=NAMES)
    def delete(self, name):
        before = self.folder.new(self.baseline)
        gone = self.texts.pop(name, None)
        if gone is not None:
            assert len(self.folder.new(self.baseline)) <= len(before)

    @rule(old=NAMES, new=NAMES)
    def rename(self, old, new):
        if old in self.texts and new not in self.texts:
            before = len(self.folder.new(self.baseline))
            self.texts[new] = self.texts.pop(old)
            assert len(self.folder.new(self.baseline)) == before

    @rule(old=NAMES, new=NAMES)
    def copy(self, old, new):
        if old in self.texts and new not in self.texts:
            known, self.texts[new] = self.folder.count()[0], self.texts[old]
            if known[self.texts[old]] >= self.accepted.count()[0][self.texts[old]]:
                assert self.folder.new(self.baseline)

    @rule()
    def accept(self):
        self.baseline = self.folder.review(self.baseline).summarize(self.folder.pieces())
        self.accepted = self.folder
        assert self.folder.new(self.baseline) == set()
        assert self.baseline.count_gone(self.baseline) == 0
        self.begin_day()

    @rule()
    def restore(self):
        self.texts = dict(zip(self.accepted.names, self.accepted.texts, strict=True))
        assert self.folder.new(self.baseline) == set()
        self.begin_day()

    @property
    def folder(self):
        return Folder(self.texts)

    @invariant()
    def counts(self):
        """Of each pair of texts, as many are new as known documents do not account for."""
        now, pairs_now = self.folder.count()
        before, known_pairs = self.accepted.count()
        self.occurred["runs"] += 1
        self.occurred["pairs"] += bool(pairs_now)
        self.occurred["exact duplicates"] += any(a == b for a, b in pairs_now)
        self.occurred["known pairs"] += bool(pairs_now & known_pairs)
        self.occurred["new pairs"] += bool(pairs_now - known_pairs)
        self.occurred["gone pairs"] += bool(known_pairs - pairs_now)
        known = {text: min(count, before[text]) for text, count in now.items()}
        new = Counter()
        for i, j in self.folder.pairs:
            new[tuple(sorted((self.folder.texts[i], self.folder.texts[j])))] += 1
        for a, b in known_pairs & set(new):
            all_known = known[a] * known[b] if a != b else known[a] * (known[a] - 1) // 2
            new[a, b] -= all_known
        texts = self.texts
        found = Counter(
            tuple(sorted((texts[a], texts[b]))) for a, b in self.folder.new(self.baseline)
        )
        assert found == +new

    @invariant()
    def names(self):
        """A pair of two documents that are as they were is not new."""
        was = dict(zip(self.accepted.names, self.accepted.texts, strict=True))
        stayed = {name for name, text in self.texts.items() if was.get(name) == text}
        paired = {(self.accepted.names[i], self.accepted.names[j]) for i, j in self.accepted.pairs}
        for pair in self.folder.new(self.baseline):
            assert not (set(pair) <= stayed and pair in paired)


def test_days():
    occurred = Counter()
    run_state_machine_as_test(
        lambda: Days(occurred),
        settings=settings(max_examples=60, stateful_step_count=25, deadline=None),
    )
    assert len(occurred) == 6
    assert 3 * min(occurred.values()) >= occurred["runs"], occurred


def test_a_file_holds_a_baseline(tmp_path):
    """One line a pair, sorted by names; any name is one line."""
    folder = Folder({b"b": 1, b"a": 1, b"tab\t\n": 2, b"\xff": 2, b"far": 7, b'"q"': 1})
    baseline = folder.review(Accepted(WORDS)).summarize(folder.pieces())
    baseline.save(tmp_path / "known")
    loaded = load_accepted(tmp_path / "known", "--baseline")
    assert (loaded.lines, loaded.texts, loaded.of_texts) == (baseline.lines, WORDS, True)
    head, *lines = map(json.loads, (tmp_path / "known").read_bytes().splitlines())
    assert (head["lshdup"], head["version"], head["of"]) == ("accepted pairs", 1, "texts")
    assert WORDS.to_json() == head["texts"] | {"k": 3, "bag": False, "min_tokens": 0}
    assert [(line["a"], line["b"]) for line in lines] == [
        ('"q"', "a"), ('"q"', "b"), ('"q"', "tab\t\n"), ("tab\t\n", "\udcff"),
    ]  # fmt: skip
    assert lines[0]["a_text"] == f"{_print(1):016x}"
    assert folder.new(loaded) == set()


LINE = (
    b'{"a": "a", "b": "b", "a_text": "0000000000000001", "b_text": "0000000000000002", "note": "x"}'
)
OTHER_HEAD = b'{"lshdup": "accepted pairs", "version": %d, "of": "pairs", "texts": {}}\n'


@pytest.mark.parametrize(
    "content",
    [
        b"", b"docs/a\tdocs/b\n", b"# lshdup baseline 1 {}\n", b"{}\n", b"[]\n", b"[" * 100_000,
        OTHER_HEAD % 1, OTHER_HEAD % 2,
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "known").write_bytes(content)
    for repair in (False, True):
        with pytest.raises(LshdupError, match="is no baseline"):
            load_accepted(tmp_path / "known", "--baseline", repair=repair)


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (b"<<<<<<< ours\n", 2), (LINE + b"\n\n", 3),
        *(
            (LINE + b"\n" + LINE.replace(*change), 3)
            for change in [
                (b'"a"', b"1"), (b'"b": "b"', b'"c": "b"'), (b"0001", b"001"), (b"0002", b"000g"),
                (b'"x"', b"1"), (b'"a"', rb'"\ud800"'), (b"}", b""), (b"0001", b"-001"),
                (b"0" * 14, b""),
            ]
        ),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_skipped_only_where_the_file_is_written_anew(tmp_path, lines, wrong):
    Accepted(WORDS).save(tmp_path / "known")
    with (tmp_path / "known").open("ab") as file:
        file.write(lines)
    with pytest.raises(LshdupError, match=f"line {wrong} is no pair"):
        load_accepted(tmp_path / "known", "--baseline")
    repaired = load_accepted(tmp_path / "known", "--baseline", repair=True)
    assert repaired.texts == WORDS
    assert len(repaired.lines) == wrong - 2
