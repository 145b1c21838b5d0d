"""From configuration to a sandbox provider."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import cast

from deerflow.config import AppConfig, Paths
from deerflow.reflection import resolve_class
from deerflow.sandbox.interface import SandboxProvider


def build_sandbox_provider(config: AppConfig, paths: Paths) -> SandboxProvider:
    """The provider that ``sandbox.use`` names: ``auto``, or a class path.

    The constructor is given what its signature asks for by name, of: ``data_dir``, ``max_sessions``, ``sleep_after``, ``idle_timeout``,
    ``etc_extra``, ``allow_unsandboxed``, ``allow_host_bash``, ``config``, ``paths``.

    Raises:
        ImportError: the class path cannot be resolved.
        ValueError: it names something else than a SandboxProvider.
    """
    settings = config.sandbox
    use = "deerflow.sandbox.auto:AutoSandboxProvider" if settings.use == "auto" else settings.use
    provider_class = cast(Callable[..., SandboxProvider], resolve_class(use, SandboxProvider))
    offered = {
        "data_dir": paths.base_dir,
        "max_sessions": settings.max_sessions,
        "sleep_after": settings.sleep_after,
        "idle_timeout": settings.idle_timeout,
        "etc_extra": tuple(settings.etc_extra),
        "allow_unsandboxed": settings.allow_unsandboxed,
        "allow_host_bash": settings.allow_host_bash,
        "config": config,
        "paths": paths,
    }
    wanted = inspect.signature(provider_class).parameters
    return provider_class(**{name: value for name, value in offered.items() if name in wanted})
