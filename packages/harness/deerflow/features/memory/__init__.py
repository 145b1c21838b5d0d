"""What agents remember of people: taken from threads in the background, recalled in others, and edited by the people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from langchain_core.messages import HumanMessage
from sqlalchemy import Connection

from deerflow.agents.turn import FACTS
from deerflow.capability import Capability, EndedRun, NewTurn
from deerflow.features.memory.extraction import is_worth_reading
from deerflow.features.memory.facts import MEMORY
from deerflow.features.memory.for_run import MemoryForRun
from deerflow.features.memory.rows import OwnedRows, Owner, begin_reading, is_paused, skip
from deerflow.features.memory.service import EXTRACTION, REVIEW, SUMMARIES, MemoryService
from deerflow.identity import Principal
from deerflow.storage.tables import utc_now
from deerflow.tasks.jobs import enqueue

__all__ = ["Memory", "MemoryService"]

OPEN_TURN = timedelta(days=1)
"""How long a turn may stay open before it is read as it is."""


class Memory(Capability):
    name = MEMORY

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self.jobs = {EXTRACTION: service.extract, SUMMARIES: service.summarize, REVIEW: service.review}

    async def facts(self, turn: NewTurn) -> Mapping[str, Any] | None:
        owner = Owner(turn.principal.user_id, turn.agent)
        return await self._service.recall(owner, turn.thread_id, turn.text, turn.config.memory, turn.earlier)

    def for_run(self, principal: Principal, thread_id: str, agent: str) -> MemoryForRun:
        return MemoryForRun(self._service, principal, thread_id, agent)

    async def turn_left(self, thread_id: str) -> None:
        await self._service.turn_left(thread_id)

    def run_ended(self, connection: Connection, ended: EndedRun) -> datetime | None:
        """Record which facts a run recalled, and ask for those that its turn teaches. Turns of a thread that follow each other soon
        are read at once; one that stays open is read with the next one, or after a day."""
        run, joined, config = ended.run, ended.joined, ended.config
        owner = Owner(run.user_id, ended.agent)
        recalled = [message.additional_kwargs.get(FACTS, {}).get(MEMORY) for message in joined]
        if used := [fact_id for memory in recalled if memory for fact_id in memory["ids"]]:
            OwnedRows(connection, owner).used(used)
        if not config.learns or not joined:
            return None
        if MEMORY in ended.switched_off or is_paused(connection, run.thread_id):
            skip(connection, run.thread_id, joined[-1].id or "")
            return None
        if is_worth_reading(joined):
            first = next(message.id for message in joined if isinstance(message, HumanMessage))
            begin_reading(connection, run.thread_id, first or "")
        elif not ended.ends_turn or run.turn == run.run_id:
            return None
        due = utc_now() + (timedelta(seconds=config.memory.debounce_seconds) if ended.ends_turn else OPEN_TURN)
        enqueue(connection, EXTRACTION, run.thread_id, owner._asdict(), due_at=due, puts_off=ended.ends_turn)
        return due
