"""The sections ``channels`` and ``channel_connections`` of ``config.yaml``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from deerflow.config import AppConfig
from deerflow.config.document import ConfigError, ConfigProblem, key_path
from deerflow.config.section import EMPTY, EnvText, OpenSection, Section, Settings, Table, require

S = TypeVar("S", bound=Section)
KINDS = ("telegram", "slack", "feishu", "discord", "email", "webhook", "github", "dingtalk", "wecom", "wechat")
NOT_BUILT = ("buzz",)
SHARED = frozenset(
    {
        "langgraph_url",
        "gateway_url",
        "inbound_queue_maxsize",
        "max_concurrency",
        "shutdown_grace_period_seconds",
        "max_age_minutes",
        "page_url",
        "dedupe_storage",
        "session",
        "guests",
        "transcription",
    }
)
"""Keys of ``channels`` that are no channel."""
UNUSED = ("langgraph_url", "gateway_url", "dedupe_storage")
"""Keys of the reference that this engine has no use for."""
DEFAULTS: Mapping[str, Any] = {
    "config": {"recursion_limit": 100},
    "context": {"thinking_enabled": True, "is_plan_mode": False, "subagent_enabled": False},
}
"""Settings of every run from a channel, unless a layer of the session has others."""


def _names(value: Any) -> Any:
    """A text, a number, a list or nothing: all of them are lists of ids."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(map(str, value)) if isinstance(value, list | tuple | set) else (str(value),)


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""Ids as people write them: ``7``, ``"7"``, ``"7, 8"`` or ``[7, "8"]``."""


class SessionLayer(Section):
    """Settings that runs are started with."""

    assistant_id: str | None = None
    config: Settings = EMPTY
    context: Settings = EMPTY


class ChannelSession(SessionLayer):
    """``users``: by the platform's id of the person."""

    users: Table[SessionLayer] = EMPTY


class ChannelConfig(OpenSection):
    """One channel. What else stands in it is the platform's own.

    Args:
        allowed_users, allowed_guilds: ids of people and workspaces that may talk to it; empty: all.
        allowed_channels, mention_free_channels: chats where the bot answers without being mentioned.
        mention_only, require_mention: in groups, answer only if mentioned.
        shared: all people of a chat share its threads.
        agent, model: of its chats, unless a person chooses another one with a command.
    """

    enabled: bool = False
    session: ChannelSession = ChannelSession()
    allowed_users: Names = ()
    allowed_guilds: Names = ()
    allowed_channels: Names = ()
    mention_free_channels: Names = ()
    mention_only: bool | None = None
    require_mention: bool | None = None
    shared: bool = False
    agent: str | None = None
    model: str | None = None

    def admits(self, author_id: str, workspace: str) -> bool:
        """Return whether the allow-lists let an account in. A private chat belongs to no guild."""
        by_user = not self.allowed_users or author_id in self.allowed_users
        return by_user and (not self.allowed_guilds or workspace in self.allowed_guilds)

    def needs_mention(self, chat: str) -> bool:
        """Return whether a message in this group is for us only if it mentions us."""
        if chat in self.allowed_channels or chat in self.mention_free_channels:
            return False
        asked = self.mention_only if self.mention_only is not None else self.require_mention
        return asked is not False


class GuestsConfig(Section):
    """People without an account. They are accounts of their own, with the spending limits of every person."""

    enabled: bool = False
    messages_per_day: int = Field(default=20, gt=0)


class VoiceConfig(Section):
    """An endpoint of OpenAI's shape, ``POST {base_url}/audio/transcriptions``, that turns voice into text."""

    base_url: str = ""
    api_key: EnvText = ""
    model: str = "whisper-1"


class ChannelsConfig(Section):
    """Settings that all channels share, and the channels by kind."""

    inbound_queue_maxsize: int = Field(default=1000, gt=0)
    """Messages of one chat that wait to begin. Beyond it they are accepted, and the person learns that it takes longer."""
    max_concurrency: int = Field(default=5, gt=0)
    shutdown_grace_period_seconds: float = Field(default=5.0, ge=0)
    max_age_minutes: float = Field(default=30.0, gt=0)
    """Messages older than this when they arrive are not answered by themselves."""
    page_url: str = ""
    """Address of the page as people reach it, for links in answers."""
    session: ChannelSession = ChannelSession()
    guests: GuestsConfig = GuestsConfig()
    transcription: VoiceConfig = VoiceConfig()
    channels: Table[ChannelConfig] = EMPTY
    problems: Table[str] = EMPTY
    """Why a channel that is on cannot be used, by kind."""
    unused: tuple[str, ...] = ()
    """Keys that stand in the file and have no effect."""

    def request(self, channel: ChannelConfig, author_id: str) -> dict[str, Any]:
        """Return ``assistant_id``, ``config`` and ``context`` of a run; the layer that is closest to the person wins."""
        own = channel.session
        layers = [self.session, self.session.users.get(author_id), own, own.users.get(author_id)]
        made: dict[str, Any] = {"config": dict(DEFAULTS["config"]), "context": dict(DEFAULTS["context"])}
        for layer in filter(None, layers):
            if layer.assistant_id:
                made["assistant_id"] = layer.assistant_id
            made["config"] |= require(layer.config)
            made["context"] |= require(layer.context)
        return made


class PlatformConnections(Section):
    """Connections of people to one platform. ``enabled``: they may make them. ``bot_username``: for links to the bot."""

    enabled: bool = True
    bot_username: str = ""


class ConnectionsConfig(Section):
    """``require_bound_identity``: False lets accounts without a person in as guests do."""

    enabled: bool = True
    require_bound_identity: bool = True
    platforms: Table[PlatformConnections] = EMPTY

    def of(self, kind: str) -> PlatformConnections:
        return self.platforms.get(kind) or PlatformConnections()


def channels_config(channels: Mapping[str, Any]) -> ChannelsConfig:
    """Read ``channels``. One that is off is not looked at, so its secrets may be missing; a mistake in one stops that one alone.

    Raises:
        ConfigError: a key that all channels share is wrong; names it.
    """
    known = {key: require(channels[key]) for key in SHARED & channels.keys() if key not in UNUSED}
    kinds: dict[str, ChannelConfig] = {}
    problems: dict[str, str] = {}
    for kind in sorted(channels.keys() - SHARED):
        if not isinstance(entry := channels[kind], Mapping) or not entry.get("enabled"):
            continue
        try:
            kinds[kind] = _read(ChannelConfig, require(entry), f"channels.{kind}")
        except ConfigError as error:
            problems[kind] = str(error)
    unused = tuple(sorted({*UNUSED, *NOT_BUILT} & channels.keys()))
    return _read(ChannelsConfig, {**known, "channels": kinds, "problems": problems, "unused": unused}, "channels")


def connections_config(given: Mapping[str, Any]) -> ConnectionsConfig:
    """Read ``channel_connections``. Raises ConfigError."""
    plain = require(given)
    platforms = {key: value for key, value in plain.items() if isinstance(value, Mapping)}
    rest = {key: value for key, value in plain.items() if key not in platforms}
    return _read(ConnectionsConfig, {**rest, "platforms": platforms}, "channel_connections")


Configs = Callable[[], Awaitable[tuple[ChannelsConfig, ConnectionsConfig]]]


class ChannelSections:
    """Both sections as they are now."""

    def __init__(self, config: Callable[[], Awaitable[AppConfig]]) -> None:
        self._config = config
        self._snapshot: AppConfig | None = None
        self._both = ChannelsConfig(), ConnectionsConfig()

    async def both(self) -> tuple[ChannelsConfig, ConnectionsConfig]:
        now = await self._config()
        if now is not self._snapshot:
            self._both = channels_config(now.channels), connections_config(now.channel_connections)
            self._snapshot = now
        return self._both

    async def channels(self) -> ChannelsConfig:
        return (await self.both())[0]


def _read(model: type[S], given: Mapping[str, Any], name: str) -> S:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ConfigError(ConfigProblem(first["msg"], key=key_path((name, *first["loc"])))) from None
