"""How `--help` shows the options of a command: in groups, a command's own first, and in few lines."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lshdup.errors import ParameterError

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

F = TypeVar("F", bound=Callable[..., Any])

#: The options that several commands share, by what they are about. All others are the command's own.
OPTION_GROUPS = {
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
_GROUP_OF = {name: title for title, names in OPTION_GROUPS.items() for name in names}

#: Columns for an option; what is longer has a line of its own.
_OPTION = 24


@contextlib.contextmanager
def naming_variables(ctx: click.Context, parameters: list[click.Parameter]) -> Iterator[None]:
    """What is wrong with the value of an option that was not typed is said of the variable that it is from."""
    try:
        yield
    except ParameterError as error:
        for each in parameters:
            name = next((name for name in each.opts if error.message.startswith(f"{name} ")), "")
            if (
                name
                and ctx.get_parameter_source(each.name or "")
                == click.core.ParameterSource.ENVIRONMENT
            ):
                message = f"{each.envvar}{error.message.removeprefix(name)}"
                raise ParameterError(message, error.hint) from None
        raise


class Command(click.Command):
    """A command whose options are shown in groups."""

    def invoke(self, ctx: click.Context) -> Any:
        with naming_variables(ctx, self.params):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Options", *OPTION_GROUPS)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                title = _GROUP_OF.get(parameter.name or "", "Options")
                groups[title].append(
                    (record[0].ljust(_OPTION), record[1])
                )  # so that all groups have the same columns
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

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Its variable if that is where its value is from, else what it is called when it is typed."""
        if (
            ctx is not None
            and ctx.get_parameter_source(self.name or "") == click.core.ParameterSource.ENVIRONMENT
        ):
            return str(self.envvar)
        return click.Parameter.get_error_hint(self, ctx)

    def handle_parse_result(
        self, ctx: click.Context, opts: Any, args: list[str]
    ) -> tuple[Any, list[str]]:
        with naming_variables(ctx, [self]):
            return super().handle_parse_result(ctx, opts, args)

    def get_help_extra(self, ctx: click.Context) -> "OptionHelpExtra":
        extra = super().get_help_extra(ctx)
        if (
            isinstance(self.type, click.IntRange)
            and self.type.max is None
            and self.type.min in (0, 1)
        ):
            extra.pop("range", None)
        return extra


def plain_option(*names: str, **settings: Any) -> Callable[[F], F]:
    """An option without an environment variable."""
    return click.option(*names, cls=Option, **settings)
