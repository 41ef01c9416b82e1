"""Texts of office documents and mails, extracted in processes of their own.

The reader is compiled code that parses hostile formats: a file may crash it, hang it, or make it
take all memory, and no thread of this process could be ended for that. So each document goes
through a pipe to a worker process (`office_worker`) that has bounds on seconds and memory and can
be killed. There are as many workers as threads that extract at the same time; a worker serves one
document after the other.
"""

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lshdup.base.frozen import dataclass
from lshdup.base.params import FormatLimits, ShingleParams
from lshdup.base.skipped import Reason
from lshdup.base.system import can_bound_processes
from lshdup.text import office_worker

if TYPE_CHECKING:
    import resource

#: Version of `office_worker`: incremented when its texts change.
_OWN_VERSION = 3
#: Seconds in which a worker must have started, whatever the limits are.
_START = 60.0
#: Seconds for a worker to end that has closed its pipe.
_END = 5.0
#: Bytes of its replies that are read at a time.
_PIPE = 1 << 16
#: Bytes of its stderr that are read to learn why a worker ended.
_LAST_WORDS = 1 << 16
_PROGRAM = """import json, sys
sys.path[:] = json.loads(sys.argv[3])
from lshdup.text.office_worker import main
main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[4] == "mails")"""

_REASONS = {
    office_worker.NO_READER: Reason.NO_READER,
    office_worker.ENCRYPTED: Reason.ENCRYPTED,
    office_worker.DAMAGED: Reason.SPOILT,
    office_worker.LARGE: Reason.TOO_LARGE,
    office_worker.MEMORY: Reason.MEMORY,
    office_worker.FAILED: Reason.CRASHED,
}


@dataclass(frozen=True)
class OfficeText:
    """The text of an office document or a mail as UTF-8, or why there is none."""

    utf8: bytes = b""
    reason: Reason | None = None
    detail: str = ""


def extract(data: bytes, file_type: str, limits: FormatLimits) -> OfficeText:
    """Extract the text of one document, as `extract_all` does."""
    return extract_all([data], file_type, limits)[0]


def extract_all(documents: list[bytes], file_type: str, limits: FormatLimits) -> list[OfficeText]:
    """Extract the texts of office documents or mails of one type. For any thread.

    file_type : as `office_types.recognize_file_type` or `mail_type` returns it.
    limits : seconds and bytes of memory for each document.
    Errors: none are raised; whatever a file does to its worker becomes the reason.
    Cost: about 1 ms a document and 1 ms a page of a PDF, 0.1 ms a mail; 0.1 s to start a worker.
    """
    if not can_bound_processes():
        detail = "office documents and mails are read on Linux and macOS only"
        return [OfficeText(reason=Reason.FORMAT, detail=detail)] * len(documents)
    of_mails = file_type.startswith(office_worker.MAIL)
    if not of_mails and not _has_reader():
        return [OfficeText(reason=Reason.NO_READER)] * len(documents)
    texts: list[OfficeText] = []
    while len(texts) < len(documents):
        try:
            some, served = _extract_with(
                _pool.take(limits, of_mails=of_mails), documents[len(texts) :], file_type
            )
            # Earlier documents may have used up the worker, so this one gets a new worker.
            if some[-1].reason in (Reason.CRASHED, Reason.MEMORY) and served > 1:
                one = [documents[len(texts) + len(some) - 1]]
                some[-1:], _ = _extract_with(_Worker(limits, of_mails), one, file_type)
        except OSError as error:
            detail = f"no process can be started for it: {error.strerror}"
            some = [OfficeText(reason=Reason.CRASHED, detail=detail)]
        texts += some
    return texts


def mail_type(params: ShingleParams) -> str:
    """Return the type of mails that are read by these parameters."""
    return f"{office_worker.MAIL}{params.mail_headers:d}{params.mail_quotes == 'keep':d}"


def _extract_with(
    worker: "_Worker", documents: list[bytes], file_type: str
) -> tuple[list[OfficeText], int]:
    """Return the texts up to the first that the worker does not survive, and the number of
    documents it has served; keep or end the worker.
    """
    try:
        return worker.extract(documents, file_type), worker.served
    finally:
        if worker.is_well:
            _pool.give_back(worker)
        else:
            worker.end()


@functools.cache
def _has_reader() -> bool:
    return importlib.util.find_spec("kreuzberg") is not None


@functools.cache
def reader_version() -> str:
    """Return the versions that decide the text of an office document, to be stored with results."""
    if not _has_reader():
        return f"{_OWN_VERSION}"
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{_OWN_VERSION} kreuzberg {version('kreuzberg')}"
    except PackageNotFoundError:
        return f"{_OWN_VERSION} kreuzberg"


class _Worker:
    """A worker process, for one thread at a time.

    of_mails : whether it reads mails, and not office documents.
    is_well : whether it can serve another document.
    served : number of documents it has been given.
    """

    def __init__(self, limits: FormatLimits, of_mails: bool) -> None:
        self.limits, self.of_mails = limits, of_mails
        self.served = 0
        self.is_well = False
        self._is_late = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        limits_and_path = (str(limits.seconds), str(limits.memory), json.dumps(_import_path()))
        what = "mails" if of_mails else "office documents"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM, *limits_and_path, what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        assert self._process.stdout is not None
        self._stdout = self._process.stdout.fileno()
        self._received = bytearray()
        self._replies = select.poll()
        self._replies.register(self._stdout, select.POLLIN | select.POLLHUP)
        import resource  # Windows has none; `extract_all` starts no worker there.

        self._own_peak = _peak_memory(resource.getrusage(resource.RUSAGE_SELF))

    def extract(self, documents: list[bytes], file_type: str) -> list[OfficeText]:
        """Return the texts of documents, at least one; fewer if the worker does not survive one."""
        texts: list[OfficeText] = []
        try:
            if not self.is_well:
                self._receive(_START)
            self.is_well = False
            name = file_type.encode("ascii")
            head = office_worker.REQUEST.pack(len(name), len(documents))
            sizes = (office_worker.LENGTH.pack(len(data)) for data in documents)
            self._send(b"".join([head, *sizes, name]), *documents)
            while len(texts) < len(documents):
                self.served += 1
                status, payload = self._receive(self.limits.seconds)
                texts.append(self._text(status, payload))
                if status == office_worker.MEMORY or self._is_late:
                    return texts
        except (EOFError, BrokenPipeError):
            return [*texts, self._explain_end()]
        self.is_well = True
        return texts

    def _text(self, status: bytes, payload: bytes) -> OfficeText:
        if status == office_worker.TEXT:
            return OfficeText(payload)
        is_full = status == office_worker.MEMORY
        detail = self._memory_detail() if is_full else payload.decode("utf-8", "replace")
        return OfficeText(reason=_REASONS[status], detail=detail)

    def _send(self, *request: bytes) -> None:
        """Send a request. The worker reads all of it before it works on any document.

        Raise BrokenPipeError if the worker has ended; it is killed if it does not read.
        """
        stdin = self._process.stdin
        assert stdin is not None
        watch = threading.Timer(self.limits.seconds, self._kill_late)
        watch.daemon = True
        watch.start()
        try:
            for part in request:
                stdin.write(part)
            stdin.flush()
        finally:
            watch.cancel()

    def _receive(self, seconds: float) -> tuple[bytes, bytes]:
        """Return the next reply: status and payload.

        Raise EOFError if the worker has ended; it is killed when time is over.
        """
        end = time.monotonic() + seconds
        status, size = office_worker.REPLY.unpack(self._read(office_worker.REPLY.size, end))
        return status, self._read(size, end)

    def _read(self, size: int, end: float) -> bytes:
        """Return the next bytes of the replies; `end` is when the time for them is over."""
        while len(self._received) < size:
            if not self._replies.poll(max(0.0, end - time.monotonic()) * 1000):
                self._kill_late()
                raise EOFError
            if not (some := os.read(self._stdout, _PIPE)):
                raise EOFError
            self._received += some
        found = bytes(self._received[:size])
        del self._received[:size]
        return found

    def _kill_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def _explain_end(self) -> OfficeText:
        """Return why a worker ended in the middle of a document: time, memory, or a crash."""
        if self._is_late:
            detail = f"more than {self.limits.seconds:g} s; LSHDUP_FORMAT_SECONDS allows more"
            return OfficeText(reason=Reason.SLOW, detail=detail)
        code, peak = self._wait()
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _LAST_WORDS))
        last = self._stderr.read().decode("utf-8", "replace")
        # A library that gets no more memory ends in many ways. It may have requested the double of
        # its memory. The peak of a worker includes that of this process, which it was forked of.
        if (
            "memory allocation of" in last
            or "MemoryError" in last
            or (code != 0 and peak > max(self.limits.memory // 3, self._own_peak))
        ):
            return OfficeText(reason=Reason.MEMORY, detail=self._memory_detail())
        how = f"code {code}" if code >= 0 else signal.strsignal(-code) or f"signal {-code}"
        return OfficeText(reason=Reason.CRASHED, detail=f"the process that read it ended: {how}")

    def _wait(self) -> tuple[int, int]:
        """Wait for a worker that has closed its pipe; return its exit code and peak memory."""
        watch = threading.Timer(_END, self._process.kill)
        watch.start()
        with contextlib.suppress(ChildProcessError):
            _, status, usage = os.wait4(self._process.pid, 0)
            watch.cancel()
            self._process.returncode = os.waitstatus_to_exitcode(status)
            return self._process.returncode, _peak_memory(usage)
        watch.cancel()
        return self._process.wait(), 0

    def _memory_detail(self) -> str:
        return f"more than {self.limits.memory:,} bytes; LSHDUP_FORMAT_MEMORY allows more"

    def end(self) -> None:
        """Kill the worker if it has not ended, and release its resources."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _peak_memory(usage: "resource.struct_rusage") -> int:
    """Return the peak memory of a process in bytes; 0 on systems that do not bound memory."""
    return usage.ru_maxrss * 1024 if sys.platform == "linux" else 0


def _import_path() -> list[str]:
    """Return the folders that a worker imports from: those of this process but the current one."""
    home = str(Path(__file__).parents[2])
    folders = [folder for folder in sys.path if folder]
    return folders if home in folders else [home, *folders]


class _Pool:
    """Workers that wait for a document; the last one that served is the first one taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Worker] = []
        self._owner = os.getpid()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, limits: FormatLimits, *, of_mails: bool) -> _Worker:
        with self._lock:
            # In a fork of the program the workers still belong to its parent.
            if self._owner != os.getpid():
                self._waiting, self._owner = [], os.getpid()
            for at in reversed(range(len(self._waiting))):
                waiting = self._waiting[at]
                if (waiting.limits, waiting.of_mails) == (limits, of_mails):
                    return self._waiting.pop(at)
        return _Worker(limits, of_mails)

    def give_back(self, worker: _Worker) -> None:
        with self._lock:
            self._waiting.append(worker)

    def close(self) -> None:
        """End all workers. If the program is killed instead, they end when their pipe closes."""
        with self._lock:
            if self._owner == os.getpid():
                for worker in self._waiting:
                    worker.end()
            self._waiting.clear()


_pool = _Pool()
close = _pool.close
atexit.register(close)
