"""What a server asks in the middle of a call (``elicitation/create``), as an interrupt of the run.

A call cannot be made a second time, so it stays open in this process while the run waits for the person, for an hour at most. Where it
is open no more when the answer comes, the call is not made again: the model is told that it was given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt
from mcp_types import CallToolResult, ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from deerflow.security.door import harmless
from deerflow.security.text import inline

ASK_SECONDS = 3600.0
MAX_MESSAGE, MAX_FIELDS, MAX_TEXT = 2000, 50, 200

GIVEN_UP = (
    "The call had asked the user something and is not open any more: the program was restarted meanwhile, or the answer came after "
    "more than an hour. It may or may not have taken effect, and was not repeated. Check what was done before you go on."
)
DECLINED, CANCELLED = ElicitResult(action="decline"), ElicitResult(action="cancel")

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(eq=False)
class OpenCall:
    """One call on its way. Belongs to the loop of the servers.

    Args:
        progress: of the run that waits for it now.
        asks: there is a person who could answer.
    """

    progress: Progress
    asks: bool
    task: asyncio.Task[CallToolResult] | None = None
    question: ElicitRequestParams | None = None
    answers: int = 0
    """That the run's interrupts have brought since the call began."""
    waited: float = 0.0
    """Seconds for people, which count for no timeout."""
    _asked: asyncio.Queue[ElicitRequestParams] = field(default_factory=asyncio.Queue[ElicitRequestParams])
    _answer: asyncio.Future[ElicitResult] | None = None
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        await self.progress(progress, total, message)

    async def ask(self, params: ElicitRequestParams) -> ElicitResult:
        """What the person answers; one question after the other."""
        if not self.asks:
            return DECLINED
        clock = asyncio.get_running_loop().time
        async with self._asking:
            began, self._answer = clock(), asyncio.get_running_loop().create_future()
            self._asked.put_nowait(params)
            try:
                async with asyncio.timeout(ASK_SECONDS):
                    return await self._answer
            except TimeoutError:
                return CANCELLED
            finally:
                self.question = self._answer = None
                self.waited += clock() - began

    @property
    def is_asking(self) -> bool:
        return self._answer is not None

    def give(self, answer: ElicitResult) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
        self.question = None

    async def step(self) -> CallToolResult | ElicitRequestParams:
        """Its result, or what it asks. Whoever stops waiting for it stops the call. Raises what the call raises."""
        assert self.task is not None
        if self.question is not None and not self.task.done():
            return self.question
        asked = asyncio.ensure_future(self._asked.get())
        try:
            await asyncio.wait({self.task, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.task.cancel()
            raise
        finally:
            if not asked.done():
                asked.cancel()
        if self.task.done():
            return self.task.result()
        self.question = asked.result()
        return self.question


CURRENT: ContextVar[OpenCall | None] = ContextVar("mcp_call", default=None)
"""The call that a request of a server belongs to, where the protocol says so."""


def answer_to(
    server: str, tool: str, tool_call_id: str | None, question: ElicitRequestParams
) -> tuple[ElicitResult, int]:
    """What the person answers, and with how many answers: one that does not fit is asked for again. Interrupts the run.

    The interrupt has the shape of an approval, whose ``args`` are the fields to fill in, and ``elicitation`` beside it. The answer is
    ``{"action": "accept" | "decline" | "cancel", "content": {…}}``, or that of an approval: ``approve`` and ``edit`` accept, ``reject``
    declines.
    """
    fields = {} if isinstance(question, ElicitRequestURLParams) else _fields(question.requested_schema)
    message = harmless(question.message, MAX_MESSAGE)
    about: dict[str, Any] = {"server": server, "message": message}
    if isinstance(question, ElicitRequestURLParams):
        about |= {"mode": "url", "url": inline(question.url)}
        text = f"{server} asks you to open {about['url']} and to approve when you are done: {message}"
    else:
        about |= {"mode": "form", "requested_schema": _schema(question.requested_schema)}
        text = f"{server} asks: {message}"
    value: dict[str, Any] = {
        "action_requests": [{"name": tool, "args": fields, "description": text}],
        "review_configs": [
            {"action_name": tool, "allowed_decisions": ["approve", *(["edit"] if fields else []), "reject"]}
        ],
        "tool_call_id": tool_call_id,
        "elicitation": about,
    }
    count = 0
    while True:
        answer: Any = interrupt(value)
        count += 1
        result, problem = _read(answer, fields, about.get("requested_schema"))
        if result is not None:
            return result, count
        value = {**value, "error": problem}


def is_web_address(url: str) -> bool:
    """Return whether a person may be shown ``url`` as an address to open: http(s) with a host, nothing that runs here."""
    try:
        parts = urlsplit(url.strip())
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def is_answered() -> bool:
    """Whether the run goes on with an answer to a question of this call. Outside of a run it does not."""
    try:
        interrupt({"action_requests": []})
    except (GraphInterrupt, RuntimeError, KeyError):
        return False
    return True


def skip(answers: int) -> None:
    """Those that the call has got already come first again."""
    for _ in range(answers):
        interrupt({"action_requests": []})


def _read(answer: Any, fields: Mapping[str, Any], schema: Mapping[str, Any] | None) -> tuple[ElicitResult | None, str]:
    """The answer for the server, or what is wrong with it."""
    given: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {}
    decisions = given.get("decisions")
    first = decisions[0] if isinstance(decisions, list) and len(decisions) == 1 else None
    decision: Mapping[str, Any] = first if isinstance(first, Mapping) else {}
    action = given.get("action") or {"approve": "accept", "edit": "accept", "reject": "decline"}.get(
        str(decision.get("type"))
    )
    if action in ("decline", "cancel"):
        return (DECLINED if action == "decline" else CANCELLED), ""
    if action != "accept":
        return None, 'Answer with {"action": "accept", "content": {…}}, "decline" or "cancel".'
    if schema is None:
        return ElicitResult(action="accept"), ""
    edited = decision.get("edited_action")
    filled = (
        given.get("content") if "action" in given else edited.get("args") if isinstance(edited, Mapping) else fields
    )
    if not isinstance(filled, Mapping):
        return None, "The content of an answer is an object with the fields that are asked for."
    needed = schema["required"]
    content = {str(name): value for name, value in filled.items() if value not in ("", None) or name in needed}
    for error in Draft202012Validator(schema).iter_errors(content):
        where = ".".join(map(str, error.absolute_path))
        return None, f"{where}: {error.message}"[:300] if where else error.message[:300]
    return ElicitResult(action="accept", content=content), ""


_KEYWORDS = frozenset(
    [
        "type",
        "enum",
        "const",
        "oneOf",
        "anyOf",
        "items",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "title",
        "description",
        "default",
        "format",
    ]
)


def _schema(asked: Mapping[str, Any]) -> dict[str, Any]:
    """As far as the protocol has it: no references, no patterns, no fields within fields."""
    properties = asked.get("properties")
    named = list(properties.items())[:MAX_FIELDS] if isinstance(properties, Mapping) else []
    kept = {inline(str(name))[:MAX_TEXT]: _pruned(one) for name, one in named}
    required = asked.get("required")
    needed = [name for name in required if name in kept] if isinstance(required, list) else []
    return {"type": "object", "properties": kept, "required": needed, "additionalProperties": False}


def _pruned(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: _pruned(value) for key, value in part.items() if key in _KEYWORDS}
    if isinstance(part, list):
        return [_pruned(one) for one in part[:MAX_TEXT]]
    return inline(part)[:MAX_TEXT] if isinstance(part, str) else part


def _fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked for, with what it is if the person changes nothing."""
    return {name: _default(one) for name, one in _schema(asked)["properties"].items()}


def _default(schema: Mapping[str, Any]) -> Any:
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    empty: dict[Any, Any] = {
        "boolean": False,
        "integer": schema.get("minimum", 0),
        "number": schema.get("minimum", 0),
        "array": [],
    }
    return empty.get(schema.get("type"), "")
