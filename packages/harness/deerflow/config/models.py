"""``models``: the language models and how their clients are constructed."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from deerflow.config.env import require
from deerflow.config.section import OpenSection, Section, Settings


class PricingConfig(Section):
    """What a model costs, in money per million tokens."""

    input: float = Field(default=0, ge=0)
    output: float = Field(default=0, ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    """None: cached input costs as much as other input."""
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    """ISO 4217."""


class ModelConfig(OpenSection):
    """One model. Keys that are not listed here are passed to the constructor of ``use``."""

    name: str = Field(min_length=1)
    """The id by which agents, users and the API ask for it."""
    display_name: str | None = None
    description: str | None = None
    use: str
    """Class path ``package.module:Class`` of a LangChain chat model."""
    model: str
    """The provider's id of the model."""
    use_responses_api: bool | None = None
    output_version: str | None = None
    supports_thinking: bool = False
    supports_reasoning_effort: bool = False
    supports_vision: bool = False
    when_thinking_enabled: Settings | None = None
    when_thinking_disabled: Settings | None = None
    thinking: Settings | None = None
    """Short for ``when_thinking_enabled.thinking``."""
    pricing: PricingConfig | None = None
    context_window: int | None = Field(default=None, ge=1)
    """Tokens."""
    fallbacks: tuple[str, ...] = ()
    """Names of models to try, in order, when this one fails."""
    discovered_from: str | None = None
    """Why a model that no file names is here, e.g. ``OPENAI_API_KEY in the environment``."""

    @property
    def is_demo(self) -> bool:
        """Whether this is the scripted demo model."""
        return self.use.startswith("deerflow.models.demo")

    def settings(self) -> dict[str, Any]:
        """Constructor arguments without nulls and without the keys that are ours, as a private copy.

        Raises:
            ConfigError: the entry refers to an environment variable that is not set.
        """
        self.require()
        forwarded = {name: getattr(self, name) for name in ("model", "use_responses_api", "output_version")}
        return {
            key: value for key, value in {**forwarded, **require(self.model_extra or {})}.items() if value is not None
        }
