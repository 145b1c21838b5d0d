"""A chat platform over real HTTP, its adapter, and what answers its people: an echo.

Kinds: ``cursor`` (long poll, confirmed by the next offset; messages can be edited), ``ack`` (events come again until acknowledged; no edits),
``keys`` (as ``cursor``, and a repeated key of a message is the same message).
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import Connection

from deerflow.features.channels.engine import Engine
from deerflow.features.channels.inbox import InboxRow, InboxState
from deerflow.features.channels.outbox import PLACEHOLDER, OutboxRow, Target
from deerflow.features.channels.timing import Timing
from deerflow.features.channels.types import (
    Accept,
    Author,
    Caps,
    Click,
    Displaced,
    Event,
    HttpAdapter,
    Inbound,
    Later,
    Me,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
    Signal,
    SignedOut,
)
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_inbox, utc_now
from deerflow_app.channels.wire import Http

FAST = Timing(
    lease=1.5,
    renew=0.3,
    closes=0.45,
    look=0.05,
    sweep=0.3,
    first_pause=0.02,
    longest_pause=0.3,
    displaced_within=5,
    settles=0.05,
)
GUARD = 30.0


async def until(condition: Callable[[], Any], guard: float = GUARD) -> None:
    async with asyncio.timeout(guard):
        while not (found := condition()):
            if asyncio.iscoroutine(found):
                found.close()
            await asyncio.sleep(0.01)


def message(text: str, id_: str, chat: str = "c", *, at: datetime | None = None, **more: Any) -> Inbound:
    place = Place(chat, is_private=True)
    return Inbound(id_, place, Author("ann"), at or utc_now(), text, **more)


class Platform:
    """Its state is what tests assert on: ``messages`` by id, with ``text``, ``chat`` and the number of their edits."""

    def __init__(self) -> None:
        self.url = ""
        self.events: list[dict[str, Any]] = []
        self.confirmed = 0
        self.acknowledged: dict[str, float] = {}
        self.given: dict[str, float] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self.files: list[dict[str, Any]] = []
        self.calls: list[tuple[str, float, dict[str, Any]]] = []
        self.faults: dict[str, deque[Any]] = defaultdict(deque)
        self.is_dead = False
        self.redeliver_after = 0.5
        self._ids = itertools.count(1)
        self._news = asyncio.Event()
        self._keys: dict[str, str] = {}
        self._again: dict[str, float] = {}
        self._writers: set[asyncio.StreamWriter] = set()

    def say(self, text: str, chat: str = "c", *, at: datetime | None = None, id_: str = "", click: str = "") -> str:
        """Let a person write, or press a button."""
        number = str(len(self.events))
        event = {"id": id_ or f"m{number}", "chat": chat, "text": text, "click": click}
        self.events.append({**event, "at": (at or utc_now()).timestamp()})
        self._news.set()
        return event["id"]

    def texts(self, chat: str | None = None) -> list[str]:
        return [one["text"] for one in self.messages.values() if chat in (None, one["chat"])]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.split("content-length: ")[1].split("\r\n")[0])
                body = orjson.loads(await reader.readexactly(length))
                status, headers, answer = await self._answer(head.split()[1].strip("/"), body)
                if status == 0:
                    writer.transport.abort()
                    return
                data = orjson.dumps(answer)
                more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                writer.write(f"HTTP/1.1 {status} X\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode() + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _answer(self, method: str, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        self.calls.append((method, asyncio.get_running_loop().time(), body))
        if self.is_dead:
            return 0, {}, None
        fault = self.faults[method].popleft() if self.faults[method] else None
        if isinstance(fault, tuple):
            return fault
        if fault == "cut before":
            return 0, {}, None
        answer = await getattr(self, f"_{method}")(body)
        return (0, {}, None) if fault == "cut after" else (200, {}, answer)

    async def _me(self, body: dict[str, Any]) -> Any:
        return {"id": "bot", "name": "Deer"}

    async def _updates(self, body: dict[str, Any]) -> Any:
        offset = body["offset"]
        self.confirmed = max(self.confirmed, offset)
        await self._wait(lambda: len(self.events) > offset)
        return [[number, event] for number, event in enumerate(self.events) if number >= offset][:100]

    async def _events(self, body: dict[str, Any]) -> Any:
        await self._wait(lambda: self._unacknowledged())
        found, now = self._unacknowledged()[:100], asyncio.get_running_loop().time()
        for event in found:
            self.given.setdefault(event["id"], now)
            self._again[event["id"]] = now + self.redeliver_after
        return found

    def _unacknowledged(self) -> list[dict[str, Any]]:
        now = asyncio.get_running_loop().time()
        return [
            one for one in self.events if one["id"] not in self.acknowledged and self._again.get(one["id"], 0) <= now
        ]

    async def _ack(self, body: dict[str, Any]) -> Any:
        for id_ in body["ids"]:
            self.acknowledged.setdefault(id_, asyncio.get_running_loop().time())

    async def _post(self, body: dict[str, Any]) -> Any:
        if body.get("key") and body["key"] in self._keys:
            return {"id": self._keys[body["key"]]}
        id_ = f"s{next(self._ids)}"
        if body.get("key"):
            self._keys[body["key"]] = id_
        self.messages[id_] = {**body, "edits": 0, "seq": 0, "first": body["text"]}
        return {"id": id_}

    async def _edit(self, body: dict[str, Any]) -> Any:
        known = self.messages[body["id"]]
        assert body["seq"] > known["seq"], "a number of an edit came twice"
        known.update(text=body["text"], seq=body["seq"], edits=known["edits"] + 1, buttons=body["buttons"])
        return {"id": body["id"]}

    async def _sent(self, body: dict[str, Any]) -> Any:
        return [id_ for id_, one in self.messages.items() if one["chat"] == body["chat"]]

    async def _upload(self, body: dict[str, Any]) -> Any:
        self.files.append(body)
        return {"id": f"f{len(self.files)}"}

    async def _history(self, body: dict[str, Any]) -> Any:
        return [one for one in self.events if one["chat"] == body["chat"] and one["at"] >= body["since"]]

    async def _wait(self, condition: Callable[[], Any]) -> None:
        until = asyncio.get_running_loop().time() + 0.5
        while not condition() and (left := until - asyncio.get_running_loop().time()) > 0:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, 0.1)):
                    await self._news.wait()


@asynccontextmanager
async def platform() -> AsyncIterator[Platform]:
    made = Platform()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        made.cut()
        server.close()


CAPS = {
    "cursor": Caps("plain", edit_every=0.0, post_every=0.0, buttons=5, signals=frozenset(Signal)),
    "ack": Caps("plain", edits=False, post_every=0.0, file_out=1000, replays=False),
    "keys": Caps("plain", edit_every=0.0, post_every=0.0, key_window=60.0),
}


class DoubleAdapter(HttpAdapter):
    def __init__(self, url: str, kind: str, caps: Caps | None = None) -> None:
        self.caps = caps or CAPS[kind]
        self._kind = kind
        self._http = Http(url, timeout=30.0)

    async def identify(self) -> Me:
        return Me(**await self._call("me"))

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        offset = int(cursor or 0)
        if self._kind != "ack":
            await accept([], str(offset))
        connected()
        while True:
            if self._kind == "ack":
                events = await self._call("events", repeatable=True)
                if events:
                    await accept([self._event(one) for one in events], None)
                    await self._call("ack", ids=[one["id"] for one in events], repeatable=True)
                continue
            updates = await self._call("updates", offset=offset, repeatable=True)
            if updates:
                offset = updates[-1][0] + 1
                await accept([self._event(one) for _, one in updates], str(offset))

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        keyed = {"key": key} if self.caps.key_window else {}
        return await self._call("post", chat=place.chat, text=part.text, buttons=len(part.buttons), **keyed)

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        more = {"text": part.text, "seq": seq, "buttons": len(part.buttons)}
        return await self._call("edit", id=ref["id"], **more, repeatable=True)

    async def find(self, place: Place, since: datetime, known: Sequence[Ref], wake: Mapping[str, Any]) -> Ref | None:
        sent, taken = await self._call("sent", chat=place.chat, repeatable=True), {ref["id"] for ref in known}
        return next(({"id": id_} for id_ in reversed(sent) if id_ not in taken), None)

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        data = b"".join([piece async for piece in file.open()])
        return await self._call("upload", chat=place.chat, name=file.name, size=len(data), caption=file.caption)

    async def missed(self, place: Place, since: datetime) -> Sequence[Event]:
        found = await self._call("history", chat=place.chat, since=since.timestamp())
        return [self._event(one) for one in found]

    async def receive(self, headers: Mapping[str, str], body: bytes, accept: Accept) -> tuple[int, Mapping[str, Any]]:
        if headers.get("signature") != "right":
            return 401, {}
        await accept([self._event(one) for one in orjson.loads(body)], None)
        return 200, {}

    async def aclose(self) -> None:
        await self._http.aclose()

    def _event(self, one: dict[str, Any]) -> Event:
        place, author = Place(one["chat"], is_private=True), Author("ann")
        if one["click"]:
            return Click(one["id"], place, author, one["click"], {})
        return Inbound(one["id"], place, author, datetime.fromtimestamp(one["at"], UTC), one["text"])

    async def _call(self, method: str, *, repeatable: bool = False, **body: Any) -> Any:
        answer = await self._http.request("POST", f"/{method}", json=body, repeatable=repeatable)
        match answer.status_code:
            case 401:
                raise SignedOut("The token is no longer valid. Paste a new one.")
            case 403:
                raise Refused("The bot was removed from the chat.")
            case 409:
                raise Displaced("Another program asks for updates.")
            case 420:
                raise Later("slow down", 0.3, everywhere=True)
        return answer.json()


class Echo:
    """Answers ``text`` by ``re:text``, as a run would: a placeholder with the row, the text a moment later; one turn of a
    place after the other."""

    def __init__(self, engine: Engine, database: Database, *, step: float = 0.0, holds: bool = False) -> None:
        self.engine = engine
        self._database = database
        self._step = step
        self.may_end = asyncio.Event()
        if not holds:
            self.may_end.set()
        self.clicks: list[str] = []
        self.handled: list[str] = []
        self.undelivered_rows: list[OutboxRow] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self._turns = defaultdict[Place, asyncio.Lock](asyncio.Lock)

    async def handle(self, row: InboxRow) -> None:
        event: Any = row.event
        self.handled.append(event.text)
        turn = f"turn{row.id}"

        def job(connection: Connection) -> bool:
            if not self.engine.inbox.move(connection, row, InboxState.RUNNING, run_id=turn):
                return False
            target = Target(row.connection_id, event.place, event.wake)
            self.engine.outbox.replace(connection, target, turn, 0, PLACEHOLDER)
            return True

        if await self._database.write(job):
            self.engine.wake(row.connection_id)
            self._begin(row.connection_id, turn, event.place)

    async def click(self, row: InboxRow) -> None:
        event: Any = row.event
        if await self._database.write(lambda c: self.engine.inbox.move(c, row, InboxState.ANSWERED)):
            self.clicks.append(event.key)

    async def resume(self, connection_id: str, turn: str) -> None:
        (row,) = await self._database.read(self.engine.inbox.of_run, turn)
        self._begin(connection_id, turn, row.event.place)

    def _begin(self, connection_id: str, turn: str, place: Place) -> None:
        task = asyncio.create_task(self._answer(connection_id, turn, place))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, connection_id: str, turn: str, place: Place) -> None:
        async with self._turns[place]:
            await self.may_end.wait()
            await asyncio.sleep(self._step)

            def job(connection: Connection) -> None:
                (row,) = self.engine.inbox.of_run(connection, turn)
                event: Any = row.event
                target = Target(connection_id, event.place, event.wake)
                self.engine.outbox.replace(connection, target, turn, 0, f"re:{event.text}", is_final=True)
                self.engine.inbox.answered(connection, turn)

            await self._database.write(job)
        self.engine.wake(connection_id)

    def undelivered(self, connection: Connection, row: OutboxRow) -> None:
        self.undelivered_rows.append(row)


async def inbox_rows(database: Database) -> list[InboxRow]:
    return await database.read(lambda c: sql.select(c, InboxRow, channel_inbox, "ORDER BY id"))


def judged(platform: Platform, said: Sequence[str]) -> tuple[int, int, list[str]]:
    """Return how many were answered, how many placeholders are alone, and doubles that do not say that they may be one."""
    mark = " (may be a duplicate)"
    answers = [text for text in platform.texts() if text != "…"]
    counts = Counter(answers)
    base = Counter(text.removesuffix(mark) for text in answers)
    silent = [text for text in base if counts[text] > 1]
    return sum(f"re:{text}" in base for text in said), platform.texts().count("…"), silent
