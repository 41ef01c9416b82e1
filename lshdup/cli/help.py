"""How `--help` shows the options of a command: in groups, a command's own first, and in few lines."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

F = TypeVar("F", bound=Callable[..., Any])

#: The options that several commands share, by what they are about. All others are the command's own.
_GROUPS = {
    "Documents": (
        "files_from", "include", "exclude", "hidden", "follow", "encoding", "text_field", "id_field", "max_bytes", "format_seconds",
        "format_memory", "check_content",
    ),
    "Shingles": ("tokens", "k", "bag", "keep_case", "no_normalize", "hash", "hash_key", "templates", "ignore_common"),
    "Signatures and bands": (
        "scheme", "schemes", "perms", "seed", "recall", "bands", "rows", "buckets", "max_bucket", "verify", "exact",
    ),
    "Output": ("format_", "header", "nul", "output", "plot"),
    "Running": ("store", "no_store", "engine", "master", "spark_conf", "jobs", "verbose", "quiet", "progress", "color"),
}  # fmt: skip
_GROUP_OF = {name: title for title, names in _GROUPS.items() for name in names}

#: Columns for an option; what is longer has a line of its own.
_OPTION = 24


class Command(click.Command):
    """A command whose options are shown in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *_GROUPS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                title = _GROUP_OF.get(parameter.name or "", "Options")
                groups[title].append((record[0].ljust(_OPTION), record[1]))  # so that all groups have the same columns
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, _OPTION)


class Option(click.Option):
    """An option whose number is called N or X, and which does not say that a number of things is at least none or one."""

    def make_metavar(self, ctx: click.Context) -> str:
        if self.metavar is None and isinstance(self.type, click.types.IntParamType):
            return "N"
        if self.metavar is None and isinstance(self.type, click.types.FloatParamType):
            return "X"
        return super().make_metavar(ctx)

    def get_help_extra(self, ctx: click.Context) -> "OptionHelpExtra":
        extra = super().get_help_extra(ctx)
        if isinstance(self.type, click.IntRange) and self.type.max is None and self.type.min in (0, 1):
            extra.pop("range", None)
        return extra


def plain_option(*names: str, **settings: Any) -> Callable[[F], F]:
    """An option without an environment variable."""
    return click.option(*names, cls=Option, **settings)
