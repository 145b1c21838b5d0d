"""The choices of a caller for one run, and how clients and graph configurations name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deerflow.config import switches
from deerflow.config.agents import AgentConfig
from deerflow.errors import InvalidRequestError
from deerflow.identity import check_agent_name

BOOTSTRAP_SKILL = "bootstrap"


@dataclass(frozen=True)
class RunOptions:
    """The choices of a caller for one run. None means: the default of the configuration or the agent."""

    model_name: str | None = None
    thinking_enabled: bool = True
    reasoning_effort: str | None = None
    is_plan_mode: bool = False
    subagent_enabled: bool = False
    max_concurrent_subagents: int = 3
    agent_name: str | None = None
    agent: AgentConfig | None = None
    """The definition of the agent of that name."""
    is_bootstrap: bool = False
    """The run sets up an agent in a conversation."""
    available_skills: tuple[str, ...] | None = None
    """Names of the skills that the agent may use; None: all that are on."""
    switched_off: tuple[str, ...] = ()
    """Switched off by the person, see :mod:`deerflow.config.switches`."""

    def without(self, names: Iterable[str]) -> RunOptions:
        """Return the same with more switched off. The conversation that sets up an agent keeps the skill for that."""
        off = switches.switches([*self.switched_off, *names])
        skills = () if switches.SKILLS in off and not self.is_bootstrap else self.available_skills
        return replace(self, switched_off=off, available_skills=skills)


def run_options(given: Mapping[str, Any], agent: AgentConfig | None = None) -> RunOptions:
    """Return the options of a run out of what a client sent as ``configurable`` and ``context``.

    ``mode`` (flash, thinking, pro, ultra) is the reference's short hand: what is given singly counts more.

    Args:
        agent: the custom agent that the run is for, whose choices count where the client makes none.

    Raises:
        InvalidRequestError: a value of the wrong kind; names it.
    """
    if agent is not None:
        given = {**agent.choices(), **{key: value for key, value in given.items() if value is not None}}
    mode = given.get("mode")
    if mode is not None and mode not in ("flash", "thinking", "pro", "ultra"):
        raise InvalidRequestError(f"context.mode is {mode!r}: use flash, thinking, pro or ultra.")
    name, is_bootstrap = given.get("agent_name"), given.get("is_bootstrap") is True
    off = switches.switches(given.get(switches.KEY))
    try:
        return RunOptions(
            model_name=_text(given, "model_name") or _text(given, "model"),
            thinking_enabled=_flag(given, "thinking_enabled", default=mode != "flash"),
            reasoning_effort=_text(given, "reasoning_effort"),
            is_plan_mode=_flag(given, "is_plan_mode", default=mode in ("pro", "ultra")),
            subagent_enabled=_flag(given, "subagent_enabled", default=mode == "ultra"),
            max_concurrent_subagents=int(given.get("max_concurrent_subagents") or 3),
            agent_name=agent.name if agent is not None else check_agent_name(name) if name else None,
            agent=agent,
            is_bootstrap=is_bootstrap,
            available_skills=(BOOTSTRAP_SKILL,) if is_bootstrap else _names(given, "available_skills"),
        ).without(off)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(str(error)) from error


def _text(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} must be text.")
    return value or None


def _names(given: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value = given.get(key)
    if value is not None and not (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)):
        raise ValueError(f"{key} must be a list of names.")
    return None if value is None else tuple(value)


def _flag(given: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = given.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false.")
    return default if value is None else value
