"""Sign in to WeChat: a QR code for the page, and what became of it."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from deerflow.features.channels.types import Refused
from deerflow_app.channels.adapters import wechat
from deerflow_app.channels.qr_login import QrCode, QrLogin, QrProgress, QrState
from deerflow_app.channels.wire import Http

_HEADERS = {"iLink-App-ClientVersion": "1"}
_BOT_TYPE = "3"
_STATES = {
    "wait": QrState.WAITING,
    "scaned": QrState.SCANNED,
    "scaned_but_redirect": QrState.SCANNED,
    "need_verifycode": QrState.NEEDS_CODE,
    "confirmed": QrState.CONFIRMED,
    "binded_redirect": QrState.CONFIRMED,
    "expired": QrState.EXPIRED,
    "canceled": QrState.CANCELED,
    "cancelled": QrState.CANCELED,
}


class WeChatLogin(QrLogin):
    """Args:
    timeout: seconds; WeChat answers a question about a code within half a minute.
    """

    def __init__(self, base_url: str = "", timeout: float = 45.0) -> None:
        self._base_url = base_url or wechat.BASE_URL
        self._timeout = timeout

    async def begin(self) -> QrCode:
        answer = await _get(self._base_url, "get_bot_qrcode", {"bot_type": _BOT_TYPE}, 20.0)
        if not answer.get("qrcode"):
            raise Refused(f"WeChat gave no QR code: {answer.get('errmsg') or answer.get('ret', 'no reason given')}.")
        code_id = str(answer["qrcode"])
        return QrCode(code_id, self._base_url, str(answer.get("qrcode_img_content") or code_id))

    async def poll(self, code_id: str, server: str, verify_code: str = "") -> QrProgress:
        if server != self._base_url and not _is_wechat(server):
            raise Refused(f"{server} is no server of WeChat. Ask for a new QR code.")
        query = {"qrcode": code_id} | ({"verify_code": verify_code} if verify_code else {})
        answer = await _get(server, "get_qrcode_status", query, self._timeout)
        state = _STATES.get(str(answer.get("status")), QrState.WAITING)
        if state is QrState.CONFIRMED:
            return QrProgress(state, server, _settings(answer))
        elsewhere = f"https://{answer.get('redirect_host') or ''}"
        return QrProgress(state, elsewhere if _is_wechat(elsewhere) else server)


def _settings(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer.get("bot_token"):
        raise Refused("This WeChat account is already connected with another bot. Disconnect that one in WeChat first.")
    names = {"bot_token": "bot_token", "ilink_bot_id": "ilink_bot_id", "base_url": "baseurl"}
    return {name: str(answer[given]) for name, given in names.items() if answer.get(given)}


def _is_wechat(server: str) -> bool:
    """Return whether this is a data center of WeChat."""
    try:
        parts = urlsplit(server)
    except ValueError:
        return False
    return server == f"https://{parts.hostname}" and str(parts.hostname).endswith(".qq.com")


async def _get(server: str, method: str, query: dict[str, str], timeout: float) -> dict[str, Any]:
    http = await asyncio.to_thread(Http, server, headers=_HEADERS)
    try:
        return await http.json("GET", f"/ilink/bot/{method}", params=query, timeout=timeout)
    finally:
        await http.aclose()
