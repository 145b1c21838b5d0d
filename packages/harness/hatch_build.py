"""The example configuration lies at the top of the repository; packages have a copy."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExampleHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        example = Path(self.root).parents[1] / "config.example.yaml"
        if version != "editable" and example.is_file():
            build_data["force_include"][str(example)] = "deerflow/config/config.example.yaml"
            if (skills := example.parent / "skills/public").is_dir():
                build_data["force_include"][str(skills)] = "deerflow/skills/public"
