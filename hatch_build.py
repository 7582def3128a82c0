"""README.md as an index shows it: a path becomes its address, if the repository has one.

In a checkout the links of README.md are paths, which work offline, in a fork and on every branch.
PyPI shows the file alone, so hatchling asks this hook for it when it builds wheel or sdist.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)]+)\)")


def with_addresses(text: str, repository: str) -> str:
    """Markdown whose relative links lead to the repository, and whose pictures are its files."""
    pictures = repository.replace("//github.com/", "//raw.githubusercontent.com/") + "/main/"

    def address(match: re.Match[str]) -> str:
        base = pictures if match[1] else f"{repository}/blob/main/"
        return f"{match[1]}{match[2]}({base}{match[3]})"

    return LINK.sub(address, text)


class CustomMetadataHook(MetadataHookInterface):
    """What hatchling looks for by this name."""

    def update(self, metadata: dict) -> None:
        """Set the description of the distribution."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := metadata.get("urls", {}).get("Repository"):
            text = with_addresses(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
