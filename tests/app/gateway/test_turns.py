"""Requests that come in a crowd."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope, Send

from deerflow_app.gateway.http.requests import InTurn


async def test_requests_of_a_crowd_are_begun_one_in_each_round_of_the_loop_in_their_order():
    begun: list[tuple[str, int]] = []
    rounds = 0

    def count() -> None:
        nonlocal rounds, next_
        rounds += 1
        next_ = asyncio.get_running_loop().call_soon(count)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append((scope["path"], rounds))

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None: ...

    next_ = asyncio.get_running_loop().call_soon(count)
    in_turn = InTurn(app)
    await asyncio.gather(*(in_turn({"type": "http", "path": f"/{number}"}, receive, send) for number in range(30)))
    next_.cancel()
    assert [path for path, _ in begun] == [f"/{number}" for number in range(30)]
    assert len({at for _, at in begun}) == 30
