"""Every key that users know exists under its name and has the default that they know."""

from __future__ import annotations

from typing import Any

import pytest

from deerflow.config import AppConfig, ModelConfig, ToolConfig
from deerflow.config.schema import (
    CheckpointerConfig,
    CustomSubagentConfig,
    GuardrailProviderConfig,
    McpOAuthConfig,
    McpServerConfig,
    MountConfig,
    PricingConfig,
    SubagentOverride,
)
from deerflow.config.section import thawed

ROOT = {
    "config_version": 0,
    "log_level": "info",
    "models": [],
    "channels": {},
    "channel_connections": {},
    "acp_agents": {},
    "checkpointer": None,
    "token_usage.enabled": False,
    "security.native_web_tools": "allow",
    "tool_search.enabled": None,
    "mcp.variables": [],
    "uploads.auto_convert_documents": False,
    "uploads.pdf_converter": "auto",
    "sandbox.use": "auto",
    "sandbox.allow_host_bash": False,
    "sandbox.allow_unsandboxed": False,
    "sandbox.image": "deerflow-sandbox",
    "sandbox.port": 8080,
    "sandbox.replicas": 3,
    "sandbox.container_prefix": "deer-flow-sandbox",
    "sandbox.idle_timeout": 900,
    "sandbox.sleep_after": 120,
    "sandbox.command_timeout": 600,
    "sandbox.max_sessions": 40,
    "sandbox.provisioner_url": "",
    "sandbox.provisioner_token": "",
    "sandbox.opensandbox_url": "",
    "sandbox.opensandbox_key": "",
    "sandbox.opensandbox_volume": "",
    "sandbox.mounts": [],
    "sandbox.environment": {},
    "sandbox.package_hosts": None,
    "sandbox.etc_extra": [],
    "sandbox.tool_image.enabled": True,
    "sandbox.tool_image.requirements": None,
    "sandbox.bash_output_max_chars": 20000,
    "sandbox.read_file_output_max_chars": 50000,
    "sandbox.ls_output_max_chars": 20000,
    "sandbox.network.mode": "none",
    "sandbox.network.allow": [],
    "sandbox.network.deny": [],
    "sandbox.network.ports": [80, 443],
    "sandbox.network.allow_nets": [],
    "sandbox.limits.processes": 512,
    "sandbox.limits.memory_mb": 4096,
    "sandbox.limits.file_size_mb": 2048,
    "sandbox.limits.disk_mb": 10240,
    "sandbox.limits.min_free_disk_mb": 512,
    "sandbox.limits.open_files": 1024,
    "sandbox.limits.cpu_seconds": 3600,
    "subagents.timeout_seconds": 900,
    "subagents.max_turns": None,
    "subagents.agents": {},
    "subagents.custom_agents": {},
    "skills.path": None,
    "skills.container_path": "/mnt/skills",
    "title.enabled": True,
    "title.max_words": 6,
    "title.max_chars": 60,
    "title.model_name": None,
    "summarization.enabled": True,
    "summarization.model_name": None,
    "summarization.trigger": None,
    "summarization.keep.type": "messages",
    "summarization.keep.value": 20,
    "summarization.trim_tokens_to_summarize": 4000,
    "summarization.summary_prompt": None,
    "summarization.preserve_recent_skill_count": 5,
    "summarization.preserve_recent_skill_tokens": 25000,
    "summarization.preserve_recent_skill_tokens_per_skill": 5000,
    "summarization.skill_file_read_tool_names": ["read_file", "read", "view", "cat"],
    "memory.enabled": True,
    "memory.storage_path": "",
    "memory.storage_class": "deerflow.agents.memory.storage.FileMemoryStorage",
    "memory.debounce_seconds": 30,
    "memory.model_name": None,
    "memory.max_facts": 100,
    "memory.fact_confidence_threshold": 0.7,
    "memory.injection_enabled": True,
    "memory.max_injection_tokens": 2000,
    "agents_api.enabled": True,
    "skill_evolution.enabled": False,
    "skill_evolution.moderation_model_name": None,
    "database.backend": "memory",
    "database.sqlite_dir": ".deer-flow/data",
    "database.postgres_url": "",
    "database.postgres_direct_url": "",
    "database.echo_sql": False,
    "database.pool_size": 5,
    "run_events.backend": "memory",
    "run_events.max_trace_content": 10240,
    "run_events.track_token_usage": True,
    "stream_bridge.type": "memory",
    "stream_bridge.redis_url": None,
    "stream_bridge.queue_maxsize": 256,
    "guardrails.enabled": True,
    "guardrails.fail_closed": True,
    "guardrails.passport": None,
    "guardrails.provider": None,
    "spending.currency": "USD",
    **{
        f"spending.{limit}.{key}": value
        for limit in ("per_run", "per_thread", "per_person_day", "per_agent_day")
        for key, value in (("tokens", None), ("money", None), ("at_limit", "ask"))
    },
    "circuit_breaker.failure_threshold": 5,
    "circuit_breaker.recovery_timeout_sec": 60,
    "extensions.mcp_servers": {},
    "extensions.skills": {},
    "extensions.mcp_interceptors": [],
}
TEXT = {"name": "n", "use": "a:b", "model": "m"}
ENTRIES: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (
        ModelConfig,
        TEXT,
        {
            "display_name": None,
            "description": None,
            "use_responses_api": None,
            "output_version": None,
            "supports_thinking": False,
            "supports_reasoning_effort": False,
            "supports_vision": False,
            "when_thinking_enabled": None,
            "when_thinking_disabled": None,
            "thinking": None,
            "pricing": None,
            "context_window": None,
            "max_concurrent_calls": None,
            "calls_per_minute": None,
            "end_reasons": {},
            "fallbacks": [],
        },
    ),
    (
        PricingConfig,
        {},
        {
            "input": 0,
            "output": 0,
            "cache_read": None,
            "cache_write": None,
            "long_prompt": None,
            "currency": "USD",
        },
    ),
    (ToolConfig, {"name": "n", "group": "g", "use": "a:b"}, {"max_results": None, "api_key": None, "timeout": None}),
    (MountConfig, {"host_path": "/a", "container_path": "/b"}, {"read_only": False}),
    (SubagentOverride, {}, {"timeout_seconds": None, "max_turns": None, "model": None, "skills": None}),
    (
        CustomSubagentConfig,
        {"description": "d", "system_prompt": "s"},
        {
            "tools": None,
            "disallowed_tools": ["task", "ask_clarification", "present_files"],
            "skills": None,
            "model": "inherit",
            "max_turns": 50,
            "timeout_seconds": 900,
        },
    ),
    (CheckpointerConfig, {"type": "sqlite"}, {"connection_string": None}),
    (GuardrailProviderConfig, {"use": "a:b"}, {"config": {}}),
    (
        McpServerConfig,
        {},
        {
            "enabled": True,
            "type": "stdio",
            "command": None,
            "args": [],
            "env": {},
            "url": None,
            "headers": {},
            "oauth": None,
            "description": "",
        },
    ),
    (
        McpOAuthConfig,
        {},
        {
            "enabled": True,
            "token_url": None,  # looked up at the server
            "grant_type": None,  # follows from the other keys
            "client_id": None,
            "client_secret": None,
            "refresh_token": None,
            "scope": None,
            "audience": None,
            "token_field": "access_token",
            "token_type_field": "token_type",
            "expires_in_field": "expires_in",
            "default_token_type": "Bearer",
            "refresh_skew_seconds": 60,
            "extra_token_params": {},
        },
    ),
]


@pytest.mark.parametrize(("key", "default"), ROOT.items(), ids=list(ROOT))
def test_every_known_key_has_its_default(key: str, default: Any) -> None:
    value: Any = AppConfig()
    for part in key.split("."):
        value = getattr(value, part)
    assert thawed(value) == default


@pytest.mark.parametrize(("section", "required", "defaults"), ENTRIES, ids=[entry[0].__name__ for entry in ENTRIES])
def test_every_known_key_of_an_entry_has_its_default(
    section: type[Any], required: dict[str, Any], defaults: dict[str, Any]
) -> None:
    made = section(**required)
    assert {key: thawed(getattr(made, key)) for key in defaults} == defaults


@pytest.mark.parametrize(("section", "required", "defaults"), ENTRIES, ids=[entry[0].__name__ for entry in ENTRIES])
def test_entries_demand_what_they_cannot_do_without(
    section: type[Any], required: dict[str, Any], defaults: dict[str, Any]
) -> None:
    for name in required:
        with pytest.raises(ValueError, match=name):
            section(**{key: value for key, value in required.items() if key != name})


def test_the_tools_of_the_sandbox_and_three_for_the_web_are_there_without_a_file() -> None:
    *sandbox, capture, search, fetch = AppConfig().tools
    assert [tool.name for tool in sandbox] == ["ls", "read_file", "glob", "grep", "write_file", "str_replace", "bash"]
    assert all(tool.use == f"deerflow.sandbox.tools:{tool.name}_tool" for tool in sandbox)
    assert {tool.group for tool in sandbox} == {"file:read", "file:write", "bash"}
    assert (capture.name, capture.group, capture.use) == (
        "web_capture",
        "web",
        "deerflow.community.capture.tools:web_capture_tool",
    )
    assert (search.name, search.group, search.use) == (
        "web_search",
        "web",
        "deerflow.community.ddg_search.tools:web_search_tool",
    )
    assert (fetch.name, fetch.group, fetch.use) == ("web_fetch", "web", "deerflow.community.fetch.tools:web_fetch_tool")


@pytest.mark.parametrize(
    ("section", "key", "bad"),
    [
        ("title", "max_words", 0),
        ("title", "max_words", 21),
        ("title", "max_chars", 9),
        ("title", "prompt_template", "no placeholders"),
        ("memory", "debounce_seconds", 301),
        ("memory", "max_facts", 9),
        ("memory", "max_facts", 501),
        ("memory", "fact_confidence_threshold", 1.1),
        ("memory", "max_injection_tokens", 99),
        ("subagents", "timeout_seconds", 0),
        ("subagents", "max_turns", -1),
        ("subagents", "agents", {"a": {"model": ""}}),
        ("sandbox", "bash_output_max_chars", -1),
        ("sandbox", "network", "some"),
        ("summarization", "keep", {"type": "pages", "value": 1}),
        ("acp_agents", "a", {"command": "x"}),
        ("acp_agents", "a", {"description": "x"}),
    ],
)
def test_values_out_of_bounds_are_refused(section: str, key: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=section):
        AppConfig.model_validate({section: {key: bad}})
