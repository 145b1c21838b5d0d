"""The store: what agents remember across threads, each user's own."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from deerflow.storage.moment import Moment
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, PageRequest, RequestBody

router = Router(tags=["store"])

Namespace = Annotated[list[str], Field(examples=[["memories", "work"]])]


class Item(BaseModel):
    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: Moment
    updated_at: Moment


class FoundItem(Item):
    score: float | None = Field(default=None, description="Always null: there is no vector index.")


class FoundItems(BaseModel):
    items: list[FoundItem]


class Namespaces(BaseModel):
    namespaces: list[list[str]]


class PutItem(RequestBody):
    namespace: Namespace
    key: str = Field(min_length=1)
    value: dict[str, Any]
    index: bool | list[str] | None = Field(default=None, description="Without effect: there is no vector index.")
    ttl: float | None = Field(
        default=None, gt=0, le=5_000_000, description="Minutes after which it is forgotten unless read or written."
    )


class DeleteItem(RequestBody):
    namespace: Namespace
    key: str


class SearchItems(PageRequest):
    namespace_prefix: list[str] = Field(default=[])
    filter: dict[str, Any] | None = Field(
        default=None,
        description="What values must have: equal parts, or comparisons with $eq, $ne, $gt, $gte, $lt and $lte.",
        examples=[{"kind": "report", "stars": {"$gte": 3}}],
    )
    query: str | None = Field(
        default=None, description="Without effect: there is no vector index. What was written last comes first."
    )
    refresh_ttl: bool | None = None


class SearchNamespaces(PageRequest):
    prefix: list[str] | None = Field(default=None, description="`*` stands for any label.")
    suffix: list[str] | None = None
    max_depth: int | None = Field(default=None, ge=1)
    limit: int = Field(default=100, ge=1, le=1000)


@router.put("/api/store/items", status_code=204, summary="Store an item")
async def put_item(body: PutItem, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    with runtime.store.asked(principal) as store:
        await store.aput(tuple(body.namespace), body.key, body.value, ttl=body.ttl)


@router.get("/api/store/items", summary="An item, or null", response_model=Item | None)
async def get_item(
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    key: str,
    namespace: Annotated[str, Query(description="Labels joined by dots.", examples=["memories.work"])] = "",
    refresh_ttl: bool | None = None,
) -> Any:
    labels = tuple(namespace.split(".")) if namespace else ()
    with runtime.store.asked(principal) as store:
        return await store.aget(labels, key, refresh_ttl=refresh_ttl)


@router.delete("/api/store/items", status_code=204, summary="Delete an item, if it is there")
async def delete_item(body: DeleteItem, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    with runtime.store.asked(principal) as store:
        await store.adelete(tuple(body.namespace), body.key)


@router.post("/api/store/items/search", summary="Find items", response_model=FoundItems)
async def search_items(body: SearchItems, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Any:
    wanted = body.model_dump(include={"filter", "limit", "offset", "refresh_ttl"})
    with runtime.store.asked(principal) as store:
        return {"items": await store.asearch(tuple(body.namespace_prefix), **wanted)}


@router.post("/api/store/namespaces", summary="Namespaces that hold items", response_model=Namespaces)
async def list_namespaces(
    principal: CurrentPrincipal, runtime: CurrentRuntime, body: SearchNamespaces | None = None
) -> Any:
    wanted = (body or SearchNamespaces()).model_dump()
    with runtime.store.asked(principal) as store:
        return {"namespaces": await store.alist_namespaces(**wanted)}
