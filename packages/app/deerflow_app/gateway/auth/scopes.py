"""The scopes that an API token needs, route by route: by what is read or changed, whatever the HTTP method."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from deerflow.accounts import Scope
from deerflow.errors import ForbiddenError
from deerflow_app.gateway.auth import Credential

# Of an answer that shows more than what the request has brought, writing needs reading, too.
ANYONE: tuple[Scope, ...] = ()
"""There is nothing of anyone's in it."""
BY_CONTENT: tuple[Scope, ...] = ()
"""The route calls :func:`require` itself, since what it does depends on what is asked."""
READS: tuple[Scope, ...] = ("read",)
WRITES: tuple[Scope, ...] = ("write",)
READS_AND_WRITES: tuple[Scope, ...] = ("read", "write")
PEOPLE = None
"""No token will do."""

_ROUTES: tuple[tuple[tuple[Scope, ...] | None, tuple[str, ...]], ...] = (
    (
        ANYONE,
        (
            "GET /api/info",
            "GET /api/ok",
            "POST /api/v1/auth/initialize",
            "POST /api/v1/auth/login/local",
            "POST /api/v1/auth/logout",
            "POST /api/v1/auth/register",
            "GET /api/v1/auth/setup-status",
            "GET /health",
            "GET /preview/{token}/{path:file}",
            "HEAD /preview/{token}/{path:file}",
        ),
    ),
    (
        PEOPLE,
        (
            "POST /api/v1/auth/change-password",
            "GET /api/v1/auth/tokens",
            "POST /api/v1/auth/tokens",
            "DELETE /api/v1/auth/tokens/{token_id}",
        ),
    ),
    (
        BY_CONTENT,
        (
            "POST /api/mcp",
            "POST /api/threads/{thread_id}/commands",
        ),
    ),
    (
        READS,
        (
            "GET /api/agent-choices",
            "GET /api/agents",
            "GET /api/agents/check",
            "GET /api/agents/{agent_name}",
            "GET /api/agents/{agent_name}/versions",
            "GET /api/approvals/decisions",
            "GET /api/approvals/grants",
            "GET /api/approvals/waiting",
            "POST /api/assistants/count",
            "POST /api/assistants/search",
            "GET /api/assistants/{assistant_id}",
            "GET /api/assistants/{assistant_id}/graph",
            "GET /api/assistants/{assistant_id}/schemas",
            "GET /api/assistants/{assistant_id}/subgraphs",
            "GET /api/assistants/{assistant_id}/subgraphs/{namespace}",
            "POST /api/assistants/{assistant_id}/versions",
            "GET /api/connections",
            "GET /api/events",
            "GET /api/mcp/config",
            "GET /api/mcp/prompts",
            "GET /api/mcp/servers",
            "GET /api/mcp/servers/{name}/changes",
            "GET /api/mcp/servers/{name}/log",
            "GET /api/memory",
            "GET /api/memory/config",
            "GET /api/memory/export",
            "GET /api/memory/search",
            "GET /api/memory/status",
            "GET /api/models",
            "GET /api/models/{model_name:path}",
            "GET /api/openai/v1/models",
            "GET /api/openai/v1/models/{model}",
            "POST /api/runs/crons/count",
            "POST /api/runs/crons/search",
            "GET /api/runs/crons/{cron_id}",
            "GET /api/runs/{run_id}/feedback",
            "GET /api/runs/{run_id}/messages",
            "GET /api/runs/{run_id}/stream",
            "GET /api/runs/{run_id}/timeline",
            "GET /api/search/messages",
            "GET /api/skills",
            "GET /api/skills/custom",
            "GET /api/skills/custom/{skill_name}",
            "GET /api/skills/custom/{skill_name}/history",
            "GET /api/skills/suggestions",
            "GET /api/skills/{skill_name}",
            "GET /api/skills/{skill_name}/files",
            "GET /api/skills/{skill_name}/files/{path:path}",
            "GET /api/skills/{skill_name}/secrets",
            "GET /api/store/items",
            "POST /api/store/items/search",
            "POST /api/store/namespaces",
            "GET /api/system",
            "POST /api/threads/count",
            "POST /api/threads/search",
            "GET /api/threads/{thread_id}",
            "GET /api/threads/{thread_id}/artifacts",
            "GET /api/threads/{thread_id}/artifacts.zip",
            "GET /api/threads/{thread_id}/artifacts/versions",
            "GET /api/threads/{thread_id}/artifacts/{path:file}",
            "HEAD /api/threads/{thread_id}/artifacts/{path:file}",
            "GET /api/threads/{thread_id}/changes",
            "GET /api/threads/{thread_id}/context",
            "GET /api/threads/{thread_id}/export",
            "GET /api/threads/{thread_id}/history",
            "POST /api/threads/{thread_id}/history",
            "GET /api/threads/{thread_id}/messages",
            "GET /api/threads/{thread_id}/pages",
            "POST /api/threads/{thread_id}/preview",
            "GET /api/threads/{thread_id}/runs",
            "GET /api/threads/{thread_id}/runs/{run_id}",
            "GET /api/threads/{thread_id}/runs/{run_id}/events",
            "GET /api/threads/{thread_id}/runs/{run_id}/feedback",
            "GET /api/threads/{thread_id}/runs/{run_id}/feedback/stats",
            "GET /api/threads/{thread_id}/runs/{run_id}/join",
            "GET /api/threads/{thread_id}/runs/{run_id}/messages",
            "GET /api/threads/{thread_id}/runs/{run_id}/receipts",
            "GET /api/threads/{thread_id}/runs/{run_id}/stream",
            "GET /api/threads/{thread_id}/runs/{run_id}/timeline",
            "GET /api/threads/{thread_id}/sources",
            "GET /api/threads/{thread_id}/state",
            "POST /api/threads/{thread_id}/state/checkpoint",
            "GET /api/threads/{thread_id}/state/{checkpoint_id}",
            "GET /api/threads/{thread_id}/stream",
            "POST /api/threads/{thread_id}/stream/events",
            "GET /api/threads/{thread_id}/tasks",
            "GET /api/threads/{thread_id}/tasks/{task_id}/messages",
            "GET /api/threads/{thread_id}/token-usage",
            "GET /api/threads/{thread_id}/turns",
            "GET /api/threads/{thread_id}/uploads/list",
            "GET /api/threads/{thread_id}/waiting",
            "GET /api/usage",
            "GET /api/usage/limits",
            "GET /api/user-profile",
            "GET /api/v1/auth/me",
            "GET /api/v1/users",
        ),
    ),
    (
        WRITES,
        (
            "POST /api/agents",
            "DELETE /api/agents/{agent_name}",
            "PUT /api/agents/{agent_name}",
            "DELETE /api/approvals/grants/{grant_id}",
            "POST /api/assistants",
            "DELETE /api/assistants/{assistant_id}",
            "PATCH /api/assistants/{assistant_id}",
            "DELETE /api/connections/{provider}",
            "PUT /api/connections/{provider}",
            "POST /api/connections/{provider}/models",
            "POST /api/connections/{provider}/test",
            "PUT /api/mcp/config",
            "GET /api/mcp/oauth/callback",
            "DELETE /api/mcp/servers/{name}/connect",
            "POST /api/mcp/servers/{name}/accept",
            "POST /api/mcp/servers/{name}/connect",
            "POST /api/mcp/servers/{name}/restart",
            "POST /api/mcp/test",
            "DELETE /api/memory",
            "POST /api/memory/facts",
            "DELETE /api/memory/facts/{fact_id}",
            "PATCH /api/memory/facts/{fact_id}",
            "POST /api/memory/facts/{fact_id}/confirm",
            "POST /api/memory/facts/{fact_id}/undo",
            "POST /api/memory/import",
            "POST /api/memory/reload",
            "POST /api/models/{model_name:path}/test",
            "POST /api/runs",
            "POST /api/runs/batch",
            "POST /api/runs/cancel",
            "POST /api/runs/crons",
            "DELETE /api/runs/crons/{cron_id}",
            "PATCH /api/runs/crons/{cron_id}",
            "POST /api/skills/archive",
            "DELETE /api/skills/custom/{skill_name}",
            "POST /api/skills/custom/{skill_name}",
            "PUT /api/skills/custom/{skill_name}",
            "POST /api/skills/install",
            "DELETE /api/skills/suggestions/{suggestion_id}",
            "POST /api/skills/suggestions/{suggestion_id}",
            "PUT /api/skills/{skill_name}",
            "POST /api/skills/{skill_name}/secrets/confirm",
            "PUT /api/skills/{skill_name}/secrets/{secret}",
            "DELETE /api/store/items",
            "PUT /api/store/items",
            "POST /api/threads/prune",
            "DELETE /api/threads/{thread_id}",
            "PUT /api/threads/{thread_id}/artifacts/{path:file}",
            "POST /api/threads/{thread_id}/compact",
            "POST /api/threads/{thread_id}/pages/pictures",
            "POST /api/threads/{thread_id}/runs",
            "POST /api/threads/{thread_id}/runs/crons",
            "DELETE /api/threads/{thread_id}/runs/{run_id}",
            "POST /api/threads/{thread_id}/runs/{run_id}/cancel",
            "DELETE /api/threads/{thread_id}/runs/{run_id}/feedback",
            "POST /api/threads/{thread_id}/runs/{run_id}/feedback",
            "PUT /api/threads/{thread_id}/runs/{run_id}/feedback",
            "DELETE /api/threads/{thread_id}/runs/{run_id}/feedback/{feedback_id}",
            "POST /api/threads/{thread_id}/sources/trust",
            "PATCH /api/threads/{thread_id}/state",
            "POST /api/threads/{thread_id}/state",
            "POST /api/threads/{thread_id}/steer",
            "POST /api/threads/{thread_id}/tasks/{task_id}/cancel",
            "POST /api/threads/{thread_id}/uploads",
            "DELETE /api/threads/{thread_id}/uploads/{filename}",
            "DELETE /api/threads/{thread_id}/waiting",
            "PUT /api/user-profile",
            "POST /api/v1/users",
            "DELETE /api/v1/users/{user_id}",
            "PATCH /api/v1/users/{user_id}",
            "POST /api/v1/users/{user_id}/reset-password",
        ),
    ),
    (
        READS_AND_WRITES,
        (
            "POST /api/agents/{agent_name}/rollback",
            "POST /api/assistants/{assistant_id}/latest",
            "POST /api/openai/v1/chat/completions",
            "POST /api/openai/v1/responses",
            "POST /api/runs/stream",
            "POST /api/runs/wait",
            "POST /api/skills/custom/{skill_name}/rollback",
            "POST /api/threads",
            "PATCH /api/threads/{thread_id}",
            "POST /api/threads/{thread_id}/copy",
            "POST /api/threads/{thread_id}/runs/stream",
            "POST /api/threads/{thread_id}/runs/wait",
            "WEBSOCKET /api/threads/{thread_id}/stream/events",
            "POST /api/threads/{thread_id}/suggestions",
        ),
    ),
)
ROUTES: dict[str, tuple[Scope, ...] | None] = {route: scopes for scopes, routes in _ROUTES for route in routes}


async def check_scopes(connection: HTTPConnection) -> None:
    """Refuse a token that lacks a scope of the route, or whose route declares none. Sessions of people have all."""
    credential = getattr(connection.state, "credential", None)
    if credential is None or not credential.is_token:
        return
    route = f"{connection.scope.get('method', 'WEBSOCKET')} {connection.scope['route'].path}"
    needed = ROUTES.get(route)
    if needed is None:
        what = "Passwords and tokens are managed" if route in ROUTES else "This is used"
        raise ForbiddenError(f"{what} by people: sign in.", code="session_required")
    require(credential, *needed)


def require(credential: Credential, *scopes: Scope) -> None:
    """Raise ForbiddenError if the credential lacks one of these."""
    for scope in scopes:
        if scope not in credential.scopes:
            raise ForbiddenError(f"This API token lacks the scope {scope!r}.", code="scope_missing")
