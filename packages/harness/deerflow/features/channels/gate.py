"""Admission: the checks of a message before it is a command, a decision or a turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection

from deerflow.errors import RequestError, TooManyRequestsError
from deerflow.features.channels.bindings import GUEST, HOUR, WRONG_CODE, Bindings, code_in, guest_id
from deerflow.features.channels.config import ChannelsConfig, ConnectionsConfig
from deerflow.features.channels.lines import Line
from deerflow.features.channels.types import Author, Inbound, Place
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database

MOST_IN_A_ROW = 6
"""Answers in a group between two messages of people with an account: bots that do not say so come to an end."""
DISCONNECT = "/disconnect"
UNBOUND, TOO_MUCH, TOO_MANY_CODES = "unbound", "guest limit", "too many codes"
"""Reasons that are named once in a while, in a private chat."""


@dataclass(frozen=True, slots=True)
class Let:
    """The verdict on a message.

    Args:
        principal: the person who acts with it; None: the message goes no further.
        why: it goes no further.
        say: an answer to it; empty: silence.
        notices: what to write to other private chats, ``(connection, chat, text)``.
    """

    principal: Principal | None = None
    why: str = ""
    say: str = ""
    notices: tuple[tuple[str, str, str], ...] = ()


class Gate:
    """Args:
    page: the address of a page, or an empty text if the server does not know its own.
    """

    def __init__(self, database: Database, bindings: Bindings, page: Callable[[str], str]) -> None:
        self._database = database
        self._bindings = bindings
        self._page = page

    async def judge(self, line: Line, message: Inbound, config: ChannelsConfig, connections: ConnectionsConfig) -> Let:
        """Judge a message. A code that connects counts before every list, and a bot never."""
        if message.author.is_bot or message.author.id == line.me.id:
            return Let(why="written by a bot")
        if connections.enabled and (code := code_in(message.text, line.kind)) is not None:
            return await self._connect(line, message, code)
        channel, place = line.channel, message.place
        # Ids of people may be global, and the server be known of the message alone, as on Discord.
        workspace = message.author.workspace or str(message.wake.get("guild") or "")
        if not channel.admits(message.author.id, workspace):
            return Let(why="not on the allow-list")
        if not place.is_private and channel.needs_mention(place.chat) and not message.is_mention:
            return Let(why="not mentioned")
        principal = await self.person(line.kind, message.author, config, connections)
        if principal is None and self._guests(config, connections):
            return await self._too_much(line, config, message)
        if principal is None:
            return await self._unbound(line, message)
        if line.owner not in (None, principal.user_id):
            return Let(why="another person's own channel")
        if not place.is_private and await self._goes_in_circles(line, message, principal):
            return Let(why=f"{MOST_IN_A_ROW} answers in a row without a message of a person with an account")
        if message.text.strip().lower() == DISCONNECT:
            await self._bindings.unbind(line.kind, message.author)
            return Let(why="disconnected", say="This account is no longer connected. /connect CODE connects it again.")
        return Let(principal)

    async def person(
        self,
        kind: str,
        author: Author,
        config: ChannelsConfig,
        connections: ConnectionsConfig,
        *,
        begins: bool = True,
    ) -> Principal | None:
        """Return who acts with an account now: its person, or a guest where guests may.

        Args:
            begins: a turn, which a guest may do so often a day.
        """
        if (principal := await self._bindings.person(kind, author)) is not None:
            return principal
        if not self._guests(config, connections):
            return None
        if not begins:
            return Principal(guest_id(kind, author), "user", "channel")
        return await self._bindings.guest(kind, author, config.guests.messages_per_day)

    def _guests(self, config: ChannelsConfig, connections: ConnectionsConfig) -> bool:
        return config.guests.enabled or not connections.require_bound_identity

    async def _too_much(self, line: Line, config: ChannelsConfig, message: Inbound) -> Let:
        if not message.place.is_private or await self._bindings.has_happened(line.kind, message.author, TOO_MUCH):
            return Let(why=f"{TOO_MUCH}, in silence")
        say = f"Guests may write {config.guests.messages_per_day} messages a day. {self._how()}"
        return Let(why=TOO_MUCH, say=say)

    async def _connect(self, line: Line, message: Inbound, code: str) -> Let:
        if not code:
            return Let(why="asked how to connect", say=self._how() if message.place.is_private else "")
        try:
            bound = await self._bindings.bind(line.kind, message.author, code)
        except TooManyRequestsError as error:
            is_first = not await self._bindings.has_happened(line.kind, message.author, TOO_MANY_CODES, HOUR)
            return Let(why=TOO_MANY_CODES, say=str(error) if is_first and message.place.is_private else "")
        except RequestError as error:
            return Let(why=WRONG_CODE, say=str(error) if message.place.is_private else "")
        notices: tuple[tuple[str, str, str], ...] = ()
        if bound.former is not None:
            text = f"Another person has connected the {line.kind} account that was yours. If that is wrong, connect it again."
            chat = await self._database.read(private_chat, bound.former, message.author)
            notices = ((*chat, text),) if chat is not None else ()
        hint = "" if message.place.is_private else " Next time, write the code in a private chat."
        return Let(
            why="connected", say=f"Connected. What you write here, you write as yourself.{hint}", notices=notices
        )

    async def _unbound(self, line: Line, message: Inbound) -> Let:
        if not message.place.is_private or await self._bindings.has_happened(line.kind, message.author, UNBOUND):
            return Let(why=f"{UNBOUND}, in silence")
        return Let(why=UNBOUND, say=self._how())

    async def _goes_in_circles(self, line: Line, message: Inbound, principal: Principal) -> bool:
        if not principal.user_id.startswith(GUEST):
            return False
        return await self._database.read(in_a_row, line.id, message.place) >= MOST_IN_A_ROW

    def _how(self) -> str:
        where = self._page("/settings/channels") or "DeerFlow, under Settings → Channels"
        return f"I do not know you yet. Make a code at {where} and write `/connect CODE` here."


def in_a_row(connection: Connection, connection_id: str, place: Place) -> int:
    """Return how many of a group's last messages guests wrote and got an answer to."""
    statement = """SELECT user_id FROM channel_inbox WHERE connection_id = ? AND chat = ? AND topic = ? AND user_id IS NOT NULL
        ORDER BY id DESC LIMIT ?"""
    rows = sql.execute(connection, statement, connection_id, place.chat, place.topic, MOST_IN_A_ROW).fetchall()
    return len(list(takewhile(lambda row: str(row[0]).startswith(GUEST), rows)))


def private_chat(connection: Connection, user_id: str, but: Author) -> tuple[str, str] | None:
    """Return ``(connection, chat)`` where a person wrote in private last, with another account than one."""
    others = "kind <> 'click' AND NOT (workspace = ? AND author = ?)"
    return newest_private_chat(connection, user_id, others, but.workspace, but.id)


def newest_private_chat(connection: Connection, user_id: str, where: str, *values: Any) -> tuple[str, str] | None:
    """Return ``(connection, chat)`` of the last private message of a person for which ``where`` holds."""
    statement = f"""SELECT connection_id, chat, body FROM channel_inbox WHERE user_id = ? AND {where}
        ORDER BY id DESC LIMIT 100"""
    for connection_id, chat, body in sql.execute(connection, statement, user_id, *values).fetchall():
        if sql.loads(body)["place"].get("is_private"):
            return connection_id, chat
    return None
