"""A graph made by ``create_deerflow_agent`` and invoked directly, as people who use LangGraph do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.replies import Text, ToolCalls
from bench.scripted_openai import ScriptedOpenAI
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool

from deerflow.agents import create_deerflow_agent
from deerflow.context import RunContext
from deerflow.models.openai import OpenAIChatModel
from deerflow.sandbox.tools import SANDBOX_TOOLS


def _agent(endpoint: ScriptedOpenAI, *tools: BaseTool) -> Any:
    model = OpenAIChatModel(model="m", api_key="k", base_url=endpoint.base_url)  # type: ignore[arg-type]
    return create_deerflow_agent(model, [*SANDBOX_TOOLS, *tools])


SAY = {"messages": [{"role": "user", "content": "go"}]}


@pytest.mark.parametrize("way", ["configurable", "context"])
def test_tools_find_their_thread_and_sandbox(way: str, clean_environment: Path):
    with ScriptedOpenAI() as endpoint:
        endpoint.script(
            ToolCalls(("bash", {"description": "x", "command": "echo $((6*7)) > answer; cat answer"})), Text("ok")
        )
        agent = _agent(endpoint)
        if way == "configurable":
            result = agent.invoke(SAY, {"configurable": {"thread_id": "direct"}})
        else:
            result = agent.invoke(SAY, context={"thread_id": "direct"})
    results = [message for message in result["messages"] if isinstance(message, ToolMessage)]
    assert [message.text for message in results] == ["42"]
    assert (clean_environment / "users/default/threads/direct/user-data/workspace/answer").read_text() == "42\n"


def test_options_may_stand_beside_the_thread_in_a_context():
    @tool
    def chosen(runtime: ToolRuntime[RunContext, Any]) -> str:
        """Return the options of the run."""
        return f"{runtime.context.thread_id} {runtime.context.options.model_name} {runtime.context.agent}"

    with ScriptedOpenAI() as endpoint:
        endpoint.script(ToolCalls(("chosen", {})), Text("ok"))
        agent = _agent(endpoint, chosen)
        result = agent.invoke(SAY, context={"thread_id": "direct", "model_name": "m", "agent_name": "writer"})
    assert [each.text for each in result["messages"] if isinstance(each, ToolMessage)] == ["direct m writer"]


def test_without_a_thread_the_error_says_what_is_missing():
    with ScriptedOpenAI() as endpoint:
        endpoint.script(ToolCalls(("ls", {"description": "x", "path": "/mnt/user-data/workspace"})), Text("ok"))
        with pytest.raises(ValueError, match="Thread ID is required"):
            _agent(endpoint).invoke(SAY)
