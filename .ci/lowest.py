"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

#: What the core of the tests needs.
EXTRAS = ("formats", "parquet", "plot", "test", "zstd")

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
requirements = list(project["dependencies"])
for extra in EXTRAS:
    requirements += project["optional-dependencies"][extra]
for requirement in sorted(set(requirements)):
    print(re.sub(r"([\w.-]+)\s*>=\s*([\d.]+).*", r"\1==\2", requirement))  # noqa: T201
