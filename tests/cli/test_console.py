"""Standard error: the funnel with counts and seconds, and progress with the time left."""

import re
import time

import pytest

from lshdup.cli.console import Console


def test_progress_says_how_long_it_will_take(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    with Console(progress=True) as console:
        for done in range(4):
            console.progress("candidates", done, 100)
            now[0] += 0.4
        # A bar, with a place for the time that is left.
        assert re.search(r"candidates: +\d+%.*\?", capsys.readouterr().err)
        console.progress("other", 0, 10)
        assert console.duration_of("candidates") == "; 1.60 s"
        assert console.duration_of("candidates") == ""
        now[0] += 0.5
        console.progress("other", 1, 10)
        assert "other" not in capsys.readouterr().err  # not for half a second


def test_long_stages_tell_how_far_they_are(monkeypatch, corpus, tmp_path):
    """Each stage that may last tells the console, with a total, of which the rest is known."""
    import lshdup.cli.main

    told = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        Console, "progress", lambda self, stage, done, total: told.append((stage, done, total))
    )
    for line, stages in {
        "pairs sample_corpus --no-store -q -o out": ["documents", "bands", "candidates"],
        "pairs sample_corpus --no-store -q --exact -o out": ["documents", "candidates"],
        "index sample_corpus -q": ["documents", "bands"],
        "query eng.txt fra.txt -q -o out": ["queries"],
        "accuracy sample_corpus --no-store -q --perms 50 -o out": ["documents", "K = 50"],
        "accuracy sample_corpus --no-store -q --found -o out": [
            "documents", "candidates", "bands, K = 128",
        ],
        "timing sample_corpus --no-store -q --perms 50 --runs 1 -o out": ["documents", "timing"],
    }.items():  # fmt: skip
        told.clear()
        with pytest.raises(SystemExit) as done:
            lshdup.cli.main.main(line.split())
        assert not done.value.code
        assert list(dict.fromkeys(stage for stage, _, _ in told)) == stages, line
        for stage in stages:
            total = any(total for each, _, total in told if each == stage)
            assert stage == "bands" or total, (line, stage)
