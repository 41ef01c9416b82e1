"""``python -m lshdup``."""

from lshdup.cli import main

if __name__ == "__main__":
    main()
