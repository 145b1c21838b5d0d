"""Where the agent's commands run and its files lie: the contract, and the providers that keep it.

``interface`` is the contract, ``tests/contracts/sandbox`` checks it; ``provider`` is what the providers in
``namespaces`` and ``landlock`` share, ``auto`` chooses among them.
"""

from deerflow.sandbox.interface import Policy, Sandbox, SandboxProvider

__all__ = ["Policy", "Sandbox", "SandboxProvider"]
