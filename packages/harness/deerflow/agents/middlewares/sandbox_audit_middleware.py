"""A record of every shell command and file change, and advice against the dangerous ones."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from typing import Any

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ToolHandler, ToolResult
from deerflow.agents.middlewares.shell.finding import Finding, Verdict
from deerflow.agents.middlewares.shell.verdict import judge
from deerflow.agents.middlewares.tool_results import error_result, with_replaced, with_text

audit = logging.getLogger("deerflow.audit")

LOGGED_COMMAND = 200
"""Characters of a rejected input that are logged."""

LONG_COMMAND = 2000
"""Characters."""

WRITING_TOOLS = frozenset({"write_file", "str_replace"})


class SandboxAuditMiddleware(Middleware):
    """Blocks or warns about shell commands and logs them as JSON: ``[SandboxAudit] {...}`` on ``deerflow.audit``.

    It is advice, not protection: what must not happen is what the sandbox makes impossible.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name, args = request.tool_call["name"], request.tool_call["args"]
        if name in WRITING_TOOLS:
            _record(request, Verdict.PASS, path=str(args.get("path", "")), size=_written(args))
            return await handler(request)
        if name != "bash" or "command" not in args:  # without a command the tool itself says what it wants
            return await handler(request)
        finding = await _judge(args["command"])
        _record(request, finding.verdict if finding else Verdict.PASS, finding, **_logged(args["command"], finding))
        if finding is None:
            return await handler(request)
        if finding.verdict is Verdict.BLOCK:
            return error_result(request.tool_call, _blocked(finding))
        return with_replaced(
            await handler(request), lambda message: with_text(message, _warning(finding, args["command"]))
        )


async def _judge(command: object) -> Finding | None:
    """A long command may take a tenth of a second, which the event loop should not wait for."""
    is_long = isinstance(command, str) and len(command) > LONG_COMMAND
    return await asyncio.to_thread(judge, command) if is_long else judge(command)


def _blocked(finding: Finding) -> str:
    return f"Error: Command blocked (security violation detected, rule {finding.rule}): {finding.reason}."


def _warning(finding: Finding, command: str) -> str:
    shown = command if len(command) <= LOGGED_COMMAND else command[:LOGGED_COMMAND] + "..."
    return f"⚠️ Warning: `{shown}` was run, but note: {finding.reason}."


def _logged(command: object, finding: Finding | None) -> dict[str, Any]:
    text = command if isinstance(command, str) else "" if command is None else str(command)
    if finding and finding.verdict is Verdict.BLOCK and len(text) > LOGGED_COMMAND:
        return {"command": text[:LOGGED_COMMAND], "command_length": len(text)}
    return {"command": text}


def _written(args: dict[str, Any]) -> int:
    """Characters that a file tool writes."""
    return len(str(args.get("content", args.get("new_str", "")) or ""))


def _record(request: ToolCallRequest, verdict: Verdict, finding: Finding | None = None, **facts: Any) -> None:
    context = getattr(request.runtime, "context", None)
    principal = getattr(context, "principal", None)
    record = {
        "timestamp": datetime.now(UTC).isoformat(),
        "thread_id": getattr(context, "thread_id", None) or "unknown",
        "user_id": getattr(principal, "user_id", None) or "unknown",
        "run_id": getattr(context, "run_id", None) or "unknown",
        "tool": request.tool_call["name"],
        **facts,
        "verdict": verdict.name.lower(),
    }
    if finding:
        record["rule"] = finding.rule
    level = logging.INFO if verdict is Verdict.PASS else logging.WARNING
    audit.log(level, "[SandboxAudit] %s", json.dumps(record, ensure_ascii=False))
