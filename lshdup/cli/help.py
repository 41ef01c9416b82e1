"""Commands and options as Click has them, with groups in the help and variables in errors."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lshdup.base.messages import quote_command
from lshdup.cli.conflicts import is_typed
from lshdup.cli.short_help import OPTION_CELLS, short_help_option
from lshdup.errors import RERUN, LshdupError, ParameterError

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

F = TypeVar("F", bound=Callable[..., Any])

#: Options that several commands share, by heading of the help. All others are a command's own.
OPTION_GROUPS = {
    "Output": ("format_", "header", "max_rows", "nul", "output", "plot"),
    "Documents": (
        "files_from", "files0_from", "include", "exclude", "gitignore", "max_depth", "hidden",
        "follow", "encoding", "markup", "mail", "mail_headers", "mail_quotes", "text_field",
        "id_field", "archives", "split", "min_tokens", "max_bytes", "check_content", "check_files",
    ),
    "Running": ("store", "no_store", "wait", "jobs", "memory", "verbose", "quiet",
                "progress", "color"),
    "Shingles": ("tokens", "k", "bag", "keep_case", "no_normalize", "templates", "ignore_common"),
    "Signatures and bands": ("schemes", "perms", "recall", "bands", "rows", "max_bucket", "exact"),
    "Rarely needed": (
        "format_seconds", "format_memory", "verify", "hash", "hash_key", "scheme", "seed",
        "buckets",
    ),
}  # fmt: skip
_GROUP_OF = {name: title for title, names in OPTION_GROUPS.items() for name in names}


@contextlib.contextmanager
def name_variables(ctx: click.Context, parameters: list[click.Parameter]) -> Iterator[None]:
    """Name the variable, instead of the option, in errors about a value of a variable."""
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
                hint = error.hint.replace(f"leave {name} out", f"unset {each.envvar}")
                raise ParameterError(message, hint) from None
        raise


class Command(click.Command):
    """A command whose help shows the options in groups, and that knows words of other programs."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.context_settings.setdefault("help_option_names", ["--help"])
        self.params.append(short_help_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        while True:
            try:
                return super().parse_args(ctx, list(args))
            except click.NoSuchOption as error:
                from lshdup.cli.suggestions import translate_option

                if not translate_option(self, args, error):
                    raise

    def invoke(self, ctx: click.Context) -> Any:
        with name_variables(ctx, self.params):
            try:
                return super().invoke(ctx)
            except LshdupError as error:
                if RERUN in error.hint:
                    error.hint = error.hint.replace(RERUN, f"run {_with_documents(ctx)}")
                raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Options", *OPTION_GROUPS)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                title = _GROUP_OF.get(parameter.name or "", "Options")
                # Padded, so that all groups have the same columns.
                groups[title].append((record[0].ljust(OPTION_CELLS), record[1]))
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, OPTION_CELLS)


def _with_documents(ctx: click.Context) -> str:
    """Return the command that was typed with the word DOCS in it, if no documents were named.

    For a command that takes no DOCS, return the one that indexes them.
    """
    given, words = ctx.params, list(ctx.find_root().obj or [ctx.info_name])
    if "files_from" not in given:
        store = ["--store", str(given["store"])] if is_typed(ctx, "store") else []
        return quote_command("lshdup", "index", "DOCS", *store)
    if not (given["docs"] or given["files_from"] or given["files0_from"]):
        words.insert(words.index(ctx.info_name) + 1, "DOCS")
    if "--hash-key" in words[:-1]:  # a secret is not repeated
        words[words.index("--hash-key") + 1] = "KEY"
    return quote_command("lshdup", *(re.sub(r"^(--hash-key=).*", r"\1KEY", word) for word in words))


class Option(click.Option):
    """An option whose help calls a number N or X, and leaves out a range from 0 or 1.

    The help shows the variable by its name alone: it begins with LSHDUP_.
    """

    def make_metavar(self, ctx: click.Context) -> str:
        if self.metavar is None and isinstance(self.type, click.types.IntParamType):
            return "N"
        if self.metavar is None and isinstance(self.type, click.types.FloatParamType):
            return "X"
        return super().make_metavar(ctx)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].replace("env var: LSHDUP_", "LSHDUP_"))

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Return the name of the variable if the value is from there, else the option."""
        if (
            ctx is not None
            and ctx.get_parameter_source(self.name or "") == click.core.ParameterSource.ENVIRONMENT
        ):
            return str(self.envvar)
        return click.Parameter.get_error_hint(self, ctx)

    def handle_parse_result(
        self, ctx: click.Context, opts: Any, args: list[str]
    ) -> tuple[Any, list[str]]:
        with name_variables(ctx, [self]):
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
    """Return a decorator for an option without a variable; the help shows its default."""
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.option(*names, cls=Option, **settings)
