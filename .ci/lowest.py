"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

#: What the core of the tests needs.
EXTRAS = ("formats", "parquet", "plot", "test", "zstd")

settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
core = settings["tool"]["hatch"]["metadata"]["hooks"]["custom"]
requirements = core["dependencies"] + core["compiler"]
for extra in EXTRAS:
    requirements += settings["project"]["optional-dependencies"][extra]
for requirement in sorted(set(requirements)):
    print(re.sub(r"([\w.-]+)\s*>=\s*([\d.]+).*", r"\1==\2", requirement))  # noqa: T201
