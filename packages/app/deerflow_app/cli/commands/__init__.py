"""The subcommands, and what they share: options, JSON, and a client that is asked for one thing."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from deerflow_app.cli import Settings

if TYPE_CHECKING:
    from deerflow_app.cli.backend import Client

T = TypeVar("T")

ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="The config.yaml to use.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show log and tracebacks on stderr.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def settings_of(context: typer.Context, config: Path | None, debug: bool) -> Settings:
    """Options may stand before or after the command."""
    settings = context.ensure_object(Settings)
    settings.config = config or settings.config
    settings.debug = debug or settings.debug
    return settings


def command(
    app: typer.Typer, name: str | None = None, *, hidden: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command whose first parameter is ``settings``: Settings, as ``--config`` and ``--debug`` say."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        def call(context: typer.Context, config: ConfigFile = None, debug: Debug = False, **given: Any) -> None:
            function(settings_of(context, config, debug), **given)

        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        context, *shared, _ = inspect.signature(call, eval_str=True).parameters.values()
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (context, *own, *shared)]
        call = wraps(function)(call)
        vars(call)["__signature__"] = inspect.Signature(parameters)
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        app.command(name, hidden=hidden)(call)
        return function

    return add


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, default=str, ensure_ascii=False, indent=2))


def with_client(settings: Settings, work: Callable[[Client], Awaitable[T]]) -> T:
    """Open what does the work, do it, and close."""
    from deerflow_app.cli.backend import open_backend

    client = open_backend(settings).client

    async def run() -> T:
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(run())
