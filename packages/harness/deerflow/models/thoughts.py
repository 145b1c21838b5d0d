"""Thinking that a model wrote into its answer: ``<think>…</think>``, the closing tag alone, ``◁think▷…◁/think▷``."""

from __future__ import annotations

import re
from typing import NamedTuple

from langchain_core.messages import BaseMessage

REASONED_BY = "reasoned_by"
"""Key in ``additional_kwargs``: the host and model whose thoughts stand beside it; "": they stood in the answer."""

_PAIRS = (("<think>", "</think>"), ("◁think▷", "◁/think▷"))
_TAG = re.compile(r"<(/?)think>|◁(/?)think▷", re.IGNORECASE)
_QUOTES = frozenset("`'\"“”«»")
_LONGEST = max(len(opening) for opening, _ in _PAIRS)


class ThoughtAndAnswer(NamedTuple):
    """A model's text, taken apart."""

    thoughts: str
    answer: str


def separate(text: str) -> ThoughtAndAnswer:
    """Return the thoughts and the answer in ``text``; the answer is ``text`` itself if it holds no thoughts.

    A closing tag alone ends thoughts whose opening tag the server swallowed. An opening tag that is never closed
    begins thoughts that were cut off. Tags in quotes or in a code block are the answer's own words.
    """
    if "think>" not in text.lower() and "think▷" not in text.lower():
        return ThoughtAndAnswer("", text)
    thoughts, answer = list[str](), list[str]()
    at = fences = counted = 0
    is_thinking = False
    for tag in _TAG.finditer(text):
        start, end = tag.span()
        if not is_thinking:
            fences += text.count("```", counted, start)
            counted = end
        if _is_quoted(text, start, end) or (fences % 2 and not is_thinking):
            continue
        if not (tag[1] or tag[2]):
            if not is_thinking:
                answer.append(text[at:start])
                at, is_thinking = end, True
            continue
        thoughts.append(text[at:start] if is_thinking else "".join(answer) + text[at:start])
        if not is_thinking:
            answer.clear()
        while text[end : end + 1].isspace():
            end += 1
        at, counted, is_thinking = end, end, False
    (thoughts if is_thinking else answer).append(text[at:])
    if not thoughts:
        return ThoughtAndAnswer("", text)
    return ThoughtAndAnswer(joined(*thoughts), "".join(answer).strip())


def without_thoughts(text: str) -> str:
    """Return ``text`` without the thoughts in it."""
    return separate(text).answer.strip()


def joined(*thoughts: str) -> str:
    """Return thoughts as paragraphs, each once."""
    stripped = (thought.strip() for thought in thoughts)
    return "\n\n".join(dict.fromkeys(thought for thought in stripped if thought))


def _is_quoted(text: str, start: int, end: int) -> bool:
    return start > 0 and text[start - 1] in _QUOTES and text[end : end + 1] in _QUOTES and end < len(text)


def settle_thoughts(message: BaseMessage) -> bool:
    """Move thoughts in a message's text to its ``reasoning_content``, in place. Return whether there were any."""
    if not isinstance(message.content, str):
        return False
    thoughts, answer = separate(message.content)
    if answer is message.content:
        return False
    message.content = answer
    before = message.additional_kwargs.get("reasoning_content") or ""
    together = joined(before, thoughts)
    message.additional_kwargs = {REASONED_BY: "", **message.additional_kwargs, "reasoning_content": together}
    return True


class ThoughtStream:
    """Separates the thoughts at the beginning of a streamed answer.

    Behind them it has nothing more to do: see ``is_done``. A closing tag alone is left to :func:`separate`.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._closing = ""
        self._held = ""
        self._begins_answer = False

    def feed(self, piece: str) -> ThoughtAndAnswer:
        """Return what is certain with this piece."""
        text = self._held + piece
        self._held = ""
        if self._begins_answer:
            return self._answer(text)
        if not self._closing:
            begun = text.lstrip()
            opened = next((pair for pair in _PAIRS if begun[:_LONGEST].lower().startswith(pair[0])), None)
            if opened is None:
                if any(opening.startswith(begun[:_LONGEST].lower()) for opening, _ in _PAIRS):
                    self._held = text
                    return ThoughtAndAnswer("", "")
                self.is_done = True
                return ThoughtAndAnswer("", text)
            self._closing, text = opened[1], begun[len(opened[0]) :]
        thought, closed, rest = _partition(text, self._closing)
        if closed:
            self._begins_answer = True
            return ThoughtAndAnswer(thought, self._answer(rest).answer)
        self._held = _begun_tag(text, self._closing)
        return ThoughtAndAnswer(text[: len(text) - len(self._held)], "")

    def end(self) -> ThoughtAndAnswer:
        """Return what was held back when the answer ends."""
        held, self._held = self._held, ""
        return ThoughtAndAnswer(held, "") if self._closing and not self._begins_answer else ThoughtAndAnswer("", held)

    def _answer(self, text: str) -> ThoughtAndAnswer:
        text = text.lstrip()
        self.is_done = bool(text)
        return ThoughtAndAnswer("", text)


def _partition(text: str, tag: str) -> tuple[str, bool, str]:
    at = text.find(tag)
    if at < 0:
        at = text.lower().find(tag) if text.isascii() else -1
    return (text, False, "") if at < 0 else (text[:at], True, text[at + len(tag) :])


def _begun_tag(text: str, tag: str) -> str:
    """Return the end of ``text`` that may be the beginning of ``tag``."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if tag.startswith(text[-length:].lower()):
            return text[-length:]
    return ""
