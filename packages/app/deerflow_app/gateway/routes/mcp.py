"""MCP servers: their entries, state and logs. For administrators."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from typing_extensions import TypedDict

from deerflow.mcp.servers import McpServerState
from deerflow_app.gateway.deps import CurrentAdmin, CurrentRuntime

router = APIRouter(prefix="/api/mcp", tags=["mcp"])


class McpConfig(BaseModel):
    """Entries by name, as in `extensions_config.json`. Secrets are shown as marks; a mark that is sent back keeps its secret."""

    mcp_servers: dict[str, dict[str, Any]]


class McpServers(TypedDict):
    servers: list[McpServerState]


class McpLog(TypedDict):
    lines: list[str]


@router.get("/config", summary="Entries of MCP servers")
async def get_config(principal: CurrentAdmin, runtime: CurrentRuntime) -> McpConfig:
    return McpConfig.model_validate(await runtime.mcp.config(principal))


@router.put("/config", summary="Replace the entries of MCP servers")
async def put_config(given: McpConfig, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpConfig:
    """Servers whose entry stays the same go on as they are."""
    return McpConfig.model_validate(await runtime.mcp.update(principal, given.mcp_servers))


@router.get("/servers", summary="State, tools and last error of MCP servers")
async def list_servers(principal: CurrentAdmin, runtime: CurrentRuntime) -> McpServers:
    return {"servers": await runtime.mcp.states(principal)}


@router.post("/servers/{name}/restart", summary="Open a new session with an MCP server")
async def restart_server(name: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpServerState:
    return await runtime.mcp.restart(principal, name)


@router.get("/servers/{name}/log", summary="What an MCP server has written last")
async def read_log(name: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpLog:
    return {"lines": await runtime.mcp.log(principal, name)}
