"""`deerflow run`: one task, one answer, its files copied out."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console

from deerflow_app.cli.deliver import DEFAULT_OUT, Delivered, copy_out
from deerflow_app.cli.failures import FAILED, Failure, explain, turn_failure, usage_failure
from deerflow_app.cli.interrupt import until_interrupted
from deerflow_app.cli.plain_view import PlainView
from deerflow_app.cli.terminal import clean
from deerflow_app.cli.transcript import Transcript, usage_line
from deerflow_app.cli.turn import Outcome, Turn

if TYPE_CHECKING:
    from deerflow_app.cli.client import Client

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """What one shot consists of."""

    text: str
    """What is to be done; ``-`` stands for what standard input says (see ``read_task``)."""
    files: tuple[Path, ...] = ()
    out: Path | None = None
    thread_id: str | None = None


@dataclass(slots=True)
class Result:
    """What a run hands back; ``as_json`` is the contract of ``--json``."""

    thread_id: str | None = None
    text: str = ""
    delivered: Sequence[Delivered] = ()
    usage: dict[str, Any] | None = None
    failure: Failure | None = None
    kind: str = ""

    @property
    def exit_code(self) -> int:
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
                "error": error,
                "exit_code": self.exit_code,
            },
            ensure_ascii=False,
        )


async def run_task(client: Client, task: Task, progress: Console) -> Result:
    """Carry the task out, telling every step on ``progress``, and copy out what it delivered."""
    thread_id = task.thread_id or str(uuid.uuid4())
    known = (await client.athread_state(thread_id))["values"].get("artifacts") if task.thread_id else None
    turn = Turn(PlainView(progress), known_artifacts=known)
    result = Result(thread_id)
    try:
        events = client.astream(task.text, thread_id=thread_id, files=task.files)
        async with contextlib.aclosing(events):  # type: ignore[type-var]
            turn.outcome.stopped = await until_interrupted(turn.play(events)) is None
    except Exception as error:
        logger.error("%s", error, exc_info=error)
        result.failure, result.kind = explain(error), type(error).__name__
    outcome = turn.outcome
    result.text, result.usage = outcome.text, outcome.usage
    _judge(result, outcome)
    await _deliver(client, result, outcome.artifacts, task.out or DEFAULT_OUT)
    _report(progress, result, outcome)
    return result


def _judge(result: Result, outcome: Outcome) -> None:
    if outcome.stopped:
        result.failure = Failure(
            "Stopped.", remedy=f"Go on with: deerflow --thread {result.thread_id}", exit_code=FAILED
        )
        result.kind = "stopped"
    elif outcome.error:
        result.failure, result.kind = turn_failure(outcome.error), str(outcome.error.get("kind") or "error")


async def _deliver(client: Client, result: Result, artifacts: list[str], out: Path) -> None:
    try:
        result.delivered = await copy_out(client, str(result.thread_id), artifacts, out)
    except OSError as error:
        result.failure = result.failure or Failure(
            f"Cannot write to {out}: {error.strerror}.", remedy="Choose a folder with --out."
        )
        result.kind = result.kind or "out"


def _report(progress: Console, result: Result, outcome: Outcome) -> None:
    for item in result.delivered:
        where = f"→ {item.file}" if item.file else f"could not be copied: {item.problem}"
        progress.print(f"↓ {clean(item.path)} {clean(where)}", style=None if item.file else "warn", soft_wrap=True)
    if result.failure:
        Transcript(progress).failure(result.failure)
    progress.print(f"{usage_line(outcome).strip()} · thread {result.thread_id}", style="faint", soft_wrap=True)


def print_answer(result: Result, out: TextIO, *, as_json: bool) -> None:
    """The run's product on stdout: the answer, or one JSON object."""
    if as_json:
        out.write(result.as_json() + "\n")
    elif result.text and out.isatty():
        from deerflow_app.cli.markdown import Prose
        from deerflow_app.cli.terminal import make_console

        make_console(out).print("", Prose(clean(result.text), indent=0), sep="\n")
    elif result.text:
        out.write(clean(result.text) + "\n")
    out.flush()


def read_task(words: str) -> str:
    """The task's text; ``-`` stands for standard input. Raises Failure when there is none."""
    text = sys.stdin.read() if words == "-" else words
    if not text.strip():
        raise usage_failure("The task is empty.", 'Say what is to be done: deerflow run "…".')
    return text
