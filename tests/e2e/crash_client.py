"""A client of the API that is cut off again and again: it asks anew, and follows a run by the id of the last event it saw."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

RETRY_SECONDS = 0.05
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    name: str
    data: Any


@dataclass
class Followed:
    """A run and all that a client saw of it, over all its connections."""

    thread_id: str
    run_id: str
    events: list[Event] = field(default_factory=list)
    connections: int = 0

    @property
    def ended(self) -> bool:
        return bool(self.events) and self.events[-1].name == "end"

    @property
    def last_id(self) -> int:
        return self.events[-1].id if self.events else -1


class Client:
    """Everything is repeated until the gateway answers.

    Args:
        url: of the gateway, which may be away.
    """

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, timeout=30, trust_env=False, limits=httpx.Limits(max_connections=None)
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def request(self, method: str, path: str, body: Body | None = None) -> httpx.Response:
        """Only for what may be done twice."""
        while True:
            if (answer := await self.once(method, path, body)) is not None:
                return answer
            await asyncio.sleep(RETRY_SECONDS)

    async def once(self, method: str, path: str, body: Body | None = None) -> httpx.Response | None:
        """None: nobody answered, and what was asked for may have happened or not."""
        try:
            answer = await self._http.request(method, path, json=body)
        except httpx.TransportError:
            return None
        return None if answer.status_code >= 500 else answer

    async def json(self, path: str) -> Any:
        return (await self.request("GET", path)).raise_for_status().json()

    async def is_served(self) -> bool:
        """``/health`` answers while the runtime is still being imported; this waits for it."""
        return await self.once("GET", "/api/models") is not None

    async def new_thread(self) -> str:
        thread_id = str(uuid.uuid4())
        body = {"thread_id": thread_id, "if_exists": "do_nothing"}
        (await self.request("POST", "/api/threads", body)).raise_for_status()
        return thread_id

    async def start_run(self, thread_id: str, text: str, **more: Any) -> Followed:
        """Exactly one run, though the answer that tells of it may get lost: the thread's runs tell as well."""
        path = f"/api/threads/{thread_id}/runs"
        known = {run["run_id"] for run in await self.json(path)}
        message = {"role": "user", "content": text, "id": str(uuid.uuid4())}
        body = {"assistant_id": "lead_agent", "input": {"messages": [message]}, **more}
        while (made := await self.once("POST", path, body)) is None:
            if new := [run["run_id"] for run in await self.json(path) if run["run_id"] not in known]:
                return Followed(thread_id, new[0])
        return Followed(thread_id, made.raise_for_status().json()["run_id"])

    async def run(self, followed: Followed) -> Body:
        return await self.json(f"/api/threads/{followed.thread_id}/runs/{followed.run_id}")

    async def messages(self, thread_id: str) -> list[Body]:
        """The transcript."""
        return (await self.json(f"/api/threads/{thread_id}/state"))["values"].get("messages", [])

    async def follow(self, followed: Followed) -> Followed:
        """Up to the run's end."""
        while not followed.ended:
            try:
                await self._connect(followed)
            except httpx.TransportError:
                await asyncio.sleep(RETRY_SECONDS)
        return followed

    async def _connect(self, followed: Followed) -> None:
        path = f"/api/threads/{followed.thread_id}/runs/{followed.run_id}/stream"
        query = {"stream_mode": ["messages-tuple", "updates", "values"]}
        headers = {"Last-Event-ID": str(followed.last_id)}
        async with self._http.stream("GET", path, params=query, headers=headers) as answer:
            if answer.status_code >= 500:
                await asyncio.sleep(RETRY_SECONDS)
                return
            answer.raise_for_status()
            followed.connections += 1
            block: dict[str, str] = {}
            async for text in answer.aiter_lines():
                if text and not text.startswith(":"):
                    name, _, value = text.partition(": ")
                    block[name] = value
                elif not text and "event" in block:
                    followed.events.append(Event(int(block["id"]), block["event"], json.loads(block["data"])))
                    block = {}


def texts(events: Iterable[Event]) -> dict[str, str]:
    """The texts of the messages by id, as a client has them that puts pieces together and believes ``values`` only where an
    attempt begins: that is where it drops what an earlier one began and did not finish."""
    known: dict[str, str] = {}
    said: dict[str, str] = {}
    expects_values = False
    for event in events:
        if event.name == "metadata":
            said, expects_values = {}, True
        elif event.name == "values" and expects_values:
            known = {message["id"]: text_of(message) for message in event.data.get("messages", [])}
            expects_values = False
        elif event.name == "messages":
            message = event.data[0]
            before = said.get(message["id"], "") if message["type"] == "AIMessageChunk" else ""
            said[message["id"]] = before + text_of(message)
        known.update(said)
    return known


def told(events: Iterable[Event]) -> set[str]:
    """Ids of the messages that came by themselves, not in ``values``."""
    found: set[str] = set()
    for event in events:
        if event.name == "messages":
            found.add(event.data[0]["id"])
        elif event.name == "updates":
            for writes in event.data.values():
                if isinstance(writes, Mapping):
                    found.update(message["id"] for message in writes.get("messages") or ())
    return found


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
