"""The configuration as it is now: one snapshot, made anew when a file changes."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deerflow.config.app import AppConfig
from deerflow.config.discovery import Probe, http_probe
from deerflow.config.environment import env_files, load_environ
from deerflow.config.errors import ConfigError
from deerflow.config.frozen import EMPTY
from deerflow.config.load import load_files
from deerflow.config.locate import ConfigFiles, searches

logger = logging.getLogger(__name__)

Fingerprint = tuple[tuple[int, int, int] | None, ...]


class ConfigSource:
    """Watches the places where configuration files are or may appear. Safe to share between threads.

    A change that cannot be used leaves the last good snapshot in force and is described by :attr:`problem`.

    Args:
        path, extensions_path, environ, cwd, probe: see :func:`load_config`. ``environ`` is read again at each reload.
        overrides: settings from code, merged deeply over the main file.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        extensions_path: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        probe: Probe = http_probe,
        overrides: Mapping[str, Any] = EMPTY,
    ) -> None:
        self._path = path
        self._extensions_path = extensions_path
        self._environ = os.environ if environ is None else environ
        self._cwd = Path(cwd or Path.cwd()).absolute()
        self._probe = probe
        self._overrides = overrides
        self._lock = threading.Lock()
        self._snapshot: AppConfig | None = None
        self._watched: tuple[tuple[str, ...], Fingerprint] = (), ()
        self._warned: frozenset[str] = frozenset()
        self.problem: str | None = None
        """Why the files as they are now are not in force, or None."""

    def current(self) -> AppConfig:
        """The snapshot in force. Looks at the files' times only, and reads them when one has changed.

        Blocks while it reads; from an event loop use :meth:`acurrent`.

        Raises:
            FileNotFoundError, ConfigError: there is no good snapshot yet.
        """
        snapshot = self._snapshot
        if snapshot is not None and not self._changed():
            return snapshot
        with self._lock:
            if self._snapshot is not None and not self._changed():
                return self._snapshot
            return self._reload()

    async def acurrent(self) -> AppConfig:
        """As :meth:`current`, without blocking the event loop."""
        return await asyncio.to_thread(self.current)

    def reload(self) -> AppConfig:
        """Read everything anew, even if no file has changed, e.g. after a variable was set or a model server started.

        Raises:
            FileNotFoundError, ConfigError: there is no good snapshot yet.
        """
        with self._lock:
            return self._reload()

    def _changed(self) -> bool:
        places, fingerprint = self._watched
        return _fingerprint(places) != fingerprint

    def _reload(self) -> AppConfig:
        try:
            snapshot = self._read()
        except (ConfigError, FileNotFoundError) as error:
            if self._snapshot is None:
                raise
            if str(error) != self.problem:
                logger.error(
                    "The configuration was changed, but cannot be used; the last good one stays in force.\n%s", error
                )
            self.problem = str(error)
            return self._snapshot
        for warning in snapshot.origin.warnings:
            if warning not in self._warned:
                logger.warning("%s", warning)
        self._warned |= frozenset(snapshot.origin.warnings)
        if self.problem is not None:
            logger.info("The configuration is in order again.")
        self._snapshot, self.problem = snapshot, None
        return snapshot

    def _read(self) -> AppConfig:
        # Fingerprints are taken before reading: an edit in between is seen next time.
        places = self._watched[0]
        self._watched = places, _fingerprint(places)
        env_places = tuple(map(str, env_files(self._cwd)))
        env_fingerprint = _fingerprint(env_places)
        environ = load_environ(self._environ, self._cwd)
        config, extensions = searches(self._path, self._extensions_path, environ, self._cwd)
        places = tuple(map(str, (*config.places, *extensions.places)))
        self._watched = env_places + places, env_fingerprint + _fingerprint(places)
        return load_files(
            ConfigFiles(config.find(), extensions.find()), environ, self._cwd, self._probe, self._overrides
        )


def _fingerprint(places: tuple[str, ...]) -> Fingerprint:
    return tuple(map(_state, places))


def _state(place: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(place)  # noqa: PTH116 - pathlib's is three times as slow, and this runs at each use
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
