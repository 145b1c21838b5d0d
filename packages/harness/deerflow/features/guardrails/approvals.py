"""Approval cards: what a person is shown of a call that needs a decision, and the answers that can be followed.

The shape is that of LangChain's human-in-the-loop: ``{"action_requests": [{"name", "args", "description"}], "review_configs":
[{"action_name", "allowed_decisions"}]}``, answered by ``{"decisions": [{"type": "approve"}]}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import interrupt
from typing_extensions import TypedDict

from deerflow.agents.effects import Effect
from deerflow.features.guardrails.providers import Pattern, covers
from deerflow.storage.provenance import Source

DECISIONS = ("approve", "edit", "reject", "respond")
GRANTS = ("thread", "always")
MOST_SOURCES = 20


class CallingAgent(TypedDict):
    """The agent that makes the call; ``subagent`` is empty for the lead."""

    agent: str
    subagent: str


def card(
    name: str,
    args: Mapping[str, Any],
    why: str,
    *,
    effect: Effect,
    destination: str,
    sources: Sequence[Source],
    asker: CallingAgent,
    cosmetic: frozenset[str],
    call_id: str | None,
    reason: str = "",
    decisions: Sequence[str] = DECISIONS,
    grants: Sequence[str] = GRANTS,
) -> dict[str, Any]:
    """Return the value of an interrupt that asks a person about a call.

    Args:
        why: the guardrail's reason, one sentence.
        reason: its code, by which a page words it.
        destination: the host or server to which something is sent; empty if nothing is.
        cosmetic: arguments that say nothing of what the call does, which grants need not name.
    """
    return {
        "action_requests": [{"name": name, "args": dict(args), "description": why}],
        "review_configs": [{"action_name": name, "allowed_decisions": list(decisions), "grants": list(grants)}],
        "reason": reason,
        "tool_call_id": call_id,
        "sources": [{"kind": source.kind, "name": source.name} for source in sources[-MOST_SOURCES:]],
        "effect": {
            "changes": effect.changes,
            "lasts": effect.lasts,
            "destination": destination,
            "server": effect.server,
        },
        "asked_by": asker,
        "cosmetic": sorted(cosmetic),
    }


def answer_to(value: Mapping[str, Any], *, cosmetic: frozenset[str] = frozenset()) -> Mapping[str, Any]:
    """Interrupt with a card until it has an answer that can be followed, and return the decision."""
    call = value["action_requests"][0]
    shown = dict(value)
    while (problem := _problem(answer := interrupt(shown), value, call["args"], cosmetic)) is not None:
        shown = {**value, "error": problem}
    return answer["decisions"][0]


def _problem(answer: Any, value: Mapping[str, Any], args: Mapping[str, Any], cosmetic: frozenset[str]) -> str | None:
    """Return what is wrong with an answer, or None if it can be followed."""
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], Mapping):
        return 'Answer with {"decisions": [{"type": "approve"}]}: one decision.'
    allowed = value["review_configs"][0]["allowed_decisions"]
    if decisions[0].get("type") not in allowed:
        return f"The type of a decision is one of {', '.join(allowed)}."
    if decisions[0]["type"] == "edit":
        edited = decisions[0].get("edited_action")
        if not isinstance(edited, Mapping) or not isinstance(edited.get("args"), Mapping):
            return 'An edit needs "edited_action": {"name": …, "args": {…}}.'
        name = value["action_requests"][0]["name"]
        if edited.get("name", name) != name:
            return "An edit cannot change the tool: reject the call and say what to do instead."
    return _problem_of_grant(decisions[0], args, cosmetic, value["review_configs"][0]["grants"])


def _problem_of_grant(
    decision: Mapping[str, Any], args: Mapping[str, Any], cosmetic: frozenset[str], grants: Sequence[str]
) -> str | None:
    grant, pattern = decision.get("grant"), decision.get("pattern")
    if grant is None and pattern is None:
        return None
    if not grants:
        return "An approval of this holds for the chat: it takes no grant."
    if grant not in grants or decision["type"] != "approve":
        return 'A grant is "thread" or "always", and goes with an approval.'
    if pattern is None:
        return None
    if not isinstance(pattern, Mapping) or not all(glob is None or isinstance(glob, str) for glob in pattern.values()):
        return 'A pattern names a glob for each argument, or null for any value: {"command": "git push *"}.'
    if not covers(pattern, args, cosmetic):
        missing = ", ".join(sorted(set(args) - set(pattern) - cosmetic))
        why = f" It says nothing of {missing}: null stands for any value." if missing else ""
        return f"The pattern does not fit the arguments of this call.{why}"
    return None


def pattern_of(decision: Mapping[str, Any]) -> Pattern | None:
    """Return the pattern of a grant; None covers every call."""
    pattern = decision.get("pattern")
    return dict(pattern) if pattern else None
