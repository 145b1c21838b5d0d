"""What follows from the end of a run, recorded in the transaction that ends it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage

from deerflow.features.titles import enqueue_title
from deerflow.features.webhooks import enqueue_webhook
from deerflow.identity import Principal
from deerflow.storage import search as message_search
from deerflow.storage.runs import Ending, Run, RunStatus
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import set_title
from deerflow.tasks.job_rows import enqueue
from deerflow.threads.checkpoint import provisional_title

if TYPE_CHECKING:
    from sqlalchemy import Connection

DELETE_THREAD = "delete_thread"
"""Kind of the job that removes a thread which was made for one run only."""
KEPT_FOR_READERS = timedelta(minutes=5)


def follow_up(connection: Connection, run: Run, ending: Ending, joined: Sequence[BaseMessage]) -> None:
    """Make what was said findable, name the thread, and ask for the work that is to be done afterwards.

    Args:
        joined: the messages that the run added to its thread.
    """
    principal = Principal(run.user_id, source="internal")
    message_search.index(connection, run.thread_id, run.user_id, joined)
    people = [message for message in joined if isinstance(message, HumanMessage)]
    title = provisional_title(people[0]) if people else ""
    named = title and set_title(connection, run.thread_id, title, only_if_missing=True)
    if named and ending.status is RunStatus.SUCCESS:
        enqueue_title(
            connection,
            principal,
            run.thread_id,
            user_text=people[0].text,
            assistant_text=ending.last_ai_message or "",
        )
    afterwards(connection, run)


def afterwards(connection: Connection, run: Run) -> None:
    """What follows from the end of any run, also of one that never began or was undone."""
    principal = Principal(run.user_id, source="internal")
    if webhook := run.kwargs["request"].get("webhook"):
        enqueue_webhook(connection, principal, run.run_id, webhook)
    if run.kwargs.get("delete_thread"):
        payload = {"user_id": run.user_id}
        enqueue(connection, DELETE_THREAD, run.thread_id, payload, due_at=utc_now() + KEPT_FOR_READERS)
