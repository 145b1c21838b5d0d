"""Each tool call is judged before it is made; where the judge is not sure, the person decides."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import interrupt
from typing_extensions import TypedDict

from deerflow.agents.middlewares.base import (
    Middleware,
    ToolHandler,
    ToolResult,
    asking_id,
    context_of,
    emit,
    error_result,
    with_note,
)
from deerflow.agents.transcript import REFUSED
from deerflow.agents.turn import FACTS, MEMORY, PROMPT
from deerflow.config.schema import GuardrailProviderConfig, GuardrailsConfig, UnattendedConfig
from deerflow.config.section import EMPTY
from deerflow.guardrails import (
    GuardrailDecision,
    GuardrailProvider,
    GuardrailReason,
    GuardrailRequest,
    PolicyProvider,
    covers,
)
from deerflow.mcp import SERVER
from deerflow.reflection import resolve_variable
from deerflow.subagents.task import task_of

logger = logging.getLogger(__name__)

DECISIONS = ("approve", "edit", "reject", "respond")
GRANTS = ("thread", "always")
MOST_SOURCES = 20
_ADDRESS = 300
"""Characters of an address that are kept."""
SHELL = "bash"
OF_TOOL = "mcp"
DENIED = GuardrailReason("deerflow.tool_denied", "an administrator has forbidden it")
NO_PERSON = GuardrailReason("deerflow.unattended", "it needs a person's decision, and this run is not attended")


class Source(TypedDict):
    """Where text from outside came from: a ``page`` (its address), ``server``, ``file``, ``tool`` or the ``memory``."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Reach:
    """Which tools stay inside the sandbox, by the annotations of the Model Context Protocol; a tool without any may do anything.

    Args:
        inside: their results hold no text from outside.
        harmless: they change nothing outside, and nothing that other threads see.
        servers: by tool, the server of the Model Context Protocol that it is of.
    """

    inside: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    servers: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, tools: Iterable[BaseTool], network: str) -> Reach:
        """Args:
        network: the mode of the sandbox's. What it downloads is from outside; ``allowlist`` are hosts that you trust.
        """
        hints = {tool.name: tool.metadata or {} for tool in tools}
        closed = {name for name, hint in hints.items() if hint.get("openWorldHint") is False}
        inside = frozenset(closed - ({SHELL} if network != "none" else set()))
        lasting = {name for name, hint in hints.items() if hint.get("readOnlyHint") is False}
        quiet = closed - lasting - ({SHELL} if network in ("internet", "host") else set())
        reading = {name for name, hint in hints.items() if hint.get("readOnlyHint") is True}
        servers = {name: str(hint[SERVER]) for name, hint in hints.items() if SERVER in hint}
        return cls(inside, frozenset(quiet | reading), servers)

    def untrusted(self, messages: Iterable[BaseMessage]) -> tuple[str, ...]:
        """Where text came from that neither the person nor the sandbox wrote. Messages are never removed, so this only grows."""
        sources: dict[str, None] = {}
        for message in messages:
            if (task := task_of(message)) is not None:
                sources |= dict.fromkeys(task["untrusted"])
            if isinstance(message, ToolMessage):
                if message.name not in self.inside:
                    sources[message.name or "unknown tool"] = None
            elif facts := message.additional_kwargs.get(FACTS):
                if "files" in facts or "earlier_files" in facts:
                    sources["uploads"] = None
                if facts.get(MEMORY, {}).get("untrusted"):
                    sources[MEMORY] = None
                if prompt := facts.get(PROMPT):
                    sources[prompt["name"]] = None
        return tuple(sources)

    def sources(self, messages: Sequence[BaseMessage], inherited: Iterable[str] = ()) -> list[Source]:
        """As people know them: what :meth:`untrusted` is about, the newest last, at most :data:`MOST_SOURCES`.

        Args:
            inherited: by what text from outside came into the thread that a subagent works for.
        """
        calls = {call["id"]: call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
        found: dict[tuple[str, str], None] = {("tool", name): None for name in inherited}
        for message in messages:
            facts = message.additional_kwargs.get(FACTS) or {}
            files = [*facts.get("files", ()), *facts.get("earlier_files", ())]
            found |= dict.fromkeys(("file", file["filename"]) for file in files)
            if (facts.get(MEMORY) or {}).get("untrusted"):
                found["memory", ""] = None
            if (task := task_of(message)) is not None:
                found |= dict.fromkeys(("tool", name) for name in task["untrusted"])
            if isinstance(message, ToolMessage) and message.name not in self.inside:
                name, call = message.name or "unknown tool", calls.get(message.tool_call_id)
                url = call["args"].get("url") if call is not None else None
                if name in self.servers:
                    found["server", self.servers[name]] = None
                else:
                    found[("page", url[:_ADDRESS]) if isinstance(url, str) and url else ("tool", name)] = None
        return [{"kind": kind, "name": name} for kind, name in list(found)[-MOST_SOURCES:]]


ANYTHING = Reach()


class GuardrailMiddleware(Middleware):
    """Allows a call, refuses it with the provider's reason, or interrupts the run until the person has decided.

    Each call that needs a decision has an interrupt of its own, in the shape of LangChain's human-in-the-loop: the value is
    ``{"action_requests": [{"name", "args", "description"}], "review_configs": [{"action_name", "allowed_decisions"}]}``, with
    the ``sources`` of text from outside, the answer ``{"decisions": [{"type": "approve"}]}``, or ``edit`` with
    ``edited_action``, ``reject`` or ``respond`` with ``message``. Calls beside it run and are not repeated. ``approve`` may carry a ``grant``, for this ``thread`` or ``always``,
    with a ``pattern`` of arguments: calls that it covers are made without asking. An answer counts more than a grant.

    Args:
        provider: judges.
        fail_closed: a provider that raises denies the call; otherwise the call is made.
        passport: sent to the provider as ``agent_id``.
        reach: which tools leave the sandbox.
        unattended: what becomes of calls that ask in a run without a person.
        policies: of tools by name, what their servers' entries say: allow, ask or deny.
    """

    def __init__(
        self,
        provider: GuardrailProvider,
        *,
        fail_closed: bool = True,
        passport: str | None = None,
        reach: Reach = ANYTHING,
        unattended: UnattendedConfig | None = None,
        policies: Mapping[str, str] = EMPTY,
    ) -> None:
        super().__init__()
        self.policies = policies
        self.reach, self.unattended = reach, unattended or UnattendedConfig()
        self.provider = provider
        self.fail_closed = fail_closed
        self.passport = passport

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        decision = await self._judged(request)
        if decision.allow:
            return await handler(request)
        if not decision.ask:
            return await _denied(request, decision)
        try:
            answer = _answer(request, decision, self.reach.sources(request.state["messages"], _inherited(request)))
        except GraphInterrupt:
            if (grant := await self._grant_for(request)) is not None:
                await _record(request, "grant", replace(decision, policy_id=grant))
                return await handler(request)
            context = context_of(request)
            if context is None or not context.unattended or self.unattended.mode == "park":
                raise
            return await _denied(request, replace(decision, reasons=[NO_PERSON, *decision.reasons]))
        await _record(request, answer["type"], decision)
        if answer["type"] == "approve":
            await _grant(request, answer)
            return await handler(request)
        if answer["type"] == "edit":
            return await self._edited(request, handler, dict(answer["edited_action"]["args"]))
        said = str(answer.get("message") or "").strip()
        if answer["type"] == "respond":
            return ToolMessage(
                said or "(no answer)", name=request.tool_call["name"], tool_call_id=request.tool_call["id"] or ""
            )
        why = f"The user's reason: {said}" if said else "The user gave no reason."
        text = f"Error: the user rejected this call; it was not made. {why}\nDo not repeat it as it is."
        return error_result(request.tool_call, text, **{REFUSED: f"the user rejected it. {why}"})

    async def _grant_for(self, request: ToolCallRequest) -> str | None:
        """What grants this tool of this agent for such arguments: the person (``grant``), or the configuration (its name)."""
        context, call = context_of(request), request.tool_call
        if context is None:
            return None
        patterns = await context.approvals.patterns(context.agent_name or "", call["name"]) if context.approvals else ()
        if any(covers(pattern, call["args"]) for pattern in patterns):
            return "grant"
        if not context.unattended:
            return None
        for name, grant in self.unattended.grants.items():
            same = (grant.tool, grant.agent) == (call["name"], context.agent_name)
            if same and covers(grant.pattern, call["args"]):
                return name
        return None

    async def _edited(self, request: ToolCallRequest, handler: ToolHandler, args: dict[str, Any]) -> ToolResult:
        changed = request.override(tool_call={**request.tool_call, "args": args})
        decision = await self._judged(changed)
        if not decision.allow and not decision.ask:
            return await _denied(changed, decision)
        note = f"The user changed the arguments of this call before it was made: {json.dumps(args, ensure_ascii=False)}"
        return with_note(await handler(changed), note)

    async def _judged(self, request: ToolCallRequest) -> GuardrailDecision:
        """A tool's own policy makes the provider's stricter; only what the shipped policy asks about can be allowed by it."""
        name = request.tool_call["name"]
        policy = self.policies.get(name)
        if policy == "deny":
            return GuardrailDecision(False, [DENIED], policy_id=OF_TOOL)
        decision = await self._provided(request)
        if policy == "ask" and decision.allow:
            reason = GuardrailReason("deerflow.ask", f"the tool '{name}' needs your approval")
            return GuardrailDecision(False, [reason], policy_id=OF_TOOL, ask=True)
        if policy == "allow" and decision.ask and isinstance(self.provider, PolicyProvider):
            return GuardrailDecision(True, [GuardrailReason("oap.allowed")], policy_id=OF_TOOL)
        return decision

    async def _provided(self, request: ToolCallRequest) -> GuardrailDecision:
        asked = GuardrailRequest(
            tool_name=request.tool_call["name"],
            tool_input=request.tool_call["args"],
            agent_id=self.passport,
            timestamp=datetime.now(UTC).isoformat(),
            outward=request.tool_call["name"] not in self.reach.harmless,
            untrusted=(*_inherited(request), *self.reach.untrusted(request.state["messages"])),
        )
        if (context := context_of(request)) is not None:
            asked = replace(
                asked,
                thread_id=context.thread_id,
                is_subagent=context.is_subagent,
                user_id=context.principal.user_id,
                run_id=context.run_id,
                agent_name=context.agent_name,
            )
        try:
            return await self.provider.aevaluate(asked)
        except GraphBubbleUp:
            raise
        except Exception:
            logger.exception("The guardrail %s failed", getattr(self.provider, "name", type(self.provider).__name__))
            reason = GuardrailReason("oap.evaluator_error", "the guardrail could not judge the call")
            return GuardrailDecision(allow=not self.fail_closed, reasons=[reason])


def guardrail_of(
    config: GuardrailsConfig, reach: Reach = ANYTHING, policies: Mapping[str, str] = EMPTY
) -> GuardrailMiddleware:
    """The configured guardrail; without a provider the shipped policy. One that is off heeds the tools' own policies alone.

    Raises:
        ValueError: the class does not fit.
        ImportError: its package is not installed.
    """
    if config.provider is None or not config.enabled:
        provider: GuardrailProvider = PolicyProvider(config.policy if config.enabled else "off")
    else:
        provider = _provider(config.provider)
    return GuardrailMiddleware(
        provider,
        fail_closed=config.fail_closed,
        passport=config.passport,
        reach=reach,
        unattended=config.unattended,
        policies=policies,
    )


def _provider(config: GuardrailProviderConfig) -> GuardrailProvider:
    cls: Any = resolve_variable(config.use)
    settings = dict(config.config)
    parameters = inspect.signature(cls).parameters
    if "framework" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        settings.setdefault("framework", "deerflow")
    try:
        provider = cls(**settings)
    except TypeError as error:
        raise ValueError(f"guardrails.provider.config does not fit {config.use}: {error}") from error
    if not isinstance(provider, GuardrailProvider):
        raise ValueError(f"guardrails.provider.use: {config.use} has no name, evaluate and aevaluate.")
    return provider


def _answer(request: ToolCallRequest, decision: GuardrailDecision, sources: Sequence[Source]) -> Mapping[str, Any]:
    """What the person decided. A run whose answer cannot be read waits on."""
    call = request.tool_call
    value: dict[str, Any] = {
        "action_requests": [{"name": call["name"], "args": call["args"], "description": _why(decision)}],
        "review_configs": [{"action_name": call["name"], "allowed_decisions": list(DECISIONS), "grants": list(GRANTS)}],
        "tool_call_id": call["id"],
        "sources": list(sources),
    }
    while (problem := _problem(answer := interrupt(value), call["name"], call["args"])) is not None:
        value = {**value, "error": problem}
    return answer["decisions"][0]


def _problem(answer: Any, name: str, args: Mapping[str, Any]) -> str | None:
    """What is wrong with an answer; None if it can be followed."""
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], Mapping):
        return 'Answer with {"decisions": [{"type": "approve"}]}: one decision.'
    if decisions[0].get("type") not in DECISIONS:
        return f"The type of a decision is one of {', '.join(DECISIONS)}."
    if decisions[0]["type"] == "edit":
        edited = decisions[0].get("edited_action")
        if not isinstance(edited, Mapping) or not isinstance(edited.get("args"), Mapping):
            return 'An edit needs "edited_action": {"name": …, "args": {…}}.'
        if edited.get("name", name) != name:
            return "An edit cannot change the tool: reject the call and say what to do instead."
    return _problem_of_grant(decisions[0], args)


def _problem_of_grant(decision: Mapping[str, Any], args: Mapping[str, Any]) -> str | None:
    grant, pattern = decision.get("grant"), decision.get("pattern")
    if grant is None and pattern is None:
        return None
    if grant not in GRANTS or decision["type"] != "approve":
        return 'A grant is "thread" or "always", and goes with an approval.'
    if pattern is None:
        return None
    if not isinstance(pattern, Mapping) or not all(isinstance(glob, str) for glob in pattern.values()):
        return 'A pattern names globs by argument: {"command": "git push *"}.'
    if not covers(pattern, args):
        return "The pattern does not fit the arguments of this call."
    return None


def _inherited(request: ToolCallRequest) -> Sequence[str]:
    """By what text from outside came into the thread that a subagent works for."""
    context = context_of(request)
    return context.untrusted if context is not None else ()


async def _grant(request: ToolCallRequest, answer: Mapping[str, Any]) -> None:
    context = context_of(request)
    if answer.get("grant") and context is not None and context.approvals is not None:
        everywhere = answer["grant"] == "always"
        agent, tool = context.agent_name or "", request.tool_call["name"]
        await context.approvals.grant(agent, tool, answer.get("pattern"), everywhere=everywhere)


async def _denied(request: ToolCallRequest, decision: GuardrailDecision) -> ToolMessage:
    await _record(request, "deny", decision)
    code = decision.reasons[0].code if decision.reasons else "oap.denied"
    name = request.tool_call["name"] or "unknown_tool"
    return error_result(
        request.tool_call,
        f"Error: the call of '{name}' was not made: {_why(decision)} ({code}).\nChoose another way, or tell the user what is needed.",
        **{REFUSED: _why(decision)},
    )


def _why(decision: GuardrailDecision) -> str:
    return (decision.reasons[0].message if decision.reasons else "") or "blocked by guardrail policy"


async def _record(request: ToolCallRequest, outcome: str, decision: GuardrailDecision) -> None:
    """What was decided, in the run's events and as a row."""
    reasons = [{"code": reason.code, "message": reason.message} for reason in decision.reasons]
    call, context = request.tool_call, context_of(request)
    event = {"tool": call["name"], "tool_call_id": call["id"], "decision": outcome, "reasons": reasons}
    emit(request.runtime, {"type": "guardrail", **event, "policy_id": decision.policy_id})
    if context is not None and context.approvals is not None:
        await context.approvals.record(
            call["id"] or "",
            outcome,
            asked_by=asking_id(request),
            agent=context.agent_name or "",
            tool=call["name"],
            code=decision.reasons[0].code if decision.reasons else "",
            policy_id=decision.policy_id,
        )
