"""Endings of turns in a chat: answered, stopped, failed, out of budget, or waiting for a decision or an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from deerflow.features.channels.decisions import OPTION, Card, cards_of
from deerflow.features.channels.progress import Progress, failure
from deerflow.storage.runs import CANCELLED, Run, RunStatus
from deerflow.subagents.task import LOOP

How = Literal["answered", "stopped", "failed", "budget", "decision", "question"]


@dataclass(frozen=True, slots=True)
class ChatEnding:
    """Content of the last message of a run.

    Args:
        cards: what waits for a decision; the first one joins the text.
        options: choices of a question of the agent.
    """

    how: How
    text: str
    cards: Sequence[Card] = ()
    options: Sequence[tuple[str, str]] = ()


def ending_of(run: Run | None, progress: Progress, waiting: Mapping[str, Any], page: str) -> ChatEnding:
    """Return how a run has ended.

    Args:
        run: None: it was deleted, with its conversation.
        waiting: what its thread waits for, ``{interrupts, question}``.
        page: of the conversation; may be empty.
    """
    answer = progress.answer
    if run is None:
        return ChatEnding("stopped", "This conversation was deleted.")
    if run.stop_reason == CANCELLED or (run.status is RunStatus.INTERRUPTED and run.stop_reason != "interrupt"):
        return ChatEnding("stopped", f"{answer}\n\n⏹ Stopped.".strip())
    if run.stop_reason == "interrupt" and (cards := cards_of(waiting, page)):
        return ChatEnding("decision", answer, cards=cards)
    if run.status in (RunStatus.ERROR, RunStatus.TIMEOUT) or progress.error:
        fallback = "It took too long." if run.status is RunStatus.TIMEOUT else run.error or ""
        message = str((progress.error or {}).get("message") or fallback or answer)
        before = "" if answer in message or message in answer else answer
        return ChatEnding("failed", f"{before}\n\n{failure({**(progress.error or {}), 'message': message})}".strip())
    if run.stop_reason == "spending_limit":
        limit = "The spending limit is reached. Ask an administrator, or go on tomorrow."
        return ChatEnding("budget", f"{answer}\n\n💳 {limit}".strip())
    if run.stop_reason == LOOP:
        return ChatEnding("stopped", f"{answer}\n\n⏹ Stopped: the agent repeated itself.".strip())
    if progress.is_question:
        options = (waiting.get("question") or {}).get("options") or ()
        return ChatEnding("question", answer, options=[(OPTION, f"{n}. {each}") for n, each in enumerate(options, 1)])
    return ChatEnding("answered", answer or _without_text(progress, page))


def _without_text(progress: Progress, page: str) -> str:
    done = f"Done, in {len(progress.steps)} steps." if progress.steps else "Done."
    return done if progress.files or not page else f"{done} {page}"
