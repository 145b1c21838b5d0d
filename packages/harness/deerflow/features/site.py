"""Settings of the whole site that administrators change while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypedDict

from sqlalchemy import Connection

from deerflow.config import AppConfig
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import site_settings, utc_now

Mode = Literal["flash", "thinking", "pro", "ultra"]


class SiteSettings(TypedDict):
    """None: nothing was chosen. ``registration`` is then as the server was started; ``default_model`` and ``default_mode`` are
    those of new chats; ``notice`` is shown to everybody."""

    registration: bool | None
    default_model: str | None
    default_mode: Mode | None
    notice: str | None


class SiteService:
    """Args: config: the snapshot now in force."""

    def __init__(self, database: Database, config: Callable[[], Awaitable[AppConfig]]) -> None:
        self._database = database
        self._config = config

    async def get(self) -> SiteSettings:
        """Return the settings. A default model that is not configured any more counts as none."""
        found = await self._database.read(_settings)
        if (name := found["default_model"]) is not None:
            known = {model.name for model in (await self._config()).models}
            found["default_model"] = name if name in known else None
        return found

    async def change(self, changes: Mapping[str, Any]) -> SiteSettings:
        """Set what ``changes`` holds; the rest stays. Raises InvalidRequestError for a model that is not configured."""
        if changes.get("default_model"):
            from deerflow.models.factory import find_model  # brings langchain: not before the server answers

            find_model(await self._config(), changes["default_model"])

        def job(connection: Connection) -> None:
            kept = {name: None if value == "" else value for name, value in changes.items()}
            settings = {**_settings(connection, sql.for_update(connection)), **kept}
            row = {"name": _ROW, "value": dict(settings), "updated_at": utc_now()}
            new = "ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at"
            sql.insert(connection, site_settings, row, new)

        await self._database.write(job)
        return await self.get()


def registration_choice(connection: Connection) -> bool | None:
    """Return whether an administrator has opened or closed registration; None: neither."""
    return _settings(connection)["registration"]


_ROW = "site"


def _settings(connection: Connection, lock: str = "") -> SiteSettings:
    row = sql.execute(connection, f"SELECT value FROM site_settings WHERE name = ?{lock}", _ROW).fetchone()
    kept = sql.loads(row[0]) if row else {}
    return SiteSettings(**{name: kept.get(name) for name in SiteSettings.__annotations__})
