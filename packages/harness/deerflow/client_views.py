"""What :class:`DeerFlowClient` returns of threads, models and uploads, in shapes of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired

from typing_extensions import TypedDict

from deerflow.features.documents.view import DocumentState
from deerflow.files.uploads import UploadEntry

if TYPE_CHECKING:
    from deerflow.agents.middlewares.todo_middleware import Todo


class ListedThread(TypedDict):
    """``created_at`` and ``updated_at``: ISO 8601. ``latest_checkpoint_id``: None before the first step; a server does not say it."""

    thread_id: str
    created_at: str
    updated_at: str
    latest_checkpoint_id: NotRequired[str | None]
    title: str | None


class ThreadList(TypedDict):
    thread_list: list[ListedThread]


class PendingWrite(TypedDict):
    task_id: str
    channel: str
    value: Any


class ThreadCheckpoint(TypedDict):
    """``values``: of the graph, with messages as the ``values`` event has them. ``ts``: ISO 8601."""

    checkpoint_id: str
    parent_checkpoint_id: str | None
    ts: str | None
    metadata: Mapping[str, Any] | None
    values: dict[str, Any]
    pending_writes: list[PendingWrite]


class ThreadHistory(TypedDict):
    """``checkpoints``: oldest first."""

    thread_id: str
    checkpoints: list[ThreadCheckpoint]


class ClientThreadValues(TypedDict):
    """``artifacts``: virtual paths of the files that the agent presented."""

    title: str | None
    messages: list[dict[str, Any]]
    todos: list[Todo]
    artifacts: list[str]


class ClientThreadState(TypedDict):
    """``next``: nodes whose turn it is. ``interrupts``: what waits for an answer. ``unfinished``: the turn goes on, or was cut off.
    ``running``: of a thread on a server, whether it goes on."""

    values: ClientThreadValues
    next: Sequence[str]
    interrupts: list[Any]
    unfinished: bool
    running: NotRequired[bool]


class FoundChat(TypedDict):
    thread_id: str
    title: str | None
    snippet: str


class ClientModel(TypedDict):
    name: str
    model: str
    display_name: str
    description: str | None
    supports_thinking: bool
    supports_reasoning_effort: bool
    supports_vision: bool


class Switch(TypedDict):
    enabled: bool


class ClientModels(TypedDict):
    """``token_usage``: whether usage is recorded."""

    models: list[ClientModel]
    token_usage: Switch


class NewUploads(TypedDict):
    success: bool
    files: list[UploadEntry]
    message: str


class ListedUpload(UploadEntry, DocumentState):
    """An upload, and what became of a document among them."""


class UploadList(TypedDict):
    files: list[ListedUpload]
    count: int
