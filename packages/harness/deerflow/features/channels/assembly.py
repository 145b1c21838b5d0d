"""The parts of channels, put together once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from deerflow.config import AppConfig, ConfigError, Paths
from deerflow.events.notify import Notifier
from deerflow.features.assistants.agents import AgentService
from deerflow.features.channels.answers import Answers
from deerflow.features.channels.bindings import Bindings, people_of
from deerflow.features.channels.command_services import CommandServices
from deerflow.features.channels.commands import Commands
from deerflow.features.channels.config import ChannelsConfig, ChannelSections, channels_config
from deerflow.features.channels.connections import ChannelConnections
from deerflow.features.channels.conversations import Conversations
from deerflow.features.channels.decisions import Decisions
from deerflow.features.channels.engine import Engine
from deerflow.features.channels.files import ChannelFiles
from deerflow.features.channels.gate import Gate
from deerflow.features.channels.lines import ChatLines
from deerflow.features.channels.outbox import OutboxRow
from deerflow.features.channels.reception import Reception
from deerflow.features.channels.requests import Requests
from deerflow.features.channels.runs import ChannelRuns
from deerflow.features.channels.service import ChannelService, Make
from deerflow.features.channels.timing import Timing
from deerflow.features.channels.turns import ChatTurns
from deerflow.features.channels.types import OutFile
from deerflow.features.memory.service import MemoryService
from deerflow.features.usage.service import UsageService
from deerflow.files.artifacts import ArtifactService
from deerflow.files.uploads import UploadService
from deerflow.storage.database import Database
from deerflow.threads.service import ThreadService

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Channels:
    """Args:
    engine: carries messages from and to the platforms.
    reception: what the engine hands accepted messages to.
    files: opens what the outbox sends.
    commands: other features register theirs.
    service: for routes and the command line.
    grace: seconds to close in.
    """

    engine: Engine
    reception: Reception
    turns: ChatTurns
    files: ChannelFiles
    commands: Commands
    service: ChannelService
    grace: float

    async def aclose(self) -> None:
        """Give the connections back and stop watching turns: the process that takes them over continues."""
        await self.engine.aclose(self.grace)
        await self.turns.aclose()


def assemble(
    *,
    database: Database,
    paths: Paths,
    config: Callable[[], Awaitable[AppConfig]],
    runs: ChannelRuns,
    threads: ThreadService,
    agents: AgentService,
    memory: MemoryService,
    usage: UsageService,
    notifier: Notifier | None = None,
    platforms: Mapping[str, tuple[Make, bool]] = MappingProxyType({}),
    settings: Mapping[str, Any] = MappingProxyType({}),
    timing: Timing = Timing(),
) -> Channels:
    """Put the parts together.

    Args:
        notifier: to the other processes; None if there are none.
        platforms: by kind what makes an adapter of settings and secrets, and whether the platform calls us.
        settings: ``channels`` of the configuration, of which limits hold as they are now.
    """
    limits = _limits(settings)
    sections = ChannelSections(config)

    def page(path: str) -> str:
        return f"{limits.page_url.rstrip('/')}{path}" if limits.page_url else ""

    async def open_file(row: OutboxRow) -> OutFile:
        return await files.open(row.body)

    engine = Engine(
        database,
        lambda: service.wanted(platforms),
        open_file=open_file,
        notifier=notifier,
        timing=timing,
        max_age=timedelta(minutes=limits.max_age_minutes),
        concurrency=limits.max_concurrency,
        max_waiting=limits.inbound_queue_maxsize,
    )
    inbox, outbox = engine.inbox, engine.outbox
    people = people_of(database)
    bindings, conversations = Bindings(database, people), Conversations(database)
    decisions = Decisions(database, threads)
    files = ChannelFiles(UploadService(paths, threads.repository), ArtifactService(paths, threads.repository), page)
    turns = ChatTurns(
        database,
        inbox,
        outbox,
        runs,
        threads,
        conversations,
        decisions,
        Answers(inbox, outbox, decisions),
        Requests(files, sections.channels),
        files,
        people=people,
        page=page,
    )
    services = CommandServices(config, agents, memory, usage, threads, turns, page)
    commands, gate = Commands(services, conversations), Gate(database, bindings, page)
    reception = Reception(
        database,
        inbox,
        outbox,
        gate,
        commands,
        conversations,
        decisions,
        turns,
        configs=sections.both,
        lines=ChatLines(database, engine.adapter),
    )
    service = ChannelService(
        database,
        ChannelConnections(database, paths.secrets_key_file),
        bindings,
        conversations,
        outbox,
        configs=sections.both,
        changed=engine.refresh,
    )
    grace = limits.shutdown_grace_period_seconds
    return Channels(engine, reception, turns, files, commands, service, grace)


def _limits(settings: Mapping[str, Any]) -> ChannelsConfig:
    """Return what all channels share; the defaults if a key of it is wrong, so that no channel keeps the server from starting."""
    try:
        return channels_config(settings)
    except ConfigError as error:
        logger.error("%s Channels run with the defaults.", error)
        return ChannelsConfig()
