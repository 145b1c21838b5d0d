"""What is known about threads from their checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, Overwrite, StateSnapshot

from deerflow.agents.factory import Agent
from deerflow.storage.checkpoints import Checkpointer
from deerflow.tools.clarification import NAME as ASK
from deerflow.tools.clarification import Question, question

TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread as it stands after its last finished step."""

    values: dict[str, Any]
    next: tuple[str, ...]
    unfinished: bool
    """A step is still to do: the process died or was stopped in the middle of a turn."""
    messages: list[AnyMessage]
    interrupts: tuple[Interrupt, ...]


def config_of(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    """LangGraph's configuration for a thread, as it is now or as it was at a checkpoint."""
    where = {"thread_id": thread_id} | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})
    return {"configurable": where}


async def read_state(agent: Agent, thread_id: str) -> ThreadState:
    snapshot = await agent.aget_state(config_of(thread_id))
    values = snapshot.values if isinstance(snapshot.values, dict) else {}
    messages = list(values.get("messages") or [])
    return ThreadState(values, snapshot.next, is_unfinished(snapshot), messages, snapshot.interrupts)


def is_unfinished(snapshot: StateSnapshot) -> bool:
    """``next`` alone is not enough: it is empty when a step's results were saved but its checkpoint was not."""
    return bool(snapshot.next or snapshot.tasks)


def waits(snapshot: StateSnapshot) -> bool:
    """The person has to decide about something, or to answer a question."""
    values = snapshot.values if isinstance(snapshot.values, dict) else {}
    return bool(snapshot.interrupts) or question_of(values.get("messages") or ()) is not None


def question_of(messages: Sequence[BaseMessage]) -> Question | None:
    """The agent's question that the messages end with."""
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.append(message)
    asked = {result.tool_call_id for result in results if result.name == ASK and result.status != "error"}
    before = messages[-1 - len(results)] if asked and len(results) < len(messages) else None
    calls = before.tool_calls if isinstance(before, AIMessage) else ()
    return next((question(call["args"]) for call in calls if call["id"] in asked), None)


async def compact(agent: Agent, checkpointer: Checkpointer, thread_id: str) -> bool:
    """Keep only the thread's present state. Costs the way back to earlier turns; nothing said is lost.

    Returns:
        False if the thread has an unfinished turn, which must keep its checkpoints.
    """
    config = config_of(thread_id)
    snapshot = await agent.aget_state(config)
    if is_unfinished(snapshot) or not snapshot.values:
        return False
    newest = await agent.aupdate_state(config, {"messages": Overwrite(snapshot.values["messages"])})
    await checkpointer.adelete_before(newest)
    return True


def provisional_title(message: HumanMessage) -> str:
    """A thread's title until a better one is made: how its first message begins."""
    line = " ".join(message.text.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
