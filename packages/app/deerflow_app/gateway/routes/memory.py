"""What agents remember of a person: the document, its facts, and what the configuration says."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from deerflow.features.memory.storage import VERSION
from deerflow.features.memory.store import fact_json
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime

router = Router(tags=["memory"])

Agent = Annotated[str | None, Query(pattern="^[A-Za-z0-9-]{1,64}$", description="A custom agent's memory.")]


class Summary(BaseModel):
    summary: str = ""
    updatedAt: str = ""


class UserContext(BaseModel):
    workContext: Summary = Summary()
    personalContext: Summary = Summary()
    topOfMind: Summary = Summary()


class HistoryContext(BaseModel):
    recentMonths: Summary = Summary()
    earlierContext: Summary = Summary()
    longTermBackground: Summary = Summary()


class Fact(BaseModel):
    """``source``: a thread, ``manual`` or ``unknown``. ``untrusted``: the fact is not confirmed, and where its text came from."""

    id: str
    content: str
    category: str = "context"
    confidence: float = 0.5
    createdAt: str = ""
    source: str = "unknown"
    sourceMessage: str | None = None
    sourceError: str | None = None
    untrusted: str | None = None
    lastUsed: str | None = None
    expiresAt: str | None = None


class Memory(BaseModel):
    version: str = VERSION
    lastUpdated: str = ""
    user: UserContext = UserContext()
    history: HistoryContext = HistoryContext()
    facts: list[Fact] = []


class NewFact(BaseModel):
    content: str
    category: str = "context"
    confidence: float = 0.5


class ChangedFact(BaseModel):
    content: str | None = None
    category: str | None = None
    confidence: float | None = None


class Settings(BaseModel):
    enabled: bool
    storage_path: str
    debounce_seconds: int
    max_facts: int
    fact_confidence_threshold: float
    injection_enabled: bool
    max_injection_tokens: int
    mode: str
    search_chats: bool


class Status(BaseModel):
    config: Settings
    data: Memory


class Found(BaseModel):
    facts: list[Fact]


def _route(method: str, path: str, summary: str, shape: type[BaseModel] = Memory, *, name: str | None = None) -> Any:
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
async def get_memory(principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None) -> dict[str, Any]:
    return await runtime.memory.document(principal, agent)


@_route("DELETE", "", "Forget everything")
async def clear_memory(principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None) -> dict[str, Any]:
    return await runtime.memory.replace(principal, {}, agent)


@_route("POST", "/import", "Replace what is remembered")
async def import_memory(
    body: Memory, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> dict[str, Any]:
    return await runtime.memory.replace(principal, body.model_dump(exclude_none=True), agent)


@_route("POST", "/facts", "Add a fact")
async def create_fact(
    body: NewFact, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> dict[str, Any]:
    await runtime.memory.add(principal, body.content, body.category, body.confidence, agent)
    return await runtime.memory.document(principal, agent)


@_route("PATCH", "/facts/{fact_id}", "Change a fact")
async def change_fact(
    fact_id: str, body: ChangedFact, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> dict[str, Any]:
    await runtime.memory.change(principal, fact_id, agent, **body.model_dump())
    return await runtime.memory.document(principal, agent)


@_route("DELETE", "/facts/{fact_id}", "Forget a fact")
async def forget_fact(
    fact_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> dict[str, Any]:
    """It can be restored for 30 days."""
    await runtime.memory.forget(principal, fact_id, agent)
    return await runtime.memory.document(principal, agent)


@_route("POST", "/facts/{fact_id}/confirm", "Confirm a fact")
async def confirm_fact(
    fact_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> dict[str, Any]:
    """One that a thread with text from outside taught, and that the person did not write, counts from now on."""
    await runtime.memory.confirm(principal, fact_id, agent)
    return await runtime.memory.document(principal, agent)


@_route("POST", "/facts/{fact_id}/undo", "Take back or restore a fact")
async def undo_fact(
    fact_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> dict[str, Any]:
    """One that holds ends, and what it superseded holds again; one that ended holds again."""
    await runtime.memory.undo(principal, fact_id, agent)
    return await runtime.memory.document(principal, agent)


@_route("GET", "/search", "Find facts", Found)
async def search_memory(
    q: str, principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None
) -> dict[str, Any]:
    return {"facts": [fact_json(fact) for fact in await runtime.memory.search(principal, q, agent)]}


@_route("GET", "/config", "What the configuration says about memory", Settings)
async def memory_config(principal: CurrentPrincipal, runtime: CurrentRuntime) -> dict[str, Any]:
    return await runtime.memory.settings()


@_route("GET", "/status", "Configuration and memory", Status)
async def memory_status(principal: CurrentPrincipal, runtime: CurrentRuntime, agent: Agent = None) -> dict[str, Any]:
    return {"config": await runtime.memory.settings(), "data": await runtime.memory.document(principal, agent)}
