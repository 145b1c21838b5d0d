"""``sandbox``: where commands run and what they may do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from deerflow.config.frozen import EMPTY
from deerflow.config.section import EnvText, OpenSection, Section, TextMapping

AIO_IMAGE = "enterprise-public-cn-beijing.cr.volces.com/vefaas-public/all-in-one-sandbox:latest"


class NetworkConfig(Section):
    """Which addresses a sandbox may reach. A bare string is a mode."""

    mode: Literal["none", "allowlist", "internet", "host"] = "none"
    allow: tuple[EnvText, ...] = ()
    """Host names, ``*.example.org`` for all below."""
    deny: tuple[EnvText, ...] = ()
    ports: tuple[int, ...] = (80, 443)
    allow_nets: tuple[EnvText, ...] = ()
    """CIDRs of private networks that may be reached nevertheless."""

    @model_validator(mode="before")
    @classmethod
    def _mode_alone(cls, data: Any) -> Any:
        # YAML reads a bare `none` as text but `~` and an empty value as null, and `no`/`off` as false.
        return {"mode": "none"} if data is False else {"mode": data} if isinstance(data, str) else data


class LimitsConfig(Section):
    """Resource limits of one sandbox. 0 means no limit."""

    processes: int = Field(default=512, ge=0)
    memory_mb: int = Field(default=4096, ge=0)
    file_size_mb: int = Field(default=2048, ge=0)
    disk_mb: int = Field(default=10240, ge=0)
    min_free_disk_mb: int = Field(default=512, ge=0)
    open_files: int = Field(default=1024, ge=0)
    cpu_seconds: int = Field(default=3600, ge=0)


class ToolImageConfig(Section):
    """The Python environment that sandboxes see read-only."""

    enabled: bool = True
    requirements: str | None = None
    """A requirements file instead of the one that ships."""


class MountConfig(Section):
    """A host directory that appears in every sandbox."""

    host_path: str
    container_path: str
    read_only: bool = False


class SandboxConfig(OpenSection):
    """The sandbox provider and its settings."""

    use: str = "auto"
    """``auto`` (the best isolation this machine offers) or a class path ``package.module:Class``."""
    allow_host_bash: bool = False
    """Local provider only: lets the model run commands without isolation."""
    allow_unsandboxed: bool = False
    """``auto`` only: fall back to no isolation at all rather than to no shell."""
    network: NetworkConfig = NetworkConfig()
    limits: LimitsConfig = LimitsConfig()
    command_timeout: float = Field(default=600, gt=0)
    """Seconds that one command may take."""
    idle_timeout: float = Field(default=900, ge=0)
    """Seconds after which an idle sandbox is ended; 0 keeps it."""
    max_sessions: int = Field(default=40, ge=1)
    etc_extra: tuple[str, ...] = ()
    """Files of the host's /etc that sandboxes see besides the usual ones."""
    tool_image: ToolImageConfig = ToolImageConfig()
    mounts: tuple[MountConfig, ...] = ()
    environment: TextMapping = EMPTY
    bash_output_max_chars: int = Field(default=20000, ge=0)
    """0 turns the cut off; likewise below."""
    read_file_output_max_chars: int = Field(default=50000, ge=0)
    ls_output_max_chars: int = Field(default=20000, ge=0)
    image: str = AIO_IMAGE
    """Container providers only, likewise below."""
    port: int = Field(default=8080, ge=1, le=65535)
    replicas: int = Field(default=3, ge=1)
    container_prefix: str = "deer-flow-sandbox"
    provisioner_url: str = ""
