"""Configuration: the sections of ``config.yaml`` and ``extensions_config.json``, where they are found and how they are read."""

from __future__ import annotations

from deerflow.config.discovery import discover_models
from deerflow.config.document import ConfigError, ConfigProblem
from deerflow.config.env import (
    MissingEnv,
    get_enabled_tracing_providers,
    get_explicitly_enabled_tracing_providers,
    get_tracing_config,
    is_secret_key,
    is_tracing_enabled,
    mask_secrets,
    validate_enabled_tracing_providers,
)
from deerflow.config.paths import Paths, example_file, get_paths, project_root
from deerflow.config.schema import (
    CONFIG_VERSION,
    AppConfig,
    ExtensionsConfig,
    MemoryConfig,
    ModelConfig,
    SkillEvolutionConfig,
    SkillsConfig,
    ToolConfig,
)
from deerflow.config.section import missing_in, require
from deerflow.config.source import (
    ConfigSource,
    get_app_config,
    get_extensions_config,
    get_memory_config,
    load_config,
    upgrade_config,
)

__all__ = [
    "CONFIG_VERSION",
    "AppConfig",
    "ConfigError",
    "ConfigProblem",
    "ConfigSource",
    "ExtensionsConfig",
    "MemoryConfig",
    "MissingEnv",
    "ModelConfig",
    "Paths",
    "SkillEvolutionConfig",
    "SkillsConfig",
    "ToolConfig",
    "discover_models",
    "example_file",
    "get_app_config",
    "get_enabled_tracing_providers",
    "get_explicitly_enabled_tracing_providers",
    "get_extensions_config",
    "get_memory_config",
    "get_paths",
    "get_tracing_config",
    "is_secret_key",
    "is_tracing_enabled",
    "load_config",
    "mask_secrets",
    "missing_in",
    "project_root",
    "require",
    "upgrade_config",
    "validate_enabled_tracing_providers",
]
