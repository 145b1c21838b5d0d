"""The tools of servers as agents call them: named ``server_tool``, with results that are text from outside."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from mcp_types import (
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from deerflow.event_loop import blocking_twin
from deerflow.mcp import POLICY, SERVER
from deerflow.mcp.questions import GIVEN_UP, OpenCall, Progress, answer_to, is_answered, skip
from deerflow.mcp.server import McpCallError, McpServer
from deerflow.reflection import resolve_variable
from deerflow.sandbox.interface import SandboxError
from deerflow.security.door import harmless
from deerflow.security.text import inline
from deerflow.tools.decorator import Runtime
from deerflow.tools.images import keep_picture, mime_type_of

MAX_NAME = 64
"""Characters that providers take."""
MAX_DESCRIPTION = 2000
MAX_RESULT = 2_000_000
"""Characters. Of what is longer than a conversation should hold, the whole goes to a file."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class McpToolCall:
    """What an interceptor is given, with the fields that those of langchain-mcp-adapters know.

    ``args`` and ``name`` may be overridden; ``headers`` are those of the server's entry and stay as they are there.
    """

    name: str
    args: dict[str, Any]
    server_name: str
    headers: dict[str, Any] | None = None
    runtime: object | None = None

    def override(self, **changes: Any) -> McpToolCall:
        return replace(self, **changes)


Handler = Callable[[McpToolCall], Awaitable[Any]]
Interceptor = Callable[[McpToolCall, Handler], Awaitable[Any]]


def interceptors_of(paths: Sequence[str]) -> list[Interceptor]:
    """What the builders at ``paths`` make, the outermost first. One that fails is left out, with a warning."""
    made: list[Any] = []
    for path in paths:
        try:
            interceptor: Any = resolve_variable(path)()
        except Exception as error:
            logger.warning("The MCP interceptor %s is left out: %s", path, error)
            continue
        if callable(interceptor):
            made.append(interceptor)
        elif interceptor is not None:
            logger.warning("The MCP interceptor %s is left out: its builder returned no function.", path)
    return made


class Calls(Protocol):
    """Makes calls, from any event loop; see :class:`deerflow.mcp.servers.McpServers`."""

    async def begin(
        self, name: str, user_id: str, key: str, tool: str, arguments: dict[str, Any], call: OpenCall
    ) -> CallToolResult | ElicitRequestParams: ...

    def held(self, key: str) -> OpenCall | None: ...

    async def go_on(
        self, call: OpenCall, answer: ElicitResult | None = None
    ) -> CallToolResult | ElicitRequestParams: ...


def tools_of(server: McpServer, calls: Calls, interceptors: Sequence[Interceptor]) -> tuple[BaseTool, ...]:
    """What agents get of a server: its tools that are on."""
    entries = [(tool, server.config.tool(tool.name)) for tool in server.tools]
    return tuple(
        tool_of(server.name, tool, calls, interceptors, entry.policy) for tool, entry in entries if entry.enabled
    )


def tool_of(
    server: str, tool: Tool, calls: Calls, interceptors: Sequence[Interceptor], policy: str | None = None
) -> BaseTool:
    """A tool of a server as a tool of an agent."""
    name = _name(server, tool.name)

    async def call(tool_runtime: Runtime, **arguments: Any) -> Any:
        handler: Handler = partial(_made, calls, name, tool_runtime)
        for interceptor in reversed(interceptors):
            handler = _bound(interceptor, handler)
        try:
            result = await handler(McpToolCall(tool.name, arguments, server, runtime=tool_runtime))
        except McpCallError as error:
            return _answer(f"Error: {error}", name, tool_runtime, failed=True, **{SERVER: server})
        if not isinstance(result, CallToolResult):
            return result
        return await _message(result, name, tool_runtime, server)

    hints = tool.annotations
    reads = hints is not None and hints.read_only_hint is True
    return StructuredTool(
        name=name,
        description=harmless(tool.description or tool.title or tool.name, MAX_DESCRIPTION),
        args_schema={**tool.input_schema, "type": "object", "properties": tool.input_schema.get("properties") or {}},
        func=blocking_twin(call),
        coroutine=call,
        metadata={
            SERVER: server,
            **({"readOnlyHint": True} if reads else {}),
            **({POLICY: policy} if policy else {}),
        },
    )


def _name(server: str, tool: str) -> str:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", f"{server}_{tool}")
    digest = hashlib.sha256(f"{server}_{tool}".encode()).hexdigest()[:6]
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 7]}_{digest}"


def _bound(interceptor: Interceptor, inner: Handler) -> Handler:
    return lambda call: interceptor(call, inner)


async def _made(calls: Calls, name: str, runtime: Any, call: McpToolCall) -> CallToolResult:
    """A call, made once, however often the run is interrupted by what the server asks. Raises McpCallError."""
    context, call_id = getattr(runtime, "context", None), getattr(runtime, "tool_call_id", None)
    key, progress = _key(name, runtime), _progress(name, runtime)
    held = calls.held(key)
    if held is not None:
        held.progress = progress
        skip(held.answers)
        outcome = await calls.go_on(held)
    elif is_answered():
        raise McpCallError(GIVEN_UP)
    else:
        held = OpenCall(progress, asks=context is not None and not context.unattended)
        user_id = context.principal.user_id if context is not None else ""
        outcome = await calls.begin(call.server_name, user_id, key, call.name, call.args, held)
    while not isinstance(outcome, CallToolResult):
        answer, count = answer_to(call.server_name, name, call_id, outcome)
        held.answers += count
        outcome = await calls.go_on(held, answer)
    return outcome


def _key(name: str, runtime: Any) -> str:
    """Some providers count their calls anew in every message, so that counts, too."""
    context, state = getattr(runtime, "context", None), getattr(runtime, "state", None)
    messages = state.get("messages") or () if isinstance(state, Mapping) else ()
    asking = next((message.id for message in reversed(messages) if isinstance(message, AIMessage)), None)
    where = (context.thread_id, context.task_namespace) if context is not None else (str(uuid4()),)
    return json.dumps([*where, asking, getattr(runtime, "tool_call_id", None), name])


def _progress(name: str, runtime: Any) -> Progress:
    loop = asyncio.get_running_loop()
    writer = getattr(runtime, "stream_writer", None)

    async def progress(done: float, total: float | None, text: str | None) -> None:
        event = {"type": "tool_progress", "tool": name, "tool_call_id": getattr(runtime, "tool_call_id", None)}
        event |= {"progress": done, "total": total, "message": inline(text or "")}
        if writer is not None and not loop.is_closed():  # a call that asks outlives its run
            loop.call_soon_threadsafe(writer, event)

    return progress


# results --------------------------------------------------------------------------------------------------------------


async def _message(result: CallToolResult, name: str, runtime: Any, server: str) -> ToolMessage:
    texts: list[str] = []
    image: dict[str, str] | None = None
    for block in result.content:
        if isinstance(block, ImageContent):
            text, kept = await _picture(block, runtime)
            image = image or kept
            texts.append(text)
        else:
            texts.append(_text(block))
    if not result.content and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    more: dict[str, Any] = {SERVER: server} | ({"image": image} if image else {})
    return _answer("\n".join(texts) or "(no output)", name, runtime, failed=result.is_error, **more)


def _answer(text: str, name: str, runtime: Any, *, failed: bool, **more: Any) -> ToolMessage:
    return ToolMessage(
        harmless(text, MAX_RESULT),
        name=name,
        tool_call_id=getattr(runtime, "tool_call_id", None) or "",
        status="error" if failed else "success",
        additional_kwargs=more,
    )


def _text(block: Any) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ResourceLink):
        return f"[{block.name}: {block.uri}]"
    if isinstance(block, EmbeddedResource):
        inner = block.resource
        return inner.text if isinstance(inner, TextResourceContents) else f"[{inner.uri}: a file of {inner.mime_type}]"
    return f"[{block.type} is left out]"


async def _picture(block: ImageContent, runtime: Any) -> tuple[str, dict[str, str] | None]:
    """What to say of a picture, and what shows it to the model."""
    try:
        data = base64.b64decode(block.data)
        kept = await keep_picture(runtime.context, data, mime_type_of(data) or "")
    except (AttributeError, ValueError, SandboxError) as error:
        return f"[a picture that cannot be shown: {error}]", None
    about = kept.pop("about")
    return f"[a picture, {about}: {kept['path']}]", kept
