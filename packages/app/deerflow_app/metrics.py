"""Figures of a process and its installation, as text for Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format. The client library would take 150 ms and 12 MB at
each start, for what is mostly read from elsewhere when it is asked for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from deerflow.counts import Distribution
from deerflow.features.figures import InstallationFigures, installation

if TYPE_CHECKING:
    from deerflow.runtime import Runtime
    from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FRESH_SECONDS = 10.0
"""For so long the figures of the installation are not read again, however many ask."""
PATIENCE = 5.0
LAG_EVERY = 1.0
LAGS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_VERSION = version("deerflow")

Labels = Mapping[str, str]


class Metric(NamedTuple):
    """``samples``: each with its labels; of a histogram a distribution, else a number."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    samples: Iterable[tuple[Labels, float | Distribution]]


class Metrics:
    """Belongs to one event loop, whose lag is watched from the first request on.

    Args:
        database: of the installation.
    """

    def __init__(self, database: Database) -> None:
        self.open_streams = 0
        self._database = database
        self._lag = Distribution(LAGS)
        self._is_watching = False
        self._known: tuple[float, InstallationFigures | None] | None = None
        self._reading = asyncio.Lock()

    async def text(self, runtime: Runtime | None) -> str:
        """Return all figures. Without a runtime those are missing that only it knows."""
        if not self._is_watching:
            self._is_watching = True
            self._watch()
        found = [*self._of_installation(await self._installation()), *self._of_process(), *_of_runtime(runtime)]
        return await asyncio.to_thread(lambda: rendered([*found, *_of_backups(runtime), *_of_system()]))

    async def _installation(self) -> InstallationFigures | None:
        """Return what was read lately, or None if the database does not answer."""
        async with self._reading:
            if self._known is None or time.monotonic() - self._known[0] > FRESH_SECONDS:
                try:
                    async with asyncio.timeout(PATIENCE):
                        found = await self._database.browse(installation)
                except Exception as error:
                    logger.warning("The figures of the installation cannot be read: %s", error)
                    found = None
                self._known = time.monotonic(), found
            return self._known[1]

    def _of_installation(self, found: InstallationFigures | None) -> Iterator[Metric]:
        known = [found] if found else []
        yield gauge("database_up", "1 if the database answers.", int(found is not None))
        yield Metric(
            "deerflow_runs",
            "gauge",
            "Runs that have not ended, of the installation: running, waiting for a process, queued behind another run of their "
            "thread, scheduled for later.",
            [({"state": state}, count) for one in known for state, count in one.runs.items()],
        )
        yield gauge(
            "runs_oldest_waiting_seconds",
            "Since when the oldest run of the installation waits for a process.",
            *(one.oldest_waiting for one in known),
        )
        yield Metric(
            "deerflow_channels",
            "gauge",
            "Bots of the installation on chat platforms.",
            [({"kind": kind, "state": state}, n) for one in known for (kind, state), n in one.channels.items()],
        )
        yield gauge(
            "outbox_waiting",
            "Messages of the installation to chat platforms that are not sent yet.",
            *(one.outbox_waiting for one in known),
        )
        yield gauge(
            "outbox_dead",
            "Messages of the installation to chat platforms that were given up within the last hour.",
            *(one.outbox_dead for one in known),
        )

    def _of_process(self) -> Iterator[Metric]:
        loads = self._database.loads().items()
        yield Metric("deerflow_info", "gauge", "The version.", [({"version": _VERSION}, 1)])
        yield gauge("open_streams", "Event streams and WebSockets that are open.", self.open_streams)
        yield Metric(
            "deerflow_event_loop_lag_seconds",
            "histogram",
            "By how much what was due on the event loop came late, looked at each second.",
            [({}, self._lag)],
        )
        for name, text, number in (
            ("connections", "Connections to the database that are open.", [load.connections for _, load in loads]),
            ("connections_max", "Connections to the database at most.", [load.most for _, load in loads]),
            ("jobs_waiting", "Jobs that wait for a connection.", [load.waiting for _, load in loads]),
        ):
            samples = zip([{"pool": pool} for pool, _ in loads], number, strict=True)
            yield Metric(f"deerflow_database_{name}", "gauge", text, samples)

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + LAG_EVERY

        def look() -> None:
            self._lag.add(max(0.0, loop.time() - due))
            self._watch()

        loop.call_at(due, look)


def _of_runtime(runtime: Runtime | None) -> Iterator[Metric]:
    known = [] if runtime is None else [runtime]
    calls = [one.agent_provider.harness.models.calls for one in known]
    yield gauge("runs_executing", "Runs that this process executes.", *(len(one.executor.active) for one in known))
    yield Metric(
        "deerflow_run_duration_seconds",
        "histogram",
        "Runs that ended in this process, from their first claim to their end.",
        [({"status": status}, spread) for one in known for status, spread in one.run_ends.seconds.items()],
    )
    yield Metric(
        "deerflow_model_answers_total",
        "counter",
        "Answers of models.",
        [({"model": model}, count) for one in calls for model, count in one.answers.items()],
    )
    yield Metric(
        "deerflow_model_errors_total",
        "counter",
        "Calls of models that failed, each attempt, by kind of error.",
        [({"model": model, "kind": kind}, count) for one in calls for (model, kind), count in one.errors.items()],
    )
    yield Metric(
        "deerflow_model_tokens_total",
        "counter",
        "Tokens of answered calls: input, cached (a part of it), output.",
        [({"model": model, "kind": kind}, count) for one in calls for (model, kind), count in one.tokens.items()],
    )
    yield gauge(
        "sandboxes",
        "Sandboxes of this process whose shell is up.",
        *(one.agent_provider.harness.sandbox_provider.alive for one in known),
    )


def _of_backups(runtime: Runtime | None) -> Iterator[Metric]:
    """Read when the last scheduled backups were made. Blocks."""
    from deerflow_app.backups import newest

    found = newest(runtime.config_source.current()) if runtime is not None else {}
    text = "When the newest scheduled backup of the installation was made, by place; 0 if there is none."
    yield Metric("deerflow_backup_timestamp_seconds", "gauge", text, [({"place": p}, at) for p, at in found.items()])


def _of_system() -> Iterator[Metric]:
    """Read the figures of the operating system, under the names that all of Prometheus' clients use. Blocks."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = [({}, used.ru_utime + used.ru_stime)]
    yield Metric("process_cpu_seconds_total", "counter", "CPU time of the process.", cpu)
    proc = Path("/proc/self")
    if proc.exists():
        pages = int((proc / "statm").read_text().split()[1])
        memory = [({}, pages * os.sysconf("SC_PAGE_SIZE"))]
        yield Metric("process_resident_memory_bytes", "gauge", "Memory of the process.", memory)
        open_fds = [({}, sum(1 for _ in (proc / "fd").iterdir()))]
        yield Metric("process_open_fds", "gauge", "Open file descriptors of the process.", open_fds)


def gauge(name: str, text: str, *values: float) -> Metric:
    """Return a gauge without labels; without a value if it is not known."""
    return Metric(f"deerflow_{name}", "gauge", text, [({}, value) for value in values])


# the format ----------------------------------------------------------------------------------------------------------


def rendered(metrics: Iterable[Metric]) -> str:
    """Return metrics in the text format."""
    lines: list[str] = []
    for name, kind, text, samples in metrics:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for labels, value in samples:
            if isinstance(value, Distribution):
                lines += _histogram(name, labels, value)
            else:
                lines.append(_sample(name, labels, value))
    return "\n".join([*lines, ""])


def _histogram(name: str, labels: Labels, value: Distribution) -> Iterator[str]:
    totals = list(accumulate(value.counts))
    for bound, count in zip([*map(str, value.bounds), "+Inf"], totals, strict=True):
        yield _sample(f"{name}_bucket", {**labels, "le": bound}, count)
    yield _sample(f"{name}_sum", labels, value.total)
    yield _sample(f"{name}_count", labels, totals[-1])


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def _sample(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"
