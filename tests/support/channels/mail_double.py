"""A mail server on loopback: IMAP with IDLE and UIDs, and SMTP. Neither has TLS."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from starlette.requests import Request
from starlette.responses import Response
from tests.support.channels.double import Double, Fault, Operation

ADDRESS, PASSWORD = "deer@y.org", "mail-password"
AUTHSERV_ID = "mx.y.org"
TEXT_LIMIT = 100_000
"""Letters of a text that the server takes."""


@dataclass
class MailLink:
    """A connection of IMAP."""

    writer: asyncio.StreamWriter
    is_silent: bool = False

    def abort(self) -> None:
        self.writer.transport.abort()


@dataclass
class Kept:
    uid: int
    raw: bytes
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))


class MailDouble(Double):
    """One mailbox. ``sent``: the mails that were handed over, parsed. ``has_idle``: the server can wake its client. ``late``:
    mails that arrive when a client begins to wait, in one packet with the answer to that."""

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[Kept] = []
        self.sent: list[EmailMessage] = []
        self.logins = 0
        self.validity = 7
        self.has_idle = True
        self.commands: list[str] = []
        self.answers: dict[str, str] = {}
        """What SMTP answers to MAIL, RCPT or DATA, once."""
        self._next = 1
        self.late: list[bytes] = []
        self._idle: set[asyncio.StreamWriter] = set()
        self._told: dict[asyncio.StreamWriter, int] = {}
        self._refused: set[Session] = set()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        loop = asyncio.get_running_loop()
        self._servers = [
            await asyncio.start_server(self._imap, "127.0.0.1", 0),
            await loop.create_server(self._smtp, "127.0.0.1", 0),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().__aexit__()

    @property
    def ports(self) -> tuple[int, int]:
        """Return those of IMAP and SMTP."""
        imap, smtp = (server.sockets[0].getsockname()[1] for server in self._servers)
        return imap, smtp

    # Orders of tests

    def deliver(self, raw: bytes) -> int:
        """Put a mail into the box; return its UID."""
        self.mails.append(Kept(self._next, raw))
        self._next += 1
        for writer in self._idle:
            writer.write(f"* {len(self.mails)} EXISTS\r\n".encode())
        return self._next - 1

    def renumber(self) -> None:
        """Give every mail another number, as a server does after a restore."""
        self.validity += 1
        for mail in self.mails:
            mail.uid += 100
        self._next += 100

    # IMAP

    async def _imap(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        link = MailLink(writer)
        self.links.append(link)  # type: ignore[arg-type]
        try:
            await self.server.write(writer, b"* OK ready\r\n")
            while line := await reader.readline():
                while link.is_silent:
                    await asyncio.sleep(0.05)
                if not await self._command(line.decode().strip(), reader, writer):
                    return
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self.links.remove(link)  # type: ignore[arg-type]
            self._idle.discard(writer)
            writer.transport.abort()

    async def _command(self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a command; return whether the connection goes on."""
        tag, _, command = line.partition(" ")
        self.commands.append(command)
        said, end = b"", "OK done"
        match command.upper().split():
            case ["CAPABILITY"]:
                said = b"* CAPABILITY IMAP4REV1" + (b" IDLE" if self.has_idle else b"") + b"\r\n"
            case ["LOGIN", *_]:
                self.logins += 1
                answer = self._login(command)
                if answer is None:
                    return False
                end = answer
            case ["EXAMINE", _]:
                self._told[writer] = len(self.mails)
                said = f"* {len(self.mails)} EXISTS\r\n* OK [UIDVALIDITY {self.validity}] ok\r\n".encode()
                said += f"* OK [UIDNEXT {self._next}] ok\r\n".encode()
                end = "OK [READ-ONLY] done"
            case ["UID", "SEARCH", *criteria]:
                self._told[writer] = len(self.mails)
                found = " ".join(str(mail.uid) for mail in self._search(criteria))
                said = f"* SEARCH {found}\r\n".encode()
            case ["UID", "FETCH", uid, *parts]:
                said = self._fetch(int(uid), " ".join(parts))
            case ["IDLE"]:
                while self.late:
                    self.deliver(self.late.pop())
                news = f"* {len(self.mails)} EXISTS\r\n" if self._told[writer] != len(self.mails) else ""
                await self.server.write(writer, f"+ idling\r\n{news}".encode())
                self._idle.add(writer)
                await reader.readline()
                self._idle.discard(writer)
            case ["LOGOUT"]:
                await self.server.write(writer, f"* BYE\r\n{tag} OK done\r\n".encode())
                return False
        await self.server.write(writer, said + f"{tag} {end}\r\n".encode())
        return True

    def _login(self, command: str) -> str | None:
        """Return the answer to a sign-in; None cuts the connection."""
        fault = next(
            (found for one in (Operation.LISTEN, Operation.FETCH, Operation.IDENTIFY) if (found := self.due(one))), None
        )
        match fault:
            case None:
                is_right = command == f'LOGIN "{ADDRESS}" "{PASSWORD}"'
                return "OK done" if is_right else "NO [AUTHENTICATIONFAILED] wrong"
            case Fault.LATER:
                return "NO [UNAVAILABLE] later"
            case Fault.SERVER_ERROR:
                return "NO [SERVERBUG] broken"
            case Fault.SIGNED_OUT:
                return "NO [AUTHENTICATIONFAILED] wrong"
            case Fault.GARBAGE:
                return "<html>Sign in to this network</html>"
            case _:
                return None

    def _search(self, criteria: list[str]) -> list[Kept]:
        if criteria[0] == "SINCE":
            day = datetime.strptime(criteria[1], "%d-%b-%Y").replace(tzinfo=UTC)
            return [mail for mail in self.mails if mail.arrived >= day]
        first = int(criteria[1].partition(":")[0])
        return [mail for mail in self.mails if mail.uid >= first or mail is self.mails[-1]]

    def _fetch(self, uid: int, parts: str) -> bytes:
        for number, mail in enumerate(self.mails, 1):
            if mail.uid == uid:
                body = mail.raw
                if "HEADER" in parts:
                    body = re.split(rb"\r?\n\r?\n", body, maxsplit=1)[0] + b"\r\n\r\n"
                date = mail.arrived.strftime('"%d-%b-%Y %H:%M:%S +0000"')
                section = "HEADER" if "HEADER" in parts else ""
                head = f"* {number} FETCH (UID {uid} RFC822.SIZE {len(mail.raw)} INTERNALDATE {date} BODY[{section}]"
                return f"{head} {{{len(body)}}}\r\n".encode() + body + b")\r\n"
        return b""

    # SMTP

    def _smtp(self) -> SMTP:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # passwords without TLS, on loopback
            return SMTP(
                self, hostname="y.org", authenticator=self._authenticate, auth_required=True, auth_require_tls=False
            )

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        for operation in (Operation.POST, Operation.UPLOAD):
            if self._faults[operation] and self._faults[operation][0] is Fault.SIGNED_OUT:
                self.due(operation)
                self._refused.add(session)  # by every mechanism that it tries
        is_right = data == LoginPassword(ADDRESS.encode(), PASSWORD.encode()) and session not in self._refused
        return AuthResult(success=is_right, handled=False)

    def _ordered(self, step: str) -> str:
        return self.answers.pop(step, "")

    async def handle_MAIL(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        envelope.mail_from = address
        return self._ordered("MAIL") or "250 ok"

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        envelope.rcpt_tos.append(address)
        return self._ordered("RCPT") or "250 ok"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        is_file = any(True for _ in message.iter_attachments())
        cut: Callable[[], None] = server.transport.abort
        match self.due(Operation.UPLOAD if is_file else Operation.POST):
            case Fault.CUT_BEFORE:
                cut()
            case Fault.CUT_AFTER:
                self.sent.append(message)
                cut()
            case Fault.LATER:
                return "451 4.7.1 greylisted, come again"
            case Fault.REFUSED:
                return "550 5.7.1 no"
            case Fault.GARBAGE | Fault.SERVER_ERROR:
                return "<html>Sign in to this network</html>"
            case _:
                if ordered := self._ordered("DATA"):
                    return ordered
                body = message.get_body(("plain",))
                if body is not None and len(body.get_content().replace("\r\n", "\n").rstrip("\n")) > TEXT_LIMIT:
                    return "552 5.3.4 too large"
                self.sent.append(message)
        return "250 ok"

    # The part of a platform that speaks HTTP: none

    def operation(self, request: Request) -> Operation | None:
        raise NotImplementedError

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError

    def failure(self, fault: Fault) -> Response:
        raise NotImplementedError
