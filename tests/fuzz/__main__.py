"""`python -m tests.fuzz` tries drawn input until the time is up; findings: exit code 1."""

import argparse
import faulthandler
import importlib
import json
import mmap
import os
import random
import resource
import sys
import tempfile
import time

from tests.fuzz import Tally, guided

TARGETS = ("texts", "html", "ids", "parquet", "artifacts")

#: More than any target needs, so that an absurd number in an artifact does not swap the machine to
#: a halt.
MOST_MEMORY = 8 << 30


def target(name, folder):
    module = importlib.import_module(f"tests.fuzz.{name}")
    made = getattr(module, name.capitalize())
    return made(folder) if name in ("parquet", "artifacts") else made()


def work(name, seconds, least, seed, results, at):
    """Run batches until the time is up and enough was tried.

    at : called with the number of each batch before it is run.
    """
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        fuzzed = target(name, folder)
        end = time.perf_counter() + seconds
        number = 0
        while time.perf_counter() < end or tally.tried < least:
            at[:8] = number.to_bytes(8, "little")
            made = fuzzed.batch(random.Random(f"{seed} {name} {number}"))
            for finding in made.findings:
                print(f"{name}, seed {seed}, batch {number}: {finding}", flush=True)
            tally.add(made)
            number += 1
        os.chdir("/")
        json.dump([tally.tried, tally.outcomes, len(tally.findings)], results)
        results.flush()


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    for option, kind, default, text in (
        ("--seconds", float, 60, "for each target, at least (default 60)"),
        ("--least", int, 0, "inputs for each target, at least"),
        ("--runs", int, 0, "with --atheris: inputs for each target, at most"),
        ("--seed", int, int(time.time()), "the same seed, the same inputs (default: the time)"),
    ):
        parser.add_argument(option, type=kind, default=default, help=text)
    text = "this target; may be repeated (default: all)"
    parser.add_argument("--only", choices=TARGETS, action="append", help=text)
    text = "by coverage of lshdup's Python (kernels have none): pip install 'lshdup[fuzz]'"
    parser.add_argument("--atheris", action="store_true", help=text)
    options = parser.parse_args()
    failed = False
    for name in options.only or (guided.TARGETS if options.atheris else TARGETS):
        if options.atheris:
            well, line = guided.run(name, round(options.seconds), options.runs, options.seed)
            print(line, flush=True)
            failed = failed or not well
            continue
        started, at = time.perf_counter(), mmap.mmap(-1, 8)
        with tempfile.TemporaryFile("w+") as results:
            # In a process of its own: what kills it is a finding too.
            child = os.fork()
            if child == 0:
                try:
                    work(name, options.seconds, options.least, options.seed, results, at)
                except BaseException:
                    faulthandler.disable()
                    sys.excepthook(*sys.exc_info())
                    os._exit(3)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            took = time.perf_counter() - started
            if status:
                failed, number = True, int.from_bytes(at[:8], "little")
                print(f"{name}, seed {options.seed}, batch {number}: ended with status {status}")
                continue
            results.seek(0)
            tried, outcomes, findings = json.load(results)
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(outcomes.items()))
        said = f"{tried:,} tried in {took:.0f} s, {findings} findings ({counts})"
        print(f"{name}, seed {options.seed}: {said}", flush=True)
        failed = failed or findings > 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
