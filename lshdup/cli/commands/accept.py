"""`lshdup accept`."""

import json
import os
import sys
from itertools import chain, combinations
from pathlib import Path
from typing import IO

import click

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of, printable
from lshdup.cli.help import define, plain_option, stack
from lshdup.cli.options import store_options
from lshdup.cli.session import open_session
from lshdup.cli.types import DocumentName
from lshdup.errors import InputError
from lshdup.params import ACCEPTED_FILE, ShingleParams
from lshdup.workspace.lookup import NamedDocument, look_up, merge_shingle_params


@dataclass(frozen=True)
class AcceptOptions:
    """The options of `accept`."""

    names: tuple[bytes, ...]
    note: str
    from_: IO[bytes] | None
    accepted: Path | None


@define(
    "accept",
    AcceptOptions,
    short_help="remember that documents are no duplicates",
    epilog="""\b
Examples:
  lshdup index sample_corpus && lshdup accept ISC.txt MIT.txt --note 'two licences'
  lshdup pairs sample_corpus/odd -t 0.9 | lshdup accept -
""",
)
@stack(
    click.argument("names", nargs=-1, type=DocumentName(), metavar="[A B...|-]"),
    plain_option("--note", default="", metavar="TEXT", show_default=False, brief=True,
                 help="Why, for who reads the file."),
    plain_option("--from", "from_", metavar="FILE", brief=True, excludes=("NAMES",),
                 type=click.File("rb"),
                 help="Accept the pairs in this file: lines of `lshdup pairs`, or the list that "
                      "the page of `lshdup report` saves; - is standard input."),
    plain_option("--accepted", metavar="FILE", show_default=f"{ACCEPTED_FILE} beside DOCS",
                 type=click.Path(readable=False, dir_okay=False, path_type=Path), brief=True,
                 help="Add them there."),
    store_options,
)  # fmt: skip
def command(ctx: click.Context, options: AcceptOptions) -> int:
    """Remember that documents are no duplicates: all pairs of those that are named, or with - the
    pairs on standard input.

    An accepted pair is in no answer of `pairs`, `clusters`, `folders`, `report` and `query`, until
    the text of one of its two documents changes. Neither is dropped for the other.

    A and B are names in the store or their unique ends, or other files. The pairs are written to a
    file in the folder that DOCS of the last run names, or beside the file; of documents outside of
    the store, beside A. To forget a pair, remove its line.
    """
    pairs, is_list = _read_pairs(options)
    with open_session(ctx) as session:
        from lshdup.workspace import accepted

        collection = session.load_last_collection()
        found: dict[bytes, tuple[NamedDocument, int]] = {}
        shingle = merge_shingle_params(collection, session.request.given)
        for name in dict.fromkeys(chain(*pairs)):
            try:
                document = look_up(name, collection)
                found[name] = document, _fingerprint(document, shingle)
            except InputError as error:
                if not is_list:
                    raise
                session.console.error(error)
        lines: dict[Path, list[accepted.Line]] = {}
        for pair in pairs:
            if all(name in found for name in pair):
                (a, a_text), (b, b_text) = map(found.__getitem__, pair)
                path = options.accepted or _find_file(a)
                named = accepted.names_from(path.parent, [a.name, b.name])
                line = accepted.make_line(named[0], a_text, named[1], b_text)
                lines.setdefault(path, []).append(line)
        for path, some in lines.items():
            before = accepted.Accepted(accepted.definition_of(shingle))
            if os.path.lexists(path):
                before = accepted.load_accepted(path, "--accepted")
            before.check(path, shingle, "name another file: --accepted FILE")
            made = before.add(some, options.note)
            made.save(path)
            new = count_of(len(made.lines.keys() - before.lines.keys()), "pair")
            session.console.summarize(f"{path}: {new} accepted, {len(made.lines):,} in all")
        return session.console.exit_code()


def _read_pairs(options: AcceptOptions) -> tuple[list[tuple[bytes, bytes]], bool]:
    """Return the pairs of names, and whether a list has them. Raise InputError without any."""
    names, hint = dict.fromkeys(options.names), "give lines as `lshdup pairs` prints them"
    source = sys.stdin.buffer if tuple(names) == (b"-",) else options.from_
    pairs = [] if b"-" in names else list(combinations(names, 2))
    for number, line in enumerate(source.read().split(b"\n") if source is not None else (), 1):
        try:
            if line.startswith(b"{"):
                row = json.loads(line)
                pairs.append((os.fsencode(row["a"]), os.fsencode(row["b"])))
            elif line:
                a, b, *_ = line.rstrip(b"\r").split(b"\t")
                pairs.append((a, b))
        except (ValueError, KeyError, TypeError, RecursionError):
            message = f"line {number} of the list is no pair"
            raise InputError(message, hint) from None
    if not pairs:
        message = "nothing to accept"
        raise InputError(message, f"name two documents or more, or {hint}")
    return pairs, source is not None


def _find_file(document: NamedDocument) -> Path:
    """Return the file for the pairs of a document: in the folder of DOCS that holds it."""
    from lshdup.workspace.accepted import list_folders

    folder = os.path.dirname(document.name)  # noqa: PTH120 (bytes path)
    if document.collection is not None:
        documents = document.collection.documents
        path = os.path.realpath(documents.path(document.index))
        folders = [(os.path.realpath(each or b"."), each) for each in list_folders([documents])]
        above = (each for each in folders if os.path.commonpath([each[0], path]) == each[0])
        _, folder = max(above, default=(b"", folder))
    return Path(os.fsdecode(folder)) / ACCEPTED_FILE


def _fingerprint(document: NamedDocument, shingle: ShingleParams) -> int:
    """Return the fingerprint of the text of a document: of one of the store, as it was compared."""
    import numpy as np

    from lshdup.shingling.shingler import Shingler

    if document.collection is not None:
        if len(document.collection.documents.changed(np.array([document.index]))):
            message = f"{printable(document.name)} has changed since it was compared"
            raise InputError(message, "run `lshdup pairs DOCS` again")
        made = document.collection.prints.text_prints[document.index]
    else:
        made = Shingler(shingle).shingle_decoded([document.utf8(shingle)])[1][0]
    if not made:
        message = f"{printable(document.name)} has no tokens: it is in no pair"
        raise InputError(message, "leave it out")
    return int(made)
