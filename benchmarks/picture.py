"""The terminal picture of the README, docs/figures/terminal.svg.

`python -m benchmarks.picture` writes it.
"""

import io
import re
import shlex
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/figures/terminal.svg"
COLUMNS = 100

#: Command lines, and how many lines of each answer are shown.
TYPED = (
    ("lshdup pairs sample_corpus/udhr --threshold 0.97", 12),
    (
        "lshdup show sample_corpus/udhr/deu_1901.html sample_corpus/udhr/deu_1996.html --context 8",
        20,
    ),
)

#: Fonts that a browser would fetch from another host.
_FETCHED = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)


def picture() -> str:
    """Return the picture as SVG."""
    from tests.running import run_many

    console = Console(
        width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    cases = [(shlex.split(line)[1:], COLUMNS) for line, _ in TYPED]
    for (line, most), (code, out, err) in zip(
        TYPED, run_many(cases, ROOT, {"LSHDUP_NO_STORE": "1"}), strict=True
    ):
        assert code == 0, err
        console.print(Text.assemble(("$ ", "bold green"), (line, "bold")))
        rows = [each for each in out.decode().splitlines() if each.strip()]
        for row in rows[:most]:
            console.print(Text.from_ansi(row), soft_wrap=True)
        if len(rows) > most:
            console.print(Text("…", "dim"))
    svg = console.export_svg(
        title="lshdup",
        theme=MONOKAI,
        code_format=_FETCHED.sub("", CONSOLE_SVG_FORMAT),
        unique_id="lshdup",
    )
    return re.sub(r"[ \t]+\n", "\n", svg)


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
