"""Run the program as a person does: arguments, folder, variables, pipes or a terminal; each run is
a process of its own.

To import the program takes most of the time of a small run, so one process has imported it, and
becomes it in a child for each run. Where that would not be the same, a run is a new process.
"""

import _socket
import atexit
import fcntl
import gc
import importlib
import inspect
import marshal
import os
import pty
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from contextlib import suppress
from functools import cache
from math import inf
from pathlib import Path

from lshdup.cli.commands import COMMANDS
from lshdup.cli.main import load_command
from tests.mutants.reached import FOLDER, record_run

ROOT = Path(__file__).parent.parent

#: Variables, by how they begin, that are looked at when the program runs, and by nothing that is
#: imported.
_LATE = (
    *("LSHDUP_", "COLUMNS", "LINES", "NO_COLOR", "TERM", "PYTEST_CURRENT_TEST"),
    *("_LSHDUP_COMPLETE", "COMP_"),
)

#: Seconds that a run may take: less than its test, so that it is known what hung.
_PATIENCE = 240


def run_program(arguments, *, cwd, stdin=None, columns=None, lines=40, env=None, warm=None):
    """What `lshdup` does, as subprocess.run has it, with bytes.

    stdin : what is in a pipe; None for no pipe and nothing.
    columns : of a terminal that its standard output is; None for a pipe. A terminal's line ends are
        those of a file here.
    env : more variables. Of those that are there, none of lshdup's and none of a terminal's stays.
    warm : what `start_warm` returned; None for the one of this process.
    """
    arguments, variables = as_variables(arguments)
    environment = {**clean_environment(), "TERM": "xterm-256color", **variables, **(env or {})}
    source, sink = (os.open(os.devnull, os.O_RDONLY), None) if stdin is None else os.pipe()
    if stdin == b"":
        os.close(sink)  # before anybody can look whether there will be more
    out, their_out = open_terminal(columns, lines) if columns else os.pipe()
    err, their_err = os.pipe()
    theirs = (source, their_out, their_err)
    warm = warm or _Warm.of_this_process()
    begin = warm.begin if warm.is_same(environment) else _begin
    wait = begin(arguments, theirs, cwd, environment)
    for descriptor in theirs:
        os.close(descriptor)
    said = [b"", b""]

    def read(number, descriptor):
        said[number] = _read_all(descriptor)

    threads = [threading.Thread(target=read, args=each) for each in enumerate((out, err))]
    for thread in threads:
        thread.start()
    if stdin:
        with suppress(BrokenPipeError), open(sink, "wb") as file:
            file.write(stdin)
    for thread in threads:
        thread.join()
    printed = said[0].replace(b"\r\n", b"\n") if columns else said[0]
    return subprocess.CompletedProcess(["lshdup", *arguments], wait(), printed, said[1])


@cache
def settings_of(command):
    """{option: (its variable, its value as a flag)} of what only variables of a command set."""
    found = {}
    for each in getattr(load_command(command), "settings", list)():
        for names, value in ((each.opts, "1"), (each.secondary_opts, "0")):
            found |= dict.fromkeys(names, (each.envvar, value if each.is_flag else None))
    return found


def as_variables(arguments):
    """The words of a command line, and the variables for what its command has no option for:
    settings stand in the lines of tests as options do.

    arguments : a line as it is typed, or such a line (that may be one word) and more arguments.
    """
    line, *more = [arguments] if isinstance(arguments, str) else [*arguments] or [""]
    arguments = [*(shlex.split(line) if isinstance(line, str) else [line]), *more]
    if not arguments or arguments[0] not in COMMANDS:
        return arguments, {}
    words, variables, settings = [], {}, settings_of(arguments[0])
    rest = iter(arguments)
    for word in rest:
        name, equals, value = word.partition("=") if isinstance(word, str) else (word, "", "")
        if name not in settings:
            words.append(word)
            continue
        variable, flag = settings[name]
        variables[variable] = flag if flag is not None else value if equals else str(next(rest))
    return words, variables


def clean_environment():
    """The variables without lshdup's and a terminal's, with this checkout on Python's path."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")  # by which it is known what a test reaches
    return {**_fixed(os.environ), "PYTEST_CURRENT_TEST": test, "PYTHONPATH": str(ROOT)}


def run_many(cases, cwd, env=None):
    """[(arguments, columns or None for a pipe)] -> [(code, stdout, stderr)] as bytes."""
    runs = (run_program(each, cwd=cwd, columns=columns, env=env) for each, columns in cases)
    return [(each.returncode, each.stdout, each.stderr) for each in runs]


def in_terminal(arguments, columns=80, cwd=ROOT, env=None, lines=40):
    """What a terminal of that size gets on standard output: (code, output, stderr)."""
    process = run_program(arguments, cwd=cwd, columns=columns, lines=lines, env=env)
    return process.returncode, process.stdout, process.stderr.decode("utf-8", "backslashreplace")


def open_terminal(columns, lines):
    """Both ends of a terminal of that size: ours, and that of a program."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    return ours, theirs


def start_warm(**options):
    """Start another process that has imported the program, with options of `subprocess.Popen`."""
    return _Warm(clean_environment(), **options)


def _read_all(descriptor):
    said = bytearray()
    with suppress(OSError):  # a terminal whose other end is closed
        while part := os.read(descriptor, 1 << 16):
            said += part
    os.close(descriptor)
    return bytes(said)


#: The program as a module; where it is recorded what tests reach, recorded.
_RECORDED = "import runpy; from tests.mutants.reached import record_run; record_run(); "
_RECORDED += "runpy.run_module('lshdup', run_name='__main__')"
_COMMAND = ("-c", _RECORDED) if FOLDER in os.environ else ("-m", "lshdup")


def _begin(arguments, descriptors, cwd, environment):
    """In a new process. Returns what waits for its end."""
    command = [sys.executable, *_COMMAND, *arguments]
    stdin, stdout, stderr = descriptors
    process = subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=environment
    )
    alarm = threading.Timer(_PATIENCE, os.kill, (process.pid, signal.SIGKILL))
    alarm.daemon = True
    alarm.start()

    def wait():
        code = process.wait()
        alarm.cancel()
        return code

    return wait


class _Warm:
    """A process that has imported the program, from this side."""

    def __init__(self, environment, **options):
        self._fixed = _fixed(environment)
        self._folder = tempfile.TemporaryDirectory()
        self.path = f"{self._folder.name}/socket"
        pipe = subprocess.PIPE
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            listener.listen(16)
            descriptor = listener.fileno()
            script = "import tests.mutants.reached; from tests.running import _serve; "
            script += f"_serve({descriptor})"
            # Threads of OpenBLAS are of no use, and each fork ends them. Pipes, of which Python
            # makes what it makes of those of a run.
            self._process = subprocess.Popen(
                [sys.executable, "-c", script], cwd=ROOT, stdin=pipe, stdout=pipe,
                env={**environment, "OPENBLAS_NUM_THREADS": "1"}, pass_fds=[descriptor], **options,
            )  # fmt: skip
        atexit.register(self._close)

    @classmethod
    @cache
    def of_this_process(cls):
        return cls(clean_environment())

    def is_same(self, environment):
        """Whether a run in this environment is the same as a new process would be."""
        return _fixed(environment) == self._fixed

    def begin(self, arguments, descriptors, cwd, environment):
        """In a child of that process. Returns what waits for its end."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.path)
        arguments = [os.fsencode(each) for each in arguments]
        send_run(connection, descriptors, arguments, os.path.abspath(os.fsencode(cwd)), environment)

        def wait():
            with connection:
                return code_of_run(connection)

        return wait

    def _close(self):
        self._process.communicate()
        self._folder.cleanup()


def shell(line, cwd):
    """Run a line in bash, in which `lshdup` is a run of the process that has imported it."""
    with tempfile.TemporaryDirectory() as folder:
        write_client(Path(folder) / "lshdup")
        environment = {**clean_environment(), "PATH": f"{folder}:{os.environ['PATH']}"}
        command = ["bash", "-o", "pipefail", "-c", line]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=False)


def write_client(path):
    """Write a program that is `lshdup`, as a run of the process that has imported it."""
    warm = _Warm.of_this_process()
    parts = {"python": sys.executable, "functions": _CLIENT_FUNCTIONS, "path": warm.path}
    path.write_text(_CLIENT.format(**parts))
    path.chmod(0o755)


def send_run(connection, descriptors, *what):
    """Hand a run to the process that has imported the program."""
    rights = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
    connection.sendmsg([b"!"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    connection.sendall(marshal.dumps(what))
    connection.shutdown(_socket.SHUT_WR)


def code_of_run(connection):
    """Wait for the end of a run."""
    answer = connection.recv(8)
    assert answer, "the process that has imported the program has ended"
    return int(answer)


def _fixed(environment):
    return {key: value for key, value in environment.items() if not key.startswith(_LATE)}


#: What is `lshdup` in a shell: it hands its arguments and descriptors over, and ends as the run
#: does. It imports what costs nothing: a scene runs it many times.
_CLIENT = """#!{python} -IS
import _socket, marshal, posix, sys
{functions}
connection = _socket.socket(_socket.AF_UNIX)
connection.connect({path!r})
arguments = [each.encode(sys.getfilesystemencoding(), "surrogateescape") for each in sys.argv[1:]]
send_run(connection, (0, 1, 2), arguments, posix.getcwdb(), posix.environ)
for descriptor in (0, 1, 2):
    posix.close(descriptor)  # or a reader would wait for this process too
posix._exit(code_of_run(connection))
"""
_CLIENT_FUNCTIONS = inspect.getsource(send_run) + inspect.getsource(code_of_run)


# --- that process ---------------------------------------------------------------------------------


def _serve(descriptor):
    """Begin runs, each in a child, until the process that wants them has ended."""
    with open(__file__, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # of several such processes, one compiles the kernels
        subprocess.run([sys.executable, "-c", _COMPILE], cwd=ROOT, check=True)
        prepare()
    runs = {}  # what ends when a run ends: its process, its connection, the instant it may not see
    with socket.socket(fileno=descriptor) as listener:
        while True:
            soonest = min((until for _, _, until in runs.values()), default=inf)
            rest = None if soonest == inf else max(0, soonest - time.monotonic())
            ready = select.select([listener, sys.stdin, *runs], [], [], rest)[0]
            for ended in {*ready} & {*runs}:
                child, connection, _ = runs.pop(ended)
                os.close(ended)
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                with connection, suppress(BrokenPipeError):  # nobody waits any more
                    connection.send(b"%d" % code)
            for child, _, until in runs.values():
                if until < time.monotonic():
                    os.kill(child, signal.SIGKILL)
            if sys.stdin in ready:
                break
            if listener in ready:
                with suppress(EOFError):  # who wanted a run was killed meanwhile
                    child, connection = _answer(listener)
                    runs[os.pidfd_open(child)] = child, connection, time.monotonic() + _PATIENCE


def _answer(listener):
    """Begin a run in a child: (its process, the connection that waits for its end)."""
    connection, _ = listener.accept()
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as file:
        what = marshal.load(file)
    child = os.fork()
    if not child:
        _become(descriptors, *what)
    for each in descriptors:
        os.close(each)
    return child, connection


#: Compiles all modules and kernels that the cache lacks, once for all processes that tests start;
#: kernels of changed sources take numba a while. A wheel with machine code needs no llvmlite.
_COMPILE = """
import compileall, importlib.util, os, sys
compileall.compile_dir("lshdup", quiet=2)  # also where the environment keeps Python from it
if importlib.util.find_spec("llvmlite") is None:
    sys.exit()
from lshdup.kernels.native import machine_code, pack
if packed := pack.packed_kernels():
    machine_code.store_together(packed, os.cpu_count())
else:
    from lshdup.kernels import jit
    from lshdup.kernels.native import lowering
    for kernel in lowering.all_kernels().values():
        for symbol, kinds in kernel.variants.items():
            jit._load(kernel.function, symbol, kinds)
"""

#: Modules of others that a run imports when it needs them.
_LATER = (
    *("click._textwrap", "colorsys", "difflib", "encodings.ascii", "numpy.ma", "rich.cells"),
    *("rich.console", "rich.markup", "rich.table", "rich.text", "statistics"),
)


def prepare():
    """Import all of the program and load what most runs need, so that no child does it again."""
    from lshdup import NearDuplicates
    from lshdup.shingling.normalization import char_table

    for path in sorted((ROOT / "lshdup").rglob("[!_]*.py")):
        if not {"spark", "native", "office_worker.py"} & set(path.parts):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for name in _LATER:
        importlib.import_module(name)
    char_table("word", False, True, "none")
    found = NearDuplicates(str(ROOT / "sample_corpus/odd"), jobs=1)  # kernels, and encodings
    found.pairs()
    found.clusters()
    gc.freeze()  # a collection in a child would copy all pages
    assert threading.active_count() == 1  # a child has only the thread that made it


def _become(descriptors, arguments, cwd, environment):
    """The program, to its end."""
    from lshdup import __main__
    from lshdup.cli.main import program

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(cwd)
    os.environ.clear()
    os.environ |= {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    sys.modules["__main__"] = __main__  # from which a usage line has the name of the program
    sys.argv = [str(__main__.__file__), *map(os.fsdecode, arguments)]
    record_run()
    try:
        program()
    except BaseException:  # as the interpreter would have said it
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)
