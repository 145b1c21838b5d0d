"""E-mail in the contract suite of channels."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from email.message import EmailMessage
from urllib.parse import quote

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.double import LATER, Fault, Operation
from tests.support.channels.mail_double import ADDRESS, AUTHSERV_ID, PASSWORD, TEXT_LIMIT, MailDouble

from deerflow.features.channels.types import Adapter
from deerflow_app.channels.adapters.mail import Mail
from deerflow_app.channels.adapters.mail_box import MailServer


class MailCase(Case):
    name = "mail"
    limit = TEXT_LIMIT
    secrets = (PASSWORD,)
    # A server refuses a sign-in for now, or for a wrong password; there is nothing else.
    exempt = frozenset({(Operation.IDENTIFY, Fault.REFUSED), (Operation.FETCH, Fault.REFUSED)})
    has_groups = False
    has_link = False
    has_clicks = False
    has_edits = False
    has_signals = False
    can_displace = False

    def __init__(self) -> None:
        self.double: MailDouble = MailDouble()
        self._count = 0

    def adapter(self) -> Adapter:
        imap, smtp = (MailServer("127.0.0.1", port, "none", 0.5, LATER) for port in self.double.ports)
        return Mail(ADDRESS, ADDRESS, PASSWORD, imap=imap, smtp=smtp, authserv_id=AUTHSERV_ID, idle_seconds=0.3)

    async def say(self, said: Said) -> str:
        self._count += 1
        own = f"<{self._count}@x.org>"
        parent = said.replies_to["id"] if said.replies_to is not None else "<root@x.org>"
        head = [
            f"Authentication-Results: {AUTHSERV_ID}; dmarc=pass header.from=x.org",
            f"From: =?utf-8?B?{b64encode(said.name.encode()).decode()}?= <{'ben' if said.by_ben else 'ann'}@x.org>",
            f"To: {ADDRESS}",
            f"Message-ID: {own}",
            f"In-Reply-To: {parent}",
            "MIME-Version: 1.0",
            'Content-Type: multipart/mixed; boundary="edge"',
        ]
        # Of the charsets of mails, UTF-16 alone can hold half a letter.
        charset = "utf-8" if said.text.isprintable() else "utf-16-le"
        text = _base64(said.text.encode(charset, "surrogatepass"))
        parts = [f"Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: base64\r\n\r\n{text}"]
        for name, data in said.files:
            disposition = f"attachment; filename*=utf-8''{quote(name, safe='')}"
            coded = f"Content-Transfer-Encoding: base64\r\n\r\n{_base64(data)}"
            parts.append(f"Content-Type: application/octet-stream\r\nContent-Disposition: {disposition}\r\n{coded}")
        body = "".join(f"--edge\r\n{part}\r\n" for part in parts)
        self.double.deliver(("\r\n".join(head) + f"\r\n\r\n{body}--edge--\r\n").encode())
        return own

    async def repeat(self) -> None:
        self.double.deliver(self.double.mails[-1].raw)

    async def babble(self) -> None:
        self.double.deliver(b"From: \xff\xfe<<>>, @\r\nContent-Type: multipart/;;\r\nDate: never\r\n\r\n\x00\xff")

    def shown(self) -> Sequence[Shown]:
        return [
            Shown(_text(one), ref={"id": one["Message-ID"]})
            for one in self.double.sent
            if not list(one.iter_attachments())
        ]

    def received(self) -> Sequence[tuple[str, bytes]]:
        files = [file for one in self.double.sent for file in one.iter_attachments()]
        return [(file.get_filename() or "", file.get_payload(decode=True)) for file in files]  # type: ignore[misc]


def _text(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    return body.get_content().replace("\r\n", "\n").rstrip("\n")


def _base64(data: bytes) -> str:
    coded = b64encode(data).decode()
    return "\r\n".join(coded[at : at + 76] for at in range(0, len(coded), 76))


CASE = MailCase
