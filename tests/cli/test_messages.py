"""What a new user stumbles over: each message names the value, the cause, and what to type next."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path

import pytest

from lshdup.base import atomic
from lshdup.base.atomic import JOURNAL, describe_kept, note_kept, replace_file
from lshdup.base.messages import chance, count_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped
from lshdup.cli import main, messages
from lshdup.cli.commands import COMMANDS
from lshdup.cli.console import Console, use_color
from lshdup.cli.help import GROUPS
from lshdup.errors import InputError, LshdupError, ParameterError
from lshdup.params import DocumentParams
from lshdup.sources.finding import find_documents
from lshdup.sources.records import field_names, no_field
from lshdup.sources.rewriting import check_target
from tests.conftest import ROOT, require
from tests.running import in_terminal, run_many, run_program

TEXT = "some words that are the same in each of these three documents, but for number"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Three near-duplicates in docs, an empty folder, and a file of rows."""
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "empty"):
        Path(folder).mkdir()
    for number in range(3):
        Path(f"docs/{number}.txt").write_text(f"{TEXT} {number}")
    rows = [
        {"content": f"{TEXT} {number}", "id": number, "meta": {"language": "en"}}
        for number in range(3)
    ]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def said(here, *commands, code=2, env=None):
    """What each command line says on standard error."""
    results = run_many([([*command], None) for command in commands], here, env)
    for command, (actual, out, err) in zip(commands, results, strict=True):
        assert code is None or actual == code, (command, err)
        assert code != 2 or out == b"", command
        assert b"Traceback" not in err, command
    return [err.decode() for _, _, err in results]


def error(*lines):
    """An error and its hint, and nothing else: no usage, nothing before it."""
    first, *hint = lines
    return "".join([f"lshdup: error: {first}\n", *(f"  {line}\n" for line in hint)])


# --- no store here --------------------------------------------------------------------------------


def test_without_documents_and_without_a_store(here):
    kinds = {
        "pairs": "signatures",
        "clusters": "signatures",
        "report": "signatures",
        "index": "signatures",
        "accuracy": "shingles",
    }
    commands = [
        [command, *(["-o", "out.html"] if command == "report" else [])] for command in kinds
    ]
    errs = said(here, *commands, *([*command, "--store", f"{here}/gone"] for command in commands))
    for (command, kind), err, elsewhere in zip(
        kinds.items(), errs, errs[len(kinds) :], strict=False
    ):
        output = " -o out.html" * (command == "report")
        assert err == error(
            f"there is no {kind}.npz in .lshdup",
            f"run `lshdup {command} DOCS{output}` (files or folders); a store is looked for in "
            f"{os.path.realpath(here)} and above: "
            "that of an earlier run is named by --store DIR",
        )
        assert elsewhere == error(
            f"there is no {kind}.npz in {here}/gone",
            f"run `lshdup {command} DOCS{output} --store {here}/gone` (files or folders); "
            "a store elsewhere is named by --store DIR",
        )
    assert not os.path.lexists(".lshdup")


def test_what_cannot_take_documents_says_what_can(here):
    Path("begun").mkdir()
    Path("begun/.gitignore").write_text("# Made by lshdup.\n*\n")
    query, other, none = said(
        here, ["query", "x"], ["pairs", "docs", "--against", "begun"], ["pairs", "--no-store"]
    )
    assert "run `lshdup index DOCS`" in query
    assert other == error(
        "there is no signatures.npz in begun", "run `lshdup index DOCS --store begun`"
    )
    assert none == error(
        "no documents were named, and --no-store leaves nothing to continue from",
        "run `lshdup pairs DOCS --no-store` (files or folders)",
    )


# --- names that are not there ---------------------------------------------------------------------


def test_a_misspelt_other_is_said_first_and_alone(here):
    near, far, good = said(
        here,
        ["pairs", "docs", "--against", "dcs"],
        ["pairs", "docs", "--against", "nothing-like-it"],
        code=2,
    ) + said(here, ["pairs", "docs/0.txt", "--against", "docs/1.txt"], code=0)
    assert near == error("--against 'dcs': No such file or directory", "did you mean docs?")
    assert far == error(
        "--against 'nothing-like-it': No such file or directory",
        "name a folder or a file, or the store of an earlier run",
    )
    assert good.startswith(
        "lshdup: docs/1.txt: read anew each time it is compared with; `lshdup index docs/"
        "1.txt --store DIR` once, "
    )


def test_what_a_shell_was_to_expand(here):
    commands = [
        ["pairs", "docs/*.txt"],
        ["pairs", "docs/**/a b?.txt"],
        ["pairs", "dosc/*.txt"],
        ["pairs", "~/docs"],
        ["pairs", "docs", "--template", "docs/*.txt"],
    ]
    glob, deep, nowhere, home, template = said(here, *commands, env={"HOME": "/home/me"})
    ((code, out, some),) = run_many([(["pairs", "docs", "docs/[ab].md"], None)], here)
    assert (code, out.count(b"\n")) == (2, 3)  # the others are compared
    pattern = (
        "the shell did not expand the pattern, as it is quoted or matches nothing; name the folder"
    )
    assert glob == error(
        "'docs/*.txt': No such file or directory",
        f"{pattern} and the pattern: docs --include '*.txt'",
    )
    assert f"{pattern} and the pattern: docs --include 'a b?.txt'" in deep
    assert nowhere == error("'dosc/*.txt': No such file or directory", "did you mean docs?")
    assert home == error(
        "'~/docs': No such file or directory",
        "a shell puts the home folder for ~ only outside quotes: /home/me/docs",
    )
    assert template == error("--template 'docs/*.txt': No such file or directory", pattern)
    assert (
        f"docs/[ab].md: missing (No such file or directory; {pattern} and the pattern: "
        "docs --include '[ab].md')" in some.decode()
    )


def test_many_names_that_are_not_there_take_no_time_to_guess_at(here):
    skipped = []
    find_documents(
        replace(Run.quiet(), skipped=skipped.append),
        [b"docs", *(f"docs/{n}.tx".encode() for n in range(50))],
        DocumentParams(),
    )
    assert len(skipped) == 50
    assert sum("did you mean" in each.detail for each in skipped) == 10


# --- commands and options -------------------------------------------------------------------------


def test_words_that_are_no_command(here):
    Path("pair").mkdir()
    expected = {
        ("pair",): ("'pair' is no command", "did you mean `lshdup pairs`?"),
        ("clutsers", "my docs", "-t", "0.9"): (
            "'clutsers' is no command",
            "did you mean `lshdup clusters 'my docs' -t 0.9`?",
        ),
        ("dupes", "docs"): ("'dupes' is no command", "did you mean `lshdup pairs docs`?"),
        ("group", "docs"): ("'group' is no command", "did you mean `lshdup clusters docs`?"),
        ("diff", "a", "b"): ("'diff' is no command", "did you mean `lshdup show a b`?"),
        ("data",): (
            "'data' is no command",
            "`lshdup --help` lists the commands; if it is a folder: `lshdup pairs data`",
        ),
        ("help", "pair"): ("'pair' is no command", "did you mean `lshdup pairs --help`?"),
        ("docs",): ("'docs' is a folder, and no command is before it", "run `lshdup pairs docs`"),
        ("./docs", "-t", "0.9"): (
            "'./docs' is a folder, and no command is before it",
            "run `lshdup pairs ./docs -t 0.9`",
        ),
        ("rows.jsonl",): (
            "'rows.jsonl' is a file, and no command is before it",
            "run `lshdup pairs rows.jsonl`",
        ),
        ("-t", "0.9", "pairs", "docs"): (
            "-t is before the command 'pairs'; options stand behind it",
            "run `lshdup pairs -t 0.9 docs`",
        ),
        ("--threshold=0.9", "docs"): (
            "--threshold is before a command, and no command is behind it",
            "options stand behind a command: `lshdup pairs DOCS --threshold 0.9`",
        ),
    }
    assert said(here, *expected) == [error(*lines) for lines in expected.values()]


def test_misspelt_options(here):
    of_command, of_program = said(here, ["pairs", "docs", "--treshold", "0.9"], ["--verison"])
    assert of_command == error("there is no option --treshold", "did you mean --threshold?")
    assert of_program == error("there is no option --verison", "did you mean --version?")


def test_shares(here):
    cases = [
        (
            ["-t", "90"],
            ("--threshold is 90; it must be above 0 and at most 1", "if 90 % is meant, write 0.9"),
        ),
        (["-t", "120 %"], ("--threshold is '120 %'; it must be at most 100 %",)),
        (["-t", "0,9"], ("--threshold is '0,9', which is no number", "write 0.9")),
        (["-t", "87,5 %"], ("--threshold is '87,5 %', which is no number", "write 0.875")),
        (["-t", "much"], ("--threshold is 'much', which is no number", "write it like 0.9")),
        (["-t", "-1"], ("--threshold is -1; it must be above 0 and at most 1",)),
        (["-t", "nan"], ("--threshold is nan; it must be above 0 and at most 1",)),
        (
            ["--recall", "99"],
            (
                "--recall is 99; it must be between 0 and 1, for instance 0.99",
                "if 99 % is meant, write 0.99",
            ),
        ),
        (["--ignore-common", "100%"], ("--ignore-common is '100%'; it must be less than 100 %",)),
        (["-t", "٩0%"], ("--threshold is '٩0%', which is no number", "write it like 0.9")),
        (["--ignore-common", "0,3"], ("--ignore-common is '0,3', which is no number", "write 0.3")),
        (
            ["--ignore-common", "."],
            (
                "--ignore-common is '.', which is no number",
                "write a share like 0.3, or a number of documents",
            ),
        ),
    ]
    errors = said(here, *(["pairs", "docs", *options] for options, _ in cases))
    assert errors == [error(*lines) for _, lines in cases]


def test_percentages_are_shares(here):
    docs = ("docs", "--no-store", "--format", "csv")
    same = [
        (("pairs", *docs, "-t", "55.5%"), ("pairs", *docs, "-t", "0.555")),
        (("pairs", *docs, "--recall=90 %"), ("pairs", *docs, "--recall", "0.9")),
        (("pairs", *docs, "--ignore-common", "40%"), ("pairs", *docs, "--ignore-common", "0.4")),
        (
            ("curve", "--threshold", "90%", "--format", "csv"),
            ("curve", "--threshold", "0.9", "--format", "csv"),
        ),
    ]
    for percent, share in same:
        first, second = run_many([([*percent], None), ([*share], None)], here)
        assert first[:2] == second[:2]
        assert first[0] == 0, first


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--num-perm", "64"], ["--perms", "64"]),
        (["--num-hashes=64"], ["--perms=64"]),
        (["--ngram", "2"], ["-k", "2"]),
        (["--ngram-size=2"], ["-k", "2"]),
        (["--num-bands", "30", "--rows-per-band", "3"], ["--bands", "30", "--rows", "3"]),
        (["--threads", "1"], ["--jobs", "1"]),
        (["--num-proc=1"], ["--jobs", "1"]),
        (["--workers", "1"], ["--jobs", "1"]),
        (["--json"], ["--format", "json"]),
        (["--csv"], ["--format", "csv"]),
        (["--column", "content"], ["--text-field", "content"]),
        (["--field=content"], ["--text-field", "content"]),
        (["--text-key", "content"], ["--text-field", "content"]),
        (["--similarity", "0.6"], ["-t", "0.6"]),
        (["--similarity-threshold=60%"], ["-t", "0.6"]),
        (["--min-similarity", "0.6"], ["-t", "0.6"]),
        (["--ignore", "*.txt"], ["--exclude", "*.txt"]),
        (["--reference", "docs"], ["--against", "docs"]),
        (["--no-cache"], ["--no-store"]),
        (["--print0"], ["-0"]),
        (["-r"], []),
        (["--recursive"], []),
    ],
)
def test_options_of_other_programs(here, words, meant):
    command = ["pairs", "rows.jsonl", "--no-store"]
    first, second = run_many([([*command, *each], None) for each in (words, meant)], here)
    assert first[:2] == second[:2]


def test_what_does_the_work_of_options_of_other_programs(here):
    nothing = "lshdup deletes and moves nothing; `lshdup clusters --emit drop` lists what can go"
    sizes = "--max-bytes N leaves out larger files, --min-tokens N texts of fewer words"
    most = "`| head -n N` cuts a listing"
    help_ = "run `lshdup pairs --help`"
    cases = {
        "--dry-run": "leave it out: lshdup never changes or deletes a document",
        "--replace-store": "leave it out: a store keeps what other runs have made",
        "--max-depth": "--exclude 'DOCS/*/' takes only files directly in DOCS",
        "--check-files": "name DOCS: what is deleted is left out, only what changed is read",
        "--ext": "--include '*.txt' takes the files with one ending",
        "--min-length": "--min-tokens N leaves out documents of fewer than N tokens",
        "--delete": nothing,
        "--move": nothing,
        "--min-size": sizes,
        "--max-size": sizes,
        "--glob": "--include PATTERN takes only such files, --exclude PATTERN all others",
        "--html": "`lshdup report DOCS -o report.html` makes a page",
        "--keep-newest": "`lshdup clusters DOCS --keep newest` says what to keep",
        "--top": most,
        "--limit": most,
        "-n": most,
        # Nothing is meant that is spelt like them.
        **dict.fromkeys(("--noempty", "--min-group", "--cross", "--list", "--soft"), help_),
    }
    assert said(here, *(["pairs", "docs", each] for each in cases)) == [
        error(f"there is no option {option}", hint) for option, hint in cases.items()
    ]
    least, keep, plain = run_many(
        [
            (["passages", "docs", "--no-store", "--min-length", "5"], None),
            (["clusters", "docs", "--no-store", "--keep-newest"], None),
            (["passages", "docs", "--no-store", "--least", "5"], None),
        ],
        here,
    )
    assert least[:2] == plain[:2]
    assert (least[0], keep[0]) == (0, 0)
    cluster, no_format, value = said(
        here,
        ["pairs", "docs", "-qr"],
        ["shingle", "docs", "--num-perm=5"],
        ["pairs", "docs", "--csv=1"],
    )
    assert cluster == error("there is no option -r", "leave it out: folders are read to any depth")
    assert no_format.startswith("lshdup: error: there is no option --num-perm\n")
    assert value.startswith("lshdup: error: there is no option --csv\n")
    page = run_many([(["pairs", "--help"], 80)], here)[0][1]
    assert b"--num-perm" not in page
    assert b"--recursive" not in page


def test_shares_from_the_environment_and_of_other_commands(here):
    (err,) = said(here, ["pairs", "docs"], env={"LSHDUP_THRESHOLD": "8,0%"})
    assert err == error("LSHDUP_THRESHOLD is '8,0%', which is no number", "write 0.08")
    (err,) = said(here, ["accuracy", "docs", "--found", "-t", "80"])
    assert "if 80 % is meant, write 0.8" in err


# --- nothing to compare ---------------------------------------------------------------------------


def test_why_nothing_is_compared(here):
    Path("docs/.hidden").write_text(TEXT)
    os.mkdir("odd")
    for name in ("a", "b"):
        Path(f"odd/{name}").write_bytes(b"\0binary")
    os.mkdir("blank")
    Path("blank/a").write_text("...")
    Path("all.txt").write_text("\n".join(f"{TEXT} {number}" for number in range(3)))
    none = "nothing to compare: 0 documents with shingles"
    no_file = "there is no file in empty; name files, or folders that hold some"
    one = (
        "nothing to compare: 1 document with shingles, of 1 file in docs/1.txt; name more "
        "files or folders"
    )
    expected = {
        "pairs empty": f"nothing to compare: {no_file}",
        "clusters empty": f"nothing to compare: {no_file}",
        "index empty": f"no document can be compared: {no_file}",
        "pairs docs/1.txt --no-store": one,
        "pairs docs/1.txt --no-store --exact": one,
        "pairs odd": f"{none}, of 2 files in odd; skipped: 2 binary; -v names them, and why",
        "pairs blank": f"{none}, of 1 file in blank; 1 document without; -v names them; name "
        "files that hold text",
        "pairs docs odd --exclude *.txt -q": f"{none}, of 6 files in docs, odd; skipped: 2 "
        "binary, 3 excluded by --exclude, 1 hidden; look at --exclude",
        "pairs docs --template all.txt": f"{none}, of 4 files in docs; 3 documents without; "
        "skipped: 1 hidden; a larger "
        "--ignore-common, another --template, or a smaller --min-tokens helps",
        "pairs docs --against empty": "nothing to compare with: OTHER has no document with "
        "shingles; name another, or see with -v "
        "what was skipped",
    }
    *few, enough, _, continued = said(
        here,
        *(words.split() for words in [*expected, "pairs docs", "index docs/1.txt"]),
        ["pairs"],
        code=0,
    )
    for err, why in zip(few, expected.values(), strict=True):
        assert err.count("lshdup: warning: ") == 1, err
        assert f"lshdup: warning: {why}\n" in err
    assert "warning" not in enough
    assert (
        "nothing to compare: 1 document with shingles, of 1 file in the last run; name "
        "more files or folders" in continued
    )


# --- fields of rows -------------------------------------------------------------------------------


def test_a_wrong_field_names_those_there_are(here):
    text, near, inner, name = said(
        here,
        ["pairs", "rows.jsonl"],
        ["pairs", "rows.jsonl", "--text-field", "contents"],
        ["pairs", "rows.jsonl", "--text-field", "langauge"],
        ["pairs", "rows.jsonl", "--text-field", "content", "--id-field", "ID"],
    )
    assert (
        "rows.jsonl:1: row without text (no field 'text', but content, id, meta, "
        "meta.language; --text-field names another)" in text
    )
    assert (
        "(no field 'contents', but content, id, meta, meta.language; did you mean "
        "--text-field content?)" in near
    )
    assert "did you mean --text-field meta.language?" in inner
    assert (
        "rows.jsonl:1: row without id (no field 'ID', but content, id, meta, "
        "meta.language; did you mean --id-field id?)" in name
    )
    assert (
        "nothing to compare: 0 documents with shingles, of 3 files and rows in "
        "rows.jsonl; skipped: 3 rows without text; --text-field" in text
    )
    assert "skipped: 3 rows without ids" in name


def test_a_wrong_column_names_those_there_are(here):
    pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
    pq.write_table(
        pa.Table.from_pylist(
            [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
        ),
        "rows.parquet",
    )
    text, name = said(
        here,
        ["pairs", "rows.parquet", "--text-field", "langauge"],
        ["pairs", "rows.parquet", "--text-field", "content", "--id-field", "nothing"],
    )
    assert (
        "it has no column 'langauge', but content, id, meta, meta.language; did you mean "
        "--text-field meta.language?" in text
    )
    assert (
        "it has no column 'nothing', but content, id, meta, meta.language; --id-field names another"
        in name
    )


def test_names_of_fields_are_bounded_and_can_be_printed(run, tmp_path):
    names = field_names(
        (name, "") for name in ["\ud800", "\x1b[31m", "x" * 10**6, *map(str, range(1000))]
    )
    assert names[:2] == ("\\ud800", "\\x1b[31m")
    assert len(names) == 100
    message = no_field("text", names, "--text-field")
    assert len(message) < 250
    assert message.isprintable()
    assert (
        no_field("text", (), "--text-field")
        == "no field 'text', but none; --text-field names another"
    )
    (tmp_path / "a.jsonl").write_text(
        '{"\\ud800": 1, "\\u001b[31m": 2}\n{"text": "a b c"}\n{"text": "a b c"}\n'
    )
    result = run("pairs", "a.jsonl", code=2)  # what was skipped, and why, is kept in the store
    assert result.rows == [["a.jsonl:2", "a.jsonl:3", "1.0", "bytes"]]
    assert "no field 'text', but \\ud800, \\x1b[31m" in result.err


# --- counts with their nouns ----------------------------------------------------------------------


def test_every_reason_can_be_counted():
    for reason in Reason:
        assert reason.counted(1) == f"1 {reason}"
        assert reason.counted(3000).startswith("3,000 ")
    assert Reason.NO_TEXT.counted(3000) == "3,000 rows without text"
    assert Reason.LINK.counted(2) == "2 symbolic links"
    assert Reason.NOT_JSON.counted(2) == "2 rows that are no JSON objects"
    assert Reason.BINARY.counted(2) == "2 binary"
    singular = [
        str(reason)
        for reason in Reason
        if re.match(r"(row|symbolic link|damaged document|repeated name)\b", reason)
    ]
    assert all(Reason(each).counted(2) != f"2 {each}" for each in singular)
    assert count_of(2, "document is", "documents are") == "2 documents are"


# --- clusters --write -----------------------------------------------------------------------------


def test_write_is_refused_before_the_work(here):
    Path("docs/c.jsonl").write_text(Path("rows.jsonl").read_text())
    plain, clash, ending = said(
        here,
        ["clusters", "docs/0.txt", "docs/1.txt", "--write", "out.jsonl"],
        ["clusters", "rows.jsonl", "--text-field", "content", "--write", "rows.jsonl"],
        ["clusters", "rows.jsonl", "--text-field", "content", "--write", "out.parquet"],
    )
    hint = (
        "name files of rows only; --text-field takes the rows of files in folders too; "
        "--emit drop lists names"
    )
    assert plain == error(
        "not all documents are rows of JSON Lines, CSV or Parquet files: 'docs/0.txt' is none, "
        "so no filtered file can be written",
        hint,
    )
    assert "--write rows.jsonl is one of the documents that are compared" in clash
    assert "out.parquet does not end like a file of JSON Lines" in ending
    assert not any("shingles" in err for err in (plain, clash, ending))  # nothing was read
    for exact in ([], ["--exact"]):
        (mixed,) = said(
            here, ["clusters", "docs", "--text-field", "content", "--write", "out.jsonl", *exact]
        )
        assert "'docs/0.txt' is none" in mixed
        assert (
            "groups" not in mixed
        )  # that it is text was known only when it had been read; nothing was grouped
    assert not os.path.exists("out.jsonl")


def test_what_turns_out_to_be_no_document_does_not_hinder_writing(here):
    os.mkdir("mixed")
    Path("mixed/rows.jsonl").write_text(Path("rows.jsonl").read_text())
    Path("mixed/picture").write_bytes(b"\0\1\2")
    said(here, ["clusters", "mixed", "--text-field", "content", "--write", "out.jsonl"], code=0)
    assert 0 < len(Path("out.jsonl").read_text().splitlines()) < 4
    said(here, ["clusters", "--write", "again.jsonl"], code=0)
    assert Path("again.jsonl").read_bytes() == Path("out.jsonl").read_bytes()


def test_a_file_of_no_rows_can_still_be_written(here):
    Path("none.jsonl").write_text("")
    documents = find_documents(Run.quiet(), [b"none.jsonl"], DocumentParams())
    assert [
        str(target) for target in check_target(documents, Path("out.jsonl"), read=False)[1]
    ] == ["out.jsonl"]


# --- help -----------------------------------------------------------------------------------------


def test_help_is_grouped_and_fits(here):
    commands = [name for name in COMMANDS if name != "spark"] + ["spark pairs", "spark clusters"]
    lines = [([*command.split(), "--help"], 80) for command in commands]
    pages = {
        command: out.decode()
        for command, (_, out, _) in zip(commands, run_many(lines, here), strict=True)
    }
    for command, page in pages.items():
        text = page.partition("Examples:")[0]
        assert max(map(len, text.splitlines())) <= 80, command
        titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.M)
        assert titles == [title for title in GROUPS if title in titles], command
        assert {"Options", "Output", "Running"} <= {*titles} or command.split()[0] in (
            "index",
            "signatures",
            "shingle",
            "spark",
        ), command
        assert len(page.splitlines()) <= 190, command
        assert not re.search(r"\(tables? \d|\bR[1-5]\b|lecture|class experiment", text), command
    assert re.search(r"^Options:\n  -t, --threshold T ", pages["pairs"], re.M)
    top = run_many([(["--help"], 80)], here)[0][1].decode()
    assert not re.search(r"\(tables?|\(R[1-5]", top)


# --- what is continued, and what is replaced ------------------------------------------------------


def outputs(here, *commands):
    """What each command line prints, and says."""
    results = run_many([([*command], None) for command in commands], here)
    assert [code for code, _, _ in results] == [0] * len(commands), results
    return [out.decode() for _, out, _ in results], [err.decode() for _, _, err in results]


def test_clusters_are_as_they_are_asked_for(here):
    """Without DOCS the rule is what was typed, or the default, whatever was asked before."""
    for number in range(3):
        os.utime(f"docs/{number}.txt", (10**9 - number,) * 2)  # the last one is the oldest
    Path("docs/0.txt").write_text(f"{TEXT} 0 and more")
    os.utime("docs/0.txt", (10**9,) * 2)
    usual = ["clusters", "--emit", "drop"]
    asked = ["clusters", "docs", "-t", "0.6", "--keep", "oldest", "--emit", "drop"]
    older = [*usual, "-t", "0.6", "--keep", "oldest"]
    middle = [*usual, "-t", "0.6", "--prefer", "*1.txt"]
    listed, err = outputs(
        here, asked, usual, older, usual, middle, [*middle, "--exact"], ["index", "-t", "0.5"],
        usual, older,
    )  # fmt: skip
    assert listed[0] == listed[2] == listed[8] == "docs/0.txt\ndocs/1.txt\n"
    assert listed[1] == listed[3] == listed[7] == "docs/2.txt\n"
    assert listed[4] == listed[5] == "docs/0.txt\ndocs/2.txt\n"
    assert "kept: the oldest\n" in err[2]
    assert "of similarity 0.8 or more" in err[1]


def test_what_is_continued_is_said(here):
    Path("new").mkdir()
    Path("new/a.txt").write_text(TEXT)
    rows = "rows.jsonl --text-field content"
    runs = {
        "pairs docs -v": "",
        "pairs new": "",
        "pairs docs": "3 documents in docs; 0 documents read, 3 unchanged",
        "pairs -v": "the last run: 3 documents in docs (--tokens word -k 3) -> ",
        "pairs new --no-store": "",
        "pairs new --store elsewhere": "",
        "pairs new --exact": "",  # keeps nothing
        "pairs docs new": "",  # more documents
        f"pairs ./docs/ new {rows}": "",
        f"pairs docs --exclude 1.txt new {rows}": "",  # the same DOCS
        # All of them, named otherwise.
        f"pairs {here} -k 2": "the store was made with --tokens word -k 3; it is rebuilt\n",
        "pairs docs --seed 3 --keep-case": "",
        "clusters": "the last run: 3 documents in docs (--tokens word -k 3 --keep-case --seed 3)",
        "clusters docs/0.txt docs/1.txt --keep-case --seed 3": "0 documents read, 2 unchanged",
        "query docs/0.txt": "lshdup: the last run: 2 documents in docs/0.txt, docs/1.txt",
    }
    listed = run_many([(each.split(), None) for each in runs], here)
    for (code, _, err), (typed, expected) in zip(listed, runs.items(), strict=True):
        err = err.decode()
        assert code == 0, (typed, err)
        assert expected in err, typed
        assert expected or "the last run" not in err, typed
        assert ("it is rebuilt" in err) == (" -k 2" in typed or "docs --seed" in typed)


def test_a_pipe_that_is_not_read(here):
    outputs(here, ["index", "docs"])
    command = [sys.executable, "-m", "lshdup", "pairs"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for options, data, expected in (
        ([], b"docs/0.txt\n", True),
        ([], b"", False),
        (["-q"], b"x", False),
        (["--files-from", "-"], b"docs", False),
    ):
        process = subprocess.run(
            [*command, *options], input=data, capture_output=True, env=environment, check=True
        )
        assert (
            b"standard input is not read; --files-from - reads names of documents from it"
            in process.stderr
        ) == expected, options


def test_a_page_that_is_named_as_a_document(here):
    Path("there.html").write_text(TEXT)
    alone, beside, there = said(
        here, ["report", "page.html"], ["report", "docs", "my page.html"], ["report", "there.html"]
    )
    hint = "if the page is to be written there: `lshdup report"
    assert alone == error(
        "'page.html' is named as a document, and is not there", f"{hint} -o page.html`"
    )
    assert beside == error(
        "'my page.html' is named as a document, and is not there", f"{hint} docs -o 'my page.html'`"
    )
    assert there == error("'there.html' is named as a document", f"{hint} -o there.html`")
    assert not os.path.lexists(".lshdup")
    outputs(
        here, ["report", "docs", "there.html"], ["report", "docs", "there.html", "-o", "page.html"]
    )


# --- patterns -------------------------------------------------------------------------------------


def test_patterns_of_folders(here):
    for name in ("a/old/x", "a/old/deep/y", "a/older", "b/old", "c.txt"):
        Path("t", name).parent.mkdir(parents=True, exist_ok=True)
        Path("t", name).write_text(TEXT)

    def found(*arguments, **patterns):
        warnings = []
        documents = find_documents(
            replace(Run.quiet(), warn=warnings.append),
            arguments or [b"t"],
            DocumentParams(**patterns),
        )
        return [name.decode().removeprefix("t/") for name in documents.names], warnings

    everything = ["a/old/deep/y", "a/old/x", "a/older", "b/old", "c.txt"]
    for pattern in ("old/", "./t/a/old", "t/a/old/", "/t/a/old", "*/a/old", "**/a/old/**"):
        assert found(exclude=(pattern,)) == (["a/older", "b/old", "c.txt"], []), pattern
    assert found(exclude=("old",)) == (["a/older", "c.txt"], [])
    assert found(exclude=("t",)) == found(exclude=("t/**",)) == ([], [])
    assert found(exclude=("t/*/*", "!older")) == (["a/older", "c.txt"], [])
    assert found(exclude=("t/**", "!c.txt")) == (["c.txt"], [])
    assert found(exclude=("t/", "!c.txt"))[0] == []  # an excluded folder is not looked into
    for top in (os.path.abspath("t"), "../" + here.name + "/t"):  # also a name from elsewhere
        names, warned = found(os.fsencode(top), exclude=("t/a", here.name))
        assert [os.path.relpath(name, top) for name in names] == ["b/old", "c.txt"]
        assert warned == [f"--exclude {here.name} matches nothing that was met"]
    os.chdir("t/b")
    assert found(b"../a", exclude=("/old", "a")) == (
        ["../a/older"],
        ["--exclude a matches nothing that was met"],
    )
    os.chdir(here)
    assert found(include=("old",)) == (["a/old/deep/y", "a/old/x", "b/old"], [])
    assert found(include=("./t/a/",), exclude=("deep",)) == (["a/old/x", "a/older"], [])
    for pattern in ("*l?/", "t/**/x"):
        assert found(include=(pattern, "y")) == (["a/old/deep/y", "a/old/x"], [])
    assert found(include=("*ld", "!x")) == (["a/old/deep/y", "b/old"], [])
    assert found(exclude=("odl", "*.md", ".git")) == (
        everything,
        [
            "--exclude odl matches nothing that was met; did you mean old?",
            "--exclude *.md matches nothing that was met",
            "--exclude .git matches nothing that was met",
        ],
    )
    Path("t/.git").mkdir()
    assert found(include=("*",), exclude=(".git", "*ld", "old")) == (["a/older", "c.txt"], [])
    assert found(include=("t/a/odl", "c.txt"))[1] == [
        "--include t/a/odl matches nothing that was met; did you mean t/a/old?"
    ]
    Path("t/#new\nest#").write_text(TEXT)
    assert found(include=("#*est#",)) == (["#new\nest#"], [])
    with pytest.raises(ParameterError, match="--exclude: invalid git pattern: '!'"):
        found(exclude=("old", "!"))


def test_a_file_that_is_named_itself_is_taken_whatever_the_patterns_say(here):
    Path("docs/sub").mkdir()
    Path("docs/sub/9.txt").write_text(TEXT)
    for named in ([b"docs", b"docs/sub/9.txt"], [b"docs/sub/9.txt", b"docs"]):
        skipped = []
        params = DocumentParams(include=("docs/0.txt",), exclude=("sub",))
        documents = find_documents(replace(Run.quiet(), skipped=skipped.append), named, params)
        assert list(documents.names) == [b"docs/0.txt", b"docs/sub/9.txt"]
        assert b"docs/sub/9.txt" not in {each.name for each in skipped}


def test_patterns_that_match_nothing_are_warned_of(here):
    pairs, clusters = said(
        here,
        ["pairs", "docs", "-q", "--exclude", "dosc/0.txt"],
        ["clusters", "docs", "-q", "--prefer", "dosc"],
        code=0,
    )
    assert (
        "lshdup: warning: --exclude dosc/0.txt matches nothing that was met; did you mean "
        "docs/0.txt?" in pairs
    )
    assert "lshdup: warning: --prefer dosc matches no document; did you mean docs?" in clusters


# --- names of documents ---------------------------------------------------------------------------


def test_which_document_is_meant(here):
    for name in ("git-am.txt", "x-git-am.txt", "git-bisect.txt", "install-empty"):
        Path("docs", name).write_text(TEXT)
    outputs(here, ["index", "docs"])
    Path("git-bisect.txt").write_text(TEXT)
    _, (end, part, full, local, show, quiet) = outputs(
        here, ["query", "git-am.txt"], ["query", "bisect.txt", "--top", "1"], ["query",
        "./docs/0.txt"], ["query", "git-bisect.txt"],
        ["show", "git-am.txt", "git-bisect.txt"], ["query", "git-am.txt", "-q"],
    )  # fmt: skip
    assert "lshdup: git-am.txt: docs/git-am.txt, of the store\n" in end
    assert "lshdup: bisect.txt: docs/git-bisect.txt, of the store\n" in part
    assert "of the store" not in full + quiet
    file = "lshdup: git-bisect.txt: the file of that name, not docs/git-bisect.txt of the store\n"
    assert file in local
    assert file in show
    assert "git-am.txt: docs/git-am.txt, of the store\n" in show
    folder, misspelt, other, far = (each.split("or: ", 1)[1] for each in said(
        here, ["query", "empty"], ["query", "git-bisct.txt"], ["query", "doc/GIT-AM"], ["query",
        "zzzzz.txt"],
    ))  # fmt: skip
    assert folder.startswith("empty is a folder\n")
    assert "  did you mean git-bisect.txt?\n" in misspelt
    assert "  did you mean git-am.txt?\n" in other
    assert "did you mean" not in far


# --- one style, and where a value came from -------------------------------------------------------


def test_what_click_says_is_said_as_all_else(here):
    commands = [
        ["show"],
        ["pairs", "--format", "xml"],
        ["show", "a", "b", "c"],
        ["pairs", "-k", "0"],
        ["accuracy", "--perms", "150,many"],
        ["accuracy", "--epsilon", "0.04,few"],
        ["pairs", "--store"],
    ]
    missing, choice, extra, small, numbers, shares, value = said(here, *commands)
    formats = "'table', 'tsv', 'csv', 'json', 'jsonl', 'github', 'sarif'"
    assert missing == error("missing argument 'A'", "run `lshdup show --help`")
    assert choice == error(
        f"invalid value for '--format': 'xml' is not one of {formats}", "run `lshdup pairs --help`"
    )
    assert value.startswith("lshdup: error: option '--store' requires an argument\n  run `lshdup ")
    assert "'150,many' is not a list of ints separated by commas" in numbers
    assert "'0.04,few' is not a list of floats separated by commas" in shares
    for err in (extra, small, numbers, shares):
        assert re.fullmatch(r"lshdup: error: [^\n]+[^.\n]\n  run `lshdup \w+ --help`\n", err), err
    (nothing,) = said(here, [])
    assert nothing.startswith("Usage: ")
    assert "error" not in nothing.partition("Exit codes")[0]


def test_help_before_a_command_is_that_of_the_command(here):
    lines = (
        ["-h", "pairs"], ["pairs", "-h"], ["--help", "pairs", "docs"], ["pairs", "--help"],
        ["help", "pairs"], ["-h"], ["help"],
    )  # fmt: skip
    before, after, *words, of_all, word = (
        out for _, out, _ in run_many([(each, None) for each in lines], here)
    )
    assert before == after
    assert words[0] == words[1] == words[2]
    assert of_all == word
    assert len({before, words[0], word}) == 3
    assert before.startswith(b"Usage: lshdup pairs [OPTIONS]")
    assert words[0].startswith(b"Usage: lshdup pairs [OPTIONS]")


def test_a_variable_is_named_where_the_value_is_from_there(here):
    by_variable = {
        "LSHDUP_FORMAT": ("xml", "invalid value for LSHDUP_FORMAT: 'xml' is not one of"),
        "LSHDUP_THRESHOLD": ("9", "LSHDUP_THRESHOLD is 9; it must be above 0 and at most 1"),
        "LSHDUP_PERMS": ("0", "LSHDUP_PERMS is 0; it must be from 1 to 65536"),
        "LSHDUP_SEED": ("x", "invalid value for LSHDUP_SEED: 'x' is not a valid integer"),
    }
    for name, (value, expected) in by_variable.items():
        command = "pairs" if name == "LSHDUP_FORMAT" else "index"
        (err,) = said(here, [command, "docs"], env={name: value})
        assert err.startswith(f"lshdup: error: {expected}")
        option = f"--{name.removeprefix('LSHDUP_').lower()}"
        (err,) = said(here, [command, "docs", option, value], env={name: value})
        assert option in err
        assert name not in err


def test_hints_that_help(here):
    elsewhere, (begun, of_json) = (
        said(here, ["pairs", "--store", "nostore"])[0],
        said(here, ["index", "docs"], ["pairs", "--store", "."], code=None),
    )
    assert elsewhere == error(
        "there is no signatures.npz in nostore",
        "run `lshdup pairs DOCS --store nostore` (files or folders); "
        "a store elsewhere is named by --store DIR",
    )
    assert begun
    assert "is looked for in " not in of_json


# --- what a file is to hold -----------------------------------------------------------------------


def test_the_ending_of_a_file_names_its_format(here):
    endings = {
        ".csv": b"a,b,similarity,same\n",
        ".tsv": b"docs/0.txt\tdocs",
        ".json": b"[\n {",
        ".ndjson": b'{"a": ',
        ".jsonl": b'{"a": ',
        ".txt": b"docs/0.txt\t",
    }
    pairs = ["pairs", "docs", "-t", "0.5", "-q"]
    typed = ["pairs", "docs", "-t", "0.5", "-q", "-o", "typed.csv", "--format", "json"]
    said(here, *([*pairs, "-o", f"p{ending}"] for ending in endings), typed, code=0)
    for ending, begins in endings.items():
        assert Path(f"p{ending}").read_bytes().startswith(begins), ending
    assert json.loads(Path("typed.csv").read_text())
    said(
        here,
        [*pairs, "-o", "more.csv"],
        [*pairs, "-o", "more"],
        env={"LSHDUP_FORMAT": "json"},
        code=0,
    )
    assert Path("more.csv").read_bytes() == Path("p.csv").read_bytes()
    assert Path("more").read_bytes() == Path("p.json").read_bytes()
    parquet, excel, html, packed, nul, listed = said(
        here,
        [*pairs, "-o", "p.parquet"],
        [*pairs, "-o", "p.XLSX"],
        [*pairs, "-o", "p.html"],
        [*pairs, "-o", "p.tsv.gz"],
        [*pairs, "-0", "-o", "q.csv"],
        ["report", "docs", "--no-store", "-o", "r.csv"],
    )
    names = (
        "name a file that ends with .tsv, .csv, .json, .jsonl, .ndjson, or say with "
        "--format what it is to hold"
    )
    spark = "; `lshdup spark` writes Parquet"
    assert parquet == error("-o p.parquet: .parquet is not written here", names + spark)
    assert excel == error("-o p.XLSX: .xlsx is not written here", names)
    page = "; `lshdup report` makes a page"
    assert html == error("-o p.html: .html is not written here", names + page)
    assert packed == error("-o p.tsv.gz: .gz is not written here", names)
    assert listed == error(
        "-o r.csv: .csv is not written here", "name a file that ends with .html, .htm"
    )
    assert nul == error(
        "-0 and -o q.csv exclude each other, as the file is to be csv",
        "leave -0 out, or say --format tsv",
    )
    assert not {path.suffix for path in here.glob("[pq].*")} - endings.keys()


# --- rows -----------------------------------------------------------------------------------------


def test_rows_of_one_cause_are_one_line(here):
    bad = [
        '{"text": "one',
        *(json.dumps({"body": f"{TEXT} {number}"}) for number in range(12)),
        "[]",
    ]
    good = [json.dumps({"text": f"{TEXT} {number}"}) for number in range(2)]
    Path("mixed.jsonl").write_text("\n".join([*good, *bad]))
    one, each = said(
        here,
        ["pairs", "mixed.jsonl", "-t", "0.5"],
        ["pairs", "mixed.jsonl", "-t", "0.5", "-v", "--no-store"],
        code=None,
    )
    no_field = "row without text (no field 'text', but body; --text-field names another)"
    named = [line for line in one.splitlines() if "mixed.jsonl:" in line]
    assert named == [
        "lshdup: mixed.jsonl:3: row that is no JSON object (Unterminated string starting "
        "at character 10)",
        f"lshdup: mixed.jsonl:4: {no_field}; 11 more rows of this file likewise",
        "lshdup: mixed.jsonl:16: row that is no JSON object (it is a list)",
    ]
    numbers = [int(found) for found in re.findall(r"mixed\.jsonl:(\d+):", each)]
    assert numbers == list(range(3, 17))
    assert "skipped: 2 rows that are no JSON objects, 12 rows without text" in one


def test_more_rows_than_are_named_are_rows(capsys):
    with Console() as console:
        for number in range(12):
            console.report_skipped(
                Skipped(b"r.jsonl:%d" % number, Reason.NOT_JSON, f"at character {number}")
            )
    assert capsys.readouterr().err.count("more rows could not be used; -v names them all") == 1


# --- counts, interrupts, terminals ----------------------------------------------------------------


def test_copies_are_said_to_be_compared_once(here):
    Path("docs/again.txt").write_text(f"{TEXT} 1")
    apart, joined = said(
        here,
        ["pairs", "docs", "-v", "-t", "0.99"],
        ["pairs", "docs", "-v", "-t", "0.99", "--exact"],
        code=None,
    )
    assert re.search(
        r"copies compared once: \d+ candidate pairs? -> 0 pairs; with all copies 1 pair "
        r"of similarity 0\.99 or more",
        apart,
    )
    assert (
        "copies compared once: 0 pairs; with all copies 1 pair of similarity 0.99 or "
        "more, none missed" in joined
    )


def test_each_side_says_what_it_left_out(here):
    for name in ("docs/a.bin", "empty/a.bin", "empty/b.bin"):
        Path(name).write_bytes(b"\0")
    Path("empty/text").write_text(f"{TEXT} 5")
    (err,) = said(here, ["pairs", "docs", "--against", "empty"], code=0)
    assert re.search(
        r"skipped of DOCS: 1 binary\n.*against 1 document of OTHER\nlshdup: skipped of "
        r"OTHER: 2 binary\n",
        err,
        re.S,
    )


def test_a_chance_below_a_bound_looks_so():
    assert chance(0.98999, below=0.99) == "98.999 %"
    assert chance(0.9, below=0.99) == "90 %"


def test_what_an_interrupt_leaves_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_kept", set())
    assert describe_kept() == "nothing of this run was kept"
    with replace_file(tmp_path / "a") as file:
        file.write(b"x")
        assert describe_kept() == "nothing of this run was kept"
    assert describe_kept() == "what was finished is kept, whole"
    note_kept(JOURNAL)
    assert "the same command goes on from there" in describe_kept()
    note_kept(JOURNAL, kept=False)
    assert "journal" not in describe_kept()


def test_when_there_are_colours(monkeypatch):
    for variables, expected in (
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ):
        for name in ("NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert use_color(None, is_terminal=True) == expected
        assert not use_color(None, is_terminal=False)
        assert use_color(True, is_terminal=False)
        assert not use_color(False, is_terminal=True)


def test_lines_are_folded_between_words_on_a_terminal(monkeypatch):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 50, 0, 0))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        with Console(progress=False) as console:
            console.error(
                LshdupError(
                    "a message of many words that has no room in one line",
                    f"see {'a' * 60} there",
                    ("one/name.txt", "another"),
                )
            )
            console.say("漢字 " * 20)
            console.say("end")
        read = b""
        while not read.endswith(
            b"end\r\n"
        ):  # a terminal gives what it has, not all that was written
            read += os.read(ours, 1 << 16)
        written = read.decode().replace("\r\n", "\n")
    os.close(ours)
    assert written.startswith(
        "lshdup: \x1b[31merror\x1b[0m: a message of many words that has no\n  room in one "
        "line\n  one/name.txt\n  another\n"
        f"  see\n    {'a' * 60}\n    there\n"
    )
    wide = written.splitlines()[7:-1]
    assert len(wide) == 3
    assert all(len(line.encode("gb18030")) <= 50 for line in wide)
    assert "漢字漢" not in written


def test_an_ambiguous_name_has_its_meanings_below_one_another(here):
    Path("docs/deep").mkdir()
    Path("docs/deep/0.txt").write_text(TEXT)
    said(here, ["index", "docs"], code=0)
    (err,) = said(here, ["query", "0.txt", "-q"])
    assert err == error(
        "0.txt is the end of 2 names:", "docs/0.txt", "docs/deep/0.txt", "give more of the name"
    )


# --- messages that say what is so -----------------------------------------------------------------


def test_what_is_no_row_says_why(here):
    Path("cr.csv").write_text("text,id\rone two three,1\r")
    Path("wide.csv").write_text(",".join(f"column{number}" for number in range(300_000)) + "\n1\n")
    mac, wide = said(here, ["pairs", "cr.csv"], ["pairs", "wide.csv"])
    assert "a carriage return ends its lines; `tr '\\r' '\\n'` converts it" in mac
    assert "the names of its columns take more than 1,048,576 bytes" in wide
    for each in (mac, wide):
        assert "newline" not in each
        assert "no row with" not in each


def test_archives_that_are_not_opened_are_said_to_be(here):
    import tarfile
    import zipfile

    with zipfile.ZipFile("docs/a.zip", "w") as archive:
        archive.writestr("x", TEXT)
    with tarfile.open("docs/b.tar", "w") as archive:
        archive.add("docs/0.txt")
    (err,) = said(here, ["pairs", "docs", "-v", "--no-store"], code=0)
    for name in ("a.zip", "b.tar"):
        closed = "format not supported (an archive; --archives takes the documents in it)"
        assert f"docs/{name}: {closed}" in err
    assert "unknown kind" not in err
    assert "binary" not in err
    named = said(here, *(["show", f"docs/{name}", "docs/0.txt"] for name in ("a.zip", "b.tar")))
    for name, err in zip(("a.zip", "b.tar"), named, strict=True):
        assert err == error(
            f"docs/{name} is an archive",
            "name a document in it, once `lshdup index DOCS --archives` has seen it",
        )


def test_names_that_are_not_utf8_are_shown_as_bytes(here):
    expected = {
        (b"pairs", b"docs/\xff"): "'docs/\\xff': No such file or directory",
        (b"\xff",): "'\\xff' is no command",
        (b"pairs", b"docs", b"--store", b"/dev/null/\xff"): "the store /dev/null/\\xff cannot be",
        (b"pairs", b"docs", b"-t", b"\xff"): "--threshold is '\\xff', which is no number",
        (b"pairs", b"docs", b"--tokens", b"\xff"): "'\\xff' is not one of 'word'",
        (b"pairs", b"docs", b"--split", b"(\xff"): "'(\\xff' is no regular expression",
        (b"pairs", b"docs", b"--encoding", b"\xff"): "--encoding is '\\xff', which Python",
        (b"pairs", b"rows.jsonl", b"--text-field", b"\xff"): "no field '\\xff', but content",
    }
    for err, (words, what) in zip(said(here, *expected), expected.items(), strict=True):
        assert what in err, (words, err)
        assert "udcff" not in err


def test_numbers_are_shown_as_they_are(here):
    (err,) = said(here, ["pairs", "docs", "-t", "1.0000001"])
    assert err.startswith("lshdup: error: --threshold is 1.0000001; it must be ")


def test_a_field_has_no_effect_on_one_side(here):
    words = "pairs docs --against rows.jsonl --text-field content --no-store -t 0.5"
    (err,) = said(here, words.split(), code=0)
    assert "lshdup: --text-field has no effect on docs: no JSON Lines, CSV or Parquet file" in err
    assert "had no effect" not in err


def test_a_library_that_is_missing_is_said_to_be(here, monkeypatch):
    from lshdup.sources import parquet

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="need pyarrow"):
        parquet._import_pyarrow()


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("pyarrow", "pairs rows.parquet docs"),
        ("matplotlib", "curve --bands 5 --rows 4 --plot x.svg"),
        ("llvmlite", "pairs docs"),
    ],
)
def test_a_library_that_is_there_and_does_not_load_is_not_to_be_installed(here, package, command):
    """What is missing is another one, of the system."""
    Path("broken", package).mkdir(parents=True)
    words = "raise ImportError('libx.so: cannot be mapped', name=__name__)"
    Path("broken", package, "__init__.py").write_text(words)
    Path("rows.parquet").write_bytes(b"PAR1" * 4)
    path = {"PYTHONPATH": f"{Path('broken').resolve()}:{ROOT}", "XDG_CACHE_HOME": "empty"}
    done = run_program(command.split(), cwd=here, env=path)
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert package in said
    assert "does not load: libx.so" in said
    assert "pip install" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (MemoryError("9 GB"), "not enough memory: 9 GB", "use fewer --perms, or fewer documents"),
        (BlockingIOError(), "no further thread or process can be started here", "raise the limit"),
        (RuntimeError("can't start new thread"), "no further thread or process", "raise the limit"),
        (OSError(28, "No space left on device", "f"), "No space left on device: f", ""),
        (OSError(5, "Input/output error"), "Input/output error", ""),
        (
            ModuleNotFoundError("no numba", name="numba"),
            "no numba",
            "pip install 'lshdup[kernels]'",
        ),
        (
            ModuleNotFoundError(name="llvmlite"),
            "llvmlite, which compiles ke",
            "pip install llvmlite",
        ),
        (
            ImportError("libx.so", name="a.b"),
            "a is installed and does not load: libx.so",
            "install",
        ),
        (ImportError("libx.so"), "a package is installed and does not load", "install it again"),
    ],
)
def test_errors_that_are_no_defects(capsys, error, message, hint):
    told = main._explain(error)
    assert told.message.startswith(message)
    assert told.hint.startswith(hint)
    assert bool(told.hint) == bool(hint)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("no module", name="other"),
        ImportError("no such name", name="lshdup.cli"),
        RuntimeError("another one"),
    ],
)
def test_defects_show_where_they_are(capsys, error):
    try:
        raise error
    except Exception as raised:
        told = main._explain(raised)
    assert told.message == "this is a defect of lshdup"
    assert "Traceback" in capsys.readouterr().err


def test_a_reason_is_said_once():
    from lshdup.text.office_worker import _detail

    assert _detail(ValueError("PDF is locked: PDF is locked")) == b"PDF is locked"
    assert _detail(ValueError("PDF is locked: page 1")) == b"PDF is locked: page 1"


def test_a_file_that_cannot_be_read_is_not_damaged():
    from lshdup.store import npz

    with open("/proc/self/mem", "rb") as file, pytest.raises(OSError, match="Input/output"):
        npz.read(file, Path("x.npz"), "bands", "")


def test_a_baseline_of_brackets_is_no_baseline(here):
    deep = "[" * 100_000
    Path("deep").write_text(deep)
    Path("head").write_text(f"# lshdup baseline 1 {deep}\n")
    run_many([(["pairs", "docs", "-t", "0.5", "--baseline", "B", "--update-baseline"], None)], here)
    Path("B").write_text(f'{Path("B").read_text()}"{deep}\tb\t0\t0\n')
    deep, head, line = said(
        here,
        *(["pairs", "docs", "-t", "0.5", "--baseline", name] for name in ("deep", "head", "B")),
    )
    assert "is no baseline of this version" in deep
    assert "is no baseline of this version" in head
    assert "is damaged: line" in line


def test_what_the_system_refuses_is_named(here):
    """A limit of a file's size, a full disk, a folder that is gone."""
    program = [sys.executable, "-m", "lshdup", "pairs", str(here / "docs"), "-t", "0.5", "-q"]
    program += ["--no-store"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    cases = {
        'ulimit -f 0; exec "$@" -o big': "File too large: big",
        'ulimit -f 0; exec "$@" > big': "File too large: standard output",
        'exec "$@" > /dev/full': "No space left on device: standard output",
        'exec "$@" -o /dev/full': "No space left on device: /dev/full",
        'mkdir gone; cd gone; rmdir ../gone; exec "$@"': "the current folder is gone",
    }
    for shell, line in cases.items():
        done = subprocess.run(
            ["bash", "-c", shell, "bash", *program], cwd=here, env=environment, capture_output=True
        )
        assert done.returncode == 2, shell
        assert done.stderr.decode().startswith(f"lshdup: error: {line}\n"), shell


def test_what_is_refused_before_and_after_the_work(here):
    Path("one").write_text(TEXT)
    run_many([(["index", "docs", "--store", "plain", "-q"], None)], here)
    run_many([(["index", "docs", "--template", "one", "--store", "less", "-q"], None)], here)
    expected = {
        "pairs docs --split [": "'[' is no regular expression: unterminated character set",
        "timing one": "fewer than two documents with tokens: there is no pair to measure",
        "pairs docs --baseline one/b": "--baseline one/b cannot be read: Not a directory",
        "pairs docs --baseline gone/b --update-baseline": "gone/b cannot be written",
        "pairs docs --template one --against plain": "not the same shingles were removed",
        "passages docs --against begun": "the store begun holds no documents",
    }
    Path("begun").mkdir()
    Path("begun/.gitignore").write_text("# Made by lshdup.\n*\n")
    for command, what in expected.items():
        (told,) = said(here, [*command.split(), "--no-store"])
        assert what in told, (command, told)


def test_a_page_says_what_was_removed_and_of_which_documents(here):
    Path("one").write_text(TEXT)
    names = [*(f"docs/{number}.txt" for number in range(3)), "one"]
    run_many([(["report", *names, "--template", "one", "-o", "x.html", "-q"], None)], here)
    page = Path("x.html").read_text()
    assert "docs/0.txt, docs/1.txt, docs/2.txt and 1 more" in page
    assert "removed from every set" in page


def test_a_page_is_not_for_a_terminal(here):
    code, out, err = in_terminal(["report", "docs", "-o", "-"], cwd=here)
    assert (code, out) == (2, b"")
    assert err == error(
        "the page is not for a terminal", "name a file with -o, for instance -o report.html"
    )


def test_what_a_filter_leaves():
    assert messages.describe_rest(1) == "only common shingles"
    assert messages.describe_rest(2) == "fewer than 2 shingles left"
