"""Run the program in a terminal of a given size, as a person sees it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from tests.conftest import ROOT


def in_terminal(arguments, columns=80, cwd=ROOT, env=None, lines=40):
    """What a terminal gets on standard output, with line ends as in a file; standard error apart. Returns (code, output, stderr)."""
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith("LSHDUP_") and key not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    environment = {**clean, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **(env or {})}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    command = [sys.executable, "-m", "lshdup", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, cwd=cwd, env=environment)
    os.close(theirs)
    read = bytearray()
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        read += part
    os.close(ours)
    stderr = process.communicate(timeout=60)[1].decode("utf-8", "backslashreplace")
    return process.returncode, bytes(read).replace(b"\r\n", b"\n"), stderr
