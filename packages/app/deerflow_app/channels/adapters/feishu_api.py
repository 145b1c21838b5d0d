"""Feishu's HTTP interface: the app's token, and what its answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from deerflow.features.channels.types import (
    ChannelError,
    Displaced,
    Later,
    Misconfigured,
    OutFile,
    Refused,
    SignedOut,
    Unreachable,
)
from deerflow_app.channels.app_token import AppToken
from deerflow_app.channels.wire import AFTER, Http, multipart, object_of

_TOKEN_REFUSED = {99991661, 99991663, 99991664, 99991665, 99991671}
_LIMIT_OF_APP, _LIMIT_OF_CHAT = {99991400, 11232}, {230020}
_NO_SCOPE = 99991672
_SETTINGS = {
    230006: "Add the feature Bot to the app and publish a version of it.",
    99991662: "Publish a version of the app and let an administrator enable it.",
    99991673: "Publish a version of the app and let an administrator enable it.",
}
_FORBIDDEN, _TOO_MANY_LINKS, _AUTH_FAILED = 403, 1000040350, {514, 1000040344}
_CREDENTIALS = {10003, 10014}


class FeishuApi:
    """The calls that an app may make with its ID and secret."""

    def __init__(self, domain: str, app_id: str, app_secret: str) -> None:
        self._app_id, self._app_secret = app_id, app_secret
        self._http = _FeishuHttp(domain, secrets=[app_secret])
        self._token = AppToken(self._new_token)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool = False,
        tolerated: Collection[int] = (),
        form: tuple[Mapping[str, str], str, OutFile] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return the body of an answer whose code is 0 or tolerated. A token that has ended before its time is renewed, once.

        Args:
            form: fields, and name and content of the one that is a file.
        """
        refused = ""
        while True:
            token = await self._token.current(refused)
            sent = multipart(*form) if form else more
            sent = {**sent, "headers": {**sent.get("headers", {}), "Authorization": f"Bearer {token}"}}
            try:
                return await self._http.object(method, f"/open-apis{path}", repeatable=repeatable, **sent)
            except _NotGood as answer:
                if answer.code in tolerated:
                    return answer.body
                _must_be_the_token(answer, refused)
                refused = token

    async def download(self, path: str, params: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield the bytes of a file."""
        refused = ""
        while True:
            token = await self._token.current(refused)
            headers = {"Authorization": f"Bearer {token}"}
            try:
                async with self._http.stream(f"/open-apis{path}", params=params, headers=headers) as answer:
                    if "content-disposition" not in answer.headers and "html" in answer.headers.get("content-type", ""):
                        raise Unreachable(f"{answer.url.host} answered with a page instead of the file.")
                    async for chunk in answer.aiter_bytes():
                        yield chunk
                return
            except _NotGood as bad:
                _must_be_the_token(bad, refused)
                refused = token

    async def connection(self) -> tuple[str, int, float]:
        """Return the address of a long connection, its service number and the seconds between two pings."""
        credentials = {"AppID": self._app_id, "AppSecret": self._app_secret}
        try:
            body = await self._http.object("POST", "/callback/ws/endpoint", repeatable=True, json=credentials)
        except _NotGood as answer:
            raise _no_connection(answer) from None
        url, config = body["data"]["URL"], body["data"].get("ClientConfig") or {}
        service = parse_qs(urlsplit(url).query).get("service_id", ["0"])[0]
        return url, int(service), float(config.get("PingInterval", 120))

    async def _new_token(self, _: str) -> tuple[str, float]:
        credentials = {"app_id": self._app_id, "app_secret": self._app_secret}
        path = "/open-apis/auth/v3/tenant_access_token/internal"
        try:
            body = await self._http.object("POST", path, repeatable=True, json=credentials)
        except _NotGood as answer:
            raise _signed_out(answer) if answer.code in _CREDENTIALS else _error(answer) from None
        return body["tenant_access_token"], body["expire"]


class _NotGood(Exception):
    """An answer of Feishu whose code is not 0."""

    def __init__(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        self.code: int = body["code"]
        self.body, self.headers = body, headers
        super().__init__(f"{body.get('msg', '')} ({self.code})")


class _FeishuHttp(Http):
    """Refusals come with their reason in the body."""

    async def object(self, method: str, path: str, *, repeatable: bool, **more: Any) -> dict[str, Any]:
        """Return the body of an answer whose code is 0. Raises _NotGood for another code."""
        body = await self.json(method, path, repeatable=repeatable, **more)
        if body.get("code", -1) != 0:
            raise _NotGood({"code": -1, **body}, {})
        return body

    def _checked(self, answer: httpx.Response, repeatable: bool) -> httpx.Response:
        if answer.status_code == 429 and "x-ogw-ratelimit-reset" in answer.headers:
            raise Later("Feishu asks for a pause.", _pause(answer.headers), everywhere=True)
        body = object_of(answer.content) if 400 <= answer.status_code < 500 else None
        if body and isinstance(body.get("code"), int):
            raise _NotGood(body, answer.headers)
        return super()._checked(answer, repeatable)


def _pause(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("x-ogw-ratelimit-reset", AFTER)))
    except ValueError:
        return AFTER


def _must_be_the_token(answer: _NotGood, refused: str) -> None:
    """Return if the answer refuses a token that may have ended early; raise what it means otherwise."""
    if answer.code not in _TOKEN_REFUSED:
        raise _error(answer) from None
    if refused:
        raise SignedOut(f"Feishu does not accept the app's token: {answer}.") from None


def _signed_out(answer: _NotGood) -> SignedOut:
    return SignedOut(
        f"Feishu does not accept the app ID and the app secret: {answer}. "
        "Copy both from Credentials & Basic Info in the developer console."
    )


def _no_connection(answer: _NotGood) -> ChannelError:
    if answer.code in _AUTH_FAILED | _CREDENTIALS:
        return _signed_out(answer)
    if answer.code == _FORBIDDEN:
        return Misconfigured(
            f"Feishu allows this app no long connection: {answer}. It must be a custom app, with "
            "“Receive events through persistent connection” chosen under Events & Callbacks."
        )
    if answer.code == _TOO_MANY_LINKS:
        return Displaced(f"Other programs hold all connections that this app may have: {answer}.")
    if answer.code in _LIMIT_OF_APP:
        return _error(answer)
    return Unreachable(f"Feishu gave no connection: {answer}.")


def _error(answer: _NotGood) -> ChannelError:
    if answer.code in _LIMIT_OF_APP | _LIMIT_OF_CHAT:
        return Later(
            f"Feishu asks for a pause: {answer}.", _pause(answer.headers), everywhere=answer.code in _LIMIT_OF_APP
        )
    if answer.code == _NO_SCOPE:
        violations = (answer.body.get("error") or {}).get("permission_violations") or ()
        scopes = ", ".join(one["subject"] for one in violations) or str(answer)
        return Misconfigured(
            f"The app lacks a permission, one of: {scopes}. Add it under Permissions & Scopes in the developer console "
            "and publish a version."
        )
    if answer.code in _SETTINGS:
        return Misconfigured(f"{answer}. {_SETTINGS[answer.code]}")
    return Refused(f"Feishu refuses: {answer}.")
