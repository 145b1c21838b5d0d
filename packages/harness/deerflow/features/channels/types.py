"""The contract between the engine of channels and the adapter of a platform: what arrives, what is sent, and how a platform says no."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Place:
    """A conversation on a platform.

    Args:
        chat: the platform's id of the private chat, group or channel.
        topic: the platform's id of the thread inside the chat; empty if the chat itself is the conversation.
    """

    chat: str
    topic: str = ""
    is_private: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Author:
    """The account that wrote a message.

    Args:
        id: stable for this person on the platform.
        workspace: the team, tenant or company whose ids these are; empty if ids are global.
        time_zone: theirs, by its IANA name or as ``+05:30``, where the message says it.
    """

    id: str
    workspace: str = ""
    name: str = ""
    is_bot: bool = False
    time_zone: str = ""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file that a person sent, still on the platform.

    Args:
        key: for the adapter's ``fetch``.
        size: bytes, if the platform says so.
    """

    name: str
    key: Mapping[str, Any]
    size: int | None = None
    mime: str = ""
    is_voice: bool = False


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message that a person sent. It is stored as JSON, so ``wake`` and the keys of files hold JSON values only.

    Args:
        message_id: unique in the connection, the same when the platform delivers the message again.
        text: without the mention of us at its start, if there is one.
        is_mention: the text names us, or it replies to a message of ours.
        reply_to: id of the message that this one replies to.
        quoted: text of others that came with it (a quote, a forwarded message): outside text.
        wake: what an answer to this message needs on the platform (a request id, a context token, an anchor).
    """

    message_id: str
    place: Place
    author: Author
    sent_at: datetime
    text: str = ""
    files: Sequence[FileRef] = ()
    is_mention: bool = False
    reply_to: str = ""
    quoted: str = ""
    wake: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Click:
    """A press on a button of ours, or on the platform's own Stop (``key`` is then ``STOP``).

    Args:
        click_id: unique in the connection; takes the place of a message id.
        key: that of the button.
        ref: of the message that holds the button.
        wake: what ``answered`` needs.
    """

    click_id: str
    place: Place
    author: Author
    key: str
    ref: Mapping[str, Any]
    wake: Mapping[str, Any] = field(default_factory=dict[str, Any])


STOP = "stop"
Event = Inbound | Click


@dataclass(frozen=True, slots=True)
class Button:
    """``key``: what a click brings back, at most 64 bytes of letters, digits, ``-`` and ``_``."""

    key: str
    label: str
    style: Literal["", "primary", "danger"] = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One message to send, or what a sent one shall become.

    Args:
        text: in the platform's dialect, within its limit; written by ``render``.
        buttons: none on platforms whose ``caps.buttons`` is 0.
        is_final: no further edit follows (a card may leave its streaming mode).
    """

    text: str
    buttons: Sequence[Button] = ()
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class OutFile:
    """A file to send. ``open`` yields its bytes anew at each call."""

    name: str
    size: int
    mime: str
    open: Callable[[], AsyncIterator[bytes]]
    caption: str = ""


Ref = Mapping[str, Any]
"""Reference that a platform needs to edit a sent message; JSON, kept in the outbox row."""


class Signal(StrEnum):
    """A lossy sign at the person's message: a reaction, or "typing"."""

    SEEN = "seen"
    WORKING = "working"
    JOINED = "joined"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Caps:
    """Capabilities of a platform.

    Args:
        dialect: of ``render``.
        edits: a sent message can be edited, so an answer is an edit of its placeholder.
        edit_every: seconds between two edits of one message.
        post_every: seconds between two new messages in one chat.
        buttons: that one message can hold; 0 if there are none.
        signals: those that ``signal`` shows; others are not sent to it.
        file_in, file_out: bytes of the largest file each way; 0 if the platform takes none.
        key_window: seconds for which a repeated ``key`` of ``post`` is the same message; 0 if the platform knows no keys.
        ack_seconds: within which an event must be acknowledged; 0 if the platform does not wait.
        unprompted: messages that may be sent without a new one of the person's, in ``unprompted_seconds``; None if there is no limit.
        replays: after a gap, the platform delivers what it had not been acknowledged.
    """

    dialect: str
    edits: bool = True
    edit_every: float = 1.0
    post_every: float = 1.0
    buttons: int = 0
    signals: frozenset[Signal] = frozenset()
    file_in: int = 0
    file_out: int = 0
    key_window: float = 0.0
    ack_seconds: float = 0.0
    unprompted: int | None = None
    unprompted_seconds: float = 86400.0
    replays: bool = True


@dataclass(frozen=True, slots=True)
class Me:
    """The account of the bot. ``link``: where a person begins a chat with it, if the platform has such an address."""

    id: str
    name: str
    workspace: str = ""
    link: str = ""


Accept = Callable[[Sequence[Event], str | None], Awaitable[None]]
"""Store events and the cursor after them in one transaction (None: the cursor stays). Acknowledge only after it returned; if it raises,
do not. Call it without events to store a first cursor: a session that is known before its first message loses none."""


class Adapter(Protocol):
    """One connection to a platform. It holds no SQL, no policy and no retry; base addresses are arguments of its constructor.

    Every method raises the errors below. ``caps`` may be narrowed after ``identify``. What a platform does not have, its adapter
    leaves out.
    """

    caps: Caps

    async def identify(self) -> Me:
        """Sign in. Raises SignedOut or Misconfigured."""
        ...

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        """Receive until cancelled. Call ``connected`` each time the link stands. Returns or raises Unreachable when the link has
        ended: the engine calls again, after a pause that grows."""
        ...

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        """Send a new message, once; ``key`` (at most 50 characters) names it where the platform takes such a key."""
        ...

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        """Make a sent message this. May be repeated. ``seq`` grows from edit to edit."""
        raise Refused("A message that was sent cannot be changed here.")

    async def find(self, place: Place, since: datetime, known: Sequence[Ref], wake: Mapping[str, Any]) -> Ref | None:
        """Return a text of ours at a place that was sent since then and is none of ``known``: the process that posted it has not kept
        its reference. For platforms without keys; the text itself may be changed by the search."""
        return None

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        """Send a file."""
        raise Refused("No files can be sent here; send a link.")

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        """Yield the bytes of a file that was received."""
        raise Refused("No files can be received here.")
        yield b""

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        """Show a sign at a message of the person's."""
        return None

    async def time_zone(self, author: Author) -> str:
        """Return a person's time zone, as in ``Author``, or an empty text if the platform does not say it. Raises nothing."""
        return author.time_zone

    async def answered(self, click: Click, notice: str) -> None:
        """Tell the platform that a click was taken; ``notice`` is for the clicker alone, if the platform can show it so."""
        return None

    async def missed(self, place: Place, since: datetime) -> Sequence[Event]:
        """Return what came to a known place meanwhile, oldest first; for platforms whose ``caps.replays`` is False."""
        return ()

    async def aclose(self) -> None:
        return None


class HttpAdapter(Adapter, Protocol):
    """A platform that calls us. Its route needs no lease: the unique row decides."""

    async def receive(self, headers: Mapping[str, str], body: bytes, accept: Accept) -> tuple[int, Mapping[str, Any]]:
        """Check the signature, accept what came, and return status and JSON of the answer. A wrong signature is 401."""
        ...


class ChannelError(Exception):
    """Base of what a platform answers. Its text is for people and names no secret."""


class Later(ChannelError):
    """Nothing was done; the same may be asked again after ``after`` seconds. ``everywhere``: the whole connection waits."""

    def __init__(self, why: str, after: float, *, everywhere: bool = False) -> None:
        super().__init__(why)
        self.after = after
        self.everywhere = everywhere


class Unreachable(ChannelError):
    """No connection, so nothing was done."""


class Uncertain(ChannelError):
    """The request went out and no answer came: it may have been done."""


class Refused(ChannelError):
    """The platform will never do this: the chat is gone, the right is missing, the text is not allowed."""


class SignedOut(ChannelError):
    """The token is no longer valid. A person has to sign in again; no further try is made."""


class Misconfigured(ChannelError):
    """A setting is missing or wrong; the text says which and where to find it. No further try is made."""


class Displaced(ChannelError):
    """Another program has taken this connection over."""
