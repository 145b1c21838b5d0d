"""What agents remember of people: taken from threads in the background, recalled in others, and edited by the people."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage
from sqlalchemy import Connection

from deerflow.agents.memory.extraction import is_said_by, is_worth_reading, learned, prompt, unread
from deerflow.agents.memory.facts import Changes, Recalled, apply, change, line, made, recall, search, undo
from deerflow.agents.memory.store import MANUAL, MemoryStore, document_of, fill, memory_store, text_of
from deerflow.agents.turn import FACTS, MEMORY
from deerflow.config import AppConfig, Paths
from deerflow.context import MemoryOfRun
from deerflow.errors import InvalidRequestError
from deerflow.features.ask import Asker
from deerflow.identity import Principal, check_agent_name
from deerflow.security.text import inline
from deerflow.storage.database import Database
from deerflow.storage.memory import Fact, Owner, RowShelf, advance, begin_reading, is_paused, skip, watermark
from deerflow.storage.tables import utc_now
from deerflow.tasks.jobs import HopelessError, Job, bring_forward, enqueue
from deerflow.threads.service import ThreadService

if TYPE_CHECKING:
    from deerflow.agents.middlewares.guardrail_middleware import Reach
    from deerflow.storage.runs import Run

EXTRACTION = "memory"
"""The kind of job. Its key is the thread."""
OPEN_TURN = timedelta(days=1)
"""How long a turn may stay open before it is read as it is."""
SAVED = 0.9
"""How sure a fact is that the agent saves."""
_PATIENCE = 2
"""Answers of a model that cannot be read, until the next run of the thread."""

logger = logging.getLogger(__name__)


def follow_run(
    connection: Connection,
    config: AppConfig,
    owner: Owner,
    run: Run,
    joined: Sequence[BaseMessage],
    *,
    ends_turn: bool,
) -> datetime | None:
    """Record which facts a run recalled, and ask for those that its turn teaches, in the transaction that ends it. Turns of a thread
    that follow each other soon are read at once; one that stays open is read with the next one, or after a day.

    Args:
        joined: the messages that the run added to its thread.
        ends_turn: its turn came to a good end.

    Returns:
        When the job is due; None: there is nothing to learn.
    """
    recalled = [message.additional_kwargs.get(FACTS, {}).get(MEMORY) for message in joined]
    if used := [fact_id for memory in recalled if memory for fact_id in memory["ids"]]:
        RowShelf(connection, owner).used(used)
    if not config.learns or not joined:
        return None
    thread_id = run.thread_id
    if is_paused(connection, thread_id):
        skip(connection, thread_id, joined[-1].id or "")
        return None
    if is_worth_reading(joined):
        first = next(message.id for message in joined if isinstance(message, HumanMessage))
        begin_reading(connection, thread_id, first or "")
    elif not ends_turn or run.turn == run.run_id:
        return None
    due = utc_now() + (timedelta(seconds=config.memory.debounce_seconds) if ends_turn else OPEN_TURN)
    enqueue(connection, EXTRACTION, thread_id, owner._asdict(), due_at=due, puts_off=ends_turn)
    return due


class MemoryService:
    """Args:
    config: the snapshot now in force.
    threads: where facts come from.
    """

    def __init__(
        self,
        database: Database,
        paths: Paths,
        ask: Asker,
        config: Callable[[], Awaitable[AppConfig]],
        threads: ThreadService,
    ) -> None:
        self._database = database
        self._paths = paths
        self._ask = ask
        self._config = config
        self._threads = threads
        self._store: tuple[tuple[str, str], MemoryStore] | None = None

    # what people see and change -------------------------------------------------------------------------------------

    async def document(self, principal: Principal, agent: str | None = None) -> dict[str, Any]:
        """``{version, lastUpdated, user, history, facts}``, the surest facts first. Raises ValueError: an invalid agent name."""
        store = await self._opened()
        return await store.read(_owner(principal, agent), lambda shelf: document_of(*shelf.sections(), shelf.live()))

    async def replace(
        self, principal: Principal, document: Mapping[str, Any], agent: str | None = None
    ) -> dict[str, Any]:
        """Import a document: what was there before is gone."""
        await (await self._opened()).write(_owner(principal, agent), lambda shelf: fill(shelf, document))
        return await self.document(principal, agent)

    async def add(
        self,
        principal: Principal,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        agent: str | None = None,
        *,
        source: str = MANUAL,
        **more: Any,
    ) -> Fact:
        """Raises InvalidRequestError."""
        fields = _checked(content=content, category=category, confidence=confidence)
        fact, most = made(**fields, source=source, **more), (await self._config()).memory.max_facts
        store = await self._opened()
        await store.write(_owner(principal, agent), lambda shelf: apply(shelf, Changes(facts=[fact]), most))
        return fact

    async def change(self, principal: Principal, fact_id: str, agent: str | None = None, **fields: Any) -> Fact:
        """Raises NotFoundError, or InvalidRequestError."""
        fields = _checked(**{name: value for name, value in fields.items() if value is not None})
        store = await self._opened()
        return await store.write(_owner(principal, agent), lambda shelf: change(shelf, fact_id, **fields))

    async def forget(self, principal: Principal, fact_id: str, agent: str | None = None) -> Fact:
        """It can be restored for 30 days. Raises NotFoundError."""
        store = await self._opened()
        return await store.write(_owner(principal, agent), lambda shelf: change(shelf, fact_id, ended_at=utc_now()))

    async def forget_thread(self, principal: Principal, thread_id: str, agent: str | None = None) -> None:
        """Forget all facts that an agent learned in a thread."""
        store = await self._opened()

        def job(shelf: Any) -> None:
            for fact in shelf.of_source(thread_id):
                change(shelf, fact.id, ended_at=utc_now())

        await store.write(_owner(principal, agent), job)

    async def undo(self, principal: Principal, fact_id: str, agent: str | None = None) -> Fact:
        """Take back what was learned, or restore what was forgotten or superseded. Raises NotFoundError."""
        store = await self._opened()
        return await store.write(_owner(principal, agent), lambda shelf: undo(shelf, fact_id))

    async def search(
        self, principal: Principal, query: str, agent: str | None = None, *, limit: int = 20
    ) -> list[Fact]:
        """Facts that have words of ``query``, the best first."""
        store = await self._opened()
        return await store.read(_owner(principal, agent), lambda shelf: search(shelf, query, limit))

    async def settings(self) -> dict[str, Any]:
        """What the configuration says about memory."""
        return (await self._config()).memory.model_dump(exclude={"storage_class", "model_name"})

    # what runs use --------------------------------------------------------------------------------------------------

    def of_run(self, principal: Principal, thread_id: str, agent: str | None) -> MemoryOfRun:
        """For the agent's tools."""
        return _RunMemory(self, principal, thread_id, agent)

    async def untrusted(self, messages: Sequence[BaseMessage]) -> str | None:
        """Where text in a thread came from that neither the person nor the agent wrote."""
        reach = await asyncio.to_thread(_reach, await self._config())
        return ", ".join(reach.untrusted(messages)) or None

    async def chats(self, principal: Principal, query: str, but: str) -> list[str]:
        """What was said in the person's threads, with links, but in the one named."""
        hits = await self._threads.messages.search(principal, query)
        return [
            f"- {inline(hit.snippet, 400)} [citation:{inline(hit.title or 'Untitled')}](/chats/{hit.thread_id})"
            for hit in hits
            if hit.thread_id != but
        ]

    async def is_paused(self, thread_id: str) -> bool:
        return await self._database.read(lambda connection: is_paused(connection, thread_id))

    async def recall(
        self,
        owner: Owner,
        thread_id: str,
        text: str,
        earlier: Callable[[], Awaitable[Sequence[BaseMessage]]] | None,
    ) -> dict[str, Any] | None:
        """What to record with a person's message, see :func:`deerflow.agents.memory.facts.recall`.

        Args:
            earlier: the messages of the thread before it; None: there are none.
        """
        memory = (await self._config()).memory
        if not (memory.is_passive and memory.injection_enabled):
            return None
        try:
            store = await self._opened()
            if earlier is not None and not await store.read(owner, lambda shelf: shelf.live(limit=1)):
                return None  # so that no thread is read for nothing
            recalled = Recalled.by(await earlier()) if earlier is not None else None
            found = await store.read(owner, lambda shelf: recall(shelf, text, recalled, memory.max_injection_tokens))
            if found is None or await self.is_paused(thread_id):
                return None
            await store.recalled(owner, found["ids"])
            return found
        except Exception:
            logger.exception("The memory of %s cannot be read; the run goes on without it.", owner.user_id)
            return None

    async def turn_left(self, thread_id: str) -> None:
        """A turn that stayed open has ended, since the next one begins: what it teaches is due."""
        due = utc_now() + timedelta(seconds=(await self._config()).memory.debounce_seconds)
        await self._database.write(bring_forward, EXTRACTION, thread_id, due)

    async def extract(self, job: Job) -> None:
        """Handler of jobs of the kind :data:`EXTRACTION`: reads what is new in a thread, some messages at a time."""
        while (config := await self._config()).learns and await self._read_on(job, config):
            pass

    async def _read_on(self, job: Job, config: AppConfig) -> bool:
        """What was read counts as read in the transaction that keeps the facts. False: there is nothing to read."""
        owner, thread_id = Owner(**job.payload), job.key
        mark = await self._database.read(lambda connection: watermark(connection, thread_id))
        if mark is None or await self.is_paused(thread_id):
            return False
        reach = await asyncio.to_thread(_reach, config)
        messages = (await self._threads.states.snapshot(thread_id)).values.get("messages") or ()
        if (excerpt := unread(messages, mark, reach)) is None:
            return False
        store, changes = await self._opened(), Changes()
        if is_worth_reading(excerpt.messages):
            question = await store.read(owner, lambda shelf: prompt(excerpt, shelf))
            model = config.memory.model_name
            principal = Principal(owner.user_id, source="internal")
            answer = await self._ask(config, principal, question, model_name=model, purpose="memory_agent")
            try:
                changes = learned(answer, excerpt, thread_id, config.memory.fact_confidence_threshold)
            except ValueError as error:
                if job.attempts < _PATIENCE:
                    raise
                raise HopelessError(f"no facts from thread {thread_id}: {error}") from error

        def advanced(connection: Connection) -> None:
            if not advance(connection, thread_id, mark, excerpt.last):
                raise _ReadMeanwhileError

        with suppress(_ReadMeanwhileError):
            await store.write(owner, lambda shelf: apply(shelf, changes, config.memory.max_facts), advanced)
        return True

    async def _opened(self) -> MemoryStore:
        memory = (await self._config()).memory
        key = (memory.storage_class, memory.storage_path)
        if self._store is None or self._store[0] != key:
            made = await asyncio.to_thread(memory_store, memory, self._database, self._paths)
            self._store = key, made
        return self._store[1]


class _RunMemory(MemoryOfRun):
    def __init__(self, service: MemoryService, principal: Principal, thread_id: str, agent: str | None) -> None:
        self._service, self._principal, self._thread_id, self._agent = service, principal, thread_id, agent

    async def _active(self) -> MemoryService:
        if await self._service.is_paused(self._thread_id):
            raise InvalidRequestError("The user has paused memory in this conversation.")
        return self._service

    async def search(self, query: str) -> list[str]:
        found = await (await self._active()).search(self._principal, query, self._agent)
        return [f"{fact.id} {line(fact)}" for fact in found]

    async def save(self, content: str, category: str, messages: Sequence[BaseMessage]) -> str:
        service = await self._active()
        doubt = None if is_said_by(content, messages) else await service.untrusted(messages)
        said: dict[str, Any] = {"source": self._thread_id, "untrusted": doubt}
        return (await service.add(self._principal, content, category, SAVED, self._agent, **said)).id

    async def forget(self, fact_id: str) -> None:
        await (await self._active()).forget(self._principal, fact_id, self._agent)

    async def chats(self, query: str) -> list[str]:
        return await (await self._active()).chats(self._principal, query, self._thread_id)


class _ReadMeanwhileError(Exception):
    """Another process has read the same messages."""


def _reach(config: AppConfig) -> Reach:
    # Takes a while, and this is a worker thread.
    from deerflow.agents.middlewares.guardrail_middleware import Reach
    from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
    from deerflow.tools.registry import get_available_tools

    tools = get_available_tools(app_config=config, supports_vision=True)
    return Reach.of([*tools, *TodoMiddleware().tools], config.sandbox.network.mode)


def _owner(principal: Principal, agent: str | None) -> Owner:
    return Owner(principal.user_id, check_agent_name(agent).lower() if agent else "")


def _checked(**fields: Any) -> dict[str, Any]:
    if "content" in fields and not (fields := fields | {"content": text_of(fields["content"])})["content"]:
        raise BadFactError("Memory fact content cannot be empty.")
    confidence = fields.get("confidence", 0.0)
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        raise BadFactError("Invalid confidence value; must be between 0 and 1.")
    return fields


class BadFactError(InvalidRequestError):
    status = 400
