"""``python -m lshdup``."""

from lshdup.cli import program

if __name__ == "__main__":
    program()
