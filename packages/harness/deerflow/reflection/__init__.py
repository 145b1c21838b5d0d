"""From the ``package.module:attribute`` of a configuration to the object it names."""

from __future__ import annotations

from deerflow.reflection.install import install_hint
from deerflow.reflection.resolve import resolve_class, resolve_variable

__all__ = ["install_hint", "resolve_class", "resolve_variable"]
