"""Tools of MCP servers that a model searches for before it calls them."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import (
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    ToolFailure,
    ToolHandler,
    ToolResult,
    content_text,
    error_result,
    with_replaced,
)
from deerflow.agents.middlewares.tool_error_handling_middleware import typed_call
from deerflow.config.section import EMPTY
from deerflow.models.messages import CALL_TOOL, called
from deerflow.security.text import inline
from deerflow.storage.matching import best_matches
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.origin import SERVER

DEFERRED_FROM = 20
"""So many tools of servers are not shown at once unless the configuration says otherwise."""
MAX_RESULTS = 5
SELECT = "select:"
PROMOTED = "promoted"
"""Key in a result's ``additional_kwargs``: the tools whose definitions the thread shows from then on."""
LISTED_BYTES = 4_000
"""Most bytes of a list of servers with their tools."""
DEFINITION_BYTES = 3_000


@dataclass(frozen=True, slots=True)
class _ServerTools:
    """A server as a model is shown it."""

    name: str
    description: str
    tools: Sequence[str]

    def line(self, room: int) -> str:
        """Return its name, description and tools in so many bytes, more where they are very few."""
        head = f"- {inline(self.name, 40)}"
        if self.description and len(longer := f"{head} ({inline(self.description, 200)})".encode()) < room // 2:
            head = longer.decode()
        named: list[str] = []
        room -= len(head.encode()) + len(": , … 9999 more, - 9999 more servers")
        for tool in self.tools:
            if (room := room - len(tool.encode()) - 2) < 0:
                break
            named.append(tool)
        left = len(self.tools) - len(named)
        return f"{head}: {', '.join([*named, *([f'… {left} more'] if left else [])])}"


class DeferredToolFilterMiddleware(Middleware):
    """Brings ``tool_search``, which shows definitions of tools of servers, and ``call_tool``, which calls them.

    A request's tools come before its messages, and providers cache requests by their beginning: what a model finds stands in the
    results of its searches, and the tools of the request stay as they are. Guard, grants, cards, skills and the ledger stand inside of
    this middleware and see the call of the target, whichever way the model took.

    Args:
        deferred: the tools that are not offered themselves.
        descriptions: of servers, by their names.
    """

    def __init__(self, deferred: Sequence[BaseTool], descriptions: Mapping[str, str] = EMPTY) -> None:
        super().__init__()
        self.deferred = {tool.name: tool for tool in deferred}
        by_server = defaultdict[str, list[str]](list)
        for tool in deferred:
            by_server[_server_of(tool)].append(tool.name)
        self._servers = [_ServerTools(name, descriptions.get(name, ""), tools) for name, tools in by_server.items()]
        self.tools: Sequence[BaseTool] = [_tool_search(self), call_tool_tool]

    def offered(self, tools: Iterable[Any]) -> list[Any]:
        """Return ``tools`` without those that are called by ``call_tool``."""
        return [tool for tool in tools if getattr(tool, "name", None) not in self.deferred]

    def listing(self, room: int = LISTED_BYTES, only: Collection[str] | None = None) -> str:
        """Return the servers with their descriptions and the names of their tools, a line each, in so many bytes."""
        servers = [one for one in self._servers if only is None or one.name in only]
        lines: list[str] = []
        for index, server in enumerate(servers):
            line = server.line(room // (len(servers) - index))
            room -= len(line.encode()) + 1
            if room < len("- 9999 more servers"):
                lines.append(f"- {len(servers) - index} more servers")
                break
            lines.append(line)
        return "\n".join(lines)

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        return await handler(request.override(tools=self.offered(request.tools)))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        call = request.tool_call
        if call["name"] != CALL_TOOL and call["name"] not in self.deferred:
            return await handler(request)
        name, args = called(call)
        if (target := self.deferred.get(name)) is None:
            text = f"Error: {self._missed(name, [tool.name for tool in request.runtime.tools or ()])}"
            return error_result(call, text, ToolFailure.UNKNOWN_TOOL, name)
        if args is None:
            text = f"Error: arguments must be an object. {definition(target)}"
            return error_result(call, text, ToolFailure.UNREADABLE_ARGUMENTS)
        meant = typed_call({**call, "name": name, "args": args}, self.deferred)
        result = await handler(request.override(tool_call=meant, tool=target))
        if name in promoted(request.state["messages"]):
            return result
        return with_replaced(result, lambda message: _with_definition(message, target))

    def _missed(self, name: str, offered: Collection[str]) -> str:
        if name in offered:
            return f"{name} is called directly, not with call_tool."
        return f"there is no tool {inline(name, 100)!r} behind call_tool. {self.near(name)}"

    def near(self, query: str) -> str:
        """Return what there is beside something that was not found: names like it, then all servers."""
        names = near_names(query, self.deferred)
        return "\n".join([*([f"Similar names: {', '.join(names)}."] if names else []), "There are:", self.listing()])


def promoted(messages: Iterable[BaseMessage]) -> list[str]:
    """The tools whose definitions these messages show, in that order."""
    results = (message for message in messages if isinstance(message, ToolMessage))
    return list(dict.fromkeys(name for result in results for name in result.additional_kwargs.get(PROMOTED, ())))


def near_names(query: str, names: Iterable[str]) -> list[str]:
    """Return names like those in a query, or with a word like one of its words."""
    by_part = {part: name for name in names for part in (*name.lower().split("_"), name.lower())}
    asked = [query.lower(), *re.findall(r"[^\W_]+", query.lower())]
    close = (part for word in asked[:20] for part in get_close_matches(word, by_part, n=MAX_RESULTS, cutoff=0.65))
    return list(dict.fromkeys(by_part[part] for part in close))[:MAX_RESULTS]


def definition(tool: BaseTool) -> str:
    """Return a tool's name, description and arguments as a model is shown them."""
    schema = convert_to_openai_tool(tool)["function"]["parameters"]
    text = json.dumps(schema, ensure_ascii=False)
    if len(text.encode()) > DEFINITION_BYTES:
        text = json.dumps(_without_prose(schema), ensure_ascii=False)
    if len(text.encode()) > DEFINITION_BYTES:
        text = f"{inline(', '.join(schema.get('properties') or ()), DEFINITION_BYTES)} (too long to be shown whole)"
    return f"{tool.name}: {inline(tool.description, 300)} Arguments: {text}"


def _without_prose(schema: Any) -> Any:
    """Return a schema without descriptions and examples."""
    if isinstance(schema, Mapping):
        prose = ("description", "examples", "title")
        kept = {name: _without_prose(value) for name, value in schema.items() if name != "properties"}
        kept = {name: value for name, value in kept.items() if name not in prose}
        properties = schema.get("properties")
        if isinstance(properties, Mapping):  # whose keys are names of arguments, also of one called `title`
            kept["properties"] = {name: _without_prose(value) for name, value in properties.items()}
        return kept
    return [_without_prose(item) for item in schema] if isinstance(schema, list) else schema


def _with_definition(message: ToolMessage, tool: BaseTool) -> ToolMessage:
    """Show the tool's arguments with an error: a model that has not searched for it guessed them."""
    if message.status != "error":
        return message
    kwargs = {**message.additional_kwargs, PROMOTED: [tool.name]}
    text = f"{content_text(message.content)}\n{definition(tool)}"  # no note: it is the server's word
    return message.model_copy(update={"content": text, "additional_kwargs": kwargs})


def _server_of(tool: BaseTool) -> str:
    return str((tool.metadata or {}).get(SERVER, "other"))


def _tool_search(middleware: DeferredToolFilterMiddleware) -> BaseTool:
    deferred = middleware.deferred
    texts = {name: f"{_server_of(tool)} {tool.description}" for name, tool in deferred.items()}

    @async_tool("tool_search")
    async def tool_search(query: str, runtime: Runtime) -> ToolMessage:
        """Find tools."""
        if query.startswith(SELECT):
            asked = [name.strip() for name in query.removeprefix(SELECT).split(",")]
            found = [name for name in asked if name in deferred]
        else:
            found = await asyncio.to_thread(best_matches, texts, query, MAX_RESULTS)
        if found:
            servers = {_server_of(deferred[name]) for name in found}
            lines = [f"- {definition(deferred[name])}" for name in found]
            text = "\n".join(["Call these with call_tool:", *lines, "Of:", middleware.listing(only=servers)])
        else:
            text = f"No tools found matching: {inline(query, 200)}\n{middleware.near(query)}"
        return ToolMessage(
            text,
            name="tool_search",
            tool_call_id=runtime.tool_call_id or "",
            additional_kwargs={PROMOTED: found} if found else {},
        )

    return tool_search.model_copy(
        update={
            "description": f"Show how {len(deferred)} more tools are called. Search by words of their names and descriptions; +word must "
            f"be there; {SELECT}name,name takes them by name. Then call them with call_tool."
        }
    )


@async_tool(CALL_TOOL)
async def call_tool_tool(name: str, arguments: dict[str, Any], runtime: Runtime) -> str:
    """Call a tool that tool_search finds.

    Args:
        name: the tool's.
        arguments: as its definition wants them.
    """
    return f"Error: there is no tool {name!r} here."  # the middleware calls the target in its place
