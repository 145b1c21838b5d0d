"""``DeerFlowClient``: the whole product in one process, without a server."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, replace
from datetime import date
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack
from weakref import WeakKeyDictionary

from deerflow.client_views import (
    ClientModel,
    ClientModels,
    ClientThreadState,
    ClientThreadValues,
    FoundChat,
    ListedThread,
    ListedUpload,
    NewUploads,
    ThreadCheckpoint,
    ThreadHistory,
    ThreadList,
    UploadList,
)
from deerflow.config import AppConfig, ConfigSource, Paths
from deerflow.context import RunContext
from deerflow.context.run_options import RunOptions
from deerflow.errors import ConflictError, NotFoundError
from deerflow.events.jsonable import plain
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.client_events import StreamEvent, TurnEvents, message_dict
from deerflow.features.memory.store import fact_view
from deerflow.features.memory.view import FactView, MemoryDocument, MemorySettings, MemoryStatus
from deerflow.features.offers import harness_of
from deerflow.features.skills.service import skill_source
from deerflow.features.tracing.timeline import Timeline
from deerflow.features.usage.service import By, UsageReport
from deerflow.files.artifacts import list_artifacts, media_type, read_artifact
from deerflow.files.uploads import DeletedUpload, LocalUploads, upload_entry
from deerflow.harness import Harness
from deerflow.identity import LOCAL_PRINCIPAL, check_agent_name, check_id
from deerflow.runs.agent_provider import AgentProvider
from deerflow.runs.request import CheckRequest, CommandRequest, RunRequest
from deerflow.runtime import Runtime
from deerflow.storage.approvals import ApprovalRepository, GrantView, grant_view
from deerflow.storage.checkpoints import checkpointer_for
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.runs import MultitaskStrategy, Run, RunStore
from deerflow.storage.thread_lock import ThreadBusyError
from deerflow.storage.threads import Thread, ThreadRepository
from deerflow.threads.checkpoint import compact, config_of, is_unfinished
from deerflow.threads.view import SubagentTask
from deerflow.tools.clarification import NAME as ASK_CLARIFICATION
from deerflow.uploads import Upload

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from deerflow.agents.features import RuntimeFeatures
    from deerflow.agents.middlewares.summarization_middleware import ContextTable
    from deerflow.features.assistants.agents import AgentVersion
    from deerflow.features.mcp import McpPrompt
    from deerflow.features.mcp.pins import McpChange
    from deerflow.features.mcp.states import McpServerState
    from deerflow.features.skills.own import SkillSuggestion
    from deerflow.features.skills.service import Installed, SkillInfo, SkillText
    from deerflow.models.factory import ModelInfo

P = ParamSpec("P")
T = TypeVar("T")

FORKED = (
    "This DeerFlowClient was made before the process forked, and neither its threads nor its connections are here. "
    "Make one in each process."
)
WAIT = 10.0
"""Seconds to wait for another turn of the thread: one that is just being stopped needs a moment to clean up."""
POLL = 0.05
"""Seconds between two looks at it."""
SILENCE = 0.2
"""Seconds without an event after which we look whether the execution failed before it could say so."""


class ResumeOptions(TypedDict, total=False):
    """What may be chosen when a turn goes on; what is left out or None is the client's.

    ``answers``: to interrupts of the thread, by their id (see ``thread_state``): it goes on with these.
    """

    model_name: str | None
    recursion_limit: int | None
    answers: Mapping[str, Any] | None


class TurnOptions(TypedDict, total=False):
    """What may be chosen for one turn; what is left out or None is the client's.

    ``files`` are copied into the thread's uploads. ``checks`` must hold at the end, ``{"command": …}`` or
    ``{"file_exists": path}``; otherwise the agent goes on.
    """

    model_name: str | None
    recursion_limit: int | None
    files: Sequence[str | Path]
    thinking_enabled: bool | None
    plan_mode: bool | None
    subagent_enabled: bool | None
    reasoning_effort: str | None
    checks: Sequence[Mapping[str, Any]]


def _blocking(
    method: Callable[Concatenate[DeerFlowClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[DeerFlowClient, P], T]:
    """The synchronous twin of an asynchronous method."""

    @wraps(method)
    def call(self: DeerFlowClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.run(method(self, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    call.__name__ = method.__name__.removeprefix("a")
    return call


async def _executed(runtime: Runtime, run: Run) -> None:
    """Execute the run to its end, unless that began with its creation: then wait for it first."""
    if (begun := runtime.begun.get(run.run_id)) is not None:
        await begun
    await runtime.executor.execute(run.run_id, wait=WAIT)


class DeerFlowClient:
    """Threads, runs, files and settings of DeerFlow from Python. Threads survive the process.

    Every method has an asynchronous twin with an ``a`` in front: ``chat`` and ``achat``, ``stream`` and ``astream``.
    They may be used from any event loop; the synchronous methods run on a loop of their own.

    Args:
        config_path: a configuration file; default: the usual places, or none at all.
        checkpointer: where threads are kept; default: SQLite under the data directory.
        config: merged deeply over the file: yours wins, then the file, then the defaults.
        base_dir: the data directory; default: ``DEER_FLOW_HOME``, else ``.deer-flow``.
        model_name, thinking_enabled, subagent_enabled, plan_mode, agent_name: defaults of every turn.
        is_bootstrap: turns are about setting up the agent.
        unattended: calls that need a decision are refused, or left to ``guardrails.unattended``.
        available_skills: names of the skills that agents may use; None means all.
        features: replaces built-in parts of the agent by your own middlewares.
        extra_middleware: yours, placed by ``@Next``/``@Prev`` or before Clarification. ``middlewares`` is its old name.

    Raises:
        ConfigError: the configuration is not valid; the message says where and what to do.
        ValueError: an invalid agent name.
    """

    def __init__(
        self,
        config_path: str | Path | None = None,
        checkpointer: BaseCheckpointSaver[str] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        base_dir: str | Path | None = None,
        model_name: str | None = None,
        thinking_enabled: bool = True,
        subagent_enabled: bool = False,
        plan_mode: bool = False,
        agent_name: str | None = None,
        is_bootstrap: bool = False,
        unattended: bool = False,
        available_skills: set[str] | None = None,
        features: RuntimeFeatures | None = None,
        extra_middleware: Sequence[AgentMiddleware[Any, Any, Any]] | None = None,
        middlewares: Sequence[AgentMiddleware[Any, Any, Any]] | None = None,
    ) -> None:
        if agent_name is not None:
            check_agent_name(agent_name)
        self.config_source = ConfigSource(config_path, overrides=dict(config or {}))
        paths = Paths(Path(base_dir) if base_dir else None)
        snapshot = self.config_source.current()
        self._database = Database.of(snapshot, paths) if checkpointer is None else Database(":memory:")
        saver = checkpointer or checkpointer_for(self._database)
        harness = harness_of(snapshot, paths, saver)
        self._process, self._is_closed = os.getpid(), False
        self._own_agent_provider = AgentProvider(
            self.config_source, harness, features=features, extra_middleware=extra_middleware or middlewares or ()
        )
        self._options = RunOptions(
            model_name=model_name,
            thinking_enabled=thinking_enabled,
            is_plan_mode=plan_mode,
            subagent_enabled=subagent_enabled,
            agent_name=agent_name,
            is_bootstrap=is_bootstrap,
            available_skills=None if available_skills is None else tuple(sorted(available_skills)),
        )
        self._unattended = unattended
        self._files = LocalUploads(paths, ThreadRepository(self._database), LOCAL_PRINCIPAL)
        self._runs = RunStore(self._database)
        self._loop = _LoopThread()
        self._runtimes: WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = WeakKeyDictionary()

    @property
    def _agent_provider(self) -> AgentProvider:
        if self._process != os.getpid():
            raise RuntimeError(FORKED)
        if self._is_closed:
            raise RuntimeError("This DeerFlowClient is closed. Make another one.")
        return self._own_agent_provider

    @property
    def harness(self) -> Harness:
        """What the last run used, or the first will use."""
        return self._agent_provider.harness

    # turns ----------------------------------------------------------------------------------------------------------

    async def astream(
        self, message: str, *, thread_id: str | None = None, **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """One turn: say ``message``, with files copied into the thread's uploads, and follow what happens.

        Closing the iterator stops the turn; the thread keeps everything up to the last finished step.

        Raises:
            FileNotFoundError, ValueError: a file that cannot be uploaded; nothing was said yet.
            ValueError: no model is configured, or an invalid thread id.
            ThreadBusyError: another turn of the thread is running; nothing was said yet.
        """
        thread_id = check_id(thread_id or str(uuid.uuid4()), "thread id")
        files, limit = options.pop("files", ()), options.pop("recursion_limit", None)
        checks = [CheckRequest.model_validate(check) for check in options.pop("checks", ())]
        chosen = self._turn_options(is_plan_mode=options.pop("plan_mode", None), **options)
        await self._agent_provider.check(chosen)
        uploads = await self._files.upload(thread_id, files) if files else []
        said = {
            "role": "user",
            "content": message,
            "additional_kwargs": {"files": [_upload_entry(upload) for upload in uploads]},
        }
        request = _request(chosen, limit, {"messages": [said]})
        request.checks = checks
        run = await self._start(thread_id, request)
        async with aclosing(self._follow(run)) as events:
            async for event in events:
                yield event

    async def aresume(self, thread_id: str, **options: Unpack[ResumeOptions]) -> AsyncGenerator[StreamEvent, None]:
        """Continue a turn that was cut off, from its last finished step. Ends at once if there is nothing to do.

        Raises:
            ValueError: no model is configured, or an invalid thread id.
            ThreadBusyError: the turn is not cut off, it is still running.
        """
        answers, limit = options.pop("answers", None), options.pop("recursion_limit", None)
        chosen = self._turn_options(**options)
        await self._agent_provider.check(chosen)
        request = _request(chosen, limit, None)
        if answers:
            request.command = CommandRequest(resume=dict(answers))
            run = await self._start(thread_id, request)
        elif left_over := await self._runs.active(check_id(thread_id, "thread id")):
            run = left_over[0]
        elif is_unfinished(await (await self._agent_provider.agent()).aget_state(config_of(thread_id))):
            run = await self._start(thread_id, request)
        else:
            yield TurnEvents(lambda: None).end()
            return
        async with aclosing(self._follow(run)) as events:
            async for event in events:
                yield event

    async def asteer(self, thread_id: str, message: str) -> None:
        """Hand a message to the turn that goes on; it is read at its next step.

        Raises ConflictError if none does: say it with ``chat`` or ``stream``, and NotFoundError: there is no such thread.
        """
        await self._runtime.runs.steer(LOCAL_PRINCIPAL, thread_id, {"role": "user", "content": message})

    async def achat(self, message: str, *, thread_id: str | None = None, **options: Unpack[TurnOptions]) -> str:
        """One turn; the text of the last message of the agent, or its question if it asks for something.

        Takes the options of ``astream`` and raises what it raises.
        """
        texts: dict[str, list[str]] = {}
        last = ""
        async for event in self.astream(message, thread_id=thread_id, **options):
            if event.type == "messages-tuple" and event.data["type"] == "ai" and event.data["content"]:
                last = event.data["id"] or ""
                texts.setdefault(last, []).append(event.data["content"])
            elif event.type == "messages-tuple" and event.data.get("name") == ASK_CLARIFICATION:
                last = event.data["tool_call_id"]
                texts[last] = [event.data["content"]]
        return "".join(texts.get(last, ()))

    def _turn_options(self, **given: Any) -> RunOptions:
        return replace(self._options, **{key: value for key, value in given.items() if value is not None})

    def reset_agent(self) -> None:
        """Build new agents at the next turn."""
        self._agent_provider.forget_agents()

    @property
    def _runtime(self) -> Runtime:
        """That of the running event loop: agents and database are shared by all loops that use the client."""
        loop = asyncio.get_running_loop()
        if loop not in self._runtimes:
            self._runtimes[loop] = Runtime(
                self.config_source, self.harness.paths, database=self._database, embedded=self._agent_provider
            )
        return self._runtimes[loop]

    async def _start(self, thread_id: str, request: RunRequest) -> Run:
        """Record a run once the thread has no other one; a run whose process died is ended first."""
        if self._unattended:
            request = request.model_copy(update={"context": {**(request.context or {}), "unattended": True}})
        runtime, clock = self._runtime, asyncio.get_running_loop().time
        until = clock() + WAIT
        while True:
            try:
                return await runtime.runs.start(LOCAL_PRINCIPAL, request, thread_id=thread_id)
            except ConflictError as error:
                if error.code != ThreadBusyError.code:
                    raise
            late = clock() >= until
            for other in await self._runs.active(thread_id):
                if late or other.attempt > 0:
                    try:
                        await runtime.executor.abandon(other, wait=0)
                    except ThreadBusyError:
                        if late:
                            raise
            await asyncio.sleep(POLL)

    async def _follow(self, run: Run) -> AsyncGenerator[StreamEvent, None]:
        """Execute the run, from where it stands, and yield its events. Closing the generator stops the run."""
        runtime = self._runtime
        turn = TurnEvents(lambda: runtime.event_log.latest_values(run.thread_id))
        execution = asyncio.create_task(_executed(runtime, run))
        # The events of an earlier attempt have been seen already.
        after = (run.epoch + 1) * EVENTS_PER_CLAIM if run.attempt else 0
        try:
            async with aclosing(runtime.runs.events(run, after=after, heartbeat=SILENCE)) as batches:
                async for batch in batches:
                    for event in turn.of(batch):
                        yield event
                    if not batch and execution.done():
                        break
            await execution
        except ThreadBusyError:
            if run.attempt == 0:
                await self._stop(runtime, run)
                await self._runs.delete(run.run_id)
            raise
        finally:
            if not execution.done():
                await self._stop(runtime, run)
                await asyncio.wait([execution])

    async def _stop(self, runtime: Runtime, run: Run) -> None:
        with suppress(NotFoundError):  # it has just ended
            await runtime.runs.cancel(LOCAL_PRINCIPAL, run.run_id)

    # threads --------------------------------------------------------------------------------------------------------

    async def alist_threads(self, limit: int = 10) -> ThreadList:
        """Return threads, the last used first."""
        found, _ = await self._runtime.threads.repository.search(LOCAL_PRINCIPAL, page=ListPage(limit))
        return {"thread_list": [await self._thread_entry(thread) for thread in found]}

    async def _thread_entry(self, thread: Thread) -> ListedThread:
        saver: Any = self._agent_provider.harness.checkpointer
        last = await saver.aget_tuple(config_of(thread.thread_id))
        return {
            "thread_id": thread.thread_id,
            "created_at": thread.created_at.isoformat(),
            "updated_at": thread.updated_at.isoformat(),
            "latest_checkpoint_id": last.config.get("configurable", {})["checkpoint_id"] if last else None,
            "title": thread.title,
        }

    async def aget_thread(self, thread_id: str) -> ThreadHistory:
        """Return all checkpoints of a thread, oldest first."""
        agent = await self._agent_provider.agent(self._options)
        checkpoints: list[ThreadCheckpoint] = []
        async for snapshot in agent.aget_state_history(config_of(thread_id)):
            values = {
                **snapshot.values,
                "messages": [message_dict(message) for message in snapshot.values.get("messages", ())],
            }
            checkpoints.append(
                {
                    "checkpoint_id": snapshot.config.get("configurable", {})["checkpoint_id"],
                    "parent_checkpoint_id": (snapshot.parent_config or {}).get("configurable", {}).get("checkpoint_id"),
                    "ts": snapshot.created_at,
                    "metadata": snapshot.metadata,
                    "values": values,
                    "pending_writes": [
                        {"task_id": task.id, "channel": task.name, "value": task.result} for task in snapshot.tasks
                    ],
                }
            )
        return {
            "thread_id": thread_id,
            "checkpoints": sorted(checkpoints, key=lambda checkpoint: checkpoint["ts"] or ""),
        }

    async def athread_state(self, thread_id: str) -> ClientThreadState:
        """Return the state after the last finished step."""
        agent = await self._agent_provider.agent(self._options)
        state: Any = await agent.aget_state(config_of(thread_id))
        known = state.values
        values: ClientThreadValues = {
            "title": known.get("title"),
            "messages": [message_dict(message) for message in known.get("messages") or ()],
            "todos": known.get("todos") or [],
            "artifacts": list(known.get("artifacts") or []),
        }
        active = bool(await self._runs.active(thread_id))
        interrupts = [] if active else [plain(interrupt) for interrupt in state.interrupts]
        unfinished = is_unfinished(state) or active
        return {"values": values, "next": state.next, "interrupts": interrupts, "unfinished": unfinished}

    async def aget_messages(self, thread_id: str) -> list[dict[str, Any]]:
        """The thread's messages, in the form of the ``values`` event."""
        return (await self.athread_state(thread_id))["values"]["messages"]

    async def acontext(self, thread_id: str, *, model_name: str | None = None) -> ContextTable:
        """What fills the model's window in this thread, in tokens. Raises NotFoundError: no such thread."""
        options = self._turn_options(model_name=model_name)
        return await self._runtime.context_table(LOCAL_PRINCIPAL, check_id(thread_id, "thread id"), options)

    async def acompact_thread(self, thread_id: str) -> bool:
        """Shrink a finished thread to its present state; False if a turn of it is unfinished or running."""
        threads = self._runtime.threads
        try:
            thread = await threads.repository.get(LOCAL_PRINCIPAL, thread_id, to_change=True)
            async with threads.states.alone(thread, wait=0):
                checkpointer: Any = self._agent_provider.harness.checkpointer
                return await compact(await self._agent_provider.agent(self._options), checkpointer, thread_id)
        except (ConflictError, NotFoundError):
            return False

    async def atasks(self, thread_id: str) -> list[SubagentTask]:
        """The thread's subagents, in the order of their calls."""
        try:
            return await self._runtime.threads.transcript.tasks(LOCAL_PRINCIPAL, thread_id)
        except NotFoundError:
            return []

    async def atask_messages(self, thread_id: str, task_id: str) -> list[dict[str, Any]]:
        """What was said in a subagent: its prompt, the model's answers, the results of tools. Raises NotFoundError."""
        return await self._runtime.threads.transcript.task_messages(LOCAL_PRINCIPAL, thread_id, task_id)

    async def astop_task(self, thread_id: str, task_id: str) -> None:
        """Ask for the end of one subagent; the agent goes on. Raises NotFoundError, and ConflictError if it has ended."""
        await self._runtime.runs.stop_task(LOCAL_PRINCIPAL, thread_id, task_id)

    async def agrants(self) -> list[GrantView]:
        """Return what was approved for longer than one call, newest first."""
        return [grant_view(grant) for grant in await ApprovalRepository(self._database).grants(LOCAL_PRINCIPAL)]

    async def arevoke_grant(self, grant_id: str) -> None:
        """Raises NotFoundError."""
        await ApprovalRepository(self._database).revoke(LOCAL_PRINCIPAL, grant_id)

    # files ----------------------------------------------------------------------------------------------------------

    async def aupload_files(self, thread_id: str, files: Sequence[str | Path]) -> NewUploads:
        """Copy files into the thread's uploads. Checks all before it copies any.

        Raises:
            FileNotFoundError: a file does not exist.
            ValueError: a directory, or an unusable name.
        """
        uploads = await self._files.upload(thread_id, files)
        await self._runtime.documents.begin(LOCAL_PRINCIPAL, thread_id, uploads)
        entries = [
            upload_entry(thread_id, upload, Path(path).name) for upload, path in zip(uploads, files, strict=True)
        ]
        return {"success": True, "files": entries, "message": f"Uploaded {len(entries)} file(s)."}

    async def alist_uploads(self, thread_id: str) -> UploadList:
        """Return the thread's uploads; a thread without any has none."""
        uploads = await self._files.list(thread_id)
        states = await self._runtime.documents.states(thread_id, uploads)
        files = [ListedUpload(**upload_entry(thread_id, one), **states.get(one.filename, {})) for one in uploads]
        return {"files": files, "count": len(files)}

    async def adelete_upload(self, thread_id: str, filename: str) -> DeletedUpload:
        """Raises FileNotFoundError, or PathTraversalError for a name that leads elsewhere."""
        return await self._files.delete(thread_id, filename)

    async def aget_artifact(self, thread_id: str, path: str) -> tuple[bytes, str]:
        """Content and MIME type of a file of the thread, by its virtual path.

        Raises:
            SandboxFileNotFoundError, SandboxPermissionError, SandboxFileError: no such file, outside, not a file.
        """
        return b"".join([piece async for piece in self.aread_artifact(thread_id, path)]), await media_type(path)

    async def aread_artifact(self, thread_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """The same file piece by piece: it may be larger than memory."""
        async for piece in read_artifact(await self._thread_context(thread_id), path):
            yield piece

    async def alist_artifacts(self, thread_id: str) -> list[str]:
        """Virtual paths of what was presented, then of everything else in the outputs directory."""
        presented = (await self.athread_state(thread_id))["values"]["artifacts"]
        return await list_artifacts(await self._thread_context(thread_id), presented)

    async def _thread_context(self, thread_id: str) -> RunContext:
        return await self._agent_provider.harness.run_context(
            check_id(thread_id, "thread id"), self._options, principal=LOCAL_PRINCIPAL
        )

    # settings -------------------------------------------------------------------------------------------------------

    def list_models(self) -> ClientModels:
        """Return the configured models, the default one first."""
        from deerflow.models import model_info

        config: AppConfig = self._agent_provider.harness.config
        return {
            "models": [_model_entry(model) for model in model_info(config)],
            "token_usage": {"enabled": config.token_usage.enabled},
        }

    def get_model(self, name: str) -> ClientModel | None:
        return next((model for model in self.list_models()["models"] if model["name"] == name), None)

    async def atimeline(self, run_id: str) -> Timeline:
        """When a run (or a thread's newest) did what: calls of models and tools, waiting, money. Raises NotFoundError."""
        return await self._runtime.timelines.of(LOCAL_PRINCIPAL, run_id)

    async def ausage(
        self, *, by: By = "day", since: date | None = None, until: date | None = None, everyone: bool = False
    ) -> UsageReport:
        """Tokens and money of the last 30 days, or of the days named, by day, model, agent or person.

        Raises InvalidRequestError for more than 366 days.
        """
        return await self._runtime.usage.report(LOCAL_PRINCIPAL, by=by, since=since, until=until, everyone=everyone)

    # skills ---------------------------------------------------------------------------------------------------------

    async def alist_skills(self, enabled_only: bool = False) -> dict[str, list[SkillInfo]]:
        """Return ``{skills: […]}``."""
        return {"skills": await self._runtime.skills.list(LOCAL_PRINCIPAL, enabled_only=enabled_only)}

    async def aget_skill(self, name: str) -> SkillText | None:
        """The same with ``content``, the text of its SKILL.md; None: there is no such skill."""
        try:
            return await self._runtime.skills.get(LOCAL_PRINCIPAL, name)
        except NotFoundError:
            return None

    async def aupdate_skill(self, name: str, *, enabled: bool) -> SkillInfo:
        """Switch a skill on or off. Raises NotFoundError."""
        return await self._runtime.skills.set_enabled(LOCAL_PRINCIPAL, name, enabled)

    async def ainstall_skill(self, skill_path: str | Path) -> Installed:
        """Install a skill from an archive, a folder or a git address.

        Raises:
            FileNotFoundError: there is no such file.
            RequestError: it holds no skill, or there is one of that name; says why.
        """
        return await self._runtime.skills.install(LOCAL_PRINCIPAL, await skill_source(skill_path))

    async def askill_suggestions(self) -> dict[str, list[SkillSuggestion]]:
        """Return what agents would change in your skills: ``{suggestions: […]}``."""
        return {"suggestions": await self._runtime.skills.suggestions(LOCAL_PRINCIPAL)}

    async def areview_skill_suggestion(self, suggestion_id: str, *, accept: bool) -> None:
        """Make a suggested change, or drop it. Raises NotFoundError, ConflictError: the file has changed meanwhile."""
        await self._runtime.skills.review(LOCAL_PRINCIPAL, suggestion_id, accept=accept)

    async def adelete_skill(self, name: str) -> None:
        """Delete one of one's own. Raises NotFoundError."""
        await self._runtime.skills.delete(LOCAL_PRINCIPAL, name)

    # memory ---------------------------------------------------------------------------------------------------------

    async def aget_memory(self) -> MemoryDocument:
        """Return what is remembered, of the client's agent."""
        return await self._runtime.memory.document(LOCAL_PRINCIPAL, self._options.agent_name)

    async def aimport_memory(self, memory_data: Mapping[str, Any]) -> MemoryDocument:
        """Replace what is remembered by what was exported."""
        return await self._runtime.memory.replace(LOCAL_PRINCIPAL, memory_data, self._options.agent_name)

    async def aclear_memory(self) -> MemoryDocument:
        return await self.aimport_memory({})

    async def acreate_memory_fact(
        self, content: str, category: str = "context", confidence: float = 0.5
    ) -> MemoryDocument:
        """Raises InvalidRequestError: no content, or a confidence outside of 0 to 1."""
        await self._runtime.memory.add(LOCAL_PRINCIPAL, content, category, confidence, self._options.agent_name)
        return await self.aget_memory()

    async def aupdate_memory_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
    ) -> MemoryDocument:
        """What is left out stays. Raises NotFoundError, or InvalidRequestError."""
        changes = {"content": content, "category": category, "confidence": confidence}
        await self._runtime.memory.change(LOCAL_PRINCIPAL, fact_id, self._options.agent_name, **changes)
        return await self.aget_memory()

    async def adelete_memory_fact(self, fact_id: str) -> MemoryDocument:
        """It can be restored for 30 days. Raises NotFoundError."""
        await self._runtime.memory.forget(LOCAL_PRINCIPAL, fact_id, self._options.agent_name)
        return await self.aget_memory()

    async def aconfirm_memory_fact(self, fact_id: str) -> MemoryDocument:
        """Let a fact count that is not confirmed. Raises NotFoundError."""
        await self._runtime.memory.confirm(LOCAL_PRINCIPAL, fact_id, self._options.agent_name)
        return await self.aget_memory()

    async def aundo_memory_fact(self, fact_id: str) -> MemoryDocument:
        """Take back what was learned, or restore what was forgotten or superseded. Raises NotFoundError."""
        await self._runtime.memory.undo(LOCAL_PRINCIPAL, fact_id, self._options.agent_name)
        return await self.aget_memory()

    async def asearch_memory(self, query: str) -> list[FactView]:
        """Facts that have words of ``query``, the best first."""
        found = await self._runtime.memory.search(LOCAL_PRINCIPAL, query, self._options.agent_name)
        return [fact_view(fact) for fact in found]

    async def aget_memory_config(self) -> MemorySettings:
        return await self._runtime.memory.settings()

    async def aget_memory_status(self) -> MemoryStatus:
        return {"config": await self.aget_memory_config(), "data": await self.aget_memory()}

    async def aset_skill_secret(self, name: str, secret: str, value: str | None) -> dict[str, bool]:
        """Keep a secret that a skill's scripts need, or forget it (None). Which are set. Raises NotFoundError, RequestError."""
        return await self._runtime.skills.set_secret(LOCAL_PRINCIPAL, name, secret, value)

    async def aconfirm_skill_secrets(self, name: str, digest: str) -> dict[str, bool]:
        """Give a skill that has changed its secrets again. Raises NotFoundError, ConflictError if ``digest`` is not that of ``get_skill``."""
        return await self._runtime.skills.confirm_secrets(LOCAL_PRINCIPAL, name, digest)

    # agents ---------------------------------------------------------------------------------------------------------

    async def alist_agents(self) -> list[dict[str, Any]]:
        """Custom agents by name, each as ``agents/<name>/config.yaml`` has it, and ``soul``."""
        return [agent.model_dump(mode="json") for agent in await self._runtime.agents.list(LOCAL_PRINCIPAL)]

    async def aget_agent(self, name: str) -> dict[str, Any]:
        """Raises NotFoundError."""
        return (await self._runtime.agents.get(LOCAL_PRINCIPAL, name)).model_dump(mode="json")

    async def acreate_agent(self, name: str, **settings: Any) -> dict[str, Any]:
        """Raises ConflictError: there is one; InvalidRequestError: something of it cannot be."""
        made = await self._runtime.agents.create(LOCAL_PRINCIPAL, {"name": name, **settings})
        return made.model_dump(mode="json")

    async def aupdate_agent(self, name: str, **changes: Any) -> dict[str, Any]:
        """What is left out stays. Raises NotFoundError, InvalidRequestError."""
        return (await self._runtime.agents.change(LOCAL_PRINCIPAL, name, changes)).model_dump(mode="json")

    async def adelete_agent(self, name: str) -> None:
        """With its versions and its memory. Raises NotFoundError; ForbiddenError: it belongs to the installation."""
        await self._runtime.agents.delete(LOCAL_PRINCIPAL, name)

    async def aagent_versions(self, name: str) -> list[AgentVersion]:
        """Return the versions of an agent, newest first. Raises NotFoundError."""
        return await self._runtime.agents.versions(LOCAL_PRINCIPAL, name)

    async def arollback_agent(self, name: str, version: int) -> dict[str, Any]:
        """Make a former version the current one. Raises NotFoundError."""
        return (await self._runtime.agents.rollback(LOCAL_PRINCIPAL, name, version)).model_dump(mode="json")

    async def asearch_chats(self, query: str) -> list[FoundChat]:
        """Return what was said in threads, the newest first."""
        hits = await self._runtime.threads.messages.search(LOCAL_PRINCIPAL, query)
        return [{"thread_id": hit.thread_id, "title": hit.title, "snippet": hit.snippet} for hit in hits]

    # MCP servers ----------------------------------------------------------------------------------------------------

    async def aget_mcp_config(self) -> dict[str, Any]:
        """``{"mcp_servers": {name: entry}}`` as in ``extensions_config.json``, with marks for secrets."""
        return await self._runtime.mcp.config(LOCAL_PRINCIPAL)

    async def aupdate_mcp_config(self, mcp_servers: Mapping[str, Any]) -> dict[str, Any]:
        """Replace all entries; a mark keeps its secret. Raises InvalidRequestError, ForbiddenError, UnavailableError."""
        return await self._runtime.mcp.update(LOCAL_PRINCIPAL, mcp_servers)

    async def alist_mcp_servers(self) -> list[McpServerState]:
        return await self._runtime.mcp.states(LOCAL_PRINCIPAL)

    async def alist_mcp_prompts(self) -> list[McpPrompt]:
        """Return all prompts; a message that begins with the ``command`` of one calls it."""
        return await self._runtime.mcp.prompts(LOCAL_PRINCIPAL)

    async def arestart_mcp_server(self, name: str) -> McpServerState:
        """Open a new session, and wait for it. Raises NotFoundError."""
        return await self._runtime.mcp.restart(LOCAL_PRINCIPAL, name)

    async def alist_mcp_changes(self, name: str) -> list[McpChange]:
        """Return the definitions of a server's tools that changed since they were accepted: what was, what is, and ``digest``."""
        return await self._runtime.mcp.changes(LOCAL_PRINCIPAL, name)

    async def aaccept_mcp_changes(self, name: str, digests: Sequence[str]) -> list[McpChange]:
        """Let policies and trust hold for these definitions, too; return those that still wait. Raises ConflictError."""
        return await self._runtime.mcp.accept(LOCAL_PRINCIPAL, name, digests)

    async def aread_mcp_log(self, name: str) -> list[str]:
        """What the server has written last. Raises NotFoundError."""
        return await self._runtime.mcp.log(LOCAL_PRINCIPAL, name)

    # life -----------------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End sandboxes and close the database. Idempotent; whatever is asked of the client afterwards raises RuntimeError."""
        loop = asyncio.get_running_loop()
        if self._is_closed and loop not in self._runtimes:
            return
        runtime = self._runtimes.get(loop) or self._runtime
        self._is_closed = True
        for run_id in runtime.executor.active:
            with suppress(NotFoundError):
                await runtime.runs.cancel(LOCAL_PRINCIPAL, run_id, wait=True)
        await runtime.aclose()
        self._runtimes.pop(loop, None)

    def close(self) -> None:
        """As :meth:`aclose`. In a process that was forked there is nothing to close."""
        if self._process == os.getpid():
            self._loop.run(self.aclose())
            self._loop.close()

    async def __aenter__(self) -> DeerFlowClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> DeerFlowClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # synchronous twins ----------------------------------------------------------------------------------------------

    def stream(
        self, message: str, *, thread_id: str | None = None, **options: Unpack[TurnOptions]
    ) -> Iterator[StreamEvent]:
        """See ``astream``."""
        return self._loop.iterate(self.astream(message, thread_id=thread_id, **options))

    def chat(self, message: str, *, thread_id: str | None = None, **options: Unpack[TurnOptions]) -> str:
        """See ``achat``."""
        return self._loop.run(self.achat(message, thread_id=thread_id, **options))

    def resume(self, thread_id: str, **options: Unpack[ResumeOptions]) -> Iterator[StreamEvent]:
        """See ``aresume``."""
        return self._loop.iterate(self.aresume(thread_id, **options))

    steer = _blocking(asteer)
    list_threads = _blocking(alist_threads)
    grants = _blocking(agrants)
    revoke_grant = _blocking(arevoke_grant)
    get_thread = _blocking(aget_thread)
    thread_state = _blocking(athread_state)
    get_messages = _blocking(aget_messages)
    context = _blocking(acontext)
    compact_thread = _blocking(acompact_thread)
    upload_files = _blocking(aupload_files)
    list_uploads = _blocking(alist_uploads)
    delete_upload = _blocking(adelete_upload)
    get_artifact = _blocking(aget_artifact)
    list_artifacts = _blocking(alist_artifacts)
    usage = _blocking(ausage)
    get_memory = export_memory = reload_memory = _blocking(aget_memory)
    import_memory = _blocking(aimport_memory)
    clear_memory = _blocking(aclear_memory)
    create_memory_fact = _blocking(acreate_memory_fact)
    update_memory_fact = _blocking(aupdate_memory_fact)
    delete_memory_fact = _blocking(adelete_memory_fact)
    search_chats = _blocking(asearch_chats)
    get_mcp_config = _blocking(aget_mcp_config)
    update_mcp_config = _blocking(aupdate_mcp_config)
    list_mcp_servers = _blocking(alist_mcp_servers)
    list_mcp_prompts = _blocking(alist_mcp_prompts)
    restart_mcp_server = _blocking(arestart_mcp_server)
    list_mcp_changes = _blocking(alist_mcp_changes)
    accept_mcp_changes = _blocking(aaccept_mcp_changes)
    read_mcp_log = _blocking(aread_mcp_log)
    list_agents = _blocking(alist_agents)
    get_agent = _blocking(aget_agent)
    create_agent = _blocking(acreate_agent)
    update_agent = _blocking(aupdate_agent)
    delete_agent = _blocking(adelete_agent)
    agent_versions = _blocking(aagent_versions)
    rollback_agent = _blocking(arollback_agent)
    confirm_memory_fact = _blocking(aconfirm_memory_fact)
    undo_memory_fact = _blocking(aundo_memory_fact)
    search_memory = _blocking(asearch_memory)
    get_memory_config = _blocking(aget_memory_config)
    get_memory_status = _blocking(aget_memory_status)
    list_skills = _blocking(alist_skills)
    get_skill = _blocking(aget_skill)
    update_skill = _blocking(aupdate_skill)
    install_skill = _blocking(ainstall_skill)
    delete_skill = _blocking(adelete_skill)
    skill_suggestions = _blocking(askill_suggestions)
    review_skill_suggestion = _blocking(areview_skill_suggestion)
    set_skill_secret = _blocking(aset_skill_secret)
    confirm_skill_secrets = _blocking(aconfirm_skill_secrets)
    timeline = _blocking(atimeline)


class _LoopThread:
    """An event loop on a thread of its own, for synchronous callers. Started at the first use; thread-safe."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._runner: asyncio.Runner | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result. KeyboardInterrupt in the caller cancels the coroutine."""
        try:
            loop = self._running()
        except RuntimeError:
            coroutine.close()
            raise
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """Iterate from synchronous code. Leaving the loop early closes the asynchronous generator."""
        turn = asyncio.Lock()

        async def step() -> T:
            async with turn:
                return await anext(items)

        async def close() -> None:
            async with turn:  # a step that was cancelled still unwinds
                await items.aclose()

        try:
            while True:
                try:
                    yield self.run(step())
                except StopAsyncIteration:
                    return
        finally:
            self.run(close())

    def close(self) -> None:
        with self._lock:
            runner, thread = self._runner, self._thread
            self._runner = self._thread = None
        if runner is not None and thread is not None:
            runner.get_loop().call_soon_threadsafe(runner.get_loop().stop)
            thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._process != os.getpid():  # its thread is not here, and the lock may never be free
            raise RuntimeError(FORKED)
        with self._lock:
            if self._runner is None:
                self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                self._runner.get_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._runner,), name="deerflow-client", daemon=True
                )
                self._thread.start()
            return self._runner.get_loop()


def _serve(runner: asyncio.Runner) -> None:
    with runner:
        runner.get_loop().run_forever()


def _request(options: RunOptions, recursion_limit: int | None, given: dict[str, Any] | None) -> RunRequest:
    return RunRequest(
        input=given,
        context={key: value for key, value in asdict(options).items() if value != getattr(RunOptions(), key)},
        config={"recursion_limit": recursion_limit} if recursion_limit else None,
        stream_mode=["values", "updates", "messages-tuple", "custom"],
        multitask_strategy=MultitaskStrategy.REJECT,
        if_not_exists="create",
    )


def _upload_entry(upload: Upload) -> dict[str, Any]:
    return {"filename": upload.filename, "size": upload.size, "path": upload.path, "status": "uploaded"}


def _model_entry(model: ModelInfo) -> ClientModel:
    return {
        "name": model.name,
        "model": model.model,
        "display_name": model.display_name,
        "description": model.description,
        "supports_thinking": model.supports_thinking,
        "supports_reasoning_effort": model.supports_reasoning_effort,
        "supports_vision": model.supports_vision,
    }
