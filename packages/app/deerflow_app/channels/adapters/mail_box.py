"""A mailbox over IMAP: one connection, one thread of its own, since the client library blocks and IDLE waits for minutes."""

from __future__ import annotations

import asyncio
import imaplib
import re
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from imap_tools.errors import ImapToolsError, MailboxLoginError
from imap_tools.mailbox import BaseMailBox, MailBox, MailBoxStartTls, MailBoxUnencrypted

from deerflow.features.channels.types import Later, SignedOut, Unreachable
from deerflow.security.outbound import tls

T = TypeVar("T")
_PASSES = re.compile(r"\[(UNAVAILABLE|INUSE|LIMIT)\]", re.IGNORECASE)
_FAULTS = re.compile(r"\[(SERVERBUG|CONTACTADMIN)\]", re.IGNORECASE)
"""RFC 5530: the server refuses for now, or has a fault; the password may be right."""


@dataclass(frozen=True, slots=True)
class MailServer:
    """An IMAP or SMTP server.

    Args:
        security: ``none`` only for a server on this machine.
        timeout: seconds for an answer.
        later: seconds to wait after a temporary refusal; mail servers name no number.
    """

    host: str
    port: int
    security: Literal["tls", "starttls", "none"] = "tls"
    timeout: float = 30.0
    later: float = 60.0


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail as it lies in the box. ``raw``: only its head if it is larger than asked for."""

    uid: int
    raw: bytes
    arrived: datetime
    is_whole: bool


class Box:
    """An open mailbox, read only: nothing is marked as seen. Close it in any case."""

    def __init__(self, server: MailServer, user: str, password: str, folder: str) -> None:
        self._server = server
        self._user = user
        self._password = password
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "mailbox")
        self._box: BaseMailBox | None = None

    async def open(self) -> tuple[int, int]:
        """Sign in. Returns UIDVALIDITY and the UID that the next mail will get. Raises SignedOut, Unreachable."""
        return await self._run(self._open)

    async def since(self, uid: int, date: datetime | None = None) -> list[int]:
        """Return the UIDs from ``uid`` on, oldest first; with ``date`` those that arrived on that day or later."""
        return await self._run(self._since, uid, date)

    async def letter(self, uid: int, limit: int) -> Letter | None:
        """Return a mail, or None if it was deleted."""
        return await self._run(self._letter, uid, limit)

    async def wait(self, seconds: float) -> None:
        """Return when something arrived, or after ``seconds``."""
        if "IDLE" in self._client.capabilities:
            await self._run(self._idle, seconds)
        else:
            await asyncio.sleep(min(seconds, 30))
            await self._run(self._client.noop)

    def close(self) -> None:
        """End the connection, also under a thread that waits on it."""
        if self._box is not None:
            with suppress(OSError):
                self._client.sock.shutdown(socket.SHUT_RDWR)
            self._thread.submit(self._client.shutdown)
        self._thread.shutdown(wait=False)

    @property
    def _client(self) -> imaplib.IMAP4:
        assert self._box is not None
        return self._box.client

    async def _run(self, job: Callable[..., T], *args: Any) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, job, *args)
        except MailboxLoginError as error:
            if _PASSES.search(str(error)):
                raise Later(f"{self._server.host} does not sign in {self._user} for now.", self._server.later) from None
            if _FAULTS.search(str(error)):
                raise Unreachable(f"{self._server.host} has a fault and does not sign in {self._user}.") from None
            raise SignedOut(
                f"{self._server.host} does not take the password of {self._user}. Set channels.email.password; providers "
                "with two-factor sign-in want an app password."
            ) from None
        except (imaplib.IMAP4.error, ImapToolsError, OSError) as error:
            raise Unreachable(f"{self._server.host}: {type(error).__name__}: {error}") from None

    def _open(self) -> tuple[int, int]:
        self._box = self._connected()
        self._box.login(self._user, self._password, initial_folder=None)
        self._box.folder.set(self._folder, readonly=True)
        following = self._number("UIDNEXT") or max(self._since(1, None), default=0) + 1
        return self._number("UIDVALIDITY"), following

    def _connected(self) -> BaseMailBox:
        host, port, timeout = self._server.host, self._server.port, self._server.timeout
        match self._server.security:
            case "tls":
                return MailBox(host, port, timeout=timeout, ssl_context=tls())  # without one, no certificate is checked
            case "starttls":
                return MailBoxStartTls(host, port, timeout=timeout, ssl_context=tls())
            case "none":
                return MailBoxUnencrypted(host, port, timeout=timeout)

    def _number(self, name: str) -> int:
        found = [value for value in self._client.response(name)[1] or () if value]
        return int(found[-1]) if found else 0

    def _since(self, uid: int, date: datetime | None) -> list[int]:
        criteria = f"SINCE {date.day}-{_month(date)}-{date.year}" if date else f"UID {uid}:*"
        _, found = self._client.uid("SEARCH", criteria)
        numbers = map(int, b" ".join(filter(None, found)).split())
        return sorted(one for one in numbers if one >= uid)  # «n:*» means the last mail even if its number is lower

    def _letter(self, uid: int, limit: int) -> Letter | None:
        meta, head = self._fetch(uid, "(UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER])")
        size = re.search(rb"RFC822\.SIZE (\d+)", meta)
        if size is None:
            return None
        is_whole = int(size[1]) <= limit
        raw = self._fetch(uid, "(UID BODY.PEEK[])")[1] if is_whole else head
        arrived = imaplib.Internaldate2tuple(meta)
        moment = datetime.fromtimestamp(time.mktime(arrived), UTC) if arrived else datetime.now(UTC)
        return Letter(uid, raw, moment, is_whole) if raw else None

    def _fetch(self, uid: int, parts: str) -> tuple[bytes, bytes]:
        """Return what was said about a mail, and the text that was asked for."""
        _, data = self._client.uid("FETCH", str(uid), parts)
        pieces = [one for one in data if one is not None]
        meta = b" ".join(one[0] if isinstance(one, tuple) else one for one in pieces)
        return meta, b"".join(one[1] for one in pieces if isinstance(one, tuple))

    def _idle(self, seconds: float) -> None:
        assert self._box is not None
        self._box.idle.start()
        if not self._has_read_ahead():
            self._box.idle.poll(timeout=seconds)
        self._box.idle.stop()

    def _has_read_ahead(self) -> bool:
        """Return whether something came with the answer to IDLE: it lies in a buffer, where waiting for the socket does not see it."""
        file: Any = self._client.file
        socket_, timeout = self._client.sock, self._client.sock.gettimeout()
        socket_.settimeout(0)
        try:
            return bool(file.peek(1))
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        finally:
            socket_.settimeout(timeout)


def _month(date: datetime) -> str:
    """Return the month as IMAP writes it, whatever the locale."""
    return ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][date.month - 1]
