"""DeerFlow behind HTTP: threads, turns and files of a running server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel

from deerflow.config.model_origin import ModelOrigin
from deerflow.identity import check_id
from deerflow_app.remote import RefusedError, ServerConnection, get_once

if TYPE_CHECKING:
    from deerflow.client_views import ClientThreadState, ClientThreadValues, FoundChat, ListedThread, ThreadList
    from deerflow.events.streams.client_events import StreamEvent

PATIENCE = 60.0
"""Seconds that a turn waits for a server that has gone, perhaps to be started anew."""
UPLOAD_SECONDS = 600.0
MOST_RUNS = 100


class RemoteModel(BaseModel):
    """A model that the server offers."""

    name: str
    model: str
    display_name: str | None = None
    description: str | None = None
    discovered_from: ModelOrigin | None = None


_NAME = re.compile(r"{(\w+)}")


def _verb(
    method: str, path: str, *names: str, part: str | None = None, body: str | None = None
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a method of :class:`RemoteClient`, called as the one of its name in ``DeerFlowClient``.

    Args:
        path: its names are the first arguments.
        names: of the arguments after them. They are fields of the JSON that is sent, in a GET of the query.
        part: of the answer, that is returned; None: all of it.
        body: the argument that is the JSON.
    """
    in_path = _NAME.findall(path)
    order = [*in_path, *names, *([body] if body else [])]

    async def ask(self: RemoteClient, *arguments: Any, **given: Any) -> Any:
        given |= zip(order, arguments, strict=False)
        where = path.format_map({name: quote(given.pop(name), safe="") for name in in_path})
        sent = (
            given[body]
            if body
            else {name: value for name, value in given.items() if value is not None or method != "GET"}
        )
        named = {"params" if method == "GET" else "json": sent} if sent or body else {}
        answer = await self._connection.ask(method, where, **named)  # pyright: ignore[reportPrivateUsage]
        return answer[part] if part else answer

    return ask


class RemoteClient:
    """See ``deerflow_app.cli.backend.Client``.

    Args:
    options: of every turn, as a run's ``context`` takes them, e.g. ``{"is_plan_mode": True}``.
    patience: see PATIENCE.

    Every method raises UnreachableError when nobody answers and RefusedError when the server says no.
    """

    def __init__(
        self,
        connection: ServerConnection,
        *,
        options: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._connection = connection
        self._options = dict(options or {})
        self._patience = patience
        self.models = [RemoteModel(**model) for model in get_once(connection.address, "/api/models")["models"]]

    # turns ----------------------------------------------------------------------------------------------------------

    async def astream(
        self,
        message: str,
        *,
        thread_id: str | None = None,
        files: Sequence[str | Path] = (),
        model_name: str | None = None,
        checks: Sequence[Mapping[str, Any]] = (),
    ) -> AsyncGenerator[StreamEvent, None]:
        """One turn: say ``message``, with files sent along, and follow what happens.

        Closing the iterator stops the turn; the thread keeps what was done, also half an answer. A turn goes on when
        this process dies.
        """
        thread_id = check_id(thread_id or str(uuid4()), "thread id")
        said: dict[str, Any] = {"role": "user", "content": message}
        if files:
            said["additional_kwargs"] = {"files": await self.aupload_files(thread_id, files)}
        run = await self._started(thread_id, {"messages": [said]}, model_name, checks=checks)
        async with aclosing(self._followed(run)) as events:
            async for event in events:
                yield event

    async def aresume(
        self, thread_id: str, *, model_name: str | None = None, answers: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """Join the turn that is going on, from its beginning; or go on with one that was cut off.

        Without either the last turn is told once more: it may have ended since the caller looked.

        Args:
            answers: to interrupts of the thread, by their id: it goes on with these.
        """
        runs = await self._runs(thread_id)
        active = _active(runs)
        if answers:
            run = await self._started(thread_id, None, model_name, answers)
        elif active:
            run = next((run for run in active if run["status"] == "running"), active[0])
        elif (await self.athread_state(thread_id))["unfinished"]:
            run = await self._started(thread_id, None, model_name)
        elif runs:
            run = runs[0]
        else:
            return
        async with aclosing(self._followed(run)) as events:
            async for event in events:
                yield event

    async def asteer(self, thread_id: str, message: str) -> None:
        """Hand a message to the turn that goes on; it is read at its next step. RefusedError: none does."""
        said = {"message": {"role": "user", "content": message}}
        await self._connection.post(f"/api/threads/{check_id(thread_id, 'thread id')}/steer", json=said)

    def _followed(self, run: Mapping[str, Any]) -> AsyncGenerator[StreamEvent, None]:
        from deerflow_app.remote.stream import Following

        return Following(self._connection, run, patience=self._patience).events()

    async def _started(
        self,
        thread_id: str,
        given: dict[str, Any] | None,
        model_name: str | None,
        answers: Mapping[str, Any] | None = None,
        checks: Sequence[Mapping[str, Any]] = (),
    ) -> Mapping[str, Any]:
        request = {
            "input": given,
            "command": {"resume": answers} if answers else None,
            "context": {**self._options, **({"model_name": model_name} if model_name else {})},
            "stream_mode": ["values", "updates", "messages-tuple", "custom"],
            "multitask_strategy": "reject",
            "if_not_exists": "create",
            "checks": list(checks),
        }
        try:
            return await self._connection.post(f"/api/threads/{thread_id}/runs", json=request)
        except RefusedError as error:
            if error.status == 409:
                error.remedy = "Wait for its end, or join it with /resume: Ctrl-C there stops it."
            raise

    # threads --------------------------------------------------------------------------------------------------------

    async def alist_threads(self, limit: int = 10) -> ThreadList:
        """See DeerFlowClient."""
        keys = ("thread_id", "created_at", "updated_at")
        query = {"limit": limit, "select": [*keys, "values.title"]}
        found = await self._connection.post("/api/threads/search", json=query)
        listed = [{**{key: thread[key] for key in keys}, "title": thread["values"].get("title")} for thread in found]
        return {"thread_list": cast("list[ListedThread]", listed)}

    async def athread_state(self, thread_id: str) -> ClientThreadState:
        """See DeerFlowClient."""
        from deerflow.events.streams.client_events import shown_values

        active = _active(await self._runs(thread_id))
        state = await self._if_there(
            f"/api/threads/{thread_id}/state", {"select": ["values", "next", "tasks", "interrupts"]}
        )
        state = state or {"values": {}, "next": [], "tasks": [], "interrupts": []}
        return {
            "values": cast("ClientThreadValues", shown_values(state["values"])),
            "next": tuple(state["next"]),
            "interrupts": [] if active else state["interrupts"],
            "unfinished": bool(active or state["next"] or state["tasks"]),
            "running": bool(active),
        }

    async def atasks(self, thread_id: str) -> list[dict[str, Any]]:
        """The thread's subagents."""
        return await self._if_there(f"/api/threads/{check_id(thread_id, 'thread id')}/tasks") or []

    agrants = _verb("GET", "/api/approvals/grants", part="grants")
    arevoke_grant = _verb("DELETE", "/api/approvals/grants/{grant_id}")
    atask_messages = _verb("GET", "/api/threads/{thread_id}/tasks/{task_id}/messages")
    acontext = _verb("GET", "/api/threads/{thread_id}/context", "model_name")
    atimeline = _verb("GET", "/api/runs/{run_id}/timeline")
    ausage = _verb("GET", "/api/usage")

    async def _runs(self, thread_id: str) -> list[dict[str, Any]]:
        """The newest first; a thread that is not there has none."""
        params = {"limit": MOST_RUNS, "select": ["run_id", "thread_id", "status"]}
        found = await self._if_there(f"/api/threads/{check_id(thread_id, 'thread id')}/runs", params)
        return found or []

    async def _if_there(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        try:
            return await self._connection.get(path, params)
        except RefusedError as error:
            if error.status != 404:
                raise
            return None

    # skills ---------------------------------------------------------------------------------------------------------

    alist_skills = _verb("GET", "/api/skills")
    aupdate_skill = _verb("PUT", "/api/skills/{name}", "enabled")
    adelete_skill = _verb("DELETE", "/api/skills/custom/{name}")
    aset_skill_secret = _verb("PUT", "/api/skills/{name}/secrets/{secret}", "value")
    aconfirm_skill_secrets = _verb("POST", "/api/skills/{name}/secrets/confirm", "digest")
    askill_suggestions = _verb("GET", "/api/skills/suggestions")

    async def aget_skill(self, name: str) -> dict[str, Any] | None:
        return await self._if_there(f"/api/skills/{quote(name, safe='')}")

    async def ainstall_skill(self, skill_path: str | Path) -> dict[str, Any]:
        """See ``DeerFlowClient.ainstall_skill``."""
        from deerflow.features.skills.service import skill_source

        given = await skill_source(skill_path)
        if isinstance(given, str):
            return await self._connection.post("/api/skills/install", json={"url": given})

        async def body() -> AsyncGenerator[bytes, None]:
            yield given

        return await self._connection.post(
            "/api/skills/archive", content=body, headers={"Content-Type": "application/zip"}
        )

    async def areview_skill_suggestion(self, suggestion_id: str, *, accept: bool) -> None:
        """See ``DeerFlowClient.areview_skill_suggestion``."""
        path = f"/api/skills/suggestions/{quote(suggestion_id, safe='')}"
        await self._connection.ask("POST" if accept else "DELETE", path)

    # memory ---------------------------------------------------------------------------------------------------------

    aget_memory = _verb("GET", "/api/memory")
    aimport_memory = _verb("POST", "/api/memory/import", body="memory_data")
    acreate_memory_fact = _verb("POST", "/api/memory/facts", "content", "category", "confidence")
    adelete_memory_fact = _verb("DELETE", "/api/memory/facts/{fact_id}")
    aconfirm_memory_fact = _verb("POST", "/api/memory/facts/{fact_id}/confirm")
    aundo_memory_fact = _verb("POST", "/api/memory/facts/{fact_id}/undo")
    asearch_memory = _verb("GET", "/api/memory/search", "q", part="facts")

    # agents ---------------------------------------------------------------------------------------------------------

    alist_agents = _verb("GET", "/api/agents", part="agents")
    aget_agent = _verb("GET", "/api/agents/{name}")
    acreate_agent = _verb("POST", "/api/agents", "name")
    aupdate_agent = _verb("PUT", "/api/agents/{name}")
    adelete_agent = _verb("DELETE", "/api/agents/{name}")
    aagent_versions = _verb("GET", "/api/agents/{name}/versions", part="versions")
    arollback_agent = _verb("POST", "/api/agents/{name}/rollback", "version")

    async def asearch_chats(self, query: str) -> list[FoundChat]:
        """See DeerFlowClient."""
        hits = (await self._connection.get("/api/search/messages", {"q": query}))["data"]
        return [{"thread_id": hit["thread_id"], "title": hit["title"], "snippet": hit["snippet"]} for hit in hits]

    # MCP servers ----------------------------------------------------------------------------------------------------

    aget_mcp_config = _verb("GET", "/api/mcp/config")
    aupdate_mcp_config = _verb("PUT", "/api/mcp/config", "mcp_servers")
    alist_mcp_servers = _verb("GET", "/api/mcp/servers", part="servers")
    alist_mcp_prompts = _verb("GET", "/api/mcp/prompts", part="prompts")
    arestart_mcp_server = _verb("POST", "/api/mcp/servers/{name}/restart")
    alist_mcp_changes = _verb("GET", "/api/mcp/servers/{name}/changes", part="changes")
    aaccept_mcp_changes = _verb("POST", "/api/mcp/servers/{name}/accept", "digests", part="changes")
    aread_mcp_log = _verb("GET", "/api/mcp/servers/{name}/log", part="lines")

    # files ----------------------------------------------------------------------------------------------------------

    async def aupload_files(self, thread_id: str, files: Sequence[str | Path]) -> list[dict[str, Any]]:
        """Send files into the thread's uploads; how a message names them."""

        body = UploadBody([Path(file).expanduser() for file in files])
        answer = await self._connection.post(
            f"/api/threads/{thread_id}/uploads",
            content=body.chunks,
            headers={"Content-Type": body.content_type},
            silence=UPLOAD_SECONDS,
        )
        return [
            {"filename": file["filename"], "size": int(file["size"]), "path": file["path"], "status": "uploaded"}
            for file in answer["files"]
        ]

    async def aread_artifact(self, thread_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """The pieces of a file, by its virtual path. Raises SandboxFileError when it cannot be had."""
        from deerflow.sandbox.interface import SandboxFileError

        address = quote("/" + path.lstrip("/"), errors="surrogateescape")
        where = f"/api/threads/{thread_id}/artifacts{address}"
        try:
            async with self._connection.open("GET", where, params={"download": "true"}) as answer:
                async for piece in answer.aiter_bytes():
                    yield piece
        except RefusedError as error:
            raise SandboxFileError(str(error)) from error

    async def afile_sizes(self, thread_id: str) -> dict[str, int]:
        """Bytes of the thread's files that were delivered or sent, by virtual path."""
        delivered = await self._if_there(f"/api/threads/{thread_id}/artifacts") or {"artifacts": []}
        sent = await self._if_there(f"/api/threads/{thread_id}/uploads/list") or {"files": []}
        return {file["path"]: int(file["size"]) for file in [*delivered["artifacts"], *sent["files"]]}

    async def aclose(self) -> None:
        """Let go of the connections. Runs go on."""
        await self._connection.aclose()


def _active(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that have not ended, the oldest first."""
    return [run for run in reversed(runs) if run["status"] in ("pending", "running")]


PIECE = 1 << 20


class UploadBody:
    """A form with each file in a field ``files`` (RFC 7578; names as browsers write them)."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._boundary = uuid4().hex
        self.content_type = f"multipart/form-data; boundary={self._boundary}"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for path in self._files:
            name = path.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
            head = f'--{self._boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
            yield head.encode("utf-8", "surrogateescape")
            file = await asyncio.to_thread(path.open, "rb")
            try:
                while piece := await asyncio.to_thread(file.read, PIECE):
                    yield piece
            finally:
                await asyncio.to_thread(file.close)
            yield b"\r\n"
        yield f"--{self._boundary}--\r\n".encode()
