"""Routers whose routes are whole as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from deerflow_app.gateway.auth.scopes import check_scopes
from deerflow_app.gateway.http import errors


class Router(APIRouter):
    """Routes of the gateway: each checks the scopes of a token and describes its errors.

    The application takes them over as they are. ``include_router`` would build every route a second time, during the first request.
    """

    def __init__(self, *, prefix: str = "", tags: list[str | Enum], dependencies: Sequence[Any] = ()) -> None:
        super().__init__(
            prefix=prefix,
            tags=tags,
            dependencies=[Depends(check_scopes), *dependencies],
            responses=errors.RESPONSES,
            generate_unique_id_function=_operation_id,
        )


def _operation_id(route: APIRoute) -> str:
    """What generated clients call the operation."""
    return f"{route.tags[0] if route.tags else 'gateway'}_{route.name}".replace(" ", "_")
