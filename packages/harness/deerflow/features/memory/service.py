"""What agents remember of people: taken from threads in the background, recalled in others, and edited by the people."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar, cast

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool
from sqlalchemy import Connection

from deerflow.agents.effects import effects_of
from deerflow.agents.provenance import sources_in
from deerflow.config import AppConfig, Paths
from deerflow.config.schema import MemoryConfig
from deerflow.errors import InvalidRequestError
from deerflow.features.ask import Asker
from deerflow.features.memory import summaries
from deerflow.features.memory.dates import at_persons
from deerflow.features.memory.extraction import is_worth_reading, learned, prompt, unread
from deerflow.features.memory.facts import (
    Changes,
    Recalled,
    apply,
    change,
    confirm,
    made,
    named,
    recall,
    search,
    undo,
    withdraw,
)
from deerflow.features.memory.rows import Fact, Owner, advance, is_paused, watermark
from deerflow.features.memory.storage import EARLIER_VERSION
from deerflow.features.memory.store import (
    CHECKED,
    EARLIER,
    MANUAL,
    MemoryStore,
    OwnedMemory,
    document_of,
    fill,
    memory_store,
    read_document,
    text_of,
)
from deerflow.features.memory.view import MemoryDocument, MemorySettings
from deerflow.identity import Principal, check_agent_name
from deerflow.security.text import inline
from deerflow.storage.database import Database
from deerflow.storage.provenance import UNJUDGED, Source, add_sources, has_rows, sources_of
from deerflow.storage.tables import utc_now
from deerflow.tasks.jobs import HopelessError, Job, bring_forward, enqueue
from deerflow.threads.service import ThreadService

T = TypeVar("T")

EXTRACTION = "memory"
"""The kind of job. Its key is the thread."""
SUMMARIES = "memory_summaries"
"""The kind of job that makes summaries again after facts in them have changed. Its key is the owner."""
REVIEW = "memory_review"
"""The kind of job that looks at the thread of facts of an earlier version. Databases of development can still hold such jobs."""
_SOURCES = 300
"""Characters of the names of sources that are kept with a fact."""
_PATIENCE = 2
"""Answers of a model that cannot be read, until the next run of the thread."""

logger = logging.getLogger(__name__)


class MemoryService:
    """Args:
    config: the snapshot now in force.
    threads: where facts come from.
    tools: all that agents may have under a configuration: by them old threads are judged.
    """

    def __init__(
        self,
        database: Database,
        paths: Paths,
        ask: Asker,
        config: Callable[[], Awaitable[AppConfig]],
        threads: ThreadService,
        tools: Callable[[AppConfig], Sequence[BaseTool]],
    ) -> None:
        self._database = database
        self._paths = paths
        self._ask = ask
        self._config = config
        self._threads = threads
        self._tools = tools
        self._store: tuple[tuple[str, str], MemoryStore] | None = None

    # what people see and change -------------------------------------------------------------------------------------

    async def document(self, principal: Principal, agent: str | None = None) -> MemoryDocument:
        """Return what is remembered, the surest facts first, the unconfirmed last. Raises ValueError: an invalid agent name."""
        store = await self._opened()

        def job(owned: OwnedMemory) -> MemoryDocument:
            return cast(MemoryDocument, document_of(*owned.sections(), [*owned.live(), *owned.unconfirmed()]))

        return await store.read(_owner(principal, agent), job)

    async def replace(
        self, principal: Principal, document: Mapping[str, Any], agent: str | None = None
    ) -> MemoryDocument:
        """Import a document: what was there before is gone. Of more facts than there may be the surest are kept."""
        most, store = (await self._config()).memory.max_facts, await self._opened()
        await store.write(_owner(principal, agent), lambda owned: fill(owned, document, most))
        return await self.document(principal, agent)

    async def take_in(
        self, principal: Principal, document: Mapping[str, Any], origin: str, agent: str | None = None
    ) -> list[Fact]:
        """Add what another program remembered to what is there, which counts more: facts that are not known, and summaries where there
        are none. As of an earlier version, facts that text from outside may have made wait for the person; summaries that
        may hold such text are made again from facts.

        Returns:
            The facts that were added and hold.
        """
        most = (await self._config()).memory.max_facts
        sections, _, facts = read_document({**document, "version": EARLIER_VERSION})
        facts = [replace(fact, untrusted=origin) if fact.untrusted is not None else fact for fact in facts]
        texts = {
            part: {name: "" if CHECKED.search(each["summary"]) else each["summary"] for name, each in names.items()}
            for part, names in sections.items()
        }

        def job(owned: OwnedMemory) -> list[Fact]:
            known, _ = owned.sections()
            new = {
                part: {name: text for name, text in names.items() if name not in known.get(part, {})}
                for part, names in texts.items()
            }
            unknown = [fact for fact in facts if owned.get(fact.id) is None]
            unknown.sort(key=lambda fact: fact.created_at)
            added = apply(owned, Changes(sections=new, facts=unknown), most)
            withdraw(owned, [fact for fact in added if fact.untrusted is not None])
            return [found for fact in added if (found := owned.get(fact.id)) is not None and found.ended_at is None]

        return await self._write(_owner(principal, agent), job)

    async def add(
        self,
        principal: Principal,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        agent: str | None = None,
    ) -> Fact:
        """Raises InvalidRequestError."""
        fact = made(**_checked(content=content, category=category, confidence=confidence), source=MANUAL)
        await self.apply(principal, Changes(facts=[fact]), agent)
        return fact

    async def apply(self, principal: Principal, changes: Changes, agent: str | None = None) -> list[Fact]:
        """Write ``changes`` and return the facts that were added."""
        most = (await self._config()).memory.max_facts
        return await self._write(_owner(principal, agent), lambda owned: apply(owned, changes, most))

    async def change(self, principal: Principal, fact_id: str, agent: str | None = None, **fields: Any) -> Fact:
        """What a person writes is theirs: it is confirmed. Raises NotFoundError, or InvalidRequestError."""
        fields = _checked(**{name: value for name, value in fields.items() if value is not None})
        if "content" in fields:
            fields["untrusted"] = None
        return await self._write(_owner(principal, agent), lambda owned: change(owned, fact_id, **fields))

    async def confirm(self, principal: Principal, fact_id: str, agent: str | None = None) -> Fact:
        """The person says that an unconfirmed fact is true. Raises NotFoundError."""
        most = (await self._config()).memory.max_facts
        return await self._write(_owner(principal, agent), lambda owned: confirm(owned, fact_id, most))

    async def forget(self, principal: Principal, fact_id: str, agent: str | None = None) -> Fact:
        """It can be restored for 30 days. Raises NotFoundError."""
        return await self._write(_owner(principal, agent), lambda owned: change(owned, fact_id, ended_at=utc_now()))

    async def forget_thread(self, principal: Principal, thread_id: str, agent: str | None = None) -> None:
        """Forget all facts that an agent learned in a thread."""

        def job(owned: OwnedMemory) -> None:
            for fact in owned.of_source(thread_id):
                change(owned, fact.id, ended_at=utc_now())

        await self._write(_owner(principal, agent), job)

    async def undo(self, principal: Principal, fact_id: str, agent: str | None = None) -> Fact:
        """Take back what was learned, or restore what was forgotten or superseded. Raises NotFoundError."""
        return await self._write(_owner(principal, agent), lambda owned: undo(owned, fact_id))

    async def search(
        self, principal: Principal, query: str, agent: str | None = None, *, limit: int = 20
    ) -> list[Fact]:
        """Confirmed facts that have words of ``query``, the best first."""
        store = await self._opened()
        return await store.read(_owner(principal, agent), lambda owned: search(owned, query, limit))

    async def named(self, principal: Principal, text: str, agent: str | None = None) -> Fact | None:
        """The confirmed fact with this id or these words."""
        store = await self._opened()
        return await store.read(_owner(principal, agent), lambda owned: named(owned, text))

    async def settings(self) -> MemorySettings:
        """Return what the configuration says about memory."""
        shown = (await self._config()).memory.model_dump(exclude={"storage_class", "model_name"})
        return cast(MemorySettings, shown)

    # what runs use --------------------------------------------------------------------------------------------------

    async def foreign(self, thread_id: str, messages: Sequence[BaseMessage]) -> str | None:
        """Return where text in a thread came from that neither the person nor the agent wrote; None if there is none.

        Args:
            messages: of the thread, read before: what came since counts as well. They judge a thread of before the rows.
        """
        rows = [row for row in await self._database.read(sources_of, thread_id) if not row.trusted]
        if messages and any(row.kind == UNJUDGED for row in rows):
            judged = await asyncio.to_thread(self._judged, await self._config(), messages)
            rows = [*(row for row in rows if row.kind != UNJUDGED), *judged]
        return ", ".join(dict.fromkeys(row.name or row.kind for row in rows))[:_SOURCES] or None

    def _judged(self, config: AppConfig, messages: Sequence[BaseMessage]) -> list[Source]:
        """The sources that messages show. Blocks: tools take a while to be imported."""
        return sources_in(messages, effects_of(self._tools(config), config.sandbox.network.mode))

    async def chats(self, principal: Principal, query: str, into: str) -> list[str]:
        """Return what was said in the person's other threads, with links.

        Args:
            into: the thread that reads it. What foreign text brought into another thread it has brought into this one, too.
        """
        hits = [hit for hit in await self._threads.messages.search(principal, query) if hit.thread_id != into]

        def carry(connection: Connection) -> None:
            foreign = {hit.thread_id for hit in hits if has_rows(connection, hit.thread_id)}
            add_sources(connection, into, [Source("chat", thread_id) for thread_id in sorted(foreign)])

        await self._database.write(carry)
        return [
            f"- {inline(hit.snippet, 400)} [citation:{inline(hit.title or 'Untitled')}](/chats/{hit.thread_id})"
            for hit in hits
        ]

    async def is_paused(self, thread_id: str) -> bool:
        return await self._database.read(lambda connection: is_paused(connection, thread_id))

    async def recall(
        self,
        owner: Owner,
        thread_id: str,
        text: str,
        memory: MemoryConfig,
        earlier: Callable[[], Awaitable[Sequence[BaseMessage]]] | None,
    ) -> dict[str, Any] | None:
        """What to record with a person's message, see :func:`deerflow.features.memory.facts.recall`.

        Args:
            memory: settings of the run.
            earlier: the messages of the thread before it; None: there are none.
        """
        if not (memory.is_passive and memory.injection_enabled):
            return None
        try:
            store = await self._opened(memory)
            if earlier is not None and not await store.read(owner, lambda owned: owned.live(limit=1)):
                return None  # so that no thread is read for nothing
            recalled = Recalled.by(await earlier()) if earlier is not None else None
            found = await store.read(owner, lambda owned: recall(owned, text, recalled, memory.max_injection_tokens))
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
        messages = (await self._threads.states.snapshot(thread_id)).values.get("messages") or ()
        if (excerpt := unread(messages, mark)) is None:
            return False
        excerpt = replace(excerpt, foreign=await self.foreign(thread_id, messages))
        changes, now = Changes(), at_persons(utc_now(), excerpt.messages)
        if is_worth_reading(excerpt.messages):
            store = await self._opened()
            question = await store.read(owner, lambda owned: prompt(excerpt, owned, now))
            model = config.memory.model_name
            principal = Principal(owner.user_id, source="internal")
            answer = await self._ask(config, principal, question, model_name=model, purpose="memory_agent")
            try:
                changes = learned(answer, excerpt, thread_id, config.memory.fact_confidence_threshold, now)
            except ValueError as error:
                if job.attempts < _PATIENCE:
                    raise
                raise HopelessError(f"no facts from thread {thread_id}: {error}") from error

        def advanced(connection: Connection) -> None:
            if not advance(connection, thread_id, mark, excerpt.last):
                raise _ReadMeanwhileError

        with suppress(_ReadMeanwhileError):
            await self._write(owner, lambda owned: apply(owned, changes, config.memory.max_facts), advanced)
        return True

    async def summarize(self, job: Job) -> None:
        """Handler of jobs of the kind :data:`SUMMARIES`: makes the summaries that were withdrawn again, from confirmed facts."""
        owner, store = Owner(**job.payload), await self._opened()
        while (config := await self._config()).learns:
            sections, facts = await store.read(owner, lambda owned: (owned.sections()[0], owned.live()))
            if not (names := summaries.missing(sections)):
                return
            answer = "{}"
            if facts:
                question, model = (
                    summaries.prompt(names, facts, utc_now().astimezone().date()),
                    config.memory.model_name,
                )
                principal = Principal(owner.user_id, source="internal")
                answer = await self._ask(config, principal, question, model_name=model, purpose="memory_agent")

            def write(owned: OwnedMemory) -> None:
                now_there, _ = owned.sections()
                if owned.live() == facts:  # noqa: B023 else they are asked for again
                    owned.touch(summaries.filled(now_there, answer, utc_now()))  # noqa: B023

            try:
                await store.write(owner, write)
            except ValueError as error:
                if job.attempts < _PATIENCE:
                    raise
                raise HopelessError(f"no summaries for {owner.user_id}: {error}") from error

    async def review(self, job: Job) -> None:
        """Handler of jobs of the kind :data:`REVIEW`: facts of an earlier version count again if their thread is clean."""
        thread_id, owner = job.payload["thread_id"], Owner(job.payload["user_id"], job.payload["agent"])
        messages = (await self._threads.states.snapshot(thread_id)).values.get("messages") or ()
        is_clean = bool(messages) and await self.foreign(thread_id, messages) is None

        def settle(owned: OwnedMemory) -> None:
            doubted = [fact for fact in owned.of_source(thread_id) if fact.untrusted == EARLIER]
            for fact in doubted if is_clean else ():
                owned.put(replace(fact, untrusted=None))
            if not is_clean:
                withdraw(owned, doubted)

        await self._write(owner, settle)

    async def _write(
        self, owner: Owner, job: Callable[[OwnedMemory], T], also: Callable[[Connection], None] | None = None
    ) -> T:
        """Write, and ask in the same transaction for the summaries that wait to be made again."""
        store, config = await self._opened(), await self._config()
        names: list[str] = []

        def work(owned: OwnedMemory) -> T:
            result = job(owned)
            names.extend(summaries.missing(owned.sections()[0]) if config.learns else ())
            return result

        def both(connection: Connection) -> None:
            if also is not None:
                also(connection)
            if names:
                due = utc_now() + timedelta(seconds=config.memory.debounce_seconds)
                enqueue(connection, SUMMARIES, "/".join(owner), owner._asdict(), due_at=due)

        return await store.write(owner, work, both)

    async def _opened(self, memory: MemoryConfig | None = None) -> MemoryStore:
        memory = memory or (await self._config()).memory
        key = (memory.storage_class, memory.storage_path)
        if self._store is None or self._store[0] != key:
            made = await asyncio.to_thread(memory_store, memory, self._database, self._paths)
            self._store = key, made
        return self._store[1]


class _ReadMeanwhileError(Exception):
    """Another process has read the same messages."""


def _owner(principal: Principal, agent: str | None) -> Owner:
    return Owner(principal.user_id, check_agent_name(agent).lower() if agent else "")


def _checked(**fields: Any) -> dict[str, Any]:
    if "content" in fields and not (fields := fields | {"content": text_of(fields["content"])})["content"]:
        raise BadFactError("Memory fact content cannot be empty.", reason="fact_empty")
    confidence = fields.get("confidence", 0.0)
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        raise BadFactError("Invalid confidence value; must be between 0 and 1.")
    return fields


class BadFactError(InvalidRequestError):
    status = 400
