"""`deerflow service install|status|remove`: DeerFlow as a service of systemd, for this user, without root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from deerflow_app.cli.commands import Settings, command
from deerflow_app.cli.failures import CommandFailure, usage_failure

app = typer.Typer(
    help="Run DeerFlow in the background, from each start of the machine on (systemd).", no_args_is_help=True
)

UNIT = "deerflow.service"
_TEMPLATE = """\
# Written by `deerflow service install`; what you change here stays until you install it again.
[Unit]
Description=DeerFlow
After=network-online.target

[Service]
WorkingDirectory={directory}
Environment={environment}
ExecStart={command}
Restart=on-failure
RestartSec=2
# Runs get 20 seconds to end (runs.drain_seconds).
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""

Report = Callable[[str], None]


@command(app)
def install(
    settings: Settings,
    port: Annotated[int | None, typer.Option("--port", "-p", min=1, max=65535, help="[default: 2026]")] = None,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start it now.")] = True,
) -> None:
    """Write the unit for this data directory and configuration, and start it now and after each boot."""
    from deerflow.config import ConfigSource, Paths
    from deerflow.config.document import write_text
    from deerflow_app.cli.installation import Installation

    found = ConfigSource(settings.config).find()
    line = [str(Installation.find().program), "serve", *(["--port", str(port)] if port else [])]
    line += ["--config", str(found.absolute())] if found else []
    file = unit_file()
    text = _TEMPLATE.format(
        directory=_escaped(str(Path.cwd())),
        environment=_quoted(f"DEER_FLOW_HOME={Paths().base_dir}"),
        command=" ".join(_quoted(part).replace("$", "$$") for part in line),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, text)
    if problem := _problem(file):
        raise CommandFailure(f"systemd does not accept {file}: {problem}")
    typer.echo(f"Wrote {file}. It reads config.yaml and .env (keys of providers, NAME=value) in {Path.cwd()}")
    _systemctl(["daemon-reload"], ["enable", *(["--now"] if start else []), UNIT])
    typer.echo(
        "`loginctl enable-linger` lets it run while you are not signed in; `journalctl --user -u deerflow` shows its log."
    )


@command(app)
def status(settings: Settings) -> None:
    """Say whether the service is installed and whether DeerFlow answers; exit code 1 unless it does."""
    from deerflow.config import Paths
    from deerflow_app.gateway import running_server

    file, server = unit_file(), running_server(Paths().base_dir)
    typer.echo(f"unit      {file if file.exists() else 'not installed: `deerflow service install`'}")
    typer.echo(f"systemd   {_state() if file.exists() else 'inactive'}")
    typer.echo(f"server    {f'{server.url} (process {server.pid})' if server else 'does not answer'}")
    raise typer.Exit(0 if server else 1)


@command(app)
def remove(settings: Settings) -> None:
    """Stop the service and delete its unit. Data and configuration stay."""
    file = unit_file()
    if not file.exists():
        raise usage_failure(f"There is no {file}.", "`deerflow service install` writes it.")
    _systemctl(["disable", "--now", UNIT])
    file.unlink()
    _systemctl(["daemon-reload"])
    typer.echo(f"Removed {file}.")


def unit_file() -> Path:
    """Return where systemd looks for units of this user."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "systemd/user" / UNIT


def restart(program: Path, report: Report) -> None:
    """After an update or a rollback: let the unit start ``program``, and restart it if it is at work."""
    from deerflow.config.document import write_text

    file = unit_file()
    if not file.exists():
        return report("Restart DeerFlow if it is running.")
    text = file.read_text()
    changed = re.sub(
        r'^ExecStart="[^"]*"', lambda _: f"ExecStart={_quoted(str(program)).replace('$', '$$')}", text, flags=re.M
    )
    if changed != text:
        write_text(file, changed)
    if _state() == "active":
        _systemctl(["daemon-reload"], ["restart", UNIT])
        report("The service was restarted: `deerflow service status`.")
    else:
        report("The service is not at work; it starts the new version.")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escaped(escaped)}"'


def _escaped(value: str) -> str:
    return value.replace("%", "%%")


def _problem(file: Path) -> str:
    """Return what systemd finds wrong with the unit; nothing where it cannot be asked."""
    if (analyze := shutil.which("systemd-analyze")) is None:
        return ""
    # Without a directory for its sockets, as in a container, it refuses to look at anything.
    runtime = os.environ.get("XDG_RUNTIME_DIR") or str(file.parent)
    done = subprocess.run(
        [analyze, "verify", "--user", "--man=no", str(file)],
        env={**os.environ, "XDG_RUNTIME_DIR": runtime}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [line for line in done.stderr.splitlines() if file.name in line or str(file) in line]
    return "; ".join(found) if done.returncode or found else ""


def _state() -> str:
    try:
        done = subprocess.run(["systemctl", "--user", "is-active", UNIT], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "there is no systemd here"
    return done.stdout.strip() or "unknown: systemd does not run here"


def _systemctl(*calls: list[str]) -> None:
    """Do what can be done; where systemd does not run, as in a container, say what is left to do."""
    for call in calls:
        try:
            done = subprocess.run(["systemctl", "--user", *call], capture_output=True, text=True, check=False)
            problem = done.stderr.strip() if done.returncode else ""
        except FileNotFoundError:
            problem = "there is no systemctl"
        if problem:
            left = "; ".join(f"systemctl --user {' '.join(one)}" for one in calls)
            typer.echo(f"systemd did not do it ({problem}). Where it runs: {left}", err=True)
            return
