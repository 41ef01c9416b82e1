"""What is decided when the package is built: whether kernels are machine code already.

By default a wheel holds LLVM IR, fits every machine, and needs llvmlite. With LSHDUP_PREBUILT=1 it
holds shared libraries for machines of one kind, and an installation does without llvmlite.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import platform_tags

sys.path.insert(0, str(Path(__file__).parent))
from lshdup.kernels.native import pack, prebuilt

_PREBUILT = os.environ.get("LSHDUP_PREBUILT", "") not in ("", "0")
_FOLDER = "lshdup/kernels/native"
#: The first version of the C library with all that kernels call (statx).
_MANYLINUX = "manylinux_2_28"


class Dependencies(MetadataHookInterface):
    """The dependencies, with or without llvmlite."""

    def update(self, metadata: dict[str, Any]) -> None:
        compiler = [] if _PREBUILT else self.config["compiler"]
        metadata["dependencies"] = self.config["dependencies"] + compiler


class Libraries(BuildHookInterface[Any]):
    """The libraries of kernels in a wheel, and its platform tag."""

    def dependencies(self) -> list[str]:
        """Return what the build needs: LLVM, and a linker if this machine has none."""
        if not _PREBUILT or self.target_name != "wheel":
            return []
        compiler = self.metadata.hatch.config["metadata"]["hooks"]["custom"]["compiler"]
        return [*compiler, *([] if prebuilt.find_linker() else ["ziglang"])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not _PREBUILT:
            return
        if self.target_name != "wheel":
            self.app.abort(
                "LSHDUP_PREBUILT: only a wheel holds machine code; build the source "
                "distribution without it"
            )
        if version == "editable":
            self.app.abort("LSHDUP_PREBUILT: an editable installation compiles its own kernels")
        self._folder = tempfile.TemporaryDirectory()
        try:
            made = prebuilt.link_libraries(Path(self._folder.name), pack.packed_kernels())
        except prebuilt.LinkError as error:
            self.app.abort(f"LSHDUP_PREBUILT: {error}")
        for library in made:
            build_data["force_include"][str(library)] = f"{_FOLDER}/{library.name}"
        tags = [*platform_tags()]
        tag = next((tag for tag in tags if tag.startswith(_MANYLINUX)), tags[0])
        build_data |= {"pure_python": False, "tag": f"py3-none-{tag}"}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()
