"""Checks of the settings of sandboxes. A mistake in one is refused with its line: nothing may confine less because of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from deerflow.config.document import ConfigError, KeyPath
from deerflow.config.env import MissingEnv
from deerflow.config.section import EnvText
from deerflow.reflection import resolve_class

ETC = "/etc"
RESERVED = ("/mnt/user-data", "/mnt/acp-workspace")
"""Where threads have their own directories."""
OF_THE_SYSTEM = ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/sys", "/dev", "/run", "/root")
PROVIDER = "deerflow.sandbox.interface:SandboxProvider"
_LONGEST_PATH, _LONGEST_NAME = 4095, 255
_HOST = re.compile(r"\*|(\*\.)?[\w-]+(\.[\w-]+)*\.?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def plain_path(value: str) -> str:
    """Return an absolute path that leads nowhere but where it says. Raises ValueError."""
    parts = value.split("/")
    if not value.startswith("/") or ".." in parts:
        raise ValueError("should be an absolute path without '..'.")
    if (
        "\0" in value
        or len(value.encode()) > _LONGEST_PATH
        or max(len(part.encode()) for part in parts) > _LONGEST_NAME
    ):
        raise ValueError("is no path: it is too long, or holds a null character.")
    return value


def etc_path(value: str) -> str:
    """Return a path below /etc. Raises ValueError."""
    if ".." in value.split("/") or not posixpath.normpath(value).startswith(f"{ETC}/"):
        raise ValueError(f"should be an absolute path below {ETC} without '..', such as {ETC}/libreoffice.")
    return plain_path(value)


def _host(value: str) -> str:
    if isinstance(value, MissingEnv) or _HOST.fullmatch(value.strip()):
        return value
    return _range(value, "should be a host name, *.example.org, or a network such as 10.0.0.0/8.")


def _range(value: str, expected: str = "should be a network such as 10.0.0.0/8.") -> str:
    if isinstance(value, MissingEnv):
        return value
    try:
        ip_network(value.strip("[]"), strict=False)
    except ValueError:
        raise ValueError(expected) from None
    return value


def _number(value: object) -> object:
    if isinstance(value, bool):  # YAML reads `no` as false, which would be no limit
        raise ValueError("should be a whole number.")
    return value


def _switch(value: object) -> object:
    if isinstance(value, bool | str):
        return value
    raise ValueError("should be true or false.")


def _variables(value: Mapping[str, str]) -> Mapping[str, str]:
    if wrong := [name for name, text in value.items() if not _VARIABLE.fullmatch(name) or "\0" in text]:
        raise ValueError(f"should hold environment variables: {wrong[0]!r} is none.")
    return value


PlainPath = Annotated[str, AfterValidator(plain_path)]
EtcPath = Annotated[str, AfterValidator(etc_path)]
Host = Annotated[EnvText, AfterValidator(_host)]
Range = Annotated[EnvText, AfterValidator(_range)]
Port = Annotated[int, Field(ge=1, le=65535)]
Limit = Annotated[int, BeforeValidator(_number), Field(ge=0, le=1 << 40)]
Switch = Annotated[bool, BeforeValidator(_switch)]
Variables = AfterValidator(_variables)


# Configurations come as Any: their module imports this one.


def confinement_problems(config: Any) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is wrong with ``sandbox`` on this machine, by key. Blocks, and imports what ``sandbox.use`` names."""
    try:
        if (use := config.sandbox.use) != "auto":
            resolve_class(use, resolve_class(PROVIDER))
    except (ImportError, ValueError) as error:
        yield ("sandbox", "use"), str(error)
    except ConfigError as error:  # a variable is not set
        yield ("sandbox", "use"), str(error)
    for index, mount in enumerate(config.sandbox.mounts):
        if problem := mount_problem(config, mount):
            yield ("sandbox", "mounts", index), problem


def mount_problem(config: Any, mount: Any) -> str | None:
    """Return why a configured mount cannot be used, if so."""
    host, target = Path(mount.host_path), mount.container_path.rstrip("/") or "/"
    if any(_overlap(target, reserved) for reserved in (*RESERVED, config.skills.container_path)) or any(
        target == own or target.startswith(f"{own}/") for own in OF_THE_SYSTEM
    ):
        return f"Mount {host} -> {target}: this path is reserved."
    return (
        f"Mount {host} -> {target}: the host path is not a directory." if host.exists() and not host.is_dir() else None
    )


def missing_mounts(config: Any) -> Iterator[tuple[int, str]]:
    """Yield the mounts whose directory is not there now, by their place: they are left out until it is."""
    for index, mount in enumerate(config.sandbox.mounts):
        if not Path(mount.host_path).exists():
            yield index, f"{mount.host_path} does not exist, so sandboxes do not see {mount.container_path}."


def visible_mounts(config: Any) -> Sequence[Any]:
    """Return the configured mounts that can be used now."""
    missing = dict(missing_mounts(config))
    return [
        mount
        for index, mount in enumerate(config.sandbox.mounts)
        if index not in missing and not mount_problem(config, mount)
    ]


def _overlap(one: str, other: str) -> bool:
    """Return whether one of two absolute paths contains the other, so that a mount at one would hide the other."""
    first, second = (posixpath.normpath("/" + path.lstrip("/")).rstrip("/") + "/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)
