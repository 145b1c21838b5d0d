"""A record of every shell command and file change: what it was, whose, and how it ended."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import (
    Middleware,
    ToolFailure,
    ToolHandler,
    ToolResult,
    error_result,
    tool_messages,
)

MAX_COMMAND = 10_000
"""Characters of a command."""
SHOWN_COMMAND = 200
"""Characters of a command in the record of a refusal."""

audit = logging.getLogger("deerflow.audit")


class SandboxAuditMiddleware(Middleware):
    """Logs commands and file changes as JSON: ``[SandboxAudit] {...}`` on ``deerflow.audit``, and refuses what is no command.

    It does not judge commands: what must not happen is what the sandbox makes impossible.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name, args = request.tool_call["name"], request.tool_call["args"]
        path = str(args.get("path") or args.get("file_path") or args.get("filepath") or "")
        if name in ("write_file", "str_replace"):
            size = len(str(args.get("content") or args.get("new_str") or args.get("new_string") or ""))
            return await _recorded(request, handler, path=path, size=size)
        if name != "bash" or "command" not in args:  # without a command the tool itself says what it wants
            return await handler(request)
        command = args["command"] if isinstance(args["command"], str) else ""
        if (problem := _problem(command)) is not None:
            shown = {"command": command[:SHOWN_COMMAND], "command_length": len(command), "problem": problem}
            _record(request, shown, "error")
            return error_result(request.tool_call, f"Error: {problem}.", ToolFailure.INVALID_ARGUMENTS, problem)
        return await _recorded(request, handler, command=command)


def _problem(command: str) -> str | None:
    if not command.strip():
        return "empty command"
    if len(command) > MAX_COMMAND:
        return f"command too long: {len(command)} characters of {MAX_COMMAND}. Write the content to a file first"
    return "null byte detected" if "\0" in command else None


async def _recorded(request: ToolCallRequest, handler: ToolHandler, **facts: Any) -> ToolResult:
    """Make the call and log what it was and how it ended."""
    outcome = "interrupted"
    try:
        result = await handler(request)
        outcome = next((message.status for message in tool_messages(result)), "success")
        return result
    finally:
        _record(request, facts, outcome)


def _record(request: ToolCallRequest, facts: dict[str, Any], outcome: str) -> None:
    context = getattr(request.runtime, "context", None)
    record = {
        "timestamp": datetime.now(UTC).isoformat(),
        "thread_id": getattr(context, "thread_id", None) or "unknown",
        "user_id": getattr(getattr(context, "principal", None), "user_id", None) or "unknown",
        "run_id": getattr(context, "run_id", None) or "unknown",
        "tool": request.tool_call["name"],
        **facts,
        "outcome": outcome,
    }
    audit.info("[SandboxAudit] %s", json.dumps(record, ensure_ascii=False))
