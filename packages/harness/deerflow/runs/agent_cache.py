"""Compiled agents, kept as long as what they were built from holds."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from deerflow.agents.factory import Agent
from deerflow.models import ModelCache


@dataclass
class _OfLoop:
    models: ModelCache = field(default_factory=ModelCache)
    agents: OrderedDict[Hashable, Agent] = field(default_factory=OrderedDict)


class AgentCache:
    """Building a graph costs more than a short run; a model's connections belong to one event loop. So: one agent per loop and key.

    Args:
        size: agents kept per loop, the least recently used go first.
    """

    def __init__(self, size: int = 32) -> None:
        self._size = size
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _OfLoop] = WeakKeyDictionary()

    async def get(self, key: Hashable, build: Callable[[ModelCache], Agent]) -> Agent:
        """The agent for ``key``. If there is none yet, ``build`` makes one on a thread, with the models of this loop.

        Whatever ``build`` raises is raised.
        """
        kept = self._loops.setdefault(asyncio.get_running_loop(), _OfLoop())
        if key not in kept.agents:
            kept.agents[key] = await asyncio.to_thread(build, kept.models)
        kept.agents.move_to_end(key)
        while len(kept.agents) > self._size:
            kept.agents.popitem(last=False)
        return kept.agents[key]

    def clear(self) -> None:
        self._loops.clear()

    async def aclose(self) -> None:
        """Forget the agents of the running loop and close their models' connections."""
        if (kept := self._loops.pop(asyncio.get_running_loop(), None)) is not None:
            await kept.models.aclose()
