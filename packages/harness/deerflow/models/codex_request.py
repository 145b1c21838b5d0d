"""From LangChain messages and tools to a request of OpenAI's Responses API. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

DEFAULT_INSTRUCTIONS = "You are a helpful assistant."

Item = dict[str, Any]


def instructions_of(messages: Sequence[BaseMessage]) -> str:
    """All system messages, a blank line between them: the endpoint takes them in one field only."""
    return "\n\n".join(m.text for m in messages if isinstance(m, SystemMessage) and m.text) or DEFAULT_INSTRUCTIONS


def input_items(messages: Sequence[BaseMessage]) -> list[Item]:
    """The conversation without its system messages, as input items."""
    items: list[Item] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            continue
        if isinstance(message, AIMessage):
            items += _assistant_items(message)
        elif isinstance(message, ToolMessage):
            items.append(
                {"type": "function_call_output", "call_id": message.tool_call_id, "output": _tool_output(message)}
            )
        else:
            items.append({"type": "message", "role": "user", "content": _user_content(message.content)})
    return items


def tool_items(tools: Sequence[Mapping[str, Any] | type | Callable[..., Any] | BaseTool]) -> list[Item]:
    """Tools in the flat form of the Responses API; its own built-in tools pass unchanged."""
    items: list[Item] = []
    for tool in tools:
        if (isinstance(tool, Mapping) and tool.get("type", "function") != "function") or (
            isinstance(tool, Mapping) and tool.get("type") == "function" and "function" not in tool
        ):
            items.append(dict(tool))
        else:
            function = convert_to_openai_tool(tool)["function"]  # pyright: ignore[reportArgumentType]
            items.append({"type": "function", **function})
    return items


def tool_choice_item(choice: str | bool | Mapping[str, Any] | None) -> Any:
    """A tool choice in the flat form: a mode, or one function by name."""
    if choice is None or isinstance(choice, Mapping):
        return _flat_choice(choice) if choice else None
    if choice is True or choice == "any":
        return "required"
    if choice is False:
        return "none"
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


def _flat_choice(choice: Mapping[str, Any]) -> Item:
    function = choice.get("function")
    return {"type": "function", "name": function["name"]} if isinstance(function, Mapping) else dict(choice)


def _assistant_items(message: AIMessage) -> list[Item]:
    items: list[Item] = []
    if text := message.text:
        content = [{"type": "output_text", "text": text}]
        items.append({"type": "message", "role": "assistant", "content": content})
    calls = [(call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    # A call whose arguments were broken has a result too, so it must stay; its arguments need not be JSON.
    calls += [(call["id"], call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls]
    for call_id, name, arguments in calls:
        items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})
    return items


def _tool_output(message: ToolMessage) -> str | list[Item]:
    if isinstance(message.content, str):
        return message.content
    content = _user_content(message.content)
    return content if any(part["type"] != "input_text" for part in content) else message.text


def _user_content(content: str | Sequence[Any]) -> list[Item]:
    blocks = [content] if isinstance(content, str) else content
    return [_content_part(block) for block in blocks]


def _content_part(block: Any) -> Item:
    if isinstance(block, str):
        return {"type": "input_text", "text": block}
    kind = block.get("type")
    if kind == "text":
        return {"type": "input_text", "text": block.get("text", "")}
    if kind in ("image_url", "image"):
        return {"type": "input_image", "image_url": _image_url(block)}
    if isinstance(kind, str) and kind.startswith("input_"):
        return dict(block)
    return {"type": "input_text", "text": json.dumps(block, ensure_ascii=False, default=str)}


def _image_url(block: Mapping[str, Any]) -> str:
    url = block.get("image_url") or block.get("url")
    if isinstance(url, Mapping):
        url = url.get("url")
    if isinstance(url, str) and url:
        return url
    source = block.get("source")
    inner: Mapping[str, Any] = source if isinstance(source, Mapping) else block
    data = inner.get("base64") or inner.get("data")
    if not data:
        return str(inner.get("url") or "")
    return f"data:{inner.get('mime_type') or inner.get('media_type') or 'image/png'};base64,{data}"
