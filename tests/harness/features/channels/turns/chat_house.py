"""A chat platform in memory with the state that people see, and a small engine that carries rows to and from it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.harness.features.channels.platform_double import FAST

from deerflow.features.channels.assembly import Channels, assemble
from deerflow.features.channels.runs import ChannelRuns
from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Author,
    Button,
    Caps,
    Click,
    FileRef,
    Inbound,
    Me,
    OutFile,
    Part,
    Place,
    Ref,
    Signal,
)
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.runtime import Runtime
from deerflow.storage import sql
from deerflow.storage.tables import utc_now

PRIVATE = Place("p1", is_private=True)
GROUP = Place("g1", name="Team")
ANN = Author("ann", name="Ann")
BOB = Author("bob", name="Bob")
CAPS = Caps(
    "discord", edit_every=0.02, post_every=0.0, buttons=5, signals=frozenset(Signal), file_in=1000, file_out=5000
)
BOT = Me("bot", "deer")


@dataclass
class Message:
    """A message of ours, with every text that it ever had."""

    id: str
    place: Place
    part: Part
    texts: list[str]

    @property
    def text(self) -> str:
        return self.part.text

    def button(self, label: str) -> Button:
        return next(button for button in self.part.buttons if button.label == label)


@dataclass
class Platform(Adapter):
    """The double: what a chat shows, outlives the processes that talk to it."""

    caps: Caps = CAPS
    messages: list[Message] = field(default_factory=list[Message])
    files: list[tuple[Place, str, bytes]] = field(default_factory=list[tuple[Place, str, bytes]])
    signals: list[tuple[str, Signal]] = field(default_factory=list[tuple[str, Signal]])
    notices: list[str] = field(default_factory=list[str])
    stored: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def identify(self) -> Me:
        return BOT

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        """The house accepts itself, so that a message is there when ``say`` returns."""
        connected()
        await asyncio.Event().wait()

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        message = Message(f"m{next(self._numbers)}", place, part, [part.text])
        self.messages.append(message)
        return {"message_id": message.id}

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        message = next(each for each in self.messages if each.id == ref["message_id"])
        message.part = part
        message.texts.append(part.text)
        return ref

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        data = b"".join([piece async for piece in file.open()])
        self.files.append((place, file.name, data))
        return {"message_id": f"f{next(self._numbers)}"}

    async def fetch(self, file: FileRef) -> AsyncGenerator[bytes, None]:
        yield self.stored[file.key["id"]]

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        self.signals.append((message_id, signal))

    async def answered(self, click: Click, notice: str) -> None:
        self.notices.append(notice)

    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    def file(self, name: str, data: bytes, **more: Any) -> FileRef:
        key = f"k{next(self._numbers)}"
        self.stored[key] = data
        return FileRef(name, {"id": key}, **{"size": len(data), **more})


class House:
    """One process with a connection to the platform."""

    def __init__(self, runtime: Runtime, platform: Platform, kind: str) -> None:
        self.runtime, self.platform = runtime, platform
        self.id, self.kind = f"file-{kind}", kind
        self.channels: Channels = assemble(
            database=runtime.database,
            paths=runtime.paths,
            config=runtime.config_source.acurrent,
            runs=ChannelRuns(runtime.runs),
            threads=runtime.threads,
            agents=runtime.agents,
            memory=runtime.memory,
            usage=runtime.usage,
            platforms={kind: (lambda _: platform, False)},
            settings={"page_url": "https://deer.example"},
            timing=FAST,
        )
        self._numbers = itertools.count(1)

    async def open(self) -> House:
        self.channels.engine.start(self.channels.reception)
        self._keeping = asyncio.create_task(self.channels.reception.keep(every=0.05))
        async with asyncio.timeout(30):
            while self.channels.engine.adapter(self.id) is None:
                await asyncio.sleep(0.01)
        return self

    async def die(self) -> None:
        """Stop between two steps, whatever goes on."""
        self._keeping.cancel()
        await self.channels.turns.aclose()
        await self.channels.engine.aclose(0)
        await self.channels.turns.aclose()

    # what people do ---------------------------------------------------------------------------------------------------

    async def bind(self, author: Author = ANN, user_id: str = LOCAL_PRINCIPAL.user_id) -> None:
        code = await self.channels.service.code(replace(LOCAL_PRINCIPAL, user_id=user_id), self.kind)
        await self.say(code.command, author, Place(f"p-{author.id}", is_private=True))
        await self.quiet()

    async def say(self, text: str = "", author: Author = ANN, place: Place = PRIVATE, **more: Any) -> str:
        message_id = more.pop("message_id", None) or f"in{next(self._numbers)}-{id(self)}"
        given = {"sent_at": utc_now(), "is_mention": True, **more}
        await self.channels.engine.inbox.accept(self.id, [Inbound(message_id, place, author, text=text, **given)])
        return message_id

    async def click(self, key: str, author: Author = ANN, message: Message | None = None) -> None:
        place = message.place if message else PRIVATE
        click = Click(f"c{next(self._numbers)}-{id(self)}", place, author, key, {})
        await self.channels.engine.inbox.accept(self.id, [click])

    async def shows(self, text: str) -> Message:
        """Wait until a message of ours holds ``text``, and return it."""
        async with asyncio.timeout(30):
            while True:
                for message in self.platform.messages:
                    if text in message.text:
                        return message
                await asyncio.sleep(0.01)

    async def quiet(self) -> None:
        """Wait until nothing waits to begin, to end or to be sent."""
        open_ = """SELECT (SELECT COUNT(*) FROM channel_inbox WHERE state IN ('accepted', 'running'))
            + (SELECT COUNT(*) FROM channel_outbox WHERE state <> 'sent')"""
        async with asyncio.timeout(30):
            while await self.scalar(open_):
                await asyncio.sleep(0.01)

    async def scalar(self, query: str, *values: Any) -> Any:
        rows = await self.rows(query, *values)
        return rows[0][0] if rows else None

    async def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return await self.runtime.database.read(lambda connection: sql.execute(connection, query, *values).fetchall())

    async def threads(self) -> list[str]:
        return [row[0] for row in await self.rows("SELECT thread_id FROM threads ORDER BY created_at")]
