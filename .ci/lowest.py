"""Print the lowest versions that pyproject.toml allows, as constraints for pip: of the core of the
tests, and of the extras that are named.
"""

import re
import sys
import tomllib
from pathlib import Path

#: What the core of the tests needs.
EXTRAS = ("formats", "mcp", "parquet", "plot", "test", "zstd")

settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
core = settings["tool"]["hatch"]["metadata"]["hooks"]["custom"]
requirements = core["dependencies"] + core["compiler"]
for extra in (*EXTRAS, *sys.argv[1:]):
    requirements += settings["project"]["optional-dependencies"][extra]
lowest: dict[str, list[int]] = {}
for requirement in requirements:
    name, version = re.findall(r"^([\w.-]+)\s*>=\s*([\d.]+)", requirement)[0]
    lowest[name] = max(lowest.get(name, []), [int(part) for part in version.split(".")])
for name, parts in sorted(lowest.items()):
    print(f"{name}=={'.'.join(map(str, parts))}")  # noqa: T201
