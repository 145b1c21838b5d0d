"""Tells the model when a message was sent, which files came with it, and what a prompt that it calls says."""

from __future__ import annotations

from langchain_core.messages import AnyMessage, HumanMessage

from deerflow.agents.marks import system_note, thread_mark
from deerflow.agents.middlewares.base import Middleware
from deerflow.agents.summaries import COMPACTION
from deerflow.agents.transcript import MessageMemo, Transcript
from deerflow.agents.turn import FACTS, PROMPT, render_facts
from deerflow.context import RunContext
from deerflow.security.door import Untrusted, admit


class UploadsMiddleware(Middleware):
    """Puts the facts recorded with each human message before its text, in the request only."""

    def __init__(self) -> None:
        super().__init__()
        self._render = MessageMemo(_with_facts)

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        changed = False
        messages, mark = list(transcript.messages), thread_mark(transcript.messages)
        for index, message in enumerate(messages):
            if _has_facts(message):
                messages[index], changed = self._render(message, mark), True
        return transcript.with_messages(messages) if changed else transcript


def _has_facts(message: AnyMessage) -> bool:
    return type(message) is HumanMessage and FACTS in message.additional_kwargs


def _with_facts(message: AnyMessage, mark: str) -> AnyMessage:
    facts = message.additional_kwargs[FACTS]
    text = system_note(render_facts(facts), mark)
    if called := facts.get(PROMPT, {}).get("text"):
        text += f"\n\n{admit(Untrusted(called, facts[PROMPT]['name']), mark)}"
    if isinstance(message.content, str):
        content: str | list[str | dict[str, object]] = f"{text}\n\n{message.content}"
    else:
        content = [{"type": "text", "text": text}, *message.content]  # type: ignore[list-item]
    kept = {key: message.additional_kwargs[key] for key in (COMPACTION,) if key in message.additional_kwargs}
    return message.model_copy(update={"content": content, "additional_kwargs": kept})
