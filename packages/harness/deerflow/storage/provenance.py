"""Provenance of threads: where foreign text came from, and which addresses agents may open without a question.

Data follows files, not messages: a branch, a subagent or a later run reads what another one brought. So the rows belong to the
thread, are committed before the text arrives, and only grow.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal
from urllib.parse import quote, unquote

import httpx
from pydantic import Field
from sqlalchemy import Connection

from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import thread_sources, utc_now

SourceKind = Literal[
    "page", "server", "tool", "upload", "client", "channel", "chat", "acp", "mount", "project", "command", "unjudged"
]
"""``client``: messages or state that a client added. ``unjudged``: a thread of before these rows, not yet judged by its messages."""
Admits = Literal["all", "clean", "known"]
"""Hosts that commands may reach: any; any while the thread holds no foreign text, else those of its rows; those of its rows."""
Via = Literal["person", "hit", "link"]
"""Who named an address: the person, a search of ours, or a page that was read."""

UNJUDGED: SourceKind = "unjudged"
MAX_NAME = 300
"""Characters of a source's name that are kept."""
MAX_LINKS = 500
"""Links of one page that are kept."""
LINKS_A_TURN = 5
"""Addresses of one host that pages named and that are opened in one turn without a question."""

_ADDRESS = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)+[\w-]{2,}(?::\d+)?(?:/[^\s<>\"'`|\\^{}]*|\?[^\s<>\"'`|\\^{}]*)?|https?://[^\s<>\"'`|\\^{}]+"
)
_TRAILING = ".,;:!?)]}*_"


@dataclass(frozen=True, slots=True)
class Source:
    """Where foreign text in a thread came from.

    Args:
        name: an address, a server, a file, a tool.
        digest: of what came; empty if it is not known.
        trusted: the person said that they trust this very content.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    kind: SourceKind
    name: str
    digest: Annotated[str, Field(exclude=True)] = ""
    trusted: Annotated[bool, Field(description="You trust what it has brought so far.")] = False


CLIENT = Source("client", "messages or state of a client")


def add_sources(connection: Connection, thread_id: str, sources: Iterable[Source]) -> None:
    """Record sources. One that the person trusts stays trusted as long as it is known to bring the same, by its digest."""
    for source in sources:
        row = {
            "thread_id": thread_id,
            "kind": source.kind,
            "name": sql.storable_text(source.name)[:MAX_NAME],
            "digest": source.digest,
            "trusted": source.trusted,
            "created_at": utc_now(),
        }
        again = "NOTHING" if source.digest else "UPDATE SET trusted = excluded.trusted"
        sql.insert(connection, thread_sources, row, f"ON CONFLICT (thread_id, kind, name, digest) DO {again}")


def sources_of(connection: Connection, thread_id: str) -> list[Source]:
    """Return the thread's sources, the oldest first."""
    return sql.select(connection, Source, thread_sources, "WHERE thread_id = ? ORDER BY created_at, name", thread_id)


def has_rows(connection: Connection, thread_id: str) -> bool:
    """Return whether the thread holds foreign text that its person does not trust."""
    statement = "SELECT 1 FROM thread_sources WHERE thread_id = ? AND NOT trusted LIMIT 1"
    return sql.execute(connection, statement, thread_id).fetchone() is not None


def trust(connection: Connection, thread_id: str, kind: str, name: str) -> bool:
    """Trust what a source has brought so far. Return False if the thread has no such source."""
    statement = "UPDATE thread_sources SET trusted = ? WHERE thread_id = ? AND kind = ? AND name = ?"
    return sql.change(connection, statement, True, thread_id, kind, name[:MAX_NAME]) > 0


def reach_host(connection: Connection, thread_id: str, host: str, admits: Admits) -> bool:
    """Record that a command of the thread reaches ``host``. Return False if it may not: then nothing is recorded."""
    source = Source("command", host)
    statement = "SELECT 1 FROM thread_sources WHERE thread_id = ? AND kind = ? AND name = ? LIMIT 1"
    if sql.execute(connection, statement, thread_id, source.kind, source.name).fetchone() is not None:
        return True
    if admits == "known" or (admits == "clean" and has_rows(connection, thread_id)):
        return False
    add_sources(connection, thread_id, [source])
    return True


def copy_provenance(connection: Connection, source: str, target: str) -> None:
    """Give the copy of a thread the sources and addresses of the first one."""
    columns = "kind, name, digest, trusted, created_at"
    sql.execute(
        connection,
        f"INSERT INTO thread_sources (thread_id, {columns}) SELECT ?, {columns} FROM thread_sources WHERE thread_id = ?",
        target,
        source,
    )
    columns = "address, via, host, opened_in"
    sql.execute(
        connection,
        f"INSERT INTO thread_addresses (thread_id, {columns}) SELECT ?, {columns} FROM thread_addresses WHERE thread_id = ?",
        target,
        source,
    )


def copy_asked_calls(connection: Connection, source: str, target: str) -> None:
    """Let cards that wait in the copy of a thread hold for the definitions that they showed."""
    statement = "INSERT INTO asked_calls (thread_id, call, definition) SELECT ?, call, definition FROM asked_calls WHERE thread_id = ?"
    sql.execute(connection, statement, target, source)


# addresses -----------------------------------------------------------------------------------------------------------


def add_addresses(connection: Connection, thread_id: str, addresses: Iterable[str], via: Via) -> None:
    """Record addresses that the person, a search or a page named. What is no address of the web is left out."""
    statement = (
        "INSERT INTO thread_addresses (thread_id, address, via, host) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    )
    for url in addresses:
        if (address := normalized(url)) is not None:
            sql.execute(connection, statement, thread_id, sql.short_key(address), via, host_of(address))


def open_address(connection: Connection, thread_id: str, url: str, turn: str) -> bool:
    """Return whether ``url`` may be opened without a question, and count it if a page named it.

    Args:
        turn: the turn in which it is opened: pages may lead to :data:`LINKS_A_TURN` addresses of one host.
    """
    address = normalized(url)
    if address is None:
        return False
    key, host = sql.short_key(address), host_of(address)
    found = sql.execute(
        connection, "SELECT via, opened_in FROM thread_addresses WHERE thread_id = ? AND address = ?", thread_id, key
    ).fetchall()
    if any(via != "link" for via, _ in found):
        return True
    if not found or any(opened == turn for _, opened in found):
        return bool(found)
    counted = "SELECT COUNT(*) FROM thread_addresses WHERE thread_id = ? AND host = ? AND opened_in = ?"
    if sql.execute(connection, counted, thread_id, host, turn).fetchone()[0] >= LINKS_A_TURN:
        return False
    statement = "UPDATE thread_addresses SET opened_in = ? WHERE thread_id = ? AND address = ?"
    sql.execute(connection, statement, turn, thread_id, key)
    return True


def normalized(url: str) -> str | None:
    """Return ``url`` in the one form in which addresses are compared (RFC 3986 §6.2.2), or None for what is no web address."""
    try:
        parsed = httpx.URL(url.strip())
        host = parsed.raw_host.decode("ascii").lower().rstrip(".")
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return None
    if parsed.scheme not in ("http", "https") or not host or parsed.userinfo:
        return None
    path, _, query = parsed.raw_path.decode("ascii").partition("?")
    port = f":{parsed.port}" if parsed.port is not None else ""
    return f"{parsed.scheme}://{host}{port}{_usual(path) or '/'}" + (f"?{query}" if query else "")


def host_of(url: str) -> str:
    """Return the host of an address in lower case, or an empty text."""
    try:
        return httpx.URL(url).raw_host.decode("ascii").lower().rstrip(".")
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return ""


def addresses_in(text: str) -> list[str]:
    """Return the web addresses that a person wrote in ``text``; one without a scheme stands for both."""
    found: list[str] = []
    for match in _ADDRESS.finditer(text):
        url = match[0].rstrip(_TRAILING)
        found += [url] if "://" in url else [f"https://{url}", f"http://{url}"]
    return found


def _usual(path: str) -> str:
    return "/".join(quote(unquote(part), safe="!$&'()*+,;=:@-._~%") for part in path.split("/"))


# of one run ----------------------------------------------------------------------------------------------------------


class ThreadProvenance:
    """Provenance of one thread as its runs use it; see :class:`deerflow.context.Provenance`."""

    def __init__(self, database: Database, thread_id: str, turn: str) -> None:
        self._database, self._thread_id, self._turn = database, thread_id, turn
        self._recorded: set[Source] = set()

    @property
    def is_volatile(self) -> bool:
        """Whether the rows go with this process, while messages may stay in a checkpointer of the program's own."""
        return self._database.location == ":memory:"

    async def add(self, *sources: Source) -> None:
        if new := [source for source in sources if source not in self._recorded]:
            await self._database.write(lambda connection: add_sources(connection, self._thread_id, new))
            self._recorded.update(new)

    async def reach(self, host: str, admits: Admits) -> bool:
        """Return whether a command may reach ``host``. If so, the row is committed: nothing of the host can arrive before it."""
        source = Source("command", host)
        if source in self._recorded:
            return True
        reached = await self._database.write(lambda connection: reach_host(connection, self._thread_id, host, admits))
        if reached:
            self._recorded.add(source)
        return reached

    async def sources(self) -> list[Source]:
        return await self._database.read(sources_of, self._thread_id)

    async def replace(self, before: Collection[Source], after: Iterable[Source]) -> None:
        added = list(after)

        def job(connection: Connection) -> None:
            statement = "DELETE FROM thread_sources WHERE thread_id = ? AND kind = ? AND name = ? AND digest = ?"
            add_sources(connection, self._thread_id, added)
            for source in before:
                sql.execute(connection, statement, self._thread_id, source.kind, source.name[:MAX_NAME], source.digest)

        await self._database.write(job)
        self._recorded.difference_update(before)

    async def is_tainted(self) -> bool:
        return await self._database.read(has_rows, self._thread_id)

    async def through_mounts(self, directories: Sequence[str]) -> None:
        """Take over what other threads left in shared directories, and say in them that this thread holds foreign text."""

        def job(connection: Connection) -> None:
            tainted = has_rows(connection, self._thread_id)
            for directory in directories:
                source, key = Source("mount", directory), f"mount:{sql.short_key(directory)}"
                if tainted:
                    add_sources(connection, key, [source])
                elif has_rows(connection, key):
                    add_sources(connection, self._thread_id, [source])

        await self._database.write(job)

    async def add_addresses(self, addresses: Iterable[str], via: Via) -> None:
        kept = list(addresses)[:MAX_LINKS]
        if kept:
            await self._database.write(lambda connection: add_addresses(connection, self._thread_id, kept, via))

    async def open_address(self, url: str) -> bool:
        return await self._database.write(lambda connection: open_address(connection, self._thread_id, url, self._turn))
