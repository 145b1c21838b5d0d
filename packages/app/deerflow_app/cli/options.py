"""Options that several commands take."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="The config.yaml to use.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show log and tracebacks on stderr.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@dataclass(slots=True)
class Settings:
    """What holds for a whole call.

    Args:
        local: a running server is left alone.
        subagents: the agent may delegate.
        agent: the custom agent to talk to.
        is_bootstrap: the talk is about setting it up.
    """

    config: Path | None = None
    debug: bool = False
    local: bool = False
    subagents: bool = False
    agent: str | None = None
    is_bootstrap: bool = False


def settings_of(context: typer.Context, config: Path | None, debug: bool = False, local: bool = False) -> Settings:
    """Options may stand before or after the command."""
    settings = context.ensure_object(Settings)
    settings.config = config or settings.config
    settings.debug = debug or settings.debug
    settings.local = local or settings.local
    return settings


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
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
        app.command(name)(call)
        return function

    return add


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, default=str, ensure_ascii=False, indent=2))
