"""Configuration: the sections of ``config.yaml`` and ``extensions_config.json``, where they are found and how they are read.

Names are imported when first used, so that importing this package costs nothing; ``__init__.pyi`` tells type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "access": "get_app_config get_extensions_config get_memory_config get_paths",
    "agents": "AcpAgentConfig AgentsApiConfig ContextSize CustomSubagentConfig MemoryConfig SkillEvolutionConfig SkillsConfig "
    "SubagentOverride SubagentsConfig SummarizationConfig TitleConfig",
    "app": "AppConfig CONFIG_VERSION",
    "discovery": "discover_models",
    "edit": "DELETE edit_json edit_yaml",
    "env": "MissingEnv missing_in require",
    "environment": "export_environ load_environ",
    "errors": "ConfigError ConfigProblem",
    "extensions": "ExtensionsConfig McpOAuthConfig McpServerConfig SkillStateConfig",
    "load": "load_config load_extensions",
    "locate": "ConfigFiles example_file find_files project_root",
    "models": "ModelConfig PricingConfig",
    "origin": "Origin",
    "paths": "Paths join_host_path",
    "safety": "CircuitBreakerConfig GuardrailProviderConfig GuardrailsConfig TokenUsageConfig",
    "sandbox": "LimitsConfig MountConfig NetworkConfig SandboxConfig ToolImageConfig",
    "secrets": "MASK is_secret_key mask_secrets",
    "source": "ConfigSource",
    "storage": "CheckpointerConfig DatabaseConfig RunEventsConfig StreamBridgeConfig",
    "tools": "ToolConfig ToolGroupConfig ToolSearchConfig UploadsConfig",
    "tracing": "get_enabled_tracing_providers get_explicitly_enabled_tracing_providers get_tracing_config is_tracing_enabled "
    "validate_enabled_tracing_providers",
    "upgrade": "UpgradeReport upgrade_config",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
