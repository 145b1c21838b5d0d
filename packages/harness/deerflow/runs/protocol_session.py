"""One connection on which commands come in, and answers and events go out: the protocol over a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pydantic import ValidationError

from deerflow.errors import InvalidRequestError, NotFoundError, RequestError
from deerflow.events.streams.agent_protocol import AnyOf, EventStreamRequest
from deerflow.runs.protocol_commands import Command, error_answer, success

if TYPE_CHECKING:
    from deerflow.identity import Principal
    from deerflow.runs.protocol_commands import ProtocolCommands
    from deerflow.runs.protocol_stream import ProtocolStreams

Send = Callable[[dict[str, Any]], Awaitable[None]]


class ProtocolSession:
    """Answers what one client sends.

    Args:
        send: takes one message for the client; called by several tasks, one at a time.
    """

    def __init__(
        self,
        principal: Principal,
        thread_id: str,
        *,
        commands: ProtocolCommands,
        streams: ProtocolStreams,
        send: Send,
    ) -> None:
        self._principal = principal
        self._thread_id = thread_id
        self._commands = commands
        self._streams = streams
        self._send_now = send
        self._sending = asyncio.Lock()
        self._subscriptions: dict[str, EventStreamRequest] = {}
        self._following: asyncio.Task[None] | None = None
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, messages: AsyncIterator[str]) -> None:
        """Handle ``messages`` until the client hangs up.

        Raises:
            Exception: a subscription broke, or its thread was deleted. Close the connection: the client comes again.
        """
        reading = asyncio.ensure_future(self._read(messages))
        try:
            await asyncio.wait([reading, self._broken], return_when=asyncio.FIRST_COMPLETED)
            if self._broken.done():
                self._broken.result()
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await reading

    async def _read(self, messages: AsyncIterator[str]) -> None:
        async for text in messages:
            await self.receive(text)

    async def receive(self, text: str | bytes) -> None:
        """Handle one message. What is wrong with it goes back to the client."""
        id_: int | None = None
        try:
            command = Command.model_validate_json(text)
            id_ = command.id
            answer = await self._answer(command)
        except ValidationError as error:
            answer = error_answer(id_, InvalidRequestError(f"Not a command: {error.errors()[0]['msg']}"))
        except RequestError as error:
            answer = error_answer(id_, error)
        if answer is not None:
            await self._send(answer)

    async def aclose(self) -> None:
        """End all subscriptions."""
        self._subscriptions.clear()
        await self._stop_following()

    async def _answer(self, command: Command) -> dict[str, Any] | None:
        match command.method:
            case "subscription.subscribe":
                return await self._subscribe(command)
            case "subscription.unsubscribe":
                return await self._unsubscribe(command)
            case "subscription.reconnect":
                # Positions are the thread's, not the connection's: nothing has to be restored.
                return success(command, {"restored": False})
            case _:
                return await self._commands.execute(self._principal, self._thread_id, command)

    async def _subscribe(self, command: Command) -> None:
        """All subscriptions share one line of events, so that none overtakes another. A new one begins it anew: what the
        other subscriptions have had already comes once more, and the client knows it by its id.

        The thread need not be there yet: clients subscribe before the command that makes it."""
        try:
            subscription = EventStreamRequest.model_validate(command.params)
        except ValidationError as error:
            raise InvalidRequestError(f"params: {error.errors()[0]['msg']}") from error
        all_ = [*self._subscriptions.values(), subscription]
        since = min(each.since for each in all_)
        events = await self._streams.open_early(self._principal, self._thread_id, AnyOf(all_), since=since)
        id_ = str(uuid4())
        self._subscriptions[id_] = subscription
        await self._stop_following()
        await self._send(success(command, {"subscription_id": id_}))
        self._following = asyncio.get_running_loop().create_task(self._forward(events))
        self._following.add_done_callback(self._ended)

    async def _unsubscribe(self, command: Command) -> dict[str, Any]:
        if self._subscriptions.pop(str(command.params.get("subscription_id")), None) is None:
            raise NotFoundError("There is no such subscription on this connection.", code="no_such_subscription")
        if not self._subscriptions:
            await self._stop_following()
        return success(command, {})

    async def _stop_following(self) -> None:
        task, self._following = self._following, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    async def _forward(self, events: Any) -> None:
        async with aclosing(events):
            async for batch in events:
                for event in batch:
                    if any(subscription.matches(event) for subscription in self._subscriptions.values()):
                        await self._send(event)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._broken.done():
            return
        if error := task.exception():
            self._broken.set_exception(error)
        else:
            self._broken.set_result(None)

    async def _send(self, message: dict[str, Any]) -> None:
        async with self._sending:
            await self._send_now(message)
