"""DingTalk's two HTTP interfaces: the robot's token, and what their answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Any
from urllib.parse import quote_plus

import httpx

from deerflow.features.channels.types import (
    ChannelError,
    Later,
    Misconfigured,
    OutFile,
    Refused,
    SignedOut,
    Unreachable,
)
from deerflow_app.channels.app_token import AppToken
from deerflow_app.channels.wire import Http, multipart, object_of, retry_after

_TOKEN_REFUSED = {"InvalidAuthentication", "40001", "40014", "42001", "88"}
_THROTTLED = ("Throttling", "QpsLimit", "90002", "90018")
_NO_SCOPE = ("AccessTokenPermissionDenied", "60011")
_IP_LIST = "IpNotInWhiteList"
_CREDENTIALS = ("invalidClient", "authFailed")


class DingTalkApi:
    """The calls that an app may make with its client ID and secret.

    Args:
        api: address of the present interface.
        oapi: address of the older one, which still takes the files.
    """

    def __init__(self, client_id: str, client_secret: str, api: str, oapi: str) -> None:
        self._client_id, self._client_secret, self._oapi = client_id, client_secret, oapi
        self._http = _DingTalkHttp(api, secrets=[client_secret])
        self._token = AppToken(self._new_token)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def sign_in(self) -> None:
        """Get a token, also if there is one."""
        await self._token.renew()

    async def call(
        self, method: str, path: str, body: Mapping[str, Any], *, repeatable: bool = False
    ) -> dict[str, Any]:
        """Return what a call answers. A token that has ended before its time is renewed, once."""

        async def send(token: str) -> dict[str, Any]:
            headers = {"x-acs-dingtalk-access-token": token}
            return await self._http.object(method, path, repeatable=repeatable, json=body, headers=headers)

        return await self._signed(send)

    async def upload(self, kind: str, file: OutFile) -> str:
        """Keep a file at DingTalk and return its media ID; it is shown nowhere yet."""

        async def send(token: str) -> dict[str, Any]:
            where, form = {"access_token": token}, multipart({"type": kind}, "media", file)
            return await self._http.object("POST", f"{self._oapi}/media/upload", repeatable=True, params=where, **form)

        return (await self._signed(send))["media_id"]

    async def download(self, code: str, robot: str) -> AsyncIterator[bytes]:
        body = {"downloadCode": code, "robotCode": robot}
        answer = await self.call("POST", "/v1.0/robot/messageFiles/download", body, repeatable=True)
        try:
            async with self._http.stream(answer["downloadUrl"]) as stream:
                async for chunk in stream.aiter_bytes():
                    yield chunk
        except _Refusal as refusal:
            raise _error(refusal) from None

    async def connection(self, topics: tuple[str, ...]) -> str:
        """Return the address of a stream that brings these topics."""
        body = {
            "clientId": self._client_id,
            "clientSecret": self._client_secret,
            "ua": "deerflow",
            "localIp": "",
            "subscriptions": [{"type": "CALLBACK", "topic": topic} for topic in topics],
        }
        try:
            opened = await self._http.object("POST", "/v1.0/gateway/connections/open", repeatable=True, json=body)
        except _Refusal as refusal:
            raise _error(refusal) from None
        if "endpoint" not in opened or "ticket" not in opened:
            raise Unreachable("DingTalk gave no address for a stream.")
        return f"{opened['endpoint']}?ticket={quote_plus(opened['ticket'])}"

    async def _signed(self, send: Callable[[str], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        refused = ""
        while True:
            token = await self._token.current(refused)
            try:
                return await send(token)
            except _Refusal as refusal:
                if refusal.code not in _TOKEN_REFUSED:
                    raise _error(refusal) from None
                if refused:
                    raise SignedOut(f"DingTalk does not accept the app's token: {refusal}.") from None
                refused = token

    async def _new_token(self, old: str) -> tuple[str, float]:
        credentials = {"appKey": self._client_id, "appSecret": self._client_secret}
        try:
            body = await self._http.object("POST", "/v1.0/oauth2/accessToken", repeatable=True, json=credentials)
        except _Refusal as refusal:
            raise _error(refusal) from None
        self._http.hide(body["accessToken"], instead_of=old)
        return body["accessToken"], body["expireIn"]


class _Refusal(Exception):
    """An answer of DingTalk that is a refusal."""

    def __init__(self, body: Mapping[str, Any], headers: Mapping[str, str], status: int) -> None:
        self.code = str(body.get("code") or body.get("errcode") or status)
        self.body, self.headers = body, headers
        super().__init__(f"{body.get('message') or body.get('errmsg') or 'no reason given'} ({self.code})")


class _DingTalkHttp(Http):
    """The older interface refuses with status 200 and wants its token in the address."""

    def hide(self, secret: str, *, instead_of: str) -> None:
        self._secrets.discard(instead_of)
        self._secrets.add(secret)

    async def object(self, method: str, path: str, *, repeatable: bool, **more: Any) -> dict[str, Any]:
        """Return the body of an answer. Raises _Refusal."""
        body = await self.json(method, path, repeatable=repeatable, **more)
        if body.get("errcode"):
            raise _Refusal(body, {}, 200)
        return body

    def _checked(self, answer: httpx.Response, repeatable: bool) -> httpx.Response:
        is_refusal = 400 <= answer.status_code < 500 and answer.status_code != 429
        if is_refusal and (body := object_of(answer.content) or {}).get("code"):
            raise _Refusal(body, answer.headers, answer.status_code)
        return super()._checked(answer, repeatable)


def _is(refusal: _Refusal, codes: Collection[str]) -> bool:
    """Codes are paths, as ``Forbidden.AccessDenied.QpsLimitForAppkeyAndApi``, or the older numbers."""
    return any(code == refusal.code if code.isdigit() else code in refusal.code for code in codes)


def _error(refusal: _Refusal) -> ChannelError:
    if _is(refusal, _THROTTLED):
        return Later(f"DingTalk asks for a pause: {refusal}.", retry_after(refusal.headers), everywhere=True)
    if _is(refusal, _CREDENTIALS):
        return SignedOut(
            f"DingTalk does not accept the client ID and the client secret: {refusal}. "
            "Copy both from Credentials and Basic Information in the developer console."
        )
    if _is(refusal, _NO_SCOPE):
        scopes = (refusal.body.get("accessdenieddetail") or {}).get("requiredScopes") or [str(refusal)]
        return Misconfigured(
            f"The app lacks a permission: {', '.join(scopes)}. Add it under Permission Management in the developer console."
        )
    if _IP_LIST in refusal.code:
        return Misconfigured(
            "The app's list of allowed IP addresses does not hold this server's. Change it in the developer console."
        )
    return Refused(f"DingTalk refuses: {refusal}.")
