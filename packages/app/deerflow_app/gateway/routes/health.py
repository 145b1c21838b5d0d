"""Whether the gateway is there, and what it can do. Public."""

from __future__ import annotations

from importlib.metadata import version
from typing import Literal

from fastapi import Request
from pydantic import BaseModel

from deerflow.errors import UnavailableError
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentDatabase

router = Router(tags=["system"])


class Health(BaseModel):
    status: Literal["healthy"] = "healthy"
    service: Literal["deer-flow-gateway"] = "deer-flow-gateway"


class Ok(BaseModel):
    ok: Literal[True] = True


class Flags(BaseModel):
    """What clients of LangGraph's servers look for."""

    assistants: bool = True
    crons: bool = True


class Info(BaseModel):
    version: str
    langgraph_py_version: str
    flags: Flags


_INFO = Info(version=version("deerflow"), langgraph_py_version=version("langgraph"), flags=Flags())


@router.get("/health", summary="Whether the process answers")
async def health() -> Health:
    return Health()


@router.get("/api/ok", summary="Whether the database answers")
async def ok(database: CurrentDatabase) -> Ok:
    await database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
    return Ok()


@router.get("/ready", summary="Whether runs can begin", include_in_schema=False)
async def ready(request: Request, database: CurrentDatabase) -> Ok:
    state = request.app.state
    if not state.opening.done():
        raise UnavailableError("The server is starting.", reason="still_starting")
    if state.start_error is not None or state.opening.cancelled():
        raise UnavailableError("The server could not start; its log says why.")
    return await ok(database)


@router.get("/api/info", summary="Versions and abilities")
async def info() -> Info:
    return _INFO
