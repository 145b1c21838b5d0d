"""What the agent's memory tools do in a run."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from deerflow.agents.transcript import is_person
from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.features.memory.dates import at_persons
from deerflow.features.memory.facts import Changes, Wish, line, remembered
from deerflow.features.memory.own_words import is_meant, sentences
from deerflow.features.memory.service import BadFactError, MemoryService
from deerflow.features.memory.store import text_of
from deerflow.identity import Principal
from deerflow.storage.tables import utc_now

SAVED = 0.9
"""How sure a fact is that the agent saves."""
_SIMILAR = 5
_RECENT = 3
"""Messages of the person in which a wish to forget may stand: an answer to a question may be between."""


class MemoryForRun:
    """The memory of a person, and what they said in other threads, for one run in a thread. Texts are for the model."""

    def __init__(self, service: MemoryService, principal: Principal, thread_id: str, agent: str | None) -> None:
        self._service, self._principal, self._thread_id, self._agent = service, principal, thread_id, agent

    async def search(self, query: str) -> list[str]:
        found = await (await self._active()).search(self._principal, query, self._agent)
        return [f"{fact.id} {line(fact)}" for fact in found]

    async def save(self, content: str, category: str, messages: Sequence[BaseMessage]) -> str:
        service = await self._active()
        if not (content := text_of(content)):
            raise BadFactError("Memory fact content cannot be empty.", reason="fact_empty")
        fact = remembered(
            content,
            text_of(category, 64) or "context",
            SAVED,
            self._thread_id,
            quotes=[content],
            messages=list(filter(is_person, reversed(messages))),
            foreign=await service.foreign(self._thread_id, messages),
            today=at_persons(utc_now(), messages).date(),
        )
        added = await service.apply(self._principal, Changes(facts=[fact]), self._agent)
        if fact.untrusted is not None:
            return (
                "Not remembered yet: the user has to confirm it in their memory settings, since this conversation holds text "
                "from outside and these are not the user's own words. What they wrote counts at once: save one whole sentence of "
                "theirs, word for word."
            )
        return f"Remembered as {added[0].id}: {added[0].content}" if added else "That is remembered already."

    async def forget(self, fact: str, messages: Sequence[BaseMessage]) -> str:
        service = await self._active()
        one = await service.named(self._principal, fact, self._agent)
        if one is None:
            if similar := (await self.search(fact))[:_SIMILAR]:
                return "\n".join(["Nothing was forgotten. Call again with the id of the fact that is meant:", *similar])
            raise NotFoundError(f"Memory fact '{fact}' not found.")
        recent = list(filter(is_person, reversed(messages)))[:_RECENT]
        said = next((each for message in recent for each in sentences(message) if is_meant(each, one.content)), None)
        foreign = await service.foreign(self._thread_id, messages) is not None
        if foreign and said is None:
            raise InvalidRequestError(
                "Not forgotten: this conversation holds text from outside, and the user's last messages do not say that this is to "
                "be forgotten. Ask them to name it, or to delete it in their memory settings."
            )
        await service.apply(self._principal, Changes(wishes=[Wish(said or "", [one.id])], foreign=foreign), self._agent)
        return f"Forgotten: {one.content}"

    async def chats(self, query: str) -> list[str]:
        return await (await self._active()).chats(self._principal, query, self._thread_id)

    async def _active(self) -> MemoryService:
        if await self._service.is_paused(self._thread_id):
            raise InvalidRequestError("The user has paused memory in this conversation.")
        return self._service
