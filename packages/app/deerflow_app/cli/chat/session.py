"""`deerflow`: a conversation in the terminal, or line by line through a pipe."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.text import Text

from deerflow_app.cli.chat.approvals import WAITING, Approvals
from deerflow_app.cli.chat.files import DEFAULT_OUT, copy_out, host_path
from deerflow_app.cli.chat.transcript import Transcript, model_label
from deerflow_app.cli.chat.turn import Turn, TurnView
from deerflow_app.cli.chat.view import LiveView, PlainView
from deerflow_app.cli.failures import turn_failure, usage_failure
from deerflow_app.cli.terminal import until_interrupted

if TYPE_CHECKING:
    from deerflow.events.streams.client_events import StreamEvent
    from deerflow_app.cli.backend import Backend, Preparation


class Chat:
    """One conversation at a time, and what the slash commands change in it.

    Args:
        console: where everything but a piped answer is shown.
        preparation: what the first turn waits for.
        answer: the stream of a piped conversation; None on a terminal.
    """

    def __init__(
        self,
        backend: Backend,
        console: Console,
        *,
        model: str | None = None,
        preparation: Preparation | None = None,
        answer: TextIO | None = None,
    ) -> None:
        self.backend = backend
        self.client = backend.client
        self.console = console
        self.transcript = Transcript(console)
        self.model_name = model
        self.attached: list[Path] = []
        self.failed = False
        self._approvals = Approvals(console, "ask" if answer is None else "deny")
        self._preparation = preparation
        self._answer = answer
        self.begin()

    def begin(self, thread_id: str | None = None) -> None:
        """Turn to a new thread, or to the one named."""
        self.thread_id = thread_id or str(uuid.uuid4())
        self.title = ""
        self.waiting = False
        """Calls of the thread wait for a decision of the person."""
        self._artifacts: list[str] = []
        self.attached.clear()

    async def send(self, text: str) -> None:
        """A message of the person, with the files attached to it, and the agent's turn on it."""
        files = tuple(self.attached)
        self.attached.clear()
        await self._turn(self.client.astream(text, thread_id=self.thread_id, files=files, model_name=self.model_name))

    async def open(self, thread_id: str) -> None:
        """Turn to a thread: show it as it stands, and finish its last turn if that was cut off.

        Raises:
            Failure: there is no such thread.
        """
        state = await self.client.athread_state(thread_id)
        values = state["values"]
        if not values["messages"]:
            raise usage_failure(f"There is no thread {thread_id}.", "/threads lists the latest ones.")
        self.begin(thread_id)
        self._remember(values)
        self.transcript.block(Text(f"  Thread {thread_id}", style="faint"))
        self.transcript.history(values["messages"])
        if state["interrupts"]:
            await self._decide(state)
        elif state["unfinished"]:
            self.transcript.notice(
                "A turn is going on. You see it live; Ctrl-C stops it."
                if state.get("running")
                else "The last turn was cut off. Continuing after its last finished step."
            )
            events = self.client.aresume(thread_id, model_name=self.model_name)
            await self._turn(events, values["messages"])

    def status(self) -> str:
        """The line below the prompt."""
        parts = [model_label(self.backend.model(self.model_name)), self.title or "new thread"]
        if self._preparation is not None and self._preparation.step:
            parts.append(self._preparation.step)
        if self.attached:
            parts.append(f"{len(self.attached)} attached")
        if self.backend.problem():
            parts.append("config.yaml has an error, the last good one is in force (see deerflow doctor)")
        return " · ".join(parts)

    async def _prepared(self) -> None:
        """Wait for what is being prepared; Ctrl-C goes on without it."""
        preparation, self._preparation = self._preparation, None
        if preparation is None:
            return
        if preparation.step:
            with self.console.status("") as shown:
                await until_interrupted(
                    preparation.ended(lambda step: shown.update(f"{step} · Ctrl-C goes on without"))
                )
        if preparation.problem:
            self.transcript.notice(preparation.problem)

    async def _turn(
        self, events: AsyncGenerator[StreamEvent, None], shown: Sequence[Mapping[str, Any]] = (), *, ask: bool = True
    ) -> None:
        """Show a turn; of one that has begun already, ``shown`` are the messages that stand on the screen.

        Args:
            ask: for decisions that the turn waits for at its end.
        """
        await self._prepared()
        async with self._view() as view:
            turn = Turn(view, known_artifacts=self._artifacts, known_messages=shown)
            turn.outcome.stopped = await until_interrupted(turn.play(events)) is None
        outcome = turn.outcome
        if outcome.error:
            self.failed = True
            failure = turn_failure(outcome.error)
            if outcome.error_told:
                failure.message = "The model could not answer."
            self.transcript.failure(failure)
        self.transcript.ending(outcome, await self._places(outcome.artifacts))
        if outcome.stopped:
            self.transcript.notice("The thread is kept up to its last finished step: say how to go on, or /resume.")
        state = await self.client.athread_state(self.thread_id)
        self._remember(state["values"])
        self.waiting = bool(state["interrupts"])
        if self.waiting and ask and not outcome.stopped:
            await self._decide(state)
        elif self.waiting:
            self.transcript.notice(WAITING)

    async def _decide(self, state: Mapping[str, Any]) -> None:
        """Ask the person for what the thread waits for, and go on with the answers."""
        answers = await self._approvals.answers(state["interrupts"])
        self.waiting = len(answers) < len(state["interrupts"])
        if not answers:
            self.transcript.notice(WAITING)
            return
        events = self.client.aresume(self.thread_id, model_name=self.model_name, answers=answers)
        await self._turn(events, state["values"]["messages"], ask=not self.waiting)

    async def _places(self, artifacts: list[str]) -> dict[str, Path | None]:
        """Where delivered files lie on this machine; those of a server elsewhere are fetched."""
        if (paths := self.backend.paths) is not None:
            return {path: host_path(paths, self.thread_id, path) for path in artifacts}
        fetched = await copy_out(self.client, self.thread_id, artifacts, DEFAULT_OUT)
        return {one.path: one.file for one in fetched}

    @contextlib.asynccontextmanager
    async def _view(self) -> AsyncIterator[TurnView]:
        if self._answer is not None:
            yield PlainView(self.console, self._answer)
            return
        async with LiveView(self.console) as view:
            yield view

    def _remember(self, values: Mapping[str, Any]) -> None:
        self.title = values["title"] or ""
        self._artifacts = values["artifacts"]
