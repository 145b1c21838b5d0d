"""Where the agent's commands run and its files lie: the contract, and the providers that keep it.

``interface`` is the contract, ``tests/contracts/sandbox`` checks it; ``provider`` is what the providers in
``namespaces`` and ``landlock`` share, ``auto`` chooses among them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.sandbox.auto import AutoSandboxProvider
    from deerflow.sandbox.interface import Policy, Sandbox, SandboxProvider
    from deerflow.sandbox.isolation.landlock import LandlockSandboxProvider
    from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider, UsernsSandboxProvider

__all__ = [
    "AutoSandboxProvider",
    "BwrapSandboxProvider",
    "LandlockSandboxProvider",
    "Policy",
    "Sandbox",
    "SandboxProvider",
    "UsernsSandboxProvider",
]

_MODULES = {
    "AutoSandboxProvider": "auto",
    "BwrapSandboxProvider": "isolation.namespaces",
    "UsernsSandboxProvider": "isolation.namespaces",
    "LandlockSandboxProvider": "isolation.landlock",
    "Policy": "interface",
    "Sandbox": "interface",
    "SandboxProvider": "interface",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
