"""What the person says, as the model gets it: when a message was sent, which files and prompt came with it, and what was said meanwhile."""

from __future__ import annotations

from langchain_core.messages import AnyMessage, HumanMessage

from deerflow.agents.middlewares.base import Middleware, Request
from deerflow.agents.transcript import (
    COMPACTION,
    INJECTED_NAMES,
    TURN_IDS,
    MessageMemo,
    Transcript,
    system_note,
    thread_mark,
)
from deerflow.agents.turn import DURING_WORK, FACTS, PICTURES, PROMPT, QUOTED, pictures_of, render_facts
from deerflow.context import RunContext
from deerflow.context.arrivals import Arrivals
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
    for quoted in facts.get(QUOTED, ()):
        text += f"\n\n{admit(Untrusted(quoted['text'], quoted['source']), mark)}"
    if isinstance(message.content, str):
        content: str | list[str | dict[str, object]] = f"{text}\n\n{message.content}"
    else:
        content = [{"type": "text", "text": text}, *message.content]  # type: ignore[list-item]
    kept = {key: message.additional_kwargs[key] for key in (COMPACTION, *TURN_IDS) if key in message.additional_kwargs}
    if pictures := pictures_of(facts):
        kept[PICTURES] = pictures
    return message.model_copy(update={"content": content, "additional_kwargs": kept})


class SteeringMiddleware(Middleware):
    """Takes the messages that wait for the run, for the lead agent; one that the transcript has already (the run went on after a crash) is not said twice."""

    async def arrivals(self, request: Request) -> list[AnyMessage]:
        context = request.runtime.context
        if context is None or context.subagent is not None or (arrivals := context.of(Arrivals)) is None:
            return []
        if not (waiting := await arrivals.take()):
            return []
        said = {message.id for message in request.messages}
        arrived = [message for message in waiting if message.id not in said]
        is_at_work = bool(request.messages) and not isinstance(request.messages[-1], HumanMessage)
        return [_during_work(message) if is_at_work else message for message in arrived]


def _during_work(message: AnyMessage) -> AnyMessage:
    if message.name in INJECTED_NAMES:
        return message
    facts = {**message.additional_kwargs.get(FACTS, {}), DURING_WORK: True}
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, FACTS: facts}})
