"""Spans of runs, as OpenTelemetry's conventions for generative AI name them.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/. A run's span has an id that follows from the run:
when another process goes on with the run, what the first one has sent keeps its parent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables.config import merge_configs
from langgraph.errors import GraphBubbleUp

from deerflow.capability import RunFacts
from deerflow.tracing import SUBAGENT, TRACEPARENT

if TYPE_CHECKING:
    from langchain_core.outputs import LLMResult
    from langchain_core.runnables import RunnableConfig
    from opentelemetry.sdk.trace import Tracer
    from opentelemetry.trace import Span

PROVIDERS = {"google_genai": "gcp.gemini", "mistralai": "mistral_ai", "xai": "x_ai", "amazon_bedrock": "aws.bedrock"}
"""What LangChain calls providers, where the conventions have another name."""
CONTENT_CHARS = 100_000
REQUEST = {"ls_temperature": "temperature", "ls_max_tokens": "max_tokens", "ls_stop": "stop_sequences"}
INVOKED = {"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "deerflow"}
ROLES = {"human": "user", "ai": "assistant"}


class Trace:
    """The trace of an attempt at a run."""

    def __init__(self, facts: RunFacts, handlers: Sequence[Any], spans: SpanHandler | None) -> None:
        self._facts = facts
        self._handlers = handlers
        self._spans = spans
        self._has_begun = not facts.first_attempt

    def configured(self, config: RunnableConfig) -> RunnableConfig:
        """``config``, so that the graph's work is part of the trace."""
        facts = self._facts
        more: RunnableConfig = {
            "run_name": facts.agent,
            "metadata": {"trace_id": facts.trace_id, "session_id": facts.thread_id, "run_id": facts.run_id},
            "callbacks": list(self._handlers),
        }
        if not self._has_begun:  # LangSmith's id of the trace; a second root cannot have it
            more["run_id"] = UUID(facts.trace_id)
            self._has_begun = True
        return merge_configs(config, more)

    def command(self, command: str, call_id: str | None, started: float, exit_code: int | None) -> None:
        """A command has ended that began at ``started``, seconds since the epoch."""
        if self._spans is not None:
            self._spans.command(command, call_id, round(started * 1e9), exit_code)

    def close(self, error: str | None = None, stop_reason: str | None = None, *, ended: bool = True) -> None:
        """End what is open. Not ``ended``: another attempt goes on with the run, whose span stays open for it."""
        if self._spans is not None:
            self._spans.close(error, stop_reason, ended=ended)


class SpanHandler(AsyncCallbackHandler):
    """Makes spans of LangChain's callbacks. Nodes have none: what they start belongs to the span around them."""

    run_inline = True
    ignore_retriever = ignore_custom_event = ignore_retry = True  # type: ignore[assignment]

    def __init__(self, facts: RunFacts, tracer: Tracer, captures: bool) -> None:
        from opentelemetry import trace
        from opentelemetry.context import Context

        self._otel, self._tracer, self._captures = trace, tracer, captures
        self._of_thread = {"gen_ai.conversation.id": facts.thread_id}
        self._within: dict[UUID, Span] = {}
        """The span around what a callback's run starts: its own, or that of the nearest run above that has one."""
        self._open: dict[UUID, Span] = {}
        self._calls: dict[str, Span] = {}
        self._used = {"input_tokens": 0, "output_tokens": 0}
        context = Context()
        if facts.traceparent is not None and (found := TRACEPARENT.fullmatch(facts.traceparent)):
            flags = trace.TraceFlags(int(found[3], 16))
            above = trace.SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=flags)
            context = trace.set_span_in_context(trace.NonRecordingSpan(above), context)
        attributes = {
            **INVOKED,
            "gen_ai.agent.name": facts.agent,
            **self._of_thread,
            "session.id": facts.thread_id,
            "user.id": facts.user_id,
            "deerflow.run.id": facts.run_id,
        }
        self._run = tracer.start_span(
            f"invoke_agent {facts.agent}",
            context,
            attributes=attributes,
            start_time=round(facts.started_at.timestamp() * 1e9),
        )

    # graph ------------------------------------------------------------------------------------------------------------

    async def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:
        name = str(about.get("name") or "")
        if name.startswith(SUBAGENT):
            agent = name.removeprefix(SUBAGENT)
            self._start(run_id, about, f"invoke_agent {agent}", {**INVOKED, "gen_ai.agent.name": agent})
        else:
            self._within[run_id] = self._around(about)

    async def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        self._end(run_id)

    async def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._end(run_id, None if isinstance(error, GraphBubbleUp) else error)

    on_llm_error = on_tool_error = on_chain_error

    # models -----------------------------------------------------------------------------------------------------------

    async def on_chat_model_start(
        self,
        serialized: Any,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **about: Any,
    ) -> None:
        known = metadata or {}
        provider, model = str(known.get("ls_provider") or "unknown"), str(known.get("ls_model_name") or "unknown")
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS.get(provider, provider),
            "gen_ai.request.model": model,
        }
        for key, name in REQUEST.items():
            if known.get(key) is not None:
                attributes[f"gen_ai.request.{name}"] = known[key]
        if self._captures:
            given = messages[0] if messages else []
            system = [part for message in given if message.type == "system" for part in _parts(message)]
            attributes["gen_ai.system_instructions"] = _json(system)
            attributes["gen_ai.input.messages"] = _json([_shown(m) for m in given if m.type != "system"])
        self._start(run_id, about, f"chat {model}", attributes, self._otel.SpanKind.CLIENT)

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        span = self._open.get(run_id)
        message = getattr(response.generations[0][0], "message", None) if span is not None else None
        if span is not None and isinstance(message, AIMessage):
            told, usage = message.response_metadata, message.usage_metadata
            reason = str(told.get("finish_reason") or told.get("stop_reason") or "stop")
            span.set_attribute("gen_ai.response.finish_reasons", [reason])
            span.set_attribute("gen_ai.response.model", str(told.get("model_name") or told.get("model") or ""))
            span.set_attribute("gen_ai.response.id", str(told.get("id") or message.id or ""))
            if usage is not None:
                for key in self._used:
                    span.set_attribute(f"gen_ai.usage.{key}", usage[key])
                    self._used[key] += usage[key]
                details = usage.get("input_token_details") or {}
                for name in ("cache_read", "cache_creation"):
                    if details.get(name):
                        span.set_attribute(f"gen_ai.usage.{name}.input_tokens", details[name])
            if self._captures:
                span.set_attribute("gen_ai.output.messages", _json([{**_shown(message), "finish_reason": reason}]))
        self._end(run_id)

    # tools ------------------------------------------------------------------------------------------------------------

    async def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, inputs: Any = None, **about: Any
    ) -> None:
        name, call_id = str((serialized or {}).get("name") or "tool"), about.get("tool_call_id")
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        if call_id:
            attributes["gen_ai.tool.call.id"] = call_id
        if self._captures:
            attributes["gen_ai.tool.call.arguments"] = _json(inputs if inputs is not None else input_str)
        span = self._start(run_id, about, f"execute_tool {name}", attributes)
        if call_id:
            self._calls[call_id] = span

    async def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        span, failed = self._open.get(run_id), getattr(output, "status", None) == "error"
        if span is not None and self._captures:
            result = output.content if isinstance(output, ToolMessage) else output
            span.set_attribute("gen_ai.tool.call.result", _json(result))
        self._end(run_id, "tool_error" if failed else None)

    def command(self, command: str, call_id: str | None, started: int, exit_code: int | None) -> None:
        around = self._calls.get(call_id or "", self._run)
        attributes: dict[str, Any] = {"process.exit.code": exit_code} if exit_code is not None else {}
        if self._captures:
            attributes["process.command_line"] = command[:CONTENT_CHARS]
        where = self._otel.set_span_in_context(around)
        span = self._tracer.start_span("sandbox command", where, attributes=attributes, start_time=started)
        if exit_code != 0:
            self._fail(span, "exit_code")
        span.end()

    # spans ------------------------------------------------------------------------------------------------------------

    def close(self, error: str | None, stop_reason: str | None, *, ended: bool) -> None:
        for run_id in list(self._open):  # a task that was cancelled calls nothing
            self._end(run_id, "cancelled")
        if ended and self._run.is_recording():
            for key, count in self._used.items():
                self._run.set_attribute(f"gen_ai.usage.{key}", count)
            self._run.set_attribute("deerflow.run.stop_reason", stop_reason or "")
            if error is not None:
                self._fail(self._run, error)
            self._run.end()

    def _around(self, about: Mapping[str, Any]) -> Span:
        return self._within.get(about["parent_run_id"], self._run)

    def _start(self, run_id: UUID, about: Mapping[str, Any], name: str, attributes: Any, kind: Any = None) -> Span:
        where = self._otel.set_span_in_context(self._around(about))
        kind = kind or self._otel.SpanKind.INTERNAL
        span = self._tracer.start_span(name, where, kind, {**attributes, **self._of_thread})
        self._open[run_id] = self._within[run_id] = span
        return span

    def _end(self, run_id: UUID, error: BaseException | str | None = None) -> None:
        self._within.pop(run_id, None)
        span = self._open.pop(run_id, None)
        if span is None:
            return
        if error is not None:
            self._fail(span, error if isinstance(error, str) else type(error).__name__)
        span.end()

    def _fail(self, span: Span, kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._otel.StatusCode.ERROR)


def _parts(message: BaseMessage) -> list[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        return [{"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}]
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.text}] if message.text else []
    for call in getattr(message, "tool_calls", ()):
        parts.append({"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": call["args"]})
    return parts


def _shown(message: BaseMessage) -> dict[str, Any]:
    return {"role": ROLES.get(message.type, message.type), "parts": _parts(message)}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def span_id(name: str) -> int:
    """The id of a run's own span, by the id of the run."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) or 1


def run_ids(facts: RunFacts) -> Any:
    """Ids of a run's spans: the trace's, then that of the run's own span, then random ones."""
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        has_begun = False

        def generate_trace_id(self) -> int:
            return int(facts.trace_id, 16)

        def generate_span_id(self) -> int:
            if self.has_begun:
                return super().generate_span_id()
            self.has_begun = True
            return span_id(facts.run_id)

    return Ids()
