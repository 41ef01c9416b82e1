"""Work is done in pieces, and kept as far as memory goes: no size of a piece changes an answer."""

import json
import shutil
import subprocess
import sys
import tarfile

import pytest

from tests.conftest import ROOT
from tests.documents import write_rows
from tests.running import as_variables, clean_environment, run_program

#: What is large enough that no folder of the other tests fills it, and a size that these do fill.
SIZES = {
    "collection.batches.BYTES_AT_ONCE": 4096, "collection.annotating._PIECE": 3,
    "collection.filtering._PIECE": 4, "collection.set_source._BYTES_AT_ONCE": 4096,
    "cli.output.PIECE_ROWS": 4, "cli.output.PIECE_MAILS": 2, "cli.output._MOST_NAMES": 3,
    "compare.medoids.PIECE": 4, "compare.clusters._PIECE": 4,
    "compare.expand_duplicates.PIECE": 4, "compare.folders._AT_ONCE": 4,
    "compare.leaders.HELD_BYTES": 512, "compare.scored_pairs.RUN": 8, "compare.exact_join.PIECE": 4,
    "compare.exact_join._PROBES": 2, "compare.verification.BLOCK_BYTES": 4096,
    "compare.verification.SET_BYTES": 4096, "compare.verification._ESTIMATED_AT_ONCE": 2,
    "sources.text_batches.BATCH_BYTES": 3000, "sources.text_batches.BATCH_DOCUMENTS": 5,
    "sources.text_batches._AT_ONCE": 8, "sources.text_batches._LEAST_DOCUMENTS": 2,
    "sources.readers._UNPACKED_FILES": 1, "sources.records._NAMES_AT_ONCE": 3,
    "sources.rewriting._AT_ONCE": 8, "sources.rewriting._PART_BYTES": 64,
    "lsh.candidates.PIECE": 8, "lsh.signatures._PIECE": 4, "lsh.candidates._BLOCK": 4,
    "lsh.band_table._AT_ONCE": 64,
    "workspace.removals.PIECE": 4, "workspace.accepted._GATHERED": 2,
    "evaluation.experiments.PIECE": 4,
    "views.annotations._KEPT": 1,
    "shingling.shingle_filter._AT_ONCE": 64,
    "base.memory.MOST_IN_MEMORY": 64, "base.memory.ROWS_AT_ONCE": 8, "base.memory._SMALL": 64,
    "base.memory._UNCOUNTED": 16, "base.compression.CHUNK": 64, "base.memory._PART_BYTES": 256,
    "store.npz._CHUNK": 256,
    "passages.finding.AT_ONCE": 4, "passages.finding.GROUPS_AT_ONCE": 2,
}  # fmt: skip

#: One after the other, in one folder: most make something, and the next one reads it.
COMMANDS = """
pairs d -t 0.7 -q
pairs -t 0.75 -q
pairs d --no-store -q --exact -t 0.6
pairs d --no-store -q --measure containment -t 0.7
pairs d --no-store -q --measure containment --exact -t 0.7
pairs d --no-store -q --ignore-common 0.3 -t 0.6
pairs d --no-store -q --max-bucket 5 -t 0.7 --format json
pairs d --no-store -q --against o -t 0.6
pairs d --no-store -q --against o -t 0.7 --measure containment
pairs d --no-store -q --against o -t 0.6 --unmatched
pairs d --no-store -q -t 0.7 --collapse-copies --format table
pairs d --no-store -q -t 0.6 --across folder
pairs d --no-store -q -t 0.6 --across (.)$ --exact --collapse-copies
pairs d --no-store -q -t 0.6 --across folder --measure containment
pairs d --no-store -q --across folder:2 --same text
pairs d --no-store -q -t 0.7 --histogram
pairs d --no-store -q -t 0.7 --baseline known --update-baseline
pairs d --no-store -q -t 0.6 --baseline known
clusters d -q -t 0.7
clusters d --no-store -q -t 0.7 --linkage single --keep longest
clusters d --no-store -q -t 0.6 --keep central
clusters d --no-store -q -t 0.6 --across (.)[.]txt
clusters d --no-store -q -t 0.6 --across folder --linkage single
clusters d --no-store -q -t 0.6 --exact --keep newest
clusters d/rows.jsonl --no-store -q -t 0.6 --write -
pairs d/rows.jsonl --against o --no-store -q -t 0.6 --measure containment --relation both --write -
clusters Mail --no-store -q -t 0.6 --write Clean --removed -
clusters Mail --no-store -q -t 0.6 --format table
pairs Mail --no-store -q -t 0.6 --format table
clusters d/rows.jsonl --no-store -q -t 0.6 --annotate - --keep-by text:least
clusters d --no-store -q -t 0.6 --removed -
passages d --no-store -q
passages d --no-store -q --across folder
passages d --no-store -q --emit pairs
folders d -q -t 0.6
query d/licences/MIT.txt -q -t 0.3
query d/licences/MIT.txt -q --by passages
accuracy d --no-store -q --perms 40,80
show d/licences/BSD-2-Clause-Views.txt d/licences/BSD-2-Clause.txt
""".split("\n")[1:-1]  # fmt: skip

#: Runs the program with other sizes, wherever a module has taken them from theirs.
WITH_SIZES = """
import json, os, sys
from tests.running import prepare
prepare()
sizes = json.loads(sys.argv.pop(1))
modules = [module for name, module in sys.modules.items() if name.startswith("lshdup.")]
for size, value in sizes.items():
    home, name = size.rsplit(".", 1)
    old = getattr(sys.modules[f"lshdup.{home}"], name)
    assert old > value, size
    for module in modules:
        if getattr(module, name, None) is old:  # not only equal: it has taken it from there
            setattr(module, name, value)
for line in sys.stdin:
    words, variables = json.loads(line)
    sys.argv = ["lshdup", *words]
    said, out = os.pipe()
    child = os.fork()
    if not child:
        os.close(said)
        os.dup2(out, 1)
        os.environ.update(variables)
        from lshdup.cli.main import program
        program()
    os.close(out)
    with open(said, "rb") as file:
        text = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, text.decode("latin-1")]), flush=True)
"""


@pytest.fixture
def folders(tmp_path):
    """A folder of many forms, and another one."""
    for name in ("odd", "odd again"):
        shutil.copytree(ROOT / "sample_corpus/odd", tmp_path / "d" / name)
    licences = sorted((ROOT / "sample_corpus/licences").iterdir())
    kept = [*licences[:8], *(path for path in licences if path.name.startswith(("BSD-2", "MIT")))]
    for folder in ("d/licences", "o"):
        (tmp_path / folder).mkdir(parents=True)
    for number, path in enumerate(kept):
        shutil.copy(path, tmp_path / "d/licences")
        if number % 4 == 0:
            words = path.read_text("utf-8", "replace").split()
            (tmp_path / "o" / path.name).write_text(" ".join(words[3:]))
    texts = [path.read_text("utf-8", "replace") for path in kept[:10]]
    for name in ("cur", "new", "tmp"):
        (tmp_path / "Mail" / name).mkdir(parents=True)
    for number in range(12):
        head = f"From: a@b.c\nDate: {number}\nSubject: licence {number}\n\n"
        (tmp_path / f"Mail/cur/{number:02}").write_text(head + texts[number % 5])
    rows = [{"id": n, "text": texts[n % 10] + " more" * (n % 3)} for n in range(30)]
    write_rows(tmp_path / "d/rows.jsonl", rows)
    with tarfile.open(tmp_path / "d/some.tar.gz", "w:gz") as archive:
        for path in licences[:18:3]:
            archive.add(path, path.name)
    return tmp_path


def printed(top, run):
    """Return codes and outputs of the commands in a copy of the folder, and what they leave."""
    here = top / "here"
    shutil.rmtree(here, ignore_errors=True)
    for name in ("d", "o", "Mail"):
        shutil.copytree(top / name, here / name, copy_function=shutil.copy2)
    found = {}
    for line in COMMANDS:
        done = run(line, here)
        found[line] = done.returncode, done.stdout.decode("latin-1")
    kinds = ("signatures", "bands", "pairs")
    return found, {kind: (here / f".lshdup/{kind}.npz").read_bytes() for kind in kinds}


class _Sized:
    """Runs of the program with other sizes of pieces."""

    def __init__(self):
        self._process = None

    def __call__(self, line, cwd):
        if self._process is None:
            command = [sys.executable, "-c", WITH_SIZES, json.dumps(SIZES)]
            pipe = subprocess.PIPE
            environment = clean_environment()
            self._process = subprocess.Popen(
                command, cwd=cwd, env=environment, stdin=pipe, stdout=pipe
            )
        self._process.stdin.write(json.dumps(as_variables(line.split())).encode() + b"\n")
        self._process.stdin.flush()
        code, text = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(line, code, text.encode("latin-1"))

    def end(self):
        self._process.communicate(timeout=60)


def test_no_size_of_a_piece_changes_an_answer(folders):
    """All sizes at once; nor an artifact."""
    expected, kept = printed(folders, lambda line, cwd: run_program(line.split(), cwd=cwd))
    assert not [line for line, (code, out) in expected.items() if code or not out]
    run = _Sized()
    try:
        answers, artifacts = printed(folders, run)
    finally:
        run.end()
    for line, answer in answers.items():
        assert answer == expected[line], line
    assert artifacts == kept
