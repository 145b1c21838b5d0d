"""One turn: the client's events become what a view shows and an outcome that the caller acts on."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from deerflow.events.streams.client_events import StreamEvent

CUT_OFF = {
    "length": "The answer was cut off: the model reached its output limit. Say “go on”, or raise models[].max_tokens.",
    "content_filter": "The answer was cut off: the provider’s content policy stopped it. Rephrase, or choose another model.",
    "loop": "The work was stopped: the agent repeated itself. Say “go on, but differently”, or see loop_detection in config.yaml.",
}
"""By a run's stop reason."""
KEPT_LIVE_OUTPUT = 20_000
"""Characters of a running command's output that are kept for display; its result arrives whole with the tool message."""


@dataclass(slots=True)
class ToolRun:
    """A tool call from the moment the model made it."""

    id: str
    name: str
    args: Mapping[str, Any]
    output: str = ""
    """What it wrote so far, while it runs."""
    result: str | None = None
    failed: bool = False
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.started


@dataclass(slots=True)
class TurnOutcome:
    """How a turn ended."""

    text: str = ""
    """The final answer, or the question that the agent ends its turn with."""
    artifacts: list[str] = field(default_factory=list)
    """Virtual paths that were delivered in this turn."""
    todos: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    """Money by currency, where prices are configured."""
    error: dict[str, Any] | None = None
    """``{"kind", "message"}`` when the turn failed."""
    error_told: bool = False
    """The view has shown the error's message already, as text of the agent."""
    seconds: float = 0.0
    stopped: bool = False
    waiting: bool = False
    """Calls wait for a decision of the person."""
    unaccepted: bool = False
    """Acceptance checks failed to the last."""
    verification: str | None = None
    """The word for the answer."""
    refused: Sequence[Mapping[str, Any]] = ()
    """``{tool, why}`` of the calls that were not made."""


class TurnView:
    """Shows a turn while it runs; what a view does not care for it leaves out. It does so from entering to leaving."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...
    def text(self, delta: str) -> None: ...
    def thinking(self, delta: str) -> None: ...
    def message_ended(self) -> None: ...
    def tool_started(self, tool: ToolRun) -> None: ...
    def tool_finished(self, tool: ToolRun) -> None: ...
    def todos(self, todos: list[dict[str, Any]], before: list[dict[str, Any]]) -> None: ...
    def notice(self, text: str) -> None: ...
    def waiting(self, seconds: float | None) -> None: ...
    def paused(self) -> None: ...


class TerminalTurn:
    """Reads events, tells the view, and remembers the outcome, also of a turn that is stopped half way.

    Args:
        known_artifacts: delivered by earlier turns.
        known_messages: the thread's, when the turn had begun already: they are not shown again, and it begins with the
            calls among them that have no result yet.
        known_todos: the thread's plan, which is shown again only when it changes.
    """

    def __init__(
        self,
        view: TurnView,
        *,
        known_artifacts: Iterable[str] = (),
        known_messages: Sequence[Mapping[str, Any]] = (),
        known_todos: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.outcome = TurnOutcome(todos=[*known_todos])
        self._view = view
        self._known_artifacts = set(known_artifacts)
        self._tools: dict[str, ToolRun] = {}
        self._presented: set[str] = set()
        self._message_id: str | None = None
        self._waiting = False
        self._texts: list[str] = []
        self._started = time.monotonic()
        self._known_messages = {message["id"] for message in known_messages if message.get("id")}
        self._expect(unanswered_calls(known_messages))

    async def play(self, events: AsyncGenerator[StreamEvent, None]) -> TurnOutcome:
        """Show every event; return the outcome when the stream ends. It is closed at the end."""
        try:
            async with aclosing(events):
                async for event in events:
                    self._feed(event.type, event.data)
        finally:
            self._end_message()
            self.outcome.text = "".join(self._texts).strip()
            if self.outcome.error and self.outcome.text == self.outcome.error["message"].strip():
                self.outcome.text, self.outcome.error_told = "", True
            self.outcome.seconds = time.monotonic() - self._started
        return self.outcome

    def _feed(self, kind: str, data: Mapping[str, Any]) -> None:
        is_silence = kind == "custom" and data.get("type") == "llm_waiting"
        if is_silence or self._waiting:
            self._waiting = is_silence
            self._view.waiting(data["seconds"] if is_silence else None)
        match kind:
            case "messages-tuple" if data["id"] not in self._known_messages:
                if data["type"] == "ai":
                    self._assistant(data)
                elif data["type"] == "tool":
                    self._tool_result(data)
            case "custom":
                self._custom(data)
            case "values":
                self._values(data)
            case "end":
                self._ended(data)
            case _:
                pass

    def _ended(self, data: Mapping[str, Any]) -> None:
        before, reason = self.outcome.usage, data.get("stop_reason")
        self.outcome.usage = {key: before.get(key, 0) + number for key, number in data["usage"].items()}
        self.outcome.error = data["error"]
        self.outcome.verification, self.outcome.refused = data.get("verification"), data.get("refused") or ()
        self.outcome.waiting = reason == "interrupt"
        self.outcome.unaccepted = reason == "checks_failed"
        if self.outcome.waiting:
            self._view.paused()
        if reason in CUT_OFF:
            self._end_message()
            self._view.notice(CUT_OFF[reason])

    def _assistant(self, data: Mapping[str, Any]) -> None:
        if data["id"] != self._message_id:
            self._end_message()
            self._message_id, self._texts = data["id"], []
        if reasoning := data.get("reasoning_content"):
            self._view.thinking(reasoning)
        if (text := data["content"]) and not data.get("error"):
            self._texts.append(text)
            self._view.text(text)
        calls = data.get("tool_calls") or ()
        if calls:
            self._end_message()
        self._expect(calls)

    def _expect(self, calls: Iterable[Mapping[str, Any]]) -> None:
        """Show calls as running."""
        for call in calls:
            tool = ToolRun(call["id"], call["name"], call["args"])
            if tool.id not in self._tools:
                self._tools[tool.id] = tool
                self._view.tool_started(tool)

    def _end_message(self) -> None:
        if self._message_id is not None:
            self._view.message_ended()

    def _tool_result(self, data: Mapping[str, Any]) -> None:
        call_id, content = data["tool_call_id"], data["content"]
        tool = self._tools.get(call_id) or ToolRun(call_id, data["name"] or "?", {})
        tool.result, tool.ended, tool.failed = content, time.monotonic(), is_failure(data)
        if data["name"] == "ask_clarification":
            self._texts = [content]
        elif data["name"] == "present_files" and not tool.failed:
            # The state stores a path with exactly one leading slash.
            self._presented.update("/" + path.lstrip("/") for path in tool.args.get("filepaths") or ())
        self._view.tool_finished(tool)

    def _custom(self, data: Mapping[str, Any]) -> None:
        kind = data.get("type")
        if kind == "tool_output":
            tool = self._tools.get(data["tool_call_id"])
            if tool is not None and tool.result is None:
                tool.output = (tool.output + data["text"])[-KEPT_LIVE_OUTPUT:]
        elif kind == "task_running" and (tool := self._tools.get(data["task_id"])) is not None:
            tool.output = doing(data["message"]) or tool.output
        elif kind == "connection":
            self._view.notice(data["message"])
        elif kind == "llm_retry":
            self._view.notice(retry_notice(data))
        elif kind == "acceptance_checks":
            self._end_message()
            for check in data["results"]:
                passed = "passed" if check["passed"] else f"failed:\n{check['output']}"
                self._view.notice(f"Check {check['check']} {passed}")
        elif kind == "token_usage" and (cost := data.get("cost")):
            self.outcome.cost[cost["currency"]] = self.outcome.cost.get(cost["currency"], 0.0) + cost["amount"]

    def _values(self, data: Mapping[str, Any]) -> None:
        self.outcome.artifacts = [
            path for path in data["artifacts"] if path not in self._known_artifacts or path in self._presented
        ]
        if data["todos"] != self.outcome.todos:
            before, self.outcome.todos = self.outcome.todos, data["todos"]
            self._view.todos(self.outcome.todos, before)


def doing(message: Mapping[str, Any]) -> str:
    """What a subagent says that it does, on one line."""
    args: list[Mapping[str, Any]] = [call.get("args") or {} for call in message.get("tool_calls") or ()]
    words = [str(each.get("description") or each.get("path") or "") for each in args]
    text = message.get("content")
    return ", ".join(filter(None, words)) or (" ".join(text.split()) if isinstance(text, str) else "")


def is_failure(message: Mapping[str, Any]) -> bool:
    """Whether a tool message tells of a failure: by its status, or by the `Error: ` that every tool begins one with."""
    return message["status"] == "error" or message["content"].startswith("Error: ")


def unanswered_calls(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tool calls of a thread's last step that have no result yet."""
    answered = {message["tool_call_id"] for message in messages if message["type"] == "tool"}
    last = next((message for message in reversed(messages) if message["type"] == "ai"), {})
    return [call for call in last.get("tool_calls") or () if call["id"] not in answered]


def retry_notice(data: Mapping[str, Any]) -> str:
    """The sentence for an ``llm_retry`` event."""
    sentence = data["message"].rstrip(". ")
    if data["wait_ms"]:
        sentence += f" in {data['wait_ms'] / 1000:.0f} s"
    if data["max_attempts"] > 1:
        sentence += f" (attempt {data['attempt']} of {data['max_attempts']})"
    return sentence + "."
