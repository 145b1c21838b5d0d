"""Assistants: the lead agent, custom agents, and settings of one's own, in versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field

from deerflow.features.assistants.rows import Assistant, AssistantQuery
from deerflow.features.assistants.service import AssistantChanges, AssistantRequest
from deerflow.storage.list_page import ListPage
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import (
    HEADERS,
    SELECTABLE,
    CurrentPrincipal,
    CurrentRuntime,
    PageRequest,
    RequestBody,
    SortedPage,
    page_answer,
    selected,
)

router = Router(tags=["assistants"])

AssistantField = Literal[
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "created_at",
    "updated_at",
    "metadata",
    "version",
]


class FoundAssistant(Assistant):
    __pydantic_config__ = SELECTABLE


class AssistantFilter(RequestBody):
    graph_id: str | None = None
    name: str | None = Field(default=None, description="A part of the name, in any case.")
    metadata: dict[str, Any] | None = Field(default=None, description="What the metadata must contain.")

    def query(self) -> AssistantQuery:
        return AssistantQuery(self.graph_id, self.name, self.metadata)


class AssistantSearch(AssistantFilter, SortedPage):
    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] | None = None
    select: list[AssistantField] | None = Field(default=None, description="Only these fields.")


class VersionSearch(PageRequest):
    metadata: dict[str, Any] | None = None


class LatestVersion(RequestBody):
    version: int = Field(ge=1)


class Graph(BaseModel):
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]


class GraphSchema(BaseModel):
    """JSON schemas."""

    graph_id: str | None = None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    state_schema: dict[str, Any]
    config_schema: dict[str, Any]
    context_schema: dict[str, Any]


Xray = Annotated[bool | int, Query(description="Open subgraphs; a number says how deep.")]
Recurse = Annotated[bool, Query(description="Subgraphs of subgraphs, too.")]


@router.post("/api/assistants", summary="Make an assistant of one's own")
async def create_assistant(body: AssistantRequest, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Assistant:
    return await runtime.assistants.create(principal, body)


@router.post(
    "/api/assistants/search",
    summary="Find assistants",
    description="The built-in ones come first, whatever the order of the others.",
    response_model=list[FoundAssistant],
    responses=HEADERS,
)
async def search_assistants(
    principal: CurrentPrincipal, runtime: CurrentRuntime, body: AssistantSearch | None = None
) -> Response:
    body = body or AssistantSearch()
    found, total = await runtime.assistants.search(principal, body.query(), body.page())
    return await page_answer([selected(asdict(one), body.select) for one in found], body, total)


@router.post("/api/assistants/count", summary="Count assistants")
async def count_assistants(
    principal: CurrentPrincipal, runtime: CurrentRuntime, body: AssistantFilter | None = None
) -> int:
    _, total = await runtime.assistants.search(principal, (body or AssistantFilter()).query(), ListPage(1))
    return total


@router.get("/api/assistants/{assistant_id}", summary="An assistant, by id or by the name of a built-in one")
async def get_assistant(assistant_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Assistant:
    return await runtime.assistants.get(principal, assistant_id)


@router.patch("/api/assistants/{assistant_id}", summary="Change an assistant: a new version")
async def update_assistant(
    assistant_id: str, body: AssistantChanges, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Assistant:
    return await runtime.assistants.update(principal, assistant_id, body)


@router.delete("/api/assistants/{assistant_id}", status_code=204, summary="Delete an assistant")
async def delete_assistant(
    assistant_id: str,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    delete_threads: Annotated[bool, Query(description="The threads that it last ran on, too.")] = False,
) -> None:
    await runtime.assistants.delete(principal, assistant_id, delete_threads=delete_threads)


@router.get("/api/assistants/{assistant_id}/graph", summary="Nodes and edges of the graph")
async def assistant_graph(
    assistant_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, xray: Xray = False
) -> Graph:
    return Graph(**await runtime.assistants.graph(principal, assistant_id, xray=xray))


@router.get("/api/assistants/{assistant_id}/schemas", summary="What it takes and gives")
async def assistant_schemas(assistant_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> GraphSchema:
    return GraphSchema(**await runtime.assistants.schemas(principal, assistant_id))


@router.get("/api/assistants/{assistant_id}/subgraphs", summary="Schemas of the subgraphs, by namespace")
async def assistant_subgraphs(
    assistant_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, recurse: Recurse = False
) -> dict[str, GraphSchema]:
    return await runtime.assistants.subgraphs(principal, assistant_id, recurse=recurse)


@router.get("/api/assistants/{assistant_id}/subgraphs/{namespace}", summary="Schemas of one subgraph")
async def assistant_subgraph(
    assistant_id: str, namespace: str, principal: CurrentPrincipal, runtime: CurrentRuntime, recurse: Recurse = False
) -> dict[str, GraphSchema]:
    return await runtime.assistants.subgraphs(principal, assistant_id, namespace=namespace, recurse=recurse)


@router.post("/api/assistants/{assistant_id}/versions", summary="Versions of an assistant, newest first")
async def assistant_versions(
    assistant_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime, body: VersionSearch | None = None
) -> list[Assistant]:
    body = body or VersionSearch()
    return await runtime.assistants.versions(principal, assistant_id, metadata=body.metadata, page=body.page())


@router.post("/api/assistants/{assistant_id}/latest", summary="Make a version the one that is used")
async def set_latest_version(
    assistant_id: str, body: LatestVersion, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Assistant:
    return await runtime.assistants.set_latest(principal, assistant_id, body.version)
