"""From configuration to a provider of sandboxes, and to the policy of a thread's."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import cast

from deerflow.config import AppConfig, Paths
from deerflow.config.confinement import missing_mounts, visible_mounts
from deerflow.reflection import resolve_class
from deerflow.sandbox.interface import (
    ACP_WORKSPACE,
    OUTPUTS,
    UPLOADS,
    WORKSPACE,
    Limits,
    Mount,
    Network,
    Policy,
    SandboxProvider,
)

log = logging.getLogger(__name__)


def build_sandbox_provider(config: AppConfig, paths: Paths) -> SandboxProvider:
    """The provider that ``sandbox.use`` names: ``auto``, or a class path.

    The constructor is given what its signature asks for by name, of: ``data_dir``, ``max_sessions``, ``sleep_after``, ``idle_timeout``,
    ``etc_extra``, ``allow_unsandboxed``, ``allow_host_bash``, ``image``, ``replicas``, ``container_prefix``, ``docker_socket``,
    ``host_paths``, ``provisioner_url``, ``provisioner_token``, ``opensandbox_url``, ``opensandbox_key``,
    ``opensandbox_volume``, ``config``, ``paths``.

    Raises:
        ImportError: the class path cannot be resolved.
        ValueError: it names something else than a SandboxProvider.
    """
    settings = config.sandbox
    for problem in dict(missing_mounts(config)).values():
        log.warning("sandbox.mounts: %s", problem)
    use = "deerflow.sandbox.auto:AutoSandboxProvider" if settings.use == "auto" else settings.use
    provider_class = cast(Callable[..., SandboxProvider], resolve_class(use, SandboxProvider))
    offered = {
        "data_dir": paths.base_dir,
        "max_sessions": settings.max_sessions,
        "sleep_after": settings.sleep_after,
        "idle_timeout": settings.idle_timeout,
        "etc_extra": tuple(settings.etc_extra),
        "allow_unsandboxed": settings.allow_unsandboxed,
        "allow_host_bash": settings.allow_host_bash,
        "image": settings.image,
        "replicas": settings.replicas,
        "container_prefix": settings.container_prefix,
        "docker_socket": paths.docker_socket,
        "host_paths": paths.host_paths | _host_skills(config, paths),
        "provisioner_url": settings.provisioner_url,
        "provisioner_token": settings.provisioner_token,
        "opensandbox_url": settings.opensandbox_url,
        "opensandbox_key": settings.opensandbox_key,
        "opensandbox_volume": settings.opensandbox_volume,
        "config": config,
        "paths": paths,
    }
    wanted = inspect.signature(provider_class).parameters
    return provider_class(**{name: value for name, value in offered.items() if name in wanted})


def _host_skills(config: AppConfig, paths: Paths) -> dict[Path, Path]:
    return {config.skills.directory(config.origin.project_root): there} if (there := paths.host_skills_dir) else {}


def uses_local_sandbox_provider(config: AppConfig) -> bool:
    """Whether ``sandbox.use`` names the provider without isolation."""
    use = config.sandbox.use
    return "deerflow.sandbox.local" in use and use.endswith(":LocalSandboxProvider")


def is_host_bash_allowed(config: AppConfig) -> bool:
    """Whether the bash tool may be offered: always with an isolating provider, else if ``allow_host_bash`` is set."""
    return not uses_local_sandbox_provider(config) or config.sandbox.allow_host_bash


def thread_policy(
    config: AppConfig,
    paths: Paths,
    thread_id: str,
    user_id: str,
    *,
    tools_dir: Path | None = None,
) -> Policy:
    """What the sandbox of a thread sees and may do besides its skills. The thread's directories must exist."""
    settings = config.sandbox
    mounts = [
        Mount(paths.workspace(thread_id, user_id), WORKSPACE),
        Mount(paths.uploads(thread_id, user_id), UPLOADS),
        Mount(paths.outputs(thread_id, user_id), OUTPUTS),
        Mount(paths.acp(thread_id, user_id), ACP_WORKSPACE, read_only=True),
    ]
    mounts += [
        Mount(Path(mount.host_path), mount.container_path.rstrip("/"), mount.read_only)
        for mount in visible_mounts(config)
    ]
    return Policy(
        mounts=tuple(mounts),
        home=paths.home(thread_id, user_id),
        tmp=paths.tmp(thread_id, user_id),
        environment=dict(settings.environment),
        network=Network(**settings.network.model_dump(include={*Network.__slots__})),
        limits=Limits(**settings.limits.model_dump(include={*Limits.__slots__})),
        tools_dir=tools_dir,
    )
