"""Decisions in chats: buttons and numbers of cards and questions, and whether the one who presses them may."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection

from deerflow.errors import ConflictError, ForbiddenError, NotFoundError
from deerflow.features.channels.cards import LABELS, card_text, choices_of, numbered
from deerflow.features.channels.conversations import id_of
from deerflow.features.channels.types import Button, Inbound
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_decisions, utc_now
from deerflow.storage.visibility import changeable, may_change, values_of
from deerflow.threads.service import ThreadService

OPTION, STOP_RUN = "option", "stop"
"""Choices that are no decision about a call: an answer to a question, and the end of the run. They stand for their interrupt, too."""
LIFETIME = timedelta(days=7)
MOST_LABEL = 60
_STYLES: Mapping[str, Literal["", "primary", "danger"]] = {"approve": "primary", "reject": "danger", STOP_RUN: "danger"}
_WORDS = {"approve": {"approve", "yes", "ok", "y"}, "reject": {"reject", "no", "n"}}

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Choice:
    """One button, or one number where there are none.

    Args:
        key_hash: of the button's key, which only the chat has.
        interrupt: what it decides; :data:`OPTION` or :data:`STOP_RUN` where that is no call.
        choice: ``{what, label, run_id}``.
        outbox_id: the message that holds it.
        user_id: the owner of the thread, who alone may decide.
    """

    key_hash: str
    thread_id: str
    interrupt: str
    choice: dict[str, Any]
    outbox_id: int | None
    user_id: str
    until: datetime
    decided_at: datetime | None
    decided_by: str | None

    @property
    def what(self) -> str:
        return self.choice["what"]

    @property
    def label(self) -> str:
        return self.choice["label"]

    @property
    def run_id(self) -> str:
        """Return the run that asks, or that Stop ends."""
        return self.choice["run_id"]

    @property
    def body(self) -> Mapping[str, Any]:
        """Return what the run is started with that goes on with it."""
        if self.what in LABELS:
            return {"command": {"resume": {self.interrupt: {"decisions": [{"type": self.what}]}}}}
        return {"input": {"messages": [{"role": "user", "content": _plain(self.label)}]}}

    @property
    def begins(self) -> str:
        """Return the id of the run that goes on with it."""
        return id_of(self.key_hash, "decision")


@dataclass(frozen=True, slots=True)
class Card:
    """A question of the agent as a message. ``choices``: what each button or number means, and its label."""

    text: str
    interrupt: str
    choices: Sequence[tuple[str, str]]


def cards_of(waiting: Mapping[str, Any], page: str) -> list[Card]:
    """Return a card for each thing that a thread waits for a decision about."""
    found: list[Card] = []
    for interrupt in waiting["interrupts"]:
        value = interrupt.get("value")
        if isinstance(value, Mapping) and value.get("action_requests"):
            choices = [(choice, LABELS[choice]) for choice in choices_of(interrupt)]
            found.append(Card(card_text(interrupt, page=page), str(interrupt["id"]), choices))
        else:
            asked = str(value.get("question") if isinstance(value, Mapping) else value)
            found.append(Card(f"{asked}\n\nAnswer on the page{f': {page}' if page else '.'}", str(interrupt["id"]), []))
    return found


class Decisions:
    def __init__(self, database: Database, threads: ThreadService, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._threads = threads
        self._clock = clock

    def offer(
        self,
        connection: Connection,
        card: Card,
        thread_id: str,
        run_id: str,
        user_id: str,
    ) -> list[Button]:
        """Record what can be decided, in the transaction that writes the message, and return its buttons; see :meth:`attach`."""
        buttons: list[Button] = []
        until = self._clock() + LIFETIME
        for what, label in card.choices:
            key = secrets.token_urlsafe(16)
            choice = {"what": what, "label": label, "run_id": run_id}
            row = Choice(_digest(key), thread_id, card.interrupt, choice, None, user_id, until, None, None)
            sql.insert(connection, channel_decisions, asdict(row))
            short = label if len(label) <= MOST_LABEL else f"{label[: MOST_LABEL - 1]}…"
            buttons.append(Button(key, short, _STYLES.get(what, "")))
        return buttons

    def attach(self, connection: Connection, buttons: Sequence[Button], outbox_id: int) -> None:
        """Record which message holds the buttons."""
        for button in buttons:
            sql.update(connection, channel_decisions, {"outbox_id": outbox_id}, "key_hash = ?", _digest(button.key))

    def is_offered(self, connection: Connection, thread_id: str, interrupt: str) -> bool:
        """Return whether a card about this waits in a chat already."""
        statement = "SELECT 1 FROM channel_decisions WHERE thread_id = ? AND interrupt = ? AND decided_at IS NULL AND until > ? LIMIT 1"
        return sql.execute(connection, statement, thread_id, interrupt, self._clock()).fetchone() is not None

    async def pressed(self, key: str) -> Choice | None:
        """Return what a button means, or None if it is none of ours."""
        return await self._database.read(_one, "key_hash = ?", _digest(key))

    async def behind(self, run_id: str, user_id: str) -> Choice | None:
        """Return the decision that a run goes on with."""
        tail = "WHERE decided_by = ? AND decided_at IS NOT NULL"
        found = await self._database.read(sql.select, Choice, channel_decisions, tail, user_id)
        return next((choice for choice in found if choice.begins == run_id), None)

    async def written(self, connection_id: str, message: Inbound, principal: Principal) -> Choice | None:
        """Return what a number or word decides: in reply to a card, or of the only open question that the person has here."""
        word = message.text.strip().lower().rstrip(".!)")
        if not word or len(word) > 100 or message.files:
            return None

        def job(connection: Connection) -> Choice | None:
            tail = f"""WHERE {changeable(channel_decisions)} AND decided_at IS NULL AND until > ? AND interrupt <> ? AND outbox_id IN
                (SELECT id FROM channel_outbox WHERE connection_id = ? AND chat = ? AND topic = ?) ORDER BY outbox_id, key_hash"""
            place = connection_id, message.place.chat, message.place.topic
            mine = *values_of(principal), self._clock(), STOP_RUN, *place
            asked: dict[tuple[int | None, str], list[Choice]] = {}
            for row in sql.select(connection, Choice, channel_decisions, tail, *mine):
                asked.setdefault((row.outbox_id, row.interrupt), []).append(row)
            if message.reply_to:
                asked = {key: rows for key, rows in asked.items() if message.reply_to in _refs(connection, key[0])}
            return _meant(next(iter(asked.values())), word) if len(asked) == 1 else None

        return await self._database.read(job)

    async def check(self, choice: Choice, principal: Principal, *, again: bool) -> None:
        """Check that a person may decide this, and that it is open.

        Args:
            again: this very press, or word, has decided it: then it need not be open.

        Raises:
            ForbiddenError: it is another person's to decide.
            ConflictError: it was decided elsewhere, or is no longer open.
        """
        if not may_change(principal, choice):
            raise ForbiddenError("Only the person whose conversation this is can decide here.")
        current = await self._database.read(_one, "key_hash = ?", choice.key_hash)
        if current is not None and current.decided_at is not None:
            if again:
                return
            raise ConflictError("This was decided already.", reason="already_decided")
        if choice.until <= self._clock() or not await self._is_open(principal, choice):
            raise ConflictError("This was decided already, elsewhere, or is no longer open.", reason="already_decided")

    async def stale(self) -> list[Choice]:
        """Close what was decided elsewhere or is no longer open, and return one choice of each such question."""
        tail = "WHERE decided_at IS NULL AND interrupt NOT IN (?, ?) AND outbox_id IS NOT NULL ORDER BY outbox_id, key_hash"
        found = await self._database.read(sql.select, Choice, channel_decisions, tail, OPTION, STOP_RUN)
        closed: list[Choice] = []
        for row in {(row.outbox_id, row.interrupt): row for row in found}.values():
            is_open = row.until > self._clock() and await self._is_open(Principal(row.user_id, "user", "channel"), row)
            if not is_open and await self._database.write(self.mark, row, "") is not None:
                closed.append(row)
        return closed

    def close(self, connection: Connection, thread_id: str, interrupt: str, run_id: str | None = None) -> list[int]:
        """Close the options of a question that has an answer, or Stop of a run that has ended; return the messages that show them."""
        tail = "WHERE thread_id = ? AND interrupt = ? AND decided_at IS NULL"
        found = sql.select(connection, Choice, channel_decisions, tail, thread_id, interrupt)
        closed = [row for row in found if run_id in (None, row.run_id)]
        for row in closed:
            changes = {"decided_at": self._clock(), "decided_by": ""}
            sql.update(connection, channel_decisions, changes, "key_hash = ?", row.key_hash)
        return list(dict.fromkeys(row.outbox_id for row in closed if row.outbox_id is not None))

    async def _is_open(self, principal: Principal, choice: Choice) -> bool:
        """Return whether the thread still waits for this. Stop and options are open until they are closed."""
        if choice.what not in LABELS:
            return True
        try:
            waiting = await self._threads.waiting_for(principal, choice.thread_id)
        except NotFoundError:
            return False
        return choice.interrupt in {str(each["id"]) for each in waiting["interrupts"]}

    def mark(self, connection: Connection, choice: Choice, user_id: str) -> datetime | None:
        """Record the decision once; return when it was taken, or None if another one counts."""
        tail = f"WHERE outbox_id = ? AND interrupt = ? ORDER BY key_hash{sql.for_update(connection)}"
        for row in sql.select(connection, Choice, channel_decisions, tail, choice.outbox_id, choice.interrupt):
            if row.decided_at is not None:
                mine = row.key_hash == choice.key_hash and row.decided_by == user_id
                return row.decided_at if mine else None
        now = self._clock()
        row = {"decided_by": user_id, "decided_at": now}
        sql.update(connection, channel_decisions, row, "key_hash = ?", choice.key_hash)
        # The others of this question stand no longer for anything.
        rest = "outbox_id = ? AND interrupt = ? AND decided_at IS NULL"
        sql.update(connection, channel_decisions, {"until": now}, rest, choice.outbox_id, choice.interrupt)
        return now


def numbers_line(choices: Sequence[tuple[str, str]]) -> str:
    """Return the line for platforms without buttons; empty if the question lists its options itself."""
    labels = [label for what, label in choices if what != OPTION]
    return numbered(labels) if labels else "Answer with a number, or in your own words."


def _one(connection: Connection, condition: str, *values: Any) -> Choice | None:
    return sql.first(connection, Choice, channel_decisions, f"WHERE {condition}", *values)


def _meant(rows: Sequence[Choice], word: str) -> Choice | None:
    """Return the choice that a number or word names: calls in the order of LABELS, options in that of their numbers."""
    order = [*LABELS]
    ordered = sorted(
        rows, key=lambda row: order.index(row.what) if row.what in order else int(row.label.partition(".")[0])
    )
    if word.isdecimal():
        return ordered[int(word) - 1] if 1 <= int(word) <= len(ordered) else None
    return next((row for row in ordered if word in (_WORDS.get(row.what) or {_plain(row.label).lower()})), None)


def _refs(connection: Connection, outbox_id: int | None) -> set[str]:
    """Return what the platform calls a message of ours."""
    row = sql.execute(connection, "SELECT ref FROM channel_outbox WHERE id = ?", outbox_id).fetchone()
    return set(map(str, sql.loads(row[0]).values())) if row and row[0] else set()


def _plain(label: str) -> str:
    """Return an option without its number."""
    return label.partition(". ")[2] or label


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
