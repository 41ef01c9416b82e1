"""The generated pages of docs/: `python -m lshdup.cli.reference` writes both, from the commands."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from lshdup.cli import columns
from lshdup.cli.commands import COMMANDS
from lshdup.cli.main import lshdup

DOCS = Path(__file__).parent.parent.parent / "docs"

_WIDTH = 110

_COLUMNS_HEAD = """# Columns of listings

Every listing prints its columns in this order, in every format. Columns keep their names, types and
places; new ones come last. `--header` prints the names. Made by `python -m lshdup.cli.reference`.

"""

_REMOVED_HEAD = """## clusters --removed

A row for each row that `--write` leaves out: `id`, or FILE:ROW without ids; `kept`, the one that is
kept instead, and their similarity; the file of each. The ending of the file says the format, else
it is jsonl.

"""

_SHOW_HEAD = """## show --format json

One object: `a` and `b`, each with `name` to `packed`; then `similarity` to `removed_b`; `shingle`,
the parameters of the shingles; and `differences`, the rows of `show`.

"""


def make_pages() -> dict[str, str]:
    """Return the generated pages by name of the file."""
    return {"cli.md": "\n".join(_commands()), "columns.md": "".join(_columns())}


def write() -> None:
    """Write the generated pages."""
    DOCS.mkdir(exist_ok=True)
    for name, page in make_pages().items():
        (DOCS / name).write_text(page, "utf-8")


def _commands() -> Iterator[str]:
    yield "# The command line\n"
    yield (
        "What `--help` says of every command, with the variables of its options; made by "
        "`python -m lshdup.cli.reference`.\n"
    )
    for name, context in _contexts():
        yield f"## {name}\n\n```text\n{context.get_help()}\n```\n"


def _contexts() -> Iterator[tuple[str, click.Context]]:
    settings = {
        "terminal_width": _WIDTH,
        "max_content_width": _WIDTH,
        "help_option_names": ["-h", "--help"],
    }
    top = click.Context(lshdup, info_name="lshdup", **settings)  # type: ignore[arg-type]
    yield "lshdup", top
    for name in COMMANDS:
        command = lshdup.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top, **settings)  # type: ignore[arg-type]
        yield f"lshdup {name}", context


def _columns() -> Iterator[str]:
    yield _COLUMNS_HEAD
    yield _table("type", {each.words: meaning for each, meaning in columns.TYPES.items()})
    for listing, types in columns.LISTINGS.items():
        yield (
            f"## {listing}\n\n`lshdup {columns.COMMANDS.get(listing, listing)}`: "
            f"{columns.describe(listing)}.\n\n"
        )
        yield _table("column", _words(types | columns.OPTIONAL.get(listing, {})))
    yield _REMOVED_HEAD + _table("column", _words(columns.REMOVED))
    yield _SHOW_HEAD
    yield _table("key", _words(columns.DOCUMENT | columns.COMPARISON))


def _words(types: Mapping[str, columns.Type]) -> dict[str, str]:
    return {f"`{name}`": each.words for name, each in types.items()}


def _table(head: str, rows: Mapping[str, str]) -> str:
    lines = "".join(f"| {name} | {meaning} |\n" for name, meaning in rows.items())
    return f"| {head} | is |\n|---|---|\n{lines}\n"


if __name__ == "__main__":
    write()
