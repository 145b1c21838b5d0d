"""Sections forgive, keep and protect."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from deerflow.config import AppConfig, ConfigError, MissingEnv, ModelConfig, require
from deerflow.config.env import resolve_tree
from deerflow.config.section import Section

MODEL = {"name": "m", "use": "a:B", "model": "x"}


def made(**data: Any) -> Any:
    return AppConfig.model_validate(resolve_tree(data, {"SET": "value"}))


def sections() -> list[str]:
    return sorted(AppConfig.model_fields)


@pytest.mark.parametrize("name", sections())
def test_a_null_section_has_its_defaults(name: str) -> None:
    assert AppConfig.model_validate({name: None}).id == AppConfig().id


def test_null_inside_a_section_means_default_unless_null_means_something() -> None:
    config = made(
        title={"max_words": None},
        sandbox={"limits": None, "network": None, "environment": {"A": None}},
        summarization={"trim_tokens_to_summarize": None},
    )
    assert config.title.max_words == 6
    assert config.sandbox.limits.processes == 512
    assert config.sandbox.network.mode == "none"
    assert config.sandbox.environment == {"A": ""}
    assert config.summarization.trim_tokens_to_summarize is None


def test_unknown_keys_are_kept_where_providers_are_configured() -> None:
    config = made(
        mine={"a": [1]},
        models=[{**MODEL, "temperature": 0.5, "extra_body": {"a": [1, 2]}}],
        tools=[{"name": "t", "group": "g", "use": "a:b", "region": "eu"}],
        tool_groups=[{"name": "g", "label": "G"}],
        sandbox={"region": "eu"},
    )
    assert config.model_extra == {"mine": {"a": (1,)}}
    assert config.models[0].settings() == {"model": "x", "temperature": 0.5, "extra_body": {"a": [1, 2]}}
    assert config.tools[0].options() == {"region": "eu"}
    assert config.tool_groups[0].model_extra == {"label": "G"}
    assert config.sandbox.options() == {"region": "eu"}


def test_a_snapshot_cannot_be_changed_anywhere() -> None:
    config: Any = made(
        models=[{**MODEL, "extra_body": {"a": [1]}}],
        channels={"slack": {"users": ["a"]}},
        sandbox={"environment": {"A": "b"}},
    )
    for change in (
        lambda: setattr(config, "log_level", "debug"),
        lambda: setattr(config.title, "max_words", 3),
        lambda: config.channels["slack"].update(x=1),
        lambda: config.channels["slack"].pop("users"),
        lambda: config.sandbox.environment.__setitem__("A", "c"),
        lambda: config.models[0].extra_body["a"].append(2),
        lambda: made().sandbox.environment.update(A="c"),
    ):
        with pytest.raises((ValidationError, TypeError, AttributeError)):
            change()


def test_constructor_settings_are_a_private_copy() -> None:
    model = ModelConfig(**MODEL, extra_body={"a": [1]})  # type: ignore[call-arg]
    model.settings()["extra_body"]["a"].append(2)
    assert model.settings()["extra_body"] == {"a": [1]}


def test_settings_leave_out_nulls_and_our_own_keys() -> None:
    model = ModelConfig.model_validate(
        {
            **MODEL,
            "display_name": "M",
            "supports_vision": True,
            "pricing": {"input": 1},
            "context_window": 5,
            "fallbacks": ["o"],
            "thinking": {"type": "x"},
            "top_p": None,
        }
    )
    assert model.settings() == {"model": "x"}


def test_of_two_entries_with_one_name_the_first_counts() -> None:
    config = made(
        models=[MODEL, {**MODEL, "model": "second"}],
        tools=[{"name": "t", "group": "g", "use": "a:b"}, {"name": "t", "group": "h", "use": "a:c"}],
    )
    assert [model.model for model in config.models] == ["x"]
    assert [tool.group for tool in config.tools] == ["g"]


def test_an_empty_tool_list_means_no_tools() -> None:
    assert made(tools=[]).tools == ()


@pytest.mark.parametrize(
    ("written", "mode"), [("internet", "internet"), ({"mode": "host"}, "host"), (False, "none"), (None, "none")]
)
def test_a_bare_word_is_a_network_mode(written: Any, mode: str) -> None:
    assert made(sandbox={"network": written}).sandbox.network.mode == mode


def test_one_summarization_trigger_needs_no_list() -> None:
    config = made(summarization={"trigger": {"type": "tokens", "value": 15564}})
    assert [(trigger.type, trigger.value) for trigger in config.summarization.trigger or ()] == [("tokens", 15564)]
    assert isinstance(config.summarization.keep.value, int)


def test_environment_values_become_text() -> None:
    assert made(sandbox={"environment": {"PORT": 8080, "DEBUG": True}}).sandbox.environment == {
        "PORT": "8080",
        "DEBUG": "true",
    }


# values whose variable is missing ----------------------------------------------------------------------------------------


def test_a_missing_variable_is_no_matter_until_it_is_used() -> None:
    config = made(
        models=[MODEL, {**MODEL, "name": "other", "api_key": "$NOT_SET"}],
        channels={"slack": {"enabled": False, "bot_token": "$NOT_SET"}},
        acp_agents={"a": {"command": "x", "description": "d", "env": {"K": "$NOT_SET"}}},
        sandbox={"port": "$NOT_SET"},
        memory={"max_facts": "${NOT_SET}"},
    )
    assert config.get_model("m").settings() == {"model": "x"}
    assert config.memory.enabled
    for use, key in (
        (lambda: config.get_model("other").settings(), "models[1].api_key"),
        (lambda: config.models[1].api_key, "models[1].api_key"),
        (lambda: require(config.channels["slack"]), "channels.slack.bot_token"),
        (lambda: require(config.acp_agents["a"].env), "acp_agents.a.env.K"),
        (lambda: config.sandbox.port, "sandbox.port"),
        (lambda: getattr(config.memory, "max_facts", 1), "memory.max_facts"),
    ):
        with pytest.raises(ConfigError) as caught:
            use()
        assert key in str(caught.value)
        assert "NOT_SET" in str(caught.value)


def test_even_a_required_key_may_be_missing_until_it_is_used() -> None:
    config = made(models=[{"name": "$NOT_SET", "use": "a:B", "model": "${ALSO_NOT}"}, MODEL])
    assert config.get_model("m").model == "x"
    with pytest.raises(ConfigError, match="ALSO_NOT"):
        _ = config.models[0].model


def test_all_missing_variables_of_a_model_are_named_at_once() -> None:
    model = made(models=[{**MODEL, "api_key": "$ONE", "when_thinking_enabled": {"x": ["${TWO}"]}}]).models[0]
    with pytest.raises(ConfigError) as caught:
        model.settings()
    assert len(caught.value.problems) == 2


def test_require_gives_plain_containers() -> None:
    config = made(channels={"a": {"list": ["$SET", {"b": 1}]}})
    taken = require(config.channels["a"])
    taken["list"].append("mine")
    assert config.channels["a"] == {"list": ("value", {"b": 1})}


def test_missing_values_survive_copying_and_pickling() -> None:
    config = made(models=[{**MODEL, "api_key": "$NOT_SET"}], sandbox={"port": "$NOT_SET"})
    for twin in (copy.deepcopy(config), pickle.loads(pickle.dumps(config)), config.model_copy()):
        assert twin.id == config.id
        with pytest.raises(ConfigError, match=r"sandbox\.port"):
            _ = twin.sandbox.port
        with pytest.raises(ConfigError, match="NOT_SET"):
            twin.get_model().settings()


# identity ----------------------------------------------------------------------------------------------------------------


def test_equal_settings_have_equal_ids_and_others_differ() -> None:
    base = made(models=[{**MODEL, "api_key": "$SET"}])
    assert base.id == made(models=[{"api_key": "value", **MODEL}]).id
    others = [
        made(models=[{**MODEL, "api_key": "other"}]),
        made(models=[{**MODEL, "api_key": "$NOT_SET"}]),
        made(models=[{**MODEL, "api_key": "value"}], title={"max_words": 5}),
        made(models=[{**MODEL, "api_key": "value"}], mine=1),
        AppConfig(),
    ]
    assert len({base.id, *(other.id for other in others)}) == 6


def test_a_changed_copy_has_an_id_of_its_own() -> None:
    config = AppConfig()
    before = config.id
    assert config.model_copy(update={"log_level": "debug"}).id != before
    assert config.id == before


def test_a_snapshot_can_key_a_cache() -> None:
    assert {AppConfig(): 1}[AppConfig()] == 1


# secrets ------------------------------------------------------------------------------------------------------------------


def test_printing_a_snapshot_shows_no_secret() -> None:
    config = made(
        models=[{**MODEL, "api_key": "sk-very-secret", "gemini_api_key": "sk-very-secret"}],
        database=dict.fromkeys(("postgres_url", "postgres_direct_url"), "postgres://u:sk-very-secret@h/d"),
    )
    assert "sk-very-secret" not in repr(config) + str(config) + repr(config.models)


# look-ups -----------------------------------------------------------------------------------------------------------------


def test_the_first_model_is_the_default() -> None:
    config = made(models=[MODEL, {**MODEL, "name": "second"}])
    assert config.get_model().name == "m"
    assert config.get_model("second").name == "second"


def test_asking_for_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no model 'x'.*Known models: m"):
        made(models=[MODEL]).get_model("x")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        AppConfig().get_model()


@pytest.mark.parametrize(
    ("written", "number"), [(8, 8), ("7", 7), ("x", 0), (None, 0), (-1, 0), (True, 0), (1.5, 0), ([], 0)]
)
def test_any_version_can_be_read(written: Any, number: int) -> None:
    assert AppConfig.model_validate({"config_version": written}).config_version == number


def test_log_levels_are_read_in_any_case() -> None:
    assert made(log_level="WARN").log_level == "warning"


def test_missing_env_is_the_reference_as_text_and_json() -> None:
    value = MissingEnv("$A", ("A",), "k")
    assert json.dumps([value]) == '["$A"]'
    assert isinstance(value, str)


def test_every_section_is_frozen() -> None:
    def all_sections(base: type[Section]) -> list[type[Section]]:
        return [base, *(below for sub in base.__subclasses__() for below in all_sections(sub))]

    assert all(section.model_config.get("frozen") for section in all_sections(Section))
