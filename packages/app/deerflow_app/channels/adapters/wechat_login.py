"""Sign in to WeChat: a QR code for the page, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from deerflow.features.channels.types import Refused
from deerflow_app.channels.adapters.wechat import BASE_URL
from deerflow_app.channels.wire import Http

_HEADERS = {"iLink-App-ClientVersion": "1"}


class QrState(StrEnum):
    """Progress of a sign-in. ``NEEDS_CODE``: the phone shows a number, which belongs into ``poll_login``."""

    WAITING = "waiting"
    SCANNED = "scanned"
    NEEDS_CODE = "needs_code"
    CONFIRMED = "confirmed"
    EXPIRED = "expired"
    CANCELED = "canceled"


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


@dataclass(frozen=True, slots=True)
class QrCode:
    """A code to scan.

    Args:
        id: for ``poll_login``.
        content: what the picture must hold.
    """

    id: str
    content: str


@dataclass(frozen=True, slots=True)
class QrLogin:
    """The state of a sign-in.

    Args:
        base_url: where to ask next; once confirmed, that of the adapter.
        bot_token, bot_id, user_id: once confirmed.
    """

    state: QrState
    base_url: str
    bot_token: str = ""
    bot_id: str = ""
    user_id: str = ""


async def begin_login(*, base_url: str = BASE_URL, bot_type: int = 3) -> QrCode:
    """Ask for a QR code. Raises as :meth:`Http.json`, and Refused without a code in the answer."""
    answer = await _get(base_url, "get_bot_qrcode", {"bot_type": str(bot_type)}, 20.0)
    if not answer.get("qrcode"):
        raise Refused(f"WeChat gave no QR code: {answer.get('errmsg') or answer.get('ret', 'no reason given')}.")
    return QrCode(str(answer["qrcode"]), str(answer.get("qrcode_img_content") or answer["qrcode"]))


async def poll_login(code: str, *, base_url: str = BASE_URL, verify_code: str = "", timeout: float = 45.0) -> QrLogin:
    """Return what became of a QR code; WeChat holds the question open for half a minute."""
    query = {"qrcode": code} | ({"verify_code": verify_code} if verify_code else {})
    answer = await _get(base_url, "get_qrcode_status", query, timeout)
    state = _STATES.get(str(answer.get("status")), QrState.WAITING)
    if state is QrState.CONFIRMED and not answer.get("bot_token"):
        raise Refused("This WeChat account is already connected with another bot. Disconnect that one in WeChat first.")
    url = str(answer.get("baseurl") or "") or _redirected(str(answer.get("redirect_host") or ""), base_url)
    return QrLogin(
        state,
        url,
        bot_token=str(answer.get("bot_token") or ""),
        bot_id=str(answer.get("ilink_bot_id") or ""),
        user_id=str(answer.get("ilink_user_id") or ""),
    )


def _redirected(host: str, base_url: str) -> str:
    """Return the address of another data center of WeChat, or the same one."""
    return f"https://{host}" if urlsplit(f"https://{host}").hostname and host.endswith(".qq.com") else base_url


async def _get(base_url: str, method: str, query: dict[str, str], timeout: float) -> dict[str, Any]:
    http = Http(base_url, headers=_HEADERS)
    try:
        return await http.json("GET", f"/ilink/bot/{method}", params=query, timeout=timeout)
    finally:
        await http.aclose()
