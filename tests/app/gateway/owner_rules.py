"""For every route: who may use it, and a request that is valid but for who makes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Access(Enum):
    PUBLIC = "anyone"
    SIGNED_IN = "everyone who is signed in, for themselves; no id of someone else's thing in the path"
    OWNED = "whoever owns what the path names; for others it is not there"
    ADMIN = "administrators"
    ACCOUNT = "people, not tokens; no id of someone else's thing in the path"
    OWN_ACCOUNT = "people, not tokens, who own what the path names"


@dataclass(frozen=True)
class Rule:
    """``json`` and ``params`` may hold names of things in braces. ``owner``: what the owner gets after the run, if not 2xx."""

    access: Access
    json: Any = None
    params: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    files: bool = False
    owner: tuple[int, ...] = ()
    reads: bool | None = None
    """Whether a token for reading will do; None: for GET and HEAD."""


PUBLIC, SIGNED_IN, OWNED, ADMIN, ACCOUNT, OWN_ACCOUNT = Access
_RUN = {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": "Hi"}]}}
_THREAD = "/api/threads/{thread_id}"
_ONE_RUN = _THREAD + "/runs/{run_id}"
_FILE = _THREAD + "/artifacts/{path:file}"
_ITEM = {"namespace": ["notes"], "key": "k"}

RULES: dict[str, Rule] = {
    # the gateway
    "GET /health": Rule(PUBLIC),
    "GET /ready": Rule(PUBLIC),
    "GET /metrics": Rule(PUBLIC),  # to this machine; from elsewhere see test_metrics.py
    "GET /api/ok": Rule(PUBLIC),
    "GET /api/info": Rule(PUBLIC),
    "GET /preview/{token}/{path:file}": Rule(PUBLIC),
    "HEAD /preview/{token}/{path:file}": Rule(PUBLIC),
    # accounts
    "POST /api/v1/auth/login/local": Rule(PUBLIC),
    "POST /api/v1/auth/register": Rule(PUBLIC),
    "POST /api/v1/auth/initialize": Rule(PUBLIC),
    "POST /api/v1/auth/logout": Rule(PUBLIC),
    "GET /api/v1/auth/setup-status": Rule(PUBLIC),
    "GET /api/v1/auth/me": Rule(SIGNED_IN),
    "POST /api/v1/auth/change-password": Rule(
        ACCOUNT, {"current_password": "not it", "new_password": "one more horse"}
    ),
    "GET /api/v1/auth/me/archive": Rule(SIGNED_IN),
    "POST /api/v1/auth/delete-account": Rule(ACCOUNT, {"password": "not it"}),
    "GET /api/v1/site": Rule(SIGNED_IN),
    "PATCH /api/v1/site": Rule(ADMIN, {"notice": "Hello"}),
    "GET /api/v1/auth/tokens": Rule(ACCOUNT),
    "POST /api/v1/auth/tokens": Rule(ACCOUNT, {"name": "x"}),
    "DELETE /api/v1/auth/tokens/{token_id}": Rule(OWN_ACCOUNT),
    "GET /api/v1/users": Rule(ADMIN),
    "POST /api/v1/users": Rule(ADMIN, {"email": "new@example.org"}),
    "PATCH /api/v1/users/{user_id}": Rule(ADMIN, {"system_role": "admin"}),
    "POST /api/v1/users/{user_id}/reset-password": Rule(ADMIN),
    "DELETE /api/v1/users/{user_id}": Rule(ADMIN),
    # approvals
    "GET /api/approvals/grants": Rule(SIGNED_IN),
    "DELETE /api/approvals/grants/{grant_id}": Rule(OWNED),
    "GET /api/approvals/decisions": Rule(ADMIN),
    "GET /api/approvals/waiting": Rule(SIGNED_IN),
    "GET /api/threads/{thread_id}/waiting": Rule(OWNED),
    "DELETE /api/threads/{thread_id}/waiting": Rule(OWNED),
    f"GET {_THREAD}/sources": Rule(OWNED),
    f"POST {_THREAD}/sources/trust": Rule(OWNED, {"kind": "upload", "name": "{filename}"}),
    # MCP servers
    # channels
    "GET /api/channels/": Rule(SIGNED_IN),
    "GET /api/channels/providers": Rule(SIGNED_IN),
    "GET /api/channels/bots": Rule(SIGNED_IN),
    "POST /api/channels/bots": Rule(SIGNED_IN, {"kind": "telegram", "values": {"bot_token": "1:a"}, "own": True}),
    "PATCH /api/channels/bots/{bot_id}": Rule(OWNED, {"is_on": False}),
    "POST /api/channels/bots/{bot_id}/restart": Rule(OWNED),
    "POST /api/channels/bots/{bot_id}/test": Rule(OWNED, owner=(409,)),
    "DELETE /api/channels/bots/{bot_id}": Rule(OWNED),
    "GET /api/channels/connections": Rule(SIGNED_IN),
    "DELETE /api/channels/connections/{connection_id}": Rule(OWNED, owner=(404,)),
    "POST /api/channels/{kind}/connect": Rule(ACCOUNT, owner=(404,)),
    "POST /api/channels/{kind}/restart": Rule(SIGNED_IN),
    "POST /api/channels/{kind}/runtime-config": Rule(ADMIN, {"values": {"bot_token": "1:a"}}),
    "DELETE /api/channels/{kind}/runtime-config": Rule(SIGNED_IN),
    "POST /api/channels/{kind}/qr-code": Rule(SIGNED_IN, owner=(404,)),
    "POST /api/channels/{kind}/qr-code/progress": Rule(
        OWNED, {"id": "1", "server": "s", "bot_id": "{bot_id}"}, owner=(404,)
    ),
    "POST /api/channels/bots/{bot}/events": Rule(PUBLIC),
    "POST /api/webhooks/github": Rule(PUBLIC),
    # providers
    "GET /api/connections": Rule(ADMIN),
    "POST /api/connections/{provider}/models": Rule(ADMIN, {}, owner=(404,)),
    "POST /api/connections/{provider}/test": Rule(ADMIN, {}, owner=(404,)),
    "PUT /api/connections/{provider}": Rule(ADMIN, {}, owner=(404,)),
    "DELETE /api/connections/{provider}": Rule(ADMIN, owner=(404,)),
    "GET /api/mcp/config": Rule(ADMIN),
    "PUT /api/mcp/config": Rule(ADMIN, {"mcp_servers": {}}),
    "PATCH /api/mcp/config": Rule(ADMIN, {"server_name": "s", "enabled": False}, owner=(404,)),
    "POST /api/mcp/cache/reset": Rule(ADMIN),
    "GET /api/mcp/servers": Rule(SIGNED_IN),
    "GET /api/mcp/prompts": Rule(SIGNED_IN),
    "POST /api/mcp/servers/{name}/connect": Rule(SIGNED_IN, owner=(404,)),
    "DELETE /api/mcp/servers/{name}/connect": Rule(SIGNED_IN, owner=(404,)),
    "GET /api/mcp/oauth/callback": Rule(SIGNED_IN, params={"state": "unknown"}, owner=(422,), reads=False),
    "POST /api/mcp": Rule(
        SIGNED_IN,
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "search_chats", "arguments": {"query": "x"}},
        },
        headers={"accept": "application/json, text/event-stream"},
        reads=True,
    ),
    "POST /api/mcp/servers/{name}/restart": Rule(ADMIN, owner=(404,)),
    "GET /api/mcp/servers/{name}/changes": Rule(ADMIN, owner=(404,)),
    "POST /api/mcp/servers/{name}/accept": Rule(ADMIN, {"digests": []}, owner=(404,)),
    "POST /api/mcp/test": Rule(ADMIN, json={"name": "s", "entry": {"url": "http://127.0.0.1:9/mcp"}}),
    "GET /api/mcp/servers/{name}/log": Rule(ADMIN, owner=(404,)),
    # skills
    "GET /api/skills": Rule(SIGNED_IN),
    "GET /api/skills/{skill_name}": Rule(OWNED),
    "PUT /api/skills/{skill_name}": Rule(OWNED, {"enabled": False}),
    "GET /api/skills/suggestions": Rule(SIGNED_IN),
    "POST /api/skills/suggestions/{suggestion_id}": Rule(OWNED, owner=(404,)),
    "DELETE /api/skills/suggestions/{suggestion_id}": Rule(OWNED, owner=(404,)),
    "GET /api/skills/{skill_name}/files": Rule(OWNED),
    "GET /api/skills/{skill_name}/files/{path:path}": Rule(OWNED, owner=(404,)),
    "GET /api/skills/{skill_name}/secrets": Rule(OWNED),
    "PUT /api/skills/{skill_name}/secrets/{secret}": Rule(OWNED, {"value": "long enough"}, owner=(404,)),
    "POST /api/skills/{skill_name}/secrets/confirm": Rule(OWNED, {"digest": "x"}, owner=(409,)),
    "GET /api/skills/custom": Rule(SIGNED_IN),
    "GET /api/skills/custom/{skill_name}": Rule(OWNED),
    "POST /api/skills/custom/{skill_name}": Rule(SIGNED_IN, {"content": "no skill"}),
    "PUT /api/skills/custom/{skill_name}": Rule(OWNED, {"content": "---\nname: mine\ndescription: Better.\n---\n"}),
    "DELETE /api/skills/custom/{skill_name}": Rule(OWNED),
    "GET /api/skills/custom/{skill_name}/history": Rule(OWNED),
    "POST /api/skills/custom/{skill_name}/rollback": Rule(OWNED, {}, owner=(404,)),
    "POST /api/skills/archive": Rule(SIGNED_IN),
    "POST /api/skills/reload": Rule(SIGNED_IN),
    "POST /api/skills/install": Rule(SIGNED_IN, {"thread_id": "x", "path": "/mnt/user-data/outputs/x.skill"}),
    # assistants
    "POST /api/assistants": Rule(SIGNED_IN, {"graph_id": "lead_agent", "name": "mine"}),
    "POST /api/assistants/search": Rule(SIGNED_IN, {}, reads=True),
    "POST /api/assistants/count": Rule(SIGNED_IN, {}, reads=True),
    "GET /api/assistants/{assistant_id}": Rule(OWNED),
    "PATCH /api/assistants/{assistant_id}": Rule(OWNED, {"name": "changed"}),
    "DELETE /api/assistants/{assistant_id}": Rule(OWNED),
    "GET /api/assistants/{assistant_id}/graph": Rule(OWNED),
    "GET /api/assistants/{assistant_id}/schemas": Rule(OWNED),
    "GET /api/assistants/{assistant_id}/subgraphs": Rule(OWNED),
    "GET /api/assistants/{assistant_id}/subgraphs/{namespace}": Rule(OWNED, owner=(404,)),
    "POST /api/assistants/{assistant_id}/versions": Rule(OWNED, {}, reads=True),
    "POST /api/assistants/{assistant_id}/latest": Rule(OWNED, {"version": 1}),
    # files
    f"GET {_THREAD}/pages": Rule(OWNED),
    f"POST {_THREAD}/pages/pictures": Rule(OWNED, {"url": "http://127.0.0.1/x.png"}, owner=(422,)),
    f"GET {_THREAD}/artifacts": Rule(OWNED),
    f"GET {_THREAD}/artifacts.zip": Rule(OWNED),
    f"POST {_THREAD}/reports": Rule(
        OWNED, {"path": "/mnt/user-data/outputs/out.txt", "format": "pdf"}, owner=(422,), reads=True
    ),
    f"GET {_THREAD}/artifacts/versions": Rule(OWNED, params={"path": "/mnt/user-data/outputs/out.txt"}),
    f"GET {_THREAD}/changes": Rule(OWNED),
    f"GET {_ONE_RUN}/workspace-changes": Rule(OWNED),
    f"HEAD {_FILE}": Rule(OWNED),
    f"GET {_FILE}": Rule(OWNED),
    f"PUT {_FILE}": Rule(OWNED, {"changed": True}, headers={"if-match": '"x"'}, owner=(412,)),
    f"POST {_THREAD}/preview": Rule(OWNED, {"path": "/{path}"}, reads=True),
    f"POST {_THREAD}/uploads": Rule(OWNED, files=True),
    f"GET {_THREAD}/uploads/list": Rule(OWNED),
    f"GET {_THREAD}/uploads/limits": Rule(OWNED),
    f"DELETE {_THREAD}/uploads/{{filename}}": Rule(OWNED),
    # crons
    f"POST {_THREAD}/runs/crons": Rule(OWNED, {"schedule": "0 0 1 1 *", **_RUN}),
    "POST /api/runs/crons": Rule(SIGNED_IN, {"schedule": "0 0 1 1 *", **_RUN}),
    "POST /api/runs/crons/search": Rule(SIGNED_IN, {}, reads=True),
    "POST /api/runs/crons/count": Rule(SIGNED_IN, {}, reads=True),
    "GET /api/runs/crons/{cron_id}": Rule(OWNED),
    "PATCH /api/runs/crons/{cron_id}": Rule(OWNED, {"enabled": False}),
    "DELETE /api/runs/crons/{cron_id}": Rule(OWNED),
    # feedback
    f"POST {_ONE_RUN}/feedback": Rule(OWNED, {"rating": 1}),
    f"PUT {_ONE_RUN}/feedback": Rule(OWNED, {"rating": 1}),
    f"GET {_ONE_RUN}/feedback": Rule(OWNED),
    f"GET {_ONE_RUN}/feedback/stats": Rule(OWNED),
    f"DELETE {_ONE_RUN}/feedback": Rule(OWNED, owner=(404,)),
    f"DELETE {_ONE_RUN}/feedback/{{feedback_id}}": Rule(OWNED, owner=(404,)),
    "GET /api/runs/{run_id}/feedback": Rule(OWNED),
    # messages
    f"GET {_THREAD}/messages": Rule(OWNED),
    f"GET {_THREAD}/messages/page": Rule(OWNED),
    f"GET {_ONE_RUN}/messages": Rule(OWNED),
    "GET /api/runs/{run_id}/messages": Rule(OWNED),
    f"GET {_ONE_RUN}/events": Rule(OWNED),
    f"GET {_THREAD}/turns": Rule(OWNED),
    f"GET {_THREAD}/tasks": Rule(OWNED),
    f"GET {_THREAD}/tasks/{{task_id}}/messages": Rule(OWNED, owner=(404,)),
    f"POST {_THREAD}/tasks/{{task_id}}/cancel": Rule(OWNED, owner=(404,)),
    f"GET {_THREAD}/token-usage": Rule(OWNED),
    f"GET {_THREAD}/export": Rule(OWNED),
    "GET /api/search/messages": Rule(SIGNED_IN, params={"q": "secret"}),
    # models
    "GET /api/usage": Rule(SIGNED_IN),
    "GET /api/usage/limits": Rule(SIGNED_IN),
    # OpenAI's API
    "GET /api/openai/v1/models": Rule(SIGNED_IN),
    "GET /api/openai/v1/models/{model}": Rule(OWNED),
    "POST /api/openai/v1/chat/completions": Rule(
        SIGNED_IN, {"model": "lead_agent", "messages": [{"role": "user", "content": "Hi"}]}
    ),
    "POST /api/openai/v1/responses": Rule(SIGNED_IN, {"model": "lead_agent", "input": "Hi"}),
    "GET /api/openai/v1/responses/{response_id}": Rule(OWNED),
    "GET /api/openai/v1/responses/{response_id}/input_items": Rule(OWNED),
    "POST /api/openai/v1/responses/{response_id}/cancel": Rule(OWNED),
    "DELETE /api/openai/v1/responses/{response_id}": Rule(OWNED),
    # agents
    "GET /api/agents": Rule(SIGNED_IN),
    "POST /api/agents": Rule(SIGNED_IN, {"name": "another"}),
    "GET /api/agents/check": Rule(SIGNED_IN, params={"name": "another"}),
    "GET /api/agent-choices": Rule(SIGNED_IN),
    "GET /api/agents/{agent_name}": Rule(OWNED),
    "PUT /api/agents/{agent_name}": Rule(OWNED, {"soul": "changed"}),
    "DELETE /api/agents/{agent_name}": Rule(OWNED),
    "GET /api/agents/{agent_name}/versions": Rule(OWNED),
    "POST /api/agents/{agent_name}/rollback": Rule(OWNED, {"version": 1}),
    "GET /api/user-profile": Rule(SIGNED_IN),
    "PUT /api/user-profile": Rule(SIGNED_IN, {"content": "changed"}),
    # memory
    "GET /api/memory": Rule(SIGNED_IN),
    "GET /api/memory/export": Rule(SIGNED_IN),
    "POST /api/memory/reload": Rule(SIGNED_IN),
    "POST /api/memory/import": Rule(SIGNED_IN, {"facts": []}),
    "POST /api/memory/facts": Rule(SIGNED_IN, {"content": "The user measures in metric units."}),
    # undo, which is asked first, has taken the fact back
    "PATCH /api/memory/facts/{fact_id}": Rule(OWNED, {"content": "changed"}, owner=(404,)),
    "DELETE /api/memory/facts/{fact_id}": Rule(OWNED, owner=(404,)),
    "POST /api/memory/facts/{fact_id}/confirm": Rule(OWNED, owner=(404,)),
    "POST /api/memory/facts/{fact_id}/undo": Rule(OWNED),
    "GET /api/memory/search": Rule(SIGNED_IN, params={"q": "metric"}),
    "GET /api/memory/config": Rule(SIGNED_IN),
    "GET /api/memory/status": Rule(SIGNED_IN),
    "DELETE /api/memory": Rule(SIGNED_IN),
    "GET /api/models": Rule(SIGNED_IN),
    "GET /api/models/{model_name:path}": Rule(SIGNED_IN),
    "POST /api/models/{model_name:path}/test": Rule(SIGNED_IN),
    "GET /api/system": Rule(SIGNED_IN),
    "GET /api/guides/{name:path}": Rule(SIGNED_IN, owner=(404, 422)),
    "GET /api/features": Rule(SIGNED_IN),
    "GET /api/suggestions/config": Rule(SIGNED_IN),
    # streams
    "GET /api/events": Rule(SIGNED_IN),
    f"POST {_THREAD}/commands": Rule(OWNED, {"id": 1, "method": "state.get", "params": {}}, reads=True),
    f"POST {_THREAD}/stream/events": Rule(OWNED, {"channels": ["lifecycle"]}, reads=True),
    f"WEBSOCKET {_THREAD}/stream/events": Rule(OWNED),
    # runs
    f"POST {_THREAD}/runs": Rule(OWNED, _RUN),
    f"POST {_THREAD}/runs/stream": Rule(OWNED, _RUN),
    f"POST {_THREAD}/runs/wait": Rule(OWNED, _RUN),
    f"GET {_THREAD}/runs": Rule(OWNED),
    f"GET {_THREAD}/stream": Rule(OWNED),
    f"GET {_THREAD}/context": Rule(OWNED),
    f"POST {_THREAD}/compact": Rule(OWNED, {"keep": "the figures"}),
    f"POST {_THREAD}/steer": Rule(OWNED, {"message": "in French"}, owner=(404, 409)),
    f"GET {_ONE_RUN}": Rule(OWNED),
    f"DELETE {_ONE_RUN}": Rule(OWNED),
    f"POST {_ONE_RUN}/cancel": Rule(OWNED, owner=(404, 409)),
    f"GET {_ONE_RUN}/receipts": Rule(OWNED),
    f"GET {_ONE_RUN}/timeline": Rule(OWNED),
    "GET /api/runs/{run_id}/timeline": Rule(OWNED),
    f"GET {_ONE_RUN}/join": Rule(OWNED),
    f"GET {_ONE_RUN}/stream": Rule(OWNED),
    f"POST {_ONE_RUN}/stream": Rule(OWNED),
    f"POST {_THREAD}/runs/regenerate/prepare": Rule(OWNED, {"message_id": "{message_id}"}, reads=True),
    f"POST {_THREAD}/runs/edit-regenerate/prepare": Rule(
        OWNED, {"human_message_id": "{message_id}", "replacement_text": "again"}, reads=True
    ),
    "POST /api/runs": Rule(SIGNED_IN, _RUN),
    "POST /api/runs/stream": Rule(SIGNED_IN, _RUN),
    "POST /api/runs/wait": Rule(SIGNED_IN, _RUN),
    "POST /api/runs/batch": Rule(SIGNED_IN, [_RUN]),
    "POST /api/runs/cancel": Rule(SIGNED_IN, {"status": "all"}),
    "GET /api/runs/{run_id}/stream": Rule(OWNED),
    # the store
    "PUT /api/store/items": Rule(SIGNED_IN, {**_ITEM, "value": {"mine": True}}),
    "GET /api/store/items": Rule(SIGNED_IN, params={"namespace": "notes", "key": "k"}),
    "DELETE /api/store/items": Rule(SIGNED_IN, _ITEM),
    "POST /api/store/items/search": Rule(SIGNED_IN, {"namespace_prefix": ["notes"]}, reads=True),
    "POST /api/store/namespaces": Rule(SIGNED_IN, {}, reads=True),
    # threads
    "POST /api/transcriptions": Rule(SIGNED_IN, owner=(404,), reads=True),
    f"POST {_THREAD}/suggestions": Rule(OWNED, {"messages": [{"role": "user", "content": "Hi"}]}),
    f"GET {_THREAD}/state": Rule(OWNED),
    f"GET {_THREAD}/state/{{checkpoint_id}}": Rule(OWNED),
    f"POST {_THREAD}/state/checkpoint": Rule(OWNED, {"checkpoint": {"checkpoint_id": "{checkpoint_id}"}}, reads=True),
    f"POST {_THREAD}/state": Rule(OWNED, {"values": {"title": "changed"}}),
    f"PATCH {_THREAD}/state": Rule(OWNED, {"metadata": {"changed": True}}),
    f"POST {_THREAD}/history": Rule(OWNED, {}, reads=True),
    f"GET {_THREAD}/history": Rule(OWNED),
    "POST /api/threads": Rule(SIGNED_IN, {}),
    "POST /api/threads/search": Rule(SIGNED_IN, {}, reads=True),
    "POST /api/threads/count": Rule(SIGNED_IN, {}, reads=True),
    "POST /api/threads/prune": Rule(SIGNED_IN, {"thread_ids": []}),
    f"GET {_THREAD}": Rule(OWNED),
    f"PATCH {_THREAD}": Rule(OWNED, {"metadata": {"changed": True}}),
    f"DELETE {_THREAD}": Rule(OWNED),
    f"POST {_THREAD}/copy": Rule(OWNED, owner=(409,)),
    f"POST {_THREAD}/branches": Rule(OWNED, {"message_id": "{message_id}"}, owner=(409,)),
}

FOREIGN_IDS_IN_BODIES: dict[str, tuple[str, Any]] = {
    "a thread in the run's configuration": (
        "POST /api/runs/wait",
        {**_RUN, "config": {"configurable": {"thread_id": "{thread_id}"}}},
    ),
    "a thread in the run's context": ("POST /api/runs/wait", {**_RUN, "context": {"thread_id": "{thread_id}"}}),
    "a checkpoint of another thread": ("POST /api/runs/wait", {**_RUN, "checkpoint_id": "{checkpoint_id}"}),
    "a checkpoint that names its thread": (
        "POST /api/runs/wait",
        {**_RUN, "checkpoint": {"thread_id": "{thread_id}", "checkpoint_id": "{checkpoint_id}", "checkpoint_ns": ""}},
    ),
    "a user in the run's configuration": (
        "POST /api/runs/wait",
        {**_RUN, "config": {"configurable": {"user_id": "{user_id}"}}},
    ),
    "a response to go on from": (
        "POST /api/openai/v1/responses",
        {"model": "lead_agent", "input": "Hi", "previous_response_id": "resp_{run_id}"},
    ),
    "a conversation to join": (
        "POST /api/openai/v1/responses",
        {"model": "lead_agent", "input": "Hi", "conversation": "{thread_id}"},
    ),
    "an assistant of someone else": ("POST /api/runs/wait", {**_RUN, "assistant_id": "{assistant_id}"}),
    "runs in a batch": ("POST /api/runs/batch", [{**_RUN, "config": {"configurable": {"thread_id": "{thread_id}"}}}]),
    "runs to stop": ("POST /api/runs/cancel", {"thread_id": "{thread_id}", "run_ids": ["{run_id}"]}),
    "all runs of a thread to stop": ("POST /api/runs/cancel", {"thread_id": "{thread_id}", "status": "all"}),
    "a thread to make anew": ("POST /api/threads", {"thread_id": "{thread_id}", "if_exists": "do_nothing"}),
    "a thread to make": ("POST /api/threads", {"thread_id": "{thread_id}"}),
    "an owner of a new thread": ("POST /api/threads", {"metadata": {"user_id": "{user_id}", "owner_id": "{user_id}"}}),
    "threads to find": ("POST /api/threads/search", {"ids": ["{thread_id}"]}),
    "threads to delete": ("POST /api/threads/prune", {"thread_ids": ["{thread_id}"], "strategy": "delete"}),
    "threads to shorten": ("POST /api/threads/prune", {"thread_ids": ["{thread_id}"], "strategy": "keep_latest"}),
    "an assistant to make anew": (
        "POST /api/assistants",
        {"assistant_id": "{assistant_id}", "graph_id": "lead_agent", "if_exists": "do_nothing"},
    ),
    "a cron on a thread": (
        "POST /api/runs/crons",
        {"schedule": "* * * * *", **_RUN, "config": {"configurable": {"thread_id": "{thread_id}"}}},
    ),
    "a cron of an assistant": (
        "POST /api/runs/crons",
        {"schedule": "0 0 1 1 *", **_RUN, "assistant_id": "{assistant_id}"},
    ),
    "an item of a user": (
        "POST /api/store/items/search",
        {"namespace_prefix": ["{user_id}"], "filter": {"user_id": "{user_id}"}},
    ),
}
"""What a stranger asks for with the owner's ids where no path shows them."""
