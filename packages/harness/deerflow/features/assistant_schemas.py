"""What an assistant takes and gives, as JSON schemas, and its graph as a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field

from deerflow.events.jsonable import HIDDEN_KEYS, plain

if TYPE_CHECKING:
    from deerflow.agents.factory import Agent


class RunSettings(BaseModel):
    """What may be chosen per run, in ``context`` or in ``config.configurable``."""

    model_name: str | None = Field(
        default=None, description="Name of a model of GET /api/models; the first by default."
    )
    mode: Literal["flash", "thinking", "pro", "ultra"] | None = Field(
        default=None, description="Short for the switches below; those count more."
    )
    thinking_enabled: bool = True
    reasoning_effort: str | None = None
    is_plan_mode: bool = False
    subagent_enabled: bool = False
    max_concurrent_subagents: int = 3
    agent_name: str | None = Field(default=None, description="A custom agent to be instead of the lead agent.")


class RunConfig(BaseModel):
    tags: list[str] = []
    recursion_limit: int | None = None
    configurable: RunSettings = RunSettings()


def schemas(agent: Agent) -> dict[str, Any]:
    """JSON schemas of input, output, state, config and context. Takes a moment: call it off the event loop."""
    settings = RunSettings.model_json_schema()
    output = _public(agent.get_output_jsonschema())
    return {
        "input_schema": _public(agent.get_input_jsonschema()),
        "output_schema": output,
        "state_schema": output,
        "config_schema": RunConfig.model_json_schema(),
        "context_schema": settings,
    }


def drawing(agent: Agent, xray: int | bool) -> dict[str, Any]:
    """``{nodes, edges}`` of the graph; ``xray`` opens subgraphs, as deep as it says."""
    return plain(agent.get_graph(xray=xray).to_json())


def subgraph_schemas(agent: Agent, namespace: str | None, *, recurse: bool) -> dict[str, Any]:
    """By namespace. The lead agent has none: its subagents are tools, not nodes."""
    found = agent.get_subgraphs(namespace=namespace, recurse=recurse)
    return {name: schemas(graph) for name, graph in found if isinstance(graph, CompiledStateGraph)}


def _public(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the parts of the state that clients never see."""
    properties = {name: part for name, part in schema.get("properties", {}).items() if name not in HIDDEN_KEYS}
    required = [name for name in schema.get("required", ()) if name in properties]
    return {**schema, "properties": properties, "required": required}
