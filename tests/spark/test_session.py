"""A session for the command line: interrupts, errors of the start, settings, the progress bar.

Tests that start Java are marked and run only on request: `pytest -m spark`.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from lshdup.errors import InputError
from lshdup.spark import errors
from lshdup.spark import interrupts as spark_interrupts
from lshdup.spark import session as spark_session
from lshdup.utils import atomic
from tests.conftest import ROOT, require
from tests.running import clean_environment
from tests.spark.test_pipeline import QUICK, require_spark

# --- without Java -----------------------------------------------------------------------------

TRACE = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: {}
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3281)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


@pytest.mark.parametrize(
    ("error", "said", "why"),
    [
        (
            TRACE.format("Asked to run locally with 0 threads"),
            "",
            "SparkException: Asked to run locally with 0 threads",
        ),
        (
            TRACE.format("Failed") + "Caused by: a.b.C$Exception\n\tat x\n",
            "26/11/21 16:27:00 ERROR SparkContext: Error initializing SparkContext.\n",
            "SparkException: Failed",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "Picked up JAVA_TOOL_OPTIONS: -Dx\nInvalid maximum heap size: -Xmx12zz\n"
            "Error: Could not create the Java Virtual Machine.\n",
            "Invalid maximum heap size: -Xmx12zz",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "Error occurred during initialization of VM\nToo small maximum heap\n",
            "Too small maximum heap",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "26/11/21 16:27:00 WARN Utils: a warning\n"
            'Exception in thread "main" org.apache.spark.SparkException: no such file\n\tat x\n',
            "SparkException: no such file",
        ),
        ("[JAVA_GATEWAY_EXITED] It exited.", "", "[JAVA_GATEWAY_EXITED] It exited."),
    ],
)
def test_why_it_does_not_start(error, said, why):
    found = errors.not_started(error, said)
    assert found.message == f"Spark did not start: {why}"


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (TRACE.format("Could not parse Master URL: 'x'"), "", "for instance --master local[4]"),
        (TRACE.format("Master must either be yarn or start with spark"), "", "for instance"),
        (TRACE.format("x"), "ERROR: All masters are unresponsive! Giving up.", "is the master"),
        ("[JAVA_GATEWAY_EXITED] x", "java.lang.UnsupportedClassVersionError: x", "Java 17"),
    ],
)
def test_hints_for_a_start(error, said, hint):
    assert hint in errors.not_started(error, said).hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "java.net.URISyntaxException: Relative path in absolute URI: .file:1502.crc",
            "have a colon",
        ),
        (
            "java.lang.RuntimeException: file:/x/y.parquet is not a Parquet file (length: 5)",
            "ignoreCorruptFiles",
        ),
        ("java.io.IOException: anything else", "-v shows"),
    ],
)
def test_hints(text, hint):
    protocol = require("spark", "py4j.protocol")
    with pytest.raises(InputError) as raised, errors.one_line():
        raise protocol.Py4JError(TRACE.format(text))
    assert hint in raised.value.hint
    assert raised.value.message.startswith("Spark: ")
    assert text in raised.value.message


def test_a_text_is_notified_once():
    """Also if it comes in pieces; an error of the callback does not stop the reading."""
    output, told = spark_session.JavaOutput(), []

    def callback():
        told.append(threading.current_thread())
        raise OSError

    output.notify(b"not accepted any", callback)
    for part in (
        b"WARN: Initial job has not acc",
        b"epted any resources\n",
        b"has not accepted any resources\n",
        b"x" * 300_000,
    ):
        os.write(output.writer, part)
        time.sleep(0.05)
    os.close(output.writer)
    assert output.text().endswith("xxx")
    assert len(told) == 1
    assert told[0] is not threading.main_thread()


def test_only_the_progress_bar_goes_on(capfd):
    output = spark_session.JavaOutput()
    bar, blanks = b"\r[Stage 0:===>    (1 + 2) / 4]\r", b"\r" + b" " * 80 + b"\r"
    os.write(output.writer, b"a warning\n" + bar + b"another one\n" + blanks)
    os.close(output.writer)
    assert "another one" in output.text()
    assert capfd.readouterr().err == (bar + blanks).decode()


def test_waiting_for_executors():
    conf = {"spark.executor.memory": "9g"}
    session = SimpleNamespace(
        sparkContext=SimpleNamespace(getConf=lambda: conf, master="spark://there:7077")
    )
    said = spark_session.waiting_for_executors(session)
    assert "waiting for executors" in said
    assert (
        "spark://there:7077 must have 9g of memory (spark.executor.memory) "
        "and 1 of its cores (spark.executor.cores) free"
    ) in said
    assert "\n" not in said


class Handled:
    """Restores the handler of SIGINT."""

    def __enter__(self):
        self.before = signal.getsignal(signal.SIGINT)

    def __exit__(self, *_):
        signal.signal(signal.SIGINT, self.before)


@pytest.mark.parametrize("hangs", [False, True])
def test_an_interrupt_stops_spark_first(monkeypatch, hangs):
    """From another thread, for some seconds; errors that this causes are the interrupt itself."""
    monkeypatch.setattr(spark_interrupts, "_PATIENCE", 0.2)
    stopped, over = [], threading.Event()
    monkeypatch.setattr(spark_interrupts, "_remove_unfinished", lambda: stopped.append("folders"))

    def stop():
        if hangs:
            over.wait(20)
        stopped.append(threading.current_thread())

    session = SimpleNamespace(
        sparkContext=SimpleNamespace(cancelAllJobs=lambda: stopped.append("jobs")), stop=stop
    )
    with Handled():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), spark_interrupts.Interrupts() as interrupts:  # noqa: PT012
            signal.signal(signal.SIGINT, lambda *_: pytest.fail("this is pyspark's"))
            interrupts.install()
            interrupts.session = session
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ConnectionError from None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert interrupts.happened
    assert stopped[0] == "jobs"
    if not hangs:
        assert stopped[1] is not threading.main_thread()
        assert stopped[2] == "folders"
    over.set()


def test_a_second_interrupt_does_not_wait(monkeypatch):
    monkeypatch.setattr(spark_interrupts, "_PATIENCE", 100_000.0)  # or the test hangs
    over = threading.Event()
    session = SimpleNamespace(
        sparkContext=SimpleNamespace(cancelAllJobs=over.wait), stop=lambda: None
    )
    with Handled():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), spark_interrupts.Interrupts() as interrupts:  # noqa: PT012
            interrupts.session = session
            threading.Timer(
                0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
            ).start()
            signal.raise_signal(signal.SIGINT)
    over.set()


def test_an_interrupt_before_spark_has_started(capfd):
    """What the previous handler says goes to stderr, not to where Java's output goes."""
    own = os.dup(2)
    with Handled():
        signal.signal(signal.SIGINT, lambda *_: os.write(2, b"interrupted"))
        with spark_interrupts.Interrupts() as interrupts, open(os.devnull, "wb") as elsewhere:
            interrupts.stderr = own
            os.dup2(elsewhere.fileno(), 2)
            signal.raise_signal(signal.SIGINT)
    os.close(own)
    assert capfd.readouterr().err == "interrupted"


def test_an_interrupt_that_is_ignored_stays_so():
    """As shells set it for programs in the background."""
    with Handled():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with spark_interrupts.Interrupts() as interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            interrupts.install()
            signal.raise_signal(signal.SIGINT)
        assert not interrupts.happened


class Folder:
    """A folder and its file system of Hadoop; removed : of each removal, whether recursive."""

    def __init__(self, path):
        self.path, self.removed = path, []

    def toString(self):  # noqa: N802
        return f"file:{self.path}"

    def getFileStatus(self, _):  # noqa: N802
        return SimpleNamespace(isDirectory=self.path.is_dir)

    def listStatus(self, _):  # noqa: N802
        return [
            SimpleNamespace(getPath=lambda each=each: SimpleNamespace(getName=lambda: each.name))
            for each in self.path.iterdir()
        ]

    def delete(self, place, everything):
        assert place is self
        self.removed.append(everything)


def test_what_spark_wrote_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(atomic, "_kept", set())
    folder = Folder(tmp_path)
    with suppress(ConnectionError), spark_interrupts.unfinished(folder, folder):
        raise ConnectionError
    assert atomic.describe_kept() == "nothing of this run was kept"
    with spark_interrupts.unfinished(folder, folder):
        pass
    assert atomic.describe_kept() == "what was finished is kept, whole"


@pytest.mark.parametrize(
    ("files", "by_error", "by_interrupt"),
    [
        ((), [False], [True]),
        (("_temporary",), [True], [True]),
        (("part-0", "_temporary", ".part-0.crc"), [], [True]),
        (("part-0", "_SUCCESS"), [], []),
        (("part-0", "somebody's"), [], []),
        (None, [], []),
    ],
)
def test_only_what_spark_began_is_removed(monkeypatch, tmp_path, files, by_error, by_interrupt):
    """By an error, if no file of it was finished; by an interrupt, unless it is whole.

    A file in its place, or of another program in it, stays.
    """
    monkeypatch.setattr(atomic, "_kept", set())
    folder = Folder(tmp_path / "out")
    if files is None:
        folder.path.write_text("somebody's")
    else:
        folder.path.mkdir()
        for name in files:
            (folder.path / name).write_text("")
    with pytest.raises(ConnectionError), spark_interrupts.unfinished(folder, folder):
        raise ConnectionError
    assert folder.removed == by_error
    folder.removed.clear()
    with spark_interrupts.unfinished(folder, folder), suppress(NotADirectoryError):
        spark_interrupts._remove_unfinished()
    assert folder.removed == by_interrupt
    with (
        pytest.raises(OSError, match="PATH_ALREADY_EXISTS"),
        spark_interrupts.unfinished(folder, folder),
    ):
        raise OSError("[PATH_ALREADY_EXISTS] it is there")
    assert folder.removed == by_interrupt


def test_what_a_file_of_settings_says_stands(monkeypatch, tmp_path):
    require("spark", "pyspark")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert spark_session.settings_in_file() == {}
    lines = "# a comment\n\n spark.driver.memory\t16g \nspark.master=spark://h:1\nspark.x : y z\n"
    (tmp_path / "spark-defaults.conf").write_text(lines)
    assert spark_session.settings_in_file() == {
        "spark.driver.memory": "16g",
        "spark.master": "spark://h:1",
        "spark.x": "y z",
    }


# --- with Java --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A function that starts a command whose workers sleep in each task of the first stage.

    It returns the process, in its own group, and its stderr. Processes of a failed test are killed.
    """
    require_spark()
    folder = tmp_path_factory.mktemp("slow")
    (folder / "docs").mkdir()
    for i in range(4):
        (folder / "docs" / f"{i}.txt").write_text("the same few words in every file")
    # It is on the path of workers, who make the same of the name of a function.
    (folder / "slowly.py").write_text(
        "import os, time\nfrom lshdup.spark.workers import sets\nmade = sets.sketch_rows\n"
        "def sketch_rows(recipe, batches):\n    time.sleep(float(os.environ['SLOWLY']))\n"
        "    yield from made(recipe, batches)\n"
    )
    started = []
    script = (
        "import slowly\nfrom lshdup.cli import main as cli\nfrom lshdup.spark.workers import sets\n"
        "sets.sketch_rows = slowly.sketch_rows\ncli.PROGRAM()"
    )

    def start(seconds, *options, program="program", terminal=False):
        ours, theirs = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        environment = clean_environment() | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
            "PYSPARK_PYTHON": sys.executable,
            "SLOWLY": str(seconds),
            "TERM": "xterm",
            "STARTED_AS": f"{folder}.{len(started)}",
        }
        settings = [part for item in QUICK.items() for part in ("--spark-conf", "=".join(item))]
        command = [
            sys.executable,
            "-c",
            script.replace("PROGRAM", program),
            "pairs",
            "docs",
            "--engine",
            "spark",
            "--master",
            "local[2]",
        ]
        process = subprocess.Popen(
            [*command, *settings, *options],
            cwd=folder,
            env=environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # whoever runs the tests may be in the background
        )
        os.close(theirs)
        process.mark = f"STARTED_AS={environment['STARTED_AS']}".encode()
        started.append(process)
        return process, ours

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
            process.stdout.close()
        for number in java_of(process):
            with suppress(ProcessLookupError):  # it may be about to end by itself
                os.kill(number, signal.SIGKILL)


def read_until(descriptor, pattern=b""):
    """Return the output up to a pattern, or to the end, within two minutes."""
    said, until = b"", time.monotonic() + 120
    while not (pattern and re.search(pattern, said)):
        assert select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0], said
        try:
            part = os.read(descriptor, 1 << 16)
        except OSError:  # a terminal whose other end is closed
            break
        if not part:
            break
        said += part
    return said


def java_of(process):
    """Return process ids of Java that a process started, also if the process has ended."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is somebody else's
            program = os.path.basename((each / "cmdline").read_bytes().split(b"\0")[0])
            if program == b"java" and process.mark in (each / "environ").read_bytes().split(b"\0"):
                found.append(int(each.name))
    return found


def interrupted(process, descriptor, *, group):
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    said = read_until(descriptor).decode()
    out = process.communicate(timeout=60)[0]
    os.close(descriptor)
    return said, out


@pytest.mark.spark
@pytest.mark.parametrize(
    ("program", "options", "group"),
    [("program", ("-q",), True), ("program", (), False), ("main", (), True)],
)
def test_an_interrupt_in_the_middle_of_a_job(slow, program, options, group):
    """One line, whichever process gets the signal, and no Java that is left."""
    process, descriptor = slow(3000, *options, program=program)  # or the test hangs
    if options:
        time.sleep(1.5)  # Java is starting, and its stderr is not this one
    else:
        assert b"a shuffle\n" in read_until(descriptor, b"a shuffle\n")
        time.sleep(2)
    said, out = interrupted(process, descriptor, group=group)
    assert said.strip() == "lshdup: interrupted; nothing of this run was kept"
    assert process.returncode == 130
    assert not out
    if options:  # Java may have been about to start
        time.sleep(5)
    until = time.monotonic() + 30
    while (
        java_of(process) and time.monotonic() < until
    ):  # it ends when it reads the end of its pipe
        time.sleep(0.1)
    assert not java_of(process)


@pytest.mark.spark
def test_nothing_half_written_is_left(slow, tmp_path):
    """A folder that Spark is writing goes; so does its first half."""
    answer = tmp_path / "x.jsonl"
    process, descriptor = slow(0, "-o", str(answer))
    until = time.monotonic() + 60
    while not answer.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    assert not (answer / "_SUCCESS").exists()
    said, _ = interrupted(process, descriptor, group=False)
    assert "interrupted" in said
    assert process.returncode == 130
    assert not answer.exists()


@pytest.mark.spark
def test_the_bar_of_spark_in_a_terminal(slow):
    """It is shown while tasks run, and no line of the command is mixed with it."""
    process, descriptor = slow(2, terminal=True)
    said = read_until(descriptor).decode().replace("\r\n", "\n")
    out = process.communicate(timeout=60)[0]
    os.close(descriptor)
    assert process.returncode == 0, said
    assert re.search(r"\r\[Stage \d+:[ =>]*\(\d \+ \d\) / \d\]\r", said)
    assert "WARN" not in said
    assert b"Stage" not in out
    assert len(out.splitlines()) == 6
    stays = [line.rstrip().split("\r")[-1] for line in said.split("\n")]  # behind the last return
    assert all(not line.strip() or line.startswith(("lshdup: ", "  ")) for line in stays), stays


@pytest.mark.spark
@pytest.mark.parametrize("options", [("-q",), ("--no-progress",)])
def test_no_bar_on_request(slow, options):
    process, descriptor = slow(1, *options, terminal=True)
    said = read_until(descriptor).decode()
    process.communicate(timeout=60)
    os.close(descriptor)
    assert process.returncode == 0, said
    assert "Stage" not in said


@pytest.mark.spark
def test_java_that_is_killed(slow):
    """No traceback of the lost connection."""
    process, descriptor = slow(300, "--progress")
    read_until(descriptor, rb"\[Stage \d+:[^\r]*\]\r")
    of_it = java_of(process)
    assert of_it
    for number in of_it:
        os.kill(number, signal.SIGKILL)
    said = read_until(descriptor).decode()
    assert process.wait(60) == 2, said
    process.stdout.close()
    os.close(descriptor)
    lines = [
        line
        for line in said.replace("\r", "\n").split("\n")
        if line.strip() and not line.startswith("[Stage ")
    ]
    assert lines[0] == "lshdup: error: Spark's driver, which is Java, ended"
    assert len(lines) == 2


@pytest.mark.spark
def test_java_does_not_speak_in_the_answer(slow):
    """Java reports impossible options on its stdout."""
    process, descriptor = slow(0, "--progress", "--spark-conf", "spark.driver.memory=1m")
    said = read_until(descriptor).decode()
    out = process.communicate(timeout=60)[0]
    os.close(descriptor)
    assert (process.returncode, out) == (2, b"")
    assert "Spark did not start: Too small maximum heap" in said
