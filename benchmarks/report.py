"""Results -> benchmarks/README.md and pages of docs/, between two comments of each.

Usage: `python -m benchmarks.report [RESULTS.json] [README.md]`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.tables import Table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
BEGIN, END = "<!-- performance -->", "<!-- /performance -->"

#: The page of the documentation that has the tables of a section, between comments of its name.
PAGES = {
    "rows": "docs/explanation/scale.md",
    "noisy": "docs/how-to/noisy-texts.md",
    "scripts": "docs/explanation/scripts.md",
}

#: Sections in the order of the README.
ORDER = (
    "budgets",
    "whole",
    "scale",
    "peers",
    "peers-all",
    "recall",
    "exact",
    "containment",
    "passages",
    "folders",
    "rows",
    "kinds",
    "stages",
    "hot",
    "templates",
    "first",
    "office",
)


def performance(results: dict[str, Any]) -> str:
    """Return the text of all measured sections."""
    sections = [results[name] for name in ORDER if name in results]
    if not sections:
        message = "no section was measured"
        raise ValueError(message)
    parts = [_circumstances(sections)]
    parts += [Table(**table).markdown() for section in sections for table in section["tables"]]
    return "\n\n".join(parts)


def _circumstances(sections: list[dict[str, Any]]) -> str:
    """Return the versions and the method, once if all sections have the same."""
    seen = list(dict.fromkeys(_sentence(section["versions"]) for section in sections))
    runs = max(section["runs"] for section in sections)
    return (
        f"{' Some sections: '.join(seen)} "
        f"What is compared took turns, up to {runs} times; medians. The documents are made up: "
        "words by Zipf's law, stock phrases, one document in ten a near-copy of an earlier one "
        "with 0 to 12 % of its words replaced. What is aimed at stands last."
    )


def _sentence(versions: dict[str, str]) -> str:
    known = dict(versions)
    processors, system = known.pop("processors"), known.pop("system")
    model = known.pop("model", "")
    packages = ", ".join(
        f"{name} {version}" for name, version in known.items() if version != "not installed"
    )
    machine = f"{processors} processors{f' ({model})' if model else ''}"
    return f"{machine}, {system}, {packages}."


def write_readme(results: Path = RESULTS, readme: Path = ROOT / "benchmarks/README.md") -> None:
    """Replace the text between the two comments. Raise ValueError if one is missing."""
    text = performance(json.loads(results.read_text("utf-8")))
    _replace_between(readme, BEGIN, END, text)


def write_pages(results: Path = RESULTS, root: Path = ROOT) -> None:
    """Replace the tables of pages of the documentation, of sections that were measured.

    Raises as `write_readme` does.
    """
    known = json.loads(results.read_text("utf-8"))
    for name in PAGES.keys() & known.keys():
        tables = [Table(**table) for table in known[name]["tables"]]
        is_timed = any("seconds" in table.columns for table in tables)
        lead = [_sentence(known[name]["versions"])] * is_timed
        text = "\n\n".join([*lead, *(table.markdown() for table in tables)])
        _replace_between(root / PAGES[name], f"<!-- {name} -->", f"<!-- /{name} -->", f"\n{text}\n")


def _replace_between(page: Path, first: str, last: str, text: str) -> None:
    """Replace the text between two comments of a page. Raise ValueError if one is missing."""
    before, begin, rest = page.read_text("utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end):
        message = f"{page}: {first} and {last} are not both there"
        raise ValueError(message)
    page.write_text(f"{before}{first}\n{text}\n{last}{after}", "utf-8")


if __name__ == "__main__":
    write_readme(*map(Path, sys.argv[1:3]))
