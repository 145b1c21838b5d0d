"""LangGraph's snapshots of a thread as clients of its API read them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from deerflow.events.jsonable import message_json, plain, values_json

MAX_MESSAGES = 8192
_HIDDEN_METADATA = frozenset({"counters_since_delta_snapshot", "thread_id"})


class StateView:
    """Snapshots as JSON values. A message's dictionary is made once and shared by all that hold it: do not change it."""

    def __init__(self) -> None:
        self._messages: OrderedDict[int, tuple[AnyMessage, dict[str, Any]]] = OrderedDict()

    def state(self, snapshot: StateSnapshot, title: str | None = None) -> dict[str, Any]:
        """``{values, next, tasks, metadata, created_at, checkpoint, parent_checkpoint, interrupts}``, and the two
        checkpoints' bare ids. ``title``: what the thread is called by now, whatever it was called then."""
        checkpoint, parent = checkpoint_of(snapshot.config), checkpoint_of(snapshot.parent_config)
        return {
            "values": self.values(snapshot.values, title),
            "next": list(snapshot.next),
            "tasks": [self._task(task) for task in snapshot.tasks],
            "metadata": {
                key: plain(value)
                for key, value in (snapshot.metadata or {}).items()
                if key not in _HIDDEN_METADATA and not key.startswith("__")
            },
            "created_at": snapshot.created_at,
            "checkpoint": checkpoint,
            "parent_checkpoint": parent,
            "interrupts": [plain(interrupt) for interrupt in snapshot.interrupts],
            "checkpoint_id": checkpoint["checkpoint_id"] if checkpoint else None,
            "parent_checkpoint_id": parent["checkpoint_id"] if parent else None,
        }

    def values(self, values: Any, title: str | None = None) -> dict[str, Any]:
        """Without host paths and pictures' bytes."""
        values = values if isinstance(values, Mapping) else {}
        shown = values_json({key: value for key, value in values.items() if key != "messages"})
        if "messages" in values:
            shown["messages"] = [self.message(message) for message in values["messages"]]
        return shown | ({"title": title} if title else {})

    def message(self, message: AnyMessage) -> dict[str, Any]:
        known = self._messages.get(id(message))
        if known is None or known[0] is not message:
            known = self._messages[id(message)] = (message, message_json(message))
            if len(self._messages) > MAX_MESSAGES:
                self._messages.popitem(last=False)
        return known[1]

    def _task(self, task: Any) -> dict[str, Any]:
        nested = task.state
        return {
            "id": task.id,
            "name": task.name,
            "path": plain(task.path),
            "error": None if task.error is None else str(task.error),
            "interrupts": [plain(interrupt) for interrupt in task.interrupts],
            "checkpoint": checkpoint_of(nested) if isinstance(nested, dict) else None,
            "state": self.state(nested) if isinstance(nested, StateSnapshot) else None,
            "result": plain(task.result),
        }


def checkpoint_of(config: RunnableConfig | dict[str, Any] | None) -> dict[str, Any] | None:
    """``{thread_id, checkpoint_ns, checkpoint_id}`` of a configuration."""
    if config is None:
        return None
    where = config["configurable"]
    return {
        "thread_id": where["thread_id"],
        "checkpoint_ns": where.get("checkpoint_ns", ""),
        "checkpoint_id": where.get("checkpoint_id"),
    }
