"""Which tracing services the environment asks for. They are configured by their vendors' variables alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from deerflow.config.errors import ConfigError, ConfigProblem

_TRUE = {"1", "true", "yes", "on"}


@dataclass(frozen=True, slots=True)
class LangSmithConfig:
    """LangSmith, as its SDK reads it from ``LANGSMITH_*`` or the older ``LANGCHAIN_*``."""

    enabled: bool
    api_key: str | None = field(repr=False)
    project: str
    endpoint: str

    @property
    def missing(self) -> tuple[str, ...]:
        """Variables without which it cannot work."""
        return () if self.api_key else ("LANGSMITH_API_KEY",)


@dataclass(frozen=True, slots=True)
class LangfuseConfig:
    """Langfuse, from ``LANGFUSE_*``."""

    enabled: bool
    public_key: str | None
    secret_key: str | None = field(repr=False)
    host: str

    @property
    def missing(self) -> tuple[str, ...]:
        """Variables without which it cannot work."""
        named = {"LANGFUSE_PUBLIC_KEY": self.public_key, "LANGFUSE_SECRET_KEY": self.secret_key}
        return tuple(name for name, value in named.items() if not value)


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """All tracing services."""

    langsmith: LangSmithConfig
    langfuse: LangfuseConfig

    @property
    def explicitly_enabled(self) -> tuple[str, ...]:
        """Services that are switched on, whether they can work or not."""
        return tuple(name for name, service in self._services() if service.enabled)

    @property
    def enabled(self) -> tuple[str, ...]:
        """Services that are switched on and can work."""
        return tuple(name for name, service in self._services() if service.enabled and not service.missing)

    def validate(self) -> None:
        """Raises ConfigError naming the variables that a service that is on lacks."""
        problems = [
            ConfigProblem(
                f"{name} tracing is on, but {' and '.join(service.missing)} is not set.",
                remedy="Set it, or switch tracing off.",
            )
            for name, service in self._services()
            if service.enabled and service.missing
        ]
        if problems:
            raise ConfigError(problems)

    def _services(self) -> tuple[tuple[str, LangSmithConfig | LangfuseConfig], ...]:
        return ("langsmith", self.langsmith), ("langfuse", self.langfuse)


def get_tracing_config(environ: Mapping[str, str] | None = None) -> TracingConfig:
    """What the environment (default: the process's) says about tracing.

    The first switch that is set decides, so ``LANGSMITH_TRACING=false`` beats ``LANGCHAIN_TRACING_V2=true``.
    """
    environ = os.environ if environ is None else environ

    def first(*names: str) -> str | None:
        return next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)

    return TracingConfig(
        LangSmithConfig(
            enabled=(first("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING") or "").lower() in _TRUE,
            api_key=first("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"),
            project=first("LANGSMITH_PROJECT", "LANGCHAIN_PROJECT") or "deer-flow",
            endpoint=first("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT") or "https://api.smith.langchain.com",
        ),
        LangfuseConfig(
            enabled=(first("LANGFUSE_TRACING") or "").lower() in _TRUE,
            public_key=first("LANGFUSE_PUBLIC_KEY"),
            secret_key=first("LANGFUSE_SECRET_KEY"),
            host=first("LANGFUSE_BASE_URL", "LANGFUSE_HOST") or "https://cloud.langfuse.com",
        ),
    )


def get_explicitly_enabled_tracing_providers(environ: Mapping[str, str] | None = None) -> list[str]:
    """Names of services that are switched on."""
    return list(get_tracing_config(environ).explicitly_enabled)


def get_enabled_tracing_providers(environ: Mapping[str, str] | None = None) -> list[str]:
    """Names of services that are switched on and completely configured."""
    return list(get_tracing_config(environ).enabled)


def is_tracing_enabled(environ: Mapping[str, str] | None = None) -> bool:
    """Whether any service is switched on and completely configured."""
    return bool(get_tracing_config(environ).enabled)


def validate_enabled_tracing_providers(environ: Mapping[str, str] | None = None) -> None:
    """Raises ConfigError if a service is switched on, but lacks a variable."""
    get_tracing_config(environ).validate()
