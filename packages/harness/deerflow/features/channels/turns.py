"""Turns in chats: one accepted message becomes one run, and the run one answer, over any number of restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection

from deerflow.errors import ConflictError, NotFoundError, RequestError
from deerflow.event_loop import end
from deerflow.features.channels.answers import Answers
from deerflow.features.channels.bindings import People
from deerflow.features.channels.cards import decided_line
from deerflow.features.channels.commands import Begin
from deerflow.features.channels.conversations import Conversations, id_of
from deerflow.features.channels.decisions import Choice, Decisions
from deerflow.features.channels.endings import ChatEnding, ending_of
from deerflow.features.channels.files import ChannelFiles
from deerflow.features.channels.handler import NotYet
from deerflow.features.channels.inbox import Inbox, InboxRow, InboxState
from deerflow.features.channels.lines import Line
from deerflow.features.channels.outbox import Outbox, Target
from deerflow.features.channels.progress import WORKING, Progress, refusal, shows
from deerflow.features.channels.render import parts
from deerflow.features.channels.requests import Requests
from deerflow.features.channels.runs import ChannelRuns
from deerflow.features.channels.turn import ChatTurn
from deerflow.features.channels.types import ChannelError, Inbound, Place, Signal
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.runs import Run
from deerflow.storage.tables import channel_inbox, utc_now
from deerflow.threads.service import ThreadService

logger = logging.getLogger(__name__)

ALBUM = timedelta(seconds=1)
"""Files that a person sends within so much of each other are one turn."""
SILENCE = 5.0
PAUSES = (1.0, 5.0, 30.0)
"""Seconds before a turn is watched again whose answer could not be written."""


class ChatTurns:
    """Args:
    people: the person of a user id as they are now.
    page: the address of a page, or an empty text if the server does not know its own.
    """

    def __init__(
        self,
        database: Database,
        inbox: Inbox,
        outbox: Outbox,
        runs: ChannelRuns,
        threads: ThreadService,
        conversations: Conversations,
        decisions: Decisions,
        answers: Answers,
        requests: Requests,
        files: ChannelFiles,
        *,
        people: People,
        page: Callable[[str], str],
    ) -> None:
        self._database = database
        self._inbox = inbox
        self._outbox = outbox
        self._runs = runs
        self._threads = threads
        self._conversations = conversations
        self._decisions = decisions
        self._answers = answers
        self._requests = requests
        self._files = files
        self._people = people
        self._page = page
        self._watching: dict[str, tuple[ChatTurn, asyncio.Task[None]]] = {}
        self._beginning: set[str] = set()

    async def message(
        self, line: Line, rows: Sequence[InboxRow], principal: Principal, begin: Begin | None = None
    ) -> None:
        """Make a message a turn, or hand it to the turn that goes on in its thread. Repeating it makes nothing twice.

        Args:
            rows: the message, or all rows of a turn that is running already.
            begin: a command that the message gave, instead of its text.

        Raises:
            NotYet: other files may belong to it.
        """
        first = rows[0]
        message, is_new = first.event, first.state == InboxState.ACCEPTED
        assert isinstance(message, Inbound)
        if is_new and begin is None:
            rows = await self._album(first, message)
        shared = line.channel.shared
        found = await self._conversations.of(line.kind, line.id, message, principal, shared=shared)
        conversation = await self._conversations.with_thread(found, principal, message.message_id)
        turn = ChatTurn(
            line, rows, principal, principal, conversation, first.run_id or id_of(line.id, message.message_id)
        )
        try:
            turn = replace(turn, owner=await self._owner(turn))
        except NotFoundError as error:
            return await self._refused(turn, error)
        if begin is not None:
            turn = replace(turn, text=begin.text, context=begin.context)
        elif is_new and await self._runs.active(turn.thread_id):
            turn = replace(turn, said=await self._requests.said(turn))
            if await self._joined(turn):
                return
        await self._go(turn)

    async def scheduled(self, line: Line, rows: Sequence[InboxRow], principal: Principal, run_id: str) -> None:
        """Show a run that a schedule began in the thread of a chat."""
        run = await self._runs.find(run_id)
        conversation = await self._conversations.of_thread(run.thread_id) if run is not None else None
        if conversation is None:
            return await self.leave(line, rows, run_id, "The run of a schedule is gone.")
        turn = ChatTurn(line, rows, principal, principal, conversation, run_id)
        await self._go(replace(turn, owner=await self._owner(turn)))

    async def decided(self, line: Line, row: InboxRow, principal: Principal, choice: Choice) -> None:
        """Go on with what a person has decided. Raises RequestError: they may not, or it is decided already."""
        await self._decisions.check(choice, principal, again=row.state == InboxState.RUNNING)
        conversation = await self._conversations.of_thread(choice.thread_id)
        if conversation is None:
            raise NotFoundError("The conversation of this question is gone.")
        turn = ChatTurn(line, [row], principal, principal, conversation, choice.begins, body=choice.body)
        author = row.event.author

        def job(connection: Connection) -> bool:
            decided_at = self._decisions.mark(connection, choice, principal.user_id)
            if decided_at is None:
                raise ConflictError("This was decided already.", reason="already_decided")
            said = decided_line(choice.what, choice.label, author.name or author.id, decided_at)
            self._answers.close_card(connection, choice.outbox_id, *parts(said, line.adapter.caps.dialect)[:1])
            return self._answers.begin(connection, turn)

        await self._go(turn, job)

    async def stop(self, principal: Principal, thread_id: str) -> int:
        """Stop the runs of a thread and return how many there were."""
        stopped = 0
        for run in await self._runs.active(thread_id):
            with suppress(NotFoundError):
                await self._runs.cancel(principal, run.run_id)
                stopped += 1
        return stopped

    async def stop_at(self, principal: Principal, connection_id: str, place: Place) -> int:
        """Stop the person's runs that are shown at a place, and return how many there are."""
        stopped = 0
        for turn, _ in list(self._watching.values()):
            if turn.line.id == connection_id and (turn.place.chat, turn.place.topic) == (place.chat, place.topic):
                with suppress(NotFoundError):
                    await self._runs.cancel(principal, turn.run_id)
                    stopped += 1
        return stopped

    async def leave(self, line: Line, rows: Sequence[InboxRow], run_id: str, text: str) -> None:
        """End a turn that cannot be continued."""
        target = Target(line.id, rows[0].event.place, rows[-1].event.wake)
        await self._database.write(self._answers.leave, target, run_id, *parts(text, line.adapter.caps.dialect)[:1])
        self._outbox.wake(line.id)

    async def aclose(self) -> None:
        """Stop watching. The turns go on, and the process that takes their connections over shows them."""
        tasks = [task for _, task in self._watching.values()]
        await end(tasks, 0)

    async def settle(self) -> None:
        """Show on cards what was decided elsewhere, or is no longer open."""
        for choice in await self._decisions.stale():
            changed = await self._database.write(
                self._answers.close_card, choice.outbox_id, "Decided elsewhere, or no longer open."
            )
            if changed is not None:
                self._outbox.wake(changed)

    # how a turn begins ----------------------------------------------------------------------------------------------

    async def _go(self, turn: ChatTurn, begin: Callable[[Connection], bool] | None = None) -> None:
        """Begin a turn, or continue one that is running.

        Args:
            begin: what records that, with more in the same transaction.
        """
        if turn.run_id in self._watching or turn.run_id in self._beginning:
            return
        self._beginning.add(turn.run_id)
        try:
            if not await self._database.write(begin or partial(self._answers.begin, turn=turn)):
                return
            self._outbox.wake(turn.line.id)
            await self._started(turn)
        finally:
            self._beginning.discard(turn.run_id)

    async def _started(self, turn: ChatTurn) -> None:
        run = await self._runs.find(turn.run_id)
        if run is None:
            await self._signal(
                turn, Signal.WORKING if Signal.WORKING in turn.line.adapter.caps.signals else Signal.SEEN
            )
            try:
                request = await self._requests.body(turn)
                run = await self._runs.start(turn.owner, request, thread_id=turn.thread_id, run_id=turn.run_id)
            except RequestError as error:
                return await self._refused(turn, error)
        self._watch(turn, run)

    async def _refused(self, turn: ChatTurn, error: RequestError) -> None:
        await self._database.write(self._answers.end, turn, ChatEnding("failed", refusal(error)), [], [])
        self._outbox.wake(turn.line.id)
        await self._signal(turn, Signal.FAILED)

    async def _album(self, row: InboxRow, first: Inbound) -> list[InboxRow]:
        """Return the message with the files that the person sent within a second of it. Raises NotYet: that is not over."""
        if not first.files:
            return [row]
        if (left := (row.accepted_at + ALBUM - utc_now()).total_seconds()) > 0:
            raise NotYet(left)
        found, last = [row], first
        for other in await self._database.read(_beside, row):
            event = other.event
            if not isinstance(event, Inbound) or event.author.id != first.author.id or not event.files:
                continue
            if abs(event.sent_at - last.sent_at) <= ALBUM:
                found.append(other)
                last = event
        return found

    async def _joined(self, turn: ChatTurn) -> bool:
        """Hand the messages to the run on its way; False if it has just ended."""
        try:
            run = await self._runs.steer(turn.owner, turn.thread_id, await self._requests.said(turn))
        except (ConflictError, NotFoundError):
            return False

        def job(connection: Connection) -> None:
            for row in turn.rows:
                self._inbox.move(connection, row, InboxState.STEERED, run_id=run.run_id, user_id=turn.principal.user_id)

        await self._database.write(job)
        await self._signal(turn, Signal.JOINED)
        return True

    async def _owner(self, turn: ChatTurn) -> Principal:
        """Return the owner of the thread, who alone has its files and tools; a member of a shared chat only writes into it."""
        owner_id = await self._conversations.owner(turn.conversation)
        if owner_id == turn.principal.user_id:
            return turn.principal
        if (owner := await self._people(owner_id) if owner_id else None) is None:
            raise NotFoundError("The person whose conversation this is has left. /new begins another one.")
        return owner

    # how it goes on and ends ----------------------------------------------------------------------------------------

    def _watch(self, turn: ChatTurn, run: Run) -> None:
        task = asyncio.create_task(self._watched_again(turn, run), name=f"turn {turn.run_id}")
        self._watching[turn.run_id] = turn, task
        task.add_done_callback(lambda _: self._watching.pop(turn.run_id, None))

    async def _watched_again(self, turn: ChatTurn, run: Run) -> None:
        for pause in (*PAUSES, None):
            try:
                return await self._watched(turn, run)
            except Exception:
                logger.exception("The answer of run %s could not be shown.", turn.run_id)
                if pause is None:
                    return
            await asyncio.sleep(pause)

    async def _watched(self, turn: ChatTurn, run: Run) -> None:
        caps, progress = turn.line.adapter.caps, Progress(turn.line.working or WORKING)
        clock = asyncio.get_running_loop().time
        is_changed, due = False, clock()
        async with aclosing(self._runs.events(run, heartbeat=min(max(caps.edit_every, 0.2), SILENCE))) as batches:
            async for batch in batches:
                is_changed |= progress.take(batch)
                if is_changed and not progress.has_ended and shows(caps) and clock() >= due:
                    await self._database.write(self._answers.show, turn, progress.shown())
                    self._outbox.wake(turn.line.id)
                    is_changed, due = False, clock() + caps.edit_every
        await self._finish(turn, progress)

    async def _finish(self, turn: ChatTurn, progress: Progress) -> None:
        run = await self._runs.find(turn.run_id)
        waiting: Mapping[str, Any] = {"interrupts": [], "question": None}
        if run is not None and (run.stop_reason == "interrupt" or progress.is_question):
            waiting = await self._threads.waiting_for(turn.owner, turn.thread_id)
        ending = ending_of(run, progress, waiting, self._page(f"/chats/{turn.thread_id}"))
        paths: list[str] = []
        notes: list[str] = []
        if progress.files and run is not None:
            limit = turn.line.adapter.caps.file_out
            paths, notes = await self._files.handed_over(turn.owner, turn.thread_id, progress.files, limit)
        await self._database.write(self._answers.end, turn, ending, paths, notes)
        self._outbox.wake(turn.line.id)
        await self._signal(turn, Signal.FAILED if ending.how == "failed" else Signal.DONE)

    async def _signal(self, turn: ChatTurn, signal: Signal) -> None:
        """Show a sign at the person's message. It is lossy by contract."""
        adapter, event = turn.line.adapter, turn.rows[-1].event
        if signal not in adapter.caps.signals or not isinstance(event, Inbound):
            return
        try:
            await adapter.signal(event.place, event.message_id, signal, event.wake)
        except ChannelError as error:
            logger.debug("A sign was not shown: %s", error)


def _beside(connection: Connection, row: InboxRow) -> list[InboxRow]:
    """Return the messages that wait behind one at its place."""
    tail = "WHERE connection_id = ? AND chat = ? AND topic = ? AND state = 'accepted' AND kind = 'message' AND id > ? ORDER BY id LIMIT 20"
    return sql.select(connection, InboxRow, channel_inbox, tail, row.connection_id, row.chat, row.topic, row.id)
