"""From configuration to a thread's sandbox policy."""

from __future__ import annotations

import posixpath
from pathlib import Path

from deerflow.config import AppConfig, Paths
from deerflow.sandbox.interface import ACP_WORKSPACE, OUTPUTS, UPLOADS, WORKSPACE, Limits, Mount, Network, Policy

RESERVED = ("/mnt/user-data", ACP_WORKSPACE)


def thread_policy(
    config: AppConfig,
    paths: Paths,
    thread_id: str,
    user_id: str,
    *,
    skills_dir: Path | None = None,
    tools_dir: Path | None = None,
) -> Policy:
    """What the sandbox of a thread sees and may do. The thread's directories must exist."""
    settings = config.sandbox
    mounts = [
        Mount(paths.workspace(thread_id, user_id), WORKSPACE),
        Mount(paths.uploads(thread_id, user_id), UPLOADS),
        Mount(paths.outputs(thread_id, user_id), OUTPUTS),
        Mount(paths.acp(thread_id, user_id), ACP_WORKSPACE, read_only=True),
    ]
    if skills_dir is not None and skills_dir.is_dir():
        mounts.append(Mount(skills_dir, config.skills.container_path, read_only=True))
    mounts += [
        Mount(Path(mount.host_path), mount.container_path.rstrip("/"), mount.read_only)
        for mount in settings.mounts
        if not mount_problem(config, mount)
    ]
    return Policy(
        mounts=tuple(mounts),
        home=paths.home(thread_id, user_id),
        tmp=paths.tmp(thread_id, user_id),
        environment=dict(settings.environment),
        network=Network(
            **{key: value for key, value in settings.network.model_dump().items() if key in Network.__slots__}
        ),
        limits=Limits(**{key: value for key, value in settings.limits.model_dump().items() if key in Limits.__slots__}),
        tools_dir=tools_dir,
    )


def _overlap(one: str, other: str) -> bool:
    """Whether one of two absolute paths contains the other, so that a mount at one would hide the other."""
    first, second = (posixpath.normpath("/" + path.lstrip("/")).rstrip("/") + "/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)


def mount_problem(config: AppConfig, mount: object) -> str | None:
    """Why a configured mount cannot be used, if so."""
    host, target = Path(mount.host_path), mount.container_path.rstrip("/") or "/"  # type: ignore[attr-defined]
    if not host.is_absolute() or not target.startswith("/"):
        return f"Mount {host} -> {target}: both paths must be absolute."
    if ".." in target.split("/"):
        return f"Mount {host} -> {target}: the path in the sandbox must not hold '..'."
    if any(_overlap(target, reserved) for reserved in (*RESERVED, config.skills.container_path)):
        return f"Mount {host} -> {target}: this path is reserved."
    return None if host.is_dir() else f"Mount {host} -> {target}: the host path is not a directory."
