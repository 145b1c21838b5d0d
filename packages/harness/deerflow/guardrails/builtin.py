"""The guardrails that ship: policies about what leaves the sandbox, and lists of tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from deerflow.guardrails.model import GuardrailDecision, GuardrailReason, GuardrailRequest


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
