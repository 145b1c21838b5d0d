"""Which server the terminal uses, if any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deerflow_app.cli.failures import usage_failure

if TYPE_CHECKING:
    from deerflow_app.cli.settings import Settings
    from deerflow_app.gateway.running import RunningServer
    from deerflow_app.remote.connection import Address

URL_VAR, KEY_VAR = "DEER_FLOW_API_URL", "DEER_FLOW_API_KEY"


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """Args:
    address: None: this process does the work.
    find: looks for a local server anew; blocks.
    notice: why a running server is left alone, where that may surprise.
    """

    address: Address | None = None
    find: Callable[[], Address | None] | None = None
    notice: str = ""


def choose_server(settings: Settings, environ: Mapping[str, str]) -> ServerChoice:
    """In this order: ``--local`` and a configuration named with ``--config`` that the server does not have keep the work
    here; DEER_FLOW_API_URL names a server; else it is the one that serves this data directory. A running server with
    another configuration than the one found here is left alone: what the person wrote into it must count.

    Raises:
        Failure: DEER_FLOW_API_URL is no address.
    """
    if settings.local:
        return ServerChoice()
    if url := environ.get(URL_VAR, "").strip():
        return _elsewhere(settings, url, environ.get(KEY_VAR, "").strip())
    from deerflow.config import Paths
    from deerflow_app.gateway.running import running_server

    data_dir = Paths().base_dir
    if (server := running_server(data_dir)) is None:
        return ServerChoice()
    own = _own_config(settings, environ)
    if own is not None and (server.config is None or not _same(own, Path(server.config))):
        theirs = f"with {server.config}" if server.config else "without a configuration file"
        return ServerChoice(notice=f"The server at {server.url} runs {theirs}, so this works without it, with {own}.")

    def find() -> Address | None:
        found = running_server(data_dir)
        return _address(found) if found else None

    return ServerChoice(_address(server), find)


def _elsewhere(settings: Settings, url: str, key: str) -> ServerChoice:
    from deerflow_app.remote.connection import Address

    if settings.config is not None:
        return ServerChoice(
            notice=f"{URL_VAR} is set, but --config {settings.config} is for this process: it does the work."
        )
    if not url.startswith(("http://", "https://")):
        raise usage_failure(f"{URL_VAR} is {url!r}.", "It begins with http:// or https://, e.g. http://127.0.0.1:2026.")
    return ServerChoice(Address(url.rstrip("/"), {"Authorization": f"Bearer {key}"} if key else {}))


def _address(server: RunningServer) -> Address:
    from deerflow_app.remote.connection import INTERNAL_HEADER, Address

    return Address(server.url, {INTERNAL_HEADER: server.token}, local=True)


def _own_config(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """The configuration file that this process would use; one that is not there is told when it is opened."""
    from deerflow.config import ConfigSource

    try:
        return ConfigSource(settings.config, environ=environ).find()
    except FileNotFoundError:
        return settings.config or Path()


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
