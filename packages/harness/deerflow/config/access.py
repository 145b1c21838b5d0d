"""Short cuts for code that is handed no configuration: each call reads anew unless it is given a source."""

from __future__ import annotations

from pathlib import Path

from deerflow.config.agents import MemoryConfig
from deerflow.config.app import AppConfig
from deerflow.config.extensions import ExtensionsConfig
from deerflow.config.load import load_config
from deerflow.config.paths import Paths
from deerflow.config.source import ConfigSource


def get_app_config(source: ConfigSource | None = None) -> AppConfig:
    """The configuration in force. Keep a :class:`ConfigSource` instead of calling this often: without one every file is read.

    Raises:
        FileNotFoundError, ConfigError: see :func:`load_config`.
    """
    return source.current() if source else load_config()


def get_extensions_config(source: ConfigSource | None = None) -> ExtensionsConfig:
    """MCP servers and skill states in force."""
    return get_app_config(source).extensions


def get_memory_config(source: ConfigSource | None = None) -> MemoryConfig:
    """The memory section in force."""
    return get_app_config(source).memory


def get_paths(base_dir: str | Path | None = None) -> Paths:
    """The directories of this installation."""
    return Paths(base_dir)
