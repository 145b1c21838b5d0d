"""The wheel holds the built page; without one it is not made."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable" and not Path(self.root, "deerflow_app/gateway/web/index.html").is_file():
            raise FileNotFoundError(
                "The page has not been built, and without it nobody could use this. Run `make wheels`."
            )
