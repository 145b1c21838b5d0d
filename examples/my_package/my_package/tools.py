"""A tool of your own. Any LangChain tool will do; a coroutine keeps the event loop free."""

from __future__ import annotations

from typing import Annotated

from langchain.tools import ToolRuntime, tool
from langchain_core.tools import ToolException
from pydantic import Field

from deerflow.context import RunContext

CELSIUS = {"bergen": 9, "aarau": 14, "cork": 12}
"""In place of your service. Text of strangers needs no care here: results of tools that may reach outside are fenced."""


@tool("weather")
async def weather_tool(
    city: Annotated[str, Field(description="Its name in English")], runtime: ToolRuntime[RunContext, dict]
) -> str:
    """The temperature in a city, measured this morning."""
    if (celsius := CELSIUS.get(city.strip().lower())) is None:
        raise ToolException(f"Error: there is no station in {city}. There are: {', '.join(CELSIUS).title()}.")
    entry = next((entry for entry in runtime.context.config.tools if entry.name == "weather"), None)
    if entry is not None and entry.options().get("unit") == "fahrenheit":
        return f"{city}: {celsius * 9 / 5 + 32:.0f} °F"
    return f"{city}: {celsius} °C"


weather_tool.handle_tool_error = True  # the model reads what went wrong, and goes on
