"""The whole configuration as one immutable snapshot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, PrivateAttr, field_validator

from deerflow.config.agents import (
    AcpAgentConfig,
    AgentsApiConfig,
    MemoryConfig,
    SkillEvolutionConfig,
    SkillsConfig,
    SubagentsConfig,
    SummarizationConfig,
    TitleConfig,
)
from deerflow.config.env import MissingEnv
from deerflow.config.errors import ConfigError, ConfigProblem
from deerflow.config.extensions import ExtensionsConfig
from deerflow.config.frozen import EMPTY, frozen
from deerflow.config.models import ModelConfig
from deerflow.config.origin import Origin
from deerflow.config.runs import RetentionConfig, RunsConfig
from deerflow.config.safety import CircuitBreakerConfig, GuardrailsConfig, TokenUsageConfig
from deerflow.config.sandbox import SandboxConfig
from deerflow.config.section import OpenSection, Section, Settings
from deerflow.config.storage import CheckpointerConfig, DatabaseConfig, RunEventsConfig, StreamBridgeConfig
from deerflow.config.tools import (
    DEFAULT_TOOL_GROUPS,
    DEFAULT_TOOLS,
    ToolConfig,
    ToolGroupConfig,
    ToolSearchConfig,
    UploadsConfig,
)

CONFIG_VERSION = 9
"""Of ``config.example.yaml``. 9 added ``sandbox.network``, ``sandbox.limits``, ``models[].pricing`` and other optional keys."""

Named = TypeVar("Named", ModelConfig, ToolConfig, ToolGroupConfig)


class AppConfig(OpenSection):
    """Every setting, immutable. ``AppConfig()`` is valid: all defaults, no models, nothing on disk.

    Of two models or tools with one name the first counts. Unknown keys are kept in ``model_extra``.
    """

    config_version: int = 0
    log_level: Literal["debug", "info", "warning", "error", "critical"] = "info"
    token_usage: TokenUsageConfig = TokenUsageConfig()
    models: tuple[ModelConfig, ...] = ()
    """The first one is the default."""
    tools: tuple[ToolConfig, ...] = DEFAULT_TOOLS
    tool_groups: tuple[ToolGroupConfig, ...] = DEFAULT_TOOL_GROUPS
    tool_search: ToolSearchConfig = ToolSearchConfig()
    uploads: UploadsConfig = UploadsConfig()
    sandbox: SandboxConfig = SandboxConfig()
    subagents: SubagentsConfig = SubagentsConfig()
    acp_agents: Annotated[Mapping[str, AcpAgentConfig], AfterValidator(frozen)] = EMPTY
    skills: SkillsConfig = SkillsConfig()
    title: TitleConfig = TitleConfig()
    summarization: SummarizationConfig = SummarizationConfig()
    memory: MemoryConfig = MemoryConfig()
    agents_api: AgentsApiConfig = AgentsApiConfig()
    skill_evolution: SkillEvolutionConfig = SkillEvolutionConfig()
    checkpointer: CheckpointerConfig | None = None
    database: DatabaseConfig = DatabaseConfig()
    run_events: RunEventsConfig = RunEventsConfig()
    stream_bridge: StreamBridgeConfig = StreamBridgeConfig()
    runs: RunsConfig = RunsConfig()
    retention: RetentionConfig = RetentionConfig()
    guardrails: GuardrailsConfig = GuardrailsConfig()
    circuit_breaker: CircuitBreakerConfig = CircuitBreakerConfig()
    channels: Settings = EMPTY
    """Free; each channel takes its part through ``require``."""
    extensions: ExtensionsConfig = ExtensionsConfig()

    _origin: Origin | None = PrivateAttr(default=None)

    @field_validator("config_version", mode="before")
    @classmethod
    def _version_number(cls, value: Any) -> int:
        return version_number(value)

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return {"warn": "warning"}.get(value.lower(), value.lower()) if isinstance(value, str) else value

    @field_validator("models", "tools", "tool_groups", mode="after")
    @classmethod
    def _first_of_a_name(cls, value: tuple[Named, ...]) -> tuple[Named, ...]:
        if isinstance(value, MissingEnv):
            return value
        kept: dict[str, Named] = {}
        for index, entry in enumerate(value):
            # A name whose variable is missing cannot collide.
            kept.setdefault(entry.__dict__.get("name", f"\0{index}"), entry)
        return tuple(kept.values())

    @property
    def origin(self) -> Origin:
        """Where the snapshot came from; of one made in code: nowhere, with an empty environment."""
        return self._origin or Origin()

    @cached_property
    def id(self) -> str:
        """A hash of all settings: equal settings, equal id. Caches of what is built from a snapshot are keyed by it."""
        canonical = json.dumps(_canonical(self), sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __hash__(self) -> int:
        return hash(self.id)

    def get_model(self, name: str | None = None) -> ModelConfig:
        """The model of that name, or the default model.

        Raises:
            ConfigError: there is none; the message lists those that exist.
        """
        for model in self.models:
            if name is None or model.__dict__.get("name") == name:
                return model
        file = self._origin.config_file if self._origin else None
        if not self.models:
            raise ConfigError(
                ConfigProblem(
                    "no model is configured.", file, None, "models", "Set OPENAI_API_KEY or add a model to config.yaml."
                )
            )
        raise ConfigError(
            ConfigProblem(f"there is no model {name!r}.", file, None, "models", f"Known models: {_names(self.models)}.")
        )

    def model_settings(self, name: str | None = None) -> dict[str, Any]:
        """Constructor arguments of that model (see :meth:`ModelConfig.settings`). Raises ConfigError."""
        return self.get_model(name).settings()

    def get_tool(self, name: str) -> ToolConfig | None:
        """The entry of that name in ``tools``, or None."""
        return next((tool for tool in self.tools if tool.__dict__.get("name") == name), None)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> AppConfig:
        """As in pydantic; the copy computes its own ``id``."""
        copy = super().model_copy(update=update, deep=deep)
        vars(copy).pop("id", None)
        return copy

    def with_origin(self, origin: Origin) -> AppConfig:
        """The same settings, remembering where they came from."""
        copy = self.model_copy()
        copy._origin = origin
        return copy


def version_number(value: object) -> int:
    """``config_version`` as written, a number or text; anything else is 0."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 0)
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else 0


def _names(entries: Sequence[ModelConfig]) -> str:
    return ", ".join(str(entry.__dict__.get("name", "?")) for entry in entries)


def _canonical(value: Any) -> Any:
    if isinstance(value, Section):
        fields = {name: value.__dict__[name] for name in type(value).model_fields if name in value.__dict__}
        return _canonical({**fields, **(value.model_extra or {}), **value._missing})
    if isinstance(value, MissingEnv):
        return {"missing": [str(value), *value.variables]}
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value
