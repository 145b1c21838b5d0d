"""Tool calls as text, in the XML dialect of Qwen's coder models.

::

    <tool_call>
    <function=bash>
    <parameter=command>
    ls -l
    </parameter>
    </function>
    </tool_call>
"""

from __future__ import annotations

import html
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import InvalidToolCall, ToolCall
from langchain_core.messages.tool import invalid_tool_call, tool_call

TAG = re.compile(r"<(/?)(tool_call|function|parameter)(?:=([^<>]*))?>")
INTEGER = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")

Schemas = Mapping[str, Mapping[str, Any]]
"""JSON schemas of the parameters, by tool name."""


@dataclass(slots=True)
class Found:
    """What a text turned out to hold."""

    content: str
    tool_calls: list[ToolCall] = field(default_factory=list)
    invalid_tool_calls: list[InvalidToolCall] = field(default_factory=list)


def render_calls(calls: Sequence[ToolCall]) -> str:
    """Write calls as text; values are escaped, so that none can close its own tag."""
    return "\n".join(_render_call(call) for call in calls)


def parse_calls(text: str, schemas: Schemas) -> Found:
    """Take the calls out of a model's text.

    A value is read as its tool's schema says; without one, numbers, booleans, null and JSON are recognised. Calls may
    be nested in superfluous tags, and values may hold tags as long as they are balanced. A call whose value breaks off
    is invalid: half a command must not run.
    """
    return _Parser(text, schemas).run()


def parameter_schemas(tools: Sequence[Mapping[str, Any]] | None) -> dict[str, Mapping[str, Any]]:
    functions = [tool.get("function") or {} for tool in tools or ()]
    return {str(function.get("name")): function.get("parameters") or {} for function in functions}


def _render_call(call: ToolCall) -> str:
    lines = ["<tool_call>", f"<function={call['name']}>"]
    for name, value in call["args"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"<parameter={name}>", html.escape(text, quote=False), "</parameter>"]
    return "\n".join([*lines, "</function>", "</tool_call>"])


class _Parser:
    def __init__(self, text: str, schemas: Schemas) -> None:
        self.text = text
        self.schemas = schemas
        self.found = Found("")
        self.outside: list[str] = []
        self.resume = 0
        self.depth = 0
        self.function: str | None = None
        self.arguments: dict[str, Any] = {}
        self.parameter: str | None = None
        self.parameter_depth = 0
        self.value_start = 0

    def run(self) -> Found:
        for tag in TAG.finditer(self.text):
            closing, kind, name = tag.group(1) == "/", tag.group(2), tag.group(3)
            if self.parameter is not None:
                self._inside_value(tag, kind, closing)
            elif kind == "tool_call":
                self._tool_call(tag, closing)
            elif self.depth and kind == "function":
                self._finish_call()
                self.function = None if closing else (name or "").strip() or None
            elif self.function and kind == "parameter" and not closing and name:
                self.parameter, self.value_start, self.parameter_depth = name.strip(), tag.end(), 0
        return self._result()

    def _inside_value(self, tag: re.Match[str], kind: str, closing: bool) -> None:
        if kind != "parameter":
            return
        if not closing:
            self.parameter_depth += 1
        elif self.parameter_depth:
            self.parameter_depth -= 1
        else:
            assert self.function is not None and self.parameter is not None
            value = html.unescape(self.text[self.value_start : tag.start()].removeprefix("\n").removesuffix("\n"))
            schema = (self.schemas.get(self.function, {}).get("properties") or {}).get(self.parameter)
            self.arguments[self.parameter] = decode(value, schema)
            self.parameter = None

    def _tool_call(self, tag: re.Match[str], closing: bool) -> None:
        if not closing:
            if not self.depth:
                self.outside.append(self.text[self.resume : tag.start()])
                self.resume = tag.start()
            self.depth += 1
        elif self.depth:
            self._finish_call()
            self.depth -= 1
            if not self.depth:
                self.resume = tag.end()

    def _finish_call(self) -> None:
        if self.function:
            self.found.tool_calls.append(tool_call(name=self.function, args=self.arguments, id=_call_id()))
        self.function, self.arguments = None, {}

    def _result(self) -> Found:
        found = self.found
        if self.parameter is not None:
            error = f"The call of {self.function} breaks off inside of its parameter {self.parameter}."
            raw = self.text[self.resume :]
            found.invalid_tool_calls.append(invalid_tool_call(name=self.function, args=raw, id=_call_id(), error=error))
        else:
            self._finish_call()
        if not found.tool_calls and not found.invalid_tool_calls:
            return Found(self.text)
        if not self.depth:
            self.outside.append(self.text[self.resume :])
        found.content = "".join(self.outside).strip()
        return found


def decode(text: str, schema: Mapping[str, Any] | None) -> Any:
    """Read a parameter's text as the value that its schema asks for, or as what it looks like if there is no schema."""
    declared, stripped, word = _types(schema or {}), text.strip(), text.strip().lower()
    types = declared or {"null", "boolean", "number", "object", "array"}
    if "null" in types and word in ("null", "none"):
        return None
    if types & {"object", "array"} and stripped.startswith(("{", "[") if declared else ("{", "[", '"')):
        try:
            return json.loads(stripped)
        except json.JSONDecodeError:
            return text
    if "string" in types:
        return text
    if "boolean" in types and word in ("true", "false"):
        return word == "true"
    if types & {"number", "integer"} and NUMBER.fullmatch(stripped):
        return int(stripped) if INTEGER.fullmatch(stripped) else float(stripped)
    return text


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type")
    types: set[str] = {declared} if isinstance(declared, str) else set(declared or ())
    for option in [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]:
        types |= _types(option)
    if not types and "enum" in schema:
        return {"string"} if all(isinstance(value, str) for value in schema["enum"]) else set()
    return types


def _call_id() -> str:
    return f"call_{uuid.uuid4().hex[:10]}"
