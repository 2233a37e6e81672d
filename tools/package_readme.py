"""The README as package indexes show it: links to files of the repository become whole addresses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(?P<picture>!?)(?P<text>\[[^\]]*\]\()(?![a-z]+:|#)")


class PackageReadme(MetadataHookInterface):
    """Read by hatchling whenever it builds a package."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata["urls"]["Source"]

        def whole(link: re.Match[str]) -> str:
            return f"{link[0]}{source}/{'raw' if link['picture'] else 'blob'}/main/"

        metadata["readme"] = {"content-type": "text/markdown", "text": RELATIVE.sub(whole, text)}
