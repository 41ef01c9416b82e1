"""`lshdup completion`: scripts that complete words in shells, and what they ask.

Click's own scripts take neither blanks in names nor other bytes than UTF-8: these do, and quoting is left to each shell.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from lshdup.cli.output import Target
from lshdup.store import name_table

#: Each asks `lshdup completion SHELL --complete LINE` for lines of kind, value and help.
_SCRIPTS = {
    "bash": r"""_lshdup() {
    local kind value help
    COMPREPLY=()
    while IFS=$'\t' read -r kind value help; do
        case $kind in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            name)
                compopt -o filenames
                [[ $value == */ ]] && compopt -o nospace
                COMPREPLY+=("$value") ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <("$1" completion bash --complete "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -F _lshdup lshdup
""",
    "zsh": r"""#compdef lshdup
_lshdup() {
    local kind value help
    local -a plain described names folders
    while IFS=$'\t' read -r kind value help; do
        case $kind in
            file) _files ;;
            dir) _files -/ ;;
            name) if [[ $value == */ ]]; then folders+=("$value"); else names+=("$value"); fi ;;
            plain)
                plain+=("$value")
                described+=("$value${help:+  -- $help}") ;;
        esac
    done < <("${words[1]}" completion zsh --complete "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)
    (( $#plain )) && compadd -l -d described -- "${plain[@]}"
    (( $#names )) && compadd -U -f -- "${names[@]}"
    (( $#folders )) && compadd -U -f -S '' -- "${folders[@]}"
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _lshdup "$@"
else
    compdef _lshdup lshdup
fi
""",
    "fish": r"""function __lshdup_complete
    for each in (lshdup completion fish --complete (commandline -cp | string collect) 2>/dev/null)
        set -l parts (string split -m 2 \t -- $each)
        switch $parts[1]
            case file
                __fish_complete_path (commandline -ct)
            case dir
                __fish_complete_directories (commandline -ct)
            case '*'
                printf '%s\t%s\n' $parts[2] $parts[3]
        end
    end
end
complete --command lshdup --no-files --arguments '(__lshdup_complete)'
""",
}


@click.command(
    "completion",
    short_help="a script that completes words in bash, zsh or fish",
    epilog="""\b
Examples:
  lshdup completion bash > lshdup.bash && . ./lshdup.bash && echo ready
  lshdup completion fish | head -3
""",
)
@click.argument("shell", type=click.Choice(list(_SCRIPTS)))
@click.option(
    "--complete",
    "line",
    hidden=True,
    help="What the scripts ask: completions of the end of this command line.",
)
def command(**options: Any) -> int:
    """Print a script for a shell that completes commands, options, their values, and names of documents of the store.

    \b
    eval "$(lshdup completion bash)"          in ~/.bashrc
    eval "$(lshdup completion zsh)"           in ~/.zshrc, after compinit
    lshdup completion fish | source           in ~/.config/fish/config.fish

    `query`, `show` and `shingle --show` complete names of the last run, folder by folder; what is the beginning of no name is completed
    to names that have it behind a slash, or at their end. Names that hold a tab or a newline are left out.
    """  # noqa: D301
    if options["line"] is None:
        Target("tsv").write_lines(_SCRIPTS[options["shell"]].splitlines())
        return 0
    Target("tsv").write_raw(_answers(options["shell"], options["line"]))
    return 0


def documents(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Names of the store that an argument may mean; files, where it means none."""
    store = ctx.params.get("store") or Path(os.environ.get("LSHDUP_STORE") or ".lshdup")
    known = name_table.load(Path(store))
    found: list[bytes] = []
    if known is not None:
        table, way = known
        typed = os.fsencode(incomplete)
        if typed.startswith(way):
            found = [way + name for name in table.beginning_with(typed[len(way) :])]
        elif way.startswith(typed):
            found = [way]
        if not found and typed:
            found = [way + name for name in table.within(typed)]
    return [CompletionItem(os.fsdecode(name), type="name") for name in found] or [
        CompletionItem(incomplete, type="file")
    ]


class _Asked(ShellComplete):
    """Click's way from words to completions."""

    name = "lines"
    source_template = ""


def _answers(shell: str, line: str) -> Iterable[bytes]:
    from lshdup.cli.main import lshdup

    *words, last = split_arg_string(
        line + "\x01"
    )  # so that the last word is there even if it is empty
    incomplete = last.replace("\x01", "")
    # Readline begins a new word behind these: it wants what comes after.
    before = max(incomplete.rfind(":"), incomplete.rfind("=")) + 1 if shell == "bash" else 0
    for item in _Asked(lshdup, {}, "lshdup", "").get_completions(words[1:], incomplete):
        value = os.fsencode(item.value)
        if (
            item.type in ("name", "plain")
            and before
            and value.startswith(os.fsencode(incomplete[:before]))
        ):
            value = value[len(os.fsencode(incomplete[:before])) :]
        if b"\t" not in value and b"\n" not in value:
            yield b"\t".join([item.type.encode(), value, (item.help or "").encode()]) + b"\n"
