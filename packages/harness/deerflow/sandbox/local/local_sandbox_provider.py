"""The same class under the path that older configuration files name."""

from deerflow.sandbox.local import LocalSandboxProvider

__all__ = ["LocalSandboxProvider"]
