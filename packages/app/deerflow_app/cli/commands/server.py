"""`deerflow serve|stop|worker|provisioner|prune`: running DeerFlow for a browser, and looking after what it keeps."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli import Settings
from deerflow_app.cli.failures import CommandFailure, usage_failure

if TYPE_CHECKING:
    from deerflow.config import ConfigSource, Paths
    from deerflow.features.retention import RetentionPolicy
    from deerflow.runtime import Runtime
    from deerflow.sandbox.tool_image import ToolImage

log = logging.getLogger(__name__)

LIFE_INTERVAL = 5.0
"""Seconds between two signs of a worker's life."""
UI_PORT = 2026
API_PORT = 8001


def serve(
    settings: Settings,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.  [default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65535, help=f"[default: {UI_PORT}, without the page {API_PORT}]"),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Serve the page, or the API alone.")] = True,
    auth: Annotated[
        bool, typer.Option("--auth/--no-auth", help="Ask who is there, or take everyone for the one local user.")
    ] = True,
    execute: Annotated[
        bool, typer.Option("--execute/--no-execute", help="Execute runs here, or leave them to 'deerflow worker'.")
    ] = True,
) -> None:
    """Serve DeerFlow over HTTP: the page for the browser and the API for programs, on one port."""
    from deerflow.storage.database import Database
    from deerflow_app.gateway.server import ServerError
    from deerflow_app.gateway.server import serve as serve_http
    from deerflow_app.gateway.settings import GatewaySettings, SettingsError

    source, paths = opened(settings)
    paths.ensure_base_dir()
    environ = {**source.current().origin.environ, **({} if auth else {"DEER_FLOW_AUTH_DISABLED": "true"})}
    try:
        gateway = GatewaySettings.from_environ(
            environ, paths.base_dir, host=host, port=_port(port, ui, environ), serve_ui=ui
        )
    except SettingsError as error:
        raise usage_failure(str(error)) from error
    config_now = source.current()
    database = Database.of(config_now, paths)

    def make_runtime() -> Runtime:
        from deerflow.runtime import Runtime
        from deerflow_app.channels.platforms import makers

        platforms = makers(source.current().runs.webhook_allow_nets, environ)
        runtime = Runtime(source, paths, executes=execute, database=database, platforms=platforms)
        runtime.agent_provider.harness.programs.try_out_aside()
        return runtime

    if not database.is_postgres and not execute:
        raise usage_failure("Workers need database.backend: postgres. With SQLite the gateway executes runs itself.")
    with contextlib.nullcontext() if database.is_postgres else alone(paths.base_dir):
        try:
            code = serve_http(
                database,
                gateway,
                make_runtime,
                config_file=config_now.origin.config_file,
                on_start=lambda url: _began(url, ui),
                on_open=lambda: _opened_runtime(source, paths, execute),
                on_setup=_tell_setup_code,
            )
        except ServerError as error:
            raise CommandFailure(str(error)) from error
    raise typer.Exit(code)


def stop(settings: Settings) -> None:
    """Stop the server of this data directory, as Ctrl-C does; runs go on at its next start."""
    import os
    import time

    from deerflow.config import Paths
    from deerflow_app.gateway import held, running_server

    base = Paths().base_dir
    if (server := running_server(base)) is None:
        return typer.echo(f"No server is running for {base}.")
    command = Path(f"/proc/{server.pid}/cmdline")
    if command.exists() and b"deerflow" not in command.read_bytes():
        raise CommandFailure(f"{server.url} runs in another container.", "Stop it there.")
    os.kill(server.pid, signal.SIGTERM)
    for _ in range(600):
        with held(base) as is_free:
            if is_free and running_server(base) is None:
                return typer.echo(f"Stopped {server.url}.")
        time.sleep(0.1)
    raise CommandFailure(
        f"Process {server.pid} has not ended within a minute.", f"Its log says why; `kill -9 {server.pid}` ends it."
    )


def worker(
    settings: Settings,
    health_file: Annotated[
        Path | None,
        typer.Option("--health-file", envvar="DEER_FLOW_HEALTH_FILE", help="Touched while the database answers."),
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(
            "--health-port",
            envvar="DEER_FLOW_HEALTH_PORT",
            min=0,
            max=65535,
            help="Answer /ready and /metrics there, at the address of GATEWAY_HOST.  [default: no port]",
        ),
    ] = None,
) -> None:
    """Execute runs that gateways with the same PostgreSQL take in. Stops at SIGTERM and hands over what is not finished."""
    from deerflow.runtime import Runtime

    source, paths = opened(settings)
    paths.ensure_base_dir()
    runtime = Runtime(source, paths)
    if not runtime.database.is_postgres:
        raise usage_failure("A worker needs database.backend: postgres. With SQLite the gateway executes runs itself.")
    runtime.agent_provider.harness.programs.try_out_aside()
    if health_port is None:
        return asyncio.run(_work(runtime, health_file, contextlib.nullcontext("")))
    from deerflow_app.gateway.server import ServerError, serve_status
    from deerflow_app.gateway.settings import GatewaySettings, SettingsError

    environ = source.current().origin.environ
    try:
        status = GatewaySettings.from_environ(environ, paths.base_dir, port=health_port, serve_ui=False)
        asyncio.run(_work(runtime, health_file, serve_status(runtime, status)))
    except SettingsError as error:
        raise usage_failure(str(error)) from error
    except ServerError as error:
        raise CommandFailure(str(error)) from error


def provisioner(settings: Settings) -> None:
    """Give each thread a pod of the Kubernetes cluster that this runs in (docs/kubernetes.md)."""
    from deerflow_app.provisioner.__main__ import main

    main()


def prune(
    settings: Settings,
    threads_days: Annotated[
        float | None, typer.Option("--threads-days", min=0, help="Delete threads that nobody used for so long.")
    ] = None,
    events_days: Annotated[
        float | None, typer.Option("--events-days", min=0, help="Forget what older runs streamed.")
    ] = None,
    checkpoints_days: Annotated[
        float | None, typer.Option("--checkpoints-days", min=0, help="Drop the way back in threads unused for so long.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
) -> None:
    """Remove what is not kept any longer (see 'retention' in config.yaml) and give the space back."""
    from dataclasses import replace
    from datetime import timedelta

    from deerflow.runtime import Runtime, retention_policy
    from deerflow_app.cli.chat.files import human_size

    source, paths = opened(settings)
    given = {"threads": threads_days, "events": events_days, "checkpoints": checkpoints_days}
    changes = {name: timedelta(days=days) for name, days in given.items() if days is not None}
    policy = replace(retention_policy(source.current()), **changes)
    removed = asyncio.run(_prune(Runtime(source, paths, executes=False), policy, dry_run))
    for name, (count, size) in removed.items():
        typer.echo(f"{name:<16}{count:>8}{human_size(size):>12}")
    typer.echo("Nothing was removed: this was a dry run." if dry_run else "Done.")


def opened(settings: Settings) -> tuple[ConfigSource, Paths]:
    from deerflow.config import ConfigSource, Paths
    from deerflow_app.cli.backend import log_to_stderr, refuse_foreign

    source, paths = ConfigSource(settings.config), Paths()
    log_to_stderr("debug" if settings.debug else source.current().log_level)
    refuse_foreign(source.current(), paths)
    return source, paths


@contextlib.contextmanager
def alone(base_dir: Path) -> Iterator[None]:
    """Nobody else serves or restores ``base_dir`` meanwhile, or CommandFailure."""
    from deerflow_app.gateway import announced, held, running_server

    if (other := running_server(base_dir)) is not None:
        raise CommandFailure(f"DeerFlow is running already: {other.url}", "Open it there, or stop it first.")
    with held(base_dir) as is_ours:
        if not is_ours and (other := announced(base_dir)) is not None and not other.is_near():
            raise CommandFailure(
                f"Another DeerFlow uses {base_dir}: process {other.pid} of {other.host}, another container or machine.",
                "Stop it first, or give this one a directory of its own: DEER_FLOW_HOME. Several processes share a directory "
                "with PostgreSQL only.",
            )
        if not is_ours:
            raise CommandFailure(
                f"Another DeerFlow uses {base_dir}, though it does not answer.",
                "Wait until it is ready, or stop it first. DEER_FLOW_HOME names another directory.",
            )
        yield


def _port(given: int | None, ui: bool, environ: Mapping[str, str]) -> int:
    if given is not None:
        return given
    named = environ.get("GATEWAY_PORT", "").strip()
    if named and not named.isdigit():
        raise usage_failure(f"GATEWAY_PORT is {named!r}; use a number.")
    return int(named) if named else UI_PORT if ui else API_PORT


def _began(url: str, ui: bool) -> None:
    typer.echo(f"DeerFlow is ready: {url if ui else url + '/docs'}   (Ctrl-C stops it; runs go on at the next start)")


def _tell_setup_code(code: str) -> None:
    typer.echo(f"Nobody has an account yet. Whoever makes the first from another machine needs the setup code {code}")


def _opened_runtime(source: ConfigSource, paths: Paths, execute: bool) -> None:
    from deerflow.harness import tool_image
    from deerflow.runtime import LEAD_AGENT_MODULE
    from deerflow_app.backups import keep_making

    config = source.current()
    collect_seldom(*[LEAD_AGENT_MODULE] if execute else [])
    if execute:
        keep_making(source.current)
    if execute and config.sandbox.tool_image.enabled:
        threading.Thread(target=_prepare, args=[tool_image(config, paths)], name="tool-image", daemon=True).start()


def _prepare(image: ToolImage) -> None:
    """Build the sandbox's Python packages unless they are there. Runs that begin before they are go without."""
    from deerflow.sandbox.tool_image import ToolImageError

    if image.status().ready:
        return
    typer.echo("Preparing the sandbox's Python packages in the background (once, about a minute).")
    try:
        image.build()
        typer.echo("The sandbox's Python packages are ready.")
    except ToolImageError as error:
        typer.echo(f"{error}\nThe agent works without Python libraries until `deerflow setup` succeeds.", err=True)


async def _work(runtime: Runtime, health_file: Path | None, status: AbstractAsyncContextManager[str]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await runtime.start()
        _opened_runtime(runtime.config_source, runtime.paths, execute=True)
        living = asyncio.create_task(_show_life(runtime, health_file)) if health_file is not None else None
        async with status as url:
            where = f" Health and figures: {url}/ready, {url}/metrics." if url else ""
            typer.echo(f"This worker takes runs.{where} (Ctrl-C stops it; others go on with them)")
            await stop.wait()
        if living is not None:
            living.cancel()
    finally:
        await runtime.aclose()


async def _show_life(runtime: Runtime, file: Path) -> None:
    """Touch ``file`` every few seconds in which the database answers: a worker has no port to be asked at."""
    while True:
        try:
            await runtime.database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
            await asyncio.to_thread(file.touch)
        except Exception as error:
            log.warning("This worker cannot show that it is healthy: %s", error)
        await asyncio.sleep(LIFE_INTERVAL)


async def _prune(runtime: Runtime, policy: RetentionPolicy, dry_run: bool) -> dict[str, tuple[int, int]]:
    try:
        await runtime.start()
        removed = await runtime.retention.apply(policy, dry_run=dry_run)
    finally:
        await runtime.aclose()
    return {name: (amount.count, amount.bytes) for name, amount in removed.items()}


THRESHOLDS = (2_000, 10, 20)
"""Of new objects, of looks at those, and of looks at the ones that outlived them. Python's 700, 10, 10 make it look through
everything a dozen times while some hundred runs begin, and nobody is served for half a second each time; of what it finds
then, nearly all is found by the quick looks, too."""


def collect_seldom(*modules: str) -> None:
    """Let the collector hold up the process seldom and for a short time: it never looks again at what is there now.

    Args:
        modules: imported first, on a thread, since what belongs to them stays as well.
    """
    gc.set_threshold(*THRESHOLDS)
    threading.Thread(target=_set_aside, args=modules, name="collector", daemon=True).start()


def _set_aside(*modules: str) -> None:
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()
