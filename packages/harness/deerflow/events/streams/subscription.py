"""What a client of the agent streaming protocol wants to see: channels, namespaces, depth."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

CHANNELS = frozenset({"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"})
CUSTOM = "custom:"
WATCHED = frozenset({"lifecycle", "input"})


class Subscription(BaseModel):
    """A filter over the events of a thread.

    ``channels`` may name one custom event as ``custom:<name>``. ``namespaces`` are prefixes; a segment without ``:`` stands
    for all segments of that name (``tools`` for ``tools:call_1``). ``depth`` is how far below a prefix (the root, if there
    is none) an event may lie.
    """

    model_config = ConfigDict(extra="forbid")

    channels: list[str] = Field(min_length=1, examples=[["values", "messages", "tools", "lifecycle", "input"]])
    namespaces: list[list[str]] | None = None
    depth: int | None = Field(default=None, ge=0)

    @field_validator("channels", mode="after")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        for channel in value:
            if channel not in CHANNELS and not (channel.startswith(CUSTOM) and channel != CUSTOM):
                raise ValueError(f"{channel!r} is not a channel. Known: {', '.join(sorted(CHANNELS))}, custom:<name>.")
        return value

    @property
    def watches_only(self) -> bool:
        """Whether nothing but the coming and going of runs and their questions is asked for."""
        return WATCHED.issuperset(self.channels)

    def matches(self, event: Mapping[str, Any]) -> bool:
        params = event["params"]
        return self._wants(channel_of(event["method"], params["data"])) and self._reaches(params["namespace"])

    def _wants(self, channel: str) -> bool:
        return channel in self.channels or (channel.startswith(CUSTOM) and "custom" in self.channels)

    def _reaches(self, namespace: Sequence[str]) -> bool:
        return any(
            _begins_with(namespace, prefix) and (self.depth is None or len(namespace) - len(prefix) <= self.depth)
            for prefix in self.namespaces or [[]]
        )


class AnyOf:
    """What at least one of several subscriptions wants. They may come and go."""

    def __init__(self, subscriptions: Collection[Subscription]) -> None:
        self._subscriptions = subscriptions

    @property
    def watches_only(self) -> bool:
        return all(subscription.watches_only for subscription in self._subscriptions)

    def matches(self, event: Mapping[str, Any]) -> bool:
        return any(subscription.matches(event) for subscription in self._subscriptions)


class EventStreamRequest(Subscription):
    """A subscription as clients ask for it. ``since``: only what came after this position; 0 is as good as none."""

    since: int = Field(default=0, ge=0)

    @field_validator("since", mode="before")
    @classmethod
    def _none_is_zero(cls, value: object) -> object:
        return 0 if value is None else value


def channel_of(method: str, data: Any) -> str:
    if method == "custom" and isinstance(data, Mapping) and data.get("name"):
        return CUSTOM + str(data["name"])
    return "input" if method.startswith("input.") else method


def _begins_with(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    return len(prefix) <= len(namespace) and all(
        wanted == segment or (":" not in wanted and segment.partition(":")[0] == wanted)
        for wanted, segment in zip(prefix, namespace, strict=False)
    )
