"""``deerflow.sandbox.local:LocalSandboxProvider``, as configuration files name it."""

from deerflow.sandbox.isolation.none import LocalSandbox, LocalSandboxProvider

__all__ = ["LocalSandbox", "LocalSandboxProvider"]
