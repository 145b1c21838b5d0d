"""The todo list of plan mode: a tool, and reminders that never enter the thread."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command
from pydantic import Field
from typing_extensions import TypedDict

from deerflow.agents.middlewares.base import (
    FORCED_ENDS,
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    continued,
    ends_turn,
    error_result,
    is_empty,
    is_error,
    is_summary_request,
    last_ai,
    messages_of,
    pending_calls,
    reminder,
    with_messages,
)
from deerflow.agents.transcript import Transcript, current_turn
from deerflow.context import RunContext
from deerflow.tools.decorator import IN_SANDBOX

logger = logging.getLogger(__name__)

REMIND_AFTER = 5
"""Answers without a ``write_todos`` call after which the list is shown again, once."""

TODO_PROMPT = """<todo_list_system>
For a task of three or more steps keep a todo list with `write_todos`, so that the user can follow; for less, just do it.
- Write the whole list with each call, one call at a time, and mark the first item in_progress at once.
- Exactly one item is in_progress, several only if they run in parallel. Mark an item completed as soon as it is fully done.
- What needs the user first is waiting: say what you need, and stop. What failed stays in_progress; add an item that says what
  is needed. Drop items that became pointless.
- The list is not the answer: after the last item give the user the result itself.
</todo_list_system>"""

CONTINUED = "Continue: the todo list is not finished."


class Todo(TypedDict):
    content: str
    status: Literal["pending", "in_progress", "waiting", "completed"]


@tool("write_todos")
def write_todos_tool(
    todos: Annotated[list[Todo], Field(description="The whole list; it replaces the former one")],
    tool_call_id: Annotated[str, InjectedToolCallId],
) -> Command[Any]:
    """Create or update the todo list of a task with three or more steps. The user sees it live."""
    done = sum(todo["status"] == "completed" for todo in todos)
    message = ToolMessage(
        f"Updated todo list: {done} of {len(todos)} completed.", name="write_todos", tool_call_id=tool_call_id
    )
    return Command(update={"todos": todos, "messages": [message]})


write_todos_tool.metadata = IN_SANDBOX


class TodoMiddleware(Middleware):
    """Brings ``write_todos``, shows the list again when it went out of sight, and asks on when work is left.

    The system text is :data:`TODO_PROMPT`; it belongs to the fixed prompt.

    Args:
        remind_after: answers without a ``write_todos`` call after which the list is shown again.
    """

    def __init__(self, *, remind_after: int = REMIND_AFTER) -> None:
        super().__init__()
        self.tools: Sequence[BaseTool] = [write_todos_tool]
        self.remind_after = remind_after

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        """Between an answer and its continuation stands the reminder: two answers in a row confuse some providers."""
        separated = _separated(transcript.messages)
        return transcript if len(separated) == len(transcript.messages) else transcript.with_messages(separated)

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        if is_summary_request(request):
            return await handler(request)
        todos: list[dict[str, Any]] = request.state.get("todos") or []
        if self._went_out_of_sight(request, todos):
            text = f"Your todo list at this moment:\n{_shown(todos)}\nKeep it up to date with write_todos."
            request = request.override(messages=[*request.messages, reminder("todo_reminder", text)])
        result = _one_list_at_a_time(await handler(request))
        return await self._until_finished(request, handler, result, todos)

    def _went_out_of_sight(self, request: Request, todos: Sequence[dict[str, Any]]) -> bool:
        """Unfinished, and either summarised away or of this turn and not touched for just so long."""
        if not _unfinished(todos):
            return False
        if not _written_in(request.messages):
            return True
        answers = [m for m in current_turn(request.state["messages"]) if isinstance(m, AIMessage)]
        since = next((n for n, answer in enumerate(reversed(answers)) if _written_in([answer])), None)
        return since == self.remind_after

    async def _until_finished(
        self,
        request: Request,
        handler: ModelHandler,
        result: ModelResult,
        todos: Sequence[dict[str, Any]],
    ) -> ModelResult:
        """Ask on once per turn if the model stops with work left, and none of it waits for the person; what it said stays in the
        thread."""
        unfinished = _unfinished(todos)
        turn = current_turn(request.state["messages"])
        if not unfinished or any(todo.get("status") == "waiting" for todo in unfinished) or not _written_in(turn):
            return result
        asked = any(isinstance(m, AIMessage) and not m.tool_calls and not is_error(m) for m in turn)
        if asked or not _is_final(result):
            return result
        note = reminder("todo_completion_reminder", f"The todo list is not finished:\n{_shown(unfinished)}\n{_GO_ON}")
        again = continued(request, *_separated(messages_of(result)), note)
        try:
            more = _one_list_at_a_time(await handler(again))
        except GraphBubbleUp:
            raise
        except Exception:
            logger.warning("Asking the model to finish its todo list failed; its answer stands", exc_info=True)
            return result
        answer = last_ai(more)
        if answer is None or is_empty(answer):
            return result
        return with_messages(more, [*messages_of(result), *messages_of(more)])


_GO_ON = (
    "Continue with it, or mark with write_todos what is done, given up or waiting for the user, and tell the user why."
)


def _separated(messages: Sequence[Any]) -> list[Any]:
    separated: list[Any] = []
    for message in messages:
        if separated and isinstance(message, AIMessage) and isinstance(separated[-1], AIMessage):
            separated.append(reminder("todo_completion_reminder", CONTINUED))
        separated.append(message)
    return separated


def _is_final(result: ModelResult) -> bool:
    """Whether the model ended its turn of its own accord."""
    message = last_ai(result)
    if message is None or message.tool_calls or message.invalid_tool_calls or ends_turn(result):
        return False
    return not is_empty(message) and not is_error(message) and not FORCED_ENDS & message.additional_kwargs.keys()


def _written_in(messages: Sequence[Any]) -> bool:
    calls = (call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls)
    return any(call["name"] == "write_todos" for call in calls)


def _unfinished(todos: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [todo for todo in todos if todo.get("status") != "completed"]


def _shown(todos: Sequence[dict[str, Any]]) -> str:
    return "\n".join(f"- [{todo.get('status') or 'pending'}] {todo.get('content') or ''}" for todo in todos)


def _one_list_at_a_time(result: ModelResult) -> ModelResult:
    """Each call replaces the whole list, so of parallel ones only the first is executed."""
    message = last_ai(result)
    extra = [call for call in message.tool_calls if call["name"] == "write_todos"][1:] if message else []
    text = "Error: only one write_todos call at a time: it replaces the whole list. The first one was executed."
    pending = pending_calls(result)
    errors = [error_result(call, text) for call in extra if call in pending]
    return with_messages(result, [*messages_of(result), *errors]) if errors else result
