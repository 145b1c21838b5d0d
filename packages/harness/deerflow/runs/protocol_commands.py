"""What clients of the agent streaming protocol may ask of a thread: start a run, answer it, steer it, look at its state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from deerflow.errors import InvalidRequestError, NotFoundError, RequestError
from deerflow.events.streams.agent_protocol import ENDINGS, Renderer
from deerflow.runs.protocol_stream import AnyOf, EventStreamRequest
from deerflow.runs.request import RunRequest

if TYPE_CHECKING:
    from deerflow.identity import Principal
    from deerflow.runs.protocol_stream import ProtocolStreams
    from deerflow.runs.service import RunService
    from deerflow.storage.runs import Run
    from deerflow.threads.states import ThreadStates

Result = dict[str, Any]
M = TypeVar("M", bound=BaseModel)

CODES = {401: "permission_denied", 403: "permission_denied", 404: "no_such_run"}
PROTOCOL_CODES = frozenset(
    {
        "invalid_argument",
        "unknown_command",
        "unknown_error",
        "no_such_run",
        "no_such_subscription",
        "no_such_namespace",
        "no_such_interrupt",
        "no_such_checkpoint",
        "permission_denied",
        "not_supported",
    }
)
AGENT_STATUS = {"pending": "started", "running": "running", **ENDINGS}


class ProtocolCommand(BaseModel):
    """``id`` is repeated in the answer."""

    model_config = ConfigDict(extra="forbid")

    id: int = Field(ge=0)
    method: str = Field(examples=["run.start"])
    params: dict[str, Any] = Field(default_factory=dict)


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Namespaced(_Params):
    namespace: list[str] = Field(default_factory=list)


class _OfRoot(_Namespaced):
    """Only the root namespace can be asked for this."""


class _Answer(_Namespaced):
    interrupt_id: str
    response: Any = None


class _Respond(_Namespaced):
    """Either ``responses``, or one answer by itself."""

    responses: list[_Answer] | None = Field(default=None, min_length=1)
    interrupt_id: str | None = None
    response: Any = None
    update: Any = None
    goto: Any = None
    config: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    strict_resume: bool | None = None

    @field_validator("strict_resume", mode="after")
    @classmethod
    def _always_strict(cls, value: bool | None) -> bool | None:
        if value is False:
            raise ValueError("an answer that nobody waits for is always refused. Leave it out, or give true.")
        return value


class _InjectedMessage(_Params):
    role: Literal["user", "system"]
    content: str
    name: str | None = None


class _Inject(_OfRoot):
    message: _InjectedMessage


class _StateGet(_OfRoot):
    keys: list[str] | None = None


class _ListCheckpoints(_OfRoot):
    limit: int = Field(default=10, ge=1, le=1000)
    before: str | None = None


class _Fork(_Params):
    checkpoint_id: str
    input: Any = None
    config: dict[str, Any] | None = None


class _GetTree(_Params):
    run_id: str | None = None


class _RunStart(BaseModel):
    """The fields of a :class:`RunRequest`, which is checked when they are complete."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class ProtocolCommands:
    """Executes commands. ``subscription.*`` need a connection of their own, see ``ProtocolSession``."""

    runs: RunService
    states: ThreadStates
    streams: ProtocolStreams

    async def execute(self, principal: Principal, thread_id: str, command: ProtocolCommand) -> Result:
        """The answer to ``command``.

        Raises:
            RequestError: it cannot be fulfilled; :func:`error_answer` tells the client so.
        """
        if command.method in ("subscription.subscribe", "subscription.unsubscribe", "subscription.reconnect"):
            message = f"{command.method} needs a WebSocket; over HTTP open POST …/stream/events instead."
            raise InvalidRequestError(message, code="not_supported")
        if command.method not in _COMMANDS:
            raise RequestError(f"{command.method!r} is not a command.", code="unknown_command")
        model, carry_out, starts = _COMMANDS[command.method]
        asked = _checked(model, command.params)
        if isinstance(asked, _OfRoot) and asked.namespace:
            raise NotFoundError("Only the root namespace can be asked for this.", code="no_such_namespace")
        meta = {"applied_through_seq": await self._position(principal, thread_id)} if starts else {}
        return success(command, await carry_out(self, principal, thread_id, asked), **meta)

    async def _position(self, principal: Principal, thread_id: str) -> int:
        """A client takes what lies up to this position for the past, so it is read before the run can say a word."""
        try:
            return await self.streams.position(principal, thread_id)
        except NotFoundError:
            return 0

    async def run_start(self, principal: Principal, thread_id: str, asked: _RunStart) -> Result:
        """A thread that does not exist yet is made: clients name new threads themselves."""
        fields = asked.model_extra or {}
        if strategy := fields.pop("multitaskStrategy", None):
            fields.setdefault("multitask_strategy", strategy)
        run = await self._start(principal, thread_id, {**fields, "if_not_exists": "create"})
        return {"run_id": run.run_id}

    async def respond(self, principal: Principal, thread_id: str, asked: _Respond) -> Result:
        answers = asked.responses
        if answers is None:
            if asked.interrupt_id is None:
                raise InvalidRequestError("Give interrupt_id and response, or responses.")
            answers = [_Answer(interrupt_id=asked.interrupt_id, response=asked.response)]
        state = await self.states.get(principal, thread_id)
        waiting = {interrupt["id"] for task in state.get("tasks") or () for interrupt in task.get("interrupts") or ()}
        for answer in answers:
            if answer.interrupt_id not in waiting:
                message = (
                    f"Nobody waits for an answer to {answer.interrupt_id}: it has been given, or was never asked for."
                )
                raise NotFoundError(message, code="no_such_interrupt")
        command = {"resume": {answer.interrupt_id: answer.response for answer in answers}}
        command |= {key: value for key in ("update", "goto") if (value := getattr(asked, key)) is not None}
        fields = {"command": command, "config": asked.config, "metadata": asked.metadata}
        run = await self._start_again(principal, thread_id, fields)
        return {"run_id": run.run_id}

    async def inject(self, principal: Principal, thread_id: str, asked: _Inject) -> Result:
        run = await self.runs.steer(principal, thread_id, asked.message.model_dump(exclude_none=True))
        return {"run_id": run.run_id}

    async def state(self, principal: Principal, thread_id: str, asked: _StateGet) -> Result:
        state = await self.states.get(principal, thread_id)
        values = state["values"]
        if asked.keys is not None:
            values = {key: values[key] for key in asked.keys if key in values}
        checkpoint_id = (state.get("checkpoint") or {}).get("checkpoint_id")
        return {"values": values, **({"checkpoint": {"id": checkpoint_id}} if checkpoint_id else {})}

    async def checkpoints(self, principal: Principal, thread_id: str, asked: _ListCheckpoints) -> Result:
        history = await self.states.history(principal, thread_id, limit=asked.limit, before=asked.before)
        return {"checkpoints": [_summary(state) for state in history]}

    async def fork(self, principal: Principal, thread_id: str, asked: _Fork) -> Result:
        run = await self._start_again(principal, thread_id, dict(asked))
        return {"run_id": run.run_id, "thread_id": run.thread_id}

    async def tree(self, principal: Principal, thread_id: str, asked: _GetTree) -> Result:
        if asked.run_id is not None:
            run = await self.runs.get(principal, asked.run_id, thread_id=thread_id)
        else:
            run = await self._newest(principal, thread_id)
        tree: Result = {"namespace": [], "status": AGENT_STATUS[run.status.value], "graph_name": run.assistant_id or ""}
        nodes: dict[tuple[str, ...], Result] = {(): tree}
        renderer = Renderer()
        async for batch in self.runs.events(run):
            if not batch:
                break
            for frame in (frame for event in batch for frame in renderer.render(event)):
                if frame.method == "lifecycle" and frame.namespace:
                    _place(nodes, frame.namespace, frame.data)
        return {"tree": tree}

    async def _start(self, principal: Principal, thread_id: str, fields: Mapping[str, Any]) -> Run:
        given = {key: value for key, value in fields.items() if value is not None}
        return await self.runs.start(principal, _checked(RunRequest, _with_checkpoint(given)), thread_id=thread_id)

    async def _start_again(self, principal: Principal, thread_id: str, fields: Mapping[str, Any]) -> Run:
        """With the assistant of the thread's newest run."""
        newest = await self._newest(principal, thread_id)
        return await self._start(principal, thread_id, {**fields, "assistant_id": newest.assistant_id or None})

    async def _newest(self, principal: Principal, thread_id: str) -> Run:
        found = await self.runs.list(principal, thread_id, limit=1)
        if not found:
            raise NotFoundError("The thread has no runs yet.", code="no_such_run")
        return found[0]


_COMMANDS: dict[str, tuple[type[BaseModel], Callable[..., Awaitable[Result]], bool]] = {
    "run.start": (_RunStart, ProtocolCommands.run_start, True),
    "input.respond": (_Respond, ProtocolCommands.respond, True),
    "input.inject": (_Inject, ProtocolCommands.inject, False),
    "state.get": (_StateGet, ProtocolCommands.state, False),
    "state.listCheckpoints": (_ListCheckpoints, ProtocolCommands.checkpoints, False),
    "state.fork": (_Fork, ProtocolCommands.fork, True),
    "agent.getTree": (_GetTree, ProtocolCommands.tree, False),
}
"""By method: its parameters, what carries it out, and whether that starts a run."""
READING = frozenset({"state.get", "state.listCheckpoints", "agent.getTree"})
"""Commands that change nothing."""


def success(command: ProtocolCommand, result: Result, **meta: Any) -> Result:
    answer = {"type": "success", "id": command.id, "result": result}
    return {**answer, "meta": meta} if meta else answer


def error_answer(id_: int | None, error: RequestError) -> Result:
    if error.code in PROTOCOL_CODES:
        code = error.code
    else:
        code = CODES.get(error.status, "invalid_argument" if error.status < 500 else "unknown_error")
    return {"type": "error", "id": id_, "error": code, "message": str(error)}


def _checked(model: type[M], params: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(dict(params))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in ("params", *found["loc"]))
        raise InvalidRequestError(
            f"{place}: {found['msg'].removeprefix('Value error, ')}", code="invalid_argument"
        ) from error


def _with_checkpoint(fields: dict[str, Any]) -> dict[str, Any]:
    """Clients name the checkpoint to fork from in ``config.configurable``."""
    config = fields.get("config")
    configurable = config.get("configurable") if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(configurable, dict) or "checkpoint_id" not in configurable:
        return fields
    rest = {key: value for key, value in configurable.items() if key != "checkpoint_id"}
    return {"checkpoint_id": configurable["checkpoint_id"], **fields, "config": {**config, "configurable": rest}}


def _summary(state: Mapping[str, Any]) -> Result:
    metadata = state.get("metadata") or {}
    return {
        "id": (state.get("checkpoint") or {}).get("checkpoint_id"),
        "timestamp": state.get("created_at"),
        "step": metadata.get("step"),
        "metadata": metadata,
    }


def _place(nodes: dict[tuple[str, ...], Result], namespace: list[str], data: Mapping[str, Any]) -> None:
    path = tuple(namespace)
    node = nodes.get(path)
    if node is None:
        node = nodes[path] = {"namespace": namespace, "status": "started", "graph_name": data.get("graph_name") or ""}
        nodes[path[:-1]].setdefault("children", []).append(node)
    node["status"] = data["event"]


Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(eq=False)
class ProtocolSession:
    """Answers what one client sends.

    Args:
        send: takes one message for the client; called by several tasks, one at a time.
    """

    principal: Principal
    thread_id: str
    commands: ProtocolCommands
    streams: ProtocolStreams
    send: Send
    _sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    _subscriptions: dict[str, EventStreamRequest] = field(default_factory=dict[str, EventStreamRequest])
    _following: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
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
            command = ProtocolCommand.model_validate_json(text)
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

    async def _answer(self, command: ProtocolCommand) -> dict[str, Any] | None:
        match command.method:
            case "subscription.subscribe":
                return await self._subscribe(command)
            case "subscription.unsubscribe":
                return await self._unsubscribe(command)
            case "subscription.reconnect":
                # Positions are the thread's, not the connection's: nothing has to be restored.
                return success(command, {"restored": False})
            case _:
                return await self.commands.execute(self.principal, self.thread_id, command)

    async def _subscribe(self, command: ProtocolCommand) -> None:
        """All subscriptions share one line of events, so that none overtakes another. A new one begins it anew: what the
        other subscriptions have had already comes once more, and the client knows it by its id.

        The thread need not be there yet: clients subscribe before the command that makes it."""
        try:
            subscription = EventStreamRequest.model_validate(command.params)
        except ValidationError as error:
            raise InvalidRequestError(f"params: {error.errors()[0]['msg']}") from error
        all_ = [*self._subscriptions.values(), subscription]
        since = min(each.since for each in all_)
        events = await self.streams.open(self.principal, self.thread_id, AnyOf(all_), since=since, waits=True)
        id_ = str(uuid4())
        self._subscriptions[id_] = subscription
        await self._stop_following()
        await self._send(success(command, {"subscription_id": id_}))
        self._following = asyncio.get_running_loop().create_task(self._forward(events))
        self._following.add_done_callback(self._ended)

    async def _unsubscribe(self, command: ProtocolCommand) -> dict[str, Any]:
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
            await self.send(message)
