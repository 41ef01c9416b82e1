"""Every option of every command changes what the command answers: no option does nothing."""

import importlib.util
import os
import re
import shutil
import tempfile
import zipfile
from functools import cache

import click
import numpy as np
import pytest

from lshdup.cli import console
from lshdup.cli.commands import COMMANDS
from lshdup.cli.main import load_command, main
from tests import office
from tests.conftest import WHOLE, write_files
from tests.running import run_program, shell

#: What is typed after a command: its arguments, and options that keep it small.
ARGUMENTS = {
    "query": "d/a.txt --store kept", "show": "d/a.txt d/b.txt", "passages": "d --least 5",
    "accuracy": "d --runs 1 --perms 8", "timing": "d --runs 1 --perms 8",
    "accept": "d/a.txt d/b.txt --store kept --accepted new", "curve": "",
}  # fmt: skip

#: An option, or a command and its option: what is typed to show it. The part before " + " is typed
#: in both runs, instead of ARGUMENTS, for which ... stands. What only stderr shows, or what ends
#: in an error, has "2> " in front.
_FLAGS = """
--gitignore --hidden --follow --archives --bag --keep-case --no-normalize --join-hyphens --mail
--mail-headers --exact --collapse-copies --histogram --check --no-store --header -h --side-by-side
--lines --shingles --shared --passages-of-corpus --all
""".split()
SHOWN = {flag: flag for flag in _FLAGS}
SHOWN |= {
    f"{name} --color": "2> empty + --color"
    for name in ("passages", "report", "shingle", "signatures", "index")
}
SHOWN |= {f"{name} --no-store": "2> --no-store" for name in ("shingle", "signatures", "index")}
SHOWN |= {
    f"{name} {option}": line
    for name in ("accuracy", "timing")
    for option, line in {
        "--id-field": "2> rows.jsonl + --id-field nosuch",
        "--store": "--runs 1 --perms 8 + --store old",
        "--no-store": "2> --runs 1 --perms 8 --store old + --no-store",
    }.items()
}
#: The others; a line each: the option, or the command and the option, and how it is shown.
_SHOWN = """
--files-from | --files-from list
--include | --include *.txt
--exclude | --exclude b.*
--format-seconds | 2> d office + --format-seconds 1e-9
--min-tokens | --min-tokens 50
--max-bytes | --max-bytes 300
--min-bytes | d --same bytes + --min-bytes 100KB
--text-field | --text-field body
--id-field | rows.jsonl + --id-field name
--split | --split ^Chapter
--check-content | ... --store old + --check-content
passages --check-content | d --least 5 --store kept + --check-content
--tokens | --tokens char
--noisy | --noisy
passages --noisy | d --least 5 + --noisy
--shingle-size | -k 2
--encoding | --encoding cp437
--markup | --markup keep
--mail-quotes | --mail-quotes drop
--hash | ... --tokens char + --hash poly31
--template | --template template.txt
--ignore-common | --ignore-common 3
--scheme | --scheme classic
--perms | --perms 16
--seed | --seed 2
--threshold | -t 0.3
--recall | --recall 0.1
--bands | --bands 2
--rows | --rows 20
--buckets | --buckets 1
--measure | --measure containment
--max-bucket | --max-bucket 1
--same | --same text
--against | --against other
--across | --across ^d
--unmatched | d --against other + --unmatched
--plot | --plot plot.svg
pairs --plot | ... --histogram + --plot plot.svg
--baseline | --baseline known
--update-baseline | d --baseline none + --update-baseline
--changed-since | --changed-since HEAD
--accepted | bare + --accepted seen/lshdup-accepted.jsonl
--show-accepted | seen --no-store + --show-accepted
accept --accepted | ... + --accepted newer
--note | ... + --note why
--from | 2> --store kept --accepted new + --from list
accept --store | d/once.txt d/b.txt --accepted new + --store old
accept --hash-key | d/a.txt d/b.txt --store there --accepted new + --hash-key 0123456789abcdef
accept --quiet | 2> ... + -q
accept --color | 2> d/a.txt --store kept + --color
query --accepted | bare/x/a.txt --store bare-store + --accepted seen/lshdup-accepted.jsonl
query --show-accepted | seen/x/a.txt --store seen-store + --show-accepted
--store | --store there
--hash-key | --hash-key 0123456789abcdef
--verbose | 2> -v
--quiet | 2> -q
--color | ... --format table + --color
--format | --format json
--max-rows | ... --format table + --max-rows 1
--null | -0
--output | -o out.tsv
--linkage | --linkage single
--keep | --keep longest
--prefer | --prefer page.html
show --threshold | d/a.txt --store kept + -t 0.3
show --keep | d/a.txt --store kept + --keep longest
show --prefer | d/a.txt --store kept + --prefer page.html
show --bag | d/a.txt d/c.txt + --bag
show --keep-case | d/a.txt d/sub/capitals.txt + --keep-case
show --no-normalize | d/a.txt d/sub/wide.txt + --no-normalize
--fold | --fold accents
show --fold | d/a.txt d/sub/broken.txt + --fold accents
show --join-hyphens | d/a.txt d/sub/broken.txt + --join-hyphens
show --mail | d/a.txt d/post.txt + --mail
show --markup | d/a.txt d/page.html + --markup keep
show --mail-headers | d/1.eml d/2.eml + --mail-headers
show --mail-quotes | d/1.eml d/2.eml + --mail-quotes drop
show --hash | ... --tokens char --shingles + --hash poly31
show --hash-key | ... --shingles + --hash-key 0123456789abcdef
show --ignore-common | ... --store kept + --ignore-common 3
show --store | b.txt page.html + --store kept
show --quiet | 2> ... --store kept + -q
show --no-store | 2> ... --store kept + --no-store
show --max-rows | ... --shingles --format table + --max-rows 1
show --header | ... --shingles + --header
query --store | 2> ... + --store there
query --hash-key | 2> --hash-key 0123456789abcdef
query --buckets | ... --rows 30 --bands 2 + --buckets 1
shingle --template | --show d/a.txt + --template template.txt
shingle --ignore-common | --store old --show d/a.txt + --ignore-common 3
shingle --format | --show d/a.txt + --format json
shingle --header | --show d/a.txt + --header
shingle --max-rows | --show d/a.txt --format table + --max-rows 1
shingle --null | --show d/a.txt + -0
shingle --output | --show d/a.txt + -o out.tsv
report --output | -o out.html
passages --min-tokens | 2> --min-tokens 50
passages --emit | --emit template
passages --threshold | ... --emit pairs + -t 0.9
query --by | ... + --by passages
query --least | ... --by passages + --least 42
query --gap | d/b.txt --store kept --by passages --least 20 + --gap 2
passages --keep | ... --emit spans + --keep longest
passages --prefer | ... --emit spans + --prefer page.html
--emit | --emit drop
clusters --write | rows.jsonl + --write out.jsonl
--annotate | rows.jsonl + --annotate out.jsonl
--keep-by | rows.jsonl + --keep-by name
passages --write | rows.jsonl + --write out.jsonl
pairs --write | rows.jsonl --against other --measure containment + --write out.jsonl
pairs --removed | rows.jsonl --against other --measure containment --write o.jsonl + --removed gone
--removed | rows.jsonl --write out.jsonl + --removed gone
--relation | d --against other --measure containment + --relation inside
--top | --top 1
--inline | ... --side-by-side + --inline
--context | --context 1
--most | --most 1
--differences | --differences 0
--containment | --containment 0.1
--least | d + --least 9
--gap | --gap 2
--documents | --documents 4
--max-documents | --max-documents 1
--show | --show d/a.txt
--epsilon | --epsilon 0.5
--runs | d --perms 8 + --runs 2
--sample | d --perms 64 --bands 4 + --sample 2
--queries | d --perms 64 --bands 4 + --queries *b.txt
accuracy --threshold | d --found + -t 0.3
accuracy --recall | d --found + --recall 0.1
accuracy --bands | d --perms 64 + --bands 4
accuracy --buckets | d --perms 64 --bands 4 + --buckets 1
accuracy --found | d + --found
"""
SHOWN |= dict(line.split(" | ", 1) for line in _SHOWN.strip().splitlines())

#: Options, as in SHOWN, whose effect is not an answer of a run here.
NOT_SHOWN = {
    "--format-memory": "The least limit is 128 MB: tests/text/test_office.py.",
    "--jobs": "The answer is the same at any number of threads.",
    "--wait": "Only where another run writes: tests/store/test_faults.py.",
    "--memo": "LSHDUP_MEMO bounds what is kept of other runs: golden/scenes/stores.txt.",
    "--memory": "Only the plan of a large run hears it: golden/scenes/containment.txt.",
    "--stdin": "Only a stream hears it: golden/scenes/streams.txt.",
    "--progress": "A bar needs a stage of a second: test_progress_is_shown.",
    "show --verbose": "It reads two documents, and skips none.",
    "accept --verbose": "It skips none.",
} | {
    f"timing {option}": "It prints counts and seconds."
    for option in (
        "--keep-case", "--no-normalize", "--join-hyphens", "--fold", "--hash", "--hash-key",
        "--seed",
    )
} | {
    f"mcp {max(each.opts, key=len)}": "Its answers need a client: tests/test_mcp.py."
    for each in load_command("mcp").params
    if isinstance(each, click.Option)
}  # fmt: skip

#: What an option needs beside lshdup: a module.
NEEDS = {"--plot": "matplotlib"}


@cache
def all_options():
    """(command, option) of the whole program, as Click has them."""
    return [
        (name, max(each.opts, key=len))
        for name in COMMANDS
        for each in load_command(name).params
        if isinstance(each, click.Option)
    ]


def line_of(command, option):
    """(words of the run without the option, words of the run with it, whether to look at stderr)"""
    entry = SHOWN.get(f"{command} {option}") or SHOWN[option]
    before, _, added = entry.removeprefix("2> ").rpartition(" + ")
    usual = ARGUMENTS.get(command, "d")
    without = (command, *(before or usual).replace("...", usual).split())
    return without, (*without, *added.split()), entry.startswith("2> ")


WORDS = """the lamp stands upon a table near my window where grey cats like to sleep all day while
rain falls softly over every roof in this small town and someone drinks fine tea with honey from old
cups before night comes""".split()
TEXT = " ".join(WORDS)
MAIL = """From: {0}@example.org
To: me@example.org
Subject: lamps
X-Number: {0} {0} {0}

{1}

> {0} said this long ago, as far as I know
"""


def changed(number, text=TEXT):
    """The text with another word in the middle."""
    words = text.split()
    words[len(words) // 2] = f"word{number}"
    return " ".join(words)


#: The files of the collection. Their similarities lie around 0.8, on both sides.
FILES = {
    "d/a.txt": f"{TEXT}\n", "d/b.txt": f"{changed(1)}\nfour more words here\n",
    "d/c.txt": f"{TEXT} {TEXT}\n", "d/sub/a.txt": f"{TEXT}\n",
    "d/sub/capitals.txt": f"{TEXT.upper()}\n",
    "d/sub/broken.txt": TEXT.replace("comes", "co-\nmes").replace("town", "tówn").encode(),
    "d/sub/wide.txt": f"{TEXT.replace('fine', 'ｆｉｎｅ')}\n", "d/.hidden.txt": f"{changed(2)}\n",
    "d/.gitignore": "ignored.txt\n", "d/ignored.txt": f"{changed(3)}\n", "d/tiny.txt": "two words",
    "d/latin.txt": f"{TEXT} à côté, déjà vu, là-bas, été, élève, forêt".encode("latin-1"),
    "d/page.html": f"<html><body><p>{TEXT}</p></body></html>", "d/1.eml": MAIL.format("anna", TEXT),
    "d/2.eml": MAIL.format("otto", TEXT), "d/post.txt": MAIL.format("emma", TEXT),
    "d/chapters.txt": f"Chapter\n{TEXT}\nChapter\n{TEXT}\n", "d/chain1.txt": f"{changed(7)}\n",
    "d/chain2.txt": f"{changed(7)}\n".replace("window", "door"), "d/twin/a.txt": f"{TEXT}\n",
    "d/twin/c.txt": f"{TEXT} {TEXT}\n", "d/twin/own.txt": " ".join(sorted(WORDS * 2, key=len)),
    "d/third/a.txt": f"{TEXT}\n", "d/third/own.txt": " ".join(reversed(WORDS * 2)),
    "d/rows.jsonl": f'{{"body": "{TEXT}"}}\n' * 2, "other/b.txt": f"{TEXT}\n",
    "other/c.txt": f"{changed(4)}\n",
    "rows.jsonl": f'{{"name": "x", "text": "{TEXT}"}}\n{{"name": "y", "text": "{TEXT}"}}\n',
    "template.txt": " ".join(WORDS[:12]), "list": "other\n",
    **{f"{each}/{name}/a.txt": f"{TEXT}\n" for each in ("seen", "bare") for name in "xy"},
    "empty/file": "", "office/x.docx": office.docx(TEXT),
}  # fmt: skip

#: Two stores of d, of which one document has changed unseen; of old another one is gone.
STORES = ("kept", "old")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the collection and its stores."""
    folder = tmp_path_factory.mktemp("options")
    write_files(folder, FILES)
    with zipfile.ZipFile(folder / "d/box.zip", "w") as box:
        box.writestr("in.txt", TEXT)
    (folder / "d/link.txt").symlink_to("../other/c.txt")
    once = folder / "d/once.txt"
    once.write_text(" ".join(sorted(WORDS)))
    (folder / "d/gone.txt").write_text(TEXT)
    for line in (
        "lshdup shingle d --store old && lshdup index d --store old",
        "rm d/gone.txt",
        "lshdup index d --store kept && lshdup passages d --least 5 --store kept",
        "lshdup pairs d/sub --no-store --baseline known --update-baseline",
        "lshdup index bare --store bare-store && lshdup index seen --store seen-store",
        "lshdup accept seen/x/a.txt seen/y/a.txt --store seen-store",
        "git init -q && git add d/sub && git -c user.name=a -c user.email=a@b commit -qm a",
    ):
        done = shell(line, folder)
        assert not done.returncode, done
    times = once.stat()
    once.write_text(TEXT)  # as long as before
    os.utime(once, ns=(times.st_atime_ns, times.st_mtime_ns))
    return folder


@cache
def answer(words, here):
    """The exit code of a run, what it prints, the files it leaves, and what it says."""
    before, stores = {each.name for each in here.iterdir()}, {*STORES} & {*words}
    with tempfile.TemporaryDirectory() as kept:
        for name in stores:
            shutil.copytree(here / name, f"{kept}/{name}")
        done = run_program(words, cwd=here)
        left = {}
        for path in sorted(here.iterdir()):
            if path.name not in before or path.name in stores:
                left |= contents(path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(kept, here, dirs_exist_ok=True)
    said = re.sub(rb"\d+\.\d+ (s\b|x faster)", b"#", done.stderr)
    out = re.sub(rb"\d\.\d{5,}(e-\d+)?", b"#", done.stdout) if words[0] == "timing" else done.stdout
    return done.returncode, out, left, said


def contents(path):
    """{name: what is in it} of a file, or of all below a folder; of an artifact, the arrays."""
    if path.is_dir():
        return {
            f"{path.name}/{name}": content
            for each in path.iterdir()
            if each.name != ".lock"
            for name, content in contents(each).items()
        }
    if path.suffix != ".npz":
        return {path.name: path.read_bytes()}
    with np.load(path) as arrays:
        return {
            f"{path.name}/{name}": array.tobytes()
            for name, array in arrays.items()
            if name not in ("header", "checks")
        }


def entry_of(table, command, option):
    """The key of an option of a command in a table; None without one."""
    return next((key for key in (f"{command} {option}", option) if key in table), None)


def chosen():
    """(command, option) to try: all; every day a third of the options, with one command each."""
    shown = [each for each in all_options() if not entry_of(NOT_SHOWN, *each)]
    made = []
    for number, option in enumerate(dict.fromkeys(option for _, option in shown)):
        pairs = [each for each in shown if each[1] == option]
        made += pairs if WHOLE else [pairs[number % len(pairs)]] * (number % 3 == 1)
    return made


def test_every_option_has_an_entry():
    """In one of the tables; and every entry is of an option."""
    used = [
        [key for table in (SHOWN, NOT_SHOWN) if (key := entry_of(table, *each))]
        for each in all_options()
    ]
    assert [each for each, keys in zip(all_options(), used, strict=True) if not keys] == []
    assert {key for keys in used for key in keys} == {*SHOWN, *NOT_SHOWN}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_changes_the_answer(command, here):
    for option in [option for each, option in chosen() if each == command]:
        if option in NEEDS and importlib.util.find_spec(NEEDS[option]) is None:
            continue
        without, with_, is_talk = line_of(command, option)
        plain, other = answer(without, here), answer(with_, here)
        assert is_talk or b"error: " not in other[3], other
        shown = 4 if is_talk else 3
        assert plain[:shown] != other[:shown], with_


@pytest.mark.parametrize("command", ["pairs", "report", "timing"])
def test_progress_is_shown(command, here, monkeypatch, capfd):
    monkeypatch.chdir(here)
    monkeypatch.setattr(console, "_PATIENCE", 0)
    for wanted in ("", "1"):
        monkeypatch.setenv("LSHDUP_PROGRESS", wanted)
        with pytest.raises(SystemExit):
            main([command, "d", "--no-store"])
        assert ("\rdocuments" in capfd.readouterr().err) == bool(wanted)
