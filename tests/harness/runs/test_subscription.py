"""Which events of a thread a client gets."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from deerflow.runs.protocol_stream import EventStreamRequest, Subscription


def event(method: str = "messages", namespace: list[str] | None = None, data: Any = None) -> dict[str, Any]:
    return {"method": method, "params": {"namespace": namespace or [], "data": data}}


@pytest.mark.parametrize(
    ("channels", "told", "wanted"),
    [
        (["messages"], event(), True),
        (["values"], event(), False),
        (["input"], event("input.requested"), True),
        (["input"], event("input.answered"), True),
        (["custom"], event("custom", data={"name": "a", "payload": 1}), True),
        (["custom"], event("custom", data={"payload": 1}), True),
        (["custom:a"], event("custom", data={"name": "a", "payload": 1}), True),
        (["custom:b"], event("custom", data={"name": "a", "payload": 1}), False),
        (["custom:a"], event("custom", data={"payload": 1}), False),
    ],
)
def test_channels(channels: list[str], told: dict[str, Any], wanted: bool) -> None:
    assert Subscription(channels=channels).matches(told) is wanted


@pytest.mark.parametrize(
    ("namespaces", "depth", "namespace", "wanted"),
    [
        (None, None, ["a:1", "b:2", "c:3"], True),
        (None, 1, ["a:1", "b:2"], False),
        ([[]], 0, [], True),
        ([[]], 0, ["a:1"], False),
        ([[]], 1, ["a:1"], True),
        ([["a"]], None, ["a:1", "b:2"], True),
        ([["a:1"]], None, ["a:2"], False),
        ([["a:1"]], None, [], False),
        ([["a"], ["b"]], 0, ["b:2"], True),
        ([["a"]], None, ["ab:1"], False),
    ],
)
def test_namespaces_and_depth(
    namespaces: list[list[str]] | None, depth: int | None, namespace: list[str], wanted: bool
) -> None:
    subscription = Subscription(channels=["messages"], namespaces=namespaces, depth=depth)
    assert subscription.matches(event(namespace=namespace)) is wanted


@pytest.mark.parametrize("channel", ["", "everything", "custom:", "input.requested"])
def test_an_unknown_channel_is_refused_by_name(channel: str) -> None:
    with pytest.raises(ValidationError, match="is not a channel"):
        Subscription(channels=[channel])


def test_no_position_is_as_good_as_zero() -> None:
    assert EventStreamRequest.model_validate({"channels": ["values"], "since": None}).since == 0
