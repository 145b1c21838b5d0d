"""Who gets the traces: an OTLP collector, Langfuse and LangSmith, as their standard variables say."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from deerflow.capability import Capability, RunFacts
from deerflow.config import get_tracing_config

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

    from deerflow.config.env import LangfuseConfig, LangSmithConfig
    from deerflow.features.tracing.spans import Trace

logger = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
EXPORTER_LOGS = "opentelemetry.exporter.otlp.proto.http.trace_exporter", "langsmith.client"
GRACE = 3.0
"""Seconds that the end of a process may take to send what is left."""


class Tracing(Capability):
    """Sends traces where the environment says. What is amiss is logged once, and no run fails or waits for it.

    Args:
        environ: the process's, completed by ``.env``.
    """

    name = "tracing"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._config = get_tracing_config(environ)
        self._otlp = environ.get("OTEL_SDK_DISABLED", "").strip().lower() != "true" and (
            environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in ("", "none")
            and any(environ.get(name, "").strip() for name in ENDPOINTS)
        )
        self._on = self._otlp or any(self._config.missing())
        self._captures = environ.get(CAPTURE, "").strip().lower() == "true"
        self._lock = Lock()
        self._is_open = False
        self._failures = _Failures()
        self._provider: TracerProvider | None = None
        self._langsmith: Any = None
        self._project = ""

    async def observer(self, facts: RunFacts) -> Trace | None:
        """Return the trace of an attempt at a run; None if no traces are wanted."""
        if self._on and not self._is_open:
            await asyncio.to_thread(self._open)
        if not self._on:
            return None
        from langchain_core.tracers.langchain import LangChainTracer

        from deerflow.features.tracing.spans import SpanHandler, Trace, run_ids

        handlers: list[Any] = []
        spans: SpanHandler | None = None
        if self._provider is not None:
            tracer: Any = copy.copy(self._provider.get_tracer("deerflow"))
            tracer.id_generator = run_ids(facts)
            spans = SpanHandler(facts, tracer, self._captures)
            handlers.append(spans)
        if self._langsmith is not None:
            handlers.append(LangChainTracer(project_name=self._project, client=self._langsmith))
        return Trace(facts, handlers, spans)

    def _open(self) -> None:
        with self._lock:
            if self._is_open or not self._on:
                return
            try:
                self._is_open = self._connect()
            except ImportError as error:
                logger.warning("Runs are not traced: %s. Install deerflow-harness[tracing].", error)
            except Exception as error:
                logger.warning("Runs are not traced: %s", error)
            self._on = self._is_open

    def _connect(self) -> bool:
        """False if traces have nowhere to go."""
        services = self._config.missing()
        for name, missing in services.items():
            if missing:
                logger.warning("Runs are not traced with %s: set %s, or switch it off.", name, " and ".join(missing))
        otlp, protocol = self._otlp, next(filter(None, map(self._environ.get, PROTOCOLS)), PROTOCOL)
        if otlp and protocol != PROTOCOL:
            otlp = False
            logger.warning("Spans are not sent by %s: set %s=%s, port 4318.", protocol, PROTOCOLS[1], PROTOCOL)
        smith = self._config.langsmith if "langsmith" in services else None
        fuse = self._config.langfuse if services.get("langfuse") == [] else None
        if smith is None and fuse is None and not otlp:
            return False
        # OpenTelemetry's SDK reads the process's environment alone; `.env` completes it.
        for name, value in self._environ.items():
            if name.startswith("OTEL_"):
                os.environ.setdefault(name, value)
        for name in EXPORTER_LOGS:
            logging.getLogger(name).addFilter(self._failures)
        if smith is not None:
            self._project, self._langsmith = smith.project, _langsmith(smith, self._failures)
        if otlp or fuse is not None:
            self._provider = _provider(self._failures, otlp, fuse)
        return True

    async def aclose(self) -> None:
        """Send what is left, for a few seconds at most. A thread that a collector holds up is left behind: it ends with the
        process."""
        if not self._is_open:
            return
        self._is_open = False
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def close() -> None:
            if self._provider is not None:
                self._provider.shutdown()
            if self._langsmith is not None:
                self._langsmith.flush()
            with suppress(RuntimeError):  # the loop did not wait
                loop.call_soon_threadsafe(done.set)

        Thread(target=close, name="last spans", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await done.wait()
        for name in EXPORTER_LOGS:
            logging.getLogger(name).removeFilter(self._failures)


# where they go ------------------------------------------------------------------------------------------------------------


class _Failures(logging.Filter):
    """Keeps what exporters log, and warns once when sending fails, until it works again."""

    def __init__(self) -> None:
        super().__init__()
        self._reason = ""
        self._warned = False

    def filter(self, record: logging.LogRecord) -> bool:
        self._reason = record.getMessage()
        return record.levelno < logging.WARNING

    def note(self, target: str, ok: bool, reason: str = "") -> None:
        if not ok and not self._warned:
            reason = reason or self._reason
            logger.warning("Traces cannot be sent to %s. Runs go on without. Last problem: %s", target, reason)
        self._warned = not ok


def _provider(failures: _Failures, otlp: bool, langfuse: LangfuseConfig | None) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    class Exporter(OTLPSpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = super().export(spans)
            failures.note(self._endpoint, result is SpanExportResult.SUCCESS)
            return result

    resource = Resource.create()
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "deerflow"}))
    provider = TracerProvider(resource=resource)
    if otlp:
        provider.add_span_processor(BatchSpanProcessor(Exporter()))
    if langfuse is not None:
        secret = b64encode(f"{langfuse.public_key}:{langfuse.secret_key}".encode()).decode()
        url = f"{langfuse.host.rstrip('/')}/api/public/otel/v1/traces"
        headers = {"Authorization": f"Basic {secret}", "x-langfuse-ingestion-version": "4"}
        provider.add_span_processor(BatchSpanProcessor(Exporter(endpoint=url, headers=headers)))
    return provider


def _langsmith(config: LangSmithConfig, failures: _Failures) -> Any:
    """The client. What belongs to no run, as titles, is for LangSmith's own switch of the process, which is set here."""
    import langsmith
    from langsmith.env import get_langchain_env_var_metadata, get_runtime_environment

    if config.api_key is None:
        langsmith.configure(enabled=False)
        return None
    client = langsmith.Client(
        api_url=config.endpoint,
        api_key=config.api_key,
        tracing_error_callback=lambda error: failures.note("LangSmith", False, str(error)),
    )
    os.environ.setdefault("LANGSMITH_PROJECT", config.project)
    langsmith.configure(client=client, enabled=True)
    for ask in (get_runtime_environment, get_langchain_env_var_metadata):  # git, once: that blocks
        ask()
    return client
