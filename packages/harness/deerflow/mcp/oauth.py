"""Tokens for servers over HTTP: fetched when needed, refreshed before they expire, rotated refresh tokens kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2

from deerflow.config.document import write_text
from deerflow.config.env import cipher_of
from deerflow.config.schema import McpOAuthConfig
from deerflow.config.section import require

TOKEN_SECONDS = 15.0
LIFETIME = 3600


class HeaderAuth(httpx2.Auth):
    """``header`` gives what goes into ``Authorization``, another one than what it is given: that was refused."""

    def __init__(self, header: Callable[[str], Awaitable[str]]) -> None:
        self.header = header

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = request.headers["Authorization"] = await self.header("")
        response = yield request
        if response.status_code == 401:
            request.headers["Authorization"] = await self.header(used)
            yield request


class TokenAuth(HeaderAuth):
    """Client credentials, or a refresh token (RFC 6749, sections 4.4 and 6).

    Args:
        file: keeps the newest refresh token, encrypted with the installation's key.
    """

    def __init__(self, config: McpOAuthConfig, file: Path, key_file: Path) -> None:
        super().__init__(self._header_but)
        self._config = config
        self._file = file
        self._key_file = key_file
        self._header = ""
        self._until = 0.0
        self._fetching = asyncio.Lock()

    async def _header_but(self, not_this: str) -> str:
        """Raises:
        ValueError: there is no token to be had.
        ConfigError: the entry refers to a variable that is not set.
        """
        async with self._fetching:
            if self._header == not_this or time.monotonic() >= self._until:
                await self._fetch()
            return self._header

    async def _fetch(self) -> None:
        config, grant = self._config, self._config.grant_type or "client_credentials"
        form: dict[str, Any] = {"grant_type": grant, **require(config.extra_token_params)}
        form |= {"scope": config.scope, "audience": config.audience}
        form |= {"client_id": config.client_id, "client_secret": config.client_secret}
        if grant == "refresh_token":
            form["refresh_token"] = await asyncio.to_thread(self._kept) or config.refresh_token
        needed = ("refresh_token",) if grant == "refresh_token" else ("client_id", "client_secret")
        if missing := [name for name in needed if not form.get(name)] or ["token_url"] * (config.token_url is None):
            raise ValueError(f"oauth: {grant} needs {' and '.join(missing)}.")
        client = await asyncio.to_thread(httpx2.AsyncClient, timeout=TOKEN_SECONDS)
        async with client:
            answer = await client.post(str(config.token_url), data={key: value for key, value in form.items() if value})
        if not answer.is_success:
            raise ValueError(f"The token endpoint {config.token_url} answered {answer.status_code}.")
        given = answer.json()
        if not given.get(config.token_field):
            raise ValueError(f"The token endpoint {config.token_url} gave no {config.token_field}.")
        lifetime = max(1, int(given.get(config.expires_in_field) or LIFETIME))
        self._header = f"{given.get(config.token_type_field) or config.default_token_type} {given[config.token_field]}"
        self._until = time.monotonic() + max(1, lifetime - config.refresh_skew_seconds)
        if grant == "refresh_token" and given.get("refresh_token"):
            await asyncio.to_thread(self._keep, given["refresh_token"])

    def _configured(self) -> str:
        """A newly configured token takes the place of what followed from the former one."""
        return hashlib.sha256((self._config.refresh_token or "").encode()).hexdigest()

    def _kept(self) -> str | None:
        if not self._file.is_file():
            return None
        kept = json.loads(cipher_of(self._key_file).decrypt(self._file.read_bytes()))
        return kept["token"] if kept["configured"] == self._configured() else None

    def _keep(self, token: str) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"configured": self._configured(), "token": token})
        write_text(self._file, cipher_of(self._key_file).encrypt(text.encode()).decode(), 0o600)
