from __future__ import annotations

import pytest

from deerflow.config import (
    ConfigError,
    get_enabled_tracing_providers,
    get_explicitly_enabled_tracing_providers,
    get_tracing_config,
    is_tracing_enabled,
    validate_enabled_tracing_providers,
)

LANGFUSE = {"LANGFUSE_TRACING": "on", "LANGFUSE_PUBLIC_KEY": "p", "LANGFUSE_SECRET_KEY": "s"}


def test_nothing_is_traced_unless_asked_for() -> None:
    config = get_tracing_config({})
    assert not is_tracing_enabled({})
    assert (config.langsmith.project, config.langsmith.endpoint, config.langfuse.host) == (
        "deer-flow",
        "https://api.smith.langchain.com",
        "https://cloud.langfuse.com",
    )
    validate_enabled_tracing_providers({})


@pytest.mark.parametrize("switch", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING"])
@pytest.mark.parametrize("key", ["LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"])
def test_old_and_new_names_are_understood(switch: str, key: str) -> None:
    assert get_enabled_tracing_providers({switch: "TRUE", key: "k"}) == ["langsmith"]


def test_a_new_switch_that_is_off_beats_an_old_one() -> None:
    assert not is_tracing_enabled(
        {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "true", "LANGSMITH_API_KEY": "k"}
    )


def test_both_services_can_be_on() -> None:
    assert get_enabled_tracing_providers({**LANGFUSE, "LANGSMITH_TRACING": "1", "LANGSMITH_API_KEY": "k"}) == [
        "langsmith",
        "langfuse",
    ]


def test_what_is_missing_is_named() -> None:
    environ = {"LANGSMITH_TRACING": "1", "LANGFUSE_TRACING": "1", "LANGFUSE_PUBLIC_KEY": "p"}
    assert get_explicitly_enabled_tracing_providers(environ) == ["langsmith", "langfuse"]
    assert get_enabled_tracing_providers(environ) == []
    with pytest.raises(ConfigError) as caught:
        validate_enabled_tracing_providers(environ)
    assert "LANGSMITH_API_KEY" in str(caught.value)
    assert "LANGFUSE_SECRET_KEY" in str(caught.value)


def test_keys_are_not_printed() -> None:
    assert "sk-secret" not in repr(
        get_tracing_config({"LANGSMITH_API_KEY": "sk-secret", "LANGFUSE_SECRET_KEY": "sk-secret"})
    )
