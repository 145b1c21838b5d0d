"""`deerflow models`, `deerflow config …` and `deerflow setup`."""

from __future__ import annotations

import difflib
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deerflow_app.cli.failures import Failure, usage_failure
from deerflow_app.cli.terminal import clean, one_line

if TYPE_CHECKING:
    from deerflow.config import AppConfig
    from deerflow_app.cli.options import Settings


def print_models(config: AppConfig, console: Console, *, as_json: bool) -> None:
    """The models that can answer; the first one does unless another is chosen."""
    from deerflow.models import model_info

    models = model_info(config)
    if as_json:
        console.file.write(
            json.dumps({"models": [asdict(model) for model in models]}, ensure_ascii=False, indent=2) + "\n"
        )
        return
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="faint")
    for column in ("", "NAME", "MODEL", "CAN", "FROM"):
        table.add_column(column)
    for model in models:
        abilities = (("think", model.supports_thinking), ("see images", model.supports_vision))
        table.add_row(
            Text("▸" if model.is_default else " ", style="accent"),
            Text(clean(model.name), style="bold"),
            Text(clean(model.model)),
            Text(", ".join(ability for ability, has in abilities if has) or "–", style="faint"),
            Text(
                clean(model.problem or model.discovered_from or "config.yaml"),
                style="bad" if model.problem else "faint",
            ),
        )
    console.print(table)


def print_config(config: AppConfig, console: Console, *, as_json: bool) -> None:
    """The configuration in force, defaults included, secrets masked."""
    from deerflow.config import mask_secrets

    values = mask_secrets(config.model_dump(mode="json"))
    if as_json:
        console.file.write(json.dumps(values, ensure_ascii=False, indent=2) + "\n")
        return
    from io import StringIO

    from ruamel.yaml import YAML

    yaml, text = YAML(), StringIO()
    yaml.width = 10_000
    yaml.dump(values, text)
    console.print(
        f"# {config.origin.config_file or 'no config file: defaults and what was found by itself'}",
        style="faint",
        soft_wrap=True,
    )
    console.print(text.getvalue().rstrip(), soft_wrap=True)


def write_example(target: Path) -> None:
    """Write the commented example as a new config file.

    Raises:
        Failure: there is a file already.
    """
    from deerflow.config import example_file

    text = example_file().read_text(encoding="utf-8")
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise usage_failure(
            f"{target} exists already.", "Edit it, or run `deerflow config upgrade` to add what is new."
        ) from None


def config_file(settings: Settings) -> Path | None:
    """The config file in use, whether it can be read or not. Raises FileNotFoundError when a named one is missing."""
    from deerflow.config import ConfigSource

    return ConfigSource(settings.config).find()


def upgrade(file: Path | None, console: Console, *, dry_run: bool) -> None:
    """Bring the file to the current version and tell what changed.

    Raises:
        ConfigError: the file is not usable YAML.
        Failure: there is no file.
    """
    from deerflow.config import upgrade_config

    if file is None:
        raise usage_failure("There is no config file to upgrade.", "`deerflow config init` writes one.")
    if dry_run:
        _show_upgrade(file, console)
        return
    report = upgrade_config(file)
    if not report.changed:
        console.print(f"{file} is up to date (version {report.old_version}).", soft_wrap=True)
        return
    console.print(f"{file} is now of version {report.new_version}; the old one is {report.backup}.", soft_wrap=True)
    for line in (*report.migrated, *(f"added {key}" for key in report.added)):
        console.print(f"  {clean(line)}", soft_wrap=True)


def _show_upgrade(file: Path, console: Console) -> None:
    """The upgrade of a copy, as a diff."""
    from deerflow.config import upgrade_config

    before = file.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, file.name)
        copy.write_text(before, encoding="utf-8")
        report = upgrade_config(copy)
        after = copy.read_text(encoding="utf-8")
    if not report.changed:
        console.print(f"{file} is up to date (version {report.old_version}).", soft_wrap=True)
    styles = {"+": "diff.add", "-": "diff.remove", "@": "accent"}
    for line in difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(file), "after the upgrade", lineterm=""
    ):
        console.print(clean(line), style=styles.get(line[:1]), soft_wrap=True)


def set_up(config: AppConfig, console: Console, *, quiet: bool) -> None:
    """Build the sandbox's Python packages unless they are there.

    Args:
        quiet: say nothing when there is nothing to do.

    Raises:
        Failure: they cannot be built; it says what is missing.
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
    console.print(
        "Preparing the sandbox's Python packages (once, about a minute)", style=None if console.is_terminal else "faint"
    )
    try:
        with console.status("") as shown:
            image.build(lambda line: shown.update(f"  {one_line(line)}"))
    except ToolImageError as error:
        raise Failure(
            clean(str(error)), remedy="DeerFlow works without them, but the agent has no Python libraries."
        ) from error
