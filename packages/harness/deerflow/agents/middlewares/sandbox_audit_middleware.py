"""A record of every shell command and file change, and advice against the dangerous ones."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from typing import Any

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.marks import NOTE
from deerflow.agents.middlewares.base import Middleware, ToolHandler
from deerflow.agents.middlewares.results import ToolResult, error_result, tool_messages, with_replaced
from deerflow.agents.middlewares.shell_advice import Verdict, judge

audit = logging.getLogger("deerflow.audit")

SHOWN_COMMAND = 200
"""Characters of a command in a warning, and in the record of a refusal."""


class SandboxAuditMiddleware(Middleware):
    """Blocks or warns about shell commands and logs them as JSON: ``[SandboxAudit] {...}`` on ``deerflow.audit``.

    It is advice, not protection: what must not happen is what the sandbox makes impossible.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name, args = request.tool_call["name"], request.tool_call["args"]
        path = str(args.get("path") or args.get("file_path") or args.get("filepath") or "")
        if name in ("write_file", "str_replace"):
            size = len(str(args.get("content") or args.get("new_str") or args.get("new_string") or ""))
            return await _recorded(request, handler, path=path, size=size, verdict="pass")
        if name != "bash" or "command" not in args:  # without a command the tool itself says what it wants
            return await handler(request)
        # Off the loop: a long command may take a tenth of a second.
        finding = await asyncio.to_thread(judge, args["command"])
        command = "" if args["command"] is None else str(args["command"])
        if finding is None:
            return await _recorded(request, handler, command=command, verdict="pass")
        facts = {"command": command, "verdict": finding.verdict.name.lower(), "rule": finding.rule}
        if finding.verdict is Verdict.BLOCK:
            facts |= {"command": command[:SHOWN_COMMAND], "command_length": len(command)}
            text = f"Error: Command blocked (security violation detected, rule {finding.rule}): {finding.reason}."
            _record(request, facts, "error")
            return error_result(request.tool_call, text)
        shown = command if len(command) <= SHOWN_COMMAND else command[:SHOWN_COMMAND] + "..."
        warning = f"The command `{shown}` was run, but note: {finding.reason}."
        result = await _recorded(request, handler, **facts)
        return with_replaced(
            result,
            lambda message: message.model_copy(
                update={"additional_kwargs": {**message.additional_kwargs, NOTE: warning}}
            ),
        )


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
    level = logging.INFO if facts["verdict"] == "pass" else logging.WARNING
    audit.log(level, "[SandboxAudit] %s", json.dumps(record, ensure_ascii=False))
