"""The same class under the path that older configuration files name."""

from deerflow.sandbox.isolation.none import LocalSandboxProvider

__all__ = ["LocalSandboxProvider"]
