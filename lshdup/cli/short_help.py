"""What `-h` prints: the ten options of a command that most people need, and two examples."""

import re
from collections.abc import Iterator

import click

#: The options that people need, the most needed first. A command shows the first ten that it has.
NEEDED = (
    "a", "show", "threshold", "least", "measure", "containment", "against", "keep", "prefer",
    "emit", "write", "gap", "top", "inline", "side_by_side", "context", "shingles", "unmatched",
    "histogram", "collapse_copies", "check", "found", "runs", "queries", "passages_of_corpus",
    "most", "all_shapes", "format_", "output", "master", "text_field", "exclude",
    "archives", "k", "tokens", "store", "plot", "perms", "bands", "rows", "jobs", "verbose",
    "quiet",
)  # fmt: skip

#: Cells of the column of options in the help; a longer option has a line of its own.
OPTION_CELLS = 24

#: How many options are shown.
_MOST = 10

#: How many examples are shown.
_EXAMPLES = 2


def short_help_option() -> click.Option:
    """Return the option -h."""
    return click.Option(
        ["-h"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_short_help,
        help="Show the options that most people need.",
    )


def format_short_help(ctx: click.Context) -> str:
    """Return what -h prints for the command of a context."""
    command, formatter = ctx.command, ctx.make_formatter()
    command.format_usage(ctx, formatter)
    first = (command.help or "").split("\n\n", 1)[0].split("\f")[0]
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(" ".join(first.split()))
    options = [
        each
        for each in command.get_params(ctx)
        if isinstance(each, click.Option) and not each.hidden
    ]
    by_name = {each.name: each for each in options}
    records = list(_records(ctx, [by_name[name] for name in NEEDED if name in by_name]))
    if records:
        with formatter.section("Options"):
            formatter.write_dl(records[:_MOST], OPTION_CELLS)
    examples = re.findall(
        r"^ *(lshdup .+)$", (command.epilog or "").partition("Examples:")[2], re.M
    )
    with formatter.section("Examples"):
        formatter.write("".join(f"  {line}\n" for line in examples[:_EXAMPLES]))
    count = len(options) - 2  # without -h and --help
    formatter.write(f"\nAll {count} options: {ctx.command_path} --help\n")
    return formatter.getvalue().rstrip("\n")


def _records(ctx: click.Context, options: list[click.Option]) -> Iterator[tuple[str, str]]:
    """Yield the names of options, and the first clause of their help with the default."""
    for option in options:
        record = option.get_help_record(ctx)
        if record is not None:
            text = re.sub(r" \([^)]*;[^)]*\)", "", (option.help or "").partition("  [")[0])
            clause = re.split(r"[;.] |\.$", text)[0]
            default = re.search(r"default: .*(?=\])", record[1])
            yield record[0], f"{clause}  [{default[0]}]" if default else clause


def _print_short_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(format_short_help(ctx), color=ctx.color)
        ctx.exit()
