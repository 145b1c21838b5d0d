"""Conversations of platforms and the threads that they go on in."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from deerflow.errors import ConflictError
from deerflow.features.channels.types import Inbound
from deerflow.identity import ID_PATTERN, Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_conversations, utc_now
from deerflow.storage.threads import ThreadRepository, find

REPLY_CHAINS = frozenset({"telegram", "dingtalk"})
"""Platforms whose groups have no topics of their own: a message begins one, replies to it or to us stay in it."""
RECENT = 500
"""Messages of ours in a chat among which the beginning of a chain of replies is looked for."""
EVERYONE = ""
"""``user_id`` of conversations that all people of a group share."""


@dataclass(frozen=True, slots=True)
class ChatConversation:
    """A conversation and the thread that it goes on in.

    Args:
        topic: of the platform, or the message that began a chain of replies.
        user_id: whose it is; empty: of all in the group.
        thread_id: None: the next message begins one.
        agent, model, mode: that a person chose here; None: those of the channel.
    """

    connection_id: str
    chat: str
    topic: str
    user_id: str
    thread_id: str | None
    agent: str | None
    model: str | None
    mode: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.connection_id, self.chat, self.topic, self.user_id


_WHERE = "connection_id = ? AND chat = ? AND topic = ? AND user_id = ?"


class Conversations:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadRepository(database)

    async def of(
        self, kind: str, connection_id: str, message: Inbound, principal: Principal, *, shared: bool
    ) -> ChatConversation:
        """Return the conversation that a message belongs to.

        Args:
            shared: all people of a group share its threads.
        """

        def job(connection: Connection) -> ChatConversation:
            topic = _topic(connection, kind, connection_id, message)
            whose = EVERYONE if shared and not message.place.is_private else principal.user_id
            key, now = (connection_id, message.place.chat, topic, whose), utc_now()
            if (found := _find(connection, key)) is not None:
                return found
            made = ChatConversation(*key, None, None, None, None, now, now)
            sql.insert(connection, channel_conversations, asdict(made), "ON CONFLICT DO NOTHING")
            return _find(connection, key) or made

        return await self._database.write(job)

    async def with_thread(
        self, conversation: ChatConversation, principal: Principal, message_id: str
    ) -> ChatConversation:
        """Return the conversation with its thread, which a message begins if there is none: one, also at the second try."""
        if conversation.thread_id is not None:
            return conversation
        thread_id = id_of(conversation.connection_id, f"thread/{conversation.chat}/{conversation.topic}/{message_id}")
        try:
            await self._threads.create(principal, thread_id)
        except ConflictError:  # the account belonged to another person when the message came first
            thread_id = str(uuid.uuid4())
            await self._threads.create(principal, thread_id)

        def job(connection: Connection) -> ChatConversation:
            sql.update(
                connection, channel_conversations, {"thread_id": thread_id, "updated_at": utc_now()},
                f"{_WHERE} AND thread_id IS NULL", *conversation.key,
            )  # fmt: skip
            return _find(connection, conversation.key) or replace(conversation, thread_id=thread_id)

        return await self._database.write(job)

    async def renew(self, conversation: ChatConversation) -> ChatConversation:
        """Begin a new thread with the next message; agent, model and mode stay."""
        return await self.change(conversation, thread_id=None)

    async def change(self, conversation: ChatConversation, **changes: Any) -> ChatConversation:
        row = {**changes, "updated_at": utc_now()}
        await self._database.write(sql.update, channel_conversations, row, _WHERE, *conversation.key)
        return replace(conversation, **row)

    async def of_thread(self, thread_id: str) -> ChatConversation | None:
        """Return the conversation that a thread is of."""
        tail = "WHERE thread_id = ? ORDER BY updated_at DESC"
        return await self._database.read(
            lambda connection: sql.first(connection, ChatConversation, channel_conversations, tail, thread_id)
        )

    async def owner(self, conversation: ChatConversation) -> str:
        """Return whose thread it is: that of the person, or of the one who began it in a shared chat."""
        if conversation.user_id != EVERYONE or conversation.thread_id is None:
            return conversation.user_id
        thread = await self._database.read(find, conversation.thread_id)
        return thread.user_id if thread is not None else EVERYONE

    async def adopt(self, connections: Mapping[str, str], store: Mapping[str, Any], owner: str) -> int:
        """Take over conversations of the reference's ``store.json`` and return how many are new.

        What is here already counts more, and so does a thread that is not here. The reference's threads have one owner.

        Args:
            connections: ids of our connections by the reference's names of channels.
            store: ``{"channel:chat[:topic]": {"thread_id": …}}``.
        """

        def job(connection: Connection) -> int:
            taken = 0
            for key, entry in store.items():
                name, _, place = str(key).partition(":")
                thread_id = str(entry.get("thread_id") or "") if isinstance(entry, Mapping) else ""
                if name not in connections or not place or not ID_PATTERN.fullmatch(thread_id):
                    continue
                thread = find(connection, thread_id)
                if thread is None or thread.user_id != owner:
                    continue
                chat, _, topic = place.partition(":")
                now = utc_now()
                row = ChatConversation(connections[name], chat, topic, owner, thread_id, None, None, None, now, now)
                tail = "ON CONFLICT DO NOTHING"
                taken += sql.insert(connection, channel_conversations, asdict(row), tail).rowcount
            return taken

        return await self._database.write(job)


def id_of(connection_id: str, what: str) -> str:
    """Return an id that follows from a connection and what happened in it, so that a second try makes nothing twice."""
    digest = hashlib.sha256(f"{connection_id}\n{what}".encode(errors="replace")).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


def _topic(connection: Connection, kind: str, connection_id: str, message: Inbound) -> str:
    place = message.place
    if place.topic or place.is_private or kind not in REPLY_CHAINS:
        return place.topic
    if not message.reply_to:
        return message.message_id
    return _root(connection, connection_id, place.chat, message.reply_to) or message.reply_to


def _root(connection: Connection, connection_id: str, chat: str, reply_to: str) -> str:
    """Return the beginning of the chain that a message of the chat, or an answer of ours, belongs to; empty if it is not known."""
    of_person = "SELECT r.thread_id FROM channel_inbox i JOIN runs r ON r.run_id = i.run_id WHERE i.connection_id = ? AND i.message_id = ?"
    row = sql.execute(connection, of_person, connection_id, reply_to).fetchone()
    thread_id = row[0] if row else None
    if thread_id is None:
        ours = """SELECT r.thread_id, o.ref FROM channel_outbox o JOIN runs r ON r.run_id = o.turn
            WHERE o.connection_id = ? AND o.chat = ? AND o.ref IS NOT NULL ORDER BY o.id DESC LIMIT ?"""
        sent = sql.execute(connection, ours, connection_id, chat, RECENT).fetchall()
        thread_id = next((thread for thread, ref in sent if reply_to in map(str, sql.loads(ref).values())), None)
    topic = "SELECT topic FROM channel_conversations WHERE thread_id = ? AND connection_id = ? AND chat = ?"
    row = sql.execute(connection, topic, thread_id, connection_id, chat).fetchone() if thread_id else None
    return row[0] if row else ""


def _find(connection: Connection, key: tuple[str, str, str, str]) -> ChatConversation | None:
    return sql.first(connection, ChatConversation, channel_conversations, f"WHERE {_WHERE}", *key)
