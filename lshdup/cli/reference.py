"""The generated pages of docs/reference: `python -m lshdup.cli.reference` writes them."""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from lshdup.cli import columns
from lshdup.cli.commands import COMMANDS
from lshdup.cli.help import SHARED, Command, Option
from lshdup.cli.main import lshdup

DOCS = Path(__file__).parent.parent.parent / "docs/reference"

_MADE = "Made by `python -m lshdup.cli.reference`.\n\n"

_COMMANDS_HEAD = f"""# Commands

The commands of `lshdup`, with the options of each. Options that several commands share are on
[a page of their own](options.md); [columns](columns.md) describes what is printed.
{_MADE}{" ".join((lshdup.epilog or "").split())}

"""

_OPTIONS_HEAD = f"""# Shared options

Options of several commands; [commands](commands.md) says which command takes which. In brackets
stand the environment variable and the default. {_MADE}"""

_SETTINGS_HEAD = """## Variables

Set by variables alone, for scripts and experiments. What defines an index is an option of
`shingle`, `signatures` and `index` too, after which `pairs`, `clusters` and `query` without DOCS
continue with it.

"""

_COLUMNS_HEAD = f"""# Columns of listings

Every listing prints its columns in this order, in every format. Columns keep their names, types and
places; new ones come last. `LSHDUP_HEADER=1` prints the names. {_MADE}"""

_REMOVED_HEAD = """## clusters --removed

A row for each row that `--write` leaves out: `id`, or FILE:ROW without ids; `kept`, the one that is
kept instead, and their similarity; the file of each; and whether the two are the same. The ending
of the file says the format, else it is jsonl.

"""

_REMOVED_PASSAGES_HEAD = """## passages --removed

A row for each passage that `--write` cuts: bytes of the field, and their text; or `skipped`, why it
could not be cut.

"""

_SHOW_HEAD = """## show --format json

One object: `a` and `b`, each with `name` to `packed`; then `similarity` to `removed_b`; `shingle`,
the parameters of the shingles; and `differences`, the rows of `show`.

"""

#: An option and what the help says of it.
_Record = tuple[str, str]
#: Commands and their options by heading, then by name.
_Records = dict[str, dict[str, dict[str, _Record]]]


def make_pages() -> dict[str, str]:
    """Return the generated pages by name of the file."""
    contexts = {context.command_path: context for context in _contexts()}
    records = {name: _records(context) for name, context in contexts.items()}
    shared = _shared(records)
    pages = {
        "commands.md": _COMMANDS_HEAD
        + "".join(_command(context, records[name], shared) for name, context in contexts.items()),
        "options.md": _OPTIONS_HEAD
        + "".join(
            f"## {title}\n\n{_bullets(options.values())}\n" for title, options in shared.items()
        )
        + f"{_SETTINGS_HEAD}{_bullets(_settings(contexts.values()))}",
        "columns.md": "".join(_columns()),
    }
    return {name: page.rstrip("\n") + "\n" for name, page in pages.items()}


def write() -> None:
    """Write the generated pages."""
    DOCS.mkdir(exist_ok=True)
    for name, page in make_pages().items():
        (DOCS / name).write_text(page, "utf-8")


def _contexts() -> Iterator[click.Context]:
    top = click.Context(lshdup, info_name="lshdup", help_option_names=["-h", "--help"])
    for name in COMMANDS:
        command = lshdup.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top)
        if not isinstance(command, click.Group):
            yield context
            continue
        for each, member in command.commands.items():
            yield click.Context(member, info_name=each, parent=context)


def _records(context: click.Context) -> dict[str, dict[str, _Record]]:
    """Return the options of a command by heading ("" for its own), then by name."""
    assert isinstance(context.command, Command)
    records: dict[str, dict[str, _Record]] = {}
    for option in context.command.options(context):
        record = option.get_help_record(context)
        assert record is not None
        title = option.group if option.group in SHARED else ""
        words = re.sub(r"\s+", " ", record[1])
        records.setdefault(title, {})[option.name or ""] = record[0].strip(), words
    return records


def _shared(commands: _Records) -> dict[str, dict[str, _Record]]:
    """Return what most commands say of each option under a shared heading."""
    said: dict[str, dict[str, Counter[_Record]]] = {title: {} for title in SHARED}
    for title, options in said.items():
        for each in commands.values():
            for name, record in each.get(title, {}).items():
                options.setdefault(name, Counter())[record] += 1
    return {
        title: {name: records.most_common(1)[0][0] for name, records in options.items()}
        for title, options in said.items()
        if options
    }


def _settings(contexts: Iterable[click.Context]) -> Iterator[_Record]:
    """Yield what only variables set, each once, with the commands that have it."""
    takers: dict[_Record, list[str]] = {}
    for context in contexts:
        assert isinstance(context.command, Command)
        for each in context.command.settings():
            takers.setdefault(_describe_setting(each), []).append(context.command_path[7:])
    most = max(map(len, takers.values()))
    for (variable, words), commands in takers.items():
        which = "" if 2 * len(commands) > most else f" ({', '.join(commands)})"
        yield variable, f"{words}{which}"


def _describe_setting(setting: Option) -> _Record:
    default = setting.show_default if isinstance(setting.show_default, str) else setting.default
    has_default = not setting.is_flag and isinstance(default, str | int | float)
    value = "0|1" if setting.is_flag else setting.metavar or "N"
    if isinstance(setting.type, click.Choice):
        value = "|".join(setting.type.choices)
    return (
        f"{setting.envvar}={value}",
        f"{setting.help}{f'  [default: {default}]' if has_default else ''}",
    )


def _command(
    context: click.Context,
    records: dict[str, dict[str, _Record]],
    shared: dict[str, dict[str, _Record]],
) -> str:
    """Return the section of a command: usage, description, options, examples."""
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    own = list(records.get("", {}).values())
    lines = []
    for title, options in shared.items():
        has = records.get(title, {})
        own += [record for name, record in has.items() if record != options[name]]
        same = [name for name, record in has.items() if record == options[name]]
        missing = [name for name in options if name not in has]
        if same:
            link = f"[{title}](options.md#{title.lower().replace(' ', '-')})"
            names = missing if len(missing) < len(same) else same
            words = ", ".join(f"`{_long(options[name][0])}`" for name in names)
            lines.append(
                link + (f" {'without' if names is missing else '–'} {words}" if words else "")
            )
    page = f"## {context.command_path}\n\n`{context.command_path} {usage}`\n\n"
    page += _paragraphs(command.help or "") + _bullets(own)
    if lines:
        page += f"\nShared: {'; '.join(lines)}.\n"
    listings = re.findall(r"^  ([a-z-]+)  ", (command.epilog or "").partition("Examples:")[0], re.M)
    if listings:
        page += (
            "\nPrints: " + ", ".join(f"[{each}](columns.md#{each})" for each in listings) + ".\n"
        )
    examples = (command.epilog or "").partition("Examples:\n")[2]
    return page + f"\n```text\n{inspect.cleandoc(examples)}\n```\n\n"


def _long(option: str) -> str:
    """Return the long name of an option."""
    return next(word for word in re.split(r"[ ,/]+", option) if word.startswith("--"))


def _paragraphs(text: str) -> str:
    """Return the description of a command as Markdown."""
    parts = inspect.cleandoc(text.partition("\f")[0]).split("\n\n")
    return "".join(f"{_escape(part)}\n\n" for part in parts)


def _bullets(records: Iterable[_Record]) -> str:
    return "".join(f"- `{option}`: {_escape(words)}\n" for option, words in records)


def _escape(words: str) -> str:
    """Return words without the marks that mean something in Markdown."""
    return words.replace("*", r"\*")


def _columns() -> Iterator[str]:
    yield _COLUMNS_HEAD
    rows = "".join(f"| {each.words} | {meaning} |\n" for each, meaning in columns.TYPES.items())
    yield f"| type | is |\n|---|---|\n{rows}\n"
    for listing, types in columns.LISTINGS.items():
        note = columns.describe(listing).partition(" (")[2].removesuffix(")")
        command = f"`lshdup {columns.COMMANDS.get(listing, listing)}`"
        yield f"## {listing}\n\n{command}{f' ({note})' if note else ''}\n\n"
        yield _words(types | columns.OPTIONAL.get(listing, {}))
    yield _REMOVED_HEAD + _words(columns.REMOVED)
    yield _REMOVED_PASSAGES_HEAD + _words(columns.REMOVED_PASSAGES)
    yield _SHOW_HEAD
    yield _words(columns.DOCUMENT | columns.COMPARISON)


def _words(types: Mapping[str, columns.Type]) -> str:
    return " · ".join(f"`{name}`: {each.words}" for name, each in types.items()) + "\n\n"


if __name__ == "__main__":
    write()
