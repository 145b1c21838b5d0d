"""The wheel holds the built page, the documentation, and the versions that it was tested with; without a page it is not made."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

LOCK = "requirements/run.txt"
"""At the top of the repository. What is built outside of it has no such extra."""


class PageHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if not Path(self.root, "deerflow_app/gateway/web/index.html").is_file():
            raise FileNotFoundError(
                "The page has not been built, and without it nobody could use this. Run `make wheels`."
            )
        repository = Path(self.root).parents[1]
        if (lock := repository / LOCK).is_file():
            build_data["force_include"] |= {
                str(lock): "deerflow_app/locked.txt",
                str(repository / "docs"): "deerflow_app/guides",
                str(repository / "CHANGELOG.md"): "deerflow_app/guides/changes.md",
            }


class LockedHook(MetadataHookInterface):
    """Add the extra ``locked``: ``pip install "deerflow[locked]"`` installs next year what was tested today."""

    def update(self, metadata: dict[str, Any]) -> None:
        lock = Path(self.root).parents[1] / LOCK
        lines = lock.read_text().splitlines() if lock.is_file() else []
        pins = [line.removesuffix("\\").strip() for line in lines if line[:1].isalnum()]
        metadata["optional-dependencies"] = {"locked": pins} if pins else {}
