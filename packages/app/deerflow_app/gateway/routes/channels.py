"""Chat channels: bots and their state, the person's accounts on the platforms, and requests of platforms that call us."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse
from typing_extensions import TypedDict

from deerflow.errors import NotFoundError
from deerflow.features.channels.assembly import Channels
from deerflow.identity import Principal
from deerflow_app.channels.platforms import PLATFORMS, Platform
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime

router = Router(prefix="/api/channels", tags=["channels"])
http_routes = Router(tags=["channels"])

_EVENTS = "/api/channels/bots/{bot}/events"
_CALLS = {"github": "/api/webhooks/github"}

BotId = Annotated[str, Path(max_length=128)]
Kind = Annotated[str, Path(max_length=32, description="Platform, such as `telegram`.")]


async def current_channels(runtime: CurrentRuntime) -> Channels:
    return runtime.channels


CurrentChannels = Annotated[Channels, Depends(current_channels)]


class ChannelBot(TypedDict):
    """A bot on a platform. ``values`` are its settings, secrets as marks; empty for those who may not change it. ``waiting``: messages
    that could not be sent yet. ``calls``: path that the platform is to call."""

    id: str
    kind: str
    title: str
    name: str | None
    link: str | None
    state: Literal["connected", "retrying", "signed-out", "displaced", "misconfigured"]
    since: datetime | None
    error: str | None
    is_on: bool
    in_file: bool
    own: bool
    can_change: bool
    agent: str | None
    model: str | None
    values: dict[str, str]
    waiting: int
    calls: str | None


class ChannelBots(TypedDict):
    bots: list[ChannelBot]


class NewBot(BaseModel):
    """``own``: it answers the person alone; otherwise it is everyone's, which only administrators may add."""

    kind: str = Field(max_length=32)
    values: dict[str, str] = Field(default={}, max_length=32)
    agent: str | None = Field(default=None, max_length=128)
    model: str | None = Field(default=None, max_length=256)
    own: bool = False


class BotChange(BaseModel):
    """Changes of a bot: what is left out stays. An empty secret stays as it is kept."""

    values: dict[str, str] = Field(default={}, max_length=32)
    agent: str | None = Field(default=None, max_length=128)
    model: str | None = Field(default=None, max_length=256)
    is_on: bool | None = None


class ChannelTest(TypedDict):
    sent: bool
    place: str


class ChannelState(TypedDict):
    enabled: bool
    running: bool


class ChannelStatus(TypedDict):
    """State by platform."""

    service_running: bool
    channels: dict[str, ChannelState]


class ChannelRestart(TypedDict):
    success: bool
    message: str


class ChannelCredentialField(TypedDict):
    name: str
    label: str
    type: Literal["text", "password", "boolean"]
    required: bool


class ChannelProvider(TypedDict):
    """``qr_login``: the settings of a bot come of a QR code; see ``POST /api/channels/{kind}/qr-code``."""

    provider: str
    display_name: str
    enabled: bool
    configured: bool
    connectable: bool
    unavailable_reason: str | None
    auth_mode: Literal["code"]
    connection_status: Literal["connected", "not_connected"]
    credential_fields: list[ChannelCredentialField]
    credential_values: dict[str, str]
    qr_login: bool


class ChannelProviders(TypedDict):
    enabled: bool
    providers: list[ChannelProvider]


class ChannelSettings(BaseModel):
    values: dict[str, str] = Field(max_length=32)


class ChannelAccount(TypedDict):
    """An account of the person's on a platform."""

    id: str
    provider: str
    display_name: str
    status: Literal["connected"]
    external_account_id: str | None
    external_account_name: str | None
    workspace_id: str | None
    workspace_name: str | None
    scopes: list[str]
    metadata: dict[str, Any]


class ChannelAccounts(TypedDict):
    connections: list[ChannelAccount]


class ChannelCode(TypedDict):
    """A code that connects the person's account: write `/connect CODE` to the bot, or open ``url``."""

    provider: str
    mode: Literal["code"]
    url: str | None
    code: str
    instruction: str
    expires_in: int


@router.get("/", summary="State of the chat channels, by platform")
async def status(principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelStatus:
    bots = await channels.service.list(principal)
    states: dict[str, ChannelState] = {
        kind: {
            "enabled": any(bot["is_on"] for bot in bots if bot["kind"] == kind),
            "running": any(bot["is_on"] and bot["state"] == "connected" for bot in bots if bot["kind"] == kind),
        }
        for kind in PLATFORMS
    }
    return {"service_running": True, "channels": states}


@router.get("/providers", summary="Platforms, the settings that each needs, and whether you are connected")
async def list_providers(principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelProviders:
    return {"enabled": True, "providers": await _providers(principal, channels)}


@router.post("/{kind}/runtime-config", summary="Set up the bot of everyone on a platform")
async def set_up(
    kind: Kind, given: ChannelSettings, principal: CurrentPrincipal, channels: CurrentChannels
) -> ChannelProvider:
    """Adds it, or changes the one that there is. ``/bots`` knows more than one."""
    channels.service.check_may_add(principal, own=False)
    values = _values(kind, given.values)
    bot_ids = await _shared_bots(kind, principal, channels)
    if bot_ids:
        await channels.service.change(principal, bot_ids[0], values | {"enabled": True})
    else:
        await channels.service.add(principal, kind, values)
    return await _provider(kind, principal, channels)


@router.delete("/{kind}/runtime-config", summary="Delete the bots of everyone on a platform")
async def delete_set_up(kind: Kind, principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelProvider:
    """Those in ``config.yaml`` stay."""
    platform_of(kind)
    for bot_id in await _shared_bots(kind, principal, channels):
        await channels.service.remove(principal, bot_id)
    return await _provider(kind, principal, channels)


async def _provider(kind: str, principal: Principal, channels: Channels) -> ChannelProvider:
    return next(one for one in await _providers(principal, channels) if one["provider"] == kind)


async def _providers(principal: Principal, channels: Channels) -> list[ChannelProvider]:
    bots = await channels.service.list(principal)
    on = {bot["kind"] for bot in bots if bot["is_on"]}
    connected = {one.kind for one in await channels.service.identities(principal) if one.ended_at is None}
    return [
        {
            "provider": kind,
            "display_name": platform.title,
            "enabled": kind in on,
            "configured": any(bot["kind"] == kind for bot in bots),
            "connectable": kind in on,
            "unavailable_reason": None if kind in on else f"No bot on {platform.title} is on.",
            "auth_mode": "code",
            "connection_status": "connected" if kind in connected else "not_connected",
            "credential_fields": [
                {"name": one.name, "label": one.label, "type": one.type, "required": one.required}
                for one in platform.settings
            ],
            "credential_values": {},
            "qr_login": platform.login is not None,
        }
        for kind, platform in PLATFORMS.items()
    ]


async def _shared_bots(kind: str, principal: Principal, channels: Channels) -> list[str]:
    bots = await channels.service.list(principal)
    return [bot["id"] for bot in bots if bot["kind"] == kind and not bot["own"] and not bot["in_file"]]


@router.get("/bots", summary="Bots on chat platforms")
async def list_bots(principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelBots:
    """Those of everyone, and your own. What went wrong, and settings, are for those who may change a bot."""
    return {"bots": [bot_shown(one) for one in await channels.service.list(principal)]}


@router.post("/bots", status_code=201, summary="Add a bot")
async def add_bot(given: NewBot, principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelBot:
    values = _values(given.kind, given.values) | {"agent": given.agent, "model": given.model}
    return bot_shown(await channels.service.add(principal, given.kind, values, own=given.own))


@router.patch("/bots/{bot_id}", summary="Change a bot, or switch it on or off")
async def change_bot(
    bot_id: BotId, given: BotChange, principal: CurrentPrincipal, channels: CurrentChannels
) -> ChannelBot:
    service = channels.service
    kind = (await service.get(principal, bot_id))["kind"]
    chosen = given.model_dump(include={"agent", "model"} & given.model_fields_set)
    values: dict[str, Any] = _values(kind, given.values) | chosen
    if given.is_on is not None:
        values["enabled"] = given.is_on
    return bot_shown(await service.change(principal, bot_id, values))


@router.delete("/bots/{bot_id}", status_code=204, summary="Delete a bot and what waits to be sent by it")
async def delete_bot(bot_id: BotId, principal: CurrentPrincipal, channels: CurrentChannels) -> None:
    await channels.service.remove(principal, bot_id)


@router.post("/bots/{bot_id}/restart", summary="Connect a bot again")
async def restart_bot(bot_id: BotId, principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelBot:
    await channels.service.restart(principal, bot_id)
    return bot_shown(await channels.service.get(principal, bot_id))


@router.post("/bots/{bot_id}/test", summary="Send a test message to your private chat with a bot")
async def test_bot(bot_id: BotId, principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelTest:
    """You must have written to the bot before, so that it knows where you are."""
    return {"sent": True, "place": await channels.service.test(principal, bot_id)}


@router.get("/connections", summary="Your accounts on chat platforms")
async def list_accounts(principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelAccounts:
    found = [one for one in await channels.service.identities(principal) if one.ended_at is None]
    accounts: list[ChannelAccount] = [
        {
            "id": str(one.id),
            "provider": one.kind,
            "display_name": PLATFORMS[one.kind].title if one.kind in PLATFORMS else one.kind,
            "status": "connected",
            "external_account_id": one.external_id,
            "external_account_name": one.name or None,
            "workspace_id": one.workspace or None,
            "workspace_name": one.workspace or None,
            "scopes": [],
            "metadata": {},
        }
        for one in found
    ]
    return {"connections": accounts}


@router.delete("/connections/{connection_id}", status_code=204, summary="Disconnect an account of yours")
async def delete_account(
    connection_id: Annotated[int, Path(ge=1, lt=1 << 62)], principal: CurrentPrincipal, channels: CurrentChannels
) -> None:
    await channels.service.disconnect(principal, connection_id)


@router.post("/{kind}/connect", summary="Make a code that connects your account on a platform")
async def connect(kind: Kind, principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelCode:
    made = await channels.service.code(principal, kind)
    instruction = f"Send “{made.command}” to the bot in a private chat."
    return {
        "provider": kind,
        "mode": "code",
        "url": made.link or None,
        "code": made.code,
        "instruction": instruction,
        "expires_in": made.expires_in,
    }


@router.post("/{kind}/restart", summary="Connect the bots of a platform again")
async def restart(kind: Kind, principal: CurrentPrincipal, channels: CurrentChannels) -> ChannelRestart:
    bots = [bot for bot in await channels.service.list(principal) if bot["kind"] == kind]
    for bot in bots:
        await channels.service.restart(principal, bot["id"])
    if not bots:
        return {"success": False, "message": f"There is no channel {kind!r}."}
    return {"success": True, "message": f"The channel {kind} connects again."}


@http_routes.post(_EVENTS, summary="Requests of a platform that calls us")
async def receive(bot: BotId, request: Request, channels: CurrentChannels) -> JSONResponse:
    """Signed by the platform; see the page of its channel in the documentation."""
    status_code, body = await channels.engine.receive(bot, request.headers, await request.body())
    return JSONResponse(dict(body), status_code)


@http_routes.post(_CALLS["github"], summary="Webhooks of GitHub")
async def receive_github(request: Request, channels: CurrentChannels) -> JSONResponse:
    """For the bot on GitHub whose secret signed the request."""
    status_code, answer = 404, {"detail": "No channel of GitHub is on.", "code": "not_found"}
    body = await request.body()
    for bot_id in channels.engine.receivers("github"):
        status_code, found = await channels.engine.receive(bot_id, request.headers, body)
        answer = dict(found)
        if status_code != 401:
            break
    return JSONResponse(answer, status_code)


def _values(kind: str, given: dict[str, str]) -> dict[str, Any]:
    """Return what was given as settings; an empty one is no change. Raises NotFoundError for an unknown platform or setting."""
    platform = platform_of(kind)
    known = {one.name: one for one in platform.settings}
    if strange := given.keys() - known.keys():
        raise NotFoundError(f"{platform.title} has no setting {min(strange)!r}. It has: {', '.join(known)}.")
    made: dict[str, Any] = {name: value.strip() for name, value in given.items() if value.strip()}
    return {name: value == "true" if known[name].type == "boolean" else value for name, value in made.items()}


def platform_of(kind: str) -> Platform:
    """Return the platform that a path names. Raises NotFoundError."""
    if kind not in PLATFORMS:
        raise NotFoundError(f"There is no platform {kind!r}. There are: {', '.join(PLATFORMS)}.")
    return PLATFORMS[kind]


def bot_shown(one: dict[str, Any]) -> ChannelBot:
    """Return a bot of the service as the page has it."""
    me, settings = one["me"] or {}, one.get("settings") or {}
    platform = PLATFORMS.get(one["kind"])
    shown = {setting.name for setting in platform.settings} if platform else set()
    return {
        "id": one["id"],
        "kind": one["kind"],
        "title": platform.title if platform else one["kind"],
        "name": me.get("name") or None,
        "link": me.get("link") or None,
        "state": one["state"],
        "since": one["state_since"],
        "error": one.get("error"),
        "is_on": one["is_on"],
        "in_file": one["in_file"],
        "own": one["own"],
        "can_change": one["can_change"],
        "agent": settings.get("agent"),
        "model": settings.get("model"),
        "values": {name: str(value) for name, value in settings.items() if name in shown},
        "waiting": one["waiting"],
        "calls": _CALLS.get(one["kind"], _EVENTS).format(bot=one["id"]) if platform and platform.is_http else None,
    }
