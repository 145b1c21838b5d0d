"""From a model's entry in the configuration to a chat model."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from langchain_core.language_models.chat_models import BaseChatModel
from pydantic import ValidationError

from deerflow.config import AppConfig, ConfigError, ConfigProblem, ModelConfig, missing_in, require
from deerflow.config.discovery import addresses
from deerflow.config.model_origin import ModelOrigin
from deerflow.counts import ModelCalls
from deerflow.errors import InvalidRequestError
from deerflow.models.pricing import ENTRY
from deerflow.reflection import resolve_class

Overrides = Mapping[str, Any]

FAST_OPENAI = "deerflow.models.openai:OpenAIChatModel"
CLASS_DEFAULTS: Mapping[str, Overrides] = {"MindIEChatModel": {"max_retries": 1}}
NO_MODELS = (
    "No chat models are configured. Set a provider key in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...) "
    "or add a model under `models:` in config.yaml."
)


def create_chat_model(
    name: str | None = None,
    thinking_enabled: bool = False,
    *,
    app_config: AppConfig,
    provider_retries: bool = True,
    **kwargs: Any,
) -> BaseChatModel:
    """A new chat model as the configuration describes it.

    Imports the provider's package and may read sign-ins from disk: call it off the event loop. Every call opens its
    own connections; use a :class:`ModelCache` for models that live on.

    Args:
        name: of an entry in ``models``; the first entry if None.
        thinking_enabled: choose the entry's settings for thinking or for not thinking.
        app_config: the snapshot to read.
        provider_retries: False where the caller retries itself, so that retries do not multiply. What the
            configuration says explicitly stays.
        **kwargs: further constructor arguments, which win over the configuration. ``reasoning_effort`` None means
            that the caller has no wish.

    Raises:
        ValueError: there is no model, none of that name, or it cannot think.
        ConfigError: the entry needs an environment variable that is not set, or the model's class refuses a setting.
        ImportError: the provider's package is not installed; says how to install it.
    """
    model = find_model(app_config, name)
    effort = kwargs.pop("reasoning_effort", None)
    settings = _settings(model, thinking_enabled)
    cls = _model_class(model.use)
    if not model.supports_reasoning_effort:
        effort = None
        settings.pop("reasoning_effort", None)
    # A provider whose rules differ states them itself, next to its class.
    if adapt := getattr(cls, "adapt_settings", None):
        settings = adapt(settings, thinking_enabled=thinking_enabled, reasoning_effort=effort)
    elif "reasoning_effort" in settings or effort is not None:
        settings |= _effort(cls, effort or settings.pop("reasoning_effort"))
    given = {**settings, **kwargs}
    try:
        made = cls(**{**_class_defaults(cls), **({} if provider_retries else _no_retries(cls, given)), **given})
        if unknown := getattr(made, "unknown_settings", list)():
            raise ConfigError(*_unknown(unknown, app_config, model))
        made.metadata = {**(made.metadata or {}), ENTRY: _name(model)}
        return made
    except ConfigError:
        raise
    except ValidationError as error:
        raise ConfigError(*_refused(error, app_config, model)) from None
    except Exception as error:
        if given.get("api_key") or "api_key" not in str(error):
            raise
        raise ConfigError(_keyless(app_config, model)) from error


def _keyless(app_config: AppConfig, model: ModelConfig) -> ConfigProblem:
    return ConfigProblem(
        f"Model {_name(model)!r} has no API key.",
        app_config.origin.config_file,
        None,
        f"models[{app_config.models.index(model)}].api_key",
        "Set it here, e.g. `api_key: $OPENAI_API_KEY`, or set the variable in the environment, and try again.",
    )


def _refused(error: ValidationError, app_config: AppConfig, model: ModelConfig) -> list[ConfigProblem]:
    """What the model's class does not take. Values are not repeated: one of them may be a key."""
    place = f"models[{app_config.models.index(model)}]"
    return [
        ConfigProblem(
            f"{entry['msg'].removeprefix('Value error, ').replace('Input should', 'should')}.",
            app_config.origin.config_file,
            None,
            ".".join([place, *map(str, entry["loc"])]),
            f"Correct this setting of model {_name(model)!r}.",
        )
        for entry in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _unknown(settings: list[str], app_config: AppConfig, model: ModelConfig) -> list[ConfigProblem]:
    place = f"models[{app_config.models.index(model)}]"
    remedy = "Correct its name, or put what only your provider knows under `extra_body`."
    return [
        ConfigProblem("no client takes this setting.", app_config.origin.config_file, None, f"{place}.{name}", remedy)
        for name in settings
    ]


class UnknownModelError(InvalidRequestError, ValueError):
    """No model has that name, or there is none at all."""

    code = "unknown_model"


def find_model(app_config: AppConfig, name: str | None = None) -> ModelConfig:
    """The entry of that name, or the first one. Raises UnknownModelError, which names what there is instead."""
    if not app_config.models:
        raise UnknownModelError(NO_MODELS)
    if name is None:
        return app_config.models[0]
    for model in app_config.models:
        if _name(model) == name:
            return model
    known = ", ".join(_name(model) for model in app_config.models)
    raise UnknownModelError(
        f"Model {name!r} is not configured. Known models: {known}. Models are listed in config.yaml."
    )


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What people who choose a model see of it."""

    name: str
    model: str
    display_name: str
    description: str | None
    supports_thinking: bool
    supports_reasoning_effort: bool
    supports_vision: bool
    context_window: int | None
    is_default: bool
    discovered_from: ModelOrigin | None
    """Set for a model that no file names."""
    missing: tuple[str, ...]
    """Environment variables that it needs and that are not set."""
    problem: str | None
    """Why it cannot be used now, without paths of the server: members read it."""


def model_info(app_config: AppConfig) -> list[ModelInfo]:
    """All models in the order of the configuration; the first is the default. Nothing is imported or connected."""
    return [_info(model, is_default=index == 0) for index, model in enumerate(app_config.models)]


class ModelCache:
    """Chat models that live on, with their connections, what they remember of earlier requests, and counts of their calls.

    Args:
        max_size: models kept; beyond it the one unused for longest is let go.
        calls: where they are counted; None: apart from those of other caches.
    """

    def __init__(self, max_size: int = 64, calls: ModelCalls | None = None) -> None:
        self._max_size = max_size
        self.calls = calls or ModelCalls()
        self._models: OrderedDict[tuple[object, ...], BaseChatModel] = OrderedDict()
        self._making: dict[tuple[object, ...], threading.Lock] = {}
        self._lock = threading.Lock()

    def get(
        self,
        app_config: AppConfig,
        name: str | None = None,
        thinking_enabled: bool = False,
        *,
        reasoning_effort: str | None = None,
        provider_retries: bool = True,
        settings: tuple[tuple[str, Any], ...] = (),
    ) -> BaseChatModel:
        """The same model for the same snapshot and choice. Arguments and errors as :func:`create_chat_model`; ``settings`` are its
        further ones."""
        model = find_model(app_config, name)
        key = (app_config.id, _name(model), thinking_enabled, reasoning_effort, provider_retries, settings)
        with self._lock:
            if (found := self._models.get(key)) is not None:
                self._models.move_to_end(key)
                return found
            making = self._making.setdefault(key, threading.Lock())
        # Not the lock of all: importing a provider takes a second, and those who want other models must not wait.
        with making:
            if (found := self._models.get(key)) is None:
                found = create_chat_model(
                    _name(model),
                    thinking_enabled,
                    app_config=app_config,
                    provider_retries=provider_retries,
                    reasoning_effort=reasoning_effort,
                    **dict(settings),
                )
                with self._lock:
                    self._models[key] = found
                    self._making.pop(key, None)
                    while len(self._models) > self._max_size:
                        self._models.popitem(last=False)
            return found

    def kept(self, app_config: AppConfig, name: str) -> BaseChatModel | None:
        """Return a model of this entry that was asked for before, whatever its choices; None if there is none."""
        with self._lock:
            return next((model for key, model in self._models.items() if key[:2] == (app_config.id, name)), None)

    async def aclose(self) -> None:
        """Close the connections of all models, on the event loop that used them. They open again when needed."""
        with self._lock:
            models = list(self._models.values())
            self._models.clear()
        for model in models:
            for name in ("root_async_client", "_async_client"):
                close = getattr(vars(model).get(name), "close", None)
                if close is not None:
                    await close()


def _name(model: ModelConfig) -> str:
    # A name that refers to a missing variable raises when read; here it must merely not match.
    return str(model.__dict__.get("name", "?"))


def _info(model: ModelConfig, *, is_default: bool) -> ModelInfo:
    missing = [*missing_in(model)]
    problems = [replace(one.problem(), file=None) for one in missing]
    known = model.__dict__
    return ModelInfo(
        name=_name(model),
        model=str(known.get("model", "?")),
        display_name=known.get("display_name") or _name(model),
        description=known.get("description"),
        supports_thinking=bool(known.get("supports_thinking")),
        supports_reasoning_effort=bool(known.get("supports_reasoning_effort")),
        supports_vision=bool(known.get("supports_vision")),
        context_window=known.get("context_window"),
        is_default=is_default,
        discovered_from=known.get("discovered_from"),
        missing=tuple(dict.fromkeys(name for one in missing for name in one.variables)),
        problem=" ".join(map(str, problems)) or None,
    )


def _model_class(use: str) -> type[BaseChatModel]:
    cls = resolve_class(use, BaseChatModel)
    if cls.__module__.startswith("langchain_openai.") and cls.__name__ == "ChatOpenAI":
        return resolve_class(FAST_OPENAI, BaseChatModel)
    return cls


def _settings(model: ModelConfig, thinking_enabled: bool) -> dict[str, Any]:
    settings = {key: value for key, value in model.settings().items() if not key.startswith("supports_")}
    if thinking_enabled:
        overrides = _when_thinking(model)
        if overrides is not None and not model.supports_thinking:
            raise ValueError(
                f"Model {model.name!r} does not support thinking. Set `supports_thinking: true` in its entry in "
                "config.yaml, or run it with thinking off."
            )
    else:
        overrides = _when_not_thinking(model)
    merged = _merged(settings, overrides or {})
    if base_url := merged.get("base_url"):
        merged["base_url"] = addresses(base_url)[0]  # as `localhost:1234`, too
    return {key: value for key, value in merged.items() if value is not None}


def _when_thinking(model: ModelConfig) -> dict[str, Any] | None:
    """The settings for thinking, with the ``thinking`` shortcut merged in; None if the entry has neither."""
    if model.when_thinking_enabled is None and model.thinking is None:
        return None
    shortcut = {"thinking": require(model.thinking)} if model.thinking is not None else {}
    return _merged(require(model.when_thinking_enabled or {}), shortcut)


def _when_not_thinking(model: ModelConfig) -> dict[str, Any]:
    """The settings for not thinking: as given, else whatever switches off what ``when_thinking_enabled`` switches on."""
    if model.when_thinking_disabled is not None:
        return require(model.when_thinking_disabled)
    enabled = _when_thinking(model) or {}
    extra_body = _mapping(enabled.get("extra_body"))
    template = _mapping(extra_body.get("chat_template_kwargs"))
    switches = {key: False for key in ("thinking", "enable_thinking") if key in template}
    if _mapping(extra_body.get("thinking")).get("type"):
        return {"extra_body": {"thinking": {"type": "disabled"}}, "reasoning_effort": "minimal"}
    if switches:
        return {"extra_body": {"chat_template_kwargs": switches}}
    if _mapping(enabled.get("thinking")).get("type"):
        return {"thinking": {"type": "disabled"}}
    return {}


def _effort(cls: type[BaseChatModel], effort: str) -> dict[str, Any]:
    """The effort in the provider's own scale, as far as its class declares one: not every one starts at ``minimal``."""
    field = cls.model_fields.get("reasoning_effort")
    levels = {level for part in get_args(field.annotation) for level in get_args(part)} if field else set()
    if not levels or effort in levels:
        return {"reasoning_effort": effort}
    return {"reasoning_effort": "low"} if effort == "minimal" and "low" in levels else {}


def _class_defaults(cls: type[BaseChatModel]) -> dict[str, Any]:
    # Providers other than OpenAI itself send the usage of a stream only when asked.
    usage = {"stream_usage": True} if "stream_usage" in cls.model_fields else {}
    return {**usage, **CLASS_DEFAULTS.get(cls.__name__, {})}


def _no_retries(cls: type[BaseChatModel], given: Overrides) -> dict[str, Any]:
    off = {"max_retries": 0, "retry_max_attempts": 1}
    return {} if off.keys() & given.keys() else {key: value for key, value in off.items() if key in cls.model_fields}


def _merged(base: Overrides, overrides: Overrides) -> dict[str, Any]:
    """``base`` with ``overrides``: mappings are merged key by key at every level, anything else is replaced."""
    merged = dict(base)
    for key, value in overrides.items():
        inner = merged.get(key)
        deeper = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(_mapping(inner), value) if deeper else value
    return merged


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
