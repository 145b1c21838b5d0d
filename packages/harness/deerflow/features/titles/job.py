"""Titles of threads, by a model."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

from langchain_core.messages import HumanMessage
from sqlalchemy import Connection

from deerflow.config import AppConfig
from deerflow.errors import NotFoundError
from deerflow.features.ask import Asker, unwrapped
from deerflow.identity import Principal
from deerflow.models.thoughts import without_thoughts
from deerflow.storage.database import Database
from deerflow.storage.sql import storable
from deerflow.storage.threads import changeable_thread, set_title, shortened
from deerflow.tasks.jobs import Job, enqueue
from deerflow.threads.checkpoint import provisional_title

logger = logging.getLogger(__name__)

TITLE = "title"
"""The kind of job."""
TITLE_EXCERPT = 500
"""Characters of each message that the model reads."""
UNTITLED = "New Conversation"
Announce = Callable[[Principal, str, str], Awaitable[None]]


def enqueue_title(
    connection: Connection,
    principal: Principal,
    thread_id: str,
    *,
    user_text: str,
    assistant_text: str,
    first_text: str | None = None,
    due_at: datetime | None = None,
) -> None:
    """Ask for a title, in the transaction that ends the thread's first good turn. Titles that a person gave are kept.

    Args:
        first_text: of the message that the thread begins with, if that is another one.
        due_at: not before then; None: at once.
    """
    payload = {
        "user_id": principal.user_id,
        "user_text": storable(user_text)[:TITLE_EXCERPT],
        "assistant_text": without_thoughts(storable(assistant_text))[:TITLE_EXCERPT],
        "first_text": storable(first_text or user_text)[:TITLE_EXCERPT],
    }
    enqueue(connection, TITLE, thread_id, payload, due_at=due_at)


class TitleJob:
    """Handler of ``title`` jobs.

    Args:
        config: the snapshot now in force.
        announce: called with owner, thread id and title when the title has changed: to write it into the thread's
            state and to notify those who watch. It is called again if it fails.
    """

    def __init__(
        self, database: Database, ask: Asker, config: Callable[[], Awaitable[AppConfig]], announce: Announce
    ) -> None:
        self._database = database
        self._ask = ask
        self._config = config
        self._announce = announce

    async def __call__(self, job: Job) -> None:
        config = await self._config()
        if not config.title.enabled:
            return
        user_text, assistant_text = job.payload["user_text"], job.payload["assistant_text"]
        first_text = job.payload.get("first_text", user_text)
        provisional = provisional_title(HumanMessage(first_text)) or UNTITLED
        principal = Principal(job.payload["user_id"], source="internal")
        title = await self._made(config, principal, user_text, assistant_text) or provisional

        def save(connection: Connection) -> bool:
            try:
                thread = changeable_thread(connection, principal, job.key, lock=True)
            except NotFoundError:
                return False
            # Whoever renamed the thread while the model thought has the last word.
            if thread.title not in (None, "", shortened(provisional), shortened(title)):
                return False
            return thread.title == shortened(title) or set_title(connection, job.key, title)

        if await self._database.write(save):
            await self._announce(principal, job.key, shortened(title))

    async def _made(self, config: AppConfig, principal: Principal, user_text: str, assistant_text: str) -> str:
        """The model's title; empty if there is none to be had."""
        wanted = config.title
        if any(model.is_demo for model in config.models):
            return ""
        prompt = (
            wanted.prompt_template.replace("{max_words}", str(wanted.max_words))
            # In this order: what the assistant said cannot stand in for what the user said.
            .replace("{assistant_msg}", "\0assistant")
            .replace("{user_msg}", user_text)
            .replace("\0assistant", assistant_text)
        )
        try:
            answer = await self._ask(config, principal, prompt, model_name=wanted.model_name, purpose="title_agent")
        except Exception as error:
            logger.warning("No title from the model, the provisional one stays: %s", error)
            return ""
        return tidy_title(answer, wanted.max_chars)


def tidy_title(answer: str, max_chars: int) -> str:
    """Return the first line of what a model answered, without quotes and the like, at most ``max_chars`` long."""
    found = unwrapped(answer, "title")
    text = found if isinstance(found, str) else ""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = " ".join(line.strip("\"'`*#“”„«»‘’「」『』 ").split()).removesuffix(".")
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"
