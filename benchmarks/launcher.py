"""A small program that runs one command and records its times, peak memory and exit code.

Usage: `launcher.py RESULT STDOUT STDERR SAMPLES COMMAND...`, with SAMPLES a second of its memory
and of the free disk, 0 for none. A new process counts the memory of the process
that started it as its own peak, until it runs its own program; so a small process starts it.
"""

import ctypes
import os
import sys
import threading
import time

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Start the command, wait for it, and write the result."""
    result, out, err, samples, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    redirect = [
        (os.POSIX_SPAWN_OPEN, number, path, flags, 0o600) for number, path in ((1, out), (2, err))
    ]
    if sys.platform == "linux":  # Processes that outlive the command become children of this one.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.perf_counter()
    sampled = Sampled()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=redirect)
    if int(samples):
        threading.Thread(target=sampled.follow, args=(child, int(samples)), daemon=True).start()
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime  # with the processes that the command waited for
    while (left := _wait()) is not None:
        cpu += left
    with open(result, "w") as file:  # noqa: PTH123 (pathlib is more than this program)
        code = os.waitstatus_to_exitcode(status)
        file.write(
            f"{seconds} {peak} {code} {cpu} {sampled.memory} {sampled.mapped} {sampled.disk}"
        )


class Sampled:
    """Peaks of a process, in bytes: its anonymous memory, its mapped files, and the disk of this
    folder that is taken since the start.
    """

    def __init__(self) -> None:
        self.memory = self.mapped = self.disk = 0
        self._free = _free()

    def follow(self, process: int, samples: int) -> None:
        """Look at a process until it ends, so many times a second (Linux, proc_pid_status)."""
        try:
            while True:
                with open(f"/proc/{process}/status") as file:  # noqa: PTH123 (as above)
                    fields = dict(line.split(":", 1) for line in file)
                if "RssAnon" not in fields:  # it has ended
                    return
                memory, mapped = (
                    int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssFile")
                )
                self.memory, self.mapped = max(self.memory, memory), max(self.mapped, mapped)
                self.disk = max(self.disk, self._free - _free())
                time.sleep(1 / samples)
        except OSError:  # it has ended, or there is no such file system
            return


def _free() -> int:
    """Return the free bytes of the file system of this folder."""
    status = os.statvfs(".")
    return status.f_bfree * status.f_frsize


def _wait() -> float | None:
    """Wait for a process that the command left; return its processor time, or None."""
    try:
        _, _, usage = os.wait4(-1, 0)
    except ChildProcessError:
        return None
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
