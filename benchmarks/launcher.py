"""A small program that runs one command and records its times, peak memory and exit code.

Usage: `launcher.py RESULT STDOUT STDERR COMMAND...`. A new process counts the memory of the process
that started it as its own peak, until it runs its own program; so a small process starts it.
"""

import ctypes
import os
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Start the command, wait for it, and write the result."""
    result, out, err, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    redirect = [
        (os.POSIX_SPAWN_OPEN, number, path, flags, 0o600) for number, path in ((1, out), (2, err))
    ]
    if sys.platform == "linux":  # Processes that outlive the command become children of this one.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=redirect)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime  # with the processes that the command waited for
    while (left := _wait()) is not None:
        cpu += left
    with open(result, "w") as file:  # noqa: PTH123 (pathlib is more than this program)
        file.write(f"{seconds} {peak} {os.waitstatus_to_exitcode(status)} {cpu}")


def _wait() -> float | None:
    """Wait for a process that the command left; return its processor time, or None."""
    try:
        _, _, usage = os.wait4(-1, 0)
    except ChildProcessError:
        return None
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
