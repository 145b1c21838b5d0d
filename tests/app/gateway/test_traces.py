"""Traces of runs of a real gateway, as a collector gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.support.collector import Collector
from tests.support.gateway_process import GatewayProcess, gateway_process, until

CALLER = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
SANDBOX = {"use": "deerflow.sandbox.local:LocalSandboxProvider", "allow_host_bash": True}
Serve = Callable[..., GatewayProcess]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture
def serve(tmp_path: Path, scripted: ScriptedOpenAI, collector: Collector) -> Iterator[Serve]:
    """``deerflow serve`` that sends its spans to the collector."""
    with ExitStack() as stack:

        def serve(**variables: str) -> GatewayProcess:
            environment = {
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                "OTEL_BSP_SCHEDULE_DELAY": "100",
                "OPENAI_MODEL": "gpt-x",
                **variables,
            }
            config = yaml.safe_dump({"sandbox": SANDBOX, "title": {"enabled": False}})
            given: dict[str, Any] = {"model_url": scripted.base_url, "config": config, "environment": environment}
            return stack.enter_context(gateway_process(tmp_path, **given))

        yield serve


def start(gateway: GatewayProcess, wait: bool = True, **headers: str) -> dict[str, Any]:
    """A run, as its row stands afterwards."""
    with gateway.client(**headers) as client:
        thread = client.post("/api/threads", json={}).json()["thread_id"]
        body = {"input": {"messages": [{"role": "user", "content": "go"}]}}
        path = f"/api/threads/{thread}/runs"
        client.post(f"{path}/wait" if wait else path, json=body).raise_for_status()
        return client.get(path).json()[0]


def test_a_run_joins_the_trace_of_its_caller(serve: Serve, scripted: ScriptedOpenAI, collector: Collector):
    gateway = serve()
    scripted.script(Text("hi"), Text("hi"), Text("hi"))
    run = start(gateway, traceparent=f"00-{CALLER[0]}-{CALLER[1]}-01")
    spans = {span.name: span for span in collector.until(2)}
    agent = spans["invoke_agent lead_agent"]
    assert run["trace_id"] == agent.trace_id == spans["chat gpt-x"].trace_id == CALLER[0]
    assert agent.parent_id == CALLER[1]
    unsampled = start(gateway, traceparent=f"00-{CALLER[0]}-{CALLER[1]}-00")  # the caller does not want it recorded
    run = start(gateway, traceparent=f"00-{'0' * 32}-{CALLER[1]}-01")  # not valid
    assert run["trace_id"] != CALLER[0]
    spans = collector.until(4)
    assert {span.attributes.get("deerflow.run.id") for span in spans if not span.name.startswith("chat")} == {
        agent.attributes["deerflow.run.id"],
        run["run_id"],
    }
    assert unsampled["trace_id"] == CALLER[0] and len(spans) == 4


def test_a_run_that_outlives_its_process_is_one_trace(serve: Serve, scripted: ScriptedOpenAI, collector: Collector):
    gateway = serve()
    scripted.script(ToolCalls(("bash", {"command": "echo 1"})), Delay(60.0, Text("late")))
    run = start(gateway, wait=False)
    until(lambda: len(scripted.requests) == 2)
    before = collector.until(3)
    gateway.restart()
    scripted.script(Text("done"))
    with gateway.client() as client:
        path = f"/api/threads/{run['thread_id']}/runs/{run['run_id']}"
        client.get(f"{path}/join").raise_for_status()
        after = client.get(path).json()
        timeline = client.get(f"{path}/timeline").json()
    assert after["attempt"] == 2 and after["trace_id"] == run["trace_id"] == timeline["trace_id"]
    shown = [(span["kind"], span["status"]) for span in timeline["spans"]]
    assert ("attempt", "success") in shown and shown[-1] == ("model", "success")
    assert all(span["end_ms"] is not None for span in timeline["spans"])
    spans = collector.until(len(before) + 2)
    [agent] = [span for span in spans if span.name.startswith("invoke_agent")]
    assert {span.trace_id for span in spans} == {run["trace_id"]}
    ids = {span.span_id for span in spans}
    assert agent.parent_id == "" and all(span.parent_id in ids for span in spans if span is not agent)
    assert all(agent.start <= span.start for span in spans)


def test_log_lines_of_a_run_name_its_trace(serve: Serve, scripted: ScriptedOpenAI):
    gateway = serve(OTEL_SDK_DISABLED="true")
    scripted.script(ToolCalls(("bash", {"command": "echo 1"})), Text("done"))
    run = start(gateway)
    lines = until(lambda: [line for line in gateway.output.splitlines() if run["trace_id"] in line])
    assert all(line.endswith(f" trace_id={run['trace_id']}") for line in lines)
    assert [line for line in gateway.output.splitlines() if line and "trace_id=" not in line]


@pytest.mark.parametrize(
    "way", ["down", *(pytest.param(way, marks=pytest.mark.nightly) for way in ("hangs", "refuses"))]
)
def test_a_collector_that_does_not_work_costs_one_warning(
    serve: Serve, scripted: ScriptedOpenAI, collector: Collector, way: str
):
    collector.hang, collector.status = way == "hangs", 401 if way == "refuses" else 200
    url = "http://127.0.0.1:9" if way == "down" else collector.url
    gateway = serve(OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_TIMEOUT="1")
    scripted.script(*[Text("hi")] * 3)
    for _ in range(3):
        assert start(gateway)["status"] == "success"
    until(lambda: "Traces cannot be sent" in gateway.output)
    assert start(gateway)["status"] in ("success", "error")
    assert gateway.terminate() == 0
    warnings = [line for line in gateway.output.splitlines() if "WARNING" in line or "ERROR" in line]
    assert [line for line in warnings if "span" in line.lower() or "trace" in line.lower()] == [
        line for line in warnings if f"Traces cannot be sent to {url}/v1/traces" in line
    ]
    assert sum("Traces cannot be sent" in line for line in warnings) == 1
