"""Runs of the program that are killed, interrupted, or have no room on the disk, at any step."""

import contextlib
import json
import resource
import subprocess
import sys
from pathlib import Path

from tests.running import as_variables, clean_environment

#: Runs the program again and again, each time in a child that gets a signal at a step or after some
#: seconds, or may write files of so many bytes. A step is what changes a file system.
DISTURBING = """
import json, os, resource, signal, sys, threading
import lshdup.sources.text_batches, lshdup.store.memo, lshdup.base.memory
from lshdup.__main__ import _end_interrupted
from lshdup.cli.main import program

lshdup.sources.text_batches.BATCH_DOCUMENTS, lshdup.store.memo.PATIENCE = 5, 0.0
lshdup.base.memory.MOST_IN_MEMORY = 0
signal.signal(signal.SIGINT, _end_interrupted)  # as it is before the program is imported
os.fsync = lambda _: None  # a step all the same; no power cut will meet these files
SIGNALS = {"killed": signal.SIGKILL, "interrupted": signal.SIGINT}

def signal_at(left, kind):
    def counting(own):
        def call(*arguments, **options):
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), kind)
            return own(*arguments, **options)
        return call
    for name in ("fsync", "replace", "mkdir", "unlink", "utime"):
        setattr(os, name, counting(getattr(os, name)))

for line in sys.stdin:
    how, number, arguments, variables = json.loads(line)
    said, errors = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors, 2)
        os.environ.update(variables)
        if how == "no room":
            resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
        elif isinstance(number, int):
            signal_at(number, SIGNALS[how])
        else:
            alarm = threading.Timer(number, os.kill, (os.getpid(), SIGNALS[how]))
            alarm.daemon = True
            alarm.start()
        sys.argv = ["lshdup", *arguments]
        program()
    os.close(errors)
    with open(said) as file:
        text = file.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]), flush=True)
"""


class Disturbed:
    """The runs of DISTURBING, in a folder."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-c", DISTURBING], cwd=folder, env=clean_environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate(timeout=60)

    def run(self, how, number, line):
        """Exit code, and what was said.

        number : of the step, seconds, or bytes.
        line : as it is typed.
        """
        asked = [how, number, *as_variables(line)]
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextlib.contextmanager
def at_most(most, kind):
    """No file descriptor from this number on; or, as on a full disk, no byte of a file."""
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


def artifacts(store):
    return {path.name: path.read_bytes() for path in Path(store).glob("*.npz")}


def remains(store):
    """Names of what is in a store beside its artifacts and what is always there."""
    usual = {".gitignore", ".lock", "CACHEDIR.TAG", "manifest.json"}
    return {path.name for path in Path(store).iterdir() if path.suffix != ".npz"} - usual
