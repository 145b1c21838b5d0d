"""`deerflow`: a conversation in the terminal, or line by line through a pipe, and its slash commands."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shlex
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deerflow.errors import ConflictError, NotFoundError
from deerflow.identity import check_id
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE
from deerflow_app.cli.backend import existing_thread
from deerflow_app.cli.chat.approvals import WAITING, TerminalApprovals
from deerflow_app.cli.chat.files import DEFAULT_OUT, check_files, copy_out, host_path, human_size, thread_folders
from deerflow_app.cli.chat.transcript import TerminalTranscript, model_label
from deerflow_app.cli.chat.turn import TerminalTurn
from deerflow_app.cli.chat.typed_ahead import TypedAhead
from deerflow_app.cli.chat.view import LiveView, PlainView
from deerflow_app.cli.failures import explain, turn_failure, usage_failure
from deerflow_app.cli.terminal import clean, one_line, until_interrupted
from deerflow_app.remote import RefusedError, UnreachableError

if TYPE_CHECKING:
    from deerflow.client_views import ListedThread
    from deerflow.events.streams.client_events import StreamEvent
    from deerflow_app.cli.backend import Backend, Preparation

T = TypeVar("T")
logger = logging.getLogger(__name__)


class TerminalChat:
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
        preparation: Preparation,
        *,
        model: str | None,
        answer: TextIO | None,
    ) -> None:
        self.backend = backend
        self.client = backend.client
        self.console = console
        self.transcript = TerminalTranscript(console)
        self.model_name = model
        self.attached: list[Path] = []
        self.failed = False
        self._approvals = TerminalApprovals(console, "ask" if answer is None else "deny")
        self._preparation: Preparation | None = preparation
        self._answer = answer
        self.typed = TypedAhead(self._steer)
        """Text that the person entered, or began to, while the agent worked."""
        self.begin()

    def begin(self, thread_id: str | None = None) -> None:
        """Turn to a new chat, or to the one named."""
        self.thread_id = thread_id or str(uuid.uuid4())
        self.title = ""
        self.waiting = False
        """Calls of the thread wait for a decision of the person."""
        self._artifacts: list[str] = []
        self._todos: list[dict[str, Any]] = []
        self.attached.clear()

    async def send(self, text: str) -> None:
        """A message of the person, with the files attached to it, and the agent's turn on it."""
        files = tuple(self.attached)
        self.attached.clear()
        await self._turn(self.client.astream(text, thread_id=self.thread_id, files=files, model_name=self.model_name))

    async def open(self, thread_id: str) -> None:
        """Turn to a thread: show it as it stands, and finish its last turn if that was cut off.

        Raises:
            CommandFailure: there is no such thread.
        """
        state = await existing_thread(self.client, thread_id, "/chats lists the latest ones.")
        values = state["values"]
        self.begin(thread_id)
        self._remember(values)
        self.transcript.block(Text(f"  Chat {thread_id}", style="faint"))
        self.transcript.history(values["messages"])
        if state["interrupts"]:
            await self._decide(state)
        elif state["unfinished"]:
            self.transcript.notice(
                "The agent is at work. You see it live; Ctrl-C stops it."
                if state.get("running")
                else "The last turn was cut off. Continuing after its last finished step."
            )
            events = self.client.aresume(thread_id, model_name=self.model_name)
            await self._turn(events, values["messages"])

    @property
    def answers_a_pipe(self) -> bool:
        return self._answer is not None

    def status(self) -> str:
        """The line below the prompt."""
        parts = [model_label(self.backend.model(self.model_name)), self.title or "new chat"]
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
        live = self._answer is None
        async with LiveView(self.console, self.typed) if live else PlainView(self.console, self._answer) as view:
            turn = TerminalTurn(view, known_artifacts=self._artifacts, known_messages=shown, known_todos=self._todos)
            async with self.typed.reading():
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
            self.transcript.notice("Everything up to the last finished step is kept. Say how to go on, or /resume.")
        state = await self.client.athread_state(self.thread_id)
        self._remember(state["values"])
        self.waiting = bool(state["interrupts"])
        if self.waiting and ask and not outcome.stopped:
            await self._decide(state)
        elif self.waiting:
            self.transcript.notice(WAITING)

    async def _steer(self, text: str) -> bool:
        """Hand a message to the turn that goes on. False if it has ended, or does not take it: it is then the next message."""
        try:
            await self.client.asteer(self.thread_id, text)
        except (ConflictError, RefusedError, UnreachableError):
            return False
        self.transcript.block(
            Text(f"› {clean(text)}", style="bold").append("  sent – read at the next step", style="faint")
        )
        return True

    async def _decide(self, state: Mapping[str, Any]) -> None:
        """Ask the person for what the thread waits for, one after the other, and go on with each answer."""
        answers = await self._approvals.answers(state["interrupts"])
        if not answers:
            self.transcript.notice(WAITING)
            return
        events = self.client.aresume(self.thread_id, model_name=self.model_name, answers=answers)
        await self._turn(events, state["values"]["messages"])

    async def _places(self, artifacts: list[str]) -> dict[str, Path | None]:
        """Where delivered files lie on this machine; those of a server elsewhere are fetched."""
        if (paths := self.backend.paths) is not None:
            return {path: host_path(paths, self.thread_id, path) for path in artifacts}
        fetched = await copy_out(self.client.aread_artifact, self.thread_id, artifacts, DEFAULT_OUT)
        return {one.path: one.file for one in fetched}

    def _remember(self, values: Mapping[str, Any]) -> None:
        self.title = values["title"] or ""
        self._artifacts = values["artifacts"]
        self._todos = values.get("todos") or []


SHOWN_THREADS = 15
SHOWN_FILES = 200


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command. ``run`` gets the chat and the words after the command."""

    usage: str
    help: str
    run: Callable[[TerminalChat, str], Awaitable[None]]


def is_command(line: str) -> bool:
    """Whether a line is meant as a command: one word after the slash, so that a path is still a message."""
    return re.fullmatch(r"/[a-z]+", line.split()[0]) is not None


async def enter(chat: TerminalChat, line: str) -> bool:
    """Take one line: a command, or a message to the agent. False when the person wants to leave."""
    text = line.strip()
    if not text:
        return True
    name, _, argument = text.partition(" ")
    try:
        if name == "/exit":
            return False
        if not is_command(text) or name == "/compact":
            await chat.send(text)
        elif (name := FORMER_NAMES.get(name, name)) in COMMANDS:
            await COMMANDS[name].run(chat, argument.strip())
        elif (skill := await chat.client.aget_skill(name[1:])) and skill["enabled"]:
            await chat.send(text)
        else:
            raise usage_failure(
                f"There is no command {name}.", "/help lists the commands, `deerflow skills list` the skills."
            )
    except Exception as error:
        logger.error("%s", error, exc_info=error)
        chat.failed = True
        chat.transcript.failure(explain(error))
    return True


async def _new(chat: TerminalChat, _argument: str) -> None:
    chat.begin()
    chat.transcript.block(Text("  New chat.", style="faint"))


def _table() -> Table:
    return Table(box=None, show_header=False, padding=(0, 1))


def _show(chat: TerminalChat, table: Table, hint: str, *, empty: str) -> None:
    if table.row_count:
        chat.transcript.block(table)
        chat.console.print(Text(f"  {hint}", style="faint"))
    else:
        chat.transcript.block(Text(f"  {empty}", style="faint"))


def _numbered(found: Sequence[T], argument: str, what: str, verb: str = "") -> T:
    """Return the item at the number in ``argument``, which may begin with ``verb``. Raises CommandFailure."""
    number = argument.removeprefix(verb).strip()
    if not number.isdecimal() or not 1 <= int(number) <= len(found):
        raise usage_failure(f"There is no {what} {argument!r}.", f"/{what}s lists them.")
    return found[int(number) - 1]


async def _threads(chat: TerminalChat, _argument: str) -> None:
    table = _table()
    for number, thread in enumerate(await _listed(chat), 1):
        here = "▸" if thread["thread_id"] == chat.thread_id else " "
        title = one_line(thread["title"] or "", 60) or "(no title)"
        table.add_row(
            Text(f"{here} {number:>2}", style="accent"),
            title,
            Text(_age(thread), style="faint"),
            Text(thread["thread_id"][:8], style="faint"),
        )
    _show(chat, table, "/resume NUMBER opens one.", empty="No chats yet.")


async def _resume(chat: TerminalChat, argument: str) -> None:
    waiting = chat.thread_id if chat.waiting else ""
    await chat.open(_picked(await _listed(chat), argument or waiting, chat.thread_id))


async def _model(chat: TerminalChat, argument: str) -> None:
    if argument:
        chat.backend.model(argument)
        chat.model_name = argument
        chat.transcript.block(Text("  From now on ").append(argument, style="bold").append(" answers."))
        return
    current = chat.backend.model(chat.model_name)
    lines = Text("")
    for model in chat.backend.models:
        mark = "▸" if model.name == current.name else " "
        lines.append(f"  {mark} {model.name:<24}", style="bold" if model.name == current.name else "none")
        lines.append(f"{clean(model.description or model_label(model))}\n", style="faint")
    lines.append("  /model NAME changes it.", style="faint")
    chat.transcript.block(lines)


async def _connect(chat: TerminalChat, _argument: str) -> None:
    from deerflow_app.cli.chat.connect import connect

    source = getattr(chat.client, "config_source", None)
    if source is None or chat.answers_a_pipe:
        raise usage_failure(
            "A key can be entered in the terminal when no server is running.", "Use Settings → Models on its page."
        )
    await connect(chat.transcript, source)
    chat.backend = replace(chat.backend, models=(await source.acurrent()).models)


async def _files(chat: TerminalChat, argument: str) -> None:
    if argument:
        await _attach(chat, argument)
        return
    folders = thread_folders(chat.backend.paths, chat.thread_id) if chat.backend.paths else {}
    listing = _listing(await chat.backend.file_sizes(chat.thread_id), folders)
    for path in chat.attached:
        listing.append(f"  + {clean(str(path))}", style="none").append("  goes with your next message\n", style="faint")
    if not listing.plain:
        listing.append("  This chat has no files yet.\n", style="faint")
    listing.append("  /files PATH attaches a file to your next message.", style="faint")
    chat.transcript.block(listing)


async def _attach(chat: TerminalChat, argument: str) -> None:
    try:
        paths = [Path(word).expanduser() for word in shlex.split(argument)]
    except ValueError:
        paths = [Path(argument).expanduser()]
    await asyncio.to_thread(check_files, paths)
    chat.attached += [path.resolve() for path in paths]
    names = ", ".join(clean(path.name) for path in paths)
    chat.transcript.block(Text(f"  {names} goes with your next message.", style="faint"))


async def _context(chat: TerminalChat, _argument: str) -> None:
    try:
        table = await chat.client.acontext(chat.thread_id, model_name=chat.model_name)
    except (NotFoundError, RefusedError):
        raise usage_failure("This chat is still empty.", "Send a message first.") from None
    shown = _table()
    limit, used = table["limit"], table["used"]
    whole = limit or used or 1
    for name, key in _PARTS:
        if table[key] or key != "summary":
            shown.add_row(
                f" {name}", Text(f"{table[key]:,}", justify="right"), Text(f"{table[key] / whole:.0%}", style="faint")
            )
    if limit:
        free = max(0, limit - used)
        shown.add_row(" Free", Text(f"{free:,}", justify="right"), Text(f"{free / whole:.0%}", style="faint"))
    chat.transcript.block(shown)
    window = f"a window of {table['window']:,} tokens" if table["window"] else "a window whose size is not known"
    chat.console.print(Text(f"  {table['model']} has {window}. /compact makes room.", style="faint"))


async def _help(chat: TerminalChat, _argument: str) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2))
    for command in COMMANDS.values():
        table.add_row(Text(command.usage, style="accent"), command.help)
    for prompt in await chat.client.alist_mcp_prompts():
        usage = " ".join([prompt["command"], *(f"[{one['name']}]" for one in prompt["arguments"])])
        table.add_row(Text(clean(usage), style="accent"), Text(one_line(prompt["description"], 100)))
    for key, what in _KEYS:
        table.add_row(Text(key, style="accent"), Text(what))
    chat.transcript.block(table)


async def _elsewhere(_chat: TerminalChat, _argument: str) -> None:
    """:func:`enter` decides what leaves, and what is a message."""


async def _tasks(chat: TerminalChat, argument: str) -> None:
    tasks = await chat.client.atasks(chat.thread_id)
    if argument:
        from deerflow.events.streams.client_events import shown_message

        task = _numbered(tasks, argument, "task")
        messages = await chat.client.atask_messages(chat.thread_id, task["task_id"])
        chat.transcript.history([shown_message(message) for message in messages])
        return
    table = _table()
    for number, task in enumerate(tasks, 1):
        spent = f"{task['seconds']:g} s · {task['tokens']:,} tokens" if task["tokens"] else ""
        what = one_line(clean(task["description"]), 60)
        table.add_row(f" {number}", task["status"].replace("_", " "), what, Text(spent, style="faint"))
    _show(chat, table, "/tasks NUMBER shows what one did.", empty="No subagent has worked in this chat.")


async def _grants(chat: TerminalChat, argument: str) -> None:
    found = await chat.client.agrants()
    if argument:
        grant = _numbered(found, argument, "grant", "revoke")
        await chat.client.arevoke_grant(grant["id"])
        chat.transcript.block(Text("  Revoked. Such calls ask again.", style="faint"))
        return
    table = _table()
    for number, grant in enumerate(found, 1):
        where = "always" if grant["thread_id"] is None else f"in chat {grant['thread_id'][:8]}"
        what = json.dumps(grant["pattern"], ensure_ascii=False) if grant["pattern"] else "every call"
        if host := grant.get("destination"):
            what = f"may send to {host}"
        elif "digest" in grant and grant["digest"] is None:
            what = "expired: you are asked again"
        by = f" of {grant['agent']}" if grant["agent"] else ""
        table.add_row(f" {number}", clean(grant["tool"] + by), clean(what), Text(where, style="faint"))
    _show(chat, table, "/grants revoke NUMBER takes one back.", empty="No saved approvals.")


_PARTS = (
    ("System prompt", "system"),
    ("Tools", "tools"),
    ("Messages", "messages"),
    ("Tool results", "tool_results"),
    ("Summary", "summary"),
)
COMMANDS = {
    command.usage.split()[0]: command
    for command in (
        SlashCommand("/new", "start a new chat", _new),
        SlashCommand("/chats", "list the latest chats", _threads),
        SlashCommand(
            "/resume [number or id]", "open a chat (the latest other one), and finish what was cut off", _resume
        ),
        SlashCommand("/model [name]", "show the models, or choose the one that answers", _model),
        SlashCommand("/connect", "enter a provider’s key", _connect),
        SlashCommand("/context", "show what fills the model's window", _context),
        SlashCommand("/compact [what to keep]", "summarize this chat for the model", _elsewhere),
        SlashCommand("/grants [revoke number]", "list what you allowed for longer, or revoke it", _grants),
        SlashCommand("/tasks [number]", "list this chat’s subagents, or show what one did", _tasks),
        SlashCommand("/files [path …]", "list this chat’s files, or attach files to the next message", _files),
        SlashCommand("/help", "this list", _help),
        SlashCommand("/exit", "leave", _elsewhere),
    )
}
FORMER_NAMES = {"/threads": "/chats"}
_KEYS = (
    ("Alt-Enter", "a new line in your message"),
    ("Enter", "while the agent works: queue a message; once more: send it now"),
    ("Ctrl-C", "stop the agent; what was finished is kept"),
    ("Ctrl-D", "leave"),
)


async def _listed(chat: TerminalChat) -> list[ListedThread]:
    return (await chat.client.alist_threads(limit=SHOWN_THREADS))["thread_list"]


def _picked(threads: list[ListedThread], argument: str, current: str) -> str:
    """The id of the thread that was meant: by number, by the beginning of its id, or the latest other one."""
    ids = [thread["thread_id"] for thread in threads]
    if not argument:
        found = [thread_id for thread_id in ids if thread_id != current][:1] or ids[:1]
    elif argument.isdecimal() and 1 <= int(argument) <= len(ids):
        found = [ids[int(argument) - 1]]
    else:
        found = [thread_id for thread_id in ids if thread_id.startswith(argument)]
    if len(found) > 1:
        raise usage_failure(f"Several chats begin with {argument!r}.", "Give more of the id.")
    if not found and not argument:
        raise usage_failure("There is no chat yet.")
    return found[0] if found else check_id(argument, "thread id")


def _age(thread: Mapping[str, Any]) -> str:
    seconds = (datetime.now(UTC) - datetime.fromisoformat(thread["updated_at"])).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "just now"


def _listing(sizes: Mapping[str, int], folders: Mapping[str, Path]) -> Text:
    """Files by the folder they are in, which is named by its place on this machine if it has one."""
    listing = Text("")
    for virtual in (OUTPUTS, WORKSPACE, UPLOADS):
        files = sorted(path for path in sizes if path.startswith(f"{virtual}/"))
        if not files:
            continue
        place = str(folders.get(virtual, virtual))
        listing.append(f"  {virtual.rsplit('/', 1)[-1]} ", style="bold").append(f"{place}\n", style="faint")
        for path in files[:SHOWN_FILES]:
            name = clean(path.removeprefix(f"{virtual}/"))
            listing.append(f"    {name}").append(f"  {human_size(sizes[path])}\n", style="faint")
        if len(files) > SHOWN_FILES:
            listing.append(f"    … {len(files) - SHOWN_FILES:,} more\n", style="faint")
    return listing
