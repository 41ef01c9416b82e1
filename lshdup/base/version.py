"""The version of the program."""

__version__ = "1.1.0"
