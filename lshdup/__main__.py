"""``python -m lshdup``, and the command ``lshdup``: Ctrl-C is handled before anything is imported.

To import the program takes most of the time of a small run. A signal that comes before this
module runs ends Python itself.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def program() -> "NoReturn":
    """Run the command line and end the process."""
    try:
        import gc
        import signal

        gc.disable()  # What is imported is no garbage. `open_session` enables it again.

        # A shell may have set SIGINT to be ignored.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end_interrupted)
    except KeyboardInterrupt:
        _end_interrupted()
    from lshdup.cli.main import program

    program()


def _end_interrupted(*_: object) -> "NoReturn":
    """End the process without an exception, which an import could turn into another."""
    os._exit(130)


if __name__ == "__main__":
    program()
