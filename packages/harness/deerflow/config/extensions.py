"""``extensions_config.json``: MCP servers, interceptors and which skills are on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, field_validator

from deerflow.config.frozen import EMPTY, frozen
from deerflow.config.section import EnvText, OpenSection, Section, TextMapping


class McpOAuthConfig(OpenSection):
    """How a token for an HTTP server is had."""

    enabled: bool = True
    token_url: str
    grant_type: Literal["client_credentials", "refresh_token"] = "client_credentials"
    client_id: str | None = None
    client_secret: str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    audience: str | None = None
    token_field: str = "access_token"
    token_type_field: str = "token_type"
    expires_in_field: str = "expires_in"
    default_token_type: str = "Bearer"
    refresh_skew_seconds: int = Field(default=60, ge=0)
    extra_token_params: TextMapping = EMPTY


class McpServerConfig(OpenSection):
    """One MCP server. ``command``, ``args`` and ``env`` are for stdio, ``url``, ``headers`` and ``oauth`` for sse and http."""

    enabled: bool = True
    type: str = "stdio"
    command: str | None = None
    args: tuple[EnvText, ...] = ()
    env: TextMapping = EMPTY
    url: str | None = None
    headers: TextMapping = EMPTY
    oauth: McpOAuthConfig | None = None
    description: str = ""


class SkillStateConfig(Section):
    """Whether a skill is on."""

    enabled: bool = True


class ExtensionsConfig(OpenSection):
    """The whole file. Without a file nothing is configured and every skill is on."""

    mcp_servers: Annotated[Mapping[str, McpServerConfig], AfterValidator(frozen)] = Field(
        default=EMPTY, validation_alias=AliasChoices("mcpServers", "mcp_servers")
    )
    skills: Annotated[Mapping[str, SkillStateConfig], AfterValidator(frozen)] = EMPTY
    mcp_interceptors: tuple[EnvText, ...] = Field(
        default=(), validation_alias=AliasChoices("mcpInterceptors", "mcp_interceptors")
    )
    """Paths ``package.module:builder``."""

    @field_validator("mcp_interceptors", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def enabled_mcp_servers(self) -> dict[str, McpServerConfig]:
        """Servers that are on, in file order."""
        return {name: server for name, server in self.mcp_servers.items() if server.enabled}

    def is_skill_enabled(self, name: str, category: str = "public") -> bool:
        """What the file says, else on for the categories public and custom."""
        state = self.skills.get(name)
        return state.enabled if state else category in ("public", "custom")
