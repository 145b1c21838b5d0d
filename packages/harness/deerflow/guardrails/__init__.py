"""The names under which users' programs know guardrails, see :mod:`deerflow.features.guardrails.providers`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from deerflow.features.guardrails.providers import (
    AllowlistProvider,
    GuardrailDecision,
    GuardrailProvider,
    GuardrailReason,
    GuardrailRequest,
    PolicyProvider,
)

__all__ = [
    "AllowlistProvider",
    "GuardrailDecision",
    "GuardrailProvider",
    "GuardrailReason",
    "GuardrailRequest",
    "PolicyProvider",
]


def __getattr__(name: str) -> Any:
    """Import ``GuardrailMiddleware``, which needs LangChain, when it is asked for."""
    if name == "GuardrailMiddleware":
        return import_module("deerflow.features.guardrails.middleware").GuardrailMiddleware
    raise AttributeError(name)
