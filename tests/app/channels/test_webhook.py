"""Signed webhooks both ways."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.contracts.channels.receiver import Receiver, StorageDown
from tests.support.channels.loopback import Cut, Loopback

from deerflow.features.channels.types import (
    Author,
    Event,
    Inbound,
    Later,
    Misconfigured,
    Part,
    Place,
    Refused,
    Uncertain,
    Unreachable,
)
from deerflow.security.addresses import Network
from deerflow.security.outbound import Outbound
from deerflow_app.channels.adapters import webhook as webhook_module
from deerflow_app.channels.adapters.webhook import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PUBLIC, LOCAL = Outbound(Network("internet")), Outbound(Network("internet", allow_nets=("127.0.0.0/8",)))
HELLO: dict[str, Any] = {"type": "message", "data": {"text": "hello"}}


class Rows:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.fails = False

    async def accept(self, events: Any, cursor: str | None) -> None:
        if self.fails:
            raise StorageDown
        self.events += events


class Program:
    """The other side: it takes signed answers."""

    def __init__(self) -> None:
        self.got: list[Request] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.server = Loopback(self._answer, self._attend)

    async def _answer(self, request: Request) -> Response:
        self.got.append(request)
        if self.status == 0:
            raise Cut
        return JSONResponse({}, self.status, self.headers)

    async def _attend(self, link: object) -> None:
        raise NotImplementedError


@pytest.fixture
async def program() -> AsyncIterator[Program]:
    program = Program()
    async with program.server:
        yield program


def signed(body: bytes, message: str = "msg_1", at: int | None = None, secret: str = SECRET) -> dict[str, str]:
    stamp = str(int(time.time()) if at is None else at)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    good = base64.b64encode(hmac.digest(key, f"{message}.{stamp}.".encode() + body, "sha256")).decode()
    return {"Webhook-Id": message, "Webhook-Timestamp": stamp, "Webhook-Signature": f"v1a,xyz v1,{good}"}


async def received(adapter: Webhook, content: Any, **more: Any) -> tuple[int, list[Event]]:
    rows, body = Rows(), json.dumps(content).encode()
    status, _ = await adapter.receive(signed(body, **more), body, rows.accept)
    return status, rows.events


async def test_the_published_vector_passes(monkeypatch: pytest.MonkeyPatch):
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    monkeypatch.setattr(webhook_module.time, "time", lambda: 1614265330.0)
    adapter, body = Webhook(SECRET, "", PUBLIC), b'{"test": 2432232314}'

    assert (await adapter.receive(headers, body, Rows().accept))[0] == 400, "signed, and no message"
    assert (await adapter.receive(headers, body + b" ", Rows().accept))[0] == 401


async def test_a_signed_message_is_stored_under_its_id():
    content = {
        "type": "message",
        "data": {
            "text": "hello",
            "chat": "c",
            "topic": "t",
            "author": {"id": "ann", "name": "Ann"},
            "quoted": "before",
        },
    }
    status, [event] = await received(Webhook(SECRET, "", PUBLIC), content)

    assert status == 202 and isinstance(event, Inbound)
    assert (event.message_id, event.text, event.quoted) == ("msg_1", "hello", "before")
    assert (event.place, event.author) == (Place("c", "t", is_private=True), Author("ann", name="Ann"))


@pytest.mark.parametrize("away", [-301, 301])
async def test_an_old_or_future_message_is_refused(away: int):
    status, events = await received(Webhook(SECRET, "", PUBLIC), HELLO, at=int(time.time()) + away)
    assert (status, events) == (401, [])


@pytest.mark.parametrize("gone", ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"])
async def test_a_message_without_a_signature_is_refused(gone: str):
    rows, body = Rows(), json.dumps(HELLO).encode()
    headers = {name: value for name, value in signed(body).items() if name != gone}
    assert (await Webhook(SECRET, "", PUBLIC).receive(headers, body, rows.accept))[0] == 401
    assert rows.events == []


async def test_two_secrets_count_while_one_replaces_the_other():
    old = "whsec_" + base64.b64encode(b"o" * 32).decode()
    adapter = Webhook(f"{SECRET} {old}", "", PUBLIC)
    assert [(await received(adapter, HELLO, secret=one))[0] for one in (SECRET, old)] == [202, 202]
    assert (await received(adapter, HELLO, secret="whsec_" + base64.b64encode(b"x" * 32).decode()))[0] == 401


@pytest.mark.parametrize(
    "content",
    [[], {}, {"type": "message"}, {"type": "message", "data": {"text": 3}}, {"type": "x", "data": {"text": "y"}}],
)
async def test_a_body_of_another_shape_is_refused_with_the_right_one(content: Any):
    body = json.dumps(content).encode()
    status, answer = await Webhook(SECRET, "", PUBLIC).receive(signed(body), body, Rows().accept)
    assert status == 400 and '"type": "message"' in answer["error"]


async def test_what_could_not_be_stored_is_not_acknowledged():
    rows, body = Rows(), json.dumps(HELLO).encode()
    rows.fails = True
    with pytest.raises(StorageDown):
        await Webhook(SECRET, "", PUBLIC).receive(signed(body), body, rows.accept)


async def test_an_answer_is_signed_and_named_by_its_key(program: Program):
    adapter = Webhook(SECRET, f"http://{program.server.address}/in", LOCAL)
    await adapter.post(Place("c", "t"), Part("**hi**"), "key-1", {"id": "msg_1"})

    [request] = program.got
    body = await request.body()
    expected = signed(body, "key-1", int(request.headers["webhook-timestamp"]))
    assert request.headers["webhook-signature"] in expected["Webhook-Signature"].split()
    assert json.loads(body)["data"] == {"chat": "c", "topic": "t", "text": "**hi**", "reply_to": "msg_1"}


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, Later), (500, Uncertain), (0, Uncertain), (302, Refused), (404, Refused), (410, Refused)],
)
async def test_a_failed_answer_says_what_to_do(program: Program, status: int, error: type[Exception]):
    program.status, program.headers = status, {"Retry-After": "9", "Location": "http://169.254.169.254/"}
    with pytest.raises(error) as caught:
        await Webhook(SECRET, f"http://{program.server.address}/", LOCAL).post(Place("c"), Part("x"), "k", {})
    assert len(program.got) == 1
    assert not isinstance(caught.value, Later) or caught.value.after == 9


async def test_only_open_addresses_are_called(program: Program):
    url = f"http://{program.server.address}/"
    with pytest.raises(Misconfigured, match=r"channels\.webhook\.url"):
        await Webhook(SECRET, url, PUBLIC).identify()
    with pytest.raises(Refused):
        await Webhook(SECRET, url, PUBLIC).post(Place("c"), Part("x"), "k", {})
    _, [event] = await received(Webhook(SECRET, "", PUBLIC), {"type": "message", "data": {"files": [{"url": url}]}})
    assert isinstance(event, Inbound)
    with pytest.raises(Refused, match="private"):
        _ = [piece async for piece in Webhook(SECRET, "", PUBLIC).fetch(event.files[0])]
    assert program.got == []
    assert b"".join([piece async for piece in Webhook(SECRET, "", LOCAL).fetch(event.files[0])]) == b"{}"


async def test_a_program_that_is_away_was_not_reached():
    with pytest.raises(Unreachable):
        await Webhook(SECRET, "http://127.0.0.1:1/", LOCAL).post(Place("c"), Part("x"), "k", {})


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not base64!"])
async def test_a_secret_that_is_none_is_named(secret: str):
    with pytest.raises(Misconfigured, match=r"channels\.webhook\.secret"):
        await Webhook(secret, "", PUBLIC).identify()


async def test_it_listens_without_a_link():
    adapter = Webhook(SECRET, "", PUBLIC)
    await adapter.identify()
    async with Receiver(adapter) as receiver:
        assert receiver.connects == 1
