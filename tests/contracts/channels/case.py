"""The questions that the contract suite of channels asks about a platform: an adapter, its double, and what people do there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tests.support.channels.double import Double, Fault, Operation

from deerflow.features.channels.types import Adapter, Ref


@dataclass(frozen=True, slots=True)
class Said:
    """A message that a person sends to the double.

    Args:
        topic: of the platform's own topics or threads, any word; only where ``has_topics``.
        replies_to: a message that our adapter posted.
        name: of the person.
        by_ben: a second person writes it; his private chats are his own.
    """

    text: str = ""
    is_private: bool = True
    topic: str = ""
    mentions_us: bool = False
    replies_to: Ref | None = None
    files: Sequence[tuple[str, bytes]] = ()
    name: str = "Ann"
    is_bot: bool = False
    by_ben: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of ours as people see it now. ``keys``: of its buttons. ``ref``: for ``press``, where there are buttons."""

    text: str
    keys: Sequence[str] = ()
    ref: Ref = field(default_factory=dict)


class Case(ABC):
    """One platform. A class attribute says what it has; the suite runs on it only the promises that it can keep.

    Args (class attributes):
        limit: of one message, in the platform's unit; ``limited`` is the operation that refuses a longer one.
        secrets: parts of addresses and headers that no error and no log may show.
        exempt: what cannot happen on this platform.
        has_cursor: the place in the stream is ours to keep.
        redelivers: what was not acknowledged comes again.
        has_history: what came while no one listened is delivered later or can be read.
        hears_all: messages in groups arrive without a mention of us, too.
        can_find: the adapter finds a message of ours whose reference was lost.
        has_link: it listens on a WebSocket.
    """

    name: ClassVar[str]
    limit: ClassVar[int]
    limited: ClassVar[Operation] = Operation.POST
    secrets: ClassVar[tuple[str, ...]]
    exempt: ClassVar[frozenset[tuple[Operation, Fault]]] = frozenset()
    has_cursor: ClassVar[bool] = True
    redelivers: ClassVar[bool] = True
    has_history: ClassVar[bool] = True
    has_groups: ClassVar[bool] = True
    hears_all: ClassVar[bool] = True
    has_topics: ClassVar[bool] = True
    has_replies: ClassVar[bool] = True
    has_clicks: ClassVar[bool] = True
    has_edits: ClassVar[bool] = True
    has_signals: ClassVar[bool] = True
    can_find: ClassVar[bool] = False
    has_link: ClassVar[bool] = True
    can_displace: ClassVar[bool] = True

    double: Double

    async def __aenter__(self) -> Self:
        await self.double.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.double.__aexit__()

    @abstractmethod
    def adapter(self) -> Adapter:
        """Return a new adapter that talks to the double and calls a silent link dead after a few tenths of a second."""

    @abstractmethod
    async def say(self, said: Said) -> str:
        """Send a message as a person, also while no one listens; return the ``message_id`` that it must arrive with."""

    @abstractmethod
    async def repeat(self) -> None:
        """Deliver the last message a second time."""

    @abstractmethod
    async def babble(self) -> None:
        """Deliver an event of a shape that no adapter knows."""

    async def press(self, ref: Ref, key: str, *, by_ben: bool = False) -> None:
        """Press a button of ours as a person."""
        raise NotImplementedError

    @abstractmethod
    def shown(self) -> Sequence[Shown]:
        """Return our messages as people see them, oldest first."""

    @abstractmethod
    def received(self) -> Sequence[tuple[str, bytes]]:
        """Return name and content of the files that we sent, oldest first."""

    def notices(self) -> Sequence[str]:
        """Return what was shown to a clicker alone."""
        raise NotImplementedError

    def signals(self) -> int:
        """Return how many signs we showed."""
        raise NotImplementedError

    def text(self, length: int) -> str:
        """Return a text in the platform's dialect of exactly this length in its unit."""
        return "x" * length

    async def silence(self) -> None:
        """Let the way on which events come stand and carry nothing, neither way."""
        for link in self.double.links:
            link.is_silent = True

    async def cut(self) -> None:
        """Cut the way on which events come."""
        for link in self.double.links:
            link.abort()

    async def displace(self) -> None:
        """Take the connection over as another program."""
        self.double.fail(Operation.LISTEN, Fault.DISPLACED, 99)
