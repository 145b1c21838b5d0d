"""Searching among many tools."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp_types import Tool

from deerflow.agents.agent_parts import deferred_tools
from deerflow.agents.middlewares.deferred_tool_filter_middleware import (
    DeferredToolFilterMiddleware,
    definition,
    near_names,
)
from deerflow.config import AppConfig
from deerflow.config.schema import McpServerConfig
from deerflow.features.mcp.definitions import offer_of
from deerflow.features.mcp.tools import OfferedTool, tool_of
from deerflow.models.messages import called
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


SCHEMA = {"properties": {"repository": {"type": "string", "description": "Whose it is." * 20}}}


def test_a_hundred_deferred_tools_cost_little() -> None:
    tools = agent_tools((f"server{n % 10}", Tool(name=f"tool{n}", input_schema=SCHEMA)) for n in range(100))
    middleware = DeferredToolFilterMiddleware(tools, {"server3": "Issues and 票 of our team."})
    offered = middleware.offered([*tools, *middleware.tools])
    assert [tool.name for tool in offered] == ["tool_search", "call_tool"]
    assert sum(len(json.dumps(convert_to_openai_tool(tool))) for tool in offered) / 4 < 400, "tokens"
    listing = middleware.listing()
    assert "- server3 (Issues and 票 of our team.): server3_tool3, server3_tool13" in listing
    assert all(tool.name in listing for tool in tools)


@pytest.mark.parametrize(("servers", "each"), [(1, 3000), (40, 50), (900, 1)])
def test_a_list_of_servers_has_a_bound_and_says_what_it_leaves_out(servers: int, each: int) -> None:
    made = ((f"{'名' * 30}{n}", Tool(name=f"t{k}", input_schema={})) for n in range(servers) for k in range(each))
    listing = DeferredToolFilterMiddleware(agent_tools(made), {}).listing()
    assert len(listing.encode()) <= 4_000 and " more" in listing


def test_a_definition_that_is_too_long_loses_its_prose_first() -> None:
    properties = {f"p{n}": {"type": "string", "description": "x" * 90} for n in range(60)} | {
        "title": {"type": "array"}
    }
    (tool,) = agent_tools([("s", Tool(name="t", description="Does it.", input_schema={"properties": properties}))])
    assert "Does it." in definition(tool) and '"title": {"type": "array"}' in definition(tool)
    assert len(definition(tool)) < 4_000


@pytest.mark.parametrize(
    ("query", "near"),
    [("create_isue", "github_create_issue"), ("sendmail", "mail_send"), ("note", "notes_search"), ("zebra", None)],
)
def test_names_like_those_that_were_asked_for_are_near(query: str, near: str | None) -> None:
    assert next(iter(near_names(query, TEXTS)), None) == near


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        ({"name": "t", "arguments": {"a": 1}}, ("t", {"a": 1})),
        ({"name": "t", "arguments": '{"a": 1}'}, ("t", {"a": 1})),
        ({"name": "t", "a": 1}, ("t", {"a": 1})),
        ({"name": "t", "arguments": ""}, ("t", {})),
        ({"name": "t", "arguments": [1]}, ("t", None)),
        ({"name": "t", "arguments": "[1"}, ("t", None)),
        ({}, ("", {})),
    ],
)
def test_a_call_by_call_tool_is_one_of_its_target(args: dict[str, Any], meant: Any) -> None:
    assert called({"name": "call_tool", "args": args}) == meant
    assert called({"name": "bash", "args": args}) == ("bash", args)


def test_tools_are_deferred_from_twenty_on_unless_the_configuration_says_otherwise() -> None:
    tools = agent_tools(("s", Tool(name=f"t{n}", input_schema={})) for n in range(20))
    assert deferred_tools(AppConfig(), tools[:19]) == []
    assert deferred_tools(AppConfig(), tools) == tools
    assert deferred_tools(AppConfig.model_validate({"tool_search": {"enabled": False}}), tools) == []
    assert deferred_tools(AppConfig.model_validate({"tool_search": {"enabled": True}}), tools[:1]) == tools[:1]
