"""The harness: everything that runs need, built once from one configuration snapshot and handed down."""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deerflow.capability import AskedAgent, Offer, Package, Supply, overriding
from deerflow.config import AppConfig, Paths
from deerflow.config.agents import Persona, read_persona
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.context.run_options import RunOptions
from deerflow.context.workspace import Workspace
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.models import ModelCache
from deerflow.models.call_gate import CallGates
from deerflow.models.circuit_breaker import CircuitBreakers
from deerflow.models.context_window import ContextWindows
from deerflow.sandbox.converters import Converters, build_converters
from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import Mount, SandboxFileError, SandboxProvider
from deerflow.sandbox.isolation.plan import HOME
from deerflow.sandbox.package_hosts import PackageHosts
from deerflow.sandbox.policy import build_sandbox_provider, thread_policy
from deerflow.sandbox.programs import Programs
from deerflow.sandbox.tool_image import ToolImage
from deerflow.security.text import inline

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from deerflow.accounts import UserRepository

OfferT = TypeVar("OfferT", bound=Offer)
READY_THREADS = 100
SHIPPED_TOOLS = Path(sys.prefix, "share/deerflow/tools")
"""Place of the tool image in the container image ``deerflow:full``."""
NO_ACCOUNT = "agent@localhost"
"""Mail address in the commits of a person without an account."""


@dataclass(frozen=True)
class Harness:
    """Immutable; a changed configuration makes a new one that shares what did not change."""

    config: AppConfig
    paths: Paths
    sandbox_provider: SandboxProvider
    tool_image: ToolImage
    converters: Converters
    programs: Programs
    package_hosts: PackageHosts
    models: ModelCache
    breakers: CircuitBreakers
    offers: Sequence[Offer]
    gates: CallGates = field(default_factory=CallGates)
    windows: ContextWindows = field(default_factory=ContextWindows)
    packages: Mapping[str, Package] = field(default_factory=dict[str, Package])
    """Nouns of other packages, which ``offers`` has the offers of."""
    checkpointer: BaseCheckpointSaver[str] | None = None
    accounts: UserRepository | None = None
    """None: the person has no account."""
    _ready: OrderedDict[str, RunContext] = field(default_factory=OrderedDict, repr=False)
    """Threads whose directories are made, the last used ones."""

    @classmethod
    def build(
        cls,
        config: AppConfig,
        paths: Paths,
        offers: Sequence[Offer],
        *,
        checkpointer: BaseCheckpointSaver[str] | None = None,
        packages: Mapping[str, Package] = {},
    ) -> Harness:
        """Build from a snapshot. Touches no network and starts no process."""
        provider, image = build_sandbox_provider(config, paths), tool_image(config, paths)
        return cls(
            config=config,
            paths=paths,
            sandbox_provider=provider,
            tool_image=image,
            converters=build_converters(config, paths, provider, image),
            programs=Programs(provider, paths.base_dir / "sandbox" / "programs.json", _settings(config)),
            package_hosts=PackageHosts(provider, config.sandbox.package_hosts),
            models=ModelCache(),
            breakers=CircuitBreakers(
                failure_threshold=config.circuit_breaker.failure_threshold,
                recovery_timeout=config.circuit_breaker.recovery_timeout_sec,
            ),
            offers=offers,
            packages=packages,
            checkpointer=checkpointer,
        )

    def with_config(self, config: AppConfig) -> Harness:
        """For the next run after the configuration changed. The sandbox provider stays unless its section changed."""
        provider, image, converters = self.sandbox_provider, self.tool_image, self.converters
        programs, hosts = self.programs, self.package_hosts
        if config.sandbox != self.config.sandbox:
            provider, image = build_sandbox_provider(config, self.paths), tool_image(config, self.paths)
            converters = build_converters(config, self.paths, provider, image)
            programs = programs.under(provider, _settings(config))
            hosts = PackageHosts(provider, config.sandbox.package_hosts)
        return replace(
            self,
            config=config,
            sandbox_provider=provider,
            tool_image=image,
            converters=converters,
            programs=programs,
            package_hosts=hosts,
            _ready=OrderedDict(),
        )

    def of(self, kind: type[OfferT]) -> OfferT:
        """Return the offer of this class. Raises KeyError: this harness was built without it."""
        for offer in self.offers:
            if isinstance(offer, kind):
                return offer
        raise KeyError(kind.__name__)

    async def supplies(
        self, principal: Principal, options: RunOptions, *, acts: bool = True, waits: bool = False
    ) -> tuple[Supply, ...]:
        """Return what nouns have for an agent of this person now. Arguments as of :class:`AskedAgent`."""
        asked = AskedAgent(self.config, self.sandbox_provider, principal, options, acts, waits)
        found = [await offer.supply(asked) for offer in overriding(self.offers, Offer.supply)]
        return tuple(supply for supply in found if supply is not None)

    async def called(self, principal: Principal, options: RunOptions, text: str) -> dict[str, Any]:
        """Return the facts to record with a person's message that calls something of a noun, see :meth:`Offer.called`."""
        asked = AskedAgent(self.config, self.sandbox_provider, principal, options)
        found = [await offer.called(asked, text) for offer in overriding(self.offers, Offer.called)]
        return {key: fact for facts in found for key, fact in facts.items()}

    async def persona(self, principal: Principal, options: RunOptions) -> Persona:
        """Return what the person has written for the agent."""
        persona = await asyncio.to_thread(read_persona, self.paths, principal.user_id)
        return persona._replace(soul=options.agent.soul) if options.agent is not None else persona

    async def run_context(
        self, thread_id: str, options: RunOptions, *, principal: Principal = LOCAL_PRINCIPAL
    ) -> RunContext:
        """Return a context of no run, for tools that are called without one. Waits for no server."""
        asked = self.supplies(principal, options, acts=False)
        return of_run(*await asyncio.gather(self.thread_context(thread_id, principal), asked), options)

    async def thread_context(self, thread_id: str, principal: Principal) -> RunContext:
        """Return what the contexts of all runs in a thread have in common: its directories made, its sandbox policy settled."""
        key = f"{principal.user_id}/{thread_id}"
        if (base := self._ready.get(key)) is not None:
            self._ready.move_to_end(key)
        else:
            base = await asyncio.to_thread(self._thread_context, thread_id, principal)
            # Without the tool image the context is made anew, since the image may be there next time.
            if base.machine.policy.tools_dir is not None or not self.config.sandbox.tool_image.enabled:
                self._ready[key] = base
                while len(self._ready) > READY_THREADS:
                    self._ready.popitem(last=False)
        return replace(base, principal=principal)

    def _settling_in(self, thread_id: str, user: str) -> Callable[[], Awaitable[None]]:
        is_done = False

        async def settle_in() -> None:
            nonlocal is_done
            if is_done:
                return
            account = await self.accounts.get(user) if self.accounts is not None else None
            mail = account.email if account is not None else NO_ACCOUNT
            await asyncio.to_thread(_introduce_to_git, self.paths.home(thread_id, user), mail)
            is_done = True

        return settle_in

    def _thread_context(self, thread_id: str, principal: Principal) -> RunContext:
        user = principal.user_id
        self.paths.ensure_thread_dirs(thread_id, user)
        image = self.tool_image.status() if self.config.sandbox.tool_image.enabled else None
        if image and image.ready:
            self.tool_image.seed_home(self.paths.home(thread_id, user))
        machine = Machine(
            workspace=Workspace(
                root=self.paths.thread_dir(thread_id, user),
                workspace=self.paths.workspace(thread_id, user),
                uploads=self.paths.uploads(thread_id, user),
                outputs=self.paths.outputs(thread_id, user),
            ),
            provider=self.sandbox_provider,
            policy=thread_policy(
                self.config,
                self.paths,
                thread_id,
                user,
                tools_dir=image.path if image and image.ready else None,
            ),
            settle_in=self._settling_in(thread_id, user),
            package_hosts=self.package_hosts,
            converters=self.converters,
        )
        return RunContext(thread_id=thread_id, principal=principal, config=self.config, machine=machine)


def of_run(thread: RunContext, supplies: Sequence[Supply], options: RunOptions, run_id: str = "") -> RunContext:
    """Return the context of a run in a thread, see :meth:`Harness.thread_context`: the agent's options and supplies added."""
    policy = thread.machine.policy
    mounts = (mount for supply in supplies for mount in supply.mounts.items())
    shown = tuple(Mount(folder, path, read_only=True) for path, folder in mounts)
    return replace(
        thread,
        run_id=run_id,
        options=options,
        machine=replace(thread.machine, policy=replace(policy, mounts=policy.mounts + shown)),
        things={type(supply): supply for supply in supplies},
    )


def tool_image(config: AppConfig, paths: Paths) -> ToolImage:
    """The Python packages of sandboxes, as configured."""
    requirements = config.sandbox.tool_image.requirements
    return ToolImage(paths.tools_dir, Path(requirements) if requirements else None, shipped=SHIPPED_TOOLS)


def _settings(config: AppConfig) -> str:
    """Return the settings on which it depends what programs work."""
    return f"{config.sandbox.use} {' '.join(config.sandbox.etc_extra)}"


def _introduce_to_git(home: Path, mail: str) -> None:
    """Put the person's name and mail into the settings of git in a thread's home. What the agent changed there stays."""
    name, mail = (inline(text).replace("\\", "").replace('"', "") for text in (mail.partition("@")[0], mail))
    with closing(SandboxFiles([Mount(home, HOME)])) as files, suppress(SandboxFileError):
        if files.stat(f"{HOME}/.gitconfig") is None:
            files.write(f"{HOME}/.gitconfig", f'[user]\n\tname = "{name}"\n\temail = "{mail}"\n'.encode())
