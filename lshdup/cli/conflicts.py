"""Options that were set explicitly, and errors of options that cannot be combined."""

from collections.abc import Iterable

import click
from click.core import ParameterSource

from lshdup.errors import ParameterError

#: Options that choose among DOCS, or read DOCS: a command without DOCS continues from the store.
_OF_DOCUMENTS = """
include exclude hidden gitignore max_depth follow max_bytes format_seconds format_memory text_field
id_field archives split check_content
""".split()

#: Options that the exact join ignores: it uses neither signatures nor bands.
_NOT_EXACT = "scheme perms seed recall bands rows buckets verify max_bucket".split()

#: Options that --measure containment ignores, which joins sets or samples of them.
_NOT_CONTAINED = "scheme perms bands rows buckets verify max_bucket".split()

#: Options that --same ignores: it compares fingerprints of whole documents. A threshold is taken
#: and ignored, as every two documents that are the same reach it.
_NOT_WITH_SAME = """
measure exact verify max_bucket linkage histogram step examples plot recall bands rows buckets
""".split()


def is_set(ctx: click.Context, name: str) -> bool:
    """Return whether an option has a value of the command line or of its variable."""
    return ctx.get_parameter_source(name) != ParameterSource.DEFAULT


def is_typed(ctx: click.Context, name: str) -> bool:
    """Return whether an option stands on the command line."""
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def refuse(ctx: click.Context, names: Iterable[str], where: str) -> None:
    """Raise ParameterError if one of these options was typed, as this run would ignore it.

    names : parameters of the command; of other names none was typed.
    where : the end of the message, for instance ``with --exact``.
    """
    for name in filter(lambda name: is_typed(ctx, name), names):
        option = next(each for each in ctx.command.params if each.name == name)
        why = "has no effect" if where.startswith("without") else "cannot be combined"
        message = f"{max(option.opts, key=len)} {why} {where}"
        raise ParameterError(message, "leave it out")


def refuse_with_exact(ctx: click.Context) -> None:
    """Raise ParameterError if an option was typed that the exact join, if it runs, ignores."""
    if ctx.params.get("exact"):
        refuse(ctx, (*_NOT_EXACT, "memory"), "with --exact")
    elif ctx.params.get("measure") == "containment":
        refuse(ctx, _NOT_CONTAINED, "with --measure containment")


def refuse_with_containment(ctx: click.Context) -> None:
    """Raise ParameterError if an option was typed that a look at all sets, if one runs, ignores."""
    if ctx.params["measure"] == "containment":
        refuse(ctx, _NOT_EXACT, "with --measure containment")


def refuse_with_same(ctx: click.Context, same: str | None) -> None:
    """Raise ParameterError if an option was typed that --same, if it was typed, ignores."""
    if same is not None:
        refuse(ctx, _NOT_WITH_SAME, f"with --same {same}, which compares whole documents")


def refuse_without_documents(ctx: click.Context) -> None:
    """Raise ParameterError if an option was typed that means nothing without DOCS."""
    refuse(ctx, _OF_DOCUMENTS, "without DOCS")


def refuse_without_store(ctx: click.Context) -> None:
    """Raise ParameterError if an option was typed that means nothing with --no-store."""
    if ctx.params.get("no_store"):
        refuse(ctx, ("wait",), "with --no-store")
