"""From a parsed command to a running one: opens the client, runs on an event loop, closes."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from deerflow.config import Paths
from deerflow_app.cli.banner import banner, connected
from deerflow_app.cli.client import chosen_model, is_demo
from deerflow_app.cli.failures import explain
from deerflow_app.cli.opening import open_client
from deerflow_app.cli.preparation import Preparation
from deerflow_app.cli.run import Result, Task, print_answer, read_task, run_task
from deerflow_app.cli.terminal import clean, make_console
from deerflow_app.cli.uploads import check_files

if TYPE_CHECKING:
    from rich.console import Console

    from deerflow_app.cli.client import Client
    from deerflow_app.cli.settings import Settings


def chat(settings: Settings, *, thread: str | None, model: str | None, plan: bool, thinking: bool) -> int:
    """A chat on the terminal, or through a pipe when stdin or stdout is none. Returns the exit code."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        console = make_console()
        with console.status("Starting", spinner_style="accent"):
            client = open_client(settings, model=model, thinking=thinking, plan=plan)
            if client.harness is not None:
                client.harness.sandbox_provider.probe()
        return asyncio.run(_chat_on_terminal(client, console, thread=thread, model=model))
    client = open_client(settings, model=model, thinking=thinking, plan=plan)
    return asyncio.run(_chat_through_pipe(client, thread=thread, model=model))


async def _chat_on_terminal(client: Client, console: Console, *, thread: str | None, model: str | None) -> int:
    from deerflow_app.cli.chat import Chat, chat_on_terminal

    try:
        answering = chosen_model(client, model)
        sandbox = await asyncio.to_thread(client.harness.sandbox_provider.probe) if client.harness else None
        warnings = [said for said in (client.notice, client.problem) if said]
        console.print(banner(version("deerflow"), answering, sandbox=sandbox, server=client.url, warnings=warnings))
        talk = Chat(client, console, model=model, preparation=await _preparation(client))
        if thread:
            await talk.enter(f"/resume {thread}")
        return await chat_on_terminal(talk, Paths().base_dir / "cli_history")
    finally:
        await client.aclose()


async def _chat_through_pipe(client: Client, *, thread: str | None, model: str | None) -> int:
    from deerflow_app.cli.chat import Chat, chat_through_pipe

    progress = make_console(stderr=True)
    try:
        _tell_circumstances(client, model, progress)
        talk = Chat(client, progress, model=model, preparation=await _preparation(client), answer=sys.stdout)
        if thread:
            await talk.enter(f"/resume {thread}")
        return await chat_through_pipe(talk, sys.stdin)
    finally:
        await client.aclose()


def run_once(settings: Settings, task: Task, *, model: str | None, plan: bool, thinking: bool, as_json: bool) -> int:
    """One shot. Returns the exit code; with ``as_json`` every end, an early one too, is one JSON object on stdout."""
    progress = make_console(stderr=True)
    try:
        task = replace(task, text=read_task(task.text))
        check_files(list(task.files))
        client = open_client(settings, model=model, thinking=thinking, plan=plan)
        result = asyncio.run(_run(client, task, progress, model))
    except Exception as error:
        if not as_json or settings.debug:
            raise
        failure = explain(error)
        result = Result(failure=failure, kind=type(error).__name__)
        progress.print(f"deerflow: {clean(failure.message)}", style="bad", soft_wrap=True)
    print_answer(result, sys.stdout, as_json=as_json)
    return result.exit_code


async def _run(client: Client, task: Task, progress: Console, model: str | None) -> Result:
    try:
        _tell_circumstances(client, model, progress)
        if (preparation := await _preparation(client)) is not None:
            if preparation.step:
                progress.print(f"{preparation.step}…", style="faint")
            await preparation.ended()
            if preparation.problem:
                progress.print(f"! {clean(preparation.problem)}", style="warn", soft_wrap=True)
        return await run_task(client, task, progress)
    finally:
        await client.aclose()


async def _preparation(client: Client) -> Preparation | None:
    """A server prepares its sandbox itself."""
    return await Preparation.begin(client.harness) if client.harness else None


def _tell_circumstances(client: Client, model: str | None, progress: Console) -> None:
    if client.url is not None:
        progress.print(connected(client.url), style="faint", soft_wrap=True)
    if client.notice:
        progress.print(f"! {clean(client.notice)}", style="warn", soft_wrap=True)
    if is_demo(chosen_model(client, model)):
        progress.print(
            "! Demo model: no model is connected, the words are canned. `deerflow doctor` says how to connect one.",
            style="warn",
            soft_wrap=True,
        )
