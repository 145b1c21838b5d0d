"""All routes. A router stands in the module of its name as ``router``."""

from __future__ import annotations

from fastapi import APIRouter

from deerflow_app.gateway.routers import (
    artifacts,
    assistants,
    auth,
    crons,
    events,
    feedback,
    health,
    messages,
    models,
    preview,
    protocol,
    runs,
    store,
    suggestions,
    system,
    thread_state,
    threads,
    tokens,
    uploads,
    users,
    web,
)

_ROUTERS = (
    health,
    auth,
    tokens,
    users,
    assistants,
    artifacts,
    crons,
    events,
    feedback,
    messages,
    models,
    preview,
    protocol,
    runs,
    store,
    suggestions,
    system,
    thread_state,
    threads,
    uploads,
)


def routers(*, serve_ui: bool) -> list[APIRouter]:
    """In the order in which paths are tried; the page takes every path that is left, so it comes last."""
    return [module.router for module in ((*_ROUTERS, web) if serve_ui else _ROUTERS)]
