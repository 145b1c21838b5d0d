"""`deerflow update|rollback`: a new version beside the one in use, tried on a copy before anything changes, and the way back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from importlib.metadata import distribution, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli import Settings
from deerflow_app.cli.failures import CommandFailure, usage_failure

if TYPE_CHECKING:
    from deerflow.config import ConfigSource, Paths
    from deerflow_app.cli.installation import Installation, Wheels

TRIAL_VAR = "DEER_FLOW_TRIAL_DATABASE"
"""The copy that `deerflow trial` starts on. Not an argument, since that of PostgreSQL holds a password."""
TRIAL_SECONDS = 300
_DEMO_CONFIG = "sandbox:\n  tool_image:\n    enabled: false\n"

Report = Callable[[str], None]


def update(
    settings: Settings,
    wheels: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Take DeerFlow's wheels from here, not from the index.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether there is a newer version.")] = False,
) -> None:
    """Install the newest version beside this one, try it on a copy of the database, and use it from then on."""
    from packaging.version import Version

    from deerflow_app.cli.commands.server import opened
    from deerflow_app.cli.commands.service import restart
    from deerflow_app.cli.installation import Installation, InstallationError, Wheels

    if '"editable": true' in (distribution("deerflow").read_text("direct_url.json") or ""):
        raise usage_failure("This is a checkout of the source.", "Update it with: git pull && make install")
    installation, source = Installation.find(), Wheels(wheels.absolute() if wheels else None)
    try:
        newest, used = installation.newest(source), version("deerflow")
        if Version(newest) <= Version(used):
            return typer.echo(f"DeerFlow {used} is in use, and there is none newer.")
        if check:
            return typer.echo(f"DeerFlow {newest} can be had, {used} is in use. `deerflow update` installs it.")
        config, paths = opened(settings)
        install(installation, newest, source, config, paths, typer.echo)
    except InstallationError as error:
        raise CommandFailure(str(error)) from error
    typer.echo(f"DeerFlow {newest} is in use from the next start on: {installation.program}")
    typer.echo(f"`deerflow rollback` goes back to {used}, which stays for a week.")
    restart(installation.program, typer.echo)


def install(
    installation: Installation, newest: str, wheels: Wheels, config: ConfigSource, paths: Paths, report: Report
) -> None:
    """Make ``newest`` the version in use, unless it fails on a copy. A kill at any moment leaves a whole version in use.

    Raises:
        CommandFailure: another update is at work, or the new version failed on the copy.
        InstallationError, DatabaseError, OSError: it could not be installed or tried; the version in use is untouched.
    """
    from deerflow_app.gateway import held

    installation.root.mkdir(parents=True, exist_ok=True)
    with held(installation.root) as is_ours:
        if not is_ours:
            raise CommandFailure(f"Another update is at work in {installation.root}.", "Wait for its end.")
        installation.tidy()
        report(f"Installing DeerFlow {newest} beside the version in use ...")
        place = installation.build(newest, wheels)
        report("Trying it on a copy of the database ...")
        _try(installation, place, config, paths)
        report("Switching over ...")
        installation.switch(place)


def _try(installation: Installation, place: Path, source: ConfigSource, paths: Paths) -> None:
    from deerflow.storage.backup import database_copy

    config = source.current()
    location, file = config.database_location(paths, direct=True), config.origin.config_file
    with tempfile.TemporaryDirectory(dir=installation.root, prefix=".trial-") as name:
        work = Path(name)
        if "://" in location or Path(location).exists():
            with database_copy(location, work) as copy:
                done = _trial(place, work, copy, file)
        else:
            done = _trial(place, work, str(work / "new.sqlite"), file)
    if done.returncode:
        raise CommandFailure(
            f"The new version failed on a copy of the database:\n{done.stdout.strip()[-2000:]}",
            "The version in use and its data are untouched. Report it with these lines, please.",
        )


def _trial(place: Path, work: Path, database: str, config: Path | None) -> subprocess.CompletedProcess[str]:
    command = [str(place / "bin/deerflow"), "trial", *(["--config", str(config)] if config else [])]
    environment = {**os.environ, "DEER_FLOW_HOME": str(work / "home"), TRIAL_VAR: database}
    try:
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=TRIAL_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(command, 1, f"It did not come to an end within {TRIAL_SECONDS} s: {error}")


def trial(settings: Settings) -> None:
    """Start on a copy of a database without executing anything of it, answer, and let the demo model do one run."""
    from deerflow.runtime import Runtime
    from deerflow.storage.database import Database
    from deerflow_app.cli.commands.server import opened
    from deerflow_app.gateway.server import serve
    from deerflow_app.gateway.settings import GatewaySettings

    source, paths = opened(settings)
    paths.ensure_base_dir()
    database = Database(os.environ[TRIAL_VAR])
    gateway = GatewaySettings.from_environ({}, paths.base_dir, host="127.0.0.1", port=0, serve_ui=False)
    answers: list[bool] = []

    def ask(url: str) -> None:
        answers.append(_answers(url))
        os.kill(os.getpid(), signal.SIGTERM)

    code = serve(
        database,
        gateway,
        lambda: Runtime(source, paths, executes=False, database=database),
        on_start=lambda url: threading.Thread(target=ask, args=[url], daemon=True).start(),
    )
    if code or answers != [True]:
        raise CommandFailure("The server did not answer on the copy.")
    _demo_run()


def _answers(url: str) -> bool:
    import httpx

    try:
        return httpx.get(f"{url}/api/ok", trust_env=False, timeout=60).status_code == 200
    except httpx.HTTPError:
        return False


def _demo_run() -> None:
    """Raises CommandFailure unless the demo model, in a home of its own, comes to the end of a task."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "config.yaml").write_text(_DEMO_CONFIG)
        done = subprocess.run(
            [sys.executable, "-m", "deerflow_app.cli.main", "run", "Say hello.", "--local", "--config", "config.yaml"],
            cwd=home,
            env={"PATH": os.environ.get("PATH", ""), "HOME": name, "DEER_FLOW_HOME": str(home / "data")},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise CommandFailure(f"The demo run failed: {done.stdout.strip()[-1000:]}")


def rollback(
    settings: Settings,
    data: Annotated[
        bool, typer.Option("--data", help="Only the database: make it one that this version can use.")
    ] = False,
) -> None:
    """Go back to the version before the last update, and to the database that it can use. Stop DeerFlow first."""
    from deerflow.storage.rollback import rollback as put_back
    from deerflow_app.cli.commands.server import alone, opened
    from deerflow_app.cli.commands.service import restart
    from deerflow_app.cli.installation import Installation

    source, paths = opened(settings)
    installation = Installation.find()
    before = None if data else installation.previous
    with alone(paths.ensure_base_dir()):
        done = put_back(source.current().database_location(paths, direct=True)) if before is None else None
    if before is not None:
        file = source.current().origin.config_file
        command = [str(before / "bin/deerflow"), "rollback", "--data", *(["--config", str(file)] if file else [])]
        if subprocess.run(command, check=False).returncode:
            raise CommandFailure(
                "The version before could not have its database back; see above.", "Nothing was switched."
            )
        installation.switch_back()
        typer.echo(f"{before} is in use again from the next start on.")
        restart(installation.program, typer.echo)
    elif done is not None:
        typer.echo(f"The database is the copy {done.copy.name} again. What is newer is kept in {done.aside}")
    else:
        typer.echo("This version can use the database as it is: nothing was put back.")
