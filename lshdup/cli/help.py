"""Commands and options as Click has them, and what Click has not: groups and a short form of the
help, options that exclude or require others, settings of a variable alone, and typed options.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from lshdup.base.wording import quote_command
from lshdup.errors import RERUN, LshdupError, ParameterError

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

F = TypeVar("F", bound=Callable[..., Any])

#: Headings of the help, in order. The first one is of the options that a command has for itself.
OWN, *SHARED = GROUPS = (
    "Options", "Output", "Documents", "Running", "Shingles", "Signatures and bands",
    "Rarely needed",
)  # fmt: skip

#: Cells of the column of options in the help; a longer option has a line of its own.
_OPTION_CELLS = 24

#: How many options and examples `-h` shows.
_MOST, _EXAMPLES = 10, 2


class Option(click.Option):
    """An option whose help calls a number N or X, and leaves out a range from 0 or 1.

    The help shows the variable by its name alone: it begins with LSHDUP_.

    group : heading of the help. brief : whether `-h` shows the option.
    variable : "alone" if only the variable sets it, so that it is no option; "index" if it is one
        of `lshdup index`.
    excludes : conditions under which the option would be ignored: another option, perhaps with a
        value ("--measure containment"), or DOCS.
    requires : conditions of which one must hold for the option to have an effect.
    """

    def __init__(
        self,
        *arguments: Any,
        group: str = OWN,
        brief: bool = False,
        variable: str = "",
        excludes: tuple[str, ...] = (),
        requires: tuple[str, ...] = (),
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.group, self.brief, self.variable = group, brief, variable
        self.excludes, self.requires = excludes, requires

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        if not self.variable:
            super().add_to_parser(parser, ctx)

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the variable, unless a preset that was typed has another."""
        return None if self.name in (ctx.default_map or {}) else super().resolve_envvar_value(ctx)

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
        if ctx is not None and _source(ctx, self) == ParameterSource.ENVIRONMENT:
            return str(self.envvar)
        return click.Parameter.get_error_hint(self, ctx)

    def get_help_extra(self, ctx: click.Context) -> "OptionHelpExtra":
        extra = super().get_help_extra(ctx)
        if (
            isinstance(self.type, click.IntRange)
            and self.type.max is None
            and self.type.min in (0, 1)
        ):
            extra.pop("range", None)
        return extra

    def check_rules(self, ctx: click.Context) -> None:
        """Raise ParameterError if the option was typed and this run would ignore it."""
        if not is_typed(ctx, self.name or ""):
            return
        for condition in self.excludes:
            if _holds(ctx, condition):
                _refuse(self, f"cannot be combined with {_label(ctx, condition)}")
        known = [each for each in self.requires if _holds(ctx, each) is not None]
        if known and not any(_holds(ctx, each) for each in known):
            where = " or ".join(_label(ctx, each) for each in known)
            _refuse(self, f"has no effect without {where}")


def _refuse(option: click.Parameter, why: str, value: object = True) -> None:
    names = option.opts if value is not False else option.secondary_opts or option.opts
    message = f"{max(names, key=len)} {why}"
    raise ParameterError(message, "leave it out")


def _parameter(ctx: click.Context, condition: str) -> click.Parameter | None:
    """Return the parameter of a command that a condition is about; None if it has none."""
    name = condition.partition(" ")[0]
    known = (each for each in ctx.command.params if name in (*each.opts, each.opts[0].upper()))
    return next(known, None)


def _holds(ctx: click.Context, condition: str) -> bool | None:
    """Return whether a condition holds; None if it is of an option that the command has not."""
    parameter, (_, _, value) = _parameter(ctx, condition), condition.partition(" ")
    if parameter is None:
        return None
    given = ctx.params[parameter.name or ""]
    if condition == "DOCS":
        return bool(given) or ctx.params.get("files_from") is not None
    return given == value if value else bool(given)


def _label(ctx: click.Context, condition: str) -> str:
    """Return a condition as a message names it: with the value, or what stands for one."""
    parameter = _parameter(ctx, condition)
    if parameter is None or parameter.param_type_name == "argument" or " " in condition:
        return condition
    is_choice = isinstance(parameter.type, click.Choice)
    value = (is_choice and ctx.params[parameter.name or ""]) or parameter.metavar
    return f"{condition} {value}" if value else condition


def _source(ctx: click.Context, parameter: click.Parameter) -> ParameterSource | None:
    return ctx.get_parameter_source(parameter.name or "")


def is_set(ctx: click.Context, name: str) -> bool:
    """Return whether an option has a value of the command line, of a preset or of its variable."""
    known = ctx.get_parameter_source(name)
    return known != ParameterSource.DEFAULT if known else name in (ctx.default_map or {})


def is_typed(ctx: click.Context, name: str) -> bool:
    """Return whether an option stands on the command line."""
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def refuse(ctx: click.Context, names: Iterable[str], where: str) -> None:
    """Raise ParameterError if one of these options was typed, as only its command can know.

    names : parameters of the command; of other names none was typed.
    where : the end of the message, for instance ``with folders``.
    """
    for parameter in ctx.command.params:
        if parameter.name in names and is_typed(ctx, parameter.name):
            why = "has no effect" if where.startswith("without") else "cannot be combined"
            _refuse(parameter, f"{why} {where}", ctx.params[parameter.name])


@contextlib.contextmanager
def _name_variables(ctx: click.Context, parameters: list[click.Parameter]) -> Iterator[None]:
    """Name the variable, instead of the option, in errors about a value of a variable."""
    try:
        yield
    except ParameterError as error:
        for each in parameters:
            name = next((name for name in each.opts if error.message.startswith(f"{name} ")), "")
            if name and _source(ctx, each) == ParameterSource.ENVIRONMENT:
                message = f"{each.envvar}{error.message.removeprefix(name)}"
                hint = error.hint.replace(f"leave {name} out", f"unset {each.envvar}")
                raise ParameterError(message, hint) from None
        raise


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Return a decorator for an option that has a variable, LSHDUP_…; the help shows both."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    settings.setdefault("envvar", "LSHDUP_" + long[2:].replace("-", "_").upper())
    return plain_option(*names, show_envvar=True, **settings)


def plain_option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Return a decorator for an option without a variable; the help shows its default."""
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.option(*names, cls=Option, **settings)


def setting(*names: str, **settings: Any) -> Callable[[F], F]:
    """Return a decorator for what only a variable sets."""
    return option(*names, variable="alone", hidden=True, **settings)


def preset(
    name: str, values: Mapping[str, Any], of: Mapping[str, Mapping[str, Any]], **settings: Any
) -> Callable[[F], F]:
    """Return a decorator for an option that stands for others: what is typed beside it wins.

    values : by parameter; one that the command has not is a part of its request all the same.
    of : the values of commands that have others.
    """

    def set_values(ctx: click.Context, _: click.Parameter, is_typed: bool) -> bool:
        if is_typed:
            ctx.default_map = dict(of.get(ctx.command.name or "", values))
        return is_typed

    return plain_option(name, is_flag=True, is_eager=True, callback=set_values, **settings)


def spell(values: Mapping[str, Any]) -> str:
    """Return parameters as they are typed.

    >>> spell({"tokens": "char", "k": 5})
    '--tokens char -k 5'
    """
    return " ".join(f"{'-' if len(name) == 1 else '--'}{name} {values[name]}" for name in values)


def stack(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that does what all these do, from the last to the first."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def amend(*names: str, **changes: Any) -> Callable[[F], F]:
    """Return a decorator that changes attributes of options below it, for one command."""

    def decorate(function: F) -> F:
        for parameter in getattr(function, "__click_params__", ()):
            if parameter.name in names:
                for name, value in changes.items():
                    setattr(parameter, name, value)
        return function

    return decorate


class Command(click.Command):
    """A command with Click's help in groups, and options that know what they exclude.

    takes : frozen dataclass of which the function gets an instance behind the context, made of the
        parameters; None for a function that takes the context alone.
    """

    def __init__(self, *arguments: Any, takes: type[Any] | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.takes = takes
        self.context_settings.setdefault("help_option_names", ["--help"])
        self.params.append(
            click.Option(["-h"], is_flag=True, is_eager=True, expose_value=False,
                         callback=_print_short_help,
                         help="Show the options that most people need.")
        )  # fmt: skip

    def options(self, ctx: click.Context, group: str = "") -> list[Option]:
        """Return the options that help shows, all or those below a heading."""
        every = (each for each in self.get_params(ctx) if isinstance(each, Option))
        shown = [each for each in every if each.get_help_record(ctx)]
        return [each for each in shown if group in ("", each.group)]

    def settings(self) -> list[Option]:
        """Return what only variables set."""
        every = (each for each in self.params if isinstance(each, Option))
        return [each for each in every if each.variable]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _name_variables(ctx, self.params):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. A hint that says to run it with DOCS gets the command that was typed."""
        with _name_variables(ctx, self.params):
            try:
                for each in self.params:
                    if isinstance(each, Option):
                        each.check_rules(ctx)
                assert self.callback is not None
                if self.takes is None:
                    return ctx.invoke(self.callback, ctx)
                known = {each.name for each in fields(self.takes)} & ctx.params.keys()
                options = self.takes(**{name: ctx.params[name] for name in known})
                return ctx.invoke(self.callback, ctx, options)
            except LshdupError as error:
                if RERUN in error.hint:
                    error.hint = error.hint.replace(RERUN, f"run {_with_documents(ctx)}")
                raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        plain = [each for each in self.get_params(ctx) if type(each) is click.Option]
        for title in GROUPS:
            every = [*self.options(ctx, title), *(plain if title == OWN else ())]
            records = [record for each in every if (record := each.get_help_record(ctx))]
            # Padded, so that all groups have the same columns.
            padded = [(name.ljust(_OPTION_CELLS), text) for name, text in records]
            if padded:
                with formatter.section(title):
                    formatter.write_dl(padded, _OPTION_CELLS)
        if variables := [str(each.envvar) for each in self.settings()]:
            with formatter.section("Set by variables alone (docs/reference/options.md)"):
                formatter.write_text(", ".join(variables))

    def format_short_help(self, ctx: click.Context) -> str:
        """Return what -h prints: the ten options that most people need, and two examples."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        first = (self.help or "").split("\n\n", 1)[0].split("\f")[0]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(first.split()))
        every = sorted(self.options(ctx), key=lambda each: GROUPS.index(each.group))
        with formatter.section("Options"):
            brief = [_shorten(ctx, each) for each in every if each.brief]
            formatter.write_dl(brief[:_MOST], _OPTION_CELLS)
        examples = re.findall(
            r"^ *(lshdup .+)$", (self.epilog or "").partition("Examples:")[2], re.M
        )
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in examples[:_EXAMPLES]))
        formatter.write(f"\nAll {len(every)} options: {ctx.command_path} --help\n")
        return formatter.getvalue().rstrip("\n")


def define(
    name: str, takes: type[Any] | None = None, **settings: Any
) -> Callable[[Callable[..., int]], Command]:
    """Return the decorator that makes a function a command. takes : of `Command`."""
    return click.command(name, cls=Command, takes=takes, **settings)


def _shorten(ctx: click.Context, option: Option) -> tuple[str, str]:
    """Return the names of an option, and the first clause of its help with the default."""
    name, words = option.get_help_record(ctx) or ("", "")
    text = re.sub(r" \([^)]*;[^)]*\)", "", (option.help or "").partition("  [")[0])
    clause = re.split(r"[;.] |\.$", text)[0]
    default = re.search(r"default: .*(?=\])", words)
    return name, f"{clause}  [{default[0]}]" if default else clause


def _print_short_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        assert isinstance(ctx.command, Command)
        click.echo(ctx.command.format_short_help(ctx), color=ctx.color)
        ctx.exit()


def _with_documents(ctx: click.Context) -> str:
    """Return the command that was typed with the word DOCS in it, if no documents were named.

    For a command that takes no DOCS, return the one that indexes them in the same way.
    """
    given, words = ctx.params, list(ctx.find_root().obj or [ctx.info_name])
    if "files_from" not in given:
        options: list[str] = []
        for each in ctx.command.params:
            value, group = given.get(each.name or ""), getattr(each, "group", "")
            is_kept = each.name == "store" or (group == "Shingles" and not isinstance(value, tuple))
            if is_kept and is_typed(ctx, each.name or ""):
                options += [each.opts[0], str(value)][: 2 - (value is True)]
        return quote_command("lshdup", "index", "DOCS", *options)
    if not (given["docs"] or given["files_from"]):
        words.insert(words.index(ctx.info_name) + 1, "DOCS")
    return quote_command("lshdup", *words)
