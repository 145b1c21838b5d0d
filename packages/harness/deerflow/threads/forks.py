"""Forks of a thread at a message: another answer to it, another wording of it, or a thread of its own that goes on from there."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import Field

from deerflow.agents.turn import FACTS, QUOTED
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.threads.input import OWN_KEYS
from deerflow.threads.view import ThreadTurn

if TYPE_CHECKING:
    from deerflow.threads.service import ThreadService

_NO_WAY_BACK = "There is no way back to the message {} of thread {}: the states before it were removed by a compaction, or it came "
_NO_WAY_BACK += "while a run was at work. Take an earlier message, or send it again."


@dataclass(frozen=True, slots=True)
class Regeneration:
    """A run that takes the place of a turn.

    ``input`` and ``checkpoint`` are those of the run to start, ``metadata`` names what it replaces. ``message_id`` is the id that the
    person's message has in it, ``replaced`` the ids of the messages that stand there now.
    """

    input: dict[str, Any]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    target_run_id: str
    message_id: str
    replaced: list[str]


@dataclass(frozen=True, slots=True)
class ThreadBranch:
    thread_id: str
    parent_thread_id: str
    parent_checkpoint_id: Annotated[str, Field(description="Where the new thread goes on.")]
    branched_from_message_id: str
    workspace_clone_mode: Annotated[Literal["copy"], Field(description="Files are copied, as they are now.")]
    history_seed_mode: Annotated[Literal["checkpoint"], Field(description="Former states are there, too.")]


@dataclass(frozen=True)
class Forks:
    threads: ThreadService

    async def regeneration(self, principal: Principal, thread_id: str, message_id: str) -> Regeneration:
        """Return the run that answers again what the message, or what it answers, asked.

        Raises:
            NotFoundError: the thread has no such message now.
            ConflictError: there is no state before it any more.
        """
        messages, turns = await self._conversation(principal, thread_id)
        at = _place(messages, message_id, thread_id)
        began = next((message for message in reversed(messages[: at + 1]) if _begins(message, turns)), None)
        if began is None:
            raise ConflictError(_NO_WAY_BACK.format(message_id, thread_id), code="no_way_back")
        return _regeneration(thread_id, messages, turns, began.id or "", message_id)

    async def edit(self, principal: Principal, thread_id: str, message_id: str, text: str) -> Regeneration:
        """Return the run that asks with another text instead; pictures and files of the message stay. Raises as :meth:`regeneration`;
        InvalidRequestError if the message is not the person's."""
        messages, turns = await self._conversation(principal, thread_id)
        said = messages[_place(messages, message_id, thread_id)]
        if not isinstance(said, HumanMessage):
            raise InvalidRequestError(f"human_message_id: {message_id} is no message of a person.")
        if not _begins(said, turns):
            raise ConflictError(_NO_WAY_BACK.format(message_id, thread_id), code="no_way_back")
        return _regeneration(thread_id, messages, turns, message_id, message_id, text)

    async def branch(
        self, principal: Principal, thread_id: str, message_ids: Sequence[str], title: str | None = None
    ) -> ThreadBranch:
        """Make a thread that goes on behind the last of these messages, with history, files and sources of this one.

        Raises:
            NotFoundError: the thread has no such message now.
            ConflictError: a run of it is active.
        """
        messages, turns = await self._conversation(principal, thread_id)
        at = max(_place(messages, message_id, thread_id) for message_id in message_ids)
        following = next((message for message in messages[at + 1 :] if _begins(message, turns)), None)
        made = (await self.threads.copy(principal, thread_id))["thread_id"]
        try:
            states = self.threads.states
            end = (await states.get(principal, made))["checkpoint_id"]
            if following is not None:
                end = turns[following.id or ""]["checkpoint_id"]
                await states.update(principal, made, None, checkpoint={"checkpoint_id": end})
            if title:
                await states.update(principal, made, {"title": title})
        except BaseException:
            await self.threads.delete(principal, made)
            raise
        return ThreadBranch(made, thread_id, end or "", messages[at].id or "", "copy", "checkpoint")

    async def _conversation(
        self, principal: Principal, thread_id: str
    ) -> tuple[Sequence[BaseMessage], Mapping[str, ThreadTurn]]:
        """Return the thread's messages, and by message of a person the turn that it began."""
        found = await self.threads.transcript.turns(principal, thread_id)
        values = (await self.threads.states.snapshot(thread_id)).values
        turns = {turn["message_id"]: turn for turn in found if turn["checkpoint_id"] is not None}
        return values.get("messages", ()), turns


def _place(messages: Sequence[BaseMessage], message_id: str, thread_id: str) -> int:
    for index, message in enumerate(messages):
        if message.id == message_id:
            return index
    text = f"Thread {thread_id} has no message {message_id} now. Load its messages again."
    raise NotFoundError(text, reason="message_gone")


def _begins(message: BaseMessage, turns: Mapping[str, ThreadTurn]) -> bool:
    return isinstance(message, HumanMessage) and message.id in turns


def _regeneration(
    thread_id: str,
    messages: Sequence[BaseMessage],
    turns: Mapping[str, ThreadTurn],
    began: str,
    asked: str,
    text: str | None = None,
) -> Regeneration:
    turn = turns[began]
    said = [
        message
        for message in messages
        if isinstance(message, HumanMessage) and turns.get(message.id or "", {}).get("run_id") == turn["run_id"]
    ]
    new_id = str(uuid.uuid4())
    given = [_again(one, new_id, text) if one.id == began else _again(one, str(uuid.uuid4())) for one in said]
    first = _place(messages, said[0].id or "", thread_id)
    return Regeneration(
        input={"messages": given},
        checkpoint={"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": turn["checkpoint_id"]},
        metadata={"regenerated_run_id": turn["run_id"], "regenerated_message_id": asked},
        target_run_id=turn["run_id"],
        message_id=new_id,
        replaced=[message.id or "" for message in messages[first:]],
    )


def _again(message: HumanMessage, message_id: str, text: str | None = None) -> dict[str, Any]:
    """A message as a client sends it. The server records the facts of its new turn."""
    kept = {key: value for key, value in message.additional_kwargs.items() if key not in OWN_KEYS}
    if quoted := message.additional_kwargs.get(FACTS, {}).get(QUOTED):
        kept[QUOTED] = quoted
    content: Any = message.content
    if text is not None:
        others = [block for block in content if not _is_text(block)] if isinstance(content, list) else []
        content = [{"type": "text", "text": text}, *others] if others else text
    return {"type": "human", "role": "user", "id": message_id, "content": content, "additional_kwargs": kept}


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or block.get("type") == "text"
