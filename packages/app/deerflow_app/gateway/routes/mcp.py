"""MCP servers: their state and people's own connections, for everybody; their entries and logs, for administrators."""

from __future__ import annotations

import html
import secrets
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel
from typing_extensions import TypedDict

from deerflow.errors import RequestError
from deerflow.mcp import McpPrompt
from deerflow.mcp.connections import Given
from deerflow.mcp.servers import McpServerState, McpTrial
from deerflow_app.gateway.deps import CurrentAdmin, CurrentCredential, CurrentPrincipal, CurrentRuntime

router = APIRouter(prefix="/api/mcp", tags=["mcp"])

CALLBACK = "/api/mcp/oauth/callback"


class McpConfig(BaseModel):
    """Entries by name, as in `extensions_config.json`. Secrets are shown as marks; a mark that is sent back keeps its secret."""

    mcp_servers: dict[str, dict[str, Any]]


class McpEntry(BaseModel):
    name: str
    entry: dict[str, Any]


class McpServers(TypedDict):
    servers: list[McpServerState]


class McpPrompts(TypedDict):
    prompts: list[McpPrompt]


class McpLog(TypedDict):
    lines: list[str]


class McpAuthorizationUrl(TypedDict):
    authorization_url: str


@router.get("/config", summary="Entries of MCP servers")
async def get_config(principal: CurrentAdmin, runtime: CurrentRuntime) -> McpConfig:
    return McpConfig.model_validate(await runtime.mcp.config(principal))


@router.put("/config", summary="Replace the entries of MCP servers")
async def put_config(given: McpConfig, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpConfig:
    """Servers whose entry stays the same go on as they are."""
    return McpConfig.model_validate(await runtime.mcp.update(principal, given.mcp_servers))


@router.get("/servers", summary="State, tools and your connection of MCP servers")
async def list_servers(principal: CurrentPrincipal, runtime: CurrentRuntime) -> McpServers:
    """`connection` is `needed` or `connected` where each person connects for themselves, otherwise null. Administrators also see
    servers that are off, and what went wrong last."""
    return {"servers": await runtime.mcp.states(principal)}


@router.post("/test", summary="Open a session with an MCP server before it is kept")
async def test_server(given: McpEntry, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpTrial:
    """A mark in `entry` stands for the secret of the server that is kept under this name."""
    return await runtime.mcp.test(principal, given.name, given.entry)


@router.get("/prompts", summary="Prompts of MCP servers, which a message can call")
async def list_prompts(principal: CurrentPrincipal, runtime: CurrentRuntime) -> McpPrompts:
    """A message that begins with `command`, and goes on with the arguments, calls the prompt."""
    return {"prompts": await runtime.mcp.prompts(principal)}


@router.post("/servers/{name}/restart", summary="Open a new session with an MCP server")
async def restart_server(name: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpServerState:
    return await runtime.mcp.restart(principal, name)


@router.get("/servers/{name}/log", summary="What an MCP server has written last")
async def read_log(name: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpLog:
    return {"lines": await runtime.mcp.log(principal, name)}


@router.post("/servers/{name}/connect", summary="Begin a connection of your own to an MCP server")
async def connect(
    name: str, request: Request, credential: CurrentCredential, runtime: CurrentRuntime
) -> McpAuthorizationUrl:
    """Open `authorization_url` in a browser in which you are signed in; it comes back to `/api/mcp/oauth/callback` within ten minutes."""
    base = request.base_url
    where = str(base.replace(path=CALLBACK, query="", fragment=""))
    url = await runtime.mcp.connect(credential.principal, credential.session_id, name, where)
    return {"authorization_url": url}


@router.delete("/servers/{name}/connect", status_code=204, summary="Forget your connection to an MCP server")
async def disconnect(name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    await runtime.mcp.disconnect(principal, name)


_PAGES: dict[int | str, dict[str, Any]] = {
    status: {"description": "A page that says why.", "content": {"text/html": {"schema": {"type": "string"}}}}
    for status in (400, 404, 409, 422, 502)
}


@router.get(
    "/oauth/callback",
    summary="Where a browser comes back to after access to an MCP server was allowed",
    response_class=HTMLResponse,
    responses=_PAGES,
)
async def authorized(
    credential: CurrentCredential,
    runtime: CurrentRuntime,
    state: str = "",
    code: str | None = None,
    iss: str | None = None,
    error: str | None = None,
    error_description: str | None = None,
) -> HTMLResponse:
    """A page that closes itself where a page of ours has opened it, and otherwise leads back to the settings."""
    given = Given(state, code, iss, error_description or error)
    try:
        name = await runtime.mcp.connected(credential.principal, credential.session_id, given)
    except RequestError as problem:
        return _page("Not connected", str(problem), problem.status)
    return _page("Connected", f"{name} is connected. You can close this window.", 200)


def _page(title: str, text: str, status: int) -> HTMLResponse:
    """A page that failed stays, so that it can be read."""
    nonce = secrets.token_urlsafe(16)
    script = "if (window.opener) window.close(); else location.replace('/settings/mcp');" if status == 200 else ""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta name="color-scheme" content="light dark"><title>{html.escape(title)}</title>'
        f'<style nonce="{nonce}">body{{font:16px/1.5 system-ui;max-width:32rem;margin:20vh auto;padding:0 1rem}}</style>'
        f"<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p><p><a href='/settings/mcp'>Back to the settings</a></p>"
        f'<script nonce="{nonce}">{script}</script></html>'
    )
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; frame-ancestors 'none'; base-uri 'none'"
    headers = {"content-security-policy": policy, "cache-control": "no-store", "referrer-policy": "no-referrer"}
    return HTMLResponse(page, status, headers)
