"""Chat channels in `deerflow doctor`: which are set up, in which state, and what helps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from deerflow.config import AppConfig, ConfigError, Paths
from deerflow.features.channels.config import channels_config, connections_config
from deerflow.features.channels.connections import ChannelConnection, ChannelConnections
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError

_FIXES = {
    "signed-out": "Enter a new token in the settings, under Channels, or in config.yaml.",
    "displaced": "Stop the other program that uses this bot, then choose Reconnect in the settings.",
    "misconfigured": "Correct it in the settings, under Channels, or in config.yaml.",
    "retrying": "DeerFlow tries again by itself; check the network.",
}


def channels(config: AppConfig, paths: Paths) -> Iterator[tuple[Any, ...]]:
    """Report mistakes in the file, and the state of each channel as the running server wrote it down."""
    try:
        read = channels_config(config.channels)
        connections_config(config.channel_connections)
    except ConfigError as error:
        yield "config.yaml", "bad", str(error), "Channels run with the defaults until this is mended."
        return
    for kind, why in read.problems.items():
        yield kind, "bad", why, _FIXES["misconfigured"]
    if read.unused:
        yield "note", "warn", f"channels.{', channels.'.join(read.unused)} have no effect here."
    if config.database.backend == "sqlite" and not Path(config.database_location(paths)).exists():
        return
    for row in asyncio.run(_rows(Database.of(config, paths, alone=True), paths)):
        if not row.is_on or (row.in_file and row.kind in read.problems):
            continue
        name = str((row.me or {}).get("name") or row.kind)
        if row.state == "connected":
            yield name, "ok", f"{row.kind}: connected when the server last looked"
        elif row.error:
            yield name, "warn", f"{row.kind}: {row.state}. {row.error}", _FIXES[row.state]
        else:
            yield name, "ok", f"{row.kind}: not tried yet"


async def _rows(database: Database, paths: Paths) -> list[ChannelConnection]:
    async with aclosing(database):
        try:
            return await ChannelConnections(database, paths.secrets_key_file).select("ORDER BY kind, created_at")
        except (
            DBAPIError,
            DatabaseError,
        ):  # the area Storage reports a database that cannot be read; one of before has no channels
            return []
