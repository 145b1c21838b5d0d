"""Cards of calls that wait for a decision, and of questions, as a chat shows them. Nothing that a model wrote is in the headline."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from deerflow.agents.headline import headline, is_network, visible
from deerflow.security.text import inline

MOST_CHARS = 1200
"""Of one argument. The page has the whole."""
LABELS = {"approve": "Approve", "reject": "Reject"}
"""Decisions that a chat offers; edits and grants stay on the page."""
_DONE = {"approve": "✅ Approved", "reject": "✋ Rejected"}


def card_text(interrupt: Mapping[str, Any], *, page: str) -> str:
    """Return what a person has to know to decide: the call with all its arguments, who asks, and which outside text was read before.

    Args:
        page: where the person can change the call or grant more; may be empty.
    """
    value: Mapping[str, Any] = interrupt["value"]
    lines: list[str] = []
    for request in value["action_requests"]:
        lines += [f"**{headline(request, value)}**"]
        if why := str(request.get("description") or ""):
            lines += ["", visible(why)]
        lines += [part for name, given in request["args"].items() for part in _argument(name, given)]
    if (asker := value.get("asked_by") or {}).get("subagent"):
        lines += ["", f"Asked by the subagent {visible(inline(asker['subagent']))}."]
    if value.get("changed"):
        lines += ["", "⚠️ Its server has changed this tool since you were asked. Compare both on the page."]
    if error := value.get("error"):
        lines += ["", visible(str(error))]
    if sources := value.get("sources"):
        named = ", ".join(visible(inline(f"{each['kind']} {each['name']}", 80)) for each in sources[-5:])
        rest = f" and {len(sources) - 5} more" if len(sources) > 5 else ""
        lines += ["", f"Text of others is in this conversation: {named}{rest}."]
    if page:
        lines += ["", f"Change it or allow more: {page}"]
    return "\n".join(lines)


def choices_of(interrupt: Mapping[str, Any]) -> list[str]:
    """Return what can be decided in a chat; nothing if the card needs the page."""
    value: Any = interrupt.get("value")
    if not isinstance(value, Mapping) or len(requests := value.get("action_requests") or ()) != 1:
        return []
    rules = {rule["action_name"]: rule["allowed_decisions"] for rule in value.get("review_configs") or ()}
    allowed = rules.get(requests[0]["name"], ())
    return [choice for choice in LABELS if choice in allowed or is_network(requests[0], value)]


def numbered(labels: Sequence[str]) -> str:
    """Return the line that says what to write where there are no buttons."""
    return " · ".join(
        [*(f"{number} {label.lower()}" for number, label in enumerate(labels, 1)), "or write what to do instead"]
    )


def decided_line(choice: str, label: str, by: str, at: datetime) -> str:
    """Return who has decided what and when."""
    done = _DONE.get(choice, f"✅ {visible(inline(label, 80))}")
    return f"{done} by {visible(inline(by, 60))}, {at:%Y-%m-%d %H:%M} UTC"


def _argument(name: str, given: Any) -> list[str]:
    text = visible(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))
    shown = (
        text
        if len(text) <= MOST_CHARS
        else f"{text[:MOST_CHARS]}\n… {len(text) - MOST_CHARS:,} more characters, see the page"
    )
    if "\n" not in shown and len(shown) <= 80 and "`" not in shown:
        return ["", f"{visible(inline(name))}: `{shown}`" if shown.strip() else f"{visible(inline(name))}: (empty)"]
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", shown) or [""]))
    return ["", f"{visible(inline(name))}:", fence, shown, fence]
