"""`deerflow` and `deerflow run`: open what does the work, run on an event loop, close."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console

from deerflow.config import Paths
from deerflow_app.cli.backend import Preparation, existing_thread, is_demo, open_backend
from deerflow_app.cli.chat.approvals import Approve, TerminalApprovals
from deerflow_app.cli.chat.files import DEFAULT_OUT, Delivered, check_files, copy_out
from deerflow_app.cli.chat.markdown import Prose
from deerflow_app.cli.chat.session import COMMANDS, TerminalChat, enter
from deerflow_app.cli.chat.transcript import TerminalTranscript, banner, connected, usage_line
from deerflow_app.cli.chat.turn import TerminalTurn, TurnOutcome
from deerflow_app.cli.chat.typed_ahead import typed_ahead
from deerflow_app.cli.chat.view import PlainView
from deerflow_app.cli.failures import FAILED, CommandFailure, explain, turn_failure, usage_failure
from deerflow_app.cli.terminal import clean, make_console, raising_interrupts, until_interrupted

if TYPE_CHECKING:
    from deerflow.events.streams.client_events import StreamEvent
    from deerflow_app.cli.backend import Backend, Client
    from deerflow_app.cli.commands import Settings

logger = logging.getLogger(__name__)


ENDS = signal.SIGTERM, signal.SIGHUP
"""Signals that stop a run as SIGINT does."""
CONTRADICTED = 3
"""Exit code: the work ended, and what the answer rests on is not so."""
WORDS = {
    "verified": "✓ verified: the server looked, and what the answer rests on is so",
    "observed": "○ observed: a tool call saw what the answer rests on; it was not looked at again",
    "claimed": "○ claimed: nothing that was done bears out the answer, or not all of it",
    "contradicted": "✗ contradicted: the server looked, and what the answer rests on is not so",
}
STYLES = {"verified": "ok", "contradicted": "bad"}


@dataclass(frozen=True, slots=True)
class OneShot:
    """What one shot consists of."""

    text: str
    """What is to be done; ``-`` stands for what standard input says."""
    files: tuple[Path, ...] = ()
    out: Path | None = None
    thread_id: str | None = None
    approve: Approve | None = None
    """How calls are decided that need a person; None: as configured for unattended runs."""
    checks: tuple[str, ...] = ()
    """Commands that must succeed in the sandbox at the end."""


@dataclass(slots=True)
class Result:
    """What a run hands back; ``as_json`` is the contract of ``--json``."""

    thread_id: str | None = None
    text: str = ""
    delivered: Sequence[Delivered] = ()
    usage: dict[str, Any] | None = None
    failure: CommandFailure | None = None
    kind: str = ""
    verification: str | None = None
    refused: Sequence[Mapping[str, Any]] = ()

    @property
    def exit_code(self) -> int:
        if self.verification == "contradicted" and self.kind in ("", "checks_failed"):
            return CONTRADICTED
        return self.failure.exit_code if self.failure else 0

    def as_json(self) -> str:
        error = (
            {"kind": self.kind, "message": self.failure.message, "remedy": self.failure.remedy}
            if self.failure
            else None
        )
        artifacts = [{"path": item.path, "file": str(item.file) if item.file else None} for item in self.delivered]
        return json.dumps(
            {
                "thread_id": self.thread_id,
                "text": self.text,
                "artifacts": artifacts,
                "usage": self.usage or {},
                "verification": self.verification,
                "refused": list(self.refused),
                "error": error,
                "exit_code": self.exit_code,
            },
            ensure_ascii=False,
        )


async def run_task(client: Client, task: OneShot, progress: Console) -> Result:
    """Carry the task out, telling every step on ``progress``, and copy out what it delivered.

    Raises:
        CommandFailure: there is no thread that is to be continued.
    """
    thread_id = task.thread_id or str(uuid.uuid4())
    known = (await existing_thread(client, thread_id))["values"]["artifacts"] if task.thread_id else ()
    turn = TerminalTurn(PlainView(progress), known_artifacts=known)
    result = Result(thread_id)
    try:
        checks = [{"command": command} for command in task.checks]
        events = client.astream(task.text, thread_id=thread_id, files=task.files, checks=checks)
        approvals = TerminalApprovals(progress, task.approve)
        while events is not None:
            turn.outcome.stopped = await until_interrupted(turn.play(events), *ENDS) is None
            events = await _decided(client, thread_id, turn.outcome, approvals)
    except Exception as error:
        logger.error("%s", error, exc_info=error)
        result.failure, result.kind = explain(error), type(error).__name__
    outcome = turn.outcome
    result.text, result.usage = outcome.text, outcome.usage
    result.verification, result.refused = outcome.verification, outcome.refused
    _judge(result, outcome)
    await _deliver(client, result, outcome.artifacts, task.out or DEFAULT_OUT)
    _report(progress, result, outcome)
    return result


def on_terminal() -> bool:
    """Whether a person can be asked, whatever stdout is."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def _decided(
    client: Client, thread_id: str, outcome: TurnOutcome, approvals: TerminalApprovals
) -> AsyncGenerator[StreamEvent, None] | None:
    """What follows on the decisions that the turn waits for; None: there is none, or they stay open."""
    if outcome.stopped or not outcome.waiting:
        return None
    waiting = (await client.athread_state(thread_id))["interrupts"]
    answers = await approvals.answers(waiting)
    return client.aresume(thread_id, answers=answers) if answers else None


def _judge(result: Result, outcome: TurnOutcome) -> None:
    thread = f"deerflow --thread {result.thread_id}"
    ends = (
        (outcome.stopped, "stopped", "Stopped.", "Go on with"),
        (outcome.waiting, "waiting", "Calls wait for your decision.", "Decide with"),
        (outcome.unaccepted, "checks_failed", "Checks failed to the last.", "Go on with"),
    )
    for is_so, kind, message, remedy in ends:
        if is_so:
            result.failure, result.kind = CommandFailure(message, f"{remedy}: {thread}"), kind
            return
    if outcome.error:
        result.failure, result.kind = turn_failure(outcome.error), str(outcome.error.get("kind") or "error")


async def _deliver(client: Client, result: Result, artifacts: list[str], out: Path) -> None:
    try:
        result.delivered = await copy_out(client.aread_artifact, str(result.thread_id), artifacts, out)
    except OSError as error:
        result.failure = result.failure or CommandFailure(
            f"Cannot write to {out}: {error.strerror}.", "Choose a folder with --out."
        )
        result.kind = result.kind or "out"


def _report(progress: Console, result: Result, outcome: TurnOutcome) -> None:
    for item in result.delivered:
        where = f"→ {item.file}" if item.file else f"could not be copied: {item.problem}"
        progress.print(f"↓ {clean(item.path)} {clean(where)}", style=None if item.file else "warn", soft_wrap=True)
    for call in result.refused:
        progress.print(f"! {clean(call['tool'])} was not called: {clean(call['why'])}", style="warn", soft_wrap=True)
    if result.verification:
        progress.print(WORDS[result.verification], style=STYLES.get(result.verification), soft_wrap=True)
    if result.failure:
        TerminalTranscript(progress).failure(result.failure)
    progress.print(f"{usage_line(outcome).strip()} · thread {result.thread_id}", style="faint", soft_wrap=True)


def print_answer(result: Result, out: TextIO, *, as_json: bool) -> None:
    """The run's product on stdout: the answer, or one JSON object."""
    if as_json:
        out.write(result.as_json() + "\n")
    elif result.text and out.isatty():
        make_console(out).print("", Prose(clean(result.text), indent=0), sep="\n")
    elif result.text:
        out.write(clean(result.text) + "\n")
    out.flush()


def read_task(words: str) -> str:
    """The task's text; ``-`` stands for standard input. Raises CommandFailure when there is none."""
    source = "Standard input" if words == "-" else "The task"
    try:
        text = sys.stdin.read() if words == "-" else words
        text.encode()  # arguments that are not UTF-8 come as halves of surrogate pairs
    except UnicodeError:
        raise usage_failure(
            f"{source} is not valid UTF-8.", "Convert it, or hand it over as a file: --file PATH."
        ) from None
    if not text.strip():
        raise usage_failure("The task is empty.", 'Say what is to be done: deerflow run "…".')
    return text


def run_once(settings: Settings, task: OneShot, *, as_json: bool) -> int:
    """One shot. Returns the exit code; with ``as_json`` every end, an early one too, is one JSON object on stdout."""
    progress = make_console(stderr=True)
    try:
        task = replace(task, text=read_task(task.text))
        check_files(task.files)
        with raising_interrupts(*ENDS):
            with progress.status("Starting"):
                backend = open_backend(settings)
            result = asyncio.run(_run(backend, task, progress, settings.model))
    except KeyboardInterrupt:
        if not as_json:
            raise
        result = Result(task.thread_id, failure=CommandFailure("Stopped."), kind="stopped")
    except Exception as error:
        if not as_json or settings.debug:
            raise
        failure = explain(error)
        result = Result(failure=failure, kind=type(error).__name__)
        progress.print(f"deerflow: {clean(failure.message)}", style="bad", soft_wrap=True)
    print_answer(result, sys.stdout, as_json=as_json)
    return result.exit_code


async def _run(backend: Backend, task: OneShot, progress: Console, model: str | None) -> Result:
    try:
        show_circumstances(backend, model, progress)
        preparation = await Preparation.begin(backend.harness)
        if preparation.step:
            progress.print(f"{preparation.step}…", style="faint")
        await preparation.ended()
        if preparation.problem:
            progress.print(f"! {clean(preparation.problem)}", style="warn", soft_wrap=True)
        return await run_task(backend.client, task, progress)
    finally:
        await backend.client.aclose()


def show_circumstances(backend: Backend, model: str | None, progress: Console) -> None:
    """What to know about the server and the model before the first answer."""
    if backend.url is not None:
        progress.print(connected(backend.url), style="faint", soft_wrap=True)
    if backend.notice:
        progress.print(f"! {clean(backend.notice)}", style="warn", soft_wrap=True)
    if is_demo(backend.model(model)):
        progress.print(
            "! Demo model: no model is connected, the words are canned. `deerflow doctor` shows how to connect one.",
            style="warn",
            soft_wrap=True,
        )


def chat(settings: Settings, thread: str | None = None) -> int:
    """A chat on the terminal, or through a pipe when stdin or stdout is none. Returns the exit code."""
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    console = make_console(stderr=not on_terminal)
    with console.status("Starting", spinner_style="accent"):
        backend = open_backend(settings)
        if on_terminal and backend.harness is not None:
            backend.harness.sandbox_provider.probe()
    return asyncio.run(_chat(backend, console, thread, settings.model, on_terminal=on_terminal))


async def _chat(backend: Backend, console: Console, thread: str | None, model: str | None, *, on_terminal: bool) -> int:
    try:
        if on_terminal:
            sandbox = await asyncio.to_thread(backend.harness.sandbox_provider.probe) if backend.harness else None
            warnings = [warning for warning in (backend.notice, backend.problem()) if warning]
            answering = backend.model(model)
            console.print(
                banner(version("deerflow"), answering, sandbox=sandbox, server=backend.url, warnings=warnings)
            )
        else:
            show_circumstances(backend, model, console)
        answer = None if on_terminal else sys.stdout
        talk = TerminalChat(backend, console, await Preparation.begin(backend.harness), model=model, answer=answer)
        with typed_ahead() if on_terminal else nullcontext([]) as entered:
            talk.typed.queued += entered
            if thread:
                await enter(talk, f"/resume {thread}")
            return await (_prompt(talk) if on_terminal else _read_lines(talk))
    finally:
        await backend.client.aclose()


async def _prompt(talk: TerminalChat) -> int:
    """Prompt, answer, until the person leaves."""
    from deerflow_app.cli.chat.input import Prompt

    commands = {command.usage: command.help for command in COMMANDS.values()}
    prompt = Prompt(Paths().base_dir / "cli_history", commands, talk.status)
    while True:
        talk.console.print()
        if talk.typed.queued:
            line = talk.typed.queued.pop(0)
            talk.transcript.person(line)
        else:
            begun, talk.typed.text = talk.typed.text, ""
            line = await prompt.line(begun)
        if line is None or not await enter(talk, line):
            return 0


async def _read_lines(talk: TerminalChat) -> int:
    """Every line of stdin is a message. Returns 1 when a turn failed."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        if not await enter(talk, line):
            break
    return FAILED if talk.failed else 0
