"""``python -m lshdup``."""

from lshdup.cli.main import program

if __name__ == "__main__":
    program()
