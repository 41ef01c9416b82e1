"""Office documents and mails -> text, in processes that a hanging or crashing file cannot take down with the program. Called by formats.py.

A document goes through a pipe to a process that does nothing else (extractor.py), which has so many seconds and so much memory for it, and
is ended if it takes more. There are as many processes as threads that ask at the same time; each serves one document after the other.
"""

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lshdup.params import FormatLimits
from lshdup.skipped import Reason
from lshdup.text import office_worker

#: Version of what mending.py and extractor.py make of documents: goes up when that changes.
_OWN_VERSION = 1
#: Seconds in which a process must have started, whatever the limits are.
_START = 60.0
#: Seconds for a process to end that has closed its pipe.
_END = 5.0
_CHUNK = 1 << 16
_PROGRAM = """import json, sys
sys.path[:] = json.loads(sys.argv[3])
from lshdup.text.office_worker import main
main(float(sys.argv[1]), int(sys.argv[2]))"""

_STATUS = {
    office_worker.ENCRYPTED: Reason.ENCRYPTED,
    office_worker.DAMAGED: Reason.SPOILT,
    office_worker.LARGE: Reason.TOO_LARGE,
    office_worker.MEMORY: Reason.MEMORY,
}


@dataclass(frozen=True)
class Extracted:
    """A document's text as UTF-8, which may be an HTML page; or why there is none."""

    utf8: bytes = b""
    is_page: bool = False
    reason: Reason | None = None
    detail: str = ""


def extract(data: bytes, kind: str, limits: FormatLimits) -> Extracted:
    """The text of a document of one of the kinds that recognition.py tells. For any thread.

    Cost: about 1 ms a document and 1 ms a page of a PDF; 0.1 s for a process. Errors: none are raised; what the file does to the process
    is its reason. A process that has served other documents before may suffer from those: the document gets a new one then.
    """
    if kind != office_worker.MAIL and not _has_reader():
        return Extracted(reason=Reason.NO_READER)
    try:
        done, served = _extracted(_idle.take(limits), data, kind)
        if done.reason in (Reason.CRASHED, Reason.MEMORY) and served > 1:
            done, _ = _extracted(_Process(limits), data, kind)
    except OSError as error:
        return Extracted(
            reason=Reason.CRASHED, detail=f"no process can be started for it: {error.strerror}"
        )
    return done


def _extracted(process: "_Process", data: bytes, kind: str) -> tuple[Extracted, int]:
    """What a process makes of a document, and how many it has served with this one; afterwards it waits for others, or has ended."""
    try:
        return process.extract(data, kind), process.served
    finally:
        if process.is_well:
            _idle.give_back(process)
        else:
            process.end()


@functools.cache
def _has_reader() -> bool:
    return importlib.util.find_spec("kreuzberg") is not None


@functools.cache
def reader() -> str:
    """What decides the text of an office document, beside the document: kept with whatever is made of such texts."""
    if not _has_reader():
        return f"{_OWN_VERSION}"
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{_OWN_VERSION} kreuzberg {version('kreuzberg')}"
    except PackageNotFoundError:
        return f"{_OWN_VERSION} kreuzberg"


class _Process:
    """One process, for one thread at a time. is_well : whether it can serve another document. served : how many it has."""

    def __init__(self, limits: FormatLimits) -> None:
        self.limits = limits
        self.served = 0
        self.is_well = False
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        command = [
            sys.executable,
            "-I",
            "-c",
            _PROGRAM,
            str(limits.seconds),
            str(limits.memory),
            json.dumps(_folders()),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            bufsize=0,
            close_fds=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._own_peak = _peak(resource.getrusage(resource.RUSAGE_SELF))
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)

    def extract(self, data: bytes, kind: str) -> Extracted:
        self.served += 1
        try:
            if not self.is_well:
                self._exchange(b"", b"", time.monotonic() + _START)
            self.is_well = False
            name = kind.encode("ascii")
            request = office_worker.REQUEST.pack(len(name), len(data)) + name
            status, payload = self._exchange(request, data, time.monotonic() + self.limits.seconds)
        except TimeoutError:
            return Extracted(
                reason=Reason.SLOW,
                detail=f"more than {self.limits.seconds:g} s; --format-seconds allows more",
            )
        except (EOFError, BrokenPipeError):
            return self._cause_of_death()
        self.is_well = status != office_worker.MEMORY
        if status == office_worker.NO_READER:
            return Extracted(reason=Reason.NO_READER, detail=payload.decode("utf-8", "replace"))
        if status in _STATUS:
            detail = (
                self._memory_detail()
                if status == office_worker.MEMORY
                else payload.decode("utf-8", "replace")
            )
            return Extracted(reason=_STATUS[status], detail=detail)
        return Extracted(payload, status == office_worker.PAGE)

    def _exchange(self, head: bytes, data: bytes, deadline: float) -> tuple[bytes, bytes]:
        """Send a request and wait for its reply. Raises TimeoutError, or EOFError or BrokenPipeError if the process has ended."""
        pending = [memoryview(part) for part in (head, data) if part]
        reply = bytearray()
        size = office_worker.REPLY.size
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if pending:
            poll.register(self._in, select.POLLOUT)
        while len(reply) < size:
            rest = deadline - time.monotonic()
            if rest <= 0 or not (events := poll.poll(1000 * rest + 1)):
                raise TimeoutError
            for descriptor, _ in events:
                if descriptor == self._in:
                    sent = os.write(self._in, pending[0][:_CHUNK])
                    pending[0] = pending[0][sent:]
                    if not pending[0]:
                        del pending[0]
                    if not pending:
                        poll.unregister(self._in)
                else:
                    part = os.read(self._out, 16 * _CHUNK)
                    if not part:
                        raise EOFError
                    reply += part
                    if len(reply) >= office_worker.REPLY.size:
                        size = office_worker.REPLY.size + office_worker.REPLY.unpack_from(reply)[1]
        return office_worker.REPLY.unpack_from(reply)[0], bytes(reply[office_worker.REPLY.size :])

    def _cause_of_death(self) -> Extracted:
        code, peak = self._ended()
        self._complaints.seek(max(0, self._complaints.seek(0, os.SEEK_END) - _CHUNK))
        last = self._complaints.read().decode("utf-8", "replace")
        # A library that gets no more memory ends in many ways; it asks for the double of what it has. What this process had counts too.
        if (
            "memory allocation of" in last
            or "MemoryError" in last
            or (code != 0 and peak > max(self.limits.memory // 3, self._own_peak))
        ):
            return Extracted(reason=Reason.MEMORY, detail=self._memory_detail())
        how = f"code {code}" if code >= 0 else signal.strsignal(-code) or f"signal {-code}"
        return Extracted(reason=Reason.CRASHED, detail=f"the process that read it ended: {how}")

    def _ended(self) -> tuple[int, int]:
        """The exit code of the process, which has closed its pipe, and the most memory it had, in bytes (0 where that is not known)."""
        with contextlib.suppress(ChildProcessError):
            for last in (False, True):
                until = time.monotonic() + _END
                while time.monotonic() < until:
                    process, status, usage = os.wait4(self._process.pid, os.WNOHANG)
                    if process:
                        self._process.returncode = os.waitstatus_to_exitcode(status)
                        return self._process.returncode, _peak(usage)
                    time.sleep(0.005)
                if not last:
                    self._process.kill()
        return self._process.wait(), 0

    def _memory_detail(self) -> str:
        return f"more than {self.limits.memory:,} bytes; --format-memory allows more"

    def end(self) -> None:
        """Kill it, if it has not ended, and let go of all it had."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._complaints):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _peak(usage: resource.struct_rusage) -> int:
    """The most memory a process had, in bytes; 0 where memory is not bounded."""
    return usage.ru_maxrss * 1024 if sys.platform == "linux" else 0


def _folders() -> list[str]:
    """Where the process shall import from: the same folders as this one, but not whatever the current one is."""
    home = str(Path(__file__).parent.parent)
    folders = [folder for folder in sys.path if folder]
    return folders if home in folders else [home, *folders]


class _Idle:
    """Processes that wait for a document; the one that served last is taken first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Process] = []
        self._owner = os.getpid()

    def take(self, limits: FormatLimits) -> _Process:
        with self._lock:
            if (
                self._owner != os.getpid()
            ):  # this is a fork of the program: those are not its processes
                self._waiting, self._owner = [], os.getpid()
            for at in reversed(range(len(self._waiting))):
                if self._waiting[at].limits == limits:
                    return self._waiting.pop(at)
        return _Process(limits)

    def give_back(self, process: _Process) -> None:
        with self._lock:
            self._waiting.append(process)

    def close(self) -> None:
        """End all of them. Where this is not called (the program was killed), they end because nobody can write to them any more."""
        with self._lock:
            if self._owner == os.getpid():
                for process in self._waiting:
                    process.end()
            self._waiting.clear()


_idle = _Idle()
close = _idle.close
atexit.register(close)
