"""Connections as the page and the file have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.features.channels.turns.chat_house import PRIVATE, House

from deerflow.config.env import MASK
from deerflow.config.schema import AppConfig
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from deerflow.features.channels.config import ChannelConfig, channels_config, connections_config
from deerflow.identity import LOCAL_PRINCIPAL, Principal

BOB = Principal("bob")


async def test_an_administrator_adds_changes_and_removes_a_connection(open_house: Any) -> None:
    house: House = await open_house()
    service: Any = house.channels.service
    made = await service.add(
        LOCAL_PRINCIPAL, "discord", {"bot_token": "secret-1", "allowed_guilds": "7", "agent": "poet"}
    )
    assert "secret-1" not in str(made)
    connections: Any = service._connections
    row = await connections.get(made["id"])
    assert "secret-1" not in row.secrets and await connections.secrets(row) == {"bot_token": "secret-1"}
    changed = await service.change(
        LOCAL_PRINCIPAL, made["id"], {"bot_token": MASK, "agent": None, "mention_only": True}
    )
    assert changed["version"] == made["version"] + 1
    assert changed["settings"] == {"allowed_guilds": "7", "mention_only": True}
    assert await connections.secrets(await connections.get(made["id"])) == {"bot_token": "secret-1"}
    with pytest.raises(InvalidRequestError, match="shared"):
        await service.change(LOCAL_PRINCIPAL, made["id"], {"shared": "perhaps"})
    await service.remove(LOCAL_PRINCIPAL, made["id"])
    with pytest.raises(NotFoundError):
        await service.get(LOCAL_PRINCIPAL, made["id"])


async def test_others_see_the_state_alone_and_change_nothing(open_house: Any) -> None:
    house: House = await open_house()
    service = house.channels.service
    seen = await service.list(BOB)
    assert [each["kind"] for each in seen] == ["slack", "telegram"]
    assert not [each for each in seen if "settings" in each or "error" in each]
    for refused in (
        service.add(BOB, "discord", {}),
        service.change(BOB, "file-slack", {}),
        service.remove(BOB, "file-slack"),
        service.restart(BOB, "file-slack"),
        service.test(BOB, "file-slack", "g1"),
    ):
        with pytest.raises(ForbiddenError):
            await refused


async def test_a_changed_file_changes_the_row_and_a_channel_that_is_gone_is_off(open_house: Any) -> None:
    house: House = await open_house()
    service: Any = house.channels.service
    assert await service.sync() == []
    current = {"slack": {"enabled": True, "bot_token": "t", "allowed_users": [7]}}

    async def configs() -> Any:
        return channels_config(current), connections_config({})

    service._configs = configs
    assert sorted(await service.sync()) == ["file-slack", "file-telegram"]
    rows = await house.rows("SELECT id, is_on, settings FROM channel_connections ORDER BY id")
    assert [(row[0], bool(row[1])) for row in rows] == [("file-slack", True), ("file-telegram", False)]
    assert '"7"' in str(rows[0][2]) and "bot_token" not in str(rows[0][2])
    with pytest.raises(ConflictError, match=r"channels\.slack"):
        await service.change(LOCAL_PRINCIPAL, "file-slack", {})


async def test_a_test_message_goes_where_the_person_wrote_last(open_house: Any) -> None:
    house: House = await open_house()
    with pytest.raises(ConflictError, match="private"):
        await house.channels.service.test(LOCAL_PRINCIPAL, house.id)
    await house.bind()
    await house.say("/status")
    await house.quiet()
    assert await house.channels.service.test(LOCAL_PRINCIPAL, house.id) == PRIVATE.chat
    await house.shows("test message")


async def test_conversations_of_the_references_store_go_on(open_house: Any) -> None:
    house: House = await open_house()
    thread = (await house.runtime.threads.create(LOCAL_PRINCIPAL))["thread_id"]
    store = {
        "slack:p1": {"thread_id": thread, "user_id": "u"},
        "slack:g1:t1": {"thread_id": thread},
        "slack:p2": {"thread_id": "gone"},
        "teams:p1": {"thread_id": thread},
        "slack:p3": {"thread_id": "../x"},
    }
    assert await house.channels.service.adopt_store(store, "default") == 2
    assert await house.channels.service.adopt_store(store, "default") == 0


@pytest.mark.parametrize("given", ["7", 7, [7], ["7", 8], "7, 8", None, []])
def test_an_allow_list_is_a_text_a_number_a_list_or_nothing(given: Any) -> None:
    channel = ChannelConfig.model_validate({"allowed_users": given})
    assert channel.admits("7", "w")
    assert channel.admits("9", "w") == (not given)


def test_the_closest_session_layer_wins() -> None:
    config = channels_config(
        {
            "session": {"assistant_id": "a", "config": {"recursion_limit": 50}, "context": {"thinking_enabled": False}},
            "slack": {
                "enabled": True,
                "session": {"context": {"thinking_enabled": True}, "users": {"u": {"assistant_id": "mine"}}},
            },
        }
    )
    made = config.request(config.channels["slack"], "u")
    assert made["assistant_id"] == "mine" and made["config"] == {"recursion_limit": 50}
    assert made["context"] == {"thinking_enabled": True, "is_plan_mode": False, "subagent_enabled": False}


def test_a_missing_secret_stops_its_channel_alone() -> None:
    from deerflow.config.env import resolve_tree

    data = {
        "channels": {
            "slack": {"enabled": True, "bot_token": "$NOT_SET"},
            "discord": {"enabled": False, "bot_token": "$NOT_SET"},
            "telegram": {"enabled": True},
            "buzz": {"enabled": True},
            "langgraph_url": "http://localhost",
        }
    }
    config = channels_config(AppConfig.model_validate(resolve_tree(data, {})).channels)
    assert sorted(config.channels) == ["buzz", "telegram"] and "bot_token" in config.problems["slack"]
    assert config.unused == ("buzz", "langgraph_url")
    assert connections_config({"telegram": {"bot_username": "b"}}).of("telegram").bot_username == "b"
    assert connections_config({}).require_bound_identity and Path
