"""Sign-in of bots by QR code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from deerflow.errors import NotFoundError, UnavailableError
from deerflow.features.channels.types import ChannelError
from deerflow_app.channels.qr_login import QrLogin, QrState
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal
from deerflow_app.gateway.routes.channels import ChannelBot, CurrentChannels, Kind, bot_shown, platform_of

router = Router(prefix="/api/channels", tags=["channels"])


class ChannelQrCode(TypedDict):
    """``content``: what the picture holds. ``id`` and ``server`` are for the questions about it."""

    id: str
    server: str
    content: str


class ChannelQrQuestion(BaseModel):
    """``bot_id``: the bot that gets the new sign-in; without it a new one is added, as ``NewBot`` says. ``verify_code``: the number
    that the phone shows, once the state is ``needs_code``."""

    id: str = Field(max_length=1024)
    server: str = Field(max_length=256)
    verify_code: str = Field(default="", max_length=16)
    bot_id: str | None = Field(default=None, max_length=128)
    agent: str | None = Field(default=None, max_length=128)
    model: str | None = Field(default=None, max_length=256)
    own: bool = False


class ChannelQrProgress(TypedDict):
    state: QrState
    server: str
    bot: ChannelBot | None


@router.post("/{kind}/qr-code", summary="Make a QR code that signs a bot in")
async def make_qr_code(kind: Kind, principal: CurrentPrincipal) -> ChannelQrCode:
    with _errors_of_platform():
        code = await _login(kind).begin()
    return {"id": code.id, "server": code.server, "content": code.content}


@router.post("/{kind}/qr-code/progress", summary="What became of a QR code; adds the bot once it is confirmed")
async def qr_progress(
    kind: Kind, given: ChannelQrQuestion, principal: CurrentPrincipal, channels: CurrentChannels
) -> ChannelQrProgress:
    """Waits up to half a minute for something to happen."""
    if given.bot_id is None:
        channels.service.check_may_add(principal, own=given.own)
    elif (await channels.service.get(principal, given.bot_id))["kind"] != kind:
        raise NotFoundError(f"This bot is not on {platform_of(kind).title}.")
    with _errors_of_platform():
        progress = await _login(kind).poll(given.id, given.server, given.verify_code)
    made: dict[str, Any] | None = None
    if progress.state is QrState.CONFIRMED and given.bot_id is not None:
        made = await channels.service.change(principal, given.bot_id, progress.settings)
    elif progress.state is QrState.CONFIRMED:
        values = {**progress.settings, "agent": given.agent, "model": given.model}
        made = await channels.service.add(principal, kind, values, own=given.own)
    return {"state": progress.state, "server": progress.server, "bot": bot_shown(made) if made is not None else None}


def _login(kind: str) -> QrLogin:
    """Raises NotFoundError."""
    platform = platform_of(kind)
    if platform.login is None:
        raise NotFoundError(f"{platform.title} has no sign-in by QR code.")
    return platform.login()


@contextmanager
def _errors_of_platform() -> Iterator[None]:
    """Let a platform's refusal reach the person."""
    try:
        yield
    except ChannelError as error:
        raise UnavailableError(str(error)) from error
