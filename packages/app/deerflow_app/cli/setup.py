"""`deerflow setup`: what takes a while and is needed once. Without it the first start does the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from deerflow_app.cli.preparation import WHAT
from deerflow_app.cli.terminal import clean, one_line

if TYPE_CHECKING:
    from deerflow.config import AppConfig


def set_up(config: AppConfig, console: Console, *, quiet: bool) -> None:
    """Build the sandbox's Python packages unless they are there. Where they cannot be built it says what is missing.

    Args:
        quiet: say nothing when there is nothing to do.
    """
    from deerflow.config import Paths
    from deerflow.sandbox.tool_image import ToolImage, ToolImageError

    settings = config.sandbox.tool_image
    if not settings.enabled:
        if not quiet:
            console.print("The sandbox's Python packages are switched off: sandbox.tool_image.enabled is false.")
        return
    image = ToolImage(Paths().tools_dir, Path(settings.requirements) if settings.requirements else None)
    if (status := image.status()).ready:
        if not quiet:
            console.print(f"The sandbox's Python packages are ready: {status.path}", soft_wrap=True)
        return
    console.print(f"{WHAT} (once, about a minute)", style=None if console.is_terminal else "faint")
    try:
        with console.status("") as shown:
            image.build(lambda line: shown.update(f"  {one_line(line)}"))
    except ToolImageError as error:
        console.print(f"! {clean(str(error))} DeerFlow works without them.", style="warn", soft_wrap=True)
