"""Options that several commands take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="The config.yaml to use.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show log and tracebacks on stderr.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@dataclass(slots=True)
class Settings:
    """Which configuration is used, whether tracebacks are wanted, and whether a running server is left alone."""

    config: Path | None = None
    debug: bool = False
    local: bool = False


def settings_of(context: typer.Context, config: Path | None, debug: bool = False, local: bool = False) -> Settings:
    """Options may stand before or after the command."""
    settings = context.ensure_object(Settings)
    settings.config = config or settings.config
    settings.debug = debug or settings.debug
    settings.local = local or settings.local
    return settings
