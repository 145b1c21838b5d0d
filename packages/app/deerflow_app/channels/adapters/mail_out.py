"""Sending mails over SMTP."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable
from contextlib import suppress

from aiosmtplib import SMTP, SMTPAuthenticationError, SMTPConnectError, SMTPException, SMTPResponseException

from deerflow.features.channels.types import Later, Refused, SignedOut, Uncertain, Unreachable
from deerflow.security.outbound import tls
from deerflow_app.channels.adapters.mail_box import MailServer


class MailOut:
    """A server that takes mails. ``password``: empty for one that asks for none."""

    def __init__(self, server: MailServer, user: str, password: str) -> None:
        self._server = server
        self._user = user
        self._password = password

    async def check(self) -> None:
        """Sign in. Raises SignedOut, Unreachable, Later."""
        smtp = await self._client()
        try:
            await self._connect(smtp)
        finally:
            smtp.close()

    async def send(self, sender: str, to: str, message: bytes) -> None:
        """Hand over a mail, once. A cut is Uncertain from the moment on when the server has the address."""
        smtp = await self._client()
        try:
            await self._connect(smtp)
            await self._step(smtp.mail(sender), Unreachable)
            await self._step(smtp.rcpt(to), Unreachable)
            await self._step(smtp.data(message), Uncertain)
            with suppress(SMTPException, OSError):
                await smtp.quit()
        finally:
            smtp.close()

    async def _client(self) -> SMTP:
        security = self._server.security
        return SMTP(
            hostname=self._server.host,
            port=self._server.port,
            local_hostname=self._user.rpartition("@")[2] or "localhost",
            use_tls=security == "tls",
            start_tls=security == "starttls",
            tls_context=None if security == "none" else await to_thread(tls),
            timeout=self._server.timeout,
        )

    async def _connect(self, smtp: SMTP) -> None:
        await self._step(smtp.connect(), Unreachable)
        if self._password:
            await self._step(smtp.login(self._user, self._password), Unreachable)

    async def _step(self, step: Awaitable[object], cut: type[Unreachable | Uncertain]) -> None:
        """Take one step of SMTP. ``cut``: the error if no answer comes."""
        where = self._server.host
        try:
            await step
        except SMTPConnectError as error:
            raise Unreachable(f"{where}: {error}") from None
        except SMTPResponseException as error:
            why = f"{where} answered {error.code}: {error.message}"
            if 400 <= error.code < 500:
                raise Later(why, self._server.later) from None
            if isinstance(error, SMTPAuthenticationError):
                raise SignedOut(
                    f"{why}. Set channels.email.password; providers with two-factor sign-in want an app password."
                ) from None
            raise (Refused(why) if error.code >= 500 else cut(why)) from None
        except (SMTPException, OSError) as error:
            raise cut(f"{where}: {type(error).__name__}: {error}") from None
