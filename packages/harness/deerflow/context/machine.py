"""The machine that a run works on: the directories and the sandbox of its thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from deerflow.context.workspace import Workspace
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.interface import Gate, Policy, Sandbox, SandboxProvider, SandboxRuntimeError, sandbox_id
from deerflow.sandbox.package_hosts import PackageHosts

LIMITED = ("none", "allowlist")
"""Networks in which the hosts of packages are closed."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Directories and sandbox of a thread.

    Args:
        settle_in: awaited before a sandbox is had: puts into the thread's home what programs know of the person. Most turns need none.
        package_hosts: hosts that the person may let the chat install packages from.
        converters: read the files of strangers.
        gate: judges the hosts that commands reach. None: the sandbox keeps the gate that it has.
        trace_command: called with a command that has ended: itself, its call, when it began, and its exit code.
    """

    workspace: Workspace | None = None
    provider: SandboxProvider | None = None
    policy: Policy = Policy()
    settle_in: Callable[[], Awaitable[None]] | None = None
    package_hosts: PackageHosts | None = None
    converters: Converters | None = None
    gate: Gate | None = None
    trace_command: Callable[[str, str | None, float, int | None], None] | None = None

    async def sandbox(
        self, thread_id: str, user_id: str, reachable: Callable[[], Awaitable[frozenset[str]]]
    ) -> Sandbox:
        """Return the thread's sandbox.

        Args:
            reachable: returns the hosts that the person has opened to the chat.

        Raises:
            SandboxRuntimeError: there is none (the ``sandbox`` feature is off).
        """
        if self.provider is None:
            raise SandboxRuntimeError("This agent runs without a sandbox: files and commands are not available.")
        if self.settle_in is not None:
            await self.settle_in()
        sandbox = await self.provider.acquire(thread_id, user_id=user_id, policy=await self._policy(reachable))
        if self.gate is not None:
            sandbox.gate = self.gate
        return sandbox

    async def _policy(self, reachable: Callable[[], Awaitable[frozenset[str]]]) -> Policy:
        """Return the thread's policy, with the hosts of packages if the person has opened them to this chat."""
        policy = self.policy
        if self.package_hosts is None or policy.network.mode not in LIMITED:
            return policy
        open_hosts = await reachable()
        if not open_hosts or not (hosts := await self.package_hosts.of(policy)) or not open_hosts.issuperset(hosts):
            return policy
        network = replace(policy.network, mode="allowlist", allow=(*policy.network.allow, *hosts))
        return replace(policy, network=network)

    def reader(self) -> Converters:
        """Return the converters.

        Raises:
            SandboxRuntimeError: there are none.
        """
        if self.converters is None:
            raise SandboxRuntimeError(
                "This agent runs without converters: pages, pictures and documents cannot be read."
            )
        return self.converters

    async def release_sandbox(self, thread_id: str, user_id: str) -> None:
        """Release the thread's sandbox. Files and background processes stay."""
        if self.provider is not None:
            await self.provider.release(sandbox_id(thread_id, user_id))
