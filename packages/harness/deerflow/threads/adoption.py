"""Conversations of other programs that become threads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.constants import END
from langgraph.types import StateUpdate
from sqlalchemy import Connection

from deerflow.identity import Principal
from deerflow.storage import search, sql
from deerflow.storage.provenance import Source
from deerflow.storage.tables import threads as rows
from deerflow.storage.threads import find, set_title
from deerflow.storage.visibility import may_change
from deerflow.threads.checkpoint import config_of
from deerflow.threads.service import ThreadService, copy_tree

IMPORTED_FROM = "imported_from"
"""Key of a thread's metadata: the program that it comes from."""
UNFINISHED = "import_unfinished"
"""Key of the metadata of a thread that is being imported. The next import goes on with it."""
NODE = "model"
"""The node of the graph that the messages seem to come from."""


@dataclass(frozen=True, slots=True)
class AdoptedConversation:
    """A conversation as it was elsewhere.

    Args:
        thread_id: follows from where it comes from, so that it is imported once.
        origin: the program.
        messages: with ids that stay the same when they are read again.
        files: directories to copy from, by where they go in the thread's own directory.
    """

    thread_id: str
    origin: str
    title: str
    messages: Sequence[AnyMessage]
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, Any]
    artifacts: Sequence[str] = ()
    files: Mapping[str, Path] | None = None


async def adopt(threads: ThreadService, principal: Principal, given: AdoptedConversation) -> bool:
    """Make a thread of a conversation, which can be read, found and continued. Its text counts as text from outside.

    An import that was cut off is repeated as a whole.

    Returns:
        False if the thread is there already; it stays as it is.

    Raises:
        ConflictError: its id belongs to another person, or something uses the thread.
        InvalidRequestError: the metadata cannot be stored.
    """
    metadata = {**given.metadata, IMPORTED_FROM: given.origin}
    made = await threads.repository.create(principal, given.thread_id, metadata={**metadata, UNFINISHED: True})
    if UNFINISHED not in made.metadata:
        return False
    source = Source("client", f"imported from {given.origin}")
    values = {"messages": list(given.messages), "title": given.title, "artifacts": list(given.artifacts)}
    async with threads.states.alone(made):
        await threads.repository.add_sources(made.thread_id, [source])
        await asyncio.to_thread(_copy_files, threads, principal, given)
        # The second step ends the turn: nothing that the last message asks for is done.
        steps = [[StateUpdate(values, NODE)], [StateUpdate(None, END)]]
        await (await threads.graph()).abulk_update_state(config_of(made.thread_id), steps)

        def finish(connection: Connection) -> None:
            thread = find(connection, made.thread_id)
            if thread is None or not may_change(principal, thread):
                return  # deleted meanwhile
            search.index(connection, made.thread_id, principal.user_id, given.messages)
            set_title(connection, made.thread_id, given.title)
            kept = {key: value for key, value in thread.metadata.items() if key != UNFINISHED}
            row = {"metadata": kept, "created_at": given.created_at, "updated_at": given.updated_at}
            sql.update(connection, rows, row, "thread_id = ?", made.thread_id)

        await threads.database.write(finish)
    return True


def _copy_files(threads: ThreadService, principal: Principal, given: AdoptedConversation) -> None:
    thread = threads.paths.thread_dir(given.thread_id, principal.user_id)
    for name, source in (given.files or {}).items():
        threads.paths.remove(thread / name)  # what an import that was cut off has left
        threads.paths.ensure_thread_dirs(given.thread_id, principal.user_id)
        copy_tree(source, thread / name)
