"""Tools made of coroutines that graphs invoked synchronously can use too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, get_type_hints

from langchain.tools import ToolRuntime
from langchain_core.tools import StructuredTool, tool
from pydantic import PlainSerializer

from deerflow.blocking import blocking_twin
from deerflow.context import RunContext

_NOT_DUMPED = PlainSerializer(lambda _: None)

Runtime = ToolRuntime[Annotated[RunContext, _NOT_DUMPED], Annotated[Any, _NOT_DUMPED]]
"""The runtime that tools are given. LangChain dumps every argument of a call, this one with the whole transcript in it:
20 ms at 2,000 messages. Nobody reads the dump."""


def async_tool(name: str) -> Callable[[Callable[..., Coroutine[Any, Any, Any]]], StructuredTool]:
    """As LangChain's ``@tool(name)`` over a coroutine function; the tool gets a synchronous form as well."""

    def decorate(function: Callable[..., Coroutine[Any, Any, Any]]) -> StructuredTool:
        # Resolved once: LangChain evaluates annotations that are strings anew at every call.
        function.__annotations__ = get_type_hints(function, include_extras=True)
        made = tool(name)(function)
        assert isinstance(made, StructuredTool)
        made.func = blocking_twin(function)
        return made

    return decorate
