"""The state of a turn as a chat shows it: what the agent does, its plan, and how its answer begins. Built from assistant text alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deerflow.errors import RequestError
from deerflow.events.streams.client_events import StreamEvent, TurnEvents
from deerflow.features.channels.types import Caps
from deerflow.security.text import inline
from deerflow.tools.clarification import NAME as ASK

TAIL = 1500
"""Characters of the answer that progress shows, the newest."""
MOST_STEPS = 4
HIDDEN = frozenset({"write_todos", "present_files", ASK})
"""Tools whose effect is shown instead."""
WORKING = "Working on it …"
_MARKS = {"completed": "✓", "in_progress": "▸", "waiting": "?"}
_VERBS = {
    "bash": "Run a command",
    "read_file": "Read a file",
    "write_file": "Write a file",
    "str_replace": "Edit a file",
    "web_search": "Search the web",
    "web_fetch": "Read a page",
    "task": "Delegate",
}


@dataclass
class Progress:
    """A turn so far.

    Args:
        working: shown before there is anything else.
    """

    working: str = WORKING
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """The agent's texts by message, in order."""
    last: str = ""
    """The message that is the answer so far."""
    is_question: bool = False
    todos: Sequence[Mapping[str, Any]] = ()
    steps: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])
    """Calls by id: what they do, and whether they have ended."""
    presented: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Virtual paths by the call that presents them."""
    error: Mapping[str, Any] | None = None
    stop_reason: str | None = None
    has_ended: bool = False
    _events: TurnEvents = field(default_factory=lambda: TurnEvents(lambda: None))

    @property
    def answer(self) -> str:
        return self.texts.get(self.last, "").strip()

    @property
    def files(self) -> list[str]:
        """Return what the agent handed over, each path once."""
        return list(dict.fromkeys(path for paths in self.presented.values() for path in paths))

    def take(self, batch: Sequence[Any]) -> bool:
        """Take events of the run's log and return whether something of them is shown."""
        changed = False
        for event in self._events.of(batch):
            changed |= self._take(event)
        return changed

    def _take(self, event: StreamEvent) -> bool:
        data = event.data
        if event.type == "end":
            self.has_ended, self.stop_reason = True, data["stop_reason"]
            self.error = data["error"] or self.error
            return True
        if event.type != "messages-tuple":
            return False
        if data["type"] == "ai":
            return self._assistant(data)
        return data["type"] == "tool" and self._result(data)

    def _assistant(self, data: Mapping[str, Any]) -> bool:
        if content := data["content"]:
            self.last, self.is_question = data["id"] or "", False
            self.texts[self.last] = self.texts.get(self.last, "") + content
        for call in data.get("tool_calls") or ():
            if call["name"] == "write_todos" and isinstance(todos := call["args"].get("todos"), list):
                self.todos = [each for each in todos if isinstance(each, Mapping)]
            elif call["name"] not in HIDDEN:
                self.steps[str(call["id"])] = _step(call), False
            elif call["name"] == "present_files":
                paths = call["args"].get("filepaths")
                self.presented[str(call["id"])] = [str(path) for path in paths] if isinstance(paths, list) else []
        return bool(content or data.get("tool_calls"))

    def _result(self, data: Mapping[str, Any]) -> bool:
        call_id = str(data["tool_call_id"])
        if data["name"] == ASK and data.get("status") != "error":
            self.last, self.is_question = f"question/{call_id}", True
            self.texts[self.last] = data["content"]
            return True
        if data.get("status") == "error":
            self.presented.pop(call_id, None)
        if call_id not in self.steps:
            return False
        self.steps[call_id] = self.steps[call_id][0], True
        return True

    def shown(self) -> str:
        """Return the progress as Markdown."""
        blocks: list[str] = []
        if self.todos:
            blocks.append("\n".join(_todo(each) for each in self.todos))
        if open_steps := [f"▸ {what}" for what, ended in self.steps.values() if not ended][-MOST_STEPS:]:
            blocks.append("\n".join(open_steps))
        elif self.steps:
            blocks.append(f"✓ {len(self.steps)} {'step' if len(self.steps) == 1 else 'steps'}")
        if text := self.answer:
            blocks.append(text if len(text) <= TAIL else f"… {text[-TAIL:]}")
        return "\n\n".join(blocks) or self.working


def failure(error: Mapping[str, Any]) -> str:
    """Return how a turn failed and what to do."""
    message = str(error.get("message") or "The server could not finish it.").strip()
    kind = inline(str(error.get("kind") or "error"), 40)
    return f"⚠️ Failed ({kind}): {message}\n\nWrite again to go on from the last finished step, or /new to begin again."


def refusal(error: RequestError) -> str:
    """Return why a message did not become a turn."""
    return f"⚠️ This could not begin: {error}"


def shows(caps: Caps) -> bool:
    """Return whether a platform can show progress: by editing the placeholder."""
    return caps.edits and caps.edit_every > 0


def _todo(todo: Mapping[str, Any]) -> str:
    mark = _MARKS.get(str(todo.get("status")), "○")
    return f"{mark} {inline(str(todo.get('content') or ''), 120)}"


def _step(call: Mapping[str, Any]) -> str:
    args = call["args"] if isinstance(call["args"], Mapping) else {}
    name = str(call["name"])
    what = (
        args.get("description")
        if name in ("bash", "task")
        else args.get("query") or args.get("url") or args.get("path")
    )
    verb = _VERBS.get(name, f"Use {inline(name, 40)}")
    return f"{verb}: {inline(str(what), 80)}" if what else verb
