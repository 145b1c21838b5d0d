"""Slack: Socket Mode and Web API. https://docs.slack.dev/apis"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, NoReturn
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Author,
    Caps,
    ChannelError,
    Click,
    Event,
    FileRef,
    Later,
    Me,
    Misconfigured,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
    Signal,
    SignedOut,
    Uncertain,
    Unreachable,
)
from deerflow_app.channels.adapters.slack_messages import events, ref_of, shown, target, written
from deerflow_app.channels.wire import AFTER, Http, allowed, burst, limited, name_of, parsed, socket, understood, whole

CAPS = Caps(
    dialect="slack",
    edit_every=1.5,
    buttons=25,
    signals=frozenset(Signal),
    file_in=1_000_000_000,
    file_out=1_000_000_000,
    ack_seconds=3.0,
    replays=False,  # without a link, events can be missed
)
_REACTIONS = {
    Signal.SEEN: "eyes",
    Signal.WORKING: "hourglass_flowing_sand",
    Signal.JOINED: "heavy_plus_sign",
    Signal.DONE: "white_check_mark",
    Signal.FAILED: "x",
}
_SIGNED_OUT = {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"}
_PEOPLE = 200  # whose time zones are remembered
_MAYBE_DONE = {"internal_error", "fatal_error", "request_timeout", "service_unavailable"}


class Slack(Adapter):
    """An app in one workspace.

    Args:
        ping: seconds between two pings on the link; ``pong``: seconds without an answer after which it counts as dead.
        zone_age: seconds for which a person's time zone is remembered.
    """

    def __init__(
        self,
        bot_token: str,
        app_token: str,
        *,
        base_url: str = "https://slack.com/api/",
        ping: float = 10.0,
        pong: float = 10.0,
        zone_age: float = 3600.0,
    ) -> None:
        self.caps = CAPS
        self._http = Http(base_url, secrets=[bot_token, app_token], headers={"authorization": f"Bearer {bot_token}"})
        self._as_app = {"authorization": f"Bearer {app_token}"}
        self._host = urlsplit(base_url).netloc
        self._heartbeat = {"ping_interval": ping, "ping_timeout": pong}
        self._me = Me("", "")
        self._zone_age, self._zones = zone_age, dict[str, tuple[str, float]]()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def identify(self) -> Me:
        found = await self._call("auth.test", repeatable=True)
        link = f"{found.get('url', '')}team/{found['user_id']}"
        self._me = Me(found["user_id"], found["user"], found["team_id"], link)
        return self._me

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        if not self._me.id:
            await self.identify()
        links: set[asyncio.Task[Any]] = set()
        try:
            while True:
                # Slack announces the end of a link: the next one stands before this one goes.
                ending = asyncio.Event()
                newest = asyncio.create_task(self._link(accept, connected, ending))
                announced = asyncio.create_task(ending.wait())
                links |= {newest, announced}
                while not announced.done():
                    done, links = await asyncio.wait(links, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
        finally:
            for task in links:
                task.cancel()
            await asyncio.gather(*links, return_exceptions=True)

    async def _link(self, accept: Accept, connected: Callable[[], None], ending: asyncio.Event) -> None:
        opened = await self._call("apps.connections.open", repeatable=True, headers=self._as_app)
        try:
            async with socket(opened["url"], **self._heartbeat) as link:
                while True:
                    frames = [parsed(raw) for raw in await burst(link)]
                    await self._take(link, frames, accept)
                    for frame in frames:
                        if frame.get("type") == "hello":
                            connected()
                        elif frame.get("type") == "disconnect" and frame.get("reason") == "link_disabled":
                            raise Misconfigured("Socket Mode is off. Switch it on at api.slack.com/apps → Socket Mode.")
                        elif frame.get("type") == "disconnect":
                            ending.set()
        except Unreachable:
            if not ending.is_set():
                raise

    async def _take(self, link: ClientConnection, frames: Sequence[Mapping[str, Any]], accept: Accept) -> None:
        """Store the events of some frames, then acknowledge them."""
        read = partial(events, me=self._me)
        envelopes = [frame for frame in frames if "envelope_id" in frame]
        found = list(chain.from_iterable(understood(read, one, "Slack") for one in envelopes))
        if found:
            await accept(found, None)
        for envelope in envelopes:
            await link.send(json.dumps({"envelope_id": envelope["envelope_id"]}))

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        sent = await self._call("chat.postMessage", json={**target(place), **shown(part)})
        return ref_of(self._me, sent["channel"], sent["ts"])

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        body = {"channel": ref["channel"], "ts": ref["ts"], **shown(part)}
        await self._call("chat.update", repeatable=True, json=body)
        return ref

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        allowed(file.name, file.size, self.caps.file_out)
        form = {"filename": name_of(file), "length": str(file.size)}
        # People see nothing before the last of the three steps, so only that one can be uncertain.
        slot = await self._call("files.getUploadURLExternal", repeatable=True, data=form)
        headers = {"content-type": "application/octet-stream", "content-length": str(file.size)}
        put = await self._http.request(
            "POST", slot["upload_url"], repeatable=True, content=whole(file), headers=headers, timeout=300.0
        )
        if not put.is_success:
            raise Refused(f'Slack refused the content of "{file.name}" with status {put.status_code}.')
        at = target(place)
        body = {"files": [{"id": slot["file_id"], "title": name_of(file)}], "channel_id": at.pop("channel"), **at}
        if file.caption:
            body["initial_comment"] = file.caption
        await self._call("files.completeUploadExternal", json=body)
        return {"id": slot["file_id"], "channel": place.chat, "file": slot["file_id"]}

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        allowed(file.name, file.size, self.caps.file_in)
        url = file.key.get("url")
        if not url:  # a file of another workspace names its address only to those who ask
            found = await self._call("files.info", repeatable=True, data={"file": file.key["id"]})
            url = found["file"]["url_private"]
        if not self._is_theirs(url):
            raise Refused("The file is not at Slack, and no one else gets the token of the app.")
        async with self._http.stream(url) as answer:
            if answer.headers.get("content-type", "").startswith("text/html") and file.mime != "text/html":
                raise Refused(
                    "Slack showed its sign-in page instead of the file: the app has no right to it (files:read)."
                )
            async for piece in limited(answer.aiter_bytes(), file.name, self.caps.file_in):
                yield piece

    def _is_theirs(self, url: str) -> bool:
        try:
            address = urlsplit(url)
        except ValueError:
            return False
        is_slack = address.scheme == "https" and f".{address.hostname}".endswith(".slack.com")
        return is_slack or address.netloc == self._host

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        at = {"channel": place.chat, "timestamp": message_id.rpartition(":")[2]}
        with suppress(Refused):  # it is there already
            await self._call("reactions.add", repeatable=True, json={**at, "name": _REACTIONS[signal]})
        if signal in (Signal.DONE, Signal.FAILED):
            with suppress(Refused):  # it was never there
                await self._call("reactions.remove", repeatable=True, json={**at, "name": _REACTIONS[Signal.WORKING]})

    async def answered(self, click: Click, notice: str) -> None:
        if notice:  # the acknowledged envelope is the answer; a notice is a message that the clicker alone sees
            body = {**target(click.place), "user": click.author.id, "text": notice}
            await self._call("chat.postEphemeral", json=body)

    async def time_zone(self, author: Author) -> str:
        zone, until = self._zones.pop(author.id, ("", 0.0))
        if until <= monotonic():
            try:
                with suppress(Refused, Misconfigured):  # without users:read, the date is the server's
                    found = await self._call("users.info", repeatable=True, data={"user": author.id})
                    zone = str((found.get("user") or {}).get("tz") or "")
            except ChannelError:
                return ""
            until = monotonic() + self._zone_age
        self._zones[author.id] = zone, until
        if len(self._zones) > _PEOPLE:
            del self._zones[next(iter(self._zones))]  # who was not here for longest
        return zone

    async def missed(self, place: Place, since: datetime) -> Sequence[Event]:
        read = partial(written, team=self._me.workspace, me=self._me)
        messages = await self._history(place, since)
        return list(chain.from_iterable(understood(read, {**one, "channel": place.chat}, "Slack") for one in messages))

    async def find(self, place: Place, since: datetime, known: Sequence[Ref], wake: Mapping[str, Any]) -> Ref | None:
        taken = {ref.get("ts") for ref in known}
        ours = [one for one in await self._history(place, since) if one.get("user") == self._me.id]
        lost = [one["ts"] for one in ours if one["ts"] not in taken and not one.get("files")]
        return ref_of(self._me, place.chat, lost[-1]) if lost else None

    async def _history(self, place: Place, since: datetime) -> list[dict[str, Any]]:
        """Return the messages of a place since then, oldest first."""
        method = "conversations.history"
        query = {"channel": place.chat, "oldest": f"{since.timestamp():.6f}", "limit": "200"}
        if place.topic:
            method, query["ts"] = "conversations.replies", place.topic
        found: list[dict[str, Any]] = []
        while True:
            page = await self._call(method, repeatable=True, data=query)
            found += page["messages"]
            query["cursor"] = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not query["cursor"]:
                break
        newer = (one for one in found if float(one["ts"]) > since.timestamp())
        return sorted(newer, key=lambda one: float(one["ts"]))

    async def _call(self, method: str, *, repeatable: bool = False, **more: Any) -> dict[str, Any]:
        answer = await self._http.json("POST", method, repeatable=repeatable, **more)
        if answer.get("ok") is not True:
            _fail(method, answer, repeatable)
        return answer


def _fail(method: str, answer: Mapping[str, Any], repeatable: bool) -> NoReturn:
    error, where = str(answer.get("error", "no reason given")), "at api.slack.com/apps"
    if error in _SIGNED_OUT:
        raise SignedOut(
            f"Slack no longer takes the token ({error}). Install the app again {where} and enter its tokens."
        )
    if error == "missing_scope":
        needed = answer.get("needed", "unknown")
        raise Misconfigured(
            f"Slack's {method} needs the scope {needed}: add it {where} → OAuth & Permissions, and install again."
        )
    if error == "not_allowed_token_type":
        raise Misconfigured(
            f"{method} takes another token: bot_token begins with xoxb-, app_token with xapp- (connections:write)."
        )
    if error in ("ratelimited", "rate_limited"):
        raise Later("Slack asks for a pause.", AFTER)
    if error in _MAYBE_DONE:
        raise (Unreachable if repeatable else Uncertain)(f"Slack had a fault in {method}: {error}.")
    raise Refused(f"Slack refused {method}: {error}.")
