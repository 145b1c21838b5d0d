"""Custom agents: what defines one, and the files that may hold it, ``config.yaml`` and ``SOUL.md`` in a directory of its name."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationError, field_validator

from deerflow.config.document import ConfigError, ConfigProblem, parse_yaml, read_text
from deerflow.config.paths import Paths
from deerflow.config.schema import GuardrailsConfig, SpendingLimit
from deerflow.config.section import Section
from deerflow.identity import check_agent_name

AGENT_FILE, SOUL_FILE = "config.yaml", "SOUL.md"
MAX_SOUL_CHARS = 20_000

logger = logging.getLogger(__name__)


class ModelSettings(Section):
    """Settings of an agent's model; None leaves one to the model's entry."""

    model_config = ConfigDict(extra="forbid")

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=10_000_000)
    """Of one answer."""

    @property
    def chosen(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.model_dump(exclude_none=True).items())


class AgentConfig(Section):
    """A custom agent. None leaves a setting to the caller or to the configuration."""

    name: str
    """In small letters."""
    display_name: str = Field(default="", max_length=64)
    """In any script, for people; empty: the name."""
    description: str = Field(default="", max_length=1024)
    model: str | None = None
    thinking_enabled: bool | None = None
    reasoning_effort: str | None = None
    model_settings: ModelSettings | None = None
    tool_groups: tuple[str, ...] | None = None
    """Of configured tools; built-in ones are always there."""
    skills: tuple[str, ...] | None = None
    """None: all that are on; empty: none."""
    subagents: tuple[str, ...] | None = None
    """Those that it may call; empty: none."""
    policy: Literal["off", "auto", "strict"] | None = None
    """When calls ask, if that is stricter than ``guardrails.policy``."""
    budget: SpendingLimit | None = None
    """Per day, if that is less than ``spending.per_agent_day``."""
    soul: str = Field(default="", max_length=MAX_SOUL_CHARS)
    """SOUL.md: its purpose, manner and limits, in the system prompt."""

    @field_validator("name", mode="after")
    @classmethod
    def _valid_name(cls, value: str) -> str:
        return check_agent_name(value).lower()

    @field_validator("display_name", mode="after")
    @classmethod
    def _on_one_line(cls, value: str) -> str:
        return " ".join(value.split())

    @field_validator("soul", mode="after")
    @classmethod
    def _trimmed(cls, value: str) -> str:
        return value.strip()

    def choices(self) -> dict[str, Any]:
        """What it chooses of a run's settings, as clients name them."""
        chosen = {
            "agent_name": self.name,
            "model_name": self.model,
            "thinking_enabled": self.thinking_enabled,
            "reasoning_effort": self.reasoning_effort,
            "available_skills": self.skills,
            "subagent_enabled": None if self.subagents is None else bool(self.subagents),
        }
        return {key: value for key, value in chosen.items() if value is not None}

    def guardrails(self, config: GuardrailsConfig) -> GuardrailsConfig:
        """Those of the configuration, made stricter if the agent wants that."""
        order = ("off", "auto", "strict")
        now = config.policy if config.enabled else "off"
        if config.provider is not None or order.index(self.policy or "off") <= order.index(now):
            return config
        return config.model_copy(update={"enabled": True, "policy": self.policy})


class Persona(NamedTuple):
    """What a person has written for agents: SOUL.md for the default agent, and USER.md about themselves for all."""

    soul: str = ""
    profile: str = ""


NO_PERSONA = Persona()


def read_persona(paths: Paths, user_id: str) -> Persona:
    """The person's files; where they have none, the installation's."""

    def text(own: Path, shared: Path) -> str:
        for file in (own, shared):
            try:
                return read_text(file).strip()[:MAX_SOUL_CHARS]
            except FileNotFoundError:
                continue
            except ConfigError as error:
                logger.warning("%s", error)
        return ""

    return Persona(
        text(paths.user_soul_file(user_id), paths.soul_file), text(paths.user_profile_file(user_id), paths.user_md_file)
    )


def agents_of_files(paths: Paths, user_id: str) -> dict[str, AgentConfig]:
    """Agents that directories define, by name: the person's, and the installation's for everyone. Damaged ones are left out."""
    found: dict[str, AgentConfig] = {}
    for parent in (paths.agents_dir, paths.user_agents_dir(user_id)):
        for file in sorted(parent.glob(f"*/{AGENT_FILE}")):
            try:
                agent = _read(file)
            except FileNotFoundError:
                continue
            except ConfigError as error:
                logger.warning("%s", error)
            else:
                found[agent.name] = agent
    return dict(sorted(found.items()))


def _read(file: Path) -> AgentConfig:
    """Raises FileNotFoundError: no agent is there; ConfigError: it cannot be read."""
    given = parse_yaml(read_text(file), file).data
    try:
        soul = read_text(file.with_name(SOUL_FILE))
    except FileNotFoundError:
        soul = ""
    try:
        return AgentConfig.model_validate({**given, "name": file.parent.name, "soul": soul})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise ConfigError(ConfigProblem(f"{first['msg']}.", file, key=key)) from None
