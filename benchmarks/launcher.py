"""A small program that runs one command and records its times, peak memory and exit code.

Usage: `launcher.py RESULT STDOUT STDERR COMMAND...`. A new process counts the memory of the process
that started it as its own peak, until it runs its own program; so a small process starts it.
"""

import os
import sys
import time


def main() -> None:
    """Start the command, wait for it, and write the result."""
    result, out, err, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    redirect = [
        (os.POSIX_SPAWN_OPEN, number, path, flags, 0o600) for number, path in ((1, out), (2, err))
    ]
    start = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=redirect)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    with open(result, "w") as file:  # noqa: PTH123 (pathlib is more than this program)
        cpu = usage.ru_utime + usage.ru_stime  # with the processes that it waited for
        file.write(f"{seconds} {peak} {os.waitstatus_to_exitcode(status)} {cpu}")


if __name__ == "__main__":
    main()
