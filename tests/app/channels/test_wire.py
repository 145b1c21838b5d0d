"""HTTP and WebSocket of adapters: failures say what may have happened, and nothing shows a secret."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from tests.support.channels.loopback import Link, Loopback

from deerflow.features.channels.types import Later, Refused, Unreachable
from deerflow_app.channels.wire import AFTER, Http, burst, retry_after, socket

SECRET = "12:a/b c"


class Server:
    """Answers everything with ``response`` and keeps the paths."""

    def __init__(self) -> None:
        self.response = Response(b"{}")
        self.paths: list[str] = []
        self.messages: list[str] = []
        self.loopback = Loopback(self.answer, self.attend)

    async def answer(self, request: Request) -> Response:
        self.paths.append(request.scope["path"])
        return self.response

    async def attend(self, link: Link) -> None:
        for message in self.messages:
            await link.send(message)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    async with made.loopback:
        yield made


@pytest.fixture
async def http(server: Server) -> AsyncIterator[Http]:
    made = Http(f"http://{server.loopback.address}", secrets=[SECRET])
    yield made
    await made.aclose()


async def test_a_secret_reaches_the_platform_and_no_log(server: Server, http: Http, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    await http.request("GET", f"/bot{SECRET}/getMe", params={"token": SECRET})

    assert server.paths == ["/bot12:a/b%20c/getMe"]
    assert "HTTP Request" in caplog.text
    assert not [form for form in (SECRET, "12:a/b%20c", "12%3Aa%2Fb%20c", "12%3Aa%2Fb+c") if form in caplog.text]


@pytest.mark.parametrize(
    ("body", "headers", "after", "everywhere"),
    [
        (b'{"retry_after": 0.25, "global": true}', {"retry-after": "1"}, 0.25, True),
        (b'{"parameters": {"retry_after": 12}}', {}, 12.0, False),
        (b"<html>", {"retry-after": "3"}, 3.0, False),
        (b'{"retry_after": "soon", "parameters": 5}', {}, AFTER, False),
    ],
)
async def test_a_pause_is_taken_from_where_the_platform_says_it(
    server: Server, http: Http, body: bytes, headers: dict[str, str], after: float, everywhere: bool
):
    server.response = Response(body, 429, headers)
    for send in (http.request("POST", "/"), http.json("POST", "/"), _read(http, "/")):
        with pytest.raises(Later) as caught:
            await send
        assert (caught.value.after, caught.value.everywhere) == (after, everywhere)


def test_retry_after_may_be_a_date():
    assert 50 < retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=60))}) <= 60
    assert retry_after({"retry-after": "-5"}) == 0
    assert retry_after({}) == AFTER


async def test_a_download_follows_no_redirect(server: Server, http: Http):
    server.response = RedirectResponse("http://127.0.0.1:1/elsewhere")
    with pytest.raises(Refused, match="307"):
        await _read(http, "/file")


@pytest.mark.parametrize("address", ["http://[bad", "gopher://x/", "http://127.0.0.1:1/"])
async def test_an_address_that_cannot_be_asked_is_unreachable(http: Http, address: str):
    with pytest.raises(Unreachable):
        await http.request("POST", address)


async def test_messages_that_are_there_come_in_one_burst(server: Server):
    server.messages = [str(n) for n in range(250)]
    got: list[list[str | bytes]] = []
    with pytest.raises(Unreachable):
        async with socket(f"ws://{server.loopback.address}/") as link:
            await asyncio.sleep(0.2)
            while True:
                got.append(await burst(link))

    assert [message for some in got for message in some] == server.messages
    assert len(got[0]) == max(map(len, got)) == 100


async def test_a_fault_of_ours_is_not_blamed_on_the_link(server: Server):
    with pytest.raises(TimeoutError):
        async with socket(f"ws://{server.loopback.address}/"):
            raise TimeoutError("the database")


async def test_a_ticket_in_an_address_stays_out_of_errors_and_logs(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    for address in ("ws://127.0.0.1:1/?ticket=hush", "nonsense://x/?ticket=hush"):
        with pytest.raises(Unreachable) as caught:
            async with socket(address):
                pass
        assert "hush" not in str(caught.value) + caplog.text


async def _read(http: Http, path: str) -> bytes:
    async with http.stream(path) as answer:
        return await answer.aread()
