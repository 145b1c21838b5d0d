"""What is Discord's own; what all platforms promise is in ``tests/contracts/channels``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.channels.discord_double import ANN, CHANNEL, GUILD, ME, PRIVATE, TOKEN, DiscordDouble
from tests.support.channels.double import Fault, Operation

from deerflow.features.channels.types import (
    Button,
    Click,
    Event,
    Inbound,
    Later,
    Misconfigured,
    Part,
    Place,
    Refused,
    Signal,
    SignedOut,
    Unreachable,
)
from deerflow_app.channels.adapters.discord import Discord

BOT = {"id": "8", "username": "other", "bot": True}


class Row:
    """What the engine keeps of a connection."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.cursor = ""
        self.connected = 0

    async def accept(self, events: Any, cursor: str | None) -> None:
        self.events += events
        self.cursor = self.cursor if cursor is None else cursor

    def stands(self) -> None:
        self.connected += 1

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Inbound)]

    async def until(self, count: int) -> list[Event]:
        async with asyncio.timeout(5):
            while len(self.events) < count:
                await asyncio.sleep(0.005)
        return self.events


@pytest.fixture
async def discord() -> AsyncIterator[DiscordDouble]:
    async with DiscordDouble() as double:
        yield double


@pytest.fixture
async def adapter(discord: DiscordDouble) -> AsyncIterator[Discord]:
    adapter = Discord(TOKEN, base_url=discord.http)
    yield adapter
    await adapter.aclose()


@asynccontextmanager
async def listening(adapter: Discord, row: Row) -> AsyncIterator[asyncio.Task[None]]:
    before = row.connected
    task = asyncio.create_task(adapter.listen(row.accept, row.cursor, row.stands))
    async with asyncio.timeout(5):
        while row.connected == before and not task.done():
            await asyncio.sleep(0.005)
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def ended(task: asyncio.Task[None]) -> BaseException | None:
    async with asyncio.timeout(5):
        await asyncio.wait([task])
    return task.exception()


async def test_a_message_that_comes_between_sign_in_and_the_first_one_is_replayed_to_the_next_process(
    discord: DiscordDouble, adapter: Discord
):
    row = Row()
    async with listening(adapter, row):
        assert json.loads(row.cursor).keys() == {"session_id", "seq", "resume_gateway_url"}
    await discord.say("while away")

    later = Discord(TOKEN, base_url=discord.http)
    async with listening(later, row):
        await row.until(1)
    await later.aclose()

    assert row.texts == ["while away"]
    assert len(discord.identified) == 1 and later.caps.replays


async def test_leaving_does_not_end_the_session(discord: DiscordDouble, adapter: Discord):
    row = Row()
    for text in ("one", "two", "three"):
        async with listening(adapter, row):
            pass
        await discord.say(text)
    async with listening(adapter, row):
        await row.until(3)

    assert row.texts == ["one", "two", "three"]
    assert len(discord.identified) == 1


async def test_what_could_not_be_stored_is_given_again(discord: DiscordDouble, adapter: Discord):
    row = Row()

    async def fails(events: Any, cursor: str | None) -> None:
        if events:
            raise RuntimeError("no database")
        await row.accept(events, cursor)

    task = asyncio.create_task(adapter.listen(fails, "", row.stands))
    await discord.connection()
    await discord.say("precious")
    assert isinstance(await ended(task), RuntimeError)
    async with listening(adapter, row):
        await row.until(1)

    assert row.texts == ["precious"]


async def test_a_session_that_is_gone_is_forgotten_and_what_came_meanwhile_is_read(
    discord: DiscordDouble, adapter: Discord
):
    row, since = Row(), datetime.now(UTC) - timedelta(minutes=1)
    async with listening(adapter, row):
        thread = await discord.say("begins")
        await row.until(1)
    place = row.events[0].place
    await adapter.post(place, Part("…"), "k", row.events[0].wake)
    discord.forget_sessions()
    first = discord.written("in the thread", place.topic)
    second = discord.written("a new one")
    async with listening(adapter, row) as task:
        assert isinstance(await ended(task), Unreachable)
    assert row.cursor == ""
    async with listening(adapter, row):
        assert not adapter.caps.replays
        found = await adapter.missed(place, since)

    assert [event.message_id for event in found if isinstance(event, Inbound)] == [
        thread["id"],
        first["id"],
        second["id"],
    ]
    assert [event.place.topic for event in found] == [thread["id"], thread["id"], second["id"]]
    assert all(isinstance(event, Inbound) and event.wake["guild"] == GUILD for event in found)


async def test_more_missed_messages_than_one_page_holds_are_read_in_order(discord: DiscordDouble, adapter: Discord):
    await adapter.identify()
    for number in range(230):
        discord.written(str(number), PRIVATE)

    found = await adapter.missed(Place(PRIVATE, is_private=True), datetime.now(UTC) - timedelta(minutes=1))

    assert [event.text for event in found if isinstance(event, Inbound)] == [str(number) for number in range(230)]


async def test_a_dead_connection_is_noticed(discord: DiscordDouble, adapter: Discord):
    row = Row()
    discord.heartbeat_interval, discord.answers_heartbeats = 0.05, False
    async with listening(adapter, row) as task:
        assert isinstance(await ended(task), Unreachable)
    assert discord.heartbeats == 1
    discord.answers_heartbeats = True
    await discord.say("hello")
    async with listening(adapter, row):
        await row.until(1)
        while discord.heartbeats < 4:
            await asyncio.sleep(0.01)

    assert row.texts == ["hello"]


@pytest.mark.parametrize("frame", [{"op": 7, "d": None}, {"op": 9, "d": True}])
async def test_discord_may_ask_for_a_new_connection(discord: DiscordDouble, adapter: Discord, frame: dict[str, Any]):
    row = Row()
    async with listening(adapter, row) as task:
        await discord.order(frame)
        assert isinstance(await ended(task), Unreachable)
    async with listening(adapter, row):
        assert len(discord.resumed) == 1


async def test_a_requested_heartbeat_is_sent_at_once(discord: DiscordDouble, adapter: Discord):
    async with listening(adapter, Row()):
        await discord.order({"op": 1, "d": None})
        async with asyncio.timeout(5):
            while not discord.heartbeats:
                await asyncio.sleep(0.005)


async def test_an_address_that_is_gone_is_not_tried_twice(discord: DiscordDouble, adapter: Discord):
    row = Row()
    async with listening(adapter, row):
        pass
    row.cursor = json.dumps({**json.loads(row.cursor), "resume_gateway_url": "ws://127.0.0.1:1"})
    with pytest.raises(Unreachable):
        await adapter.listen(row.accept, row.cursor, row.stands)
    async with listening(adapter, row):
        assert len(discord.resumed) == 1


async def test_a_wrong_token_signs_out(discord: DiscordDouble, adapter: Discord):
    await adapter.identify()
    discord.sign_out()
    with pytest.raises(SignedOut, match="Reset Token"):
        await adapter.listen(
            Row().accept, json.dumps({"session_id": "s", "seq": 1, "resume_gateway_url": discord.ws}), lambda: None
        )
    with pytest.raises(SignedOut, match="Reset Token"):
        await adapter.identify()


async def test_the_missing_intent_is_named(discord: DiscordDouble, adapter: Discord):
    await adapter.identify()
    discord.has_content_intent = False
    with pytest.raises(Misconfigured, match="Message Content Intent"):
        await adapter.listen(Row().accept, "", lambda: None)
    with pytest.raises(Misconfigured, match="Message Content Intent"):
        await adapter.identify()
    with pytest.raises(Misconfigured, match=r"channels\.discord\.bot_token"):
        await Discord("").identify()


async def test_the_last_sign_in_of_the_day_is_not_spent(discord: DiscordDouble, adapter: Discord):
    discord.sign_ins_left = 0
    with pytest.raises(Later) as later:
        await adapter.listen(Row().accept, "", lambda: None)
    assert (later.value.after, later.value.everywhere) == (90.0, True)


async def test_only_a_mention_in_the_text_or_a_reply_to_us_is_meant_for_us(discord: DiscordDouble, adapter: Discord):
    row = Row()
    async with listening(adapter, row):
        theirs = await discord.say("theirs")
        ours = discord.written("ours", author=ME)
        await discord.say("<@900> /new", mentions=[ME])
        await discord.say("ask <@!900> or <@7>", mentions=[ME, ANN])
        await discord.say("I agree", type=19, mentions=[ME], referenced_message=theirs)
        await discord.say("thanks", type=19, referenced_message=ours, message_reference={"message_id": ours["id"]})
        await discord.say("<@9001> hey")
        await row.until(6)

    found = [event for event in row.events if isinstance(event, Inbound)]
    assert [event.is_mention for event in found] == [False, True, True, False, True, False]
    assert row.texts[1:3] == ["/new", "ask @deer or @Ann"]
    assert (found[3].quoted, found[4].quoted, found[4].reply_to) == ("theirs", "", ours["id"])
    assert found[4].place.topic == "", "the conversation in which we wrote"


async def test_notes_of_discord_and_our_own_messages_are_ignored_and_bots_are_marked(
    discord: DiscordDouble, adapter: Discord
):
    row = Row()
    async with listening(adapter, row):
        await discord.say("joined", type=7)
        await discord.say("mine", author=ME)
        await discord.deliver("MESSAGE_CREATE", {"id": "1", "garbage": True})
        await discord.say("from a bot", author=BOT)
        await discord.say("from a webhook", webhook_id="5")
        await discord.say("look", message_snapshots=[{"message": {"content": "forwarded"}}])
        await row.until(3)

    assert row.texts == ["from a bot", "from a webhook", "look"]
    assert [event.author.is_bot for event in row.events] == [True, True, False]
    assert isinstance(row.events[2], Inbound) and row.events[2].quoted == "forwarded"


async def test_a_message_opens_one_thread_that_keeps_its_place(discord: DiscordDouble, adapter: Discord):
    row = Row()
    async with listening(adapter, row):
        asked = await discord.say("<@900> summarise this")
        [event] = await row.until(1)
        await adapter.post(event.place, Part("one"), "k1", event.wake)
        await adapter.post(event.place, Part("two"), "k2", event.wake)
        await discord.say("and more", channel=asked["id"])
        await row.until(2)

    assert discord.channels[asked["id"]]["name"] == "summarise this"
    assert [one["content"] for one in discord.messages[asked["id"]]] == ["one", "two", "and more"]
    assert event.place == Place(CHANNEL, asked["id"], name="general")
    assert (row.events[1].place.chat, row.events[1].place.topic) == (CHANNEL, asked["id"])


async def test_a_thread_whose_opening_was_cut_is_found_and_none_is_replaced_by_the_channel(
    discord: DiscordDouble, adapter: Discord
):
    await adapter.identify()
    asked = discord.written("hello")
    place, wake = Place(CHANNEL, asked["id"]), {"channel": CHANNEL, "title": "hello"}
    discord.open_thread(CHANNEL, asked["id"], "made before a cut")
    await adapter.post(place, Part("answer"), "k", wake)
    assert discord.messages[asked["id"]][0]["content"] == "answer"

    discord.mayopen_threads = False
    other = discord.written("again")
    with pytest.raises(Refused, match="Create Public Threads"):
        await adapter.post(Place(CHANNEL, other["id"], name="general"), Part("answer"), "k2", wake)
    assert [one["content"] for one in discord.messages[CHANNEL]] == ["hello", "again"]


async def test_without_threads_the_channel_is_the_conversation(discord: DiscordDouble):
    adapter, row = Discord(TOKEN, threads=False, base_url=discord.http), Row()
    async with listening(adapter, row):
        await discord.say("hello")
        await discord.say("psst", channel=PRIVATE)
        await row.until(2)
    await adapter.aclose()

    assert [event.place for event in row.events] == [Place(CHANNEL, name="general"), Place(PRIVATE, is_private=True)]


async def test_nothing_pings_and_the_same_key_is_the_same_message(discord: DiscordDouble, adapter: Discord):
    place, part = Place(PRIVATE, is_private=True), Part("@everyone", [Button("k" * 64, "Yes " * 40, "primary")] * 6)
    first = await adapter.post(place, part, "a-key-of-more-than-25-characters", {})
    again = await adapter.post(place, part, "a-key-of-more-than-25-characters", {})
    other = await adapter.post(place, part, "a-key-of-more-than-25-characters!", {})
    await adapter.edit(place, first, Part("<@7>"), 2)

    assert first == again != other
    edited, kept = discord.messages[PRIVATE]
    assert edited["content"] == "<@7>" and edited["components"] == []
    assert [len(row["components"]) for row in kept["components"]] == [5, 1]
    assert edited["allowed_mentions"] == kept["allowed_mentions"] == {"parse": []}


async def test_a_click_is_acknowledged_and_a_notice_is_for_the_clicker_alone(discord: DiscordDouble, adapter: Discord):
    row = Row()
    async with listening(adapter, row):
        ref = await adapter.post(Place(CHANNEL), Part("May I?", [Button("yes", "Yes")]), "k", {})
        message = discord.messages[CHANNEL][0]
        await discord.click(message, "yes")
        await discord.click({**message, "channel_id": PRIVATE}, "no")
        await row.until(2)
    first, second = row.events
    assert isinstance(first, Click) and isinstance(second, Click)
    await adapter.answered(first, "")
    await adapter.answered(second, "Only Bob may. @everyone")

    assert (first.key, first.author.id, first.ref, first.place) == ("yes", "7", ref, Place(CHANNEL, name="general"))
    assert second.place == Place(PRIVATE, is_private=True)
    assert discord.callbacks[first.click_id] == {"type": 6}
    assert discord.callbacks[second.click_id]["data"]["flags"] == 64
    assert discord.callbacks[second.click_id]["data"]["allowed_mentions"] == {"parse": []}


async def test_a_file_is_fetched_with_a_new_address_and_without_the_token(discord: DiscordDouble, adapter: Discord):
    row = Row()
    async with listening(adapter, row):
        said = await discord.say("see", attachments=[discord.attachment("a.txt", b"letters")], flags=1 << 13)
        await row.until(1)
    event = row.events[0]
    assert isinstance(event, Inbound)
    assert b"".join([chunk async for chunk in adapter.fetch(event.files[0])]) == b"letters"
    assert (event.files[0].name, event.files[0].size, event.files[0].is_voice) == ("a.txt", 7, True)
    assert "authorization" not in discord.requests[-1].headers
    discord.messages[said["channel_id"]][0]["attachments"] = []
    with pytest.raises(Refused, match=r"a\.txt"):
        [chunk async for chunk in adapter.fetch(event.files[0])]


async def test_signs_are_reactions_and_typing(discord: DiscordDouble, adapter: Discord):
    asked = discord.written("hello")
    for signal in adapter.caps.signals:
        await adapter.signal(Place(CHANNEL, asked["id"]), asked["id"], signal, {"channel": CHANNEL})

    assert len(discord.reactions) == 4
    assert discord.typing == [CHANNEL] and Signal.WORKING in adapter.caps.signals


async def test_the_pause_is_that_of_the_answer(discord: DiscordDouble, adapter: Discord):
    discord.fail(Operation.POST, Fault.LATER)
    with pytest.raises(Later) as later:
        await adapter.post(Place(CHANNEL), Part("x"), "k", {})
    assert (later.value.after, later.value.everywhere) == (7.0, False)
