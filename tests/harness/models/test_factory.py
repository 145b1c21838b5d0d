from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_openai import ChatOpenAI

from deerflow.config import AppConfig, ConfigError, discover_models
from deerflow.config.discovery import providers
from deerflow.models import ModelCache, create_chat_model, model_info

HERE = "tests.support.recorder_models:"


def config(*models: dict[str, Any]) -> AppConfig:
    entries = [{"name": f"m{i}", "use": HERE + "Recorder", "model": "vendor-id", **m} for i, m in enumerate(models)]
    return AppConfig.model_validate({"models": entries})


def make(model: dict[str, Any] | None = None, thinking: bool = False, **kwargs: Any) -> Any:
    return create_chat_model(None, thinking, app_config=config(model or {}), **kwargs)


# --- which model -----------------------------------------------------------------------------------------------------


def test_no_models_is_a_clear_error_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"^No chat models are configured.*OPENAI_API_KEY.*config\.yaml"):
        create_chat_model(app_config=AppConfig())


def test_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'nope'.*m0, m1"):
        create_chat_model("nope", app_config=config({}, {}))


def test_without_a_name_the_first_model_is_made() -> None:
    assert create_chat_model(app_config=config({"model": "a"}, {"model": "b"})).model == "a"  # type: ignore[attr-defined]
    assert create_chat_model("m1", app_config=config({"model": "a"}, {"model": "b"})).model == "b"  # type: ignore[attr-defined]


def test_class_that_is_no_chat_model_is_refused() -> None:
    with pytest.raises((ValueError, ImportError)):
        make({"use": HERE + "NOT_A_MODEL"})


def test_missing_provider_package_says_how_to_install_it() -> None:
    with pytest.raises(ImportError, match=r"langchain[-_]nowhere"):
        make({"use": "langchain_nowhere:ChatNowhere"})


@pytest.mark.filterwarnings("ignore:.*default parameter")
def test_a_setting_that_no_client_takes_is_named_before_anything_is_sent() -> None:
    entry = {"use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "sk-x", "api_base": "http://h/v1"}
    with pytest.raises(ConfigError, match=r"^models\[0\]\.api_base: no client takes this setting.*extra_body"):
        create_chat_model(app_config=config(entry))


@pytest.mark.parametrize(
    ("entry", "asks"),
    [
        ({"base_url": "http://h/v1"}, False),
        ({"base_url": "http://h/v1", "use_responses_api": True}, True),
        ({"base_url": "http://h/v1", "reasoning": {"effort": "low"}}, True),
        ({"base_url": "https://r.openai.azure.com/openai/v1"}, True),
        ({}, True),
    ],
)
@pytest.mark.parametrize("name", ["gpt-6-luna", "gpt-6.1-codex"])
def test_a_name_alone_asks_for_the_responses_api_at_openai_only(name: str, entry: dict[str, Any], asks: bool) -> None:
    model: Any = create_chat_model(
        app_config=config({"use": "langchain_openai:ChatOpenAI", "model": name, "api_key": "k", **entry})
    )
    assert model._asks_for_responses({"tools": [{"type": "function"}]}) is asks


def test_a_setting_that_the_class_refuses_is_named_without_its_value() -> None:
    entry = {"use": "deerflow.models.openai:OpenAIChatModel", "model": "m", "api_key": "sk-x", "temperature": "hot!"}
    with pytest.raises(ConfigError, match=r"^models\[1\]\.temperature: should be a valid number.*'m1'") as refused:
        create_chat_model("m1", app_config=config({}, entry))
    assert "hot!" not in str(refused.value) and "sk-x" not in str(refused.value)


def test_missing_environment_variable_is_named_when_the_model_is_used() -> None:
    from deerflow.config.env import resolve

    broken = config({"api_key": resolve("$NO_SUCH_KEY_SET", {}, key="models[0].api_key")}, {"model": "fine"})
    with pytest.raises(ConfigError, match="NO_SUCH_KEY_SET"):
        create_chat_model("m0", app_config=broken)
    assert create_chat_model("m1", app_config=broken) is not None


# --- which settings --------------------------------------------------------------------------------------------------


def test_provider_keys_pass_and_our_own_keys_do_not() -> None:
    model = make(
        {
            "use": HERE + "Recorder",
            "temperature": 0.5,
            "max_tokens": 9,
            "display_name": "Nice",
            "description": "d",
            "supports_vision": True,
            "supports_anything_else": True,
            "pricing": {"input": 1},
            "context_window": 5,
            "fallbacks": ["x"],
        }
    )
    assert (model.temperature, model.max_tokens, model.model) == (0.5, 9, "vendor-id")


def test_nulls_are_left_to_the_provider() -> None:
    assert make({"max_retries": None}).max_retries == 2


def test_caller_wins_over_the_configuration() -> None:
    assert make({"max_tokens": 9}, max_tokens=5).max_tokens == 5


def test_building_a_model_leaves_the_configuration_as_it_is() -> None:
    body = {"top_k": 1, "thinking": {"type": "enabled"}}
    snapshot = config({"supports_thinking": True, "when_thinking_enabled": {"extra_body": body}})
    create_chat_model(None, True, app_config=snapshot).extra_body["top_k"] = 2  # type: ignore[attr-defined]
    create_chat_model(None, False, app_config=snapshot)
    assert snapshot.models[0].when_thinking_enabled == {"extra_body": {"top_k": 1, "thinking": {"type": "enabled"}}}


# --- thinking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [{"when_thinking_enabled": {}}, {"thinking": {"type": "enabled"}}])
def test_thinking_on_a_model_that_cannot_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"'m0' does not support thinking.*supports_thinking"):
        make({**extra, "supports_thinking": False}, thinking=True)


def test_thinking_without_any_section_changes_nothing() -> None:
    assert make({}, thinking=True).thinking is None


def test_thinking_keeps_the_rest_of_extra_body() -> None:
    entry = {
        "supports_thinking": True,
        "extra_body": {"top_k": 20, "nested": {"a": 1}},
        "when_thinking_enabled": {"extra_body": {"nested": {"b": 2}, "thinking": {"type": "enabled"}}},
    }
    expected = {"top_k": 20, "nested": {"a": 1, "b": 2}, "thinking": {"type": "enabled"}}
    assert make(entry, thinking=True).extra_body == expected


def test_thinking_shortcut_wins_key_by_key() -> None:
    entry = {
        "supports_thinking": True,
        "when_thinking_enabled": {"thinking": {"type": "adaptive", "display": "x"}, "temperature": None},
        "thinking": {"type": "enabled"},
        "temperature": 0.3,
    }
    model = make(entry, thinking=True)
    assert model.thinking == {"type": "enabled", "display": "x"}
    assert model.temperature is None


def test_not_thinking_uses_the_given_section_and_nothing_else() -> None:
    entry = {
        "extra_body": {"top_k": 1},
        "when_thinking_enabled": {"extra_body": {"thinking": {"type": "enabled"}}},
        "when_thinking_disabled": {"extra_body": {"quick": True}},
        "supports_reasoning_effort": True,
    }
    model = make(entry)
    assert model.extra_body == {"top_k": 1, "quick": True}
    assert model.reasoning_effort is None


def test_not_thinking_switches_off_a_gateway_style_block() -> None:
    entry = {
        "supports_reasoning_effort": True,
        "extra_body": {"top_k": 20},
        "when_thinking_enabled": {"extra_body": {"thinking": {"type": "enabled"}}},
    }
    model = make(entry)
    assert model.extra_body == {"top_k": 20, "thinking": {"type": "disabled"}}
    assert model.reasoning_effort == "minimal"


@pytest.mark.parametrize("key", ["thinking", "enable_thinking"])
def test_not_thinking_switches_off_a_chat_template(key: str) -> None:
    entry = {
        "extra_body": {"top_k": 20, "chat_template_kwargs": {"other": 1}},
        "when_thinking_enabled": {"extra_body": {"chat_template_kwargs": {key: True}}},
    }
    assert make(entry).extra_body == {"top_k": 20, "chat_template_kwargs": {"other": 1, key: False}}


def test_not_thinking_switches_off_a_native_setting() -> None:
    assert make({"thinking": {"type": "enabled", "budget_tokens": 5}}).thinking == {"type": "disabled"}


def test_not_thinking_without_any_section_changes_nothing() -> None:
    model = make({"extra_body": {"top_k": 1}})
    assert (model.extra_body, model.thinking) == ({"top_k": 1}, None)


# --- reasoning effort ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("gateway", [False, True])
@pytest.mark.parametrize("asked", [None, "high", "missing"])
@pytest.mark.parametrize("configured", [None, "low"])
@pytest.mark.parametrize("supported", [False, True])
def test_reasoning_effort_may_come_from_anywhere(
    supported: bool, configured: str | None, asked: str | None, gateway: bool, thinking: bool
) -> None:
    entry: dict[str, Any] = {"supports_reasoning_effort": supported, "supports_thinking": True}
    if configured:
        entry["reasoning_effort"] = configured
    if gateway:
        entry["when_thinking_enabled"] = {"extra_body": {"thinking": {"type": "enabled"}}}
    kwargs = {} if asked == "missing" else {"reasoning_effort": asked}
    minimal = "minimal" if gateway and not thinking else None
    wanted = ("high" if asked == "high" else None) or minimal or configured
    assert make(entry, thinking=thinking, **kwargs).reasoning_effort == (wanted if supported else None)


@pytest.mark.parametrize(("asked", "given"), [("minimal", "low"), ("high", "high"), ("unheard-of", None)])
def test_effort_is_translated_into_the_scale_of_the_class(asked: str, given: str | None) -> None:
    entry = {"use": HERE + "Scaled", "supports_reasoning_effort": True}
    assert make(entry, reasoning_effort=asked).reasoning_effort == given


# --- defaults of classes ---------------------------------------------------------------------------------------------


def test_usage_of_streams_is_asked_for_where_the_class_knows_it() -> None:
    assert make({}).stream_usage is True
    assert make({"stream_usage": False}).stream_usage is False
    assert not hasattr(make({"use": HERE + "Silent"}), "stream_usage")


@pytest.mark.parametrize("key", ["base_url", "openai_api_base"])
def test_openai_with_another_address_tells_its_usage(key: str) -> None:
    model = make({"use": "langchain_openai:ChatOpenAI", "api_key": "k", key: "http://127.0.0.1:1/v1"})
    assert model.stream_usage is True


@pytest.mark.parametrize("use", ["langchain_openai:ChatOpenAI", "langchain_openai.chat_models:ChatOpenAI"])
def test_openai_models_are_served_by_the_fast_subclass(use: str) -> None:
    model = make({"use": use, "api_key": "k"})
    assert isinstance(model, ChatOpenAI)
    assert type(model).__name__ == "OpenAIChatModel"


def test_mindie_retries_once_by_default() -> None:
    assert make({"use": HERE + "MindIEChatModel"}).max_retries == 1
    assert make({"use": HERE + "MindIEChatModel", "max_retries": 4}).max_retries == 4


def test_retries_of_the_provider_can_be_left_to_the_caller() -> None:
    assert make({}, provider_retries=False).max_retries == 0
    assert make({"max_retries": 7}, provider_retries=False).max_retries == 7
    assert make({"use": HERE + "Silent"}, provider_retries=False).model == "vendor-id"
    claude = {"use": "deerflow.models.claude_provider:ClaudeChatModel", "api_key": "k"}
    assert make(claude, provider_retries=False).retry_max_attempts == 1
    assert make({**claude, "max_retries": 4}, provider_retries=False).retry_max_attempts == 5


def test_callbacks_of_the_caller_are_attached() -> None:
    from langchain_core.callbacks import BaseCallbackHandler

    handler = BaseCallbackHandler()
    assert make({}, callbacks=[handler]).callbacks == [handler]


@pytest.fixture
def codex_home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    auth = tmp_path / "auth.json"
    auth.write_text('{"tokens": {"access_token": "t", "account_id": "a"}}')
    monkeypatch.setenv("CODEX_AUTH_PATH", str(auth))
    yield


@pytest.mark.parametrize(
    ("supported", "configured", "asked", "thinking", "expected"),
    [
        (True, None, "high", False, "none"),
        (True, None, "high", True, "high"),
        (True, "xhigh", None, True, "xhigh"),
        (True, "xhigh", "minimal", True, "xhigh"),
        (True, None, None, True, "medium"),
        (False, "xhigh", "high", True, "medium"),
    ],
)
def test_codex_effort_is_its_thinking_switch(
    codex_home: None, supported: bool, configured: str | None, asked: str | None, thinking: bool, expected: str
) -> None:
    entry = {
        "use": "deerflow.models.openai_codex_provider:CodexChatModel",
        "max_tokens": 100,
        "supports_reasoning_effort": supported,
        "reasoning_effort": configured,
    }
    assert make(entry, thinking=thinking, reasoning_effort=asked).reasoning_effort == expected


@pytest.mark.parametrize(
    "use",
    [
        "langchain_openai:ChatOpenAI",
        "langchain_anthropic:ChatAnthropic",
        "langchain_deepseek:ChatDeepSeek",
        "deerflow.models.claude_provider:ClaudeChatModel",
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        "deerflow.models.patched_openai:PatchedChatOpenAI",
        "deerflow.models.patched_minimax:PatchedChatMiniMax",
        "deerflow.models.vllm_provider:VllmChatModel",
        "deerflow.models.mindie_provider:MindIEChatModel",
        "deerflow.models.demo:DemoChatModel",
    ],
)
@pytest.mark.parametrize("thinking", [False, True])
def test_every_provider_that_users_name_can_be_made(use: str, thinking: bool) -> None:
    model = make(
        {"use": use, "api_key": "k", "max_tokens": 2000, "supports_reasoning_effort": True},
        thinking=thinking,
        reasoning_effort="minimal",
    )
    assert isinstance(model, BaseChatModel)


def discovered() -> list[str]:
    return sorted({name for provider in providers() if provider.presets for name in provider.keys[:1]})


@pytest.mark.parametrize("variable", discovered())
@pytest.mark.parametrize("thinking", [False, True])
def test_every_discovered_model_can_be_made(variable: str, thinking: bool) -> None:
    snapshot = AppConfig(models=discover_models({variable: "a-key"}, lambda *_: ()))
    assert snapshot.models
    for model in snapshot.models:
        can = thinking and model.supports_thinking
        made = create_chat_model(model.name, can, app_config=snapshot, reasoning_effort="minimal")
        assert isinstance(made, BaseChatModel)


def test_where_nothing_is_found_the_demo_model_is_made() -> None:
    snapshot = AppConfig(models=discover_models({}, lambda *_: ()))
    assert create_chat_model(app_config=snapshot)._llm_type == "Demo model (scripted)"


# --- listing ---------------------------------------------------------------------------------------------------------


def test_listing_tells_what_a_person_choosing_must_know() -> None:
    first, second = model_info(config({"display_name": "Nice", "supports_vision": True, "context_window": 7}, {}))
    assert (first.display_name, first.supports_vision, first.context_window, first.is_default) == (
        "Nice",
        True,
        7,
        True,
    )
    assert (second.display_name, second.is_default, second.problem) == ("m1", False, None)


def test_listing_survives_models_that_cannot_be_used() -> None:
    from deerflow.config.env import resolve

    missing = resolve("$NO_SUCH_KEY_SET", {}, key="models[0].api_key")
    (info,) = model_info(config({"api_key": missing, "model": missing, "use": "no.such:Thing"}))
    assert info.missing == ("NO_SUCH_KEY_SET",)
    assert info.problem is not None
    assert "NO_SUCH_KEY_SET" in info.problem


def test_listing_of_nothing_is_empty() -> None:
    assert model_info(AppConfig()) == []


# --- cache -----------------------------------------------------------------------------------------------------------


def test_same_choice_gives_the_same_instance() -> None:
    cache, snapshot = ModelCache(), config({"supports_reasoning_effort": True})
    model = cache.get(snapshot, "m0", reasoning_effort="low")
    assert cache.get(snapshot, None, reasoning_effort="low") is model
    assert cache.get(config({"supports_reasoning_effort": True}), "m0", reasoning_effort="low") is model


def test_any_other_choice_gives_another_instance() -> None:
    cache, snapshot = ModelCache(), config({"supports_thinking": True}, {})
    models = [
        cache.get(snapshot),
        cache.get(snapshot, "m1"),
        cache.get(snapshot, thinking_enabled=True),
        cache.get(snapshot, reasoning_effort="low"),
        cache.get(snapshot, provider_retries=False),
        cache.get(config({"temperature": 1.0})),
    ]
    assert len({id(model) for model in models}) == len(models)


def test_cache_is_bounded_and_keeps_what_was_used_last() -> None:
    cache, snapshot = ModelCache(max_size=2), config({}, {}, {})
    first, second = cache.get(snapshot, "m0"), cache.get(snapshot, "m1")
    assert cache.get(snapshot, "m0") is first
    cache.get(snapshot, "m2")
    assert cache.get(snapshot, "m0") is first
    assert cache.get(snapshot, "m1") is not second


def test_failure_is_not_cached() -> None:
    cache, snapshot = ModelCache(), config({"use": "no_such_package:Thing"})
    for _ in range(2):
        with pytest.raises(ImportError):
            cache.get(snapshot)
