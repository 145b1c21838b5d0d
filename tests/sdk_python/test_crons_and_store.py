"""``client.crons`` and ``client.store``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError
from tests.sdk_python.conftest import ASSISTANT, Sdk, covers

YEARLY = "0 9 1 1 *"


@covers("crons.create", "crons.create_for_thread", "crons.delete")
async def test_schedules_are_made_for_threads_of_their_own_or_one_thread(sdk: Sdk):
    given = {"input": {"messages": []}, "metadata": {"a": 1}, "context": {"mode": "flash"}}
    made = await sdk.crons.create(
        ASSISTANT,
        schedule=YEARLY,
        timezone=ZoneInfo("Europe/Berlin"),
        end_time=datetime.now(UTC) + timedelta(days=1000),
        on_run_completed="keep",
        enabled=False,
        stream_mode=["values"],
        durability="async",
        multitask_strategy="enqueue",
        interrupt_before=["tools"],
        **given,
    )
    assert made["thread_id"] is None and made["enabled"] is False and made["schedule"] == YEARLY
    assert made["payload"]["input"] == {"messages": []} and made["payload"]["context"] == {"mode": "flash"}
    thread_id = await sdk.thread()
    on_thread = await sdk.crons.create_for_thread(thread_id, ASSISTANT, schedule=YEARLY, timezone="Asia/Tokyo")
    assert on_thread["thread_id"] == thread_id
    assert (
        on_thread["next_run_date"].startswith(f"{datetime.now(UTC).year}-12-31")
        or "01-01" in on_thread["next_run_date"]
    )
    for cron in (made, on_thread):
        await sdk.crons.delete(cron["cron_id"])
        with pytest.raises(NotFoundError):
            await sdk.crons.delete(cron["cron_id"])
    with pytest.raises(UnprocessableEntityError):
        await sdk.crons.create(ASSISTANT, schedule="every day")
    with pytest.raises(NotFoundError):
        await sdk.crons.create_for_thread(str(uuid4()), ASSISTANT, schedule=YEARLY)


@covers("crons.search", "crons.count", "crons.update")
async def test_schedules_are_found_and_changed(sdk: Sdk):
    mark = uuid4().hex
    thread_id = await sdk.thread()
    first = (await sdk.crons.create_for_thread(thread_id, ASSISTANT, schedule=YEARLY, metadata={"mark": mark}))[
        "cron_id"
    ]
    second = (await sdk.crons.create(ASSISTANT, schedule=YEARLY, metadata={"mark": mark}))["cron_id"]
    found = await sdk.crons.search(metadata={"mark": mark}, sort_by="created_at", sort_order="asc")
    assert [one["cron_id"] for one in found] == [first, second]
    assert await sdk.crons.search(
        metadata={"mark": mark}, limit=1, offset=1, sort_by="created_at", select=["cron_id"]
    ) == [{"cron_id": first}]
    assert [one["cron_id"] for one in await sdk.crons.search(thread_id=thread_id)] == [first]
    changed = await sdk.crons.update(
        second, enabled=False, schedule="30 6 2 2 *", end_time=None, metadata={"mark": mark}
    )
    assert (changed["enabled"], changed["schedule"], changed["end_time"]) == (False, "30 6 2 2 *", None)
    assert [one["cron_id"] for one in await sdk.crons.search(metadata={"mark": mark}, enabled=True)] == [first]
    assert await sdk.crons.count(metadata={"mark": mark}) == 2
    assert await sdk.crons.count(thread_id=thread_id, assistant_id=found[0]["assistant_id"]) == 1
    for cron_id in (first, second):
        await sdk.crons.delete(cron_id)


@covers("store.put_item", "store.get_item", "store.delete_item")
async def test_an_item_is_what_was_put_last(sdk: Sdk):
    place = ["notes", uuid4().hex]
    assert await sdk.store.get_item(place, key="k") is None
    await sdk.store.put_item(place, key="k", value={"v": 1})
    await sdk.store.put_item(place, key="k", value={"v": [2, None, "ü\u2028"]}, index=False, ttl=60)
    item = await sdk.store.get_item(place, key="k", refresh_ttl=True)
    assert item["value"] == {"v": [2, None, "ü\u2028"]} and item["namespace"] == place and item["key"] == "k"
    assert item["created_at"] <= item["updated_at"]
    await sdk.store.delete_item(place, key="k")
    assert await sdk.store.get_item(place, key="k") is None


@covers("store.search_items", "store.list_namespaces")
async def test_items_are_found_by_place_and_by_what_they_hold(sdk: Sdk):
    root = uuid4().hex
    for number in range(3):
        await sdk.store.put_item([root, "a", str(number)], key="k", value={"n": number, "kind": "x"})
    await sdk.store.put_item([root, "b"], key="k", value={"n": 9})
    found = await sdk.store.search_items([root], filter={"kind": "x"}, limit=2)
    assert len(found["items"]) == 2 and {item["value"]["kind"] for item in found["items"]} == {"x"}
    more = await sdk.store.search_items([root, "a"], filter={"n": {"$gte": 1}}, offset=1, query="n", refresh_ttl=False)
    assert len(more["items"]) == 1
    places = (await sdk.store.list_namespaces(prefix=[root]))["namespaces"]
    assert sorted(places) == [[root, "a", "0"], [root, "a", "1"], [root, "a", "2"], [root, "b"]]
    assert (await sdk.store.list_namespaces(prefix=[root], max_depth=2, limit=1, offset=1))["namespaces"] == [
        [root, "b"]
    ]
    assert (await sdk.store.list_namespaces(prefix=[root], suffix=["1"]))["namespaces"] == [[root, "a", "1"]]
