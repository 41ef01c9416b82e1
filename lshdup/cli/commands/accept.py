"""`lshdup accept`."""

import json
import os
import sys
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of, printable
from lshdup.cli.help import define, plain_option, stack
from lshdup.cli.options import store_options
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import DocumentName
from lshdup.errors import InputError, ParameterError
from lshdup.params import ACCEPTED_FILE, ShingleParams

if TYPE_CHECKING:
    from lshdup.collection.collection import Collection
    from lshdup.workspace.accepted import Accepted
    from lshdup.workspace.lookup import NamedDocument

_GIVE = "name two documents or more, or give lines as `lshdup pairs` prints them"


@dataclass(frozen=True)
class AcceptOptions:
    """The options of `accept`."""

    names: tuple[bytes, ...]
    note: str
    from_: str | None
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
    plain_option("--from", "from_", metavar="FILE", brief=True,
                 type=click.Path(readable=False, dir_okay=False, allow_dash=True),
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
        from lshdup.cli.messages import warn_of_changes
        from lshdup.workspace.accepted import Accepted, Line, make_line, names_from

        collection = session.load_last_collection()
        found = _look_up(session, pairs, collection, is_list=is_list)
        pairs = [pair for pair in pairs if all(name in found for name in pair)]
        files: dict[Path, Accepted] = {}
        texts: dict[bytes, int] = {}
        lines: dict[Path, list[Line]] = {}
        for a, b in pairs:
            path = options.accepted or _find_file(found[a], collection)
            if path not in files:
                files[path] = _load(path, collection)
            for name in (a, b):
                if name not in texts:
                    texts[name] = _fingerprint(found[name], collection, files[path].texts)
            named = names_from(path.parent, [found[name].name for name in (a, b)])
            if named[0] == named[1]:
                message = f"{printable(found[a].name)} is named twice"
                raise InputError(message, "name two documents")
            lines.setdefault(path, []).append(make_line(named[0], texts[a], named[1], texts[b]))
        for path, some in lines.items():
            made = files[path].add(some, options.note)
            made.save(path)
            new = count_of(len(made.lines.keys() - files[path].lines.keys()), "pair")
            session.console.summarize(f"{path}: {new} accepted, {len(made.lines):,} in all")
        if collection is not None:
            import numpy as np

            stored = sorted({each.index for each in found.values() if each.index >= 0})
            warn_of_changes(session, collection.documents, np.array(stored, np.int64))
        return session.console.exit_code()


def _read_pairs(options: AcceptOptions) -> tuple[list[tuple[bytes, bytes]], bool]:
    """Return the pairs of names, and whether a list has them. Raise if there are none."""
    names, source = options.names, options.from_
    if b"-" in names and (len(names) > 1 or source):
        message = "- cannot be combined with other names, or --from"
        raise ParameterError(message, "leave the others out")
    if names and source:
        message = "--from cannot be combined with names"
        raise ParameterError(message, "leave one of them out")
    source = source or ("-" if b"-" in names else None)
    if source is None:
        if len(set(names)) < 2:
            message = "nothing to accept"
            raise InputError(message, _GIVE)
        return list(combinations(dict.fromkeys(names), 2)), False
    what = "standard input" if source == "-" else source
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        message = f"--from {printable(what)} cannot be read: {error.strerror}"
        raise InputError(message, "name another file") from None
    pairs = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if line.startswith(b"{"):
                row = json.loads(line)
                pairs.append((os.fsencode(row["a"]), os.fsencode(row["b"])))
            elif line:
                a, b, *_ = line.rstrip(b"\r").split(b"\t")
                pairs.append((a, b))
        except (ValueError, KeyError, TypeError, RecursionError):
            message = f"line {number} of {printable(what)} is no pair"
            raise InputError(message, "give lines as `lshdup pairs` prints them") from None
    return pairs, True


def _look_up(
    session: Session,
    pairs: list[tuple[bytes, bytes]],
    collection: "Collection | None",
    *,
    is_list: bool,
) -> "dict[bytes, NamedDocument]":
    """Return the document of each name. Of a list, a name of none is an error that is said."""
    from lshdup.workspace.lookup import look_up

    found = {}
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        try:
            found[name] = look_up(name, collection)
        except InputError as error:
            if not is_list:
                raise
            session.console.error(error)
            continue
        if found[name].note:
            session.console.say(found[name].note)
    return found


def _find_file(a: "NamedDocument", collection: "Collection | None") -> Path:
    """Return the file for the pairs of a document: in the folder of DOCS that holds it."""
    from lshdup.workspace.accepted import list_folders

    folder = os.path.dirname(a.name)  # noqa: PTH120 (bytes path)
    if a.index >= 0 and collection is not None:
        path = os.path.realpath(collection.documents.path(a.index))
        folders = list_folders([collection.documents])
        above = (each for each in folders if path.startswith(os.path.realpath(each or b".") + b"/"))
        folder = max(above, key=len, default=folder)
    return Path(os.fsdecode(folder)) / ACCEPTED_FILE


def _load(path: Path, collection: "Collection | None") -> "Accepted":
    """Return the pairs of a file, none if it is new. Refuse one of another definition of texts."""
    from lshdup.workspace.accepted import Accepted, definition_of, load_accepted

    if not os.path.lexists(path):
        shingle = collection.shingle if collection is not None else ShingleParams()
        return Accepted(definition_of(shingle))
    accepted = load_accepted(path, "--accepted")
    if collection is not None:
        accepted.check(path, collection.shingle, "name another file: --accepted FILE")
    return accepted


def _fingerprint(
    document: "NamedDocument", collection: "Collection | None", texts: ShingleParams
) -> int:
    """Return the fingerprint of the text of a document: of one of the store, as it was compared."""
    from lshdup.shingling.shingler import Shingler

    if document.index >= 0 and collection is not None:
        made = collection.prints.text_prints[document.index]
    else:
        made = Shingler(texts).shingle_decoded([document.utf8(texts)])[1][0]
    if not made:
        message = f"{printable(document.name)} has no tokens: it is in no pair"
        raise InputError(message, "leave it out")
    return int(made)
