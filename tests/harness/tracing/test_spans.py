"""What an OTLP collector gets of a run, through DeerFlowClient and over real HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import langsmith as langsmith_sdk
import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text, ToolCalls
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langsmith.utils import get_env_var
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from pydantic import SecretStr
from tests.support.collector import Collector, Span, spans_of_json

from deerflow.client import DeerFlowClient
from deerflow.features.tracing.otlp import otlp

INTERNAL, CLIENT = 1, 3
REQUIRED = {
    "invoke_agent": {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.conversation.id"},
    "chat": {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"},
    "execute_tool": {"gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.type"},
}


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A double of LangSmith; its SDK and the environment forget afterwards what they were configured with."""
    monkeypatch.setenv("LANGSMITH_PROJECT", "of another test")
    monkeypatch.delenv("LANGSMITH_PROJECT")
    get_env_var.cache_clear()
    with Collector() as collector:
        yield collector
        langsmith_sdk.configure(client=None, enabled=None, project_name=None)
    get_env_var.cache_clear()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        yield collector


def config(endpoint: ScriptedOpenAI) -> dict[str, Any]:
    model = {
        "name": "m",
        "use": "langchain_openai:ChatOpenAI",
        "model": "gpt-x",
        "base_url": endpoint.base_url,
        "api_key": "k",
    }
    sandbox = {
        "use": "deerflow.sandbox.local:LocalSandboxProvider",
        "allow_host_bash": True,
        "tool_image": {"enabled": False},
    }
    return {"models": [model], "sandbox": sandbox, "title": {"enabled": False}}


async def run(endpoint: ScriptedOpenAI, text: str = "hello", **more: Any) -> dict[str, Any]:
    """One run and its timeline."""
    client = await asyncio.to_thread(lambda: DeerFlowClient(config=config(endpoint), **more))
    try:
        thread = "t1"
        async for _ in client.astream(text, thread_id=thread):
            pass
        return await client.atimeline(thread)
    finally:
        await client.aclose()


async def test_a_run_is_a_trace_of_agent_models_tools_and_commands(
    endpoint: ScriptedOpenAI, collector: Collector
) -> None:
    endpoint.script(ToolCalls(("bash", {"command": "echo 1"})), Text("done"))
    found = await run(endpoint)
    spans = await asyncio.to_thread(collector.until, 5)
    assert {span.trace_id for span in spans} == {found["trace_id"]}
    assert {span.service for span in spans} == {"deerflow"}
    [agent] = [span for span in spans if span.name == "invoke_agent lead_agent"]
    [tool] = [span for span in spans if span.name == "execute_tool bash"]
    [command] = [span for span in spans if span.name == "sandbox command"]
    chats = [span for span in spans if span.name == "chat gpt-x"]
    assert len(spans) == 5 and len(chats) == 2
    assert agent.parent_id == "" and command.parent_id == tool.span_id
    assert {span.parent_id for span in (tool, *chats)} == {agent.span_id}
    assert {chat.kind for chat in chats} == {CLIENT}
    assert {span.kind for span in (agent, tool, command)} == {INTERNAL}


async def test_spans_have_what_the_conventions_require(endpoint: ScriptedOpenAI, collector: Collector) -> None:
    endpoint.script(ToolCalls(("bash", {"command": "exit 3"})), Text("done"))
    await run(endpoint, "what is secret")
    spans = await asyncio.to_thread(collector.until, 5)
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    for span in spans:
        named = {name for name in span.attributes if name.startswith("gen_ai.")}
        assert named <= known
        assert not span.name.startswith(("chat", "invoke", "execute")) or REQUIRED[span.name.split()[0]] <= named
    [first, second] = sorted((span for span in spans if span.name.startswith("chat")), key=lambda span: span.start)
    [agent] = [span for span in spans if span.name.startswith("invoke_agent")]
    [command] = [span for span in spans if span.name == "sandbox command"]
    assert first.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert second.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
        assert 0 < first.attributes[key] < agent.attributes[key] == first.attributes[key] + second.attributes[key]
    assert command.attributes == {"process.exit.code": 3, "error.type": "exit_code"} and command.failed
    assert not any(span.failed for span in (agent, first, second))
    assert all("secret" not in str(span.attributes) and "exit 3" not in str(span.attributes) for span in spans)


async def test_the_exported_trace_has_the_spans_that_were_sent(endpoint: ScriptedOpenAI, collector: Collector) -> None:
    task = {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}
    endpoint.script(ToolCalls(("task", task)), ToolCalls(("bash", {"command": "exit 3"})), Text("child"), Text("done"))
    found = await run(endpoint, subagent_enabled=True)
    sent = await asyncio.to_thread(collector.until, 10)
    exported = spans_of_json(otlp(found))
    assert sorted(map(_outline, exported)) == sorted(map(_outline, sent))
    [run_sent, run_exported] = [next(s for s in spans if not s.parent_id) for spans in (sent, exported)]
    assert (run_exported.trace_id, run_exported.span_id) == (run_sent.trace_id, run_sent.span_id)
    assert run_exported.attributes == run_sent.attributes


def _outline(span: Span) -> tuple[Any, ...]:
    facts = (
        "gen_ai.usage.input_tokens",
        "gen_ai.tool.call.id",
        "gen_ai.provider.name",
        "process.exit.code",
        "error.type",
    )
    return span.name, span.kind, span.trace_id, span.failed, *(str(span.attributes.get(name)) for name in facts)


async def test_what_was_said_is_sent_on_request(
    endpoint: ScriptedOpenAI, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    endpoint.script(ToolCalls(("bash", {"command": "echo 42"})), Text("done"))
    await run(endpoint, "what is it")
    spans = await asyncio.to_thread(collector.until, 5)
    [_, last] = sorted((span for span in spans if span.name.startswith("chat")), key=lambda span: span.start)
    given = json.loads(last.attributes["gen_ai.input.messages"])
    assert [message["role"] for message in given][-3:] == ["user", "assistant", "tool"]
    assert {part["type"] for message in given for part in message["parts"]} >= {
        "text",
        "tool_call",
        "tool_call_response",
    }
    assert json.loads(last.attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "done"}], "finish_reason": "stop"}
    ]
    assert json.loads(last.attributes["gen_ai.system_instructions"])[0]["type"] == "text"
    [tool] = [span for span in spans if span.name.startswith("execute_tool")]
    assert json.loads(tool.attributes["gen_ai.tool.call.arguments"])["command"] == "echo 42"
    assert "42" in json.loads(tool.attributes["gen_ai.tool.call.result"])
    [command] = [span for span in spans if span.name == "sandbox command"]
    assert command.attributes["process.command_line"] == "echo 42"


async def test_a_failed_run_is_a_failed_trace(endpoint: ScriptedOpenAI, collector: Collector) -> None:
    endpoint.script(HttpError(401, "bad key"))
    found = await run(endpoint)
    spans = await asyncio.to_thread(collector.until, 2)
    assert found["status"] == "error"
    assert {(span.name.split()[0], span.failed) for span in spans} == {("chat", True), ("invoke_agent", True)}
    assert {span.attributes["error.type"] for span in spans} == {"OpenAIAuthenticationError", "auth"}


async def test_a_stopped_run_leaves_no_span_open(
    endpoint: ScriptedOpenAI, collector: Collector, clean_environment: Path
) -> None:
    endpoint.script(ToolCalls(("bash", {"command": "touch started; sleep 60"})))
    client = await asyncio.to_thread(lambda: DeerFlowClient(config=config(endpoint)))
    following = asyncio.create_task(_follow(client))
    async with asyncio.timeout(60):
        while not [*clean_environment.rglob("started")]:
            await asyncio.sleep(0.05)
    await client.aclose()
    await following
    spans = await asyncio.to_thread(collector.until, 3)
    assert {span.name.split()[0]: span.attributes.get("error.type") for span in spans} == {
        "chat": None,
        "execute_tool": "cancelled",
        "invoke_agent": None,
    }


async def _follow(client: DeerFlowClient) -> None:
    async for _ in client.astream("go", thread_id="t1"):
        pass


async def test_what_a_tool_starts_belongs_to_the_tool(endpoint: ScriptedOpenAI, collector: Collector) -> None:
    """As a subagent does, which is a graph of its own within a tool."""
    endpoint.script(ToolCalls(("delegate", {})), Text("of the child"), Text("done"))
    client = await asyncio.to_thread(
        lambda: DeerFlowClient(config=config(endpoint), extra_middleware=[Delegation(endpoint.base_url)])
    )
    await _follow(client)
    await client.aclose()
    spans = await asyncio.to_thread(collector.until, 5)
    [tool] = [span for span in spans if span.name == "execute_tool delegate"]
    [child] = [span for span in spans if span.parent_id == tool.span_id]
    assert child.name == "chat gpt-child"


async def test_a_subagent_is_an_agent_below_the_call_of_task(endpoint: ScriptedOpenAI, collector: Collector) -> None:
    task = {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}
    endpoint.script(ToolCalls(("task", task)), ToolCalls(("bash", {"command": "echo 1"})), Text("child"), Text("done"))
    await run(endpoint, subagent_enabled=True)
    spans = await asyncio.to_thread(collector.until, 9)
    [call] = [span for span in spans if span.name == "execute_tool task"]
    [child] = [span for span in spans if span.name == "invoke_agent general-purpose"]
    below = {span.name for span in spans if span.parent_id == child.span_id}
    assert child.parent_id == call.span_id and below == {"chat gpt-x", "execute_tool bash"}
    assert REQUIRED["invoke_agent"] <= set(child.attributes)


class Delegation(AgentMiddleware):
    def __init__(self, base_url: str) -> None:
        super().__init__()
        model = ChatOpenAI(model="gpt-child", base_url=base_url, api_key=SecretStr("k"))
        child = create_agent(model)

        @tool
        async def delegate() -> str:
            """Ask a child."""
            return str((await child.ainvoke({"messages": [{"role": "user", "content": "hi"}]}))["messages"][-1].text)

        self.tools = [delegate]


# other services -----------------------------------------------------------------------------------------------------------


async def test_langfuse_gets_the_same_spans_at_its_own_endpoint(
    endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collector() as collector:
        for name, value in (("TRACING", "true"), ("PUBLIC_KEY", "pk"), ("SECRET_KEY", "sk"), ("HOST", collector.url)):
            monkeypatch.setenv(f"LANGFUSE_{name}", value)
        endpoint.script(Text("done"))
        found = await run(endpoint)
        spans = await asyncio.to_thread(collector.until, 2)
        path, headers, _ = collector.requests[0]
    assert path == "/api/public/otel/v1/traces"
    assert headers["authorization"] == f"Basic {b64encode(b'pk:sk').decode()}"
    [agent] = [span for span in spans if span.name.startswith("invoke_agent")]
    assert (agent.trace_id, agent.attributes["session.id"]) == (found["trace_id"], "t1")


async def test_langsmith_gets_named_runs_with_the_id_of_the_trace(
    endpoint: ScriptedOpenAI, langsmith: Collector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variables = f"LANGSMITH_TRACING=true\nLANGSMITH_API_KEY=ls-key\nLANGSMITH_ENDPOINT={langsmith.url}\n"
    (tmp_path / ".env").write_text(variables)
    monkeypatch.chdir(tmp_path)
    endpoint.script(Text("done"))
    found = await run(endpoint)
    [root, *_] = langsmith.langsmith_runs()
    assert {headers["x-api-key"] for path, headers, _ in langsmith.requests} == {"ls-key"}
    assert (root["name"], root["id"].replace("-", "")) == ("lead_agent", found["trace_id"])
    assert root["session_name"] == "deer-flow"
    told = root["extra"]["metadata"]
    assert (told["thread_id"], told["run_id"]) == ("t1", found["run_id"])
    assert told["trace_id"] == found["trace_id"]


async def test_nothing_is_sent_unless_asked_for(
    endpoint: ScriptedOpenAI, langsmith: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_API_KEY", "ls-key")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", langsmith.url)
    for name, value in (("PUBLIC_KEY", "pk"), ("SECRET_KEY", "sk"), ("HOST", langsmith.url)):
        monkeypatch.setenv(f"LANGFUSE_{name}", value)
    endpoint.script(Text("done"))
    await run(endpoint)
    assert langsmith.requests == []


MISCONFIGURED = {
    "LANGFUSE_SECRET_KEY": {"LANGFUSE_TRACING": "true", "LANGFUSE_PUBLIC_KEY": "pk"},
    "LANGSMITH_API_KEY": {"LANGSMITH_TRACING": "true"},
    "http/protobuf": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    "max_queue_size": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"},
}


@pytest.mark.parametrize("what", MISCONFIGURED)
async def test_what_is_amiss_is_logged_once_and_the_run_goes_on(
    endpoint: ScriptedOpenAI,
    langsmith: Collector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: str,
) -> None:
    for name, value in MISCONFIGURED[what].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LANGSMITH_ENDPOINT", langsmith.url)
    endpoint.script(Text("one"), Text("two"))
    client = await asyncio.to_thread(lambda: DeerFlowClient(config=config(endpoint)))
    await _follow(client)
    await _follow(client)
    assert (await client.atimeline("t1"))["status"] == "success"
    await client.aclose()
    assert [record.levelname for record in caplog.records if what in record.getMessage()] == ["WARNING"]
    assert langsmith.requests == []


OFF = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "opentelemetry.sdk":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from deerflow import DeerFlowClient
client = DeerFlowClient(config={})
assert "done" in client.chat("hello")
client.close()
print([name for name in sys.modules if name.startswith("opentelemetry.") or name == "deerflow.features.tracing.spans"])
"""


def test_nothing_is_imported_unless_asked_for(endpoint: ScriptedOpenAI, tmp_path: Path) -> None:
    """Without the extra: with it, the SDK of LangSmith imports OpenTelemetry's whenever it is imported itself."""
    endpoint.script(Text("done"))
    config = {"sandbox": {"tool_image": {"enabled": False}}, "title": {"enabled": False}}
    done = subprocess.run(
        [sys.executable, "-c", OFF.replace("{}", repr(config))],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DEER_FLOW_HOME": str(tmp_path / "home")}
        | {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": endpoint.base_url, "OPENAI_MODEL": "m"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]", done.stderr
