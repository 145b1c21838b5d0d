"""Tools made of coroutines that graphs invoked synchronously can use too."""

# Without annotations from the future: LangChain evaluates those that are strings at every call of a tool.
from collections.abc import Callable, Coroutine
from functools import cached_property, wraps
from inspect import signature
from typing import Any, get_type_hints

from langchain.tools import ToolRuntime
from langchain_core.tools import StructuredTool, ToolException
from pydantic import GetCoreSchemaHandler
from pydantic_core.core_schema import CoreSchema, any_schema, plain_serializer_function_ser_schema

from deerflow.context import RunContext
from deerflow.event_loop import blocking_twin
from deerflow.sandbox.interface import SandboxError


class Runtime(ToolRuntime[RunContext, Any]):
    """The runtime that tools are given, of which Pydantic neither makes a schema nor a dump.

    A schema for each tool cost 0.3 s at every start. LangChain dumps every argument of a call, this one with the whole
    transcript in it: 20 ms at 2,000 messages. Nobody reads the dump.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return any_schema(serialization=plain_serializer_function_ser_schema(lambda _: None))


IN_SANDBOX: dict[str, Any] = {"openWorldHint": False}
"""Annotation, as of the Model Context Protocol, of a tool that reaches nothing outside of the thread. Without one it may."""

OUTLIVES_THREAD: dict[str, Any] = {**IN_SANDBOX, "readOnlyHint": False}
"""Annotation of a tool that says nothing from outside, and changes what counts in other threads, too."""

REACHES = "reaches"
"""Key in the metadata of own tools: ``address`` (the argument ``url``), ``search`` (the person's own provider), ``chats``, ``acp``,
or ``commands`` (it runs them in the sandbox)."""

COSMETIC = frozenset({"description", "timeout"})
"""Arguments of own tools that say nothing of what a call does: grants need not name them."""

RUNS_COMMANDS: dict[str, Any] = {**IN_SANDBOX, REACHES: "commands"}
"""Annotation of a tool that runs commands in the sandbox, whose proxy judges the hosts that they reach."""

ALIASES = {
    "file_path": "path",
    "filepath": "path",
    "directory": "path",
    "offset": "start_line",
    "old_string": "old_str",
    "new_string": "new_str",
    "head_limit": "max_results",
    "include": "glob",
}
"""What models call arguments elsewhere, and what they are called here."""


def _as_error(error: ToolException) -> str:
    text = str(error)
    return text if text.startswith("Error") else f"Error: {text}"


class ForgivingTool(StructuredTool):
    """A tool that takes an argument by its usual other names, and names those that it does not know."""

    handle_tool_error: Any = _as_error
    coroutine: Any = None

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        return await self.coroutine(*args, **kwargs)

    def _parse_input(self, tool_input: str | dict[str, Any], tool_call_id: str | None) -> str | dict[str, Any]:
        if isinstance(tool_input, dict):
            tool_input = self._renamed(tool_input)
        return super()._parse_input(tool_input, tool_call_id)

    @cached_property
    def _arguments(self) -> list[str]:
        return [*signature(self.coroutine).parameters]

    def _renamed(self, given: dict[str, Any]) -> dict[str, Any]:
        known = self._arguments
        limit = "end_line" if "end_line" in known else "max_results"
        names = {name: ALIASES.get(name, limit if name == "limit" else name) for name in given if name not in known}
        taken = {new: given[old] for old, new in names.items() if new in known and new not in given}
        if "limit" in names and "end_line" in taken and taken["end_line"] is not None:
            first = given.get("start_line", taken.get("start_line")) or 1
            taken["end_line"] = int(first) + int(taken["end_line"]) - 1
        unknown = sorted(old for old, new in names.items() if new not in taken)
        if unknown:
            wanted = ", ".join(name for name in known if name != "runtime")
            raise ToolException(f"Error: {self.name} takes no {', '.join(unknown)}. Its arguments: {wanted}.")
        return {name: value for name, value in given.items() if name in known} | taken


def async_tool(
    name: str, *, metadata: dict[str, Any] | None = IN_SANDBOX, with_artifact: bool = False
) -> Callable[[Callable[..., Coroutine[Any, Any, Any]]], StructuredTool]:
    """As LangChain's ``@tool(name)`` over a coroutine function; the tool gets a synchronous form as well.

    What the sandbox refuses comes back as ``Error: ...`` text that says what to do; the model reads it and goes on.

    Args:
        metadata: its annotations, as of the Model Context Protocol.
        with_artifact: the function may return ``(text, artifact)``; the artifact is for the harness, not for the model.
    """

    def decorate(function: Callable[..., Coroutine[Any, Any, Any]]) -> StructuredTool:
        # Resolved once: LangChain evaluates annotations that are strings anew at every call.
        function.__annotations__ = get_type_hints(function, include_extras=True)

        @wraps(function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                result = await function(*args, **kwargs)
            except SandboxError as error:
                result = f"Error: {error}"
            return (result, None) if with_artifact and not isinstance(result, tuple) else result

        shape = "content_and_artifact" if with_artifact else "content"
        return ForgivingTool.from_function(
            blocking_twin(call), call, name=name, response_format=shape, metadata=metadata
        )

    return decorate
