"""`deerflow acp`: DeerFlow as the agent of an editor that speaks the Agent Client Protocol (https://agentclientprotocol.com)."""

from __future__ import annotations

import asyncio
import tempfile
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import acp
from acp import schema

from deerflow.agents.headline import headline
from deerflow_app.cli.chat.approvals import calls_of
from deerflow_app.cli.chat.cards import summary
from deerflow_app.cli.chat.files import DEFAULT_OUT, copy_out
from deerflow_app.cli.chat.turn import ToolRun

if TYPE_CHECKING:
    from deerflow.events.streams.client_events import StreamEvent
    from deerflow_app.cli.backend import Client

KINDS: Mapping[str, schema.ToolKind] = {
    "bash": "execute",
    "read_file": "read",
    "ls": "read",
    "view_image": "read",
    "write_file": "edit",
    "str_replace": "edit",
    "glob": "search",
    "grep": "search",
    "web_search": "search",
    "web_fetch": "fetch",
    "web_capture": "fetch",
    "write_todos": "think",
}
MAX_OUTPUT = 20_000
"""Characters of a tool's result that the editor gets."""
_OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("approve", "Allow", "allow_once"),
    ("thread", "Allow in this session", "allow_always"),
    ("reject", "Don’t allow", "reject_once"),
)
_REASONS: Mapping[str, schema.StopReason] = {
    "length": "max_tokens",
    "content_filter": "refusal",
    "loop": "max_turn_requests",
    "spending_limit": "max_turn_requests",
}
"""The protocol's stop reasons by those of a run; all others end the turn."""


class EditorAgent:
    """An agent in the sense of the protocol: sessions are threads, a prompt is a turn.

    Args:
        client: does the work, in this process or on a server.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._editor: Any = None
        self._folders: dict[str, Path] = {}
        self._turns: dict[str, asyncio.Task[Any]] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self._editor = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        """The answer is our version, whichever the editor has."""
        return acp.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
            ),
            agent_info=schema.Implementation(name="deerflow", title="DeerFlow", version=version("deerflow")),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        """Files that are delivered go to a folder in ``cwd``."""
        session_id = str(uuid4())
        self._folders[session_id] = Path(cwd)
        return acp.NewSessionResponse(session_id=session_id)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> acp.LoadSessionResponse:
        """Tell the editor what was said and done. Raises RequestError: there is no such session."""
        messages = (await self._client.athread_state(session_id))["values"]["messages"]
        if not messages:
            raise acp.RequestError.invalid_params({"session_id": session_id, "message": "There is no such session."})
        self._folders[session_id] = Path(cwd)
        for message in messages:
            if message["type"] == "human":
                await self._tell(session_id, acp.update_user_message_text(message["content"]))
            else:
                await self._show(session_id, message)
        return acp.LoadSessionResponse()

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Whoever can start this program may use it."""

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the session's turn. What was done stays."""
        if (turn := self._turns.get(session_id)) is not None:
            turn.cancel()

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> acp.PromptResponse:
        """One turn, with the decisions that it needs."""
        if session_id not in self._folders:
            raise acp.RequestError.invalid_params({"session_id": session_id, "message": "There is no such session."})
        turn = self._turns[session_id] = asyncio.create_task(self._turn(session_id, prompt))
        try:
            reason = await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                raise
            return acp.PromptResponse(stop_reason="cancelled")
        finally:
            self._turns.pop(session_id, None)
        return acp.PromptResponse(stop_reason=_REASONS.get(reason or "", "end_turn"))

    async def _turn(self, session_id: str, prompt: Sequence[Any]) -> str | None:
        """Play the turn and return its stop reason."""
        delivered = set(await self._artifacts(session_id))
        with tempfile.TemporaryDirectory(prefix="deerflow-acp-") as folder:
            text, files = await asyncio.to_thread(_read, prompt, Path(folder))
            reason = await self._follow(session_id, self._client.astream(text, thread_id=session_id, files=files))
        while waiting := (await self._client.athread_state(session_id))["interrupts"]:
            answers = {each["id"]: await self._decided(session_id, each["value"]) for each in waiting}
            reason = await self._follow(session_id, self._client.aresume(session_id, answers=answers))
        new = [path for path in await self._artifacts(session_id) if path not in delivered]
        for file in await copy_out(
            self._client.aread_artifact, session_id, new, self._folders[session_id] / DEFAULT_OUT
        ):
            if file.file is not None:
                link = acp.resource_link_block(file.file.name, file.file.absolute().as_uri())
                await self._tell(session_id, acp.update_agent_message(link))
        return reason

    async def _artifacts(self, session_id: str) -> list[str]:
        return (await self._client.athread_state(session_id))["values"]["artifacts"]

    async def _follow(self, session_id: str, turn: Any) -> str | None:
        """Show a turn as it goes, and return its stop reason."""
        reason = None
        async with aclosing(turn) as events:
            async for event in events:
                await self._event(session_id, event)
                reason = event.data.get("stop_reason") if event.type == "end" else reason
        return reason

    async def _event(self, session_id: str, event: StreamEvent) -> None:
        if event.type == "messages-tuple":
            await self._show(session_id, event.data)
        elif event.type == "values" and event.data["todos"]:
            entries = [
                acp.plan_entry(todo["content"], status="pending" if todo["status"] == "waiting" else todo["status"])
                for todo in event.data["todos"]
            ]
            await self._tell(session_id, acp.update_plan(entries))
        elif event.type == "end" and event.data["error"]:
            await self._tell(session_id, acp.update_agent_message_text(f"\n\n{event.data['error']['message']}"))

    async def _show(self, session_id: str, message: Mapping[str, Any]) -> None:
        """A message, or a piece of one."""
        if message["type"] == "tool":
            status = "failed" if message.get("status") == "error" else "completed"
            content = [acp.tool_content(acp.text_block(message["content"][:MAX_OUTPUT]))]
            await self._tell(session_id, acp.update_tool_call(message["tool_call_id"], status=status, content=content))
        elif message["type"] == "ai":
            if reasoning := message.get("reasoning_content"):
                await self._tell(session_id, acp.update_agent_thought_text(reasoning))
            if content := message.get("content"):
                await self._tell(session_id, acp.update_agent_message_text(content))
            for call in message.get("tool_calls") or ():
                await self._tell(session_id, _started(call["id"], call["name"], call["args"]))

    async def _decided(self, session_id: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """What the person decides about the calls that ask. An editor that closes the question says no."""
        decisions: list[dict[str, Any]] = []
        for request, allowed in calls_of(value):
            options: list[Any] = [
                schema.PermissionOption(option_id=key, name=name, kind=kind)  # type: ignore[arg-type]
                for key, name, kind in _OPTIONS
                if key in allowed
            ]
            call = schema.ToolCallUpdate(
                tool_call_id=f"decision-{uuid4()}",
                title=headline(request, value),
                kind=KINDS.get(request["name"], "other"),
                status="pending",
                raw_input=request["args"],
            )
            answer = await self._editor.request_permission(session_id=session_id, tool_call=call, options=options)
            chosen = getattr(answer.outcome, "option_id", "reject")
            grant = {"grant": chosen} if chosen == "thread" else {}
            decisions.append({"type": "reject" if chosen == "reject" else "approve", **grant})
        return {"decisions": decisions}

    async def _tell(self, session_id: str, update: Any) -> None:
        await self._editor.session_update(session_id=session_id, update=update)


def _started(call_id: str, name: str, args: Mapping[str, Any]) -> Any:
    path = args.get("path")
    locations = [schema.ToolCallLocation(path=path)] if isinstance(path, str) and path else None
    return acp.start_tool_call(
        call_id,
        summary(ToolRun(call_id, name, args)),
        kind=KINDS.get(name, "other"),
        status="in_progress",
        locations=locations,
        raw_input=dict(args),
    )


def _read(prompt: Sequence[Any], folder: Path) -> tuple[str, list[str | Path]]:
    """The words of a prompt, and its files; what is embedded is written to ``folder``."""
    words: list[str] = []
    files: list[str | Path] = []
    for block in prompt:
        if block.type == "text":
            words.append(block.text)
        elif block.type == "resource_link":
            path = Path(unquote(urlsplit(block.uri).path))
            if block.uri.startswith("file:") and path.is_file():
                files.append(path)
            words.append(f"[{block.name}]" if files and files[-1] == path else f"[{block.name}]({block.uri})")
        elif block.type == "resource":
            content = block.resource
            data = content.text.encode() if hasattr(content, "text") else b64decode(content.blob)
            files.append(_written(folder, unquote(urlsplit(content.uri).path).rpartition("/")[2] or "file", data))
        elif block.type == "image":
            files.append(_written(folder, f"image.{block.mime_type.rpartition('/')[2]}", b64decode(block.data)))
    return "\n".join(words) or "See the files.", files


def _written(folder: Path, name: str, data: bytes) -> Path:
    place = Path(tempfile.mkdtemp(dir=folder))
    file = place / Path(name).name
    file.write_bytes(data)
    return file


async def serve(client: Client) -> None:
    """Until the editor closes our standard input."""
    try:
        await acp.run_agent(EditorAgent(client))  # type: ignore[arg-type]
    finally:
        with suppress(asyncio.CancelledError):
            await client.aclose()
