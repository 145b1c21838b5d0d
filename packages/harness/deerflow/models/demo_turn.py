"""What the demo model must know of a conversation: the current request, its files, and how far the run has come."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from deerflow.models.reminders import is_reminder

UPLOADS = "/mnt/user-data/uploads/"
EARLIER_FILES = "Uploaded earlier:"
MAX_FILES = 3
CALL_PREFIX = "demo-"
PATH_LINE = re.compile(r"Path:[ \t]*(" + UPLOADS + r"[^\r\n]+)")
BARE_PATH = re.compile(UPLOADS + r"[^\s\"'`<>()\[\]{},;]+")
FACTS = re.compile(r"DEMO-FACTS (\{.*\})")


@dataclass(frozen=True, slots=True)
class Result:
    """What came back from one call of this run."""

    text: str
    failed: bool
    path: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """The part of a conversation that belongs to the current request."""

    request: str
    files: tuple[str, ...]
    """Paths in the sandbox, those named in the request first."""
    results: Mapping[str, Result]
    """By step; a step that was begun is in it, whatever came of it."""
    is_first: bool
    has_new_files: bool
    ran_before: bool
    key: str
    """Different for different conversations and for every further message in one."""

    def done(self, step: str) -> bool:
        return step in self.results

    def worked(self, step: str) -> bool:
        return step in self.results and not self.results[step].failed

    @property
    def facts(self) -> dict[str, Any] | None:
        """The figures in the output of the inspection, if it gave any."""
        result = self.results.get("inspect")
        return parse_facts(result.text) if result else None

    def call_id(self, step: str) -> str:
        return f"{CALL_PREFIX}{step}-{self.key}"


def read_turn(messages: Sequence[BaseMessage]) -> Turn:
    start = _turn_start(messages)
    human = messages[start] if start < len(messages) else HumanMessage("")
    request = visible_request(human.text)
    new, listed = _files_of(human)
    earlier = [*listed, *(path for message in messages[:start] for path in _files_of(message)[0])]
    mine = [call["id"] or "" for m in messages[:start] if isinstance(m, AIMessage) for call in m.tool_calls]
    return Turn(
        request=request,
        files=_ordered(request, new or list(dict.fromkeys(earlier))),
        results=_results(messages[start:]),
        is_first=not any(isinstance(message, AIMessage) for message in messages[:start]),
        has_new_files=bool(set(new) - set(earlier)),
        ran_before=any(call_id.startswith(CALL_PREFIX) for call_id in mine),
        key=_key(messages),
    )


def visible_request(text: str) -> str:
    """What the person wrote, without the blocks of facts that were added to it."""
    without = re.sub(
        r"<(uploaded_files|system_reminder|current_date|memory)\b[^>]*>.*?</\1>", "", text, flags=re.DOTALL
    )
    return without.strip()


def parse_facts(text: str) -> dict[str, Any] | None:
    found = FACTS.search(text)
    try:
        facts = json.loads(found[1]) if found else None
    except ValueError:
        return None
    keys = {"tables", "others"}
    return facts if isinstance(facts, dict) and keys <= facts.keys() else None


def _turn_start(messages: Sequence[BaseMessage]) -> int:
    humans = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    people = [index for index in humans if not is_reminder(messages[index])]
    return (people or humans or [0])[-1]


def _files_of(message: BaseMessage) -> tuple[list[str], list[str]]:
    """Paths of the files that came with a message, and of those that it lists as earlier ones."""
    if not isinstance(message, HumanMessage):
        return [], []
    new, _, earlier = message.text.partition(EARLIER_FILES)
    attached = [UPLOADS + name for name in _attached(message)]
    return attached or _paths(new), _paths(earlier)


def _paths(text: str) -> list[str]:
    listed = [path.rstrip() for path in PATH_LINE.findall(text)]
    bare = [path.rstrip(".:!?") for path in BARE_PATH.findall(PATH_LINE.sub("", text))]
    return list(dict.fromkeys([*listed, *bare]))


def _attached(message: BaseMessage) -> list[str]:
    files = message.additional_kwargs.get("files")
    names = [file.get("filename") for file in files if isinstance(file, Mapping)] if isinstance(files, list) else []
    return [name for name in names if isinstance(name, str) and name and "/" not in name]


def _ordered(request: str, paths: Sequence[str]) -> tuple[str, ...]:
    named = [path for path in paths if path.rsplit("/", 1)[-1] in request]
    return tuple(dict.fromkeys([*named, *paths]))[:MAX_FILES]


def _results(messages: Sequence[BaseMessage]) -> dict[str, Result]:
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    results: dict[str, Result] = {}
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            if (call["id"] or "").startswith(CALL_PREFIX):
                step = (call["id"] or "").split("-")[1]
                results[step] = _result(answers.get(call["id"] or ""), str(call["args"].get("path", "")))
    return results


def _result(message: ToolMessage | None, path: str) -> Result:
    text = message.text if message else ""
    failed = message is None or message.status == "error" or text.lstrip().startswith("Error")
    return Result(text, failed, path)


def _key(messages: Sequence[BaseMessage]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        digest.update(f"{message.type}\0{message.id}\0{message.text}\0{len(messages)}\1".encode("utf-8", "replace"))
    return digest.hexdigest()[:12]
