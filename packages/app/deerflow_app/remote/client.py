"""DeerFlow behind HTTP: threads, turns and files of a running server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel

from deerflow.config.model_origin import ModelOrigin
from deerflow.identity import check_id
from deerflow_app.remote import Connection, RefusedError, get_once

if TYPE_CHECKING:
    from deerflow.events.streams.client_events import StreamEvent
    from deerflow.features.tracing.timeline import Timeline
    from deerflow.features.usage.service import UsageReport

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


class RemoteClient:
    """See ``deerflow_app.cli.backend.Client``.

    Args:
    options: of every turn, as a run's ``context`` takes them, e.g. ``{"is_plan_mode": True}``.
    patience: see PATIENCE.

    Every method raises UnreachableError when nobody answers and RefusedError when the server says no.
    """

    def __init__(
        self,
        connection: Connection,
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

    async def alist_threads(self, limit: int = 10) -> dict[str, Any]:
        """``{thread_list: [{thread_id, created_at, updated_at, title}]}``, the last used first."""
        keys = ("thread_id", "created_at", "updated_at")
        found = await self._connection.post(
            "/api/threads/search", json={"limit": limit, "select": [*keys, "values.title"]}
        )
        return {
            "thread_list": [
                {**{key: thread[key] for key in keys}, "title": thread["values"].get("title")} for thread in found
            ]
        }

    async def athread_state(self, thread_id: str) -> dict[str, Any]:
        """``{values: {title, messages, todos, artifacts}, next, interrupts, unfinished, running}`` after the last step."""
        from deerflow.events.streams.client_events import shown_values

        active = _active(await self._runs(thread_id))
        state = await self._if_there(
            f"/api/threads/{thread_id}/state", {"select": ["values", "next", "tasks", "interrupts"]}
        )
        state = state or {"values": {}, "next": [], "tasks": [], "interrupts": []}
        return {
            "values": shown_values(state["values"]),
            "next": tuple(state["next"]),
            "interrupts": [] if active else state["interrupts"],
            "unfinished": bool(active or state["next"] or state["tasks"]),
            "running": bool(active),
        }

    async def acontext(self, thread_id: str, *, model_name: str | None = None) -> dict[str, Any]:
        """What fills the model's window in this thread, in tokens."""
        params = {"model_name": model_name} if model_name else None
        return await self._connection.get(f"/api/threads/{check_id(thread_id, 'thread id')}/context", params)

    async def atasks(self, thread_id: str) -> list[dict[str, Any]]:
        """The thread's subagents."""
        return await self._if_there(f"/api/threads/{check_id(thread_id, 'thread id')}/tasks") or []

    async def atask_messages(self, thread_id: str, task_id: str) -> list[dict[str, Any]]:
        """What was said in a subagent."""
        path = f"/api/threads/{check_id(thread_id, 'thread id')}/tasks/{quote(task_id, safe='')}/messages"
        return await self._connection.get(path)

    async def agrants(self) -> list[dict[str, Any]]:
        """What the person has approved for longer than one call, the newest first."""
        return (await self._connection.get("/api/approvals/grants"))["grants"]

    async def arevoke_grant(self, grant_id: str) -> None:
        await self._connection.ask("DELETE", f"/api/approvals/grants/{quote(grant_id, safe='')}")

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

    async def atimeline(self, run_id: str) -> Timeline:
        """See ``DeerFlowClient.atimeline``."""
        return await self._connection.get(f"/api/runs/{quote(run_id, safe='')}/timeline")

    async def ausage(self, **asked: Any) -> UsageReport:
        """See ``DeerFlowClient.ausage``."""
        return await self._connection.get(
            "/api/usage", {key: value for key, value in asked.items() if value is not None}
        )

    # skills ---------------------------------------------------------------------------------------------------------

    async def alist_skills(self) -> dict[str, Any]:
        """See ``DeerFlowClient.alist_skills``."""
        return await self._connection.get("/api/skills")

    async def aget_skill(self, name: str) -> dict[str, Any] | None:
        """See ``DeerFlowClient.aget_skill``."""
        return await self._if_there(f"/api/skills/{quote(name, safe='')}")

    async def aupdate_skill(self, name: str, *, enabled: bool) -> dict[str, Any]:
        """See ``DeerFlowClient.aupdate_skill``."""
        return await self._connection.ask("PUT", f"/api/skills/{quote(name, safe='')}", json={"enabled": enabled})

    async def aset_skill_secret(self, name: str, secret: str, value: str | None) -> dict[str, bool]:
        """See ``DeerFlowClient.aset_skill_secret``."""
        path = f"/api/skills/{quote(name, safe='')}/secrets/{quote(secret, safe='')}"
        return await self._connection.ask("PUT", path, json={"value": value})

    async def aconfirm_skill_secrets(self, name: str, digest: str) -> dict[str, bool]:
        """See ``DeerFlowClient.aconfirm_skill_secrets``."""
        path = f"/api/skills/{quote(name, safe='')}/secrets/confirm"
        return await self._connection.ask("POST", path, json={"digest": digest})

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

    async def askill_suggestions(self) -> dict[str, Any]:
        """See ``DeerFlowClient.askill_suggestions``."""
        return await self._connection.get("/api/skills/suggestions")

    async def areview_skill_suggestion(self, suggestion_id: str, *, accept: bool) -> None:
        """See ``DeerFlowClient.areview_skill_suggestion``."""
        path = f"/api/skills/suggestions/{quote(suggestion_id, safe='')}"
        await self._connection.ask("POST" if accept else "DELETE", path)

    async def adelete_skill(self, name: str) -> None:
        """See ``DeerFlowClient.adelete_skill``."""
        await self._connection.ask("DELETE", f"/api/skills/custom/{quote(name, safe='')}")

    # memory: see DeerFlowClient ---------------------------------------------------------------------------------------

    async def aget_memory(self) -> dict[str, Any]:
        return await self._memory("GET")

    async def aimport_memory(self, memory_data: Mapping[str, Any]) -> dict[str, Any]:
        return await self._memory("POST", "/import", json=memory_data)

    async def acreate_memory_fact(
        self, content: str, category: str = "context", confidence: float = 0.5
    ) -> dict[str, Any]:
        fact = {"content": content, "category": category, "confidence": confidence}
        return await self._memory("POST", "/facts", json=fact)

    async def adelete_memory_fact(self, fact_id: str) -> dict[str, Any]:
        return await self._memory("DELETE", f"/facts/{quote(fact_id, safe='')}")

    async def aconfirm_memory_fact(self, fact_id: str) -> dict[str, Any]:
        return await self._memory("POST", f"/facts/{quote(fact_id, safe='')}/confirm")

    async def aundo_memory_fact(self, fact_id: str) -> dict[str, Any]:
        return await self._memory("POST", f"/facts/{quote(fact_id, safe='')}/undo")

    async def asearch_memory(self, query: str) -> list[dict[str, Any]]:
        return (await self._memory("GET", "/search", params={"q": query}))["facts"]

    async def _memory(self, method: str, path: str = "", **options: Any) -> Any:
        return await self._connection.ask(method, f"/api/memory{path}", **options)

    # agents: see DeerFlowClient ---------------------------------------------------------------------------------------

    async def alist_agents(self) -> list[dict[str, Any]]:
        return (await self._agents("GET"))["agents"]

    async def aget_agent(self, name: str) -> dict[str, Any]:
        return await self._agents("GET", f"/{quote(name, safe='')}")

    async def acreate_agent(self, name: str, **settings: Any) -> dict[str, Any]:
        return await self._agents("POST", json={"name": name, **settings})

    async def aupdate_agent(self, name: str, **changes: Any) -> dict[str, Any]:
        return await self._agents("PUT", f"/{quote(name, safe='')}", json=changes)

    async def adelete_agent(self, name: str) -> None:
        await self._agents("DELETE", f"/{quote(name, safe='')}")

    async def aagent_versions(self, name: str) -> list[dict[str, Any]]:
        return (await self._agents("GET", f"/{quote(name, safe='')}/versions"))["versions"]

    async def arollback_agent(self, name: str, version: int) -> dict[str, Any]:
        return await self._agents("POST", f"/{quote(name, safe='')}/rollback", json={"version": version})

    async def _agents(self, method: str, path: str = "", **options: Any) -> Any:
        return await self._connection.ask(method, f"/api/agents{path}", **options)

    async def asearch_chats(self, query: str) -> list[dict[str, Any]]:
        """See DeerFlowClient."""
        hits = (await self._connection.get("/api/search/messages", {"q": query}))["data"]
        return [{key: hit[key] for key in ("thread_id", "title", "snippet")} for hit in hits]

    # MCP servers: see DeerFlowClient ----------------------------------------------------------------------------------

    async def aget_mcp_config(self) -> dict[str, Any]:
        return await self._connection.get("/api/mcp/config")

    async def aupdate_mcp_config(self, mcp_servers: Mapping[str, Any]) -> dict[str, Any]:
        return await self._connection.ask("PUT", "/api/mcp/config", json={"mcp_servers": mcp_servers})

    async def alist_mcp_servers(self) -> list[dict[str, Any]]:
        return (await self._connection.get("/api/mcp/servers"))["servers"]

    async def alist_mcp_prompts(self) -> list[dict[str, Any]]:
        return (await self._connection.get("/api/mcp/prompts"))["prompts"]

    async def arestart_mcp_server(self, name: str) -> dict[str, Any]:
        return await self._connection.post(f"/api/mcp/servers/{quote(name, safe='')}/restart")

    async def alist_mcp_changes(self, name: str) -> list[dict[str, Any]]:
        return (await self._connection.get(f"/api/mcp/servers/{quote(name, safe='')}/changes"))["changes"]

    async def aaccept_mcp_changes(self, name: str, digests: Sequence[str]) -> list[dict[str, Any]]:
        answer = await self._connection.post(
            f"/api/mcp/servers/{quote(name, safe='')}/accept", json={"digests": list(digests)}
        )
        return answer["changes"]

    async def aread_mcp_log(self, name: str) -> list[str]:
        return (await self._connection.get(f"/api/mcp/servers/{quote(name, safe='')}/log"))["lines"]

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
