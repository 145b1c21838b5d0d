"""Mails read as messages: who proved to have sent one, what they wrote themselves, what they quoted."""

from __future__ import annotations

import html
import re
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

BREAKS = {"p", "div", "br", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "pre"}
SILENT = {"style", "script", "head", "title"}
_HEAD_LINE = re.compile(
    r"\*?(From|Sent|Date|To|Subject|Von|Gesendet|An|Betreff|De|Envoyé|À|Objet|发件人|发送时间|收件人|主题)\*? ?[:：]"
)
_TAG = re.compile(r"<(/?)([a-zA-Z!?][^\s/<>]*)")
_CODED = re.compile(r"=\?[^?\s]*\?[bq]\?[^?\s]*\?=", re.IGNORECASE)
_ORIGINAL = re.compile(r"-{3,} ?[^\d\n]{3,60} ?-{3,}$|_{20,}$")


def parse(raw: bytes) -> EmailMessage:
    message = BytesParser(policy=policy.default).parsebytes(raw)
    assert isinstance(message, EmailMessage)
    return message


def raw_values(message: EmailMessage, name: str) -> list[str]:
    """Return the values of a header in order, unfolded and not decoded."""
    return ["".join(str(value).splitlines()) for key, value in message.raw_items() if key.lower() == name]


def sender(message: EmailMessage) -> tuple[str, str] | None:
    """Return address and name of From, or None unless there is exactly one."""
    found = raw_values(message, "from")
    if len(found) != 1:
        return None
    try:
        addresses = policy.default.header_factory("From", found[0]).addresses
    except ValueError:  # a line break coded into a name
        addresses = policy.default.header_factory("From", _CODED.sub("_", found[0])).addresses
    if len(addresses) != 1 or not addresses[0].domain:
        return None
    return addresses[0].addr_spec.lower(), addresses[0].display_name


def is_proven(message: EmailMessage, address: str, authserv_id: str) -> bool:
    """Return whether our own mail server found DMARC to pass for the domain of From.

    Only the topmost result under ``authserv_id`` counts: servers put theirs above what came with the mail (RFC 8601, 5).
    """
    # Decoded words could close a comment, in which a sender may write what they like.
    for value in raw_values(message, "authentication-results"):
        server, *results = _compact(_without_comments(value)).lower().split(";")
        if server.split()[:1] == [authserv_id.lower()]:
            wanted = {"dmarc=pass", f"header.from={address.rpartition('@')[2]}"}
            return any(wanted <= set(result.split()) for result in results)
    return False


def has_results(message: EmailMessage) -> bool:
    return bool(raw_values(message, "authentication-results"))


def _compact(header: str) -> str:
    return "=".join(part.strip() for part in header.split("="))


def _without_comments(header: str) -> str:
    """Drop comments, which nest, and what is quoted."""
    kept: list[str] = []
    depth, is_quoted, is_escaped = 0, False, False
    for letter in header:
        if is_escaped:
            is_escaped = False
        elif letter == "\\":
            is_escaped = True
        elif is_quoted:
            is_quoted = letter != '"'
        elif letter == '"' and not depth:
            is_quoted = True
            kept.append("_")
        elif letter in "()":
            depth = max(0, depth + (1 if letter == "(" else -1))
        elif not depth:
            kept.append(letter)
    return "".join(kept)


def is_automatic(message: EmailMessage) -> bool:
    """Return whether a program sent this: a list, a vacation notice, a bounce. To answer would be a loop (RFC 3834)."""
    submitted, precedence, path = (
        " ".join(raw_values(message, name)).partition(";")[0].strip().lower()
        for name in ("auto-submitted", "precedence", "return-path")
    )
    return (
        submitted not in ("", "no")
        or precedence in ("bulk", "list", "junk", "auto_reply")
        or path == "<>"
        or bool(raw_values(message, "list-id"))
    )


def storable(text: str) -> str:
    """Return a text that a database takes: without NUL and without halves of letters, which mails carry where a charset is wrong."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


def ids(message: EmailMessage, name: str) -> list[str]:
    """Return the message ids in a header."""
    return re.findall(r"<[!-;=?-~]{1,500}>", " ".join(raw_values(message, name)))


def text_of(message: EmailMessage) -> tuple[str, str]:
    """Return what the sender wrote, and what they quoted or forwarded."""
    body = message.get_body(("plain", "html"))
    if body is None:
        return "", ""
    try:
        content = str(body.get_content())
    except LookupError:  # a charset that does not exist
        data = body.get_payload(decode=True)
        content = data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
    if body.get_content_subtype() == "html":
        return _html_text(content)
    return own_words(content)


def own_words(text: str) -> tuple[str, str]:
    """Part a reply from what it replies to, in whatever language its program introduces that."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    own: list[str] = []
    quoted: list[str] = []
    for at, line in enumerate(lines):
        if line.startswith(">"):
            if not quoted or lines[at - 1][:1] != ">":
                quoted += _introduction(own)
            quoted.append(line.lstrip("> "))
        elif _begins_original(lines, at):
            quoted += lines[at:]
            break
        elif line == "--":  # a signature; «-- » lost its space above
            quoted += [one.lstrip("> ") for one in lines[at:] if one.startswith(">")]
            break
        else:
            own.append(line)
    return _joined(own), _joined(quoted)


def _introduction(own: list[str]) -> list[str]:
    """Take the paragraph that introduces a quotation from the end: it names a day or an address and ends with a colon."""
    end = len(own) - (own[-1:] == [""])
    start = end
    while start > max(0, end - 3) and own[start - 1]:
        start -= 1
    found = own[start:end]
    if not found or found[-1][-1] not in ":：" or not re.search(r"[\d@]", " ".join(found)):
        return []
    del own[start:]
    return found


def _begins_original(lines: list[str], at: int) -> bool:
    """Return whether the rest is a mail below: a dashed line, or a block of its head."""
    line = lines[at]
    if line[:3] in ("---", "___"):
        return len(line) < 120 and bool(_ORIGINAL.match(line)) and any(map(_HEAD_LINE.match, lines[at + 1 : at + 4]))
    return bool(_HEAD_LINE.match(line)) and at + 2 < len(lines) and all(map(_HEAD_LINE.match, lines[at + 1 : at + 3]))


def _joined(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _html_text(page: str) -> tuple[str, str]:
    """As :func:`own_words`, of a page. The parser of the standard library takes quadratic time for the worst of them."""
    own: list[str] = []
    quoted: list[str] = []
    quotes: list[str] = []
    silent = ""
    for piece in re.split(r"(<[^<>]*>)", _without_remarks(page)):
        tag = _TAG.match(piece)
        if tag is None:
            if not silent:
                (quoted if quotes else own).append(html.unescape(piece))
            continue
        is_end, name = bool(tag[1]), tag[2].lower()
        if silent or name in SILENT:
            silent = "" if is_end and name == silent else silent or name * (not is_end)
            continue
        if quotes and is_end and name == quotes[-1]:
            quotes.pop()
        elif not is_end and (name == "blockquote" or "gmail_quote" in piece or (quotes and name == quotes[-1])):
            quotes.append(name)
        if name in BREAKS:
            (quoted if quotes else own).append("\n")
    text, below = own_words(_spaced(own))
    return text, _joined([below, _spaced(quoted)])


def _without_remarks(page: str) -> str:
    first, *others = page.split("<!--")
    return first + "".join(other.partition("-->")[2] for other in others)


def _spaced(pieces: list[str]) -> str:
    return "\n".join(" ".join(line.split()) for line in "".join(pieces).split("\n"))


def offset_of(message: EmailMessage) -> str:
    """Return the offset of the sender's clock, as ``+0530``; empty for UTC, which servers and some programs write for everyone."""
    sent = getattr(message.get("Date"), "datetime", None)
    offset = f"{sent:%z}" if sent is not None else ""
    return offset if offset != "+0000" else ""
