"""The state of a thread and how updates merge into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, Required, cast
from uuid import NAMESPACE_OID, uuid5

from langchain.agents import AgentState
from langchain_core.messages import AnyMessage, RemoveMessage, convert_to_messages
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from typing_extensions import TypedDict

from deerflow.agents.transcript import Summary

SNAPSHOT_FREQUENCY = 50
"""Updates between two full snapshots of ``messages``: the measured optimum of bytes written against replay time."""


class SandboxState(TypedDict):
    sandbox_id: NotRequired[str | None]


class ThreadDataState(TypedDict):
    workspace_path: NotRequired[str | None]
    uploads_path: NotRequired[str | None]
    outputs_path: NotRequired[str | None]


class ViewedImageData(TypedDict):
    """An image the model asked to see: by reference, the bytes stay in the file."""

    mime_type: str
    base64: NotRequired[str]


def merge_messages(state: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    """Reducer of ``messages`` for a DeltaChannel: append, or replace by id; honours RemoveMessage, also of all.

    Pure and batching-invariant, as DeltaChannel requires: a message that comes without an id gets one that follows
    from what stands before it. LangGraph's own delta reducer ignores REMOVE_ALL_MESSAGES and leaves such ids empty.
    """
    merged: dict[str, AnyMessage] = {message.id or "": message for message in state}
    for write in writes:
        for message in cast(list[AnyMessage], convert_to_messages(write if isinstance(write, list) else [write])):
            if isinstance(message, RemoveMessage):
                if message.id == REMOVE_ALL_MESSAGES:
                    merged.clear()
                else:
                    merged.pop(message.id or "", None)
                continue
            if not message.id:
                message = message.model_copy(update={"id": _derived_id(next(reversed(merged), ""), message)})
            merged[message.id or ""] = message
    return list(merged.values())


def _derived_id(previous: str, message: AnyMessage) -> str:
    return str(uuid5(NAMESPACE_OID, f"{previous}|{message.type}|{getattr(message, 'tool_call_id', '')}|{message.text}"))


def merge_artifacts(existing: list[str] | None, new: list[str] | None) -> list[str]:
    """Concatenate without duplicates; a path keeps its first position."""
    return list(dict.fromkeys([*(existing or ()), *(new or ())]))


def merge_summaries(existing: list[Summary] | None, new: list[Summary] | None) -> list[Summary]:
    """Append; none is ever lost, so that a former state of the thread is seen as it was."""
    return [*(existing or ()), *(new or ())]


def merge_viewed_images(
    existing: dict[str, ViewedImageData] | None, new: dict[str, ViewedImageData] | None
) -> dict[str, ViewedImageData]:
    """None keeps, an empty dict clears, anything else is merged by path."""
    if new is None:
        return existing or {}
    return {**(existing or {}), **new} if new else {}


class ThreadState(AgentState[Any]):
    """What a thread remembers between steps."""

    messages: Required[Annotated[list[AnyMessage], DeltaChannel(merge_messages, snapshot_frequency=SNAPSHOT_FREQUENCY)]]
    sandbox: NotRequired[SandboxState | None]
    thread_data: NotRequired[ThreadDataState | None]
    title: NotRequired[str | None]
    artifacts: NotRequired[Annotated[list[str], merge_artifacts]]
    todos: NotRequired[list[dict[str, Any]] | None]
    uploaded_files: NotRequired[list[dict[str, Any]] | None]
    summaries: NotRequired[Annotated[list[Summary], merge_summaries]]
    viewed_images: NotRequired[Annotated[dict[str, ViewedImageData], merge_viewed_images]]
