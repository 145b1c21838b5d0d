"""The store over HTTP: items of the person who asks, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langgraph.store.base import Item, SearchItem

from deerflow.errors import InvalidRequestError
from deerflow.features.store_rows import DatabaseStore
from deerflow.identity import Principal
from deerflow.storage.database import Database


class StoreService:
    """All methods raise InvalidRequestError for namespaces, keys, values and filters that the store cannot take."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, principal: Principal) -> DatabaseStore:
        """The store of that user, for a graph. To be called on the event loop."""
        return DatabaseStore(self._database, principal)

    async def put(
        self,
        principal: Principal,
        namespace: Sequence[str],
        key: str,
        value: Mapping[str, Any],
        *,
        ttl: float | None = None,
    ) -> None:
        """Args: ttl: minutes after which it is forgotten unless it is read or written. None: never."""
        with _as_invalid():
            await self.of(principal).aput(tuple(namespace), key, dict(value), ttl=ttl)

    async def get(
        self, principal: Principal, namespace: Sequence[str], key: str, *, refresh_ttl: bool | None = None
    ) -> Item | None:
        with _as_invalid():
            return await self.of(principal).aget(tuple(namespace), key, refresh_ttl=refresh_ttl)

    async def delete(self, principal: Principal, namespace: Sequence[str], key: str) -> None:
        with _as_invalid():
            await self.of(principal).adelete(tuple(namespace), key)

    async def search(
        self,
        principal: Principal,
        namespace_prefix: Sequence[str],
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        with _as_invalid():
            return await self.of(principal).asearch(
                tuple(namespace_prefix),
                filter=dict(filter) if filter else None,
                limit=limit,
                offset=offset,
                refresh_ttl=refresh_ttl,
            )

    async def namespaces(
        self,
        principal: Principal,
        *,
        prefix: Sequence[str] | None = None,
        suffix: Sequence[str] | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        with _as_invalid():
            return await self.of(principal).alist_namespaces(
                prefix=tuple(prefix) if prefix else None,
                suffix=tuple(suffix) if suffix else None,
                max_depth=max_depth,
                limit=limit,
                offset=offset,
            )


@contextmanager
def _as_invalid() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise InvalidRequestError(str(error)) from error
