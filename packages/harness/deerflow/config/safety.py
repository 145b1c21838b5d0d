"""What watches over runs: ``guardrails``, ``circuit_breaker`` and ``token_usage``."""

from __future__ import annotations

from pydantic import Field

from deerflow.config.frozen import EMPTY
from deerflow.config.section import Section, Settings


class GuardrailProviderConfig(Section):
    """The class that judges tool calls, and its constructor arguments."""

    use: str
    config: Settings = EMPTY


class GuardrailsConfig(Section):
    """Whether tool calls are judged before they run."""

    enabled: bool = False
    fail_closed: bool = True
    """A provider that fails denies the call."""
    passport: str | None = None
    """Sent to the provider as ``agent_id``."""
    provider: GuardrailProviderConfig | None = None


class CircuitBreakerConfig(Section):
    """When calls to a failing model provider are stopped, and for how long."""

    failure_threshold: int = Field(default=5, ge=1)
    recovery_timeout_sec: int = Field(default=60, ge=0)


class TokenUsageConfig(Section):
    """Whether tokens are counted, logged and shown."""

    enabled: bool = False
