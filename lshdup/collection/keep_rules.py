"""The order in which documents of a cluster are preferred to be kept, and the names that people and
desktops give to copies and to what is parked, for `--keep shortest-path`.

One table of words, in the languages whose desktops write such names. A word costs a preference,
never a document.
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import Key, rows_of, slices_of
from lshdup.base.params import ClusterParams
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.collection.keep_by import order_by_field
from lshdup.errors import ParameterError
from lshdup.sources.document_list import DocumentList, Locations, typed_name
from lshdup.sources.patterns import FEW_NAMES, Patterns
from lshdup.sources.records import ARCHIVES, Kind

#: What Windows, macOS, GNOME and KDE call a copy: `X - Copy`, `X copy 2`, `X (copy)`, `Copy of X`.
COPY = """
copy copies kopie kopien copie copia cópia kopia kopi kopio kópia másolat kopya копия копія копие
αντίγραφο נוסח עותק نسخة प्रतिलिपि สำเนา salinan コピー 副本 拷贝 拷貝 複製 복사본
""".split()

#: Words between `Copy` and the name; words that need none behind a name (`X副本`), or before it.
_OF = "of von van de do di da af av z - – — ～ ~".split()
_BEHIND = "のコピー 副本 拷贝 拷貝".split()
_IN_FRONT = "kopia kopio kopya másolat копия копія αντίγραφο 复件 複件 복사본".split()

#: What a person calls what is only kept aside, as a name or at the end of one: `X_old`, `backup`.
PARKED = "backup backups bak old tmp temp".split()

#: Folders that a desktop makes: new ones without a name, and those where files land.
FOLDERS = """
new folder|untitled folder|neuer ordner|nouveau dossier|dossier sans titre|nueva carpeta
carpeta sin título|nuova cartella|cartella senza titolo|nova pasta|pasta sem título|nieuwe map
naamloze map|ny mapp|namnlös mapp|ny mappe|uusi kansio|nowy folder|nový priečinok|nová složka
új mappa|folder nou|yeni klasör|новая папка|нова папка|νέος φάκελος|תיקיה חדשה|مجلد جديد
नया फ़ोल्डर|โฟลเดอร์ใหม่|thư mục mới|folder baru|新しいフォルダー|新しいフォルダ|名称未設定フォルダ
新建文件夹|未命名文件夹|新增資料夾|未命名檔案夾|새 폴더|무제 폴더
desktop|schreibtisch|bureau|escritorio|scrivania|área de trabalho|ambiente de trabalho
bureaublad|skrivbord|skrivebord|työpöytä|pulpit|plocha|asztal|masaüstü|рабочий стол|стільниця
επιφάνεια εργασίας|שולחן העבודה|سطح المكتب|デスクトップ|桌面|바탕화면|바탕 화면
downloads|download|téléchargements|descargas|scaricati|transferências|hämtningar|nedlastinger
overførsler|lataukset|pobrane|stažené|letöltések|i̇ndirilenler|indirilenler|загрузки
завантаження|λήψεις|הורדות|التنزيلات|ダウンロード|下载|下載|다운로드
""".strip().replace("\n", "|").split("|")  # fmt: skip

#: Endings of a backup, which also ends in `~`.
ENDINGS = "bak old orig sav save tmp backup copy".split()

#: Bytes of UTF-8 that begin no character.
_CONTINUATIONS = bytes(range(0x80, 0xC0))

#: Bytes of a name, about: so many names are looked at together as fill a slice.
_NAME_BYTES = 32


def _fold(name: str) -> str:
    """Return a name as patterns are written: composed, in lower case."""
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).lower()


def _any_of(words: list[str]) -> str:
    return f"(?:{'|'.join(re.escape(_fold(word)) for word in words)})"


_NUMBER, _ENDINGS = r"(?:[ _-]?(?:[0-9]{1,3}|\([0-9]{1,3}\)))?", r"(?:\.\w{1,8}){0,2}$"
_KEPT_ASIDE = f"{_any_of([*COPY, *PARKED])}{_NUMBER}{_ENDINGS}"

#: Of a whole name.
_NAME = (
    rf"{_any_of(FOLDERS)}{_NUMBER}$|{_KEPT_ASIDE}"
    rf"|{_any_of(COPY)}(?: ?\([0-9]+\))? {_any_of(_OF)} "
    rf"|{_any_of(_IN_FRONT)}(?: ?\([0-9]+\))? "
)

#: Of the end of a name. Each branch begins with characters that are rare: the search is fast.
_END = (
    rf"[\s_.–—-]{_KEPT_ASIDE}"
    rf"|{_any_of(_BEHIND)}{_NUMBER}{_ENDINGS}"
    rf"|\((?:[^()]* )?{_any_of(COPY)}(?: [0-9]+)?\){_ENDINGS}"
    rf"|\([0-9]{{1,3}}\){_ENDINGS}"
    rf"|\.{_any_of(ENDINGS)}[0-9]*$|~[0-9]*~?$"
)


def count_marks(path: bytes) -> int:
    """Return how many components of a path have a name of a copy, or of a place to park files.

    >>> count_marks(b"Desktop/New Folder (2)/a.doc"), count_marks(b"Documents/Job/a.doc")
    (2, 0)
    >>> [count_marks(name) for name in (b"Copy of a.doc", b"a (1).doc", b"a~", b"a (2019).doc")]
    [1, 1, 1, 0]
    """
    folder, _, last = path.rpartition(b"/")
    return _is_marked(last) + _count_folders(folder)


def _is_marked(component: bytes) -> bool:
    name = _fold(component.decode("utf-8", "surrogateescape"))
    return re.match(_NAME, name) is not None or re.search(_END, name) is not None


#: Of many files in one folder it is judged once, and so is its name below several folders.
_is_folder_marked = lru_cache(1 << 16)(_is_marked)


@lru_cache(1 << 16)
def _count_folders(folder: bytes) -> int:
    return sum(map(_is_folder_marked, folder.split(b"/")))


# --- the order ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preference:
    """The order in which documents are preferred to be kept.

    order : int64 array of shape (n,), all documents, the most preferred first.
    level : int64 array of shape (n,); smaller comes before the rule: the first pattern of
        `--prefer` that matches, then whole files before parts of files. Empty but for "central".
    keep : the rule of `ClusterParams.keep` that was applied.
    """

    order: NDArray[np.int64]
    level: NDArray[np.int64]
    keep: str


def preference(
    run: Run,
    documents: DocumentList,
    sizes: NDArray[np.int64],
    params: ClusterParams,
    arguments: Sequence[bytes] = (),
) -> Preference:
    """Return the order of documents by `--prefer`, then whole files before parts of files (but
    where "first" goes by the order of DOCS), then `--keep-by`, `--keep`, and their place in the
    list. Warn of patterns of `--prefer` that match no document.

    The rule "central" orders as the default rule does; `compare.medoids` chooses after it.

    documents : n documents.
    sizes : int64 array of shape (n,), shingles of each.
    arguments : folders and files as named; empty if the documents come from a store.

    Raises ParameterError if the rule needs the order of arguments, and the store has not kept it.
    """
    n, levels = len(documents), list[Key]()
    if params.prefer:
        levels.append(_levels(run, documents, params.prefer).__getitem__)
    default = default_keep(documents)
    keep = params.keep or default
    if keep != "first" and documents.parts is not None:
        levels.append(documents.are_parts)
    if params.keep_by:
        levels += order_by_field(run, documents, *params.keep_field)
    keys = _keys(run, documents, sizes, default if keep == "central" else keep, arguments)
    order = run.arrays.order(n, [*levels, *keys])
    if keep != "central":
        return Preference(order, order[:0].copy(), keep)

    def level_of(some: slice) -> NDArray[np.int64]:
        level = np.zeros(some.stop - some.start, np.int64)
        for key in levels:
            level = 2 * level + key(rows_of(some))
        return level

    return Preference(order, run.arrays.compute(n, np.int64, level_of), keep)


def default_keep(documents: DocumentList) -> str:
    """Return "first" if all documents are rows or lines of files; otherwise "shortest-path"."""
    have_paths = np.isin(documents.locations.kinds, (Kind.FILE, *ARCHIVES))
    is_any = have_paths[documents.locations.file].any() or not len(documents)
    return "shortest-path" if is_any else "first"


def _keys(
    run: Run,
    documents: DocumentList,
    sizes: NDArray[np.int64],
    keep: str,
    arguments: Sequence[bytes],
) -> list[Key]:
    """Return numbers by which smaller means preferred, the strongest first."""
    if keep == "first":
        return _as_named(documents, arguments)
    if keep == "shortest-path":
        locations = documents.locations
        of_files = rank_paths(run, locations.paths)
        inside = run.arrays.find(np.isin(locations.kinds, ARCHIVES)[locations.file])
        if not len(inside):
            return [_of_files(key, locations) for key in of_files]
        keys = [run.arrays.take(key, locations.file) for key in of_files]
        ranks = rank_paths(run, documents.names.take(inside, run.arrays))
        for key, of_member in zip(keys, ranks, strict=True):
            key[inside] = of_member
        return [key.__getitem__ for key in keys]
    if keep == "path-order":
        return []
    times = documents.mtimes
    by = {"longest": sizes, "shortest": sizes, "newest": times, "oldest": times}[keep]
    return [(lambda rows: -by[rows]) if keep in ("longest", "newest") else by.__getitem__]


def _of_files(of_file: NDArray[np.int64], locations: Locations) -> Key:
    """Return the key of documents that is one of their files, of shape (files,)."""
    return lambda rows: of_file[locations.file[rows]]


def rank_paths(run: Run, names: StringTable) -> list[NDArray[np.int64]]:
    """Return for n paths how many components are named as a copy is, or a place to park files
    (`count_marks`); components; and characters: int64 arrays of shape (n,). What is smaller in the
    first of them is preferred.

    >>> table = StringTable.from_strings([b"a/report.doc", b"report.bak", b"report.txt"])
    >>> [key.tolist() for key in rank_paths(Run.quiet(), table)]
    [[0, 1, 0], [2, 1, 1], [12, 10, 10]]
    """
    keys: NDArray[np.int64] = run.arrays.zeros((3, len(names)), np.int64)
    for some in slices_of(len(names), _NAME_BYTES):
        keys[:, some] = np.array(list(map(_rank, names.take(rows_of(some))))).T
    return list(keys)


def _rank(name: bytes) -> tuple[int, int, int]:
    path = name.removeprefix(b"./")  # `./` before `-` is no folder
    characters = len(path.translate(None, _CONTINUATIONS))
    return count_marks(path), sum(map(bool, path.split(b"/"))), characters


def _as_named(documents: DocumentList, arguments: Sequence[bytes]) -> list[Key]:
    """Return the number of the argument that names a document; records go by location in their
    file.
    """
    named, rank = list_named(documents, arguments, "--keep first"), dict[bytes, int]()
    for number, name in enumerate(named):
        rank.setdefault(name, number)
    files = list(documents.files)
    of_folder: dict[bytes, int] = {b"": len(named)}
    numbers = np.fromiter((_number(name, rank, of_folder) for name in files), np.int64, len(files))
    # Of one argument the whole files, then the rows of the others.
    return [_of_files(numbers, documents.locations), documents.are_parts]


def list_named(documents: DocumentList, arguments: Sequence[bytes], option: str) -> list[bytes]:
    """Return DOCS as `typed_name` writes them. arguments : as they were typed; empty: of the store.

    Raises ParameterError, which names the option, if the store has not kept them.
    """
    named = list(map(typed_name, arguments)) or list(documents.docs)
    # Of many DOCS the store keeps the folder above all, with a slash behind it.
    if not named or any(name.endswith(b"/") for name in named if name != b"/"):
        message = f"{option} needs DOCS here: the store has not kept which were named"
        raise ParameterError(message, f"name DOCS, or choose another {option.split()[0]}")
    return named


def _number(name: bytes, rank: dict[bytes, int], of_folder: dict[bytes, int]) -> int:
    """Return the smallest rank of a name and the folders above it.

    of_folder : known ranks of folders.
    """
    unknown = []
    folder = folder_above(name)
    while folder not in of_folder:
        unknown.append(folder)
        folder = folder_above(folder)
    known = of_folder[folder]
    for folder in reversed(unknown):
        known = of_folder[folder] = min(rank.get(folder, known), known)
    return min(rank.get(name, known), known)


def folder_above(name: bytes) -> bytes:
    """Return the folder a name is in; nothing is above the current folder, one above that, and the
    root.

    >>> list(map(folder_above, (b"a/b", b"a", b"./-a", b".", b"/a", b"../..")))
    [b'a', b'.', b'.', b'', b'/', b'']
    """
    folder, base = os.path.split(name)
    return b"" if name in (b".", b"/") or base == b".." else folder or b"."


def _levels(run: Run, documents: DocumentList, prefer: Sequence[str]) -> NDArray[np.int64]:
    """Return for each document the number of the first pattern that matches it, or their number."""
    n = len(documents)
    are_here = [typed_name(os.fsencode(text)) == b"." for text in prefer]
    patterns = [
        Patterns("--prefer", ["/**" if here else text])
        for text, here in zip(prefer, are_here, strict=True)
    ]

    def level_of(name: bytes) -> int:
        path = os.fsdecode(name).removeprefix("./").lstrip("/")
        matching = [
            number
            for number, (pattern, here) in enumerate(zip(patterns, are_here, strict=True))
            if not (here and name.startswith((b"/", b"../"))) and pattern.match(path)
        ]
        return min(matching, default=len(patterns))

    levels: NDArray[np.int64] = run.arrays.empty(n, np.int64)
    for some in slices_of(n, _NAME_BYTES):
        levels[some] = [level_of(name) for name in documents.typed_names(rows_of(some))]
    names = documents.typed_names(np.arange(min(n, FEW_NAMES)))
    for line in (line for each in patterns for line in each.warnings("no document", names)):
        run.warn(line)
    return levels
