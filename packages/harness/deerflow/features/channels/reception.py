"""Reception: what becomes of each accepted message and click – nothing, a command, a decision, or a turn."""

from __future__ import annotations

import asyncio
import logging
import re

from sqlalchemy import Connection

from deerflow.errors import RequestError
from deerflow.features.channels import schedules
from deerflow.features.channels.commands import Asked, Begin, Commands
from deerflow.features.channels.config import Configs
from deerflow.features.channels.conversations import Conversations, id_of
from deerflow.features.channels.decisions import STOP_RUN, Choice, Decisions
from deerflow.features.channels.gate import Gate, private_chat
from deerflow.features.channels.handler import Handler, NotYet
from deerflow.features.channels.inbox import Inbox, InboxRow, InboxState
from deerflow.features.channels.lines import ChatLines, Line
from deerflow.features.channels.outbox import Outbox, OutboxRow, Target
from deerflow.features.channels.render import parts
from deerflow.features.channels.turns import ChatTurns
from deerflow.features.channels.types import STOP, ChannelError, Click, Event, Inbound, Place
from deerflow.identity import Principal
from deerflow.security.text import inline
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 2.0
SETTLE_ROUNDS = 8
"""After so many looks for turns, cards are compared with what was decided."""
RUN_MISSED = "run"
"""The word that asks for what came too late."""


class Reception(Handler):
    def __init__(
        self,
        database: Database,
        inbox: Inbox,
        outbox: Outbox,
        gate: Gate,
        commands: Commands,
        conversations: Conversations,
        decisions: Decisions,
        turns: ChatTurns,
        *,
        configs: Configs,
        lines: ChatLines,
    ) -> None:
        self._database = database
        self._inbox = inbox
        self._outbox = outbox
        self._gate = gate
        self._commands = commands
        self._conversations = conversations
        self._decisions = decisions
        self._turns = turns
        self._configs = configs
        self._lines = lines
        self._open: set[str] = set()
        """Connections whose turns are watched here."""

    async def handle(self, row: InboxRow) -> None:
        line, message = await self._line(row), row.event
        assert isinstance(message, Inbound)
        let = await self._gate.judge(line, message, *await self._configs())
        if (principal := let.principal) is None:
            await self._answer(line, row, InboxState.IGNORED, let.say, why=let.why, notices=let.notices)
            return
        choice = await self._decisions.written(line.id, message, principal)
        if choice is not None:
            return await self._decide(line, row, principal, choice)
        if message.text.strip().lower() == RUN_MISSED and await self._database.write(self._accept_missed, row):
            return self._outbox.wake(line.id)
        reply = await self._reply(line, message, principal)
        if reply is None or isinstance(reply, Begin):
            return await self._turns.message(line, [row], principal, reply)
        await self._answer(line, row, InboxState.ASKED, reply, user_id=principal.user_id)

    async def click(self, row: InboxRow) -> None:
        line, click = await self._line(row), row.event
        assert isinstance(click, Click)
        principal = await self._gate.person(line.kind, click.author, *await self._configs(), begins=False)
        if principal is None:
            await self._answer(line, row, InboxState.IGNORED, why="unbound")
            return await self._notice(
                line, click, "Connect your account first: only people with an account decide here."
            )
        if click.key == STOP:
            stopped = await self._turns.stop_at(principal, line.id, click.place)
            await self._answer(line, row, InboxState.ASKED, user_id=principal.user_id)
            return await self._notice(line, click, "Stopping." if stopped else "Nothing of yours is going on here.")
        choice = await self._decisions.pressed(click.key)
        if choice is None:
            await self._answer(line, row, InboxState.IGNORED, why="no such button")
            return await self._notice(line, click, "This button does nothing any more.")
        await self._decide(line, row, principal, choice)

    async def resume(self, connection_id: str, turn: str) -> None:
        rows = [row for row in await self._database.read(self._inbox.of_run, turn) if row.state == InboxState.RUNNING]
        if not rows:
            return
        line, first = await self._line(rows[0]), rows[0]
        event = first.event
        principal = await self._gate.person(line.kind, event.author, *await self._configs(), begins=False)
        if principal is None:
            return await self._turns.leave(line, rows, turn, "You may not act here any more.")
        if first.kind == schedules.KIND:
            return await self._turns.scheduled(line, rows, principal, turn)
        if isinstance(event, Inbound) and turn == id_of(line.id, event.message_id):
            reply = await self._reply(line, event, principal)
            return await self._turns.message(line, rows, principal, reply if isinstance(reply, Begin) else None)
        choice = await self._choice(event, principal, turn)
        try:
            if choice is None:
                return await self._turns.leave(line, rows, turn, "What was decided is no longer open.")
            await self._turns.decided(line, first, principal, choice)
        except RequestError as error:
            await self._turns.leave(line, rows, turn, str(error))

    async def keep(self, every: float = SWEEP_SECONDS) -> None:
        """Look after turns that began elsewhere and cards that were decided elsewhere, for good."""
        rounds = 0
        while True:
            try:
                await self._take_over()
                if rounds % SETTLE_ROUNDS == 0:
                    await self._turns.settle()
            except Exception:
                logger.warning("ChatTurns in chats could not be looked after.", exc_info=True)
            rounds += 1
            await asyncio.sleep(every)

    async def _take_over(self) -> None:
        """Go on with the turns of connections that this process has taken over since it looked last."""
        open_ = await self._lines.open()
        failed: set[str] = set()
        for connection_id in open_ - self._open:
            for run_id in await self._database.read(_running, connection_id):
                try:
                    await self.resume(connection_id, run_id)
                except Exception:
                    failed.add(connection_id)
                    logger.warning("Run %s of a chat cannot be followed yet.", run_id, exc_info=True)
        self._open = open_ - failed
        for connection_id in self._open:
            await self._show_scheduled(connection_id)

    async def _show_scheduled(self, connection_id: str) -> None:
        for run_id, thread_id in (await self._database.read(schedules.begun, connection_id, utc_now())).items():
            if await self._database.write(schedules.adopt, connection_id, run_id, thread_id, utc_now()):
                await self.resume(connection_id, run_id)

    def undelivered(self, connection: Connection, row: OutboxRow) -> None:
        for taken in self._inbox.of_run(connection, row.turn)[:1]:
            chat = private_chat(connection, taken.user_id or "", taken.event.author) if taken.user_id else None
            if chat is not None:
                where, why = _plain(row.target.place.name or row.chat), _plain(row.error or "no reason was given")
                text = f"An answer could not be sent to {where}: {why}"
                target = Target(chat[0], Place(chat[1], is_private=True))
                self._outbox.deliver(connection, target, text, key=f"undelivered/{row.turn}")

    async def _line(self, row: InboxRow) -> Line:
        if (line := await self._lines.get(row.connection_id)) is None:
            raise NotYet  # another process holds the connection by now
        return line

    def _accept_missed(self, connection: Connection, row: InboxRow) -> bool:
        if not self._inbox.accept_missed(connection, row.connection_id, row.event.place):
            return False
        return self._inbox.move(connection, row, InboxState.ASKED)

    async def _decide(self, line: Line, row: InboxRow, principal: Principal, choice: Choice) -> None:
        notice, event = "", row.event
        try:
            if choice.what != STOP_RUN:
                await self._turns.decided(line, row, principal, choice)
            elif await self._turns.stop(principal, choice.thread_id):
                notice = "Stopping."
            else:
                notice = "It has ended already, or is another person's."
        except RequestError as error:
            notice = str(error)
        if notice:
            say = notice if isinstance(event, Inbound) else ""
            await self._answer(line, row, InboxState.ASKED, say, user_id=principal.user_id, why=notice)
        if isinstance(event, Click):
            await self._notice(line, event, notice)

    async def _choice(self, event: Event, principal: Principal, run_id: str) -> Choice | None:
        """Return the decision that a run goes on with, which an event has taken."""
        if isinstance(event, Click):
            return await self._decisions.pressed(event.key)
        return await self._decisions.behind(run_id, principal.user_id)

    async def _reply(self, line: Line, message: Inbound, principal: Principal) -> str | Begin | None:
        """Carry out the command that a message gives; None: it gives none."""
        if (found := self._commands.find(message.text, line.me.name)) is None:
            return None
        shared = line.channel.shared
        conversation = await self._conversations.of(line.kind, line.id, message, principal, shared=shared)
        return await self._commands.run(found[0], Asked(principal, line.kind, message, conversation, found[1]))

    async def _answer(
        self,
        line: Line,
        row: InboxRow,
        state: InboxState,
        say: str = "",
        *,
        why: str | None = None,
        user_id: str | None = None,
        notices: tuple[tuple[str, str, str], ...] = (),
    ) -> None:
        """Close a row and write its answer, in one transaction."""
        pieces = parts(say, line.adapter.caps.dialect) if say else []

        def job(connection: Connection) -> None:
            if not self._inbox.move(connection, row, state, why=why, user_id=user_id):
                return
            target = Target(line.id, row.event.place, row.event.wake)
            for number, piece in enumerate(pieces):
                self._outbox.deliver(connection, target, piece, key=f"{row.id}/{number}")
            for connection_id, chat, text in notices:
                there = Target(connection_id, Place(chat, is_private=True))
                self._outbox.deliver(connection, there, text, key=f"{row.id}/{connection_id}")

        await self._database.write(job)
        for connection_id in {line.id, *(notice[0] for notice in notices)}:
            self._outbox.wake(connection_id)

    async def _notice(self, line: Line, click: Click, text: str) -> None:
        """Tell the platform that the click was taken. It is lossy: a press on a button may be older than the platform allows."""
        try:
            await line.adapter.answered(click, text)
        except ChannelError:
            return


def _plain(text: str) -> str:
    """Return words that mean nothing in any platform's marks: which one reads them is not known."""
    return re.sub(r"[^\w\s.,:-]", "", inline(text, 200))


def _running(connection: Connection, connection_id: str) -> list[str]:
    """Return the runs of a connection that have no answer in their chat yet."""
    query = (
        "SELECT DISTINCT run_id FROM channel_inbox WHERE connection_id = ? AND state = 'running' AND run_id IS NOT NULL"
    )
    return [run_id for (run_id,) in sql.execute(connection, query, connection_id).fetchall()]
