"""One server: a task of its own opens its session, lists what it offers, watches it, reopens it and closes it.

Besides tools it may offer resources, which agents read with two tools, and prompts, which people call by ``/server:prompt``.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from httpx2 import HTTPStatusError
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError
from mcp_types import (
    CONNECTION_CLOSED,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    Implementation,
    ListRootsResult,
    Prompt,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    Root,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
    ToolListChangedNotification,
)
from pydantic import FileUrl

from deerflow.config.schema import McpServerConfig
from deerflow.features.mcp import McpPrompt, Reason
from deerflow.features.mcp.questions import CURRENT, DECLINED, OpenCall, is_web_address
from deerflow.features.mcp.transport import ProgramMissing, Streams
from deerflow.features.mcp.wire import shown
from deerflow.sandbox.interface import WORKSPACE
from deerflow.security.door import harmless
from deerflow.security.text import inline

State = Literal["starting", "ready", "failed"]
Result = TypeVar("Result")
Connect = Callable[[Callable[[str], None]], Streams]

OPEN_SECONDS = 10.0
PROGRAM_SECONDS = 60.0
"""Until a program answers for the first time: it may have to download itself."""
WATCH_SECONDS = 30.0
FIRST_RETRY, LAST_RETRY = 1.0, 300.0
ASKING_SECONDS = 1.0
"""How often is looked whether a person has answered."""
STABLE_SECONDS = 60.0
"""A session that lasted so long is reopened without delay."""
LOG_LINES = 500
MAX_TOOLS = 500

CHANGES = (ToolListChangedNotification, PromptListChangedNotification, ResourceListChangedNotification)

logger = logging.getLogger(__name__)
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # what it has to say becomes our own warning


class McpCallError(Exception):
    """A call got no result. ``str`` is for the model."""


class McpServer:
    """Belongs to the event loop that :meth:`run` runs on; its public attributes may be read anywhere.

    A session's cancel scopes must be left by the task that entered them, so :meth:`run` alone opens and closes it.

    Args:
        connect: what opens the streams to the server, given where lines for its log go.
    """

    def __init__(self, name: str, config: McpServerConfig, connect: Connect) -> None:
        self.name = name
        self.config = config
        self.state: State = "starting"
        self.error = ""
        self.reason: Reason | None = None
        """For a page that words the error itself; None: it is the server's own, or a library's."""
        self.values: dict[str, str] = {}
        self.since = datetime.now(UTC)
        self.tools: tuple[Tool, ...] = ()
        self.prompts: list[McpPrompt] = []
        self.generation = 0
        """Another one when its tools have changed."""
        self.calls: list[OpenCall] = []
        """On their way."""
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self._in_line = False
        """What was written last goes on."""
        self._wrote = ""
        """The last line that the program has written in this session."""
        self.tried = asyncio.Event()
        """Set when the first attempt to open it has ended."""
        self._connect = connect
        self._client: Client | None = None
        self._opened = asyncio.Event()
        self._lost = asyncio.Event()
        self._wake = asyncio.Event()
        self._reopens = False
        self._has_resources = False

    async def run(self) -> None:
        """Keep a session open until this is cancelled."""
        delay = 0.0
        clock = asyncio.get_running_loop().time
        task = asyncio.current_task()
        assert task is not None
        while not task.cancelling():  # a session that fails while it is cancelled raises what it failed with
            self._lost.clear()
            self._wrote = ""
            began = clock()
            try:
                await self._session()
                why, reason = "", None
            except Exception as error:
                reason = _reason(error)
                said = "" if reason == "not_found" else self._wrote  # a shell says it again, in words of its own
                why = ": ".join(filter(None, (_text(error).rstrip("."), said))).strip()
            finally:
                self._client = None
                self._opened.clear()
                self._lost.set()
            was_ready = self.state == "ready"
            self._become("starting" if was_ready or not why else "failed", why, reason)
            if why:
                logger.warning("MCP server %s: %s", self.name, why)
                self.log.append(why)
                self._in_line = False
            delay = 0 if clock() - began > STABLE_SECONDS else delay
            if why and delay:
                await self._sleep(delay)
            delay = min(max(FIRST_RETRY, delay * 2), LAST_RETRY)
            self._taken()

    async def call(self, tool: str, arguments: dict[str, Any], call: OpenCall) -> CallToolResult:
        """Call a tool. What the server asks meanwhile goes to ``call``.

        Raises:
            McpCallError: the server is down, refuses, does not answer in time, or is lost meanwhile.
        """

        def send(client: Client) -> Coroutine[Any, Any, CallToolResult]:
            if any(one is added for one in self.tools for added in RESOURCE_TOOLS if added.name == tool):
                return call_resource_tool(client, tool, arguments)
            return client.call_tool(tool, arguments, progress_callback=call.report)

        return await self._request(send, call)

    async def prompt(self, name: str, arguments: dict[str, str]) -> GetPromptResult:
        """Raises McpCallError."""
        return await self._request(lambda client: client.get_prompt(name, arguments), OpenCall(_silent, asks=False))

    async def _request(self, send: Callable[[Client], Coroutine[Any, Any, Result]], call: OpenCall) -> Result:
        """Raises McpCallError."""
        CURRENT.set(call)
        self.calls.append(call)
        try:
            return await self._answered(send, call)
        finally:
            self.calls.remove(call)

    async def _answered(self, send: Callable[[Client], Coroutine[Any, Any, Result]], call: OpenCall) -> Result:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01 if self.state == "failed" else OPEN_SECONDS):
                await self._opened.wait()
        if (client := self._client) is None:
            raise McpCallError(f"The MCP server {self.name} is not available now. {self.error}")
        answer = asyncio.ensure_future(send(client))
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await self._until({answer, lost}, call)
            if answer.done():
                return answer.result()
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise McpCallError(f"The MCP server {self.name} refused the call: {_text(error)}") from error
            if self._client is client:
                self.reopen()
        except Exception as error:
            raise McpCallError(f"The MCP server {self.name} gave no valid answer: {_text(error)}") from error
        finally:
            for task in (answer, lost):
                task.cancel()
        if self._client is client:
            self._wake.set()
            raise McpCallError(f"The MCP server {self.name} did not answer within {self.config.timeout:g} seconds.")
        raise McpCallError(f"The MCP server {self.name} ended before it answered; it is being restarted.")

    async def _until(self, tasks: set[asyncio.Future[Any]], call: OpenCall) -> None:
        """Until one is done, or the time is up. While the server waits for a person the clock stands still."""
        clock = asyncio.get_running_loop().time
        until = clock() + self.config.timeout
        while True:
            left = ASKING_SECONDS if call.is_asking else until + call.waited - clock()
            if left <= 0:
                return
            done, _ = await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return

    async def _elicited(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        """Older versions of the protocol do not say to which call a question belongs: then it must be the only one."""
        call = CURRENT.get() or (self.calls[0] if len(self.calls) == 1 else None)
        if call is None:
            self.log.append(
                "A question was declined: several calls were on their way, and it did not say which one asked."
            )
            return DECLINED
        if isinstance(params, ElicitRequestURLParams) and not is_web_address(params.url):
            self.log.append(f"A question was declined: {inline(params.url)} is no address that begins with http(s)://.")
            return DECLINED
        return await call.ask(params)

    async def restart(self) -> None:
        """Close the session, open another, and wait until that is open or has failed."""
        self.tried.clear()
        self.reopen()
        await self.tried.wait()

    def reopen(self) -> None:
        """Close the session and open another, at once."""
        self._client = None
        self._opened.clear()
        self._reopens = True
        self._wake.set()

    async def _session(self) -> None:
        async with asyncio.timeout(PROGRAM_SECONDS if self.config.type == "stdio" else OPEN_SECONDS) as opening:
            streams = self._connect(self._written)
            info = Implementation(name="deerflow", version="1")
            async with Client(
                streams,
                client_info=info,
                message_handler=self._heard,
                elicitation_callback=self._elicited,
                list_roots_callback=_roots if self.config.thread_files else None,
                cache=None,
            ) as client:
                await self._look(client)
                opening.reschedule(None)
                self._client = client
                self._become("ready")
                self._opened.set()
                listening = asyncio.ensure_future(self._listen(client))
                try:
                    await self._watch(client)
                finally:
                    listening.cancel()

    def _written(self, text: str) -> None:
        """Takes what a program writes, which comes in pieces of lines."""
        begun = self.log.pop() if self._in_line and self.log else ""
        lines = (begun + text).splitlines()
        self.log.extend(lines)
        self._wrote = next((line for line in reversed(lines) if line.strip()), self._wrote)
        self._in_line = not text.endswith("\n")

    async def _watch(self, client: Client) -> None:
        while True:
            await self._sleep(WATCH_SECONDS)
            has_changed = self._wake.is_set()
            if self._taken():
                return
            async with asyncio.timeout(OPEN_SECONDS):
                # A list is what every version of the protocol answers, unlike a ping.
                if has_changed:
                    await self._look(client)
                else:
                    self._offer(await _tools(client))

    async def _sleep(self, seconds: float) -> None:
        """Until something is to be done at once."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _look(self, client: Client) -> None:
        """At all that it offers."""
        found = await asyncio.gather(_tools(client), prompts_of(client), has_resources(client))
        tools, prompts, self._has_resources = found
        shown = [one for one in prompts if harmless(one.name) == one.name]
        self.log.extend(
            f"The prompt {inline(one.name)} is left out: its name holds characters that cannot be shown."
            for one in prompts
            if one not in shown
        )
        self.prompts = described(self.name, shown)
        self._offer(tools)

    def _offer(self, tools: list[Tool]) -> None:
        names = {tool.name for tool in tools}
        added = [tool for tool in RESOURCE_TOOLS if self._has_resources and tool.name not in names]
        listed = (*tools, *added)
        if listed != self.tools:
            self.tools = listed
            self.generation += 1

    async def _listen(self, client: Client) -> None:
        """Servers of the newest protocol tell of changes to those who ask for it."""
        with suppress(ListenNotSupportedError, MCPError):
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                async for _ in changes:
                    self._wake.set()

    async def _heard(self, message: object) -> None:
        if isinstance(message, CHANGES):
            self._wake.set()

    def _taken(self) -> bool:
        """Whether the session is to be reopened; clears what was asked for."""
        self._wake.clear()
        reopens, self._reopens = self._reopens, False
        return reopens

    def _become(self, state: State, error: str = "", reason: Reason | None = None) -> None:
        self.state, self.error, self.since = state, error, datetime.now(UTC)
        program = {"program": str(self.config.command)}
        self.reason = reason
        self.values = program if reason == "not_found" else {"said": self._wrote} if reason else {}
        if state != "starting":
            self.tried.set()


async def _tools(client: Client) -> list[Tool]:
    found: list[Tool] = []
    cursor: str | None = None
    while len(found) < MAX_TOOLS:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if not (cursor := page.next_cursor):
            break
    return found[:MAX_TOOLS]


async def _silent(*_: Any) -> None: ...


async def _roots(context: object) -> ListRootsResult:
    """Name the thread's workspace to a program that asks where it may work (``roots/list``)."""
    return ListRootsResult(roots=[Root(uri=FileUrl(f"file://{WORKSPACE}"), name="workspace")])


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException) -> Reason | None:
    error = _first(error)
    if isinstance(error, TimeoutError):
        return "no_answer"
    if isinstance(error, ProgramMissing):
        return "not_found"
    return "ended" if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED else None


def _text(error: BaseException) -> str:
    error = _first(error)
    if isinstance(error, TimeoutError):
        return "It does not answer."
    if isinstance(error, HTTPStatusError):
        return shown(error.response)
    text = error.message if isinstance(error, MCPError) else str(error) or type(error).__name__
    return " ".join(text.split())[:500]


# resources -----------------------------------------------------------------------------------------------------------


LIST, READ = "list_resources", "read_resource"
MAX_RESOURCES, MAX_PROMPTS = 200, 100
MAX_PROMPT = 20_000
"""Characters of a prompt's text."""

UNUSABLE = (MCPError, ValueError)
"""What a server answers that promises a list and has none. It keeps its tools."""

_READS = ToolAnnotations(read_only_hint=True)
RESOURCE_TOOLS = (
    Tool(
        name=LIST,
        description="List the resources of this server: addresses of texts and files, and templates of such addresses.",
        input_schema={"type": "object", "properties": {}},
        annotations=_READS,
    ),
    Tool(
        name=READ,
        description="Read a resource of this server by its address.",
        input_schema={"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
        annotations=_READS,
    ),
)


async def prompts_of(client: Client) -> Sequence[Prompt]:
    if client.server_capabilities.prompts is None:
        return ()
    try:
        return (await client.list_prompts()).prompts[:MAX_PROMPTS]
    except UNUSABLE:
        return ()


async def has_resources(client: Client) -> bool:
    """Many servers say that they have some, and have none."""
    if client.server_capabilities.resources is None:
        return False
    try:
        return bool((await client.list_resources()).resources or await _templates(client))
    except UNUSABLE:
        return False


async def call_resource_tool(client: Client, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    """What one of RESOURCE_TOOLS does."""
    if tool == LIST:
        return CallToolResult(content=[TextContent(text="\n".join(await _listed(client)) or "There are none.")])
    read = await client.read_resource(str(arguments["uri"]))
    return CallToolResult(content=[_block(one) for one in read.contents])


async def _listed(client: Client) -> list[str]:
    lines: list[str] = []
    cursor: str | None = None
    while len(lines) < MAX_RESOURCES:
        page = await client.list_resources(cursor=cursor)
        lines += [_line(one.uri, one.name, one.description, one.mime_type) for one in page.resources]
        if not (cursor := page.next_cursor):
            break
    if cursor or len(lines) > MAX_RESOURCES:
        lines = [*lines[:MAX_RESOURCES], "… and more."]
    return lines + [
        _line(one.uri_template, one.name, one.description, one.mime_type) for one in await _templates(client)
    ]


async def _templates(client: Client) -> Sequence[Any]:
    try:
        return (await client.list_resource_templates()).resource_templates[:MAX_RESOURCES]
    except UNUSABLE:
        return ()


def _line(uri: str, *about: str | None) -> str:
    return f"- {inline(uri)}  {' · '.join(inline(text)[:200] for text in about if text)}".rstrip()


def _block(one: TextResourceContents | BlobResourceContents) -> ContentBlock:
    if isinstance(one, TextResourceContents):
        return TextContent(text=one.text)
    if (one.mime_type or "").startswith("image/"):
        return ImageContent(data=one.blob, mime_type=one.mime_type or "")
    return EmbeddedResource(resource=one)


# prompts --------------------------------------------------------------------------------------------------------------


def described(server: str, prompts: Iterable[Prompt]) -> list[McpPrompt]:
    return [
        {
            "command": "/" + ":".join(re.sub(r"[\s/:]+", "_", name) for name in (server, one.name)),
            "server": server,
            "name": one.name,
            "description": harmless(one.description or one.title or "", 300),
            "arguments": [
                {
                    "name": inline(each.name),
                    "description": inline(each.description or "")[:300],
                    "required": bool(each.required),
                }
                for each in one.arguments or ()
            ],
        }
        for one in prompts
    ]


def arguments_of(prompt: McpPrompt, text: str) -> dict[str, str]:
    """``name=value`` for those named so, the others in their order; the last one takes what is left.

    Raises:
        ValueError: one that is required is missing; says how the prompt is called.
    """
    names = [each["name"] for each in prompt["arguments"]]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    given = {name: value for name, sign, value in (word.partition("=") for word in words) if sign and name in names}
    free = [word for word in words if word.partition("=")[0] not in given]
    open_names = [name for name in names if name not in given]
    for index, name in enumerate(open_names):
        rest = free[index:] if name == open_names[-1] else free[index : index + 1]
        if rest:
            given[name] = " ".join(rest)
    if missing := [each["name"] for each in prompt["arguments"] if each["required"] and each["name"] not in given]:
        usage = " ".join(each["name"] if each["required"] else f"[{each['name']}]" for each in prompt["arguments"])
        raise ValueError(f"{', '.join(missing)} is missing. It is called like this: {prompt['command']} {usage}")
    return given


def text_of(result: GetPromptResult) -> str:
    """What the prompt says, as text that can be kept."""
    parts = [
        block.text if isinstance(block := message.content, TextContent) else f"[{block.type} is left out]"
        for message in result.messages
    ]
    return harmless("\n\n".join(parts), MAX_PROMPT)
