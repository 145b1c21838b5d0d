"""Titles of threads: the first words of the first message at once, and one by a model when the first turn has come to a good end."""

from __future__ import annotations

from datetime import datetime, timedelta

from langchain_core.messages import HumanMessage
from sqlalchemy import Connection

from deerflow.agents.transcript import is_person
from deerflow.capability import Capability, EndedRun
from deerflow.features.titles.job import TITLE, TitleJob, enqueue_title
from deerflow.identity import Principal
from deerflow.storage.runs import Run, first_words, is_first_good_turn
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import find, set_title, shortened
from deerflow.threads.checkpoint import provisional_title

__all__ = ["TITLE", "Titles"]

TITLE_AFTER = timedelta(seconds=2)
"""How long the thread's first good turn is over before the model is asked for a title; until then the provisional one stands."""


class Titles(Capability):
    name = "titles"

    def __init__(self, job: TitleJob) -> None:
        self.jobs = {TITLE: job}

    def run_ended(self, connection: Connection, ended: EndedRun) -> datetime | None:
        """Name the thread after its first message, and ask for a better name after its first good turn."""
        run = ended.run
        people = [message for message in ended.joined if is_person(message)]
        title = provisional_title(people[0]) if people else ""
        is_named = bool(title) and set_title(connection, run.thread_id, title, only_if_missing=True)
        if not ended.ends_turn or not is_first_good_turn(connection, run):
            return None
        begins = people[0].text if people else ""
        if not is_named or run.turn != run.run_id:
            begins = first_words(connection, run.thread_id, run.turn) or begins
        first = begins if is_named else _first_words_if_title(connection, run)
        if not begins or not first:
            return None
        due, principal = utc_now() + TITLE_AFTER, Principal(run.user_id, source="internal")
        texts = {"user_text": begins, "assistant_text": ended.answer, "first_text": first}
        enqueue_title(connection, principal, run.thread_id, **texts, due_at=due)
        return due


def _first_words_if_title(connection: Connection, run: Run) -> str | None:
    """Return the beginning of the thread's first message if the thread is still called so, or None if the person has named it."""
    first, thread = first_words(connection, run.thread_id), find(connection, run.thread_id)
    provisional = shortened(provisional_title(HumanMessage(first))) if first else None
    return first if thread is not None and thread.title in (None, provisional) else None
