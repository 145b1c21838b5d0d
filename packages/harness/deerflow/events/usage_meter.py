"""Count the tokens that a run uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata

from deerflow.models.context_window import ESTIMATED
from deerflow.models.pricing import ENTRY, entry_of, price_of
from deerflow.storage.threads import LEAD_AGENT
from deerflow.subagents.task import task_of

if TYPE_CHECKING:
    from deerflow.config import AppConfig


LAST_MESSAGE_CHARS = 2000


@dataclass
class UsageMeter:
    """Usage of a run, counted from the messages of its models: every AI message once, by its id.

    ``usage`` is ``{model: {caller: {input_tokens, output_tokens, calls}}}``, with ``cached_tokens`` and ``estimated_calls`` where there
    are some, and ``cost`` and ``currency`` where the model's price is known. Models are those that the configuration names.
    """

    config: AppConfig | None = None
    run_id: str = ""
    model_name: str | None = None
    usage: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    cost: float | None = None
    messages: int = 0
    last_ai_message: str | None = None
    last_message: BaseMessage | None = None
    _seen: set[str] = field(default_factory=set)
    _counted: set[str] = field(default_factory=set)

    def add(self, message: BaseMessage, caller: str = LEAD_AGENT) -> None:
        """A message that joins the thread."""
        if (message.id or "") in self._seen:
            return
        self._seen.add(message.id or "")
        self.messages += 1
        is_own = caller == LEAD_AGENT
        if is_own:
            self.last_message = message
        task = task_of(message)
        for call in task["calls"] if task is not None else ():
            metadata = {"model_name": call["model"], "run_id": call["run_id"], **(call.get("marks") or {})}
            answer = AIMessage("", id=call["id"], usage_metadata=call["usage"], response_metadata=metadata)
            self.count(answer, f"subagent:{task['subagent_type'] if task else ''}")
        if not isinstance(message, AIMessage):
            return
        if (text := message.text) and is_own:
            self.last_ai_message = text[:LAST_MESSAGE_CHARS]
        self.count(message, caller)

    def count(self, message: AIMessage, caller: str = LEAD_AGENT) -> None:
        """An answer of a model, whether or not it joins the thread. Subagents may have some from an earlier run."""
        if not message.usage_metadata or (message.id or "") in self._counted:
            return
        if message.response_metadata.get("run_id", self.run_id) != self.run_id:
            return
        self._counted.add(message.id or "")
        self._add(message, message.usage_metadata, caller)["calls"] += 1

    def count_reserved(self, tokens: int) -> None:
        """Count a call that was cut off when its process died by what was reserved for it: no one knows what it took."""
        usage = UsageMetadata(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
        cut = AIMessage("", usage_metadata=usage, response_metadata={ESTIMATED: True})
        self._add(cut, usage, LEAD_AGENT)["calls"] += 1

    def count_streamed(self, message_id: str, tokens: int, caller: str, entry: str | None) -> None:
        """Return the streamed part of an answer that was cut: its call is counted already, if at all."""
        if message_id not in self._counted:
            self._counted.add(message_id)
            usage = UsageMetadata(input_tokens=0, output_tokens=tokens, total_tokens=tokens)
            self._add(AIMessage("", usage_metadata=usage, response_metadata={ENTRY: entry}), usage, caller)

    def _add(self, message: AIMessage, used: UsageMetadata, caller: str) -> dict[str, Any]:
        price = price_of(self.config, message, self.model_name)
        entry = entry_of(self.config, message, self.model_name)
        asked = next((each.model for each in (self.config.models if self.config else ()) if each.name == entry), entry)
        model = asked or str(message.response_metadata.get("model_name") or "unknown")
        counted = self.usage.setdefault(model, {}).setdefault(
            caller, {"input_tokens": 0, "output_tokens": 0, "calls": 0}
        )
        counted["input_tokens"] += int(used.get("input_tokens") or 0)
        counted["output_tokens"] += int(used.get("output_tokens") or 0)
        if cached := int((used.get("input_token_details") or {}).get("cache_read") or 0):
            counted["cached_tokens"] = counted.get("cached_tokens", 0) + cached
        if message.response_metadata.get(ESTIMATED):
            counted["estimated_calls"] = counted.get("estimated_calls", 0) + 1
        if price is not None:
            counted["cost"] = counted.get("cost", 0.0) + price["amount"]
            counted["currency"] = price["currency"]
            self.cost = (self.cost or 0.0) + price["amount"]
        return counted

    def totals(self) -> dict[str, Any]:
        """The columns of a run that a meter fills."""
        counted = [numbers for callers in self.usage.values() for numbers in callers.values()]
        return {
            "input_tokens": sum(numbers["input_tokens"] for numbers in counted),
            "output_tokens": sum(numbers["output_tokens"] for numbers in counted),
            "llm_calls": sum(numbers["calls"] for numbers in counted),
            "cost": self.cost,
            "usage": self.usage or None,
            "message_count": self.messages,
            "last_ai_message": self.last_ai_message,
        }
