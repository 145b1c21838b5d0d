"""Which tools for the web an agent has."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from deerflow.config import AppConfig
from deerflow.tools import get_available_tools
from deerflow.tools.registry import NativeWebToolDisabledError

SEARX = {"name": "web_search", "group": "web", "use": "deerflow.community.searx.tools:web_search_tool"}
TAVILY = {"name": "web_search", "group": "web", "use": "deerflow.community.tavily.tools:web_search_tool"}
DENY = {"native_web_tools": "deny"}


def of_web(**settings: Any) -> set[str]:
    tools = get_available_tools(app_config=AppConfig.model_validate(settings))
    return {tool.name for tool in tools} & {"web_search", "web_fetch", "image_search"}


@pytest.mark.parametrize("network", ["none", "internet", "host"])
def test_search_and_fetch_are_on_whatever_the_sandbox_reaches(network: str):
    assert of_web(sandbox={"network": network}) == {"web_search", "web_fetch"}


def test_they_are_off_where_they_would_reach_around_a_decision():
    assert of_web(sandbox={"network": {"mode": "allowlist", "allow": ["example.org"]}}) == set()
    assert of_web(security=DENY) == set()
    assert of_web(tools=[]) == set()


def test_a_list_of_ones_own_counts_also_beside_an_allowlist():
    assert of_web(tools=[TAVILY], sandbox={"network": "allowlist"}) == {"web_search"}


def test_what_is_forbidden_makes_no_agent_and_says_why():
    with pytest.raises(NativeWebToolDisabledError, match=r"tavily.*native_web_tools: deny.*searx"):
        of_web(tools=[TAVILY], security=DENY)
    assert not issubclass(NativeWebToolDisabledError, ImportError)
    assert of_web(tools=[SEARX], security=DENY) == {"web_search"}


def test_groups_hold_for_them_too():
    tools = get_available_tools(["file:read"], app_config=AppConfig())
    assert "web_fetch" not in {tool.name for tool in tools}
    assert {"web_fetch", "web_search"} <= {tool.name for tool in get_available_tools(["web"], app_config=AppConfig())}


def test_the_libraries_are_loaded_when_used():
    code = (
        "import sys; from deerflow.config import AppConfig; from deerflow.tools import get_available_tools;"
        "get_available_tools(app_config=AppConfig());"
        "print(*({'html_to_markdown', 'cchardet', 'ddgs', 'primp', 'lxml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
