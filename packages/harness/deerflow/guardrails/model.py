"""What a guardrail is asked about a tool call, and what it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class GuardrailRequest:
    """A tool call before it is made.

    Args:
        agent_id: the passport of the configuration.
        timestamp: now, ISO 8601 in UTC.
        user_id: whose run it is.
        agent_name: the custom agent that calls; None: the lead agent.
        outward: the call may have an effect outside of the sandbox.
        untrusted: where text in the thread came from that neither the person nor the sandbox wrote: ``uploads``, or tools.
    """

    tool_name: str
    tool_input: dict[str, Any]
    agent_id: str | None = None
    thread_id: str | None = None
    is_subagent: bool = False
    timestamp: str = ""
    user_id: str | None = None
    run_id: str | None = None
    agent_name: str | None = None
    outward: bool = False
    untrusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class GuardrailReason:
    """Why: ``code`` as in the Open Agent Passport, e.g. ``oap.tool_not_allowed``."""

    code: str
    message: str = ""


@dataclass(frozen=True)
class GuardrailDecision:
    """Whether the call is made.

    Args:
        allow: it is.
        ask: it is not, unless the person says so.
        policy_id: of the rule that decided.
    """

    allow: bool
    reasons: list[GuardrailReason] = field(default_factory=list[GuardrailReason])
    policy_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    ask: bool = False


@runtime_checkable
class GuardrailProvider(Protocol):
    """Judges tool calls. ``evaluate`` may block; ``aevaluate`` is what runs use."""

    name: str

    def evaluate(self, request: GuardrailRequest) -> GuardrailDecision: ...

    async def aevaluate(self, request: GuardrailRequest) -> GuardrailDecision: ...


def covers(pattern: Mapping[str, str] | None, args: Mapping[str, Any]) -> bool:
    """Whether a call with these arguments fits the globs of a grant; None: every call does.

    A ``*`` stands for text that cannot begin another command: without line ends, control characters and ``;&|<>$`()``.
    """
    return all(name in args and _glob(glob).fullmatch(_text(args[name])) for name, glob in (pattern or {}).items())


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029;&|<>$`()]*".join(map(re.escape, pattern.split("*"))))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
