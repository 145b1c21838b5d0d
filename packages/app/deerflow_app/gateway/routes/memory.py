"""What agents remember of a person: the document, its facts, and what the configuration says."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel
from typing_extensions import TypedDict

from deerflow.features.memory.store import fact_view
from deerflow.features.memory.view import FactView, MemoryDocument, MemorySettings, MemoryStatus
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime

router = Router(tags=["memory"])

Agent = Annotated[str | None, Query(pattern="^[A-Za-z0-9-]{1,64}$", description="A custom agent's memory.")]


class NewFact(BaseModel):
    content: str
    category: str = "context"
    confidence: float = 0.5


class ChangedFact(BaseModel):
    content: str | None = None
    category: str | None = None
    confidence: float | None = None


class FoundFacts(TypedDict):
    facts: list[FactView]


def _route(method: str, path: str, summary: str, shape: Any = MemoryDocument, *, name: str | None = None) -> Any:
    return router.api_route(
        f"/api/memory{path}",
        methods=[method],
        summary=summary,
        response_model=shape,
        response_model_exclude_none=True,
        name=name,
    )


@_route("GET", "", "What is remembered")
@_route("GET", "/export", "What is remembered, to keep elsewhere", name="export_memory")
@_route("POST", "/reload", "What is remembered, as it is stored now", name="reload_memory")
async def get_memory(principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None) -> MemoryDocument:
    return await runtime.memory.document(principal, agent)


@_route("DELETE", "", "Forget everything")
async def clear_memory(principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None) -> MemoryDocument:
    return await runtime.memory.replace(principal, {}, agent)


@_route("POST", "/import", "Replace what is remembered")
async def import_memory(
    body: MemoryDocument, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> MemoryDocument:
    return await runtime.memory.replace(principal, body, agent)


@_route("POST", "/facts", "Add a fact")
async def create_fact(
    body: NewFact, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> MemoryDocument:
    await runtime.memory.add(principal, body.content, body.category, body.confidence, agent)
    return await runtime.memory.document(principal, agent)


@_route("PATCH", "/facts/{fact_id}", "Change a fact")
async def change_fact(
    fact_id: str, body: ChangedFact, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> MemoryDocument:
    await runtime.memory.change(principal, fact_id, agent, **body.model_dump())
    return await runtime.memory.document(principal, agent)


@_route("DELETE", "/facts/{fact_id}", "Forget a fact")
async def forget_fact(
    fact_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> MemoryDocument:
    """It can be restored for 30 days."""
    await runtime.memory.forget(principal, fact_id, agent)
    return await runtime.memory.document(principal, agent)


@_route("POST", "/facts/{fact_id}/confirm", "Confirm a fact")
async def confirm_fact(
    fact_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> MemoryDocument:
    """One that a thread with text from outside taught, and that the person did not write, counts from now on."""
    await runtime.memory.confirm(principal, fact_id, agent)
    return await runtime.memory.document(principal, agent)


@_route("POST", "/facts/{fact_id}/undo", "Take back or restore a fact")
async def undo_fact(
    fact_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> MemoryDocument:
    """One that holds ends, and what it superseded holds again; one that ended holds again."""
    await runtime.memory.undo(principal, fact_id, agent)
    return await runtime.memory.document(principal, agent)


@_route("GET", "/search", "Find facts", FoundFacts)
async def search_memory(
    q: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> FoundFacts:
    return {"facts": [fact_view(fact) for fact in await runtime.memory.search(principal, q, agent)]}


@_route("GET", "/config", "What the configuration says about memory", MemorySettings)
async def memory_config(principal: CurrentPrincipal, runtime: CurrentRuntime) -> MemorySettings:
    return await runtime.memory.settings()


@_route("GET", "/status", "Configuration and memory", MemoryStatus)
async def memory_status(principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None) -> MemoryStatus:
    return {"config": await runtime.memory.settings(), "data": await runtime.memory.document(principal, agent)}
