"""What is said on standard error: the funnel with counts and seconds, and progress with the time
that is left.
"""

import re
import time

import pytest

from lshdup.cli.console import Console

SECONDS = r"; \d+\.\d\d s"


def test_the_funnel(run, corpus):
    """Documents -> shingles -> signatures -> bands -> candidates -> pairs, with how many and how
    long.
    """
    first = run("pairs sample_corpus -v -t 0.9").err
    assert re.search(
        r"^lshdup: 121 documents, 5 read as HTML -> [\d,]+ shingles -> signatures: fast, K = 128"
        rf"{SECONDS}; 1 doc",
        first,
        re.M,
    )
    assert re.search(
        rf"^lshdup: 12 bands of 10 rows, chance to miss a pair of similarity 0\.9: .*{SECONDS}$",
        first,
        re.M,
    )
    kinds = r"copies compared once: \d+ candidate pairs -> 12 pairs; with all copies 22 pairs"
    found = rf"^lshdup: {kinds} of similarity 0\.9 or more{SECONDS}{SECONDS} in all$"
    assert re.search(found, first, re.M)
    again = run("pairs", "-v", "-t", "0.9").err  # nothing was made: nothing took time
    assert len(re.findall(SECONDS, again)) == 1
    assert re.search(
        rf"none missed{SECONDS}{SECONDS} in all$", run("pairs sample_corpus -v --exact").err, re.M
    )
    assert run("pairs -t 0.9 -q").err == ""
    assert "sample_corpus/odd/empty.txt: no tokens" in run("pairs -v -t 0.9").err


def test_progress_says_how_long_it_will_take(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    with Console(progress=True) as console:
        for done in range(4):
            console.progress("candidates", done, 100)
            now[0] += 0.4
        assert re.search(
            r"candidates: +\d+%.*\?", capsys.readouterr().err
        )  # a bar, with a place for the time that is left
        console.progress("other", 0, 10)
        assert console.duration_of("candidates") == "; 1.60 s"
        assert console.duration_of("candidates") == ""
        now[0] += 0.5
        console.progress("other", 1, 10)
        assert "other" not in capsys.readouterr().err  # not for half a second


def test_long_stages_tell_how_far_they_are(monkeypatch, corpus, tmp_path):
    """Each stage that may last tells the console, with a total: without one there is no time that
    is left.
    """
    import lshdup.cli.main

    told = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        Console, "progress", lambda self, stage, done, total: told.append((stage, done, total))
    )
    for arguments, stages in {
        ("pairs", "sample_corpus", "--no-store", "-q"): ["documents", "bands", "candidates"],
        ("pairs", "sample_corpus", "--no-store", "-q", "--exact"): ["documents", "candidates"],
        ("index", "sample_corpus", "-q"): ["documents", "bands"],
        ("query", "eng.txt", "fra.txt", "-q"): ["queries"],
        ("accuracy", "sample_corpus", "--no-store", "-q", "--perms", "50"): ["documents", "K = 50"],
        ("accuracy", "sample_corpus", "--no-store", "-q", "--found"): [
            "documents",
            "candidates",
            "bands, K = 128",
        ],
        ("timing", "sample_corpus", "--no-store", "-q", "--perms", "50", "--runs", "1"): [
            "documents",
            "timing",
        ],
    }.items():
        told.clear()
        with pytest.raises(SystemExit) as done:
            lshdup.cli.main.main(
                [*arguments, "-o", "out"] if arguments[0] != "index" else list(arguments)
            )
        assert not done.value.code
        assert list(dict.fromkeys(stage for stage, _, _ in told)) == stages, arguments
        for stage in stages:
            assert stage == "bands" or any(total for each, _, total in told if each == stage), (
                arguments,
                stage,
            )


def test_the_funnel_of_groups_and_of_two_sides(run, corpus):
    groups = run("clusters sample_corpus -v -t 0.9").err
    assert re.search(rf"; keep \d+ documents, .* bytes{SECONDS}{SECONDS} in all$", groups, re.M)
    assert re.search(
        rf" bytes{SECONDS}{SECONDS} in all$",
        run("clusters sample_corpus -v -t 0.9 --exact").err,
        re.M,
    )
    again = run("clusters", "-v", "-t", "0.9").err  # they are kept
    assert len(re.findall(SECONDS, again)) == 1
    for more in ([], ["--exact"]):
        two = run("pairs sample_corpus/udhr --against sample_corpus/licences -v -t 0.6", *more).err
        assert re.search(
            rf"pairs? of similarity 0\.6 or more(, none missed)?{SECONDS}{SECONDS} in all$",
            two,
            re.M,
        )
