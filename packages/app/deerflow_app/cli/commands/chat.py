"""`deerflow`: a conversation on the terminal, or line by line through a pipe."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from deerflow.config import Paths
from deerflow_app.cli.chat.session import Chat
from deerflow_app.cli.chat.slash import COMMANDS, enter
from deerflow_app.cli.chat.transcript import banner
from deerflow_app.cli.commands.run import preparation_of, show_circumstances
from deerflow_app.cli.failures import FAILED
from deerflow_app.cli.opening import open_backend
from deerflow_app.cli.terminal import make_console

if TYPE_CHECKING:
    from rich.console import Console

    from deerflow_app.cli.client import Backend
    from deerflow_app.cli.options import Settings


def chat(settings: Settings, *, thread: str | None, model: str | None, plan: bool, thinking: bool) -> int:
    """A chat on the terminal, or through a pipe when stdin or stdout is none. Returns the exit code."""
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    console = make_console(stderr=not on_terminal)
    with console.status("Starting", spinner_style="accent"):
        backend = open_backend(settings, model=model, thinking=thinking, plan=plan)
        if on_terminal and backend.harness is not None:
            backend.harness.sandbox_provider.probe()
    return asyncio.run(_chat(backend, console, thread, model, on_terminal=on_terminal))


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
        talk = Chat(backend, console, model=model, preparation=await preparation_of(backend), answer=answer)
        if thread:
            await enter(talk, f"/resume {thread}")
        return await (_prompt(talk) if on_terminal else _read_lines(talk))
    finally:
        await backend.client.aclose()


async def _prompt(talk: Chat) -> int:
    """Prompt, answer, until the person leaves."""
    from deerflow_app.cli.chat.input import Prompt, typed_ahead

    prompt = Prompt(Paths().base_dir / "cli_history", list(COMMANDS), talk.status)
    with typed_ahead():
        while True:
            talk.console.print()
            line = await prompt.line()
            if line is None or not await enter(talk, line):
                return 0


async def _read_lines(talk: Chat) -> int:
    """Every line of stdin is a message. Returns 1 when a turn failed."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        if not await enter(talk, line):
            break
    return FAILED if talk.failed else 0
