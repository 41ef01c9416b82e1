"""Types of option values: lists, lines, sizes, shares, and names of documents, which a shell
completes. params.py checks their domains.
"""

import os
import re
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.wording import quoted
from lshdup.errors import LshdupError, ParameterError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from lshdup.sources.document_list import DocumentList

if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """A base that takes the type of its values, as Click's own does from 8.4 on."""

        def __class_getitem__(cls, _: type) -> type:
            return cls


class Lines(click.types.StringParamType):
    """Texts that may have blanks in them, one a line where a variable holds several."""

    envvar_list_splitter = "\n"


class Pattern(ParamType[str]):
    """A regular expression over bytes, as it was typed."""

    name = "regex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            re.compile(os.fsencode(value))
        except re.error as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)
        return str(value)


class OutputPath(click.Path):
    """A path that the command may write: `cli.session` holds it against all that is read."""

    def __init__(self, path_type: type[str | Path], *, dir_okay: bool = True) -> None:
        super().__init__(readable=False, dir_okay=dir_okay, allow_dash=True, path_type=path_type)


class Level(ParamType[int]):
    """How often a flag was typed; in a variable also yes or no."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        return int(value) if value.isdecimal() else int(click.BOOL.convert(value, param, ctx))


class Size(ParamType[int]):
    """A number of bytes, with or without a unit: KB (1,024 bytes), MB, GB or TB.

    least : the smallest number, where params.py does not check it.
    """

    name = "size"

    def __init__(self, least: int = 0) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+)\s*([KMGT]?)I?B?", str(value).upper())
        if match is None:
            self.fail(f"{value!r} is not a number of bytes, or like 500MB or 2GB", param, ctx)
        size = int(match[1]) << 10 * " KMGT".index(match[2] or " ")
        if size < self._least:
            self.fail(f"{value!r} is less than {self._least >> 20}MB", param, ctx)
        return size


class Share(ParamType[float]):
    """A share such as 0.9 or 90%. For 0,9 the error says what to type.

    or_number : whether a whole number is allowed too.

    >>> [Share()(text) for text in ("0.9", "99.9%", "100%")]
    [0.9, 0.999, 1.0]
    >>> Share(or_number=True)("30")
    30.0
    """

    name = "share"

    def __init__(self, *, or_number: bool = False) -> None:
        self._or_number = or_number

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text, or_number = str(value), self._or_number
        option = max(param.opts, key=len) if param is not None else self.name
        percent = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*", text, re.ASCII)
        try:
            share = float(f"{percent[1]}e-2" if percent else text)
        except ValueError:
            meant = re.fullmatch(r"\s*([0-9]*)[.,]?([0-9]*)\s*(%?)\s*", text)
            hint = (
                "write it like 0.9"
                if not or_number
                else "write a share like 0.3, or a number of documents"
            )
            if meant and (meant[1] or meant[2]):
                number = float(f"{meant[1] or 0}.{meant[2] or 0}") / (100 if meant[3] else 1)
                hint = f"write {number:.12g}" if number <= 1 else hint
            message = f"{option} is {quoted(text)}, which is no number"
            raise ParameterError(message, hint) from None
        if percent and (share > 1 or (or_number and share == 1)):
            most = "less than 100 %" if or_number else "at most 100 %"
            message = f"{option} is {quoted(text)}; it must be {most}"
            raise ParameterError(message)
        return share


class Listed(ParamType[tuple[Any, ...]]):
    """A tuple of values separated by commas: ``400,600,800``. Of floats: shares."""

    name = "list"

    def __init__(self, item: type) -> None:
        self._item = item

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        try:
            read = Share() if self._item is float else self._item
            return tuple(map(read, str(value).split(",")))
        except (ValueError, ParameterError):
            self.fail(
                f"{value!r} is not a list of {self._item.__name__}s separated by commas", param, ctx
            )


#: More candidates than this help nobody to choose one.
MOST_CANDIDATES = 300


class PlotPath(OutputPath):
    """The file of a figure: an error comes before any work if it cannot be made or written."""

    def __init__(self) -> None:
        super().__init__(Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx is None or not ctx.resilient_parsing:
            from lshdup.evaluation.plots import check_path

            check_path(path)
        return path


class DocumentName(click.Path):
    """A name of a document of the store, a file, or - for standard input."""

    def __init__(self) -> None:
        super().__init__(readable=False, allow_dash=True, path_type=bytes)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the documents of the store whose names begin so; without any, files.

        Names that are not UTF-8, or hold control characters, are skipped: Click cannot pass them
        on.
        """
        from click.shell_completion import CompletionItem

        from lshdup.base.run import Run
        from lshdup.store.store import Store, nearest_store, refuse_link
        from lshdup.workspace.loading import load_last_collection
        from lshdup.workspace.workspace import Workspace

        typed = ctx.params.get("store")
        store = Path(typed or nearest_store())
        names: list[bytes] = []
        try:
            if not typed:
                refuse_link(store)
            collection = load_last_collection(Workspace(Run.quiet(), Store(store), read_only=True))
            if collection is not None:
                names = find_names(collection.documents, os.fsencode(incomplete))
        except (LshdupError, OSError):
            pass  # A shell that completes a word has no place for errors.
        texts = (os.fsdecode(name) for name in names)
        items = [CompletionItem(text) for text in texts if text.isprintable()]
        return items or [CompletionItem(incomplete, type="file")]


def find_names(documents: "DocumentList", start: bytes) -> list[bytes]:
    """Return the names, as typed from the current folder, that begin with `start`.

    Of more than `MOST_CANDIDATES` names the first ones and the last one are returned: their
    common beginning is that of all, which is what a shell completes to.

    Cost: two binary searches and `MOST_CANDIDATES` names.
    """
    import numpy as np

    folder = b""  # the way from here to where names start from
    if documents.home and documents.are_paths():
        folder = os.path.relpath(documents.home) + b"/"
    if not (start.startswith(folder) or folder.startswith(start)):
        return []
    rest = start[len(folder) :]
    first = bisect_left(documents.names, rest)
    end = bisect_right(documents.names, rest, first, key=lambda name: name[: len(rest)])
    numbers = np.arange(first, min(end, first + MOST_CANDIDATES))
    if len(numbers) == MOST_CANDIDATES:
        numbers[-1] = end - 1
    return documents.typed_names(numbers)
