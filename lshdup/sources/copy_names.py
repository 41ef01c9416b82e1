"""Names that people and desktops give to copies and to what is parked: `--keep shortest-path`.

One table of words, in the languages whose desktops write such names. A word costs a preference,
never a document.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import StringTable

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
FOLDERS = (
    """
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
""".strip()
    .replace("\n", "|")
    .split("|")
)

#: Endings of a backup, which also ends in `~`.
ENDINGS = "bak old orig sav save tmp backup copy".split()

#: Names that are looked at together.
_PIECE = 1 << 16


def _fold(name: str) -> str:
    """Return a name as patterns are written: composed, in lower case."""
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).lower()


def _any_of(words: list[str]) -> str:
    return f"(?:{'|'.join(re.escape(_fold(word)) for word in words)})"


_NUMBER, _ENDINGS = r"(?:[ _-]?(?:[0-9]{1,3}|\([0-9]{1,3}\)))?", r"(?:\.\w{1,8}){0,2}$"
_KEPT_ASIDE = f"{_any_of([*COPY, *PARKED])}{_NUMBER}{_ENDINGS}"

#: Of a whole name.
_NAME = re.compile(
    rf"{_any_of(FOLDERS)}{_NUMBER}$|{_KEPT_ASIDE}"
    rf"|{_any_of(COPY)}(?: ?\([0-9]+\))? {_any_of(_OF)} "
    rf"|{_any_of(_IN_FRONT)}(?: ?\([0-9]+\))? "
)

#: Of the end of a name. Each branch begins with characters that are rare: the search is fast.
_END = re.compile(
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
    return _is_marked(last) + (_count_folders(folder) if folder else 0)


@lru_cache(1 << 16)
def _count_folders(folder: bytes) -> int:
    """Return the marks of a folder: of many files in one folder it is judged once."""
    return count_marks(folder)


def _is_marked(component: bytes) -> bool:
    name = _fold(component.decode("utf-8", "surrogateescape"))
    return _NAME.match(name) is not None or _END.search(name) is not None


def _heads() -> NDArray[np.bool_]:
    """Return which four bytes, by five bits of each, begin one of the words in any case."""
    heads = np.zeros((32, 32, 32, 32), bool)
    for word in (*COPY, *PARKED, *FOLDERS, *ENDINGS):
        for cases in product((str.lower, str.upper), repeat=4):
            text = "".join(case(c) for case, c in zip(cases, word, strict=False)) + word[4:]
            for head in (unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)):
                heads[tuple(byte & 31 for byte in head.encode()[:4])] = True
    return heads.ravel()


_HEADS = _heads()


def _may_be_marked(blob: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where in some names a word begins, and all of `(` and `~`: int64 array."""
    low = np.append(blob & 31, np.zeros(3, np.uint8)).astype(np.int32)
    key = low[:-3] << 15 | low[1:-2] << 10 | low[2:-1] << 5 | low[3:]
    return np.flatnonzero(_HEADS[key] | (blob == ord("(")) | (blob == ord("~")))


def marks_of(names: StringTable) -> NDArray[np.int64]:
    """Return `count_marks` of n paths: int64 array of shape (n,).

    Cost: some nanoseconds a byte; microseconds for a name that holds the beginning of a word.
    """
    marks = np.zeros(len(names), np.int64)
    for start in range(0, len(names), _PIECE):
        piece = names.take(np.arange(start, min(start + _PIECE, len(names))))
        found = _may_be_marked(piece.blob)
        until = np.searchsorted(found, piece.offsets[1:])
        rows = np.flatnonzero(np.diff(until, prepend=0))
        last = found[until[rows] - 1] - piece.offsets[rows]
        for row, at, name in zip(rows.tolist(), last.tolist(), piece.strings_at(rows), strict=True):
            folder, slash, base = name.rpartition(b"/")
            in_base = at >= len(name) - len(base)
            marks[start + row] = in_base and _is_marked(base)
            marks[start + row] += _count_folders(folder) if slash and folder else 0
    return marks
