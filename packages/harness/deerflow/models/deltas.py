"""The deltas of one streamed answer, put right: each vendor's form of thoughts, text and tool calls as one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from deerflow.models.messages import spoilers
from deerflow.models.thoughts import ThoughtStream

REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
SIGNATURES = "thought_signatures"
"""Key in ``additional_kwargs``: call id (or ``#index``, where it came without) to the fields to send back with the call."""

HAS_FIELDS = "has_fields"
"""Key in ``kept``: whether its thoughts came in fields of their own, which go back, rather than inside the answer."""

Fields = dict[str, Any]


@dataclass(slots=True)
class _CallDelta:
    """A tool call so far."""

    number: int
    id: str | None = None
    name: str = ""
    fragments: list[str] = field(default_factory=list)
    """Of its arguments: a text that grew with each of them would be copied as often."""

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)

    @property
    def is_whole(self) -> bool:
        """Return whether the arguments are a JSON object already."""
        if not (self.fragments and self.fragments[-1].rstrip().endswith("}")):
            return False
        try:
            return isinstance(orjson.loads(self.arguments), dict)
        except orjson.JSONDecodeError:
            return False


class Deltas:
    """Puts the deltas of one answer right, in place, and collects what goes back to the vendor as it came.

    ``delta["kept"]`` holds additions for the message's ``additional_kwargs``.

    Args:
        streamed: False for a whole answer, whose text is taken apart when it is there.
    """

    def __init__(self, *, streamed: bool = True) -> None:
        self._thoughts = ThoughtStream() if streamed else None
        self._halves: dict[str, str] = {}
        self._calls: list[_CallDelta] = []
        self._by_index: dict[Any, _CallDelta] = {}
        self._details: list[Fields] = []
        self._signatures: dict[str, Fields] = {}
        self._has_fields = self._has_tags = False
        self._is_broken = self._is_closed = False
        self.is_settled = False
        """Deltas of nothing but sound text are right as they come: no thoughts and no half character are on their way."""

    def read(self, delta: Fields, *, is_broken: bool = False) -> None:
        """Put a delta right.

        Args:
            is_broken: it holds half of a surrogate pair, as an emoji that was cut over two deltas does.
        """
        self._is_broken = is_broken or bool(self._halves)
        if not REASONING.isdisjoint(delta):
            self._take_reasoning(delta)
        content = delta.get("content")
        if content:
            if type(content) is list:
                content = delta["content"] = self._take_blocks(delta, content)
            if self._is_broken:
                content = delta["content"] = self._whole("content", content)
            if self._thoughts is not None:
                self._take_thoughts(delta, content)
        if delta.get("refusal"):
            _keep(delta, "refusal", delta["refusal"])
        if calls := delta.get("tool_calls"):
            self._take_calls(calls)
        self.is_settled = self._thoughts is None and not self._halves

    def close(self, delta: Fields) -> None:
        """Add what was held back to the answer's last delta."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._thoughts is not None:
            held = self._thoughts.end()
            self._thoughts = None
            if held.answer:
                delta["content"] = (delta.get("content") or "") + held.answer
            if held.thoughts:
                _keep(delta, "reasoning_content", held.thoughts)
        if self._halves.pop("content", None):
            delta["content"] = (delta.get("content") or "") + "\ufffd"
        if self._details:
            _keep(delta, "reasoning_details", self._details)
        if self._signatures:
            _keep(delta, SIGNATURES, self._signatures)
        if self._has_fields or self._has_tags:
            _keep(delta, HAS_FIELDS, self._has_fields)

    def spoilers(self) -> list[Fields]:
        """Return fragments that keep broken arguments broken, see :mod:`deerflow.models.messages`."""
        broken = spoilers({call.number: call.arguments for call in self._calls}).items()
        return [{"index": number, "function": {"arguments": text}} for number, text in broken]

    # --- thoughts ---------------------------------------------------------------------------------------------------

    def _take_reasoning(self, delta: Fields) -> None:
        details, text = delta.get("reasoning_details"), delta.get("reasoning_content")
        reasoning = delta.get("reasoning")
        if isinstance(details, list) and details:
            for detail in details:
                if isinstance(detail, dict):
                    self._add_detail(detail)
            self._has_fields = True
            if not isinstance(text, str):
                text = reasoning if isinstance(reasoning, str) else texts_of(details)
        elif isinstance(reasoning, str):
            self._has_fields = True
            _keep(delta, "reasoning", reasoning)
            text = text if isinstance(text, str) else reasoning
        elif isinstance(text, str) and text:
            self._has_fields = True
        if isinstance(text, str):
            _keep(delta, "reasoning_content", self._whole("reasoning", text) if self._is_broken else text)

    def _add_detail(self, detail: Fields) -> None:
        """Add a fragment to the detail that it continues: of the same type and index, right before it."""
        last = self._details[-1] if self._details else None
        texts = [name for name in ("text", "summary", "data") if isinstance(detail.get(name), str)]
        if last is None or not _continues(last, detail):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            if name in texts:
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value

    def _take_blocks(self, delta: Fields, blocks: Sequence[Any]) -> str:
        """Take text and thoughts out of content that comes as a list of blocks, as Mistral's does."""
        text = list[str]()
        for block in blocks:
            if isinstance(block, str):
                text.append(block)
            elif isinstance(block, dict) and block.get("type") == "thinking":
                thinking, self._has_tags = block.get("thinking"), True
                _keep(delta, "reasoning_content", thinking if isinstance(thinking, str) else texts_of(thinking or ()))
            elif isinstance(block, dict) and isinstance(block.get("text"), str):
                text.append(block["text"])
        return "".join(text)

    def _take_thoughts(self, delta: Fields, content: str) -> None:
        assert self._thoughts is not None
        thoughts, delta["content"] = self._thoughts.feed(content)
        if thoughts:
            self._has_tags = True
            _keep(delta, "reasoning_content", thoughts)
        if self._thoughts.is_done:
            self._thoughts = None

    def _whole(self, place: str, text: str) -> str:
        """Return ``text`` with its surrogate pairs joined; half of one at its end waits for the next delta."""
        text = self._halves.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[place] = text[-1]
            text = text[:-1]
        return repair_surrogates(text)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _take_calls(self, calls: Sequence[Fields]) -> None:
        """Give each call a number of its own: some servers leave the index out, others send 0 for all of them."""
        for fragment in calls:
            if "id" in fragment:
                fragment["id"] = text_id(fragment["id"])
            function = fragment["function"] = fragment.get("function") or {}
            arguments = function.get("arguments")
            if arguments is not None and not isinstance(arguments, str):
                arguments = function["arguments"] = orjson.dumps(arguments).decode()
            call = self._call_of(fragment, function, arguments)
            fragment["index"] = call.number
            name = function.get("name")
            if name and name == call.name:
                function["name"] = None  # repeated in each delta
            elif isinstance(name, str):
                call.name += name
            if arguments:
                if self._is_broken:
                    arguments = function["arguments"] = self._whole(f"arguments {call.number}", arguments)
                call.fragments.append(arguments)
            if fields := signature_of(fragment):
                self._has_fields = True
                taken = any(other.id == call.id for other in self._calls if other is not call)
                self._signatures[f"#{call.number}" if taken or not call.id else call.id] = fields

    def _call_of(self, fragment: Fields, function: Fields, arguments: str | None) -> _CallDelta:
        """Return the call that a fragment belongs to."""
        index, id_ = fragment.get("index"), fragment.get("id") or None
        last = self._calls[-1] if self._calls else None
        call = self._by_index.get(index) if index is not None else None if id_ and last and id_ != last.id else last
        if call is not None and id_ and call.id and id_ != call.id:
            call = next((known for known in self._calls if known.id == id_), None)
        elif call is not None and not id_ and arguments and function.get("name") and call.is_whole:
            call = None
        if call is None:
            call = _CallDelta(len(self._calls))
            self._calls.append(call)
        call.id = call.id or id_
        self._by_index[index] = call
        return call


def texts_of(parts: Sequence[Any]) -> str:
    """Return the text of reasoning details or of the blocks in a thinking block."""
    found = (part.get("text") or part.get("summary") for part in parts if isinstance(part, dict))
    return "".join(text for text in found if isinstance(text, str))


def signature_of(call: Mapping[str, Any]) -> Fields:
    """Return the fields of a call that must go back with it: Gemini's thought signature, in any of its forms."""
    fields: Fields = {}
    if signature := call.get("thought_signature") or call.get("thoughtSignature"):
        fields["thought_signature"] = signature
    if extra_content := call.get("extra_content"):
        fields["extra_content"] = extra_content
    return fields


def repair_surrogates(text: str) -> str:
    """Join surrogate pairs to the character they mean, replace single halves by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _keep(delta: Fields, name: str, value: Any) -> None:
    kept = delta.setdefault("kept", {})
    kept[name] = kept[name] + value if isinstance(kept.get(name), str) else value


def _continues(last: Fields, detail: Fields) -> bool:
    """Return whether a detail is a further fragment of the last one: of its type and index, and without another id."""
    same = all(last.get(name) == detail.get(name) for name in ("type", "index"))
    return same and detail.get("id") in (None, "", last.get("id")) and last.get("type") != "reasoning.encrypted"


def text_id(given: Any) -> Any:
    """Return an id as the text that it should be: some servers send numbers."""
    return str(given) if isinstance(given, int) else given
