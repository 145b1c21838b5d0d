"""Providers, which judge each tool call before it is made."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

SEARCH = "search"
"""Destination of searches: the person's own provider."""


@dataclass(frozen=True)
class GuardrailRequest:
    """A tool call before it is made.

    Args:
        agent_id: the passport of the configuration.
        timestamp: now, ISO 8601 in UTC.
        user_id: whose run it is.
        agent_name: the custom agent that calls; None: the lead agent.
        outward: the call may have an effect outside of the thread.
        untrusted: names of pages, servers, uploads and tools that foreign text in the thread came from.
        changes: it may change something outside, or what outlives the thread.
        destination: the host or server to which it sends what the agent composed, unless this chat may send there already.
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
    changes: bool = False
    destination: str = ""


@dataclass(frozen=True)
class GuardrailReason:
    """Why: ``code`` as in the Open Agent Passport, e.g. ``oap.tool_not_allowed``."""

    code: str
    message: str = ""


@dataclass(frozen=True)
class GuardrailDecision:
    """The decision about a call.

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


Pattern = Mapping[str, str | None]
"""Globs by argument; None stands for any value."""


def covers(pattern: Pattern | None, args: Mapping[str, Any], cosmetic: Collection[str] = ()) -> bool:
    """Return whether a call with these arguments fits a pattern; None covers every call.

    A pattern covers only calls all of whose arguments it names. A ``*`` stands for text that cannot begin another command: without
    line ends, control characters and ``;&|<>$`()``.

    Args:
        cosmetic: arguments that need not be named.
    """
    if pattern is None:
        return True
    if set(args) - set(pattern) - set(cosmetic):
        return False
    fits = (
        name in args and _glob(glob).fullmatch(_text(args[name])) for name, glob in pattern.items() if glob is not None
    )
    return all(fits)


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029;&|<>$`()]*".join(map(re.escape, pattern.split("*"))))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class PolicyProvider:
    """Asks about calls that change something outside or send something there: ``strict`` always, ``auto`` in threads that hold
    foreign text. ``off`` never asks. Work in the sandbox is free: that is what the sandbox is for.
    """

    def __init__(self, policy: Literal["auto", "strict", "off"] = "auto") -> None:
        self.name = self._policy = policy

    def evaluate(self, request: GuardrailRequest) -> GuardrailDecision:
        matters = request.changes or bool(request.destination and self._heeds(request.destination))
        if not matters or self._policy == "off" or (self._policy == "auto" and not request.untrusted):
            return GuardrailDecision(True, [GuardrailReason("oap.allowed")], policy_id=self.name)
        does = "acts outside of this chat" if request.changes else f"sends something to {request.destination}"
        why = f"'{request.tool_name}' {does}"
        if request.untrusted:
            why += f", and this chat holds text from outside: {', '.join(request.untrusted)}"
        return GuardrailDecision(False, [GuardrailReason("deerflow.outward", why)], policy_id=self.name, ask=True)

    def _heeds(self, destination: str) -> bool:
        """A search goes to the person's own provider: it asks only where everything asks."""
        return destination != SEARCH or self._policy == "strict"

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
