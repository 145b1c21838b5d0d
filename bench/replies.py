"""What the scripted endpoint can be told to answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Usage = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A final answer. ``chunks`` are the streamed pieces (default: word by word); they join to ``text`` if that is empty."""

    text: str = ""
    reasoning: str | None = None
    chunks: Sequence[str] | None = None
    usage: Usage | None = None
    finish_reason: str = "stop"
    reasoning_field: str = "reasoning_content"
    """Name of the delta's key that carries the reasoning: some servers say ``reasoning``."""

    @property
    def content(self) -> str:
        return self.text or "".join(self.chunks or ())

    @property
    def pieces(self) -> Sequence[str]:
        return words(self.text) if self.chunks is None else self.chunks


@dataclass(frozen=True, slots=True)
class RawToolCall:
    """A tool call whose arguments are sent as written, so that they may be broken JSON."""

    name: str
    arguments: str
    id: str | None = None


Call = tuple[str, Mapping[str, Any]] | RawToolCall


@dataclass(frozen=True, init=False, slots=True)
class ToolCalls:
    """Tool calls of one assistant message, streamed in fragments: ``ToolCalls(("bash", {"command": "ls"}), ...)``."""

    calls: tuple[Call, ...]
    text: str
    reasoning: str | None
    usage: Usage | None
    reasoning_field: str

    def __init__(
        self,
        *calls: Call,
        text: str = "",
        reasoning: str | None = None,
        usage: Usage | None = None,
        reasoning_field: str = "reasoning_content",
    ) -> None:
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "reasoning", reasoning)
        object.__setattr__(self, "usage", usage)
        object.__setattr__(self, "reasoning_field", reasoning_field)


@dataclass(frozen=True, slots=True)
class Empty:
    """An answer without content, calls or reasoning."""


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error response. A string body becomes the message of an OpenAI error object, bytes go out as they are."""

    status: int
    body: Mapping[str, Any] | str | bytes | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """A stream that the server breaks off: the socket closes after ``after_chunks`` pieces of ``text``."""

    after_chunks: int = 3
    text: str = "This answer will never be heard to its end."


@dataclass(frozen=True, slots=True)
class RawChunks:
    """Stream events sent as written; a request without streaming gets the first one as its body."""

    chunks: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait ``seconds`` before the first byte of ``reply``, and ``between`` seconds before each further event."""

    seconds: float
    reply: Reply
    between: float = 0.0


Reply = Text | ToolCalls | RawToolCall | Empty | HttpError | Cut | RawChunks | Delay
Scripted = Reply | Callable[[dict[str, Any]], Reply]
"""A reply, or a function that makes it from the decoded request."""


def words(text: str) -> list[str]:
    """Split after each word; the pieces join to ``text``."""
    return re.findall(r"\S+\s*|\s+", text)


def reply_from_json(value: Mapping[str, Any]) -> Reply:
    """Read ``{"kind": "text", "text": "hi"}`` and the like, as POSTed to ``/script``.

    Raises:
        ValueError: unknown kind or arguments that the kind does not have.
    """
    arguments = {key: item for key, item in value.items() if key != "kind"}
    kind = value.get("kind")
    try:
        if kind == "tool_calls":
            calls = [_call_from_json(call) for call in arguments.pop("calls", ())]
            return ToolCalls(*calls, **arguments)
        if kind == "delay":
            return Delay(reply=reply_from_json(arguments.pop("reply")), **arguments)
        return _KINDS[str(kind)](**arguments)
    except KeyError as error:
        raise ValueError(
            f"unknown reply {kind!r} or missing key {error}; kinds: {', '.join(sorted(_KINDS))}"
        ) from error
    except TypeError as error:
        raise ValueError(f"reply {kind!r}: {error}") from error


def _call_from_json(value: Any) -> Call:
    if isinstance(value, Mapping):
        return RawToolCall(**value)
    name, arguments = value
    return name, arguments


_KINDS: Mapping[str, Callable[..., Reply]] = {
    "text": Text,
    "tool_calls": ToolCalls,
    "raw_tool_call": RawToolCall,
    "empty": Empty,
    "http_error": HttpError,
    "cut": Cut,
    "raw_chunks": RawChunks,
    "delay": Delay,
}
