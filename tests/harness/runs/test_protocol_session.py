"""Commands and events on one connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import pytest

from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.runs.protocol_commands import ProtocolCommand, ProtocolSession, success
from deerflow.runs.protocol_stream import AnyOf

ME = Principal("me", "user", "session")


def event(seq: int, method: str = "values") -> dict[str, Any]:
    return {"seq": seq, "method": method, "params": {"namespace": [], "data": {}}}


class Streams:
    """A thread whose events the test makes up."""

    def __init__(self) -> None:
        self.asked: list[AnyOf] = []
        self.since: list[int] = []
        self.batches: asyncio.Queue[list[dict[str, Any]] | Exception | None] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def open(
        self, principal: Principal, thread_id: str, wanted: AnyOf, *, since: int, waits: bool
    ) -> AsyncGenerator[Any, None]:
        self.asked.append(wanted)
        self.since.append(since)
        return self._events()

    async def _events(self) -> AsyncGenerator[Any, None]:
        try:
            while (batch := await self.batches.get()) is not None:
                if isinstance(batch, Exception):
                    raise batch
                yield batch
        finally:
            self.closed.set()


class Commands:
    async def execute(self, principal: Principal, thread_id: str, command: ProtocolCommand) -> dict[str, Any]:
        if command.method == "agent.getTree":
            raise NotFoundError("The thread has no runs yet.", code="no_such_run")
        return success(command, {"did": command.method})


class Line:
    """The client's end."""

    def __init__(self) -> None:
        self.streams = Streams()
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._said: asyncio.Queue[str | None] = asyncio.Queue()
        self.session = ProtocolSession(
            ME,
            "t",
            commands=cast(Any, Commands()),
            streams=cast(Any, self.streams),
            send=self.sent.put,
        )
        self.running = asyncio.create_task(self.session.run(self._messages()))

    async def _messages(self) -> AsyncIterator[str]:
        while (text := await self._said.get()) is not None:
            yield text

    def say(self, text: str) -> None:
        self._said.put_nowait(text)

    async def ask(self, id_: int, method: str, **params: Any) -> dict[str, Any]:
        self.say(json.dumps({"id": id_, "method": method, "params": params}))
        return await self.heard()

    async def heard(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            return await self.sent.get()

    async def hang_up(self) -> None:
        self._said.put_nowait(None)
        async with asyncio.timeout(60):
            await self.running
            await self.session.aclose()


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    made = Line()
    yield made
    made.running.cancel()
    await asyncio.gather(made.running, return_exceptions=True)
    await made.session.aclose()


async def test_commands_are_answered_by_their_id(line: Line) -> None:
    assert await line.ask(3, "state.get") == {"type": "success", "id": 3, "result": {"did": "state.get"}}
    refused = await line.ask(4, "agent.getTree")
    assert (refused["id"], refused["error"]) == (4, "no_such_run")


async def test_events_follow_the_answer_to_their_subscription(line: Line) -> None:
    line.streams.batches.put_nowait([event(1), event(2)])
    answer = await line.ask(1, "subscription.subscribe", channels=["values"], depth=1)

    assert answer["result"]["subscription_id"]
    assert [await line.heard(), await line.heard()] == [event(1), event(2)]


async def test_all_subscriptions_share_one_line_that_begins_anew_with_each(line: Line) -> None:
    await line.ask(1, "subscription.subscribe", channels=["values"])
    line.streams.batches.put_nowait([event(1)])
    await line.heard()
    await line.ask(2, "subscription.subscribe", channels=["lifecycle"])
    assert line.streams.closed.is_set()
    line.streams.batches.put_nowait([event(1), event(2, "lifecycle"), event(3, "messages")])
    line.streams.batches.put_nowait([event(4)])

    assert [await line.heard() for _ in range(3)] == [event(1), event(2, "lifecycle"), event(4)]
    wanted = line.streams.asked[1]
    assert [wanted.matches(event(1, method)) for method in ("values", "lifecycle", "messages")] == [True, True, False]
    assert not wanted.watches_only


async def test_an_ended_subscription_lets_go_of_the_thread(line: Line) -> None:
    answer = await line.ask(1, "subscription.subscribe", channels=["values"])
    line.streams.batches.put_nowait([event(1)])
    await line.heard()

    ended = await line.ask(2, "subscription.unsubscribe", subscription_id=answer["result"]["subscription_id"])
    assert ended["type"] == "success" and line.streams.closed.is_set()
    again = await line.ask(3, "subscription.unsubscribe", subscription_id=answer["result"]["subscription_id"])
    assert again["error"] == "no_such_subscription"


async def test_hanging_up_ends_all_subscriptions(line: Line) -> None:
    await line.ask(1, "subscription.subscribe", channels=["values"])
    line.streams.batches.put_nowait([event(1)])
    await line.heard()
    await line.hang_up()

    assert line.streams.closed.is_set()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": -1, "method": "state.get"}', '{"method": "state.get"}'])
async def test_what_is_no_command_is_refused_and_the_connection_lives_on(line: Line, text: str) -> None:
    line.say(text)
    refused = await line.heard()
    assert (refused["type"], refused["id"], refused["error"]) == ("error", None, "invalid_argument")
    assert (await line.ask(1, "state.get"))["type"] == "success"


async def test_a_subscription_to_nothing_known_is_refused(line: Line) -> None:
    assert (await line.ask(1, "subscription.subscribe", channels=["all"]))["error"] == "invalid_argument"


async def test_who_comes_again_says_from_where_and_the_line_begins_where_all_have_what_they_want(line: Line) -> None:
    await line.ask(1, "subscription.subscribe", channels=["values"], since=70)
    await line.ask(2, "subscription.subscribe", channels=["lifecycle"], since=50)
    await line.ask(3, "subscription.subscribe", channels=["messages"])
    assert line.streams.since == [70, 50, 0]


async def test_a_broken_stream_breaks_the_connection_so_that_the_client_comes_again(line: Line) -> None:
    await line.ask(1, "subscription.subscribe", channels=["values"])
    line.streams.batches.put_nowait(RuntimeError("database is gone"))

    async with asyncio.timeout(60):
        with pytest.raises(RuntimeError, match="database is gone"):
            await line.running
