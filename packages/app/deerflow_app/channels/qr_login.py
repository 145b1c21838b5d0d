"""Sign-in by QR code, for platforms that give a bot's token to the account that scans one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class QrState(StrEnum):
    """Progress of a sign-in. ``NEEDS_CODE``: the phone shows a number, which belongs into :meth:`QrLogin.poll`."""

    WAITING = "waiting"
    SCANNED = "scanned"
    NEEDS_CODE = "needs_code"
    CONFIRMED = "confirmed"
    EXPIRED = "expired"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class QrCode:
    """A code to scan.

    Args:
        id, server: for :meth:`QrLogin.poll`.
        content: what the picture must hold.
    """

    id: str
    server: str
    content: str


@dataclass(frozen=True, slots=True)
class QrProgress:
    """Progress of a code.

    Args:
        server: where to ask next.
        settings: of the bot, with its secrets; once confirmed.
    """

    state: QrState
    server: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


class QrLogin(Protocol):
    """Both raise Refused, Later, Uncertain or Unreachable."""

    async def begin(self) -> QrCode:
        """Ask for a code."""
        ...

    async def poll(self, code_id: str, server: str, verify_code: str = "") -> QrProgress:
        """Return what became of a code; the platform may hold the question open for half a minute.

        Args:
            server: as the code or the last progress named it. One that is not the platform's is Refused.
        """
        ...
