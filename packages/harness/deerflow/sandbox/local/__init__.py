"""Commands on the host itself, without any isolation: an explicit choice for machines that offer none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.sandbox.local.local_sandbox_provider import LocalSandboxProvider

__all__ = ["LocalSandboxProvider"]


def __getattr__(name: str) -> Any:
    if name == "LocalSandboxProvider":
        from deerflow.sandbox.local.local_sandbox_provider import LocalSandboxProvider

        return LocalSandboxProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
