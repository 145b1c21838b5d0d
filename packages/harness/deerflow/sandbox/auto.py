"""``sandbox.use: auto``: the best isolation that this machine offers, and no shell rather than an unconfined one."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from deerflow.sandbox.interface import Policy, ProbeReport, Problem, Sandbox, SandboxProvider
from deerflow.sandbox.isolation.landlock import LandlockSandboxProvider
from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider, UsernsSandboxProvider
from deerflow.sandbox.isolation.plan import Launcher
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider

UNSANDBOXED = (
    "NO SANDBOX: this machine offers no isolation and sandbox.allow_unsandboxed is set. The agent's commands run on "
    "this host with all rights of the server's user."
)

log = logging.getLogger(__name__)


class UnavailableSandboxProvider(IsolatingProvider):
    """Files work, commands are refused with the reasons of every provider that failed."""

    name = "none"

    def __init__(self, data_dir: Path, problems: Sequence[Problem]) -> None:
        super().__init__(data_dir)
        self._problems = tuple(problems)

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        return ProbeReport(self.name, ok=False, problems=self._problems), None


class AutoSandboxProvider(SandboxProvider):
    """Tries bwrap, userns, either of them without a /proc of its own, then Landlock. Decides once."""

    def __init__(
        self,
        data_dir: Path,
        *,
        max_sessions: int = 40,
        sleep_after: float = 120,
        idle_timeout: float = 900,
        etc_extra: Sequence[str] = (),
        allow_unsandboxed: bool = False,
        candidates: Sequence[IsolatingProvider] | None = None,
    ) -> None:
        """
        Args:
            data_dir, max_sessions, sleep_after, idle_timeout, etc_extra: see ``IsolatingProvider``.
            allow_unsandboxed: rather than refusing commands run them on the host itself.
            candidates: what to try instead of the built-in providers, best first.
        """
        self._data_dir = data_dir
        self._allow_unsandboxed = allow_unsandboxed
        if candidates is None:
            candidates = [
                kind(
                    data_dir,
                    max_sessions=max_sessions,
                    sleep_after=sleep_after,
                    idle_timeout=idle_timeout,
                    etc_extra=etc_extra,
                )
                for kind in (BwrapSandboxProvider, UsernsSandboxProvider, LandlockSandboxProvider)
            ]
        self._candidates = tuple(candidates)
        self._chosen: SandboxProvider | None = None
        self._choosing = threading.Lock()

    @property
    def alive(self) -> int:
        return self._chosen.alive if self._chosen else 0

    def probe(self) -> ProbeReport:
        return self.choose().probe()

    async def acquire(self, thread_id: str, *, user_id: str, policy: Policy) -> Sandbox:
        provider = self._chosen or await asyncio.to_thread(self.choose)
        return await provider.acquire(thread_id, user_id=user_id, policy=policy)

    def get(self, sandbox_id: str) -> Sandbox | None:
        return self._chosen.get(sandbox_id) if self._chosen else None

    async def release(self, sandbox_id: str, *, destroy: bool = False) -> None:
        if self._chosen:
            await self._chosen.release(sandbox_id, destroy=destroy)

    async def shutdown(self) -> None:
        for provider in {self._chosen, *self._candidates} - {None}:
            await provider.shutdown()

    def choose(self) -> SandboxProvider:
        """The provider in charge. Blocks for the probes the first time."""
        with self._choosing:
            if self._chosen is None:
                self._chosen = self._choose()
            return self._chosen

    def _choose(self) -> SandboxProvider:
        problems: dict[str, Problem] = {}
        found: dict[str, IsolatingProvider] = {}
        for provider in self._candidates:
            report = provider.probe()
            problems |= {problem.code: problem for problem in report.problems}
            if report.ok and report.isolation is not None:
                found.setdefault(report.isolation.level, provider)
                if report.isolation.level != "namespaces-no-proc":
                    break  # nothing better follows
        for level in ("namespaces", "namespaces-no-proc", *found):
            if level in found:
                return _announced(found[level])
        if self._allow_unsandboxed:
            log.warning(UNSANDBOXED)
            return LocalSandboxProvider(self._data_dir, allow_host_bash=True)
        explained = tuple(problems.values())
        log.warning("No sandbox for commands on this machine: %s", "; ".join(problem.sentence for problem in explained))
        return UnavailableSandboxProvider(self._data_dir, explained)


def _announced(provider: IsolatingProvider) -> IsolatingProvider:
    isolation = provider.probe().isolation
    assert isolation is not None
    log.info("Sandbox: %s (%s)", provider.name, isolation.level)
    for warning in isolation.warnings:
        log.warning("Sandbox %s: %s", provider.name, warning)
    return provider
