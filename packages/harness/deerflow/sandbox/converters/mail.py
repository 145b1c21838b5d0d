"""Read e-mail: messages (``.eml``), mailboxes (``.mbox``) and those of Outlook (``.msg``)."""

# pyright: reportMissingImports=false

from __future__ import annotations

import email
import email.message
import email.policy
import io
import re
from collections.abc import Iterator
from typing import Any

from deerflow.sandbox.converters.markdown import Mark, line
from deerflow.security.encodings import text_of
from deerflow.security.html import decoded, markdown_of

MOST_DEPTH = 5
MOST_MESSAGES = 2000
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_FROM = re.compile(rb"^From [^\n]*\n", re.MULTILINE)


def read(data: bytes) -> Iterator[str]:
    """Yield a message: its head, its text, its attachments by name."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode()
    yield from _message(email.message_from_bytes(data, policy=email.policy.default), 0)


def read_mailbox(data: bytes) -> Iterator[str]:
    """Yield the messages of a mailbox."""
    messages = [each for each in _FROM.split(data) if each.strip()]
    for number, each in enumerate(messages[:MOST_MESSAGES], 1):
        yield Mark(f"message {number} of {len(messages)}")
        yield from read(re.sub(rb"(?m)^>(>*From )", rb"\1", each))
        yield "\n"
    if len(messages) > MOST_MESSAGES:
        yield f"[The other {len(messages) - MOST_MESSAGES} messages are left out. Read them with Python (mailbox).]\n"


def read_outlook(data: bytes) -> Iterator[str]:
    """Yield a message of Outlook."""
    from oxmsg import Message

    message = Message.load(io.BytesIO(data))
    headers: Any = message.message_headers or {}
    people = [(each.name or "", each.email_address or "") for each in message.recipients]
    yield _head(
        {
            "From": message.sender or headers.get("From"),
            "To": headers.get("To") or ", ".join(_person(*each) for each in people),
            "Cc": headers.get("Cc"),
            "Date": headers.get("Date") or message.sent_date or "(none)",
            "Subject": message.subject,
        }
    )
    text = message.body or (markdown_of(_html(message.html_body)) if message.html_body else "")
    yield f"\n{text.replace(chr(13), '') or '(no text; it may be encrypted)'}\n"
    yield _attachments((each.file_name or "(a message or object inside)", each.size) for each in message.attachments)


def _message(message: Any, depth: int) -> Iterator[str]:
    yield _head({name: _header(message, name) for name in _HEADERS})
    try:
        body = message.get_body(("plain", "html"))
    except (AttributeError, KeyError, ValueError):
        body = None
    if body is not None:
        text = _content(body)
        yield f"\n{markdown_of(text) if body.get_content_subtype() == 'html' else text}\n"
    files: list[tuple[str, int]] = []
    for part in message.iter_attachments():
        if part.get_content_type() == "message/rfc822" and depth < MOST_DEPTH and isinstance(part.get_payload(), list):
            yield "\n---\n\nForwarded message:\n\n"
            yield from _message(part.get_payload(0), depth + 1)
            yield "\n---\n"
        else:
            files.append((part.get_filename() or part.get_content_type(), len(part.get_payload(decode=True) or b"")))
    yield _attachments(iter(files))


def _header(message: Any, name: str) -> str:
    try:
        return str(message[name] or "")
    except Exception:  # the library's parser of addresses fails in many ways; the raw line still tells
        return next((str(value) for key, value in message._headers if key.lower() == name.lower()), "")


def _content(body: Any) -> str:
    """The text of a part, whatever its head says of its encoding."""
    data = body.get_payload(decode=True) or b""
    charset = str(body.get_content_charset() or "")
    try:
        return data.decode(charset or "ascii")
    except (LookupError, UnicodeDecodeError):
        return text_of(data)


def _head(fields: dict[str, Any]) -> str:
    return "".join(f"**{name}:** {line(str(value))}\n" for name, value in fields.items() if value)


def _html(body: str | bytes) -> str:
    return body if isinstance(body, str) else decoded(body)


def _person(name: str, address: str) -> str:
    return f"{name} <{address}>" if address and address != name else name


def _attachments(files: Iterator[tuple[str, int | None]]) -> str:
    named = [f"{line(name)} ({_size(size)})" if size is not None else line(name) for name, size in files]
    return f"\nAttachments: {', '.join(named)}\n" if named else ""


def _size(count: int) -> str:
    return (
        f"{count} bytes" if count < 1000 else f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"
    )
