"""The tools of servers as agents call them: named ``server_tool``, with results that are text from outside."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import mimetypes
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol
from urllib.parse import unquote
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from deerflow.config.schema import McpServerConfig
from deerflow.event_loop import blocking_twin
from deerflow.features.mcp.definitions import Change, Definition, destination_of
from deerflow.features.mcp.files import ThreadFiles, files_of
from deerflow.features.mcp.questions import GIVEN_UP, OpenCall, Progress, answer_to, is_answered, skip
from deerflow.features.mcp.server import McpCallError
from deerflow.reflection import resolve_variable
from deerflow.sandbox.interface import WORKSPACE, SandboxError
from deerflow.security.door import harmless
from deerflow.security.text import inline
from deerflow.tools.decorator import Runtime
from deerflow.tools.images import keep_picture
from deerflow.tools.origin import DESTINATION, DIGEST, POLICY, SERVER, TRUSTED

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
    """Makes calls, from any event loop; see :class:`deerflow.features.mcp.servers.McpServers`."""

    async def begin(
        self,
        name: str,
        user_id: str,
        key: str,
        tool: str,
        arguments: dict[str, Any],
        call: OpenCall,
        digest: str | None = None,
        files: ThreadFiles | None = None,
    ) -> CallToolResult | ElicitRequestParams: ...

    def held(self, key: str) -> OpenCall | None: ...

    async def go_on(
        self, call: OpenCall, answer: ElicitResult | None = None
    ) -> CallToolResult | ElicitRequestParams: ...


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A definition as agents get it: the name that they call it by, and whether nobody has accepted it yet."""

    definition: Definition
    called: str
    change: Change | None


def tools_of(
    name: str, entry: McpServerConfig, offered: Sequence[OfferedTool], calls: Calls, interceptors: Sequence[Interceptor]
) -> tuple[BaseTool, ...]:
    """Return what agents get of a server: its tools that are on."""
    on = (one for one in offered if entry.tool(one.definition.tool.name).enabled)
    return tuple(tool_of(name, entry, one, calls, interceptors) for one in on)


def tool_of(
    server: str, entry: McpServerConfig, offered: OfferedTool, calls: Calls, interceptors: Sequence[Interceptor]
) -> BaseTool:
    """Return a tool of a server as a tool of an agent."""
    tool, name = offered.definition.tool, offered.called

    async def call(tool_runtime: Runtime, **arguments: Any) -> Any:
        handler: Handler = partial(_made, calls, name, tool_runtime, (tool.name, offered.definition.digest))
        for interceptor in reversed(interceptors):
            handler = _bound(interceptor, handler)
        try:
            result = await handler(McpToolCall(tool.name, arguments, server, runtime=tool_runtime))
        except McpCallError as error:
            return _answer(f"Error: {error}", name, tool_runtime, failed=True, **{SERVER: server})
        if not isinstance(result, CallToolResult):
            return result
        return await _message(result, name, tool_runtime, server)

    return McpAgentTool(
        name=name,
        description=tool.description or "",
        args_schema=tool.input_schema,
        func=blocking_twin(call),
        coroutine=call,
        metadata=_metadata(server, entry, offered),
    )


class McpAgentTool(StructuredTool):
    """A tool whose arguments may have any name, also one by which LangChain passes its own (``self``, ``config``, ``run_manager``)."""

    def _run(self, /, **arguments: Any) -> Any:
        assert self.func is not None
        return self.func(**arguments)

    async def _arun(self, /, **arguments: Any) -> Any:
        assert self.coroutine is not None
        return await self.coroutine(**arguments)


def _metadata(server: str, entry: McpServerConfig, offered: OfferedTool) -> dict[str, Any]:
    """What may be believed of a tool. A definition that nobody has accepted is neither trusted, allowed nor read-only."""
    tool, is_accepted = offered.definition.tool, offered.change is None
    hints, policy = tool.annotations, entry.tool(tool.name).policy
    trusted = entry.trusted and is_accepted
    reads = is_accepted and hints is not None and hints.read_only_hint is True
    believed: dict[str, Any] = {"readOnlyHint": True} if reads else {}
    if trusted:
        said = hints.model_dump(by_alias=True, exclude_none=True, exclude={"title"}) if hints is not None else {}
        believed = {**said, "readOnlyHint": reads}
    if policy is not None and (is_accepted or policy != "allow"):
        believed[POLICY] = policy
    return {
        SERVER: server,
        DIGEST: offered.definition.digest,
        TRUSTED: trusted,
        DESTINATION: destination_of(server, entry),
        **believed,
    }


def _bound(interceptor: Interceptor, inner: Handler) -> Handler:
    return lambda call: interceptor(call, inner)


async def _made(calls: Calls, name: str, runtime: Any, judged: tuple[str, str], call: McpToolCall) -> CallToolResult:
    """A call, made once, however often the run is interrupted by what the server asks. Raises McpCallError.

    Args:
        judged: name and digest of the definition that the call was judged by. An interceptor may call another tool.
    """
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
        held = OpenCall(progress, asks=context is not None and not context.trust.unattended)
        user_id = context.principal.user_id if context is not None else ""
        digest = judged[1] if call.name == judged[0] else None
        files = files_of(context)
        outcome = await calls.begin(call.server_name, user_id, key, call.name, call.args, held, digest, files)
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
    where = (context.thread_id, context.namespace) if context is not None else (str(uuid4()),)
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
            text, kept = await _picture(block, runtime, server)
            image = image or kept
            texts.append(text)
        elif isinstance(block, AudioContent):
            texts.append(await _file(block.data, block.mime_type, "", runtime, server))
        elif isinstance(block, EmbeddedResource) and isinstance(inner := block.resource, BlobResourceContents):
            texts.append(await _file(inner.blob, inner.mime_type, inner.uri, runtime, server))
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
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    return f"[{block.type} is left out]"


async def _picture(block: ImageContent, runtime: Any, server: str) -> tuple[str, dict[str, str] | None]:
    """What to say of a picture, and what shows it to the model."""
    try:
        data = base64.b64decode(block.data)
        kept = await keep_picture(runtime.context, data)
    except (AttributeError, ValueError, SandboxError) as error:
        stored = await _file(block.data, block.mime_type, "", runtime, server)
        return f"[a picture that cannot be shown: {error}] {stored}", None
    about = kept.pop("about")
    return f"[a picture, {about}: {kept['path']}]", kept


async def _file(encoded: str, mime_type: str | None, uri: str, runtime: Any, server: str) -> str:
    """Keep a file in the thread, and say where."""
    kind = inline(mime_type or "application/octet-stream")
    try:
        data = base64.b64decode(encoded)
        sandbox = await runtime.context.sandbox()
        digest = hashlib.sha256(data).hexdigest()[:8]
        name = await asyncio.to_thread(_file_name, uri, kind)  # reads the system's tables at its first use
        path = f"{WORKSPACE}/{_plain(server)}/{digest}{name}"
        if await sandbox.stat(path) is None:
            await sandbox.write(path, data)
    except (AttributeError, ValueError, SandboxError) as error:
        return f"[a file, {kind}, that cannot be kept: {error}]"
    return f"[a file, {kind}, {len(data)} bytes: {path}]"


def _file_name(uri: str, kind: str) -> str:
    """``-name.ending`` as the address has it, else the usual ending of its type."""
    name = _plain(unquote(uri.rstrip("/").rpartition("/")[2])) if "/" in uri else ""
    plain = kind.partition(";")[0].strip()
    usual = mimetypes.guess_extension(plain) or mimetypes.guess_extension(plain.replace("/", "/x-", 1)) or ".bin"
    ending = "" if "." in name else usual
    return (f"-{name[-80:]}" if name else "") + ending


def _plain(name: str) -> str:
    """A name of a file that needs no quotes but for spaces, and leads nowhere else."""
    return re.sub(r"[^\w .-]+", "_", inline(name)).strip(" .") or "_"
