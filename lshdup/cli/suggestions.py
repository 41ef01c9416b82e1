"""Errors of mistyped command lines, with the command line that was perhaps meant."""

import os
import re

import click

from lshdup.base.wording import did_you_mean, quote_command, quoted
from lshdup.cli.commands import COMMANDS
from lshdup.errors import ParameterError

#: Names that other programs have for commands.
_OTHER_COMMANDS = {
    other: command
    for command, others in (
        ("clusters", "dedup dedupe group groups"),
        ("pairs", "dupes duplicates find scan"),
        ("query", "search similar"),
        ("show", "compare diff"),
        ("signatures", "hash"),
    )
    for other in others.split()
}

_DELETE = "lshdup deletes and moves nothing; `lshdup clusters --emit drop` lists what can go"
_MOST = "`| head -n N` cuts a listing"
_SIZES = "--max-bytes N leaves out larger files, --min-tokens N texts of fewer words"
_ALWAYS = "leave it out: folders are read to any depth"

#: Options of other programs: the option of the same meaning, or what does their work.
_OTHER_OPTIONS = {
    other: option
    for option, others in (
        ("--bands", "--num-bands"),
        ("--exclude", "--ignore"),
        ("--files-from", "--files0-from"),
        ("--format csv", "--csv"),
        ("--format json", "--json"),
        ("--jobs", "--threads --num-proc --workers"),
        ("--no-store", "--no-cache"),
        ("--null", "--print0"),
        ("--perms", "--num-perm --num-hashes"),
        ("--rows", "--rows-per-band"),
        ("--shingle-size", "--ngram --ngram-size"),
        ("--text-field", "--column --field --text-key"),
        ("--threshold", "--similarity --similarity-threshold --min-similarity"),
    )
    for other in others.split()
} | {
    "--reference": "`lshdup pairs DOCS --against OTHER` compares with other texts",
    "--glob": "--include PATTERN takes only such files, --exclude PATTERN all others",
    "--ext": "--include '*.txt' takes the files with one ending",
    "--min-size": _SIZES,
    "--max-size": _SIZES,
    "--min-length": "--min-tokens N leaves out documents of fewer than N tokens, `lshdup passages "
    "--least N` passages",
    "--keep-newest": "`lshdup clusters DOCS --keep newest` says what to keep",
    "--top": _MOST,
    "--limit": _MOST,
    "-n": _MOST,
    "--html": "`lshdup report DOCS -o report.html` makes a page",
    "--passages": "`lshdup report --differences N` shows where N pairs differ",
    "--measure": "it is of pairs, query, report and show: groups by containment would chain all "
    "pages that hold one template",
    "--delete": _DELETE,
    "--move": _DELETE,
    "--dry-run": "leave it out: lshdup never changes or deletes a document",
    "--max-depth": "--exclude 'DOCS/*/' takes only files directly in DOCS",
    "--check-files": "name DOCS: what is deleted is left out, only what changed is read",
    "--replace-store": "leave it out: a store keeps what other runs have made",
    "-r": _ALWAYS,
    "--recursive": _ALWAYS,
}

#: How like an option or a command a word must be that is taken for a slip of the keyboard: of less
#: alike words, many mean something else.
_ALIKE = 0.75


def unknown_command(words: list[str]) -> ParameterError:
    """Return the error for a word that is no command.

    words : the command line behind `lshdup`, from that word on.
    """
    word, *rest = words
    exists = os.path.lexists(word)
    question = did_you_mean(
        _OTHER_COMMANDS.get(word.casefold(), word),
        COMMANDS,
        lambda command: quote_command("lshdup", command, *rest),
        _ALIKE,
    )
    if question and not (exists and "/" in word):
        return ParameterError(f"{quoted(word)} is no command", question)
    if exists or "/" in word:
        what = (
            ("a folder" if os.path.isdir(word) else "a file")
            if exists
            else "the name of a file or folder"
        )
        return ParameterError(
            f"{quoted(word)} is {what}, and no command is before it",
            f"run {quote_command('lshdup', 'pairs', *words)}",
        )
    return ParameterError(
        f"{quoted(word)} is no command",
        "`lshdup --help` lists the commands; if it is a folder: "
        + quote_command("lshdup", "pairs", *words),
    )


def translate_error(error: click.ClickException) -> ParameterError:
    """Return an error of Click with the wording of lshdup and a hint."""
    message, hint = error.format_message().strip(), ""
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "lshdup"
        hint = f"run `{path} --help`"
    if isinstance(error, click.NoSuchOption):
        message = f"there is no option {error.option_name}"
        hint = _option_instead(error) or hint
    message = re.sub(r"\s+", " ", message).removesuffix(".")
    message = re.sub(r"not a valid integer( range)?$", "no whole number", message)
    message = re.sub(r"\\udc([89a-f][0-9a-f])", r"\\x\1", message)  # A byte, as `printable` has it.
    return ParameterError(message[:1].lower() + message[1:], hint)


def _option_instead(error: click.NoSuchOption) -> str:
    """Return what to type instead of an option that the command does not have; "" if unknown."""
    other = _OTHER_OPTIONS.get(error.option_name, "")
    if " " in other.removeprefix("--format "):
        return other
    option = (other or error.option_name).partition(" ")[0]
    parameters = error.ctx.command.params if error.ctx is not None else ()
    for each in parameters:
        if option not in (*each.opts, *each.secondary_opts):
            continue
        variable = getattr(each, "variable", "")
        if not variable:
            return f"here it is {other}"
        is_flag = getattr(each, "is_flag", False)
        hint = f"{each.envvar}={int(option in each.opts) if is_flag else '…'} sets it"
        if variable == "index":
            hint += f", or `lshdup index DOCS {option}{'' if is_flag else ' …'}` before"
        return hint
    known = (each.lstrip("-") for each in error.possibilities or ())
    question = did_you_mean(error.option_name.lstrip("-"), known, "--{}".format, _ALIKE)
    names = {each.name for each in parameters}
    if question or error.ctx is None or "store" not in names or "files_from" in names:
        return question
    root = error.ctx.find_root()
    index = isinstance(root.command, click.Group) and root.command.get_command(root, "index")
    is_known = index and any(option in each.opts for each in index.params)
    return f"it is of `lshdup index DOCS`: run that with {option} before" if is_known else ""


def misplaced_option(words: list[str]) -> ParameterError:
    """Return the error for an option that stands before the command.

    words : the command line behind `lshdup`, from that option on.
    """
    at = next((at for at, word in enumerate(words) if word in COMMANDS), None)
    option = words[0].partition("=")[0]
    if at is None:
        example = "`lshdup pairs DOCS --threshold 0.9`"
        return ParameterError(
            f"{option} is before a command, and no command is behind it",
            f"options stand behind a command: {example}",
        )
    behind = quote_command("lshdup", words[at], *words[:at], *words[at + 1 :])
    return ParameterError(
        f"{option} is before the command {quoted(words[at])}; options stand behind it",
        f"run {behind}",
    )
