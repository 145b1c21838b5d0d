"""The runtime: everything that a gateway or a worker needs, put together once from one configuration."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from importlib import import_module
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deerflow.accounts import UserRepository
from deerflow.capability import Capabilities
from deerflow.config import AppConfig, ConfigSource, Paths
from deerflow.context import RunContext
from deerflow.context.run_options import RunOptions
from deerflow.counts import RunEnds
from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.events.hub import Hub
from deerflow.events.log import EventLog
from deerflow.events.notify import Notifier
from deerflow.features.ask import Asker
from deerflow.features.assistants.agents import AgentService
from deerflow.features.assistants.service import AssistantService
from deerflow.features.connections.service import ConnectionService
from deerflow.features.documents.service import DocumentService
from deerflow.features.mcp.offer import McpOffer
from deerflow.features.mcp.service import McpService
from deerflow.features.memory import Memory, MemoryService
from deerflow.features.offers import all_tools, harness_of
from deerflow.features.people.service import PeopleService
from deerflow.features.personal_data import PersonalData
from deerflow.features.reports import ReportService
from deerflow.features.retention import Retention, RetentionPolicy
from deerflow.features.schedules.scheduler import Scheduler
from deerflow.features.schedules.service import CronService
from deerflow.features.site import SiteService
from deerflow.features.skills.installer import MAX_ARCHIVE_BYTES
from deerflow.features.skills.offer import SkillsOffer
from deerflow.features.skills.service import Installed, SkillService
from deerflow.features.store import StoreService
from deerflow.features.suggestions import SuggestionService
from deerflow.features.titles import Titles
from deerflow.features.titles.job import TitleJob
from deerflow.features.tracing.export import Tracing
from deerflow.features.tracing.timelines import Timelines
from deerflow.features.usage.service import UsageService
from deerflow.features.webhooks import WebhookPolicy, Webhooks
from deerflow.files.artifacts import read_artifact
from deerflow.files.content import file_requests
from deerflow.files.versions import record_run
from deerflow.identity import Principal
from deerflow.runs.agent_provider import AgentProvider
from deerflow.runs.attempt import AttemptServices
from deerflow.runs.executor import Executor, RunObserver
from deerflow.runs.finalize import DELETE_THREAD
from deerflow.runs.protocol_stream import ProtocolStreams
from deerflow.runs.request import RunRequest
from deerflow.runs.service import RunService
from deerflow.runs.view import run_view
from deerflow.security.addresses import Network
from deerflow.security.outbound import Outbound
from deerflow.storage.checkpoints import Checkpointer, checkpointer_for
from deerflow.storage.database import Database
from deerflow.storage.runs import Run, RunStore
from deerflow.storage.tables import utc_now
from deerflow.storage.thread_lock import FileThreadLock, ThreadLock
from deerflow.tasks.jobs import Job, JobWorker
from deerflow.tasks.queue import Execute, Interrupt, LocalQueue, RunQueue
from deerflow.threads.feedback import FeedbackRepository
from deerflow.threads.service import ThreadService

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware

    from deerflow.agents.middlewares.summarization_middleware import ContextTable
    from deerflow.features.channels.assembly import Channels
    from deerflow.features.channels.types import Adapter

logger = logging.getLogger(__name__)

JOBS = "jobs"
"""Channel to other processes: there are jobs."""
SWEEP_SECONDS = 10.0
HOUSEKEEPING = timedelta(hours=1)
LEAD_AGENT_MODULE = "deerflow.agents.lead_agent"


class Runtime(RunObserver):
    """Nothing is opened or started before :meth:`start`, whose event loop it then belongs to.

    Args:
        config_source: watched; storage settings are those of the first snapshot, the rest follows changes.
        paths: the data directory.
        executes: whether this process executes runs and does the work around them, or only takes orders.
        database: that of the configuration, if it is open already.
        extra_middleware: yours, in every agent; placed by ``@Next``/``@Prev`` or before Clarification.
        embedded: the agents of a program that needs no server. It never starts the runtime, executes each run that it
            asked for itself, by ``executor``, and of the background tasks does those that need no server.
        platforms: of chat channels, by kind: what makes an adapter of settings and secrets, and whether the platform calls us.

    Raises:
        ConfigError: the configuration is not valid.
    """

    def __init__(
        self,
        config_source: ConfigSource,
        paths: Paths,
        *,
        executes: bool = True,
        database: Database | None = None,
        extra_middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
        embedded: AgentProvider | None = None,
        platforms: Mapping[str, tuple[Callable[[Mapping[str, Any]], Adapter], bool]] = MappingProxyType({}),
    ) -> None:
        config = embedded.harness.config if embedded else config_source.current()
        self.config_source = config_source
        self.paths = paths
        self.executes = executes
        self.begun: dict[str, asyncio.Task[None]] = {}
        """Of an embedded runtime: executions of runs that began with their creation."""
        self.run_ends = RunEnds()
        self._platforms = platforms
        self._channels = config.channels
        self._limits = config.runs
        self._warming_up: asyncio.Task[object] | None = None
        self._background: list[asyncio.Task[object]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._open(config, database, embedded, extra_middleware)
        self._serve_people(config)
        self._execute_runs(config)
        self._work_beside_runs(embedded=embedded is not None)

    def _open(
        self,
        config: AppConfig,
        database: Database | None,
        embedded: AgentProvider | None,
        extra_middleware: Sequence[AgentMiddleware[Any, Any, Any]],
    ) -> None:
        """Agents, the database, and what processes tell each other through it."""
        paths = self.paths
        self.database = database or Database.of(config, paths)
        if embedded is None:
            harness = harness_of(config, paths, checkpointer_for(self.database))
            self.agent_provider = AgentProvider(self.config_source, harness, extra_middleware=extra_middleware)
        else:
            self.agent_provider = embedded
        self.packages = self.agent_provider.harness.packages
        self.checkpointer: Any = self.agent_provider.harness.checkpointer
        self._lock, queue, self.notifier = _connections(self.database, config, paths)
        self._queue: RunQueue = _NoQueue(self) if embedded else queue
        self.event_log = EventLog(self.database, self.notifier)
        self.hub = Hub(self.notifier)

    def _serve_people(self, config: AppConfig) -> None:
        """Threads, and what else people have: one service for each noun."""
        paths, config_source = self.paths, self.config_source
        self.threads = ThreadService(
            database=self.database,
            paths=paths,
            checkpointer=self.checkpointer,
            event_log=self.event_log,
            lock=self._lock,
            graph=self.agent_provider.reader,
            stop_run=self._stop_run,
            destroy_sandbox=self._destroy_sandbox,
            changed=self._thread_changed,
        )
        self.store = StoreService(self.database)
        self.site = SiteService(self.database, config_source.acurrent)
        self.feedback = FeedbackRepository(self.database)
        self.usage = UsageService(self.database)
        self.connections = ConnectionService(config_source)
        ask = self.ask = Asker(self.database, self.agent_provider.harness.models)
        outbound = Outbound(Network("internet", allow_nets=config.runs.webhook_allow_nets), "runs.webhook_allow_nets")
        harness = self.agent_provider.harness = replace(
            self.agent_provider.harness, accounts=UserRepository(self.database)
        )
        servers, catalog = harness.of(McpOffer).servers, harness.of(SkillsOffer).catalog
        servers.keep(self.database, outbound)
        self.mcp = McpService(servers, self.agent_provider.fresh)
        self.skills = SkillService(catalog, outbound, config_source.acurrent, ask)
        self.suggestions = SuggestionService(ask)
        tools = partial(all_tools, packages=self.packages)
        self.memory = MemoryService(self.database, paths, ask, config_source.acurrent, self.threads, tools)
        self.agents = AgentService(self.database, paths, config_source.acurrent, self.memory.replace)
        self.personal_data = PersonalData(self.database, paths, self.threads, self.memory, self.agents)
        stop_runs = lambda principal: self.runs.cancel_many(principal)  # noqa: E731
        self.people = PeopleService(self.database, paths, self.threads, stop_runs, self._wake_jobs)
        self.assistants = AssistantService(self.database, self.agent_provider.agent, self.threads.delete, self.agents)
        self.documents = DocumentService(self.database, config_source.acurrent, self._context_of, self._wake_jobs)
        self.reports = ReportService(self.threads.repository, self._context_of)
        self._scheduler = Scheduler(self.database, self._start_cron_run, self._wake_jobs)
        self.capabilities = self._capabilities(config)
        self.crons = CronService(self.database, self.assistants, self._wake_jobs, capabilities=self.capabilities)

    def _capabilities(self, config: AppConfig) -> Capabilities:
        return Capabilities(
            self.people,
            Webhooks(WebhookPolicy(config.runs.webhook_allow_nets), self._described),
            Memory(self.memory),
            self.agents,
            Titles(TitleJob(self.database, self.ask, self.config_source.acurrent, self._title_changed)),
            self.documents,
            self._scheduler,
            Tracing(config.origin.environ),
            packaged=[one.capability(self.database) for one in self.packages.values() if one.capability],
        )

    def _execute_runs(self, config: AppConfig) -> None:
        """Admission and execution of runs, and their streams."""
        self._run_store = run_store = RunStore(self.database)
        self.executor = Executor(
            AttemptServices(
                database=self.database,
                runs=run_store,
                log=self.event_log,
                agents=self.agent_provider,
                store=self.store.of,
                capabilities=self.capabilities,
                timeout=config.runs.timeout_seconds,
            ),
            self._lock,
            worker=f"{socket.gethostname()}:{secrets.token_hex(3)}:{os.getpid()}",
            queue=self._queue,
            observer=self,
        )
        self.runs = RunService(
            database=self.database,
            runs=run_store,
            threads=self.threads.repository,
            transcript=self.threads.transcript,
            capabilities=self.capabilities,
            resolve=self.assistants.merged,
            log=self.event_log,
            queue=self._queue,
            executor=self.executor,
            uploads_dir=lambda user_id, thread_id: self.paths.uploads(thread_id, user_id),
            graph=self.agent_provider.reader,
            called=self.agent_provider.called,
            config=self.config_source.acurrent,
            observer=self,
        )
        self.timelines = Timelines(self.runs)
        self.streams = ProtocolStreams(self.runs, self.event_log, self.threads.states, self.hub)

    def _work_beside_runs(self, *, embedded: bool) -> None:
        """Background tasks and retention."""
        deletions = {} if embedded else {DELETE_THREAD: self._delete_thread}
        self._job_grace = 1.0 if embedded else 10.0
        self.jobs = JobWorker(self.database, self.capabilities.jobs(on_server=not embedded) | deletions)
        self.retention = Retention(self.database, self.threads, self.paths)

    async def start(self) -> None:
        """Bring the database up to date, go on with what was left unfinished, and begin to execute."""
        await self.database.migrate()
        self._begin(self._keep_house(), "housekeeping")
        if self._platforms:
            self.channels.engine.start(self.channels.reception)
            self._begin(self.channels.reception.keep(), "turns in chats")
        if not self.executes:
            return
        # Costs seconds of imports, which the first run need not wait for.
        self._warming_up = asyncio.create_task(asyncio.to_thread(import_module, LEAD_AGENT_MODULE))
        self._begin(self.agent_provider.warm_up(), "MCP servers")
        await self._queue.start(self.executor.execute, self.executor.interrupt, concurrency=self._limits.max_concurrent)
        if not self.database.is_postgres:  # there, the queue is the table
            for run in await self._run_store.unfinished():
                await self._queue.defer(run.run_id, run.thread_id, at=run.due_at)
            self._begin(self._sweep(), "forgotten runs")
        self._begin(self._look_at_crons(), "crons")
        self.jobs.start()
        if self.notifier is not None:
            self.notifier.listen(JOBS, lambda _: self.jobs.wake())

    def _begin(self, work: Coroutine[Any, Any, object], name: str) -> None:
        self._background.append(asyncio.create_task(work, name=name))

    async def aclose(self) -> None:
        """Let runs end for a while, leave the others for whoever comes next, and close everything."""
        if self._warming_up is not None:
            await self._warming_up
        for task in self._background:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if "channels" in vars(self):
            await self.channels.aclose()
        await self._queue.aclose(grace=self._limits.drain_seconds)
        await self.jobs.aclose(grace=self._job_grace)
        await self.hub.aclose()
        await self.event_log.aclose()
        await asyncio.gather(*self._sending)
        if self.notifier is not None:
            await self.notifier.aclose()
        await self._lock.aclose()
        await self.capabilities.aclose()
        await self.agent_provider.aclose()
        if isinstance(self.checkpointer, Checkpointer):  # one that a program gave us is the program's to close
            await self.checkpointer.aclose()
        await self.database.aclose()

    @cached_property
    def channels(self) -> Channels:
        """Chat channels. They are put together when they are used first: a program without them does not import them."""
        from deerflow.features.channels.assembly import assemble
        from deerflow.features.channels.runs import ChannelRuns

        return assemble(
            database=self.database,
            paths=self.paths,
            config=self.config_source.acurrent,
            runs=ChannelRuns(self.runs),
            threads=self.threads,
            agents=self.agents,
            memory=self.memory,
            usage=self.usage,
            notifier=self.notifier,
            platforms=self._platforms,
            settings=self._channels,
        )

    # how the parts use each other -----------------------------------------------------------------------------------

    async def context_table(self, principal: Principal, thread_id: str, options: RunOptions) -> ContextTable:
        """What the next request to the model would hold. Raises NotFoundError, or ValueError: no model is configured."""
        thread = await self.threads.repository.get(principal, thread_id)
        options = options.without(thread.switched_off)
        snapshot = await self.threads.states.snapshot(thread_id)
        return await self.agent_provider.context_table(principal, snapshot.values, options)

    async def forget_thread(self, principal: Principal, thread_id: str) -> None:
        """Forget all facts that were learned in a thread, by whichever agent of the person."""
        agents = await self.agents.list(principal)
        for name in (None, *(agent.name for agent in agents)):
            await self.memory.forget_thread(principal, thread_id, name)

    async def install_skill(
        self,
        principal: Principal,
        *,
        url: str | None = None,
        thread_id: str | None = None,
        path: str | None = None,
        enable: bool = True,
    ) -> Installed:
        """Install a skill from a git address, or from an archive that lies in a thread. Raises like SkillService.install."""
        if url is not None:
            return await self.skills.install(principal, url, enable=enable)
        if thread_id is None or path is None:
            raise InvalidRequestError("Give thread_id and path of an archive, or a url.")
        await self.threads.repository.get(principal, thread_id)
        context = await self._context_of(thread_id, principal)
        data = b""
        with file_requests(path):
            async for piece in read_artifact(context, path):
                data += piece
                if len(data) > MAX_ARCHIVE_BYTES:
                    break
        return await self.skills.install(principal, data, enable=enable)

    # what becomes of runs --------------------------------------------------------------------------------------------

    def status_changed(self, run: Run) -> None:
        if run.ended_at is not None:
            self.run_ends.seconds[run.status.value].add(
                (run.ended_at - (run.started_at or run.ended_at)).total_seconds()
            )
        notice = {"type": "runs", "thread_id": run.thread_id, "run_id": run.run_id, "status": run.status.value}
        self.hub.publish(run.user_id, notice)
        self._thread_changed(run.user_id, run.thread_id)

    def _wake_jobs(self) -> None:
        """Let jobs that are due begin: here, or in the processes that execute what this one only takes in."""
        if self.executes or self.notifier is None:
            self.jobs.wake()
        else:
            sending = asyncio.create_task(self.notifier.send(JOBS, [""]), name="jobs for others")
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    def tasks_enqueued(self, due: datetime) -> None:
        self.jobs.start()
        self.jobs.wake(due)

    async def attempt_ended(self, run: Run) -> None:
        if await record_run(self.paths, run):
            self.hub.publish(run.user_id, {"type": "files", "thread_id": run.thread_id, "run_id": run.run_id})

    # what is done beside them ----------------------------------------------------------------------------------------

    async def _context_of(self, thread_id: str, principal: Principal) -> RunContext:
        return await self.agent_provider.harness.run_context(thread_id, RunOptions(), principal=principal)

    async def _stop_run(self, principal: Principal, run_id: str) -> None:
        await self.runs.cancel(principal, run_id, wait=True)

    async def _destroy_sandbox(self, sandbox_id: str) -> None:
        await self.agent_provider.harness.sandbox_provider.release(sandbox_id, destroy=True)

    async def _start_cron_run(self, principal: Principal, body: dict[str, Any], thread_id: str | None) -> None:
        await self.runs.start(principal, RunRequest.model_validate(body), thread_id=thread_id)

    async def _title_changed(self, principal: Principal, thread_id: str, title: str) -> None:
        with suppress(NotFoundError):
            await self.threads.states.retitle(await self.threads.repository.get(principal, thread_id), title)
        self._thread_changed(principal.user_id, thread_id)

    def _thread_changed(self, user_id: str, thread_id: str) -> None:
        self.hub.publish(user_id, {"type": "threads", "thread_id": thread_id})

    async def _described(self, principal: Principal, run_id: str) -> Mapping[str, Any]:
        run = await self.runs.get(principal, run_id)
        return {**run_view(run), "values": await self.runs.values(run)}

    async def _delete_thread(self, job: Job) -> None:
        with suppress(NotFoundError):
            await self.threads.delete(Principal(job.payload["user_id"], source="internal"), job.key)

    async def _sweep(self) -> None:
        """Defer runs that no queue has, as those of another process with this data directory that died."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                for run_id, thread_id in await forgotten(self._run_store):
                    if run_id not in self.executor.active:
                        await self._queue.defer(run_id, thread_id)
            except Exception:
                logger.warning("Runs that were left over could not be looked for.", exc_info=True)

    async def _look_at_crons(self) -> None:
        """For the first time; from then on their task comes again by itself. A full disk has room again some time."""
        while True:
            try:
                return await self._scheduler.look()
            except Exception as error:
                logger.warning("Crons cannot be started yet: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)

    async def _keep_house(self) -> None:
        """Remove what is over its time: threads every hour, the rest every day."""
        for hour in count():
            try:
                await self.threads.finish_deletions()
                if self.executes and hour % 24 == 0:
                    await self.retention.apply(retention_policy(await self.config_source.acurrent()))
            except Exception:
                logger.exception("Housekeeping failed; the next try is in an hour.")
            await asyncio.sleep(HOUSEKEEPING.total_seconds())


class _NoQueue:
    """The :class:`RunQueue` of an embedded runtime, which executes its own runs and none of other processes."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def defer(self, run_id: str, thread_id: str, *, at: datetime | None = None) -> None:
        """Whoever asked for the run executes it."""

    def begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> bool:
        begun = self._runtime.begun
        begun[run_id] = asyncio.ensure_future(work())  # pyright: ignore[reportArgumentType]
        begun[run_id].add_done_callback(lambda _: begun.pop(run_id))
        return True

    async def cancel(self, run_id: str) -> None:
        self._runtime.executor.interrupt(run_id)

    async def start(self, execute: Execute, interrupt: Interrupt, *, concurrency: int) -> None:
        raise RuntimeError("An embedded runtime takes no runs of others.")

    async def aclose(self, *, grace: float) -> None:
        """There is nothing to wait for."""


def retention_policy(config: Any) -> RetentionPolicy:
    """What the configuration says about keeping things."""
    return RetentionPolicy(
        threads=_days(config.retention.threads_days),
        events=_days(config.retention.events_days),
        checkpoints=_days(config.retention.checkpoints_days),
    )


def _days(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(days=number)


FORGOTTEN = timedelta(seconds=15)
"""A run that was left untouched for so long should have been deferred; the sweep looks."""


def _connections(database: Database, config: AppConfig, paths: Paths) -> tuple[ThreadLock, RunQueue, Notifier | None]:
    """How the processes of an installation work together: one process on SQLite, or many on one PostgreSQL."""
    if not database.is_postgres:
        lock = FileThreadLock(lambda user_id, thread_id: paths.ensure_thread_dir(thread_id, user_id))
        return lock, LocalQueue(), None
    from deerflow.runs.postgres_queue import PostgresQueue
    from deerflow.storage.postgres_lock import PostgresThreadLock

    if config.stream_bridge.type == "redis":
        logger.warning("stream_bridge is ignored: processes notify each other through PostgreSQL.")
    notifier, lock = Notifier(database), PostgresThreadLock(database.direct)
    return lock, PostgresQueue(database, notifier, lock), notifier


async def forgotten(runs: RunStore) -> Iterable[tuple[str, str]]:
    """Ids of runs and threads that should have begun, or gone on, a while ago."""
    now = utc_now()
    return [
        (run.run_id, run.thread_id)
        for run in await runs.unfinished()
        # What was touched in the future was touched before the clock was set back.
        if abs(run.updated_at - now) > FORGOTTEN and (run.due_at is None or run.due_at < now - FORGOTTEN)
    ]
