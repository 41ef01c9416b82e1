"""`python -m tests.fuzz --atheris`: pages and artifacts, with the same checks, and input that a
coverage-guided fuzzer makes.

Atheris watches which lines and comparisons of lshdup's Python an input reaches and keeps those
inputs that reach new ones. What reads texts and ids are kernels, machine code, which it does not
see. Each target runs in a process of its own (`python -m tests.fuzz.guided`), because libFuzzer
ends it, and so may a finding.
"""

import importlib.util
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGETS = ("html", "artifacts")

#: Not watched: kernels are compiled from their byte code, which must be as it was written.
MODULES = ("", ".bands", ".files", ".jit", ".sets", ".shingles", ".sketch", ".text")
KERNELS = [f"lshdup.kernels{name}" for name in MODULES]
LONGEST = {"html": 4000, "artifacts": 60_000}
_DONE = re.compile(r"#(\d+)\s+(INITED|DONE)\s+cov: (\d+) ft: (\d+) corp: (\d+)")


def run(name, seconds, runs, seed):
    """Fuzz one target; returns whether all went well, and a line that says what was tried."""
    if importlib.util.find_spec("atheris") is None:
        sys.exit("python -m tests.fuzz: --atheris needs atheris: pip install 'lshdup[fuzz]'")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        arguments = [name, folder, *map(str, (seconds, runs, seed))]
        command = [sys.executable, "-m", "tests.fuzz.guided", *arguments]
        with log.open("wb") as stderr:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, check=False)
        said = log.read_text("utf-8", "replace")
        findings = [line for line in said.splitlines() if line.startswith("FINDING ")]
        for line in findings:
            print(f"{name}, seed {seed}: {line}")
        tried = {what: (int(n), *map(int, rest)) for n, what, *rest in _DONE.findall(said)}
        if done.returncode or "DONE" not in tried:
            print(said[-5000:])
            return False, f"{name}, seed {seed}: ended with status {done.returncode}"
    (_, before, *_), (count, after, features, corpus) = tried.get("INITED", (0, 0)), tried["DONE"]
    line = (
        f"{name}, seed {seed}: {count:,} tried by atheris in {time.perf_counter() - started:.0f} s, {len(findings)} findings "
        f"(coverage {before:,} -> {after:,} edges, {features:,} features, {corpus:,} inputs kept)"
    )
    return not findings, line


# --- in the process of a target -------------------------------------------------------------------


def html():
    from tests.fuzz import Tally, mutated
    from tests.fuzz.html import PIECES, Html, seeds, well_formed

    target, rng, pages = Html(), random.Random(0), seeds()

    def attempt(data):
        tally = Tally()
        target.survived(tally, data[1:], b"a.html" if data[:1] < b"\x80" else b"a.txt")
        return tally

    some = [*pages, b"".join(PIECES), *(mutated(rng, pages[0], PIECES) for _ in range(50))]
    some += [well_formed(rng).encode() for _ in range(50)]
    return attempt, [bytes([rng.randrange(256)]) + page for page in some]


def artifacts():
    """A byte chooses artifact and command; the rest is the file.

    Checksums are made right again by `forged`, or nothing would be reached.
    """
    from tests.fuzz import Tally
    from tests.fuzz.artifacts import COMMANDS, KINDS, TOKENS, Artifacts

    target = Artifacts(tempfile.mkdtemp())

    def attempt(data):
        tally = Tally()
        chosen = data[0] if data else 0
        tokens, kind = TOKENS[chosen % 2], KINDS[chosen // 2 % 4]
        commands = COMMANDS[tokens]
        command = commands[chosen // 8 % len(commands)]
        target.tried(tally, tokens, kind, data[1:], True, command, checked=chosen < 128)
        return tally

    some = [(at, TOKENS[at % 2], KINDS[at // 2 % 4]) for at in range(256)]
    return attempt, [bytes([at]) + target.files[tokens][kind] for at, tokens, kind in some]


def forged(data, longest, seed):
    """A mutation by the means of tests/fuzz/artifacts.py, or libFuzzer's within a member."""
    import atheris

    from tests.fuzz.artifacts import archive_of, mutated, unzipped

    rng = random.Random(seed)
    try:
        if rng.randrange(2):
            made, _ = mutated(rng, data[1:], data[1:])
        else:
            members = unzipped(data[1:])
            name = rng.choice(list(members))
            start = rng.choice((0, 10 + int.from_bytes(members[name][8:10], "little")))
            changed = atheris.Mutate(members[name][start:], len(members[name]))
            made = archive_of([*(members | {name: members[name][:start] + changed}).items()])
        made = rng.choice((data[:1], bytes([rng.randrange(256)]))) + made
    except Exception:  # it is an archive no more
        made = b""
    return made if 0 < len(made) <= longest else atheris.Mutate(data, longest)


def main(name, folder, seconds, runs, seed):
    import faulthandler
    import resource

    import atheris

    from tests.fuzz.__main__ import MOST_MEMORY

    faulthandler.enable()
    with atheris.instrument_imports(include=["lshdup"], exclude=KERNELS):
        root = Path(__file__).parents[2]
        for module in sorted(root.glob("lshdup/**/*.py")):
            parts = module.relative_to(root).with_suffix("").parts
            if parts[-1] not in ("__init__", "__main__", "plots", "compiling"):
                importlib.import_module(".".join(parts))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    attempt, some = globals()[name]()
    corpus = Path(folder, "corpus")
    corpus.mkdir()
    for number, data in enumerate(some):
        (corpus / f"{number:04}").write_bytes(data)
    seen = set()

    def test_one_input(data):
        for finding in attempt(data).findings:
            what = finding.split(":")[0]
            if what not in seen or len(seen) < 20:
                seen.add(what)
                print(f"FINDING {finding[:2000]}", file=sys.__stderr__, flush=True)

    options = [f"-max_total_time={seconds}", f"-seed={seed % (1 << 32)}", f"-max_len={LONGEST[name]}", "-rss_limit_mb=0", "-timeout=120",
               f"-artifact_prefix={tempfile.gettempdir()}/lshdup-atheris-{name}-", *([f"-runs={runs}"] if runs else [])]  # fmt: skip
    mutator = {"custom_mutator": forged} if name == "artifacts" else {}
    atheris.Setup([sys.argv[0], *options, str(corpus)], test_one_input, **mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
