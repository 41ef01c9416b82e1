"""Print the lowest versions of all dependencies in pyproject.toml, as constraints for pip."""

import re
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
lowest: dict[str, str] = {}
for requirement in chain(project["dependencies"], *extras.values()):
    name, version = re.match(r"([\w.-]+)\s*>=\s*([\d.]+)", requirement).groups()
    # Of two bounds of one package the higher one is wanted, as both extras may be installed.
    lowest[name] = max(lowest.get(name, "0"), version, key=lambda v: [*map(int, v.split("."))])
for name, version in sorted(lowest.items()):
    print(f"{name}=={version}")  # noqa: T201
