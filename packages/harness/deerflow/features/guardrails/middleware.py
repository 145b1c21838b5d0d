"""Judge each tool call before it is made; where the judge is not sure, ask the person."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import interrupt

from deerflow.agents.effects import Effect, effect_of
from deerflow.agents.middlewares.base import (
    Middleware,
    Request,
    ToolFailure,
    ToolHandler,
    ToolResult,
    asking_id,
    context_of,
    emit,
    error_result,
    with_note,
    with_replaced,
)
from deerflow.agents.middlewares.tool_calls_middleware import ToolOrderMiddleware
from deerflow.agents.provenance import foreign_sources, network_of
from deerflow.agents.transcript import DECISION, NETWORK_DECISION, REFUSED
from deerflow.config.schema import GuardrailProviderConfig, GuardrailsConfig, UnattendedConfig
from deerflow.context import RunContext
from deerflow.context.approvals import Approvals
from deerflow.features.guardrails.approvals import answer_to, card, pattern_of
from deerflow.features.guardrails.network_questions import NetworkQuestions
from deerflow.features.guardrails.providers import (
    GuardrailDecision,
    GuardrailProvider,
    GuardrailReason,
    GuardrailRequest,
    PolicyProvider,
    covers,
)
from deerflow.features.guardrails.uploads_at_risk import destroys_uploads
from deerflow.reflection import resolve_variable
from deerflow.security.addresses import in_hosts
from deerflow.storage.provenance import Source
from deerflow.tools.decorator import COSMETIC
from deerflow.tools.origin import POLICY

logger = logging.getLogger(__name__)

SHELL = "bash"
OF_TOOL = "mcp"
DENIED = GuardrailReason("deerflow.tool_denied", "an administrator has forbidden it")
NO_PERSON = GuardrailReason("deerflow.unattended", "it needs a person's decision, and this run is not attended")
ANSWERED = "The user answered instead of the call, which was not made:"


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that is judged, with what its tool may do."""

    request: ToolCallRequest
    effect: Effect
    definition: Mapping[str, Any]
    """What a person is shown of a server's tool; empty for own tools."""
    cosmetic: frozenset[str]

    @classmethod
    def of(cls, request: ToolCallRequest) -> _Call:
        tool = request.tool
        # A tool that does not exist does nothing: the model is told so, and no person is asked.
        effect = effect_of(tool, network_of(context_of(request))) if tool is not None else Effect()
        shown = _definition(tool, effect) if tool is not None and effect.digest else {}
        return cls(request, effect, shown, frozenset() if effect.server else COSMETIC)

    @property
    def name(self) -> str:
        return self.request.tool_call["name"]

    @property
    def args(self) -> dict[str, Any]:
        return self.request.tool_call["args"]

    @property
    def key(self) -> str:
        """Some providers count their calls anew in every message."""
        context = context_of(self.request)
        namespace = context.namespace if context is not None else ""
        return f"{namespace}/{asking_id(self.request)}/{self.request.tool_call['id']}"


class GuardrailMiddleware(Middleware):
    """Allows a call, refuses it with the provider's reason, or interrupts the run until the person has decided.

    Each call that needs a decision has an interrupt of its own, see :mod:`deerflow.features.guardrails.approvals`. Calls beside it run and are not
    repeated. ``approve`` may carry a ``grant``, for this ``thread`` or ``always``, with a ``pattern`` of arguments: calls that it covers
    are made without asking. An answer counts more than a grant. Decisions hold for the definition of the tool that the person was
    shown: another one asks again.

    Args:
        provider: judges.
        fail_closed: a provider that raises denies the call; otherwise the call is made.
        passport: sent to the provider as ``agent_id``.
        open_hosts: hosts to which any chat may send.
        unattended: what becomes of calls that ask in a run without a person.
        order: of the calls of a reply: a write that needs no decision waits behind a call that does.
    """

    def __init__(
        self,
        provider: GuardrailProvider,
        *,
        fail_closed: bool = True,
        passport: str | None = None,
        open_hosts: tuple[str, ...] = (),
        unattended: UnattendedConfig | None = None,
        order: ToolOrderMiddleware | None = None,
    ) -> None:
        super().__init__()
        self.order = order
        self.unattended = unattended or UnattendedConfig()
        self.provider, self.open_hosts = provider, open_hosts
        self.fail_closed = fail_closed
        self.passport = passport

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        call = _Call.of(request)
        sources = await foreign_sources(request) if self._needs_sources(call) else []
        decision = await self._judged(call, sources)
        if decision.allow or (decision.ask and await _goes_on(call)):
            return await self._made(request, handler, by_rule=call)
        if not decision.ask:
            return await _denied(request, decision)
        try:
            answer = await self._asked(call, decision, sources)
        except GraphInterrupt:
            if (grant := await self._grant_for(call)) is not None:
                await _record(request, "grant", replace(decision, policy_id=grant))
                return await self._made(request, handler)
            context = context_of(request)
            if context is None or context.trust.waits(self.unattended):
                raise
            return await _denied(request, replace(decision, reasons=[NO_PERSON, *decision.reasons]))
        await _record(request, answer["type"], decision)
        if answer["type"] == "approve":
            await _grant(call, answer)
            return await self._made(request, handler)
        if answer["type"] == "edit":
            return await self._edited(call, handler, sources, dict(answer["edited_action"]["args"]))
        return _instead(request, answer)

    async def _made(
        self, request: ToolCallRequest, handler: ToolHandler, *, by_rule: _Call | None = None
    ) -> ToolResult:
        """Make an allowed call. A write that no person decided about waits behind calls of its reply that wait."""
        if self.order is not None:
            self.order.judged(request)
            if by_rule is not None:
                await self.order.check_before(request)
        try:
            return await handler(request)
        except GraphInterrupt:
            if by_rule is not None and not by_rule.effect.is_inside:
                await _keep_going(by_rule)
            raise

    async def arrivals(self, request: Request) -> list[AnyMessage]:
        """Ask about the hosts that commands of the last step could not reach, before the model goes on, and tell it the decisions."""
        context: Any = request.runtime.context
        if not isinstance(context, RunContext) or context.trust.approvals is None:
            return []
        questions = NetworkQuestions(context, context.trust.approvals, self.unattended, partial(emit, request.runtime))
        more: dict[str, Any] = {"hide_from_ui": True}
        named = [(str(uuid4()), text) for text in await questions.answers(request.state["messages"])]
        return [HumanMessage(text, id=id_, name=NETWORK_DECISION, additional_kwargs=more) for id_, text in named]

    @property
    def _is_off(self) -> bool:
        return isinstance(self.provider, PolicyProvider) and self.provider.name == "off"

    def _needs_sources(self, call: _Call) -> bool:
        return not call.effect.is_inside or not isinstance(self.provider, PolicyProvider)

    async def _asked(self, call: _Call, decision: GuardrailDecision, sources: list[Source]) -> Mapping[str, Any]:
        """Return the person's decision about the call as its tool is defined now.

        Answers to a card that showed another definition count for nothing: the person is shown both, and asked again.
        """
        context = context_of(call.request)
        value = card(
            call.name,
            call.args,
            _why(decision),
            effect=call.effect,
            destination=call.effect.destination(call.args),
            sources=sources,
            asker={
                "agent": context.agent if context is not None else "",
                "subagent": context.subagent.name if context is not None and context.subagent is not None else "",
            },
            cosmetic=call.cosmetic,
            call_id=call.request.tool_call["id"],
            reason=decision.reasons[0].code if decision.reasons else "",
        )
        if not call.definition or (approvals := _approvals(call.request)) is None:
            return answer_to(value, cosmetic=call.cosmetic)
        asked = await approvals.asked(call.key)
        shown, void = (asked["shown"], asked["void"]) if asked is not None and "shown" in asked else (None, 0)
        for _ in range(void):
            interrupt(value)
        if shown == call.definition:
            return answer_to(value, cosmetic=call.cosmetic)
        await approvals.ask(call.key, {"shown": call.definition, "void": void})
        value = value | ({"changed": {"before": shown, "now": call.definition}} if shown is not None else {})
        interrupt(value)
        # That was an answer to what the person saw before.
        await approvals.ask(call.key, {"shown": call.definition, "void": void + 1})
        return answer_to(value, cosmetic=call.cosmetic)

    async def _grant_for(self, call: _Call) -> str | None:
        """Return what grants such a call of this agent: the person (``grant``), or the configuration (its name)."""
        context = context_of(call.request)
        if context is None:
            return None
        if (approvals := context.trust.approvals) is not None:
            patterns = await approvals.patterns(context.agent, call.name, call.effect.digest)
            if any(covers(pattern, call.args, call.cosmetic) for pattern in patterns):
                return "grant"
        if not context.trust.unattended:
            return None
        for name, grant in self.unattended.grants.items():
            same = (grant.tool, grant.agent) == (call.name, context.options.agent_name)
            if same and covers(grant.pattern, call.args, call.cosmetic):
                return name
        return None

    async def _edited(
        self, call: _Call, handler: ToolHandler, sources: list[Source], args: dict[str, Any]
    ) -> ToolResult:
        changed = call.request.override(tool_call={**call.request.tool_call, "args": args})
        decision = await self._judged(replace(call, request=changed), sources)
        if not decision.allow and not decision.ask:
            return await _denied(changed, decision)
        note = f"The user changed the arguments of this call before it was made: {json.dumps(args, ensure_ascii=False)}"
        return _with_edit(with_note(await self._made(changed, handler), note), args)

    async def _judged(self, call: _Call, sources: list[Source]) -> GuardrailDecision:
        """A tool's own policy makes the provider's stricter; only what the shipped policy asks about can be allowed by it."""
        tool = call.request.tool
        policy = (tool.metadata or {}).get(POLICY) if tool is not None else None
        if policy == "deny":
            return GuardrailDecision(False, [DENIED], policy_id=OF_TOOL)
        decision = await self._provided(call, sources)
        if (
            call.name == SHELL
            and decision.allow
            and not self._is_off
            and destroys_uploads(str(call.args.get("command")))
        ):
            reason = GuardrailReason("deerflow.uploads", "the command destroys files that you uploaded")
            return GuardrailDecision(False, [reason], policy_id="uploads", ask=True)
        if policy == "ask" and decision.allow:
            reason = GuardrailReason("deerflow.ask", f"the tool '{call.name}' needs your approval")
            return GuardrailDecision(False, [reason], policy_id=OF_TOOL, ask=True)
        if policy == "allow" and decision.ask and isinstance(self.provider, PolicyProvider):
            return GuardrailDecision(True, [GuardrailReason("oap.allowed")], policy_id=OF_TOOL)
        return decision

    async def _provided(self, call: _Call, sources: list[Source]) -> GuardrailDecision:
        effect, context = call.effect, context_of(call.request)
        asked = GuardrailRequest(
            tool_name=call.name,
            tool_input=call.args,
            agent_id=self.passport,
            timestamp=datetime.now(UTC).isoformat(),
            outward=effect.changes or effect.lasts or effect.sends,
            untrusted=tuple(dict.fromkeys(source.name or source.kind for source in sources)),
            changes=effect.changes or effect.lasts,
            destination="" if effect.changes else await self._new_destination(call),
        )
        if context is not None:
            asked = replace(
                asked,
                thread_id=context.thread_id,
                is_subagent=context.subagent is not None,
                user_id=context.principal.user_id,
                run_id=context.run_id,
                agent_name=context.options.agent_name,
            )
        try:
            return await self.provider.aevaluate(asked)
        except GraphBubbleUp:
            raise
        except Exception:
            logger.exception("The guardrail %s failed", getattr(self.provider, "name", type(self.provider).__name__))
            reason = GuardrailReason("oap.evaluator_error", "the guardrail could not judge the call")
            return GuardrailDecision(allow=not self.fail_closed, reasons=[reason])

    async def _new_destination(self, call: _Call) -> str:
        """Return where the call sends something, if this chat may not send there yet."""
        destination, context = call.effect.destination(call.args), context_of(call.request)
        if not destination or context is None:
            return destination
        if call.effect.reaches == "address":
            if in_hosts(destination, self.open_hosts):
                return ""
            rows = context.trust.provenance
            if rows is not None and await rows.open_address(str(call.args.get("url"))):
                return ""
        approvals = context.trust.approvals
        return "" if approvals and await approvals.may_reach(context.agent, destination) else destination


def guardrail_of(config: GuardrailsConfig, order: ToolOrderMiddleware | None = None) -> GuardrailMiddleware:
    """Return the configured guardrail; without a provider the shipped policy. One that is off heeds the tools' own policies alone.

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
        open_hosts=tuple(config.open_hosts),
        unattended=config.unattended,
        order=order,
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


def _definition(tool: BaseTool, effect: Effect) -> dict[str, Any]:
    schema = tool.args_schema if isinstance(tool.args_schema, dict) else {}
    return {
        "digest": effect.digest,
        "server": effect.server,
        "description": tool.description,
        "arguments": sorted(schema.get("properties") or {}),
    }


def _with_edit(result: ToolResult, args: dict[str, Any]) -> ToolResult:
    def marked(message: ToolMessage) -> ToolMessage:
        kwargs = {**message.additional_kwargs, DECISION: {"type": "edit", "args": args}}
        return message.model_copy(update={"additional_kwargs": kwargs})

    return with_replaced(result, marked)


def _instead(request: ToolCallRequest, answer: Mapping[str, Any]) -> ToolMessage:
    """Return the result of a call that was not made."""
    said, call = str(answer.get("message") or "").strip(), request.tool_call
    if answer["type"] == "respond":
        text = f"{ANSWERED}\n{said or '(no answer)'}"
        decided = {DECISION: {"type": answer["type"], "message": said}}
        return ToolMessage(text, name=call["name"], tool_call_id=call["id"] or "", additional_kwargs=decided)
    why = f"The user's reason: {said}" if said else "The user gave no reason."
    text = f"Error: the user rejected this call; it was not made. {why}\nDo not repeat it as it is."
    return error_result(call, text, ToolFailure.REJECTED, **{REFUSED: f"the user rejected it. {why}"})


def _approvals(request: ToolCallRequest) -> Approvals | None:
    context = context_of(request)
    return context.trust.approvals if context is not None else None


async def _keep_going(call: _Call) -> None:
    """Record that a call which needed no decision has begun, and waits for what its server asks: the text that it brings is its own."""
    if (approvals := _approvals(call.request)) is not None:
        await approvals.ask(call.key, {"begun": call.effect.digest})


async def _goes_on(call: _Call) -> bool:
    """Return whether the call began before without a decision, by the same definition."""
    if (approvals := _approvals(call.request)) is None:
        return False
    asked = await approvals.asked(call.key)
    return asked is not None and asked.get("begun") == call.effect.digest


async def _grant(call: _Call, answer: Mapping[str, Any]) -> None:
    """Keep what an approval grants: calls of the tool, or for a call that only sends, its destination in this chat."""
    context = context_of(call.request)
    if context is None or (approvals := context.trust.approvals) is None:
        return
    if call.effect.sends and not call.effect.changes:
        await approvals.let_reach(context.agent, call.effect.destination(call.args))
    if answer.get("grant"):
        everywhere = answer["grant"] == "always"
        await approvals.grant(context.agent, call.name, call.effect.digest, pattern_of(answer), everywhere=everywhere)


async def _denied(request: ToolCallRequest, decision: GuardrailDecision) -> ToolMessage:
    await _record(request, "deny", decision)
    code = decision.reasons[0].code if decision.reasons else "oap.denied"
    name = request.tool_call["name"] or "unknown_tool"
    return error_result(
        request.tool_call,
        f"Error: the call of '{name}' was not made: {_why(decision)} ({code}).\nChoose another way, or tell the user what is needed.",
        ToolFailure.DENIED,
        _why(decision),
        **{REFUSED: _why(decision)},
    )


def _why(decision: GuardrailDecision) -> str:
    return (decision.reasons[0].message if decision.reasons else "") or "blocked by guardrail policy"


async def _record(request: ToolCallRequest, outcome: str, decision: GuardrailDecision) -> None:
    """Record what was decided, in the run's events and as a row."""
    reasons = [{"code": reason.code, "message": reason.message} for reason in decision.reasons]
    call, context = request.tool_call, context_of(request)
    event = {"tool": call["name"], "tool_call_id": call["id"], "decision": outcome, "reasons": reasons}
    emit(request.runtime, {"type": "guardrail", **event, "policy_id": decision.policy_id})
    if context is not None and (approvals := context.trust.approvals) is not None:
        await approvals.record(
            call["id"] or "",
            outcome,
            asked_by=asking_id(request),
            agent=context.agent,
            tool=call["name"],
            code=decision.reasons[0].code if decision.reasons else "",
            policy_id=decision.policy_id,
        )
