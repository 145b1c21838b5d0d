"""E-mail: IMAP for what arrives, SMTP for what is sent."""

from __future__ import annotations

import json
import logging
import re
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from email.utils import format_datetime, formataddr
from hashlib import sha256
from typing import Any

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Author,
    Caps,
    FileRef,
    Inbound,
    Me,
    Misconfigured,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
)
from deerflow_app.channels.adapters.mail_box import Box, Letter, MailServer
from deerflow_app.channels.adapters.mail_out import MailOut
from deerflow_app.channels.adapters.mail_text import (
    has_results,
    ids,
    is_automatic,
    is_proven,
    offset_of,
    parse,
    sender,
    storable,
    text_of,
)
from deerflow_app.channels.wire import allowed, name_of, whole

logger = logging.getLogger(__name__)

FILE_LIMIT = 20 << 20
MAIL_LIMIT = 30 << 20
"""Bytes of a mail that is read: its files are in it, a third larger."""
_DAY = 86_400
_MARK = "deerflow."
_WIDE = policy.SMTP.clone(max_line_length=990)  # a folded message id would be rewritten, and threads fall apart


class Mail(Adapter):
    """An address that people write to.

    Args:
        authserv_id: how the own mail server names itself in ``Authentication-Results``; nothing else proves who wrote.
        idle_seconds: after which a connection is asked for a sign of life.
    """

    def __init__(
        self,
        address: str,
        user: str,
        password: str,
        *,
        imap: MailServer,
        smtp: MailServer,
        authserv_id: str,
        name: str = "DeerFlow",
        folder: str = "INBOX",
        idle_seconds: float = 240.0,
    ) -> None:
        self.caps = Caps(dialect="mail", edits=False, file_in=FILE_LIMIT, file_out=FILE_LIMIT)
        self._address = address.lower()
        self._domain = self._address.rpartition("@")[2]
        self._user = user
        self._password = password
        self._imap = imap
        self._out = MailOut(smtp, user, password)
        self._authserv_id = authserv_id
        self._name = name
        self._folder = folder
        self._idle_seconds = idle_seconds
        self._ours = re.compile(rf"<{re.escape(_MARK)}[\w-]+(?:\.([0-9a-f]{{16}}))?@{re.escape(self._domain)}>")

    async def identify(self) -> Me:
        if not self._authserv_id:
            raise Misconfigured(
                "Set channels.email.authserv_id: the first word of Authentication-Results in a mail that you received, for "
                "example mx.example.org. Without it no sender can be trusted."
            )
        box = self._box()
        try:
            await box.open()
        finally:
            box.close()
        await self._out.check()
        return Me(self._address, self._name, link=f"mailto:{self._address}")

    def _box(self) -> Box:
        return Box(self._imap, self._user, self._password, self._folder)

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        box = self._box()
        try:
            validity, latest = await box.open()
            at = json.loads(cursor) if cursor else {"validity": validity, "next": latest}
            if not cursor:
                await accept([], _cursor(validity, latest))
            is_same = at["validity"] == validity
            following = at["next"] if is_same else 1
            # A server that numbered anew is asked by day; what was read before is known by its message id.
            waiting = await box.since(following, None if is_same else datetime.fromtimestamp(at["at"] - _DAY, UTC))
            connected()
            while True:
                for uid in waiting:
                    letter = await box.letter(uid, MAIL_LIMIT)
                    event = await to_thread(self._read, letter, validity) if letter else None
                    following = uid + 1
                    await accept([event] if event else [], _cursor(validity, following))
                following = max(following, latest)
                await box.wait(self._idle_seconds)
                waiting = await box.since(following)
        finally:
            box.close()

    def _read(self, letter: Letter, validity: int) -> Inbound | None:
        """Return the message in a mail, or None if nothing may be done for it."""
        try:
            message = parse(letter.raw)
            written_by = sender(message)
            if written_by is None or written_by[0] == self._address or is_automatic(message):
                return None
            if is_proven(message, written_by[0], self._authserv_id):
                return self._inbound(message, letter, validity, *written_by)
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError):
            logger.warning("E-mail: skipped mail %s, which cannot be read.", letter.uid, exc_info=True)
            return None
        logger.warning(
            "E-mail: ignored mail %s: %s does not say that DMARC passed for its sender%s.",
            letter.uid,
            self._authserv_id,
            "" if has_results(message) else ", nor anything else: is channels.email.authserv_id right?",
        )
        return None

    def _inbound(self, message: EmailMessage, letter: Letter, validity: int, address: str, name: str) -> Inbound:
        [own_id, *_] = ids(message, "message-id") or [f"<{validity}.{letter.uid}@{self._domain}>"]
        before, parents = ids(message, "references"), ids(message, "in-reply-to")
        subject = storable(" ".join(str(message.get("Subject", "")).split()))
        text, quoted = map(storable, text_of(message)) if letter.is_whole else ("", "")
        if not letter.is_whole:
            text = f"[This mail is larger than {MAIL_LIMIT >> 20} MB, so only its subject was read.]"
        if subject and not (before or parents) and not text.startswith("/"):
            text = f"{subject}\n\n{text}".strip()
        return Inbound(
            storable(own_id),
            Place(address, self._topic(own_id, [*before, *parents]), is_private=True, name=subject),
            Author(address, name=storable(name) or address, time_zone=offset_of(message)),
            letter.arrived,
            text,
            files=[
                FileRef(storable(name), {"uid": letter.uid, "validity": validity, "index": index}, size, mime)
                for index, name, size, mime, _ in _files(message)
            ],
            is_mention=True,
            reply_to=next(iter(parents), ""),
            quoted=quoted,
            wake={"id": own_id, "references": before or parents, "subject": subject},
        )

    def _topic(self, own_id: str, before: Sequence[str]) -> str:
        """Return the conversation: our own ids carry it, since some programs keep nothing but the last one."""
        for one in reversed(before):
            if ours := self._ours.fullmatch(one):
                return ours[1] or ""
        return sha256((before[0] if before else own_id).encode()).hexdigest()[:16]

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        allowed(file.name, file.size, self.caps.file_in)
        box = self._box()
        try:
            validity, _ = await box.open()
            letter = await box.letter(file.key["uid"], MAIL_LIMIT) if validity == file.key["validity"] else None
        finally:
            box.close()
        found = await to_thread(lambda: _files(parse(letter.raw))) if letter else []
        data = next((data for index, *_, data in found if index == file.key["index"]), None)
        if data is None:
            raise Refused(f"The mail with {file.name} is no longer in {self._folder}.")
        allowed(file.name, len(data), self.caps.file_in)
        for at in range(0, len(data), 65536):
            yield data[at : at + 65536]

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        return await self._send(place, self._letter(place, part.text, key, wake))

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        allowed(file.name, file.size, self.caps.file_out)
        name = name_of(file)
        message = self._letter(place, file.caption or name, key, wake)
        main, _, sub = file.mime.partition("/")
        data = b"".join([piece async for piece in whole(file)])
        message.add_attachment(data, maintype=main or "application", subtype=sub or "octet-stream", filename=name)
        return await self._send(place, message)

    def _letter(self, place: Place, text: str, key: str, wake: Mapping[str, Any]) -> EmailMessage:
        subject = " ".join((wake.get("subject") or place.name or self._name).split())
        local = _MARK + re.sub(r"[^\w-]", "_", key, flags=re.ASCII) + (f".{place.topic}" if place.topic else "")
        message = EmailMessage(policy=policy.SMTP)
        message["From"] = formataddr((self._name, self._address))
        message["To"] = place.chat
        message["Subject"] = subject if subject.lower().startswith("re:") or not wake else f"Re: {subject}"
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = f"<{local}@{self._domain}>"
        message["Auto-Submitted"] = "auto-replied" if wake else "auto-generated"
        if wake:
            message["In-Reply-To"] = wake["id"]
            message["References"] = _references([*wake["references"], wake["id"]])
        message.set_content(text, cte="quoted-printable")
        return message

    async def _send(self, place: Place, message: EmailMessage) -> Ref:
        await self._out.send(self._address, place.chat, await to_thread(message.as_bytes, policy=_WIDE))
        return {"id": message["Message-ID"]}


def _cursor(validity: int, following: int) -> str:
    return json.dumps({"validity": validity, "next": following, "at": int(datetime.now(UTC).timestamp())})


def _references(found: Sequence[str]) -> str:
    """Return the first id and as many of the last as a header line takes."""
    kept: list[str] = []
    room = 900 - len(found[0])
    for one in reversed(list(dict.fromkeys(found))[1:]):
        room -= len(one) + 1
        if room < 0:
            break
        kept.append(one)
    return " ".join([found[0], *reversed(kept)])


def _files(message: EmailMessage) -> list[tuple[int, str, int, str, bytes]]:
    """Return place, name, size, type and bytes of what is attached."""
    found = []
    for index, part in enumerate(message.iter_attachments()):
        content = part.get_payload(decode=True)
        data = content if isinstance(content, bytes) else part.as_bytes()
        found.append(
            (index, part.get_filename() or f"attachment-{index + 1}", len(data), part.get_content_type(), data)
        )
    return found
