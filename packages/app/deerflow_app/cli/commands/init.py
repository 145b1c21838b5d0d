"""`deerflow init`: a few questions on a terminal, each with an answer that Enter takes; then a commented config.yaml."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli import Settings
from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.terminal import clean

if TYPE_CHECKING:
    from deerflow.config import ConfigSource
    from deerflow.features.connections.service import Connection, ConnectionService, Trial
    from deerflow.identity import Principal

NETWORKS = (
    ("none", "no network: the agent still searches and reads the web, outside of the sandbox"),
    ("internet", "every public address, so that commands can install packages"),
    ("host", "everything that this machine reaches, your own network included"),
)
CHANNELS = ("telegram", "slack", "discord", "feishu", "dingtalk", "wecom")
"""Platforms that need nothing but tokens."""


def init(
    settings: Settings, path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("config.yaml")
) -> None:
    """Set DeerFlow up by a few questions: model, web search, sandbox, a chat channel."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise usage_failure(
            "`deerflow init` asks questions, so it needs a terminal.", "`deerflow config init` asks none."
        )
    if path.exists():
        remedy = "Edit it, or name another file. `deerflow config upgrade` adds what is new."
        raise usage_failure(f"{path} exists already.", remedy)
    from deerflow.config import ConfigSource

    wizard = Wizard.of(ConfigSource(settings.config))
    _title("1  Model")
    wizard.model()
    _title("2  Web search")
    wizard.search()
    _title("3  Sandbox")
    network = wizard.sandbox()
    _title("4  Chat channel")
    channel = wizard.channel()
    with path.open("x", encoding="utf-8") as file:
        file.write(config_text(network, channel))
    typer.echo(f"\nWrote {path}. Keys are kept encrypted in the data directory, as those that you enter on the page.")
    typer.echo(
        "Next: `deerflow serve` for the browser, `deerflow` for the terminal, `deerflow doctor` if something is odd."
    )


def config_text(network: str, channel: str | None) -> str:
    """Return the commented example with the answers in it. Models, searches and keys are found without it."""
    from deerflow.config import example_file

    text = example_file().read_text(encoding="utf-8")
    if network != "none":
        text = _after(text, "  use: auto\n", f"\n  network: {network}\n")
    if channel:
        keys = "".join(f"    {key}: ${_variable(channel, key)}\n" for key in _tokens(channel))
        text = _after(text, "Settings, Channels.\n\n", f"channels:\n  {channel}:\n    enabled: true\n{keys}\n")
    return text


def _after(text: str, place: str, added: str) -> str:
    head, found, tail = text.partition(place)
    assert found, place
    return head + found + added + tail


def _tokens(channel: str) -> list[str]:
    """Return the settings that a platform needs; the key in config.yaml, and, with the platform before it, the variable."""
    from deerflow_app.channels.platforms import PLATFORMS

    return [one.name for one in PLATFORMS[channel].settings if one.required]


def _variable(channel: str, key: str) -> str:
    return f"{channel}_{key}".upper()


@dataclass(frozen=True, slots=True)
class Wizard:
    """The questions. What is entered is tried before it is kept, and asked for again where it does not work."""

    source: ConfigSource
    connections: ConnectionService
    principal: Principal

    @classmethod
    def of(cls, source: ConfigSource) -> Wizard:
        from deerflow.features.connections.service import ConnectionService
        from deerflow.identity import LOCAL_PRINCIPAL, Principal

        return cls(
            source, ConnectionService(source), Principal(LOCAL_PRINCIPAL.user_id, role="admin", source="internal")
        )

    def model(self) -> None:
        from deerflow_app.cli.backend import is_demo

        known = self._known("model")
        found = next((one for one in self.source.current().models if not is_demo(one)), None)
        if found is not None:
            typer.echo(f"{found.display_name or found.name} answers ({found.discovered_from or 'config.yaml'}).")
            if typer.confirm("Use it?", default=True):
                return
        chosen = _choose("Which provider?", [*(one["title"] for one in known), "none yet: the demo model answers"])
        if chosen < len(known):
            self._connect(known[chosen])

    def search(self) -> None:
        known = self._known("search")
        used = next(number for number, one in enumerate(known) if one["in_use"])
        notes = {"key": "with a key", "address": "a server of your own", "nothing": "without an account"}
        titles = [f"{one['title']} ({notes[one['needs']]})" for one in known]
        chosen = _choose("Who searches the web?", titles, default=used)
        if chosen != used:
            self._connect(known[chosen])

    def sandbox(self) -> str:
        """Say how commands are isolated here, and return what they may reach."""
        from deerflow.config import Paths
        from deerflow.harness import Harness
        from deerflow_app.cli.commands.doctor import sandbox

        harness = Harness.build(self.source.current(), Paths(), ())
        for _, status, found, *fix in sandbox(harness):
            typer.echo(
                f"{'✓' if status == 'ok' else '!'} {clean(found)}{f' → {clean(fix[0])}' if fix and fix[0] else ''}"
            )
        return NETWORKS[_choose("What may commands reach?", [f"{name}: {what}" for name, what in NETWORKS])][0]

    def channel(self) -> str | None:
        """Return the platform that was chosen, whose tokens are kept by now."""
        chosen = _choose("Where do you want to chat with it?", ["on the page and in the terminal only", *CHANNELS])
        if chosen == 0:
            return None
        name = CHANNELS[chosen - 1]
        values = {_variable(name, key): _secret(f"{name}: {key}") for key in _tokens(name)}
        self.source.variables.change(values, "encrypted")
        return name

    def _connect(self, provider: Connection) -> None:
        """Ask for what the provider needs until it works, or until the person gives up."""
        from deerflow.errors import RequestError

        while True:
            try:
                trial = self._trial(provider)
                typer.echo("Trying it ...")
                check = asyncio.run(self.connections.test(self.principal, provider["id"], trial))
                if check.ok:
                    asyncio.run(self.connections.connect(self.principal, provider["id"], trial, "encrypted"))
                    return typer.echo(f"✓ {provider['title']} works.")
                problem = check.problem or "it does not answer"
            except RequestError as error:
                problem = str(error)
            typer.echo(f"✗ {clean(problem)}")
            if not typer.confirm("Try again?", default=True):
                return

    def _trial(self, provider: Connection) -> Trial:
        from deerflow.features.connections.service import Trial

        address = typer.prompt("Address (https://…)").strip() if provider["needs"] == "address" else None
        if provider["needs"] == "nothing":
            return Trial()
        optional = " (Enter: none)" if provider["needs"] == "address" else ""
        trial = Trial(_secret(f"Key{optional}", optional=bool(optional)) or None, address)
        if provider["kind"] == "search" or provider["needs"] != "address":
            return trial
        offered = asyncio.run(self.connections.models(self.principal, provider["id"], trial))
        return Trial(trial.key, address, (offered[_choose("Which model?", offered[:20])],))

    def _known(self, kind: str) -> list[Connection]:
        found = asyncio.run(self.connections.all(self.principal))
        return [one for one in found["connections"] if one["kind"] == kind]


def _title(text: str) -> None:
    typer.secho(f"\n{text}", bold=True)


def _secret(text: str, *, optional: bool = False) -> str:
    return typer.prompt(text, hide_input=True, default="" if optional else None, show_default=False).strip()


def _choose(question: str, answers: Sequence[str], default: int = 0) -> int:
    """Return the number of the answer that the person chose, from 0."""
    for number, answer in enumerate(answers, 1):
        typer.echo(f"  {number:>2}  {clean(answer)}")
    while True:
        given = typer.prompt(question, default=default + 1, type=int)
        if 1 <= given <= len(answers):
            return given - 1
        typer.echo(f"A number from 1 to {len(answers)}, please.")
