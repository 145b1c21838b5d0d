"""`/connect`: a provider's key, entered in the terminal, tried, and kept encrypted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from deerflow.errors import RequestError
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow_app.cli.failures import CommandFailure, usage_failure
from deerflow_app.cli.terminal import clean

if TYPE_CHECKING:
    from deerflow.config import ConfigSource
    from deerflow.features.connections.service import Connection, ConnectionService, Trial
    from deerflow_app.cli.chat.transcript import TerminalTranscript

OWNER = Principal(LOCAL_PRINCIPAL.user_id, role="admin", source="internal")


async def connect(transcript: TerminalTranscript, source: ConfigSource) -> None:
    """Ask for provider and key, and use them from the next message on. Ctrl-C or Ctrl-D leaves everything as it is.

    Raises CommandFailure where config.yaml lists the models, or the key does not work.
    """
    from deerflow.features.connections.service import ConnectionService

    service = ConnectionService(source)
    found = await service.all(OWNER)
    if found["models_in_file"]:
        raise usage_failure("config.yaml lists the models.", "Add the model there; /model then shows it.")
    providers = [one for one in found["connections"] if one["kind"] == "model" and one["needs"] != "nothing"]
    lines = "\n".join(f"  {number:>2}  {clean(one['title'])}" for number, one in enumerate(providers, 1))
    transcript.block(Text(lines))
    try:
        chosen = await _typed(f"Provider, 1 to {len(providers)}")
        if not chosen.isdecimal() or not 1 <= int(chosen) <= len(providers):
            raise usage_failure(f"There is no provider {chosen!r}.", f"Type a number from 1 to {len(providers)}.")
        await _try(transcript, service, providers[int(chosen) - 1])
    except (EOFError, KeyboardInterrupt):
        transcript.notice("Nothing was changed.")


async def _try(transcript: TerminalTranscript, service: ConnectionService, provider: Connection) -> None:
    try:
        trial = await _trial(service, provider)
        check = await service.test(OWNER, provider["id"], trial)
        if not check.ok:
            raise CommandFailure(check.problem or "It does not answer.", "/connect tries again.")
        await service.connect(OWNER, provider["id"], trial, "encrypted")
    except RequestError as error:
        raise CommandFailure(str(error), "/connect tries again.") from None
    transcript.block(Text("✓ ", style="ok").append(f"{provider['title']} is connected. /model shows its models."))


async def _trial(service: ConnectionService, provider: Connection) -> Trial:
    from deerflow.features.connections.service import Trial

    address = await _typed("Base URL, usually ending in /v1") if provider["needs"] == "address" else None
    key = await _typed("Key (Enter: none)" if address else "Key", hidden=True)
    trial = Trial(key or None, address)
    if address is None:
        return trial
    return Trial(trial.key, address, tuple((await service.models(OWNER, provider["id"], trial))[:1]))


async def _typed(question: str, *, hidden: bool = False) -> str:
    from prompt_toolkit import PromptSession

    session: PromptSession[str] = PromptSession()
    return (await session.prompt_async(f"  {question} › ", is_password=hidden)).strip()
