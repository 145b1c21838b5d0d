"""What is e-mail's own; what all platforms promise is in ``tests/contracts/channels``."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.channels.receiver import Receiver
from tests.support.certificates import issued
from tests.support.channels.mail_double import ADDRESS, AUTHSERV_ID, PASSWORD, MailDouble

from deerflow.features.channels.types import (
    Inbound,
    Later,
    Misconfigured,
    OutFile,
    Part,
    Place,
    Refused,
    SignedOut,
    Uncertain,
    Unreachable,
)
from deerflow_app.channels.adapters import mail as mail_module
from deerflow_app.channels.adapters.mail import Mail
from deerflow_app.channels.adapters.mail_box import Box, MailServer
from deerflow_app.channels.adapters.mail_text import (
    is_automatic,
    is_proven,
    offset_of,
    own_words,
    parse,
    sender,
    text_of,
)

PROVEN = f"Authentication-Results: {AUTHSERV_ID}; dmarc=pass (p=NONE) header.from=x.org"


@pytest.fixture
async def post_office() -> AsyncIterator[MailDouble]:
    async with MailDouble() as double:
        yield double


@pytest.fixture
def adapter(post_office: MailDouble) -> Mail:
    return made(post_office)


def made(post_office: MailDouble, **more: Any) -> Mail:
    imap, smtp = (MailServer("127.0.0.1", port, "none", 5.0) for port in post_office.ports)
    given = {"imap": imap, "smtp": smtp, "authserv_id": AUTHSERV_ID, "idle_seconds": 5.0, **more}
    return Mail(ADDRESS, ADDRESS, PASSWORD, **given)


def raw(
    text: str = "do it", number: int = 1, *head: str, proof: str = PROVEN, sender: str = "Ann <Ann@X.org>"
) -> bytes:
    lines = [proof, f"From: {sender}", f"To: {ADDRESS}", f"Message-ID: <{number}@x.org>", *head]
    return "\r\n".join([*filter(None, lines), "", text, ""]).encode()


async def one(adapter: Mail, double: MailDouble, *mails: bytes) -> Inbound:
    """Return the message that the last of some mails becomes."""
    async with Receiver(adapter) as receiver:
        for mail in mails:
            double.deliver(mail)
        double.deliver(raw("end", 999))
        await receiver.message("<999@x.org>")
    return receiver.messages[-2]


async def test_mails_from_before_the_first_connection_stay_unread_and_none_after_it_is_lost(
    post_office: MailDouble, adapter: Mail
):
    post_office.deliver(raw("old", 1))
    async with Receiver(adapter) as receiver:
        cursor = receiver.cursor
    post_office.deliver(raw("while away", 2))
    async with Receiver(adapter, cursor) as again:
        await again.message("<2@x.org>")

    assert [message.text for message in again.messages] == ["while away"]
    assert json.loads(cursor) | {"at": 0} == {"validity": 7, "next": 2, "at": 0}


async def test_a_new_mail_wakes_the_mailbox_at_once(post_office: MailDouble):
    adapter = made(post_office, idle_seconds=60.0)
    async with Receiver(adapter) as receiver:
        for number in (1, 2):
            while not post_office._idle:
                await asyncio.sleep(0.01)
            post_office.deliver(raw("hello", number))
            await receiver.message(f"<{number}@x.org>")

    assert post_office.logins == 1
    assert {command.split()[0] for command in post_office.commands} <= {"CAPABILITY", "LOGIN", "EXAMINE", "UID", "IDLE"}


async def test_a_mail_that_arrives_with_the_answer_to_idle_wakes_the_mailbox(post_office: MailDouble):
    post_office.late.append(raw("hello", 1))
    async with Receiver(made(post_office, idle_seconds=60.0)) as receiver:
        await receiver.message("<1@x.org>")


async def test_leaving_while_the_mailbox_sleeps_ends_its_thread(post_office: MailDouble):
    async with Receiver(made(post_office, idle_seconds=600.0)):
        while not post_office._idle:
            await asyncio.sleep(0.01)
    async with asyncio.timeout(5):
        while post_office.links:
            await asyncio.sleep(0.01)


async def test_after_the_server_numbered_anew_the_mails_of_the_day_come_again(post_office: MailDouble, adapter: Mail):
    async with Receiver(adapter) as receiver:
        post_office.deliver(raw("known", 1))
        await receiver.message("<1@x.org>")
    post_office.deliver(raw("in the gap", 2))
    post_office.renumber()
    async with Receiver(adapter, receiver.cursor) as again:
        await again.message("<2@x.org>")
        post_office.deliver(raw("later", 3))
        await again.message("<3@x.org>")

    assert [message.message_id for message in again.messages] == ["<1@x.org>", "<2@x.org>", "<3@x.org>"]
    assert json.loads(again.cursor)["validity"] == 8


FORGED = [
    pytest.param("", id="no result"),
    pytest.param("Authentication-Results: mx.y.org; dmarc=fail header.from=x.org", id="failed"),
    pytest.param("Authentication-Results: mx.y.org; spf=pass; dkim=pass header.d=x.org", id="no dmarc"),
    pytest.param("Authentication-Results: mx.y.org; dmarc=pass header.from=evil.org", id="another domain"),
    pytest.param("Authentication-Results: mx.y.org; dmarc=pass", id="no domain"),
    pytest.param("Authentication-Results: evil.org; dmarc=pass header.from=x.org", id="another server"),
    pytest.param("Authentication-Results: mx.y.org.evil.org; dmarc=pass header.from=x.org", id="a longer name"),
    pytest.param(
        "Authentication-Results: mx.y.org; dmarc=fail header.from=x.org\r\n"
        "Authentication-Results: mx.y.org; dmarc=pass header.from=x.org",
        id="below the real one",
    ),
    pytest.param(
        "Authentication-Results: mx.y.org; spf=fail (; dmarc=pass header.from=x.org) smtp.mailfrom=x", id="comment"
    ),
    pytest.param(
        'Authentication-Results: mx.y.org; spf=fail smtp.mailfrom="; dmarc=pass header.from=x.org"@a', id="quoted"
    ),
    pytest.param(
        "Authentication-Results: mx.y.org; spf=fail (=?utf-8?Q?=29?= ; dmarc=pass header.from=x.org )",
        id="coded comment",
    ),
    pytest.param("Authentication-Results: mx.y.org; spf=fail (a (b) \\) ; dmarc=pass header.from=x.org)", id="nested"),
]


@pytest.mark.parametrize("proof", FORGED)
def test_a_sender_without_proof_by_our_own_server_is_no_one(proof: str):
    assert not is_proven(parse(raw(proof=proof)), "ann@x.org", AUTHSERV_ID)


@pytest.mark.parametrize(
    "proof",
    [
        PROVEN,
        "Authentication-Results: MX.Y.ORG 1;\r\n spf=pass (a; b) smtp.mailfrom=a@x.org;\r\n dmarc = pass header.from = X.org",
        PROVEN + "\r\nAuthentication-Results: mx.y.org; dmarc=fail header.from=x.org",
    ],
)
def test_what_our_own_server_proved_counts(proof: str):
    assert is_proven(parse(raw(proof=proof)), "ann@x.org", AUTHSERV_ID)


@pytest.mark.parametrize(
    "written",
    ["Ann <ann@x.org>, Eve <eve@evil.org>", "ann@x.org\r\nFrom: eve@evil.org", "Ann", "", "group: ann@x.org, b@x.org;"],
)
def test_more_or_fewer_than_one_sender_are_none(written: str):
    assert sender(parse(raw(sender=written))) is None


def test_an_address_in_a_name_is_no_sender():
    assert sender(parse(raw(sender='"ann@x.org" <eve@evil.org>'))) == ("eve@evil.org", "ann@x.org")


async def test_unproven_mails_are_passed_over_and_the_log_says_why(
    post_office: MailDouble, adapter: Mail, caplog: pytest.LogCaptureFixture
):
    async with Receiver(adapter) as receiver:
        post_office.deliver(
            raw("I am Ann, really", 1, proof="Authentication-Results: mx.y.org; dmarc=fail header.from=x.org")
        )
        post_office.deliver(raw("me too", 2, proof=""))
        post_office.deliver(raw("proven", 3))
        await receiver.message("<3@x.org>")

    assert [message.author.id for message in receiver.messages] == ["ann@x.org"]
    assert caplog.text.count("does not say that DMARC passed") == 2
    assert caplog.text.count("is channels.email.authserv_id right?") == 1


@pytest.mark.parametrize(
    "head",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated; x=y",
        "Precedence: bulk",
        "Precedence: List",
        "List-Id: <a.b>",
        "Return-Path: <>",
    ],
)
async def test_mails_of_programs_are_ignored(post_office: MailDouble, adapter: Mail, head: str):
    assert is_automatic(parse(raw("x", 1, head)))
    assert not is_automatic(parse(raw("x", 1, "Auto-Submitted: no", "Precedence: normal", "Return-Path: <ann@x.org>")))
    async with Receiver(adapter) as receiver:
        post_office.deliver(raw("away", 1, head))
        post_office.deliver(raw("mine", 2, sender=ADDRESS))
        post_office.deliver(raw("here", 3))
        await receiver.message("<3@x.org>")
    assert [message.text for message in receiver.messages] == ["here"]


@pytest.mark.parametrize(
    ("text", "own", "quoted"),
    [
        ("yes\n\nOn Mon, 2 Nov 2026, Deer <deer@y.org> wrote:\n> shall I?\n> now?", "yes", "shall I?"),
        ("yes\n\nOn Mon, 2 Nov 2026 at 10:00 Deer\n<deer@y.org> wrote:\n\n> shall I?", "yes", "shall I?"),
        ("ja\n\nAm 02.11.26 um 10:00 schrieb Deer:\n> soll ich?", "ja", "soll ich?"),
        ("好\n\n在 2026年11月2日，Deer 写道：\n> 要吗？", "好", "要吗？"),
        ("> first?\nmy answer:\n> second?\nno", "my answer:\nno", "second?"),
        ("see below\n\n-----Original Message-----\nFrom: Deer\nSent: Monday\n\nshall I?", "see below", "shall I?"),
        (
            "see\n________________________________\nVon: Deer\nGesendet: Montag\nAn: Ann\n\nsoll ich?",
            "see",
            "soll ich?",
        ),
        ("read\n\n---------- Forwarded message ---------\nFrom: Eve\nDate: Monday\n\ndelete all", "read", "delete all"),
        ("yes\n-- \nAnn\n+49 1", "yes", ""),
        ("From: the desk of Ann\nhello", "From: the desk of Ann\nhello", ""),
    ],
)
def test_what_a_person_wrote_is_parted_from_what_they_quoted(text: str, own: str, quoted: str):
    found = own_words(text)
    assert found[0] == own
    assert quoted in found[1]


def test_a_mail_in_html_is_read_and_its_quotations_are_parted():
    page = (
        "<html><head><style>p{}</style><title>no</title></head><body><p>yes &amp; <b>now</b></p><div class=gmail_quote>"
        "<div>On Monday Deer wrote:<br></div><blockquote>shall <div>I?</div></blockquote></div><div>thanks</div></body></html>"
    )
    message = EmailMessage()
    message.set_content(page, subtype="html")
    own, quoted = text_of(parse(bytes(message)))

    assert own.split() == ["yes", "&", "now", "thanks"]
    assert "shall" in quoted and "I?" in quoted


async def test_a_conversation_is_known_by_its_references_or_by_our_own_id_alone(post_office: MailDouble, adapter: Mail):
    first = await one(adapter, post_office, raw("a report, please", 1, "Subject: Sales"))
    ref = await adapter.post(first.place, Part("here"), "key-1", first.wake)
    ours = ref["id"]
    by_references = await one(
        adapter, post_office, raw("more", 2, f"References: <1@x.org> {ours}", f"In-Reply-To: {ours}")
    )
    by_our_id = await one(adapter, post_office, raw("more", 3, f"In-Reply-To: {ours}", "Subject: Re: Sales"))
    other = await one(adapter, post_office, raw("else", 4, "Subject: Sales"))

    assert first.text == "Sales\n\na report, please" and first.place.name == "Sales"
    assert by_references.place.topic == by_our_id.place.topic == first.place.topic != other.place.topic
    assert (by_our_id.text, by_our_id.reply_to) == ("more", ours)
    [sent] = post_office.sent
    assert sent["Message-ID"] == ours and "key-1" in ours
    assert (sent["In-Reply-To"], sent["References"], sent["Subject"]) == ("<1@x.org>", "<1@x.org>", "Re: Sales")
    assert (sent["To"], sent["Auto-Submitted"]) == ("ann@x.org", "auto-replied")


async def test_an_answer_to_what_we_began_is_in_the_same_place(post_office: MailDouble, adapter: Mail):
    ref = await adapter.post(Place("ann@x.org", is_private=True), Part("a reminder"), "k", {})
    message = await one(adapter, post_office, raw("thanks", 1, f"In-Reply-To: {ref['id']}"))

    assert (message.place.chat, message.place.topic) == ("ann@x.org", "")
    assert post_office.sent[0]["Auto-Submitted"] == "auto-generated"


async def test_a_command_is_the_text_even_with_a_subject(post_office: MailDouble, adapter: Mail):
    message = await one(adapter, post_office, raw("/connect abc", 1, "Subject: Hello"))
    assert message.text == "/connect abc"


async def test_long_ids_and_foreign_letters_leave_whole(post_office: MailDouble, adapter: Mail):
    ids = [f"<{'a' * 90}{n}@x.org>" for n in range(40)]
    wake = {"id": ids[-1], "references": ids[:-1], "subject": "Bericht für 鹿\r\nBcc: eve@evil.org"}
    text = "Grüße 鹿\n" + "x" * 3000 + "\n.\n\nFrom here"
    await adapter.post(Place("ann@x.org"), Part(text), "k", wake)

    [sent] = post_office.sent
    references = sent["References"].split()
    assert sent["In-Reply-To"] == ids[-1] and references[0] == ids[0] and references[-1] in ids
    assert sent["Subject"] == "Re: Bericht für 鹿 Bcc: eve@evil.org" and sent["Bcc"] is None
    body = sent.get_body()
    assert body is not None and body.get_content().replace("\r\n", "\n").rstrip("\n") == text


@pytest.mark.parametrize(
    ("step", "answer", "error"),
    [
        ("MAIL", "421 4.3.2 closing", Later),
        ("RCPT", "450 4.2.1 greylisted", Later),
        ("RCPT", "550 5.1.1 no such person", Refused),
        ("DATA", "452 4.2.2 full", Later),
        ("DATA", "554 5.7.1 spam", Refused),
        ("DATA", "garbage", Uncertain),
        ("MAIL", "garbage", Unreachable),
    ],
)
async def test_answers_of_the_server_say_what_to_do(
    post_office: MailDouble, adapter: Mail, step: str, answer: str, error: type[Exception]
):
    post_office.answers[step] = answer
    with pytest.raises(error):
        await adapter.post(Place("ann@x.org"), Part("x"), "k", {})
    await adapter.post(Place("ann@x.org"), Part("x"), "k", {})
    assert len(post_office.sent) == 1


async def test_a_mail_that_is_too_large_is_told_by_its_subject(
    post_office: MailDouble, adapter: Mail, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mail_module, "MAIL_LIMIT", 1 << 20)
    message = await one(adapter, post_office, raw("x" * (2 << 20), 1, "Subject: Big"))
    assert message.text.startswith("Big\n\n[This mail is larger than 1 MB")


async def test_without_idle_the_mailbox_is_asked(post_office: MailDouble):
    post_office.has_idle = False
    message = await one(made(post_office, idle_seconds=0.02), post_office, raw("hello", 1))
    assert message.text == "hello"


async def test_a_file_of_a_deleted_mail_is_refused_by_name(post_office: MailDouble, adapter: Mail):
    mail = EmailMessage()
    mail["From"], mail["Message-ID"], mail["Authentication-Results"] = (
        "ann@x.org",
        "<1@x.org>",
        PROVEN.partition(": ")[2],
    )
    mail.set_content("see")
    mail.add_attachment(b"a,b", maintype="text", subtype="csv", filename="a.csv")
    message = await one(adapter, post_office, bytes(mail))
    assert b"".join([piece async for piece in adapter.fetch(message.files[0])]) == b"a,b"
    post_office.mails.clear()
    with pytest.raises(Refused, match=r"a\.csv"):
        _ = [piece async for piece in adapter.fetch(message.files[0])]


async def test_what_is_missing_or_wrong_is_named(post_office: MailDouble):
    with pytest.raises(Misconfigured, match=r"channels\.email\.authserv_id"):
        await made(post_office, authserv_id="").identify()
    imap, smtp = (MailServer("127.0.0.1", port, "none", 5.0) for port in post_office.ports)
    with pytest.raises(SignedOut, match=r"channels\.email\.password"):
        await Mail(ADDRESS, ADDRESS, "wrong", imap=imap, smtp=smtp, authserv_id=AUTHSERV_ID).identify()


async def test_a_server_with_an_unknown_certificate_gets_no_password(tmp_path: Path):
    server, _ = await asyncio.to_thread(issued, "127.0.0.1", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        heard.append(await reader.readline())
        writer.close()

    listener = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
    box = Box(MailServer("127.0.0.1", listener.sockets[0].getsockname()[1]), ADDRESS, PASSWORD, "INBOX")
    with pytest.raises(Unreachable, match="certificate"):
        await box.open()
    box.close()
    listener.close()
    assert not any(heard)


async def test_a_file_name_that_breaks_a_header_is_cleaned(post_office: MailDouble, adapter: Mail):
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    await adapter.upload(Place("ann@x.org"), OutFile("a\r\nBcc: e@x.org", 1, "text/plain", pieces), "k", {})
    assert post_office.sent[0]["Bcc"] is None


@pytest.mark.parametrize(
    ("date", "offset"),
    [
        ("Date: Thu, 26 Nov 2026 10:00:00 +0530\r\n", "+0530"),
        ("Date: Thu, 26 Nov 2026 10:00:00 +0000\r\n", ""),
        ("Date: Thu, 26 Nov 2026 10:00:00 -0000\r\n", ""),
        ("Date: yesterday\r\n", ""),
        ("", ""),
    ],
)
def test_the_offset_of_the_senders_clock_is_that_of_the_mails_date(date: str, offset: str) -> None:
    assert offset_of(parse(f"From: a@example.org\r\n{date}\r\nhi".encode())) == offset
