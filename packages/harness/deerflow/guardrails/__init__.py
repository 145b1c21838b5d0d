"""Whether a tool call may be made: providers judge each one before it runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, Protocol, runtime_checkable


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


class PolicyProvider:
    """Asks about calls with an effect outside of the sandbox: ``strict`` always, ``auto`` in threads that hold text from outside.

    ``off`` never asks. What stays in the sandbox is free: that is what the sandbox is for.
    """

    def __init__(self, policy: Literal["auto", "strict", "off"] = "auto") -> None:
        self.name = self._policy = policy

    def evaluate(self, request: GuardrailRequest) -> GuardrailDecision:
        if not request.outward or self._policy == "off" or (self._policy == "auto" and not request.untrusted):
            return GuardrailDecision(True, [GuardrailReason("oap.allowed")], policy_id=self.name)
        why = f"'{request.tool_name}' acts outside of the sandbox"
        if request.untrusted:
            why += f", and this thread holds text from outside: {', '.join(request.untrusted)}"
        return GuardrailDecision(False, [GuardrailReason("deerflow.outward", why)], policy_id=self.name, ask=True)

    async def aevaluate(self, request: GuardrailRequest) -> GuardrailDecision:
        return self.evaluate(request)


class AllowlistProvider:
    """Allows, asks about and denies tools by name.

    Args:
        allowed_tools: only these; None: all. An empty list allows nothing.
        denied_tools: never these, whatever else says.
        ask_tools: of the allowed ones, those that the person is asked about each time.
    """

    name = "allowlist"

    def __init__(
        self,
        *,
        allowed_tools: Iterable[str] | None = None,
        denied_tools: Iterable[str] | None = None,
        ask_tools: Iterable[str] | None = None,
    ) -> None:
        self._allowed = None if allowed_tools is None else frozenset(allowed_tools)
        self._denied, self._ask = frozenset(denied_tools or ()), frozenset(ask_tools or ())

    def evaluate(self, request: GuardrailRequest) -> GuardrailDecision:
        name = request.tool_name
        if name in self._denied or (self._allowed is not None and name not in self._allowed):
            reason = GuardrailReason("oap.tool_not_allowed", f"the tool '{name}' is not allowed here")
            return GuardrailDecision(False, [reason], policy_id=self.name)
        if name in self._ask:
            reason = GuardrailReason("deerflow.ask", f"the tool '{name}' needs your approval")
            return GuardrailDecision(False, [reason], policy_id=self.name, ask=True)
        return GuardrailDecision(True, [GuardrailReason("oap.allowed")], policy_id=self.name)

    async def aevaluate(self, request: GuardrailRequest) -> GuardrailDecision:
        return self.evaluate(request)


def __getattr__(name: str) -> Any:
    """``GuardrailMiddleware`` belongs to the agents' floor; people's files import it from here."""
    if name == "GuardrailMiddleware":
        return import_module("deerflow.agents.middlewares.guardrail_middleware").GuardrailMiddleware
    raise AttributeError(name)
