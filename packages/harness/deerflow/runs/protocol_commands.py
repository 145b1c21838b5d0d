"""What clients of the agent streaming protocol may ask of a thread: start a run, answer it, steer it, look at its state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from deerflow.errors import InvalidRequestError, NotFoundError, RequestError
from deerflow.events.streams.agent_protocol import AnyOf, EventStreamRequest, Renderer
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
AGENT_STATUS = {
    "pending": "started",
    "running": "running",
    "success": "completed",
    "error": "failed",
    "timeout": "failed",
    "interrupted": "interrupted",
}


class Command(BaseModel):
    """``id`` is repeated in the answer."""

    model_config = ConfigDict(extra="forbid")

    id: int = Field(ge=0)
    method: str = Field(examples=["run.start"])
    params: dict[str, Any] = Field(default_factory=dict)


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Answer(_Params):
    interrupt_id: str
    response: Any = None
    namespace: list[str] = Field(default_factory=list)


class _Respond(_Params):
    """Either ``responses``, or one answer by itself."""

    responses: list[_Answer] | None = Field(default=None, min_length=1)
    interrupt_id: str | None = None
    response: Any = None
    namespace: list[str] = Field(default_factory=list)
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


class _Inject(_Params):
    message: _InjectedMessage
    namespace: list[str] = Field(default_factory=list)


class _StateGet(_Params):
    namespace: list[str] = Field(default_factory=list)
    keys: list[str] | None = None


class _ListCheckpoints(_Params):
    namespace: list[str] = Field(default_factory=list)
    limit: int = Field(default=10, ge=1, le=1000)
    before: str | None = None


class _Fork(_Params):
    checkpoint_id: str
    input: Any = None
    config: dict[str, Any] | None = None


class _GetTree(_Params):
    run_id: str | None = None


class ProtocolCommands:
    """Executes commands. ``subscription.*`` need a connection of their own, see ``ProtocolSession``."""

    def __init__(self, runs: RunService, states: ThreadStates, streams: ProtocolStreams) -> None:
        self._runs = runs
        self._states = states
        self._streams = streams

    async def execute(self, principal: Principal, thread_id: str, command: Command) -> Result:
        """The answer to ``command``.

        Raises:
            RequestError: it cannot be fulfilled; :func:`error_answer` tells the client so.
        """
        match command.method:
            case "run.start":
                return await self._starting(principal, thread_id, command, self._run_start)
            case "input.respond":
                return await self._starting(principal, thread_id, command, self._respond)
            case "input.inject":
                return success(command, await self._inject(principal, thread_id, command.params))
            case "state.get":
                return success(command, await self._state(principal, thread_id, command.params))
            case "state.listCheckpoints":
                return success(command, await self._checkpoints(principal, thread_id, command.params))
            case "state.fork":
                return await self._starting(principal, thread_id, command, self._fork)
            case "agent.getTree":
                return success(command, await self._tree(principal, thread_id, command.params))
            case "subscription.subscribe" | "subscription.unsubscribe" | "subscription.reconnect":
                message = f"{command.method} needs a WebSocket; over HTTP open POST …/stream/events instead."
                raise InvalidRequestError(message, code="not_supported")
            case _:
                raise RequestError(f"{command.method!r} is not a command.", code="unknown_command")

    async def _starting(
        self, principal: Principal, thread_id: str, command: Command, start: Callable[..., Any]
    ) -> Result:
        """A client takes what lies up to this position for the past, so it is read before the run can say a word."""
        try:
            position = await self._streams.position(principal, thread_id)
        except NotFoundError:
            position = 0
        result = await start(principal, thread_id, command.params)
        return success(command, result, applied_through_seq=position)

    async def _run_start(self, principal: Principal, thread_id: str, params: Mapping[str, Any]) -> Result:
        """A thread that does not exist yet is made: clients name new threads themselves."""
        fields = dict(params)
        if strategy := fields.pop("multitaskStrategy", None):
            fields.setdefault("multitask_strategy", strategy)
        run = await self._start(principal, thread_id, fields, if_not_exists="create")
        return {"run_id": run.run_id}

    async def _respond(self, principal: Principal, thread_id: str, params: Mapping[str, Any]) -> Result:
        asked = _checked(_Respond, params)
        answers = asked.responses
        if answers is None:
            if asked.interrupt_id is None:
                raise InvalidRequestError("Give interrupt_id and response, or responses.")
            answers = [_Answer(interrupt_id=asked.interrupt_id, response=asked.response)]
        waiting = await self._waiting(principal, thread_id)
        for answer in answers:
            if answer.interrupt_id not in waiting:
                message = (
                    f"Nobody waits for an answer to {answer.interrupt_id}: it has been given, or was never asked for."
                )
                raise NotFoundError(message, code="no_such_interrupt")
        command = {"resume": {answer.interrupt_id: answer.response for answer in answers}}
        command |= {key: value for key in ("update", "goto") if (value := getattr(asked, key)) is not None}
        fields = {"command": command, "config": asked.config, "metadata": asked.metadata}
        run = await self._start(principal, thread_id, await self._same_assistant(principal, thread_id, fields))
        return {"run_id": run.run_id}

    async def _inject(self, principal: Principal, thread_id: str, params: Mapping[str, Any]) -> Result:
        asked = _checked(_Inject, params)
        _only_root(asked.namespace)
        run = await self._runs.steer(principal, thread_id, asked.message.model_dump(exclude_none=True))
        return {"run_id": run.run_id}

    async def _state(self, principal: Principal, thread_id: str, params: Mapping[str, Any]) -> Result:
        asked = _checked(_StateGet, params)
        _only_root(asked.namespace)
        state = await self._states.get(principal, thread_id)
        values = state["values"]
        if asked.keys is not None:
            values = {key: values[key] for key in asked.keys if key in values}
        checkpoint_id = (state.get("checkpoint") or {}).get("checkpoint_id")
        return {"values": values, **({"checkpoint": {"id": checkpoint_id}} if checkpoint_id else {})}

    async def _checkpoints(self, principal: Principal, thread_id: str, params: Mapping[str, Any]) -> Result:
        asked = _checked(_ListCheckpoints, params)
        _only_root(asked.namespace)
        history = await self._states.history(principal, thread_id, limit=asked.limit, before=asked.before)
        return {"checkpoints": [_summary(state) for state in history]}

    async def _fork(self, principal: Principal, thread_id: str, params: Mapping[str, Any]) -> Result:
        asked = _checked(_Fork, params)
        fields = {"checkpoint_id": asked.checkpoint_id, "input": asked.input, "config": asked.config}
        run = await self._start(principal, thread_id, await self._same_assistant(principal, thread_id, fields))
        return {"run_id": run.run_id, "thread_id": run.thread_id}

    async def _tree(self, principal: Principal, thread_id: str, params: Mapping[str, Any]) -> Result:
        asked = _checked(_GetTree, params)
        if asked.run_id is not None:
            run = await self._runs.get(principal, asked.run_id, thread_id=thread_id)
        else:
            run = await self._newest(principal, thread_id)
        tree: Result = {"namespace": [], "status": AGENT_STATUS[run.status.value], "graph_name": run.assistant_id or ""}
        nodes: dict[tuple[str, ...], Result] = {(): tree}
        renderer = Renderer()
        async for batch in self._runs.events(run):
            if not batch:
                break
            for frame in (frame for event in batch for frame in renderer.render(event)):
                if frame.method == "lifecycle" and frame.namespace:
                    _place(nodes, frame.namespace, frame.data)
        return {"tree": tree}

    async def _start(self, principal: Principal, thread_id: str, fields: Mapping[str, Any], **more: Any) -> Run:
        given = {key: value for key, value in {**fields, **more}.items() if value is not None}
        return await self._runs.start(principal, _checked(RunRequest, _with_checkpoint(given)), thread_id=thread_id)

    async def _same_assistant(self, principal: Principal, thread_id: str, fields: Result) -> Result:
        newest = await self._newest(principal, thread_id)
        return {**fields, "assistant_id": newest.assistant_id} if newest.assistant_id else fields

    async def _newest(self, principal: Principal, thread_id: str) -> Run:
        found = await self._runs.list(principal, thread_id, limit=1)
        if not found:
            raise NotFoundError("The thread has no runs yet.", code="no_such_run")
        return found[0]

    async def _waiting(self, principal: Principal, thread_id: str) -> set[str]:
        state = await self._states.get(principal, thread_id)
        return {interrupt["id"] for task in state.get("tasks") or () for interrupt in task.get("interrupts") or ()}


def success(command: Command, result: Result, **meta: Any) -> Result:
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


def _only_root(namespace: list[str]) -> None:
    if namespace:
        raise NotFoundError("Only the root namespace can be asked for this.", code="no_such_namespace")


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
