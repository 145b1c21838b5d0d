"""Searching among many tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from mcp_types import Tool

from deerflow.agents.lead_agent import _deferred
from deerflow.agents.middlewares.deferred_tool_filter_middleware import DeferredToolFilterMiddleware
from deerflow.config import AppConfig
from deerflow.config.schema import McpServerConfig
from deerflow.mcp.definitions import offer_of
from deerflow.mcp.tools import OfferedTool, tool_of
from deerflow.storage.matching import best_matches

TEXTS = {
    "github_create_issue": "github Opens an issue in a repository.",
    "github_list_issues": "github Lists issues.",
    "notes_search": "notes Finds pages of a notebook made with jupyter.",
    "mail_send": "mail Sends a message; mentions an issue.",
}


NO_CALLS: Any = None


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("notebook jupyter", "notes_search"),
        ("create issue", "github_create_issue"),
        ("list issues", "github_list_issues"),
        ("+mail issue", "mail_send"),
        ('"; DROP TABLE texts', None),
        ("+", None),
        ("", None),
        ("zebra", None),
    ],
)
def test_words_find_what_fits_best_and_no_query_is_malformed(query: str, first: str | None) -> None:
    assert next(iter(best_matches(TEXTS, query)), None) == first


def test_a_word_that_must_be_there_leaves_out_all_others() -> None:
    assert best_matches(TEXTS, "+jupyter issue") == ["notes_search"]


def agent_tools(tools: Iterable[tuple[str, Tool]]) -> list[BaseTool]:
    entry = McpServerConfig(command="x")
    made: list[BaseTool] = []
    for server, tool in tools:
        (definition,) = offer_of(entry, [tool]).definitions
        made.append(tool_of(server, entry, OfferedTool(definition, f"{server}_{tool.name}", None), NO_CALLS, []))
    return made


def test_a_hundred_deferred_tools_cost_little() -> None:
    schema = {"properties": {"repository": {"type": "string", "description": "Whose it is." * 20}}}
    tools = agent_tools((f"server{n % 10}", Tool(name=f"tool{n}", input_schema=schema)) for n in range(100))
    middleware = DeferredToolFilterMiddleware(tools)
    offered = middleware.offered([*tools, *middleware.tools], [])
    assert [tool.name for tool in offered] == ["tool_search"]
    assert len(offered[0].description) / 4 < 400, "tokens"


def test_tools_are_deferred_from_twenty_on_unless_the_configuration_says_otherwise() -> None:
    tools = agent_tools(("s", Tool(name=f"t{n}", input_schema={})) for n in range(20))
    assert _deferred(AppConfig(), tools[:19]) == []
    assert _deferred(AppConfig(), tools) == tools
    assert _deferred(AppConfig.model_validate({"tool_search": {"enabled": False}}), tools) == []
    assert _deferred(AppConfig.model_validate({"tool_search": {"enabled": True}}), tools[:1]) == tools[:1]
