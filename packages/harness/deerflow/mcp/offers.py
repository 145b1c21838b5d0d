"""What servers offer besides tools: resources, which agents read with two tools, and prompts, which people call by ``/server:prompt``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from mcp import Client, MCPError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    Prompt,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from deerflow.mcp import McpPrompt
from deerflow.security.door import harmless
from deerflow.security.text import inline

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


async def prompts_of(client: Client) -> tuple[Prompt, ...]:
    if client.server_capabilities.prompts is None:
        return ()
    try:
        return tuple((await client.list_prompts()).prompts[:MAX_PROMPTS])
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


def command_of(server: str, prompt: str) -> str:
    return "/" + ":".join(re.sub(r"[\s/:]+", "_", name) for name in (server, prompt))


def described(server: str, prompts: Iterable[Prompt]) -> list[McpPrompt]:
    return [
        {
            "command": command_of(server, one.name),
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
