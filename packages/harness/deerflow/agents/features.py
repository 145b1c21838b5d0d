"""What an agent made by ``create_deerflow_agent`` can do, and where a person's own middlewares go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain.agents.middleware import AgentMiddleware

Feature = bool | AgentMiddleware[Any, Any, Any]
M = TypeVar("M", bound=type)


@dataclass(frozen=True)
class RuntimeFeatures:
    """Per feature: True = built in, False = off, a middleware = in place of the built-in one.

    ``sandbox`` stands for the three of thread data, uploads and sandbox. ``summarization`` and ``guardrail`` need a
    model or a policy, so they have no built-in default here and take a middleware only.
    """

    sandbox: Feature = True
    memory: Feature = False
    summarization: Feature = False
    subagent: Feature = False
    vision: Feature = False
    auto_title: Feature = False
    guardrail: Feature = False


def Next(anchor: type) -> Callable[[M], M]:
    """Place the decorated middleware right behind the first middleware that is an ``anchor``. Raises TypeError for another class."""
    return _anchor("_next_anchor", anchor)


def Prev(anchor: type) -> Callable[[M], M]:
    """Place the decorated middleware right before the first middleware that is an ``anchor``. Raises TypeError for another class."""
    return _anchor("_prev_anchor", anchor)


def _anchor(attribute: str, anchor: type) -> Callable[[M], M]:
    if not (isinstance(anchor, type) and issubclass(anchor, AgentMiddleware)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"Anchor must be an AgentMiddleware class, not {anchor!r}.")

    def decorate(cls: M) -> M:
        setattr(cls, attribute, anchor)
        return cls

    return decorate
