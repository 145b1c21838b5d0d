"""`deerflow models`, `deerflow config …` and `deerflow setup`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli.commands import AsJson, Settings, command, print_json
from deerflow_app.cli.failures import CommandFailure, usage_failure
from deerflow_app.cli.terminal import clean, make_console, one_line

if TYPE_CHECKING:
    from rich.console import Console

    from deerflow.config import ConfigSource

app = typer.Typer(help="Look at the configuration and keep it current.", no_args_is_help=True, rich_markup_mode=None)


def models(settings: Settings, as_json: AsJson = False) -> None:
    """List the models that can answer."""
    from rich.table import Table
    from rich.text import Text

    from deerflow.models import model_info

    found = model_info(_source(settings).current())
    if as_json:
        return print_json({"models": [asdict(model) for model in found]})
    table = Table("", "NAME", "MODEL", "CAN", "FROM", box=None, padding=(0, 3, 0, 0), header_style="faint")
    for model in found:
        abilities = (("think", model.supports_thinking), ("see images", model.supports_vision))
        table.add_row(
            Text("▸" if model.is_default else " ", style="accent"),
            Text(clean(model.name), style="bold"),
            Text(clean(model.model)),
            Text(", ".join(ability for ability, has in abilities if has) or "–", style="faint"),
            Text(
                clean(model.problem or str(model.discovered_from or "config.yaml")),
                style="bad" if model.problem else "faint",
            ),
        )
    make_console().print(table)


@command(app)
def show(settings: Settings, as_json: AsJson = False) -> None:
    """Show the configuration in force, defaults included, secrets masked."""
    from io import StringIO

    from ruamel.yaml import YAML

    from deerflow.config import mask_secrets

    config = _source(settings).current()
    values = mask_secrets(config.model_dump(mode="json"))
    if as_json:
        return print_json(values)
    yaml, text, console = YAML(), StringIO(), make_console()
    yaml.width = 10_000
    yaml.dump(values, text)
    file = config.origin.config_file or "no config file: defaults and what was found by itself"
    console.print(f"# {file}", style="faint", soft_wrap=True)
    console.print(text.getvalue().rstrip(), soft_wrap=True)


@command(app)
def path(settings: Settings) -> None:
    """Print the path of the config file in use; exit code 1 when there is none."""
    file = _source(settings).find()
    if file is None:
        typer.echo("No config file. `deerflow config init` writes one.", err=True)
        raise typer.Exit(1)
    typer.echo(file)


@command(app)
def secret(
    settings: Settings,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of a variable that config.yaml or DeerFlow itself refers to.")
    ],
    forget: Annotated[bool, typer.Option("--forget", help="Forget it instead.")] = False,
) -> None:
    """Keep a variable encrypted in the data directory: asked for on a terminal, else read from standard input."""
    import re
    import sys

    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        raise usage_failure(f"{name!r} is no name of a variable.", "Use letters, digits and underscores.")
    variables = _source(settings).variables
    if variables.place_of(name) == "environment":
        raise usage_failure(f"{name} is set in the environment, which counts more.", "Change it there.")
    if forget:
        value = None
    elif sys.stdin.isatty():
        value = typer.prompt(name, hide_input=True)
    else:
        value = sys.stdin.read().strip()
    if not forget and not value:
        raise usage_failure(f"There is nothing to keep as {name}.")
    variables.change({name: value}, "encrypted")
    typer.echo(f"{name} is {'forgotten' if forget else 'kept encrypted'}.")


@command(app)
def init(
    settings: Settings, path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("config.yaml")
) -> None:
    """Write a commented config.yaml to begin with. Nothing is overwritten."""
    from deerflow.config import example_file

    text = example_file().read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        remedy = "Edit it, or run `deerflow config upgrade` to add what is new."
        raise usage_failure(f"{path} exists already.", remedy) from None
    typer.echo(f"Wrote {path}. Name your model in it, then run: deerflow doctor")


@command(app)
def upgrade(
    settings: Settings, dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False
) -> None:
    """Bring config.yaml to the current version; values and comments stay, the old file is kept as config.yaml.bak."""
    from deerflow.config import upgrade_config

    file, console = _source(settings).find(), make_console()
    if file is None:
        raise usage_failure("There is no config file to upgrade.", "`deerflow config init` writes one.")
    if dry_run:
        return _show_upgrade(file, console)
    report = upgrade_config(file)
    if not report.changed:
        return console.print(f"{file} is up to date (version {report.old_version}).", soft_wrap=True)
    console.print(f"{file} is now of version {report.new_version}; the old one is {report.backup}.", soft_wrap=True)
    for line in (*report.migrated, *(f"added {key}" for key in report.added)):
        console.print(f"  {clean(line)}", soft_wrap=True)


def _show_upgrade(file: Path, console: Console) -> None:
    """The upgrade of a copy, as a diff."""
    import difflib
    import tempfile

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


def setup(
    settings: Settings,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing when there is nothing to do.")] = False,
) -> None:
    """Prepare the sandbox's Python packages, once; without this the first start does it."""
    from deerflow.config import Paths
    from deerflow.harness import tool_image
    from deerflow.sandbox.tool_image import ToolImageError

    config, console = _source(settings).current(), make_console(stderr=True)
    if not config.sandbox.tool_image.enabled:
        if not quiet:
            console.print("The sandbox's Python packages are switched off: sandbox.tool_image.enabled is false.")
        return
    image = tool_image(config, Paths())
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
        raise CommandFailure(
            clean(str(error)), "DeerFlow works without them, but the agent has no Python libraries."
        ) from error


def _source(settings: Settings) -> ConfigSource:
    from deerflow.config import ConfigSource

    return ConfigSource(settings.config)
