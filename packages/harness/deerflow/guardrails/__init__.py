"""Whether a tool call may be made: providers judge each one before it runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from deerflow.guardrails.builtin import AllowlistProvider, PolicyProvider
from deerflow.guardrails.model import GuardrailDecision, GuardrailProvider, GuardrailReason, GuardrailRequest, covers

__all__ = [
    "AllowlistProvider",
    "GuardrailDecision",
    "GuardrailProvider",
    "GuardrailReason",
    "GuardrailRequest",
    "PolicyProvider",
    "covers",
]


def __getattr__(name: str) -> Any:
    """``GuardrailMiddleware`` belongs to the agents' floor; people's files import it from here."""
    if name == "GuardrailMiddleware":
        return import_module("deerflow.agents.middlewares.guardrail_middleware").GuardrailMiddleware
    raise AttributeError(name)
