"""The services of DeerFlow that commands in chats call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from typing import Any

from deerflow.config import AppConfig
from deerflow.errors import NotFoundError
from deerflow.features.assistants.agents import AgentService
from deerflow.features.channels.commands import Services
from deerflow.features.channels.turns import ChatTurns
from deerflow.features.memory.service import MemoryService
from deerflow.features.usage.service import UsageService
from deerflow.identity import Principal
from deerflow.storage.budgets import today
from deerflow.threads.service import ThreadService


class CommandServices(Services):
    def __init__(
        self,
        config: Callable[[], Awaitable[AppConfig]],
        agents: AgentService,
        memory: MemoryService,
        usage: UsageService,
        threads: ThreadService,
        turns: ChatTurns,
        page: Callable[[str], str],
    ) -> None:
        self._config = config
        self._agents = agents
        self._memory = memory
        self._usage = usage
        self._threads = threads
        self._turns = turns
        self._page = page

    async def models(self, principal: Principal) -> Sequence[tuple[str, str]]:
        return [(model.name, model.description or "") for model in (await self._config()).models]

    async def agents(self, principal: Principal) -> Sequence[tuple[str, str]]:
        return [(agent.name, agent.description) for agent in await self._agents.list(principal)]

    async def facts(self, principal: Principal, agent: str | None) -> Sequence[str]:
        document = await self._memory.document(principal, agent)
        return [str(fact["content"]) for fact in document["facts"]]

    async def usage(self, principal: Principal) -> Mapping[str, Any]:
        report = await self._usage.report(principal, since=(day := date.fromisoformat(today())), until=day)
        return report["total"]

    async def stop(self, principal: Principal, thread_id: str) -> int:
        return await self._turns.stop(principal, thread_id)

    async def state(self, principal: Principal, thread_id: str) -> Mapping[str, Any] | None:
        try:
            thread = await self._threads.repository.get(principal, thread_id)
        except NotFoundError:
            return None
        return {"title": thread.title, "status": thread.status}

    def page(self, path: str) -> str:
        return self._page(path)
