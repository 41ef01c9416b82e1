"""The manual page and the reference of the command line, made from the commands: `python -m lshdup.cli.reference` writes both."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from lshdup.cli.commands import COMMANDS
from lshdup.cli.main import lshdup
from lshdup.version import __version__

ROOT = Path(__file__).parent.parent.parent
MANUAL, REFERENCE = ROOT / "lshdup.1", ROOT / "docs/cli.md"

_WIDTH = 110

_FILES = {
    ".lshdup/": "The store, in the current folder; --store DIR or LSHDUP_STORE name another. It can be removed at any time.",
    ".lshdup/shingles.npz": "Shingle sets.",
    ".lshdup/signatures.npz": "Signatures.",
    ".lshdup/bands.npz": "The band table.",
    ".lshdup/pairs.npz": "The pairs of the last run.",
    ".lshdup/clusters.npz": "Its groups.",
    ".lshdup/rows.npz": "Where rows are in files of JSON Lines and Parquet.",
}
_ENVIRONMENT = {
    "LSHDUP_...": "Most options have a variable, named with them above; the command line goes before it.",
    "NO_COLOR": "If it is set and not empty: no colours, unless --color is given.",
    "TERM": "If it is dumb: the same.",
    "COLUMNS": "The width of a terminal that does not say its own.",
}
_EXIT = {
    "0": "Done.",
    "1": "Pairs or groups were found, and --check was given.",
    "2": "Usage, an error, or some input that could not be read; the results still come.",
    "130": "Interrupted.",
}


def manual() -> str:
    """The manual page, in roff."""
    return "\n".join(_manual()) + "\n"


def reference() -> str:
    """What `--help` says of every command, in Markdown."""
    parts = [
        "# The command line\n",
        "What `--help` says of every command, with the variables of its options; made by `python -m lshdup.cli.reference`.\n",
    ]
    for name, context in _contexts():
        parts.append(f"## {name}\n\n```text\n{context.get_help()}\n```\n")
    return "\n".join(parts)


def write() -> None:
    """Write both."""
    REFERENCE.parent.mkdir(exist_ok=True)
    MANUAL.write_text(manual(), "utf-8")
    REFERENCE.write_text(reference(), "utf-8")


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


def _manual() -> Iterator[str]:
    contexts = list(_contexts())
    yield '.\\" Made by python -m lshdup.cli.reference.'
    yield f'.TH LSHDUP 1 "" "lshdup {__version__}" "User Commands"'
    yield ".nh"
    yield ".ad l"
    yield ".SH NAME"
    yield r"lshdup \- find near\-duplicate documents in folders"
    yield ".SH SYNOPSIS"
    yield ".nf"
    for name, context in contexts[1:]:
        yield rf"\fB{_escaped(name)}\fR {_escaped(' '.join(context.command.collect_usage_pieces(context)))}"
    yield ".fi"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(lshdup.help or "")
    yield ".SH COMMANDS"
    for name, context in contexts[1:]:
        yield f".SS {_escaped(name)}"
        yield from _paragraphs(context.command.help or "")
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and record[1] and parameter.name != "help":
                yield ".TP"
                yield f".B {_escaped(record[0])}"
                yield _escaped(record[1])
        yield from _paragraphs(context.command.epilog or "")
    for title, entries in (
        ("ENVIRONMENT", _ENVIRONMENT),
        ("FILES", _FILES),
        ("EXIT STATUS", _EXIT),
    ):
        yield f".SH {title}"
        for what, means in entries.items():
            yield ".TP"
            yield f".B {_escaped(what)}"
            yield _escaped(means)
    yield ".SH SEE ALSO"
    yield ".BR wdiff (1)"


def _paragraphs(text: str) -> Iterator[str]:
    r"""Help text as paragraphs; those that begin with \b as they are."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = [
            line.strip() if "\b" not in paragraph else line.removeprefix("    ")
            for line in paragraph.strip("\n").splitlines()
        ]
        yield ".PP"
        if lines and lines[0].strip() == "\b":
            yield ".nf"
            yield from map(_escaped, lines[1:])
            yield ".fi"
        else:
            yield _escaped(" ".join(lines))


def _escaped(text: str) -> str:
    """Text that means nothing to roff: ASCII, so that every reader of manual pages shows it."""
    text = (
        text.rstrip()
        .replace("\\", "\\e")
        .replace("-", "\\-")
        .replace("^", "\\(ha")
        .replace("~", "\\(ti")
        .replace("`", "\\(ga")
    )
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    write()
