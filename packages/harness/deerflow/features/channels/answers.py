"""Messages of a turn in a chat: its placeholder, its progress, its answer, and cards with what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from deerflow.features.channels.decisions import OPTION, STOP_RUN, Card, Decisions, numbers_line
from deerflow.features.channels.endings import ChatEnding
from deerflow.features.channels.inbox import Inbox, InboxState
from deerflow.features.channels.outbox import Outbox, Target
from deerflow.features.channels.progress import WORKING, shows
from deerflow.features.channels.render import parts, tail
from deerflow.features.channels.stored import button_from_json
from deerflow.features.channels.turn import ChatTurn
from deerflow.features.channels.types import Button
from deerflow.storage import sql
from deerflow.storage.tables import channel_inbox


class Answers:
    """Writes to inbox and outbox, in transactions of the caller. Wake the outbox after the commit."""

    def __init__(self, inbox: Inbox, outbox: Outbox, decisions: Decisions) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._decisions = decisions

    def begin(self, connection: Connection, turn: ChatTurn) -> bool:
        """Record that the turn begins, with its placeholder. Whatever dies from here on, the turn is found again.

        False: another process was faster.
        """
        for row in turn.rows:
            whose = {"run_id": turn.run_id, "user_id": turn.principal.user_id}
            if row.state == InboxState.ACCEPTED and not self._inbox.move(connection, row, InboxState.RUNNING, **whose):
                return False
        for letter_id in self._decisions.close(connection, turn.thread_id, OPTION):
            self.close_card(connection, letter_id)
        caps = turn.line.adapter.caps
        if not shows(caps) or self._shown(connection, turn) is not None:
            return True
        stop = Card("", STOP_RUN, [(STOP_RUN, "Stop")] if caps.buttons else [])
        buttons = self._decisions.offer(connection, stop, turn.thread_id, turn.run_id, turn.owner.user_id)
        text = parts(turn.line.working or WORKING, caps.dialect)[0]
        letter_id = self._outbox.replace(connection, turn.target, turn.run_id, 0, text, buttons)
        self._decisions.attach(connection, buttons, letter_id)
        return True

    def _shown(self, connection: Connection, turn: ChatTurn) -> Sequence[Button] | None:
        """Return the buttons of the turn's placeholder, or None if it has none yet."""
        query = "SELECT body FROM channel_outbox WHERE connection_id = ? AND turn = ? AND kind = 'text' AND part = 0"
        row = sql.execute(connection, query, turn.line.id, turn.run_id).fetchone()
        return None if row is None else [button_from_json(one) for one in sql.loads(row[0])["buttons"]]

    def show(self, connection: Connection, turn: ChatTurn, text: str) -> None:
        shown = tail(text, turn.line.adapter.caps.dialect) or WORKING
        self._outbox.replace(connection, turn.target, turn.run_id, 0, shown, self._shown(connection, turn) or ())

    def end(
        self,
        connection: Connection,
        turn: ChatTurn,
        ending: ChatEnding,
        paths: Sequence[str],
        notes: Sequence[str],
    ) -> None:
        """Write the answer and close its messages, in one transaction: whatever dies, there is one answer."""
        whose = {"state": str(InboxState.ANSWERED), "run_id": turn.run_id, "user_id": turn.principal.user_id}
        open_ = "id = ? AND state IN ('accepted', 'running')"
        if not sql.update(connection, channel_inbox, whose, open_, turn.rows[0].id):
            return  # another process has ended the turn
        for row in turn.rows[1:]:
            sql.update(connection, channel_inbox, whose, open_, row.id)
        self._inbox.answered(connection, turn.run_id)
        self._decisions.close(connection, turn.thread_id, STOP_RUN, turn.run_id)
        text = "\n\n".join(filter(None, (ending.text, *notes)))
        cards = [
            card for card in ending.cards if not self._decisions.is_offered(connection, turn.thread_id, card.interrupt)
        ]
        if ending.cards and not cards:
            text = "\n\n".join(filter(None, (text, "It waits for your other decisions.")))
        first = cards[0] if cards else Card("", OPTION, ending.options)
        number = 0
        for card in (first, *cards[1:]):
            number = self._write(connection, turn, "\n\n".join(filter(None, (text, card.text))), card, number)
            text = ""
        for index, path in enumerate(paths):
            whose = {"thread_id": turn.thread_id, "user_id": turn.owner.user_id}
            self._outbox.file(connection, turn.target, turn.run_id, index, path, **whose)
        self._inbox.bring_forward(connection, turn.line.id, turn.place)

    def _write(self, connection: Connection, turn: ChatTurn, text: str, card: Card, number: int) -> int:
        """Write a text and what can be chosen with it; return the number of the next message."""
        caps, choices = turn.line.adapter.caps, card.choices
        has_buttons = 0 < len(choices) <= caps.buttons
        if choices and not has_buttons:
            text = f"{text}\n\n{numbers_line(choices)}"
        *rest, last = parts(text, caps.dialect) or ["…"]
        for piece in rest:
            self._outbox.replace(connection, turn.target, turn.run_id, number, piece, is_final=True)
            number += 1
        offered = (
            self._decisions.offer(connection, card, turn.thread_id, turn.run_id, turn.owner.user_id) if choices else []
        )
        shown = offered if has_buttons else ()
        letter_id = self._outbox.replace(connection, turn.target, turn.run_id, number, last, shown, is_final=True)
        self._decisions.attach(connection, offered, letter_id)
        return number + 1

    def close_card(self, connection: Connection, letter_id: int | None, line: str = "") -> str | None:
        """Take the buttons of a card away and write on it who has decided; return the connection if that changes something."""
        letter = self._outbox.get(connection, letter_id) if letter_id is not None else None
        if letter is None or (line in letter.body["text"] if line else not letter.body["buttons"]):
            return None
        text, target = letter.body["text"], replace(letter.target, wake={})
        text = f"{text}\n\n{line}" if line else text
        self._outbox.replace(connection, target, letter.turn, letter.part, text, is_final=True)
        return letter.connection_id

    def leave(self, connection: Connection, target: Target, run_id: str, text: str) -> None:
        """Write the end of a turn that cannot be continued."""
        self._inbox.answered(connection, run_id)
        self._outbox.replace(connection, target, run_id, 0, text, is_final=True)
