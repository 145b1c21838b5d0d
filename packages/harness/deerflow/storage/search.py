"""Finding what was said: a full-text index over the messages and titles of each owner's threads.

Both databases get the same words, made here, so they find the same things. Writing systems without spaces are cut into
pairs of characters: neither SQLite's tokenizer nor PostgreSQL's would find 文 or 搜索 in a sentence. Nothing of a query
but its words reaches the database, so no query is malformed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    delete,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.storable import storable_text
from deerflow.storage.tables import Id, UtcDateTime, threads, utc_now

metadata = MetaData()

message_search = Table(
    "message_search",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("thread_id", Id, ForeignKey(threads.c.thread_id, ondelete="CASCADE"), nullable=False),
    Column("message_id", String(256), nullable=False),
    Column("user_id", Id, nullable=False, index=True),
    Column("type", String(8), nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("thread_id", "message_id"),
)
"""``type``: human, ai, or title, whose ``message_id`` is empty. Its words are in ``message_search_index`` (SQLite), or in a
column ``words`` (PostgreSQL)."""

MAX_TEXT = 20_000
"""Characters of a message that can be found."""

MAX_QUERY_WORDS = 16
_MAX_WORD = 64
_SNIPPET = 160
_TITLE = ""

_MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31-\u0e4e"
_PAIRED = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_PAIRED}]+|(?:(?![{_PAIRED}_])[\w{_MARKS}])+")
_IS_PAIRED = re.compile(rf"[{_PAIRED}]")


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found. ``message_id`` is None if it is the thread's title."""

    thread_id: str
    message_id: str | None
    type: str
    title: str | None
    snippet: str
    marks: list[tuple[int, int]]
    """Where the words stand in the snippet: start and end, in characters."""


class MessageSearch:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, principal: Principal, query: str, *, limit: int = 20, offset: int = 0) -> list[Hit]:
        """What holds all words of ``query``, the newest first; a word also finds longer ones that begin with it."""
        return await self._database.read(lambda connection: search(connection, principal.user_id, query, limit, offset))


# jobs -------------------------------------------------------------------------------------------------------------------


def index(connection: Connection, thread_id: str, user_id: str, messages: Iterable[BaseMessage]) -> None:
    """Make messages findable, or findable by what they say now. Only what people and agents said, nothing hidden."""
    for message in messages:
        if message.id and isinstance(message, (HumanMessage, AIMessage)) and _is_visible(message):
            _put(connection, thread_id, user_id, message.id, message.type, message.text)


def index_title(connection: Connection, thread_id: str, user_id: str, title: str) -> None:
    _put(connection, thread_id, user_id, _TITLE, "title", title)


def forget_thread(connection: Connection, thread_id: str) -> None:
    connection.execute(delete(message_search).where(message_search.c.thread_id == thread_id))


def search(connection: Connection, user_id: str, query: str, limit: int, offset: int) -> list[Hit]:
    """See :meth:`MessageSearch.search`."""
    wanted = list(dict.fromkeys(_query_words(query)))[:MAX_QUERY_WORDS]
    if not wanted:
        return []
    found = (
        select(message_search, threads.c.title)
        .outerjoin(threads, threads.c.thread_id == message_search.c.thread_id)
        .where(message_search.c.user_id == user_id, _matches(connection, wanted))
        .order_by(message_search.c.created_at.desc(), message_search.c.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return [_hit(row, wanted) for row in connection.execute(found)]


def _matches(connection: Connection, wanted: Sequence[tuple[str, bool]]) -> Any:
    if connection.dialect.name == "sqlite":
        matching = " AND ".join(f'"{word}"{" *" if begins else ""}' for word, begins in wanted)
        ids = text("SELECT rowid FROM message_search_index WHERE message_search_index MATCH :matching")
        return message_search.c.id.in_(ids.bindparams(matching=matching).columns(message_search.c.id))
    matching = " & ".join(f"'{word}'{':*' if begins else ''}" for word, begins in wanted)
    return text("message_search.words @@ CAST(:matching AS tsquery)").bindparams(matching=matching)


def _put(connection: Connection, thread_id: str, user_id: str, message_id: str, type_: str, said: str) -> None:
    said = storable_text(said)[:MAX_TEXT]
    words = list(dict.fromkeys(_words(said)))
    if not words:
        return
    key = (message_search.c.thread_id == thread_id, message_search.c.message_id == message_id)
    known = connection.execute(select(message_search.c.id, message_search.c.text).where(*key)).first()
    if known is not None and known.text == said:
        return
    row = {"thread_id": thread_id, "message_id": message_id, "user_id": user_id, "type": type_, "text": said}
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    inserted = dialect.insert(message_search).values(row | {"created_at": utc_now()})
    upsert = inserted.on_conflict_do_update(
        index_elements=["thread_id", "message_id"], set_={"text": inserted.excluded.text}
    )
    row_id = connection.execute(upsert.returning(message_search.c.id)).scalar_one()
    if connection.dialect.name == "sqlite":
        connection.execute(text("DELETE FROM message_search_index WHERE rowid = :id"), {"id": row_id})
        add = text("INSERT INTO message_search_index(rowid, words) VALUES (:id, :words)")
        connection.execute(add, {"id": row_id, "words": " ".join(words)})
    else:
        statement = text("UPDATE message_search SET words = array_to_tsvector(CAST(:words AS text[])) WHERE id = :id")
        connection.execute(statement, {"id": row_id, "words": words})


def _is_visible(message: BaseMessage) -> bool:
    return not message.additional_kwargs.get("hide_from_ui") and bool(message.text.strip())


# words ------------------------------------------------------------------------------------------------------------------


def _folded(said: str) -> str:
    """Without case and accents, and full-width forms as ordinary ones."""
    decomposed = unicodedata.normalize("NFKD", said.casefold())
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", decomposed))


def _words(said: str) -> Iterator[str]:
    """The words that a text is found by."""
    for run in _WORD.findall(_folded(said)):
        if _IS_PAIRED.match(run):
            yield from (run[start : start + 2] for start in range(len(run)))
        else:
            yield run[:_MAX_WORD]


def _query_words(query: str) -> Iterator[tuple[str, bool]]:
    """The words to look for, and whether longer ones that begin so will do."""
    for run in _WORD.findall(_folded(query)):
        if not _IS_PAIRED.match(run):
            yield run[:_MAX_WORD], True
        elif len(run) == 1:
            yield run, True
        else:
            yield from ((run[start : start + 2], False) for start in range(len(run) - 1))


def _hit(row: Any, wanted: Sequence[tuple[str, bool]]) -> Hit:
    said = " ".join(row.text.split())
    places = _places(said, wanted)
    first = places[0][0] if places else 0
    start = max(0, first - _SNIPPET // 4)
    if start and (space := said.rfind(" ", start - 20, first)) > 0:
        start = space + 1
    end = start + _SNIPPET
    before, after = "…" if start else "", "…" if end < len(said) else ""
    marks = [(max(a, start) - start, min(b, end) - start) for a, b in places if a < end and b > start]
    shift = len(before)
    return Hit(
        row.thread_id,
        row.message_id or None,
        row.type,
        row.title,
        before + said[start:end] + after,
        [(a + shift, b + shift) for a, b in marks],
    )


def _places(said: str, wanted: Sequence[tuple[str, bool]]) -> list[tuple[int, int]]:
    """Where the words stand in a text, in order, those that touch or overlap joined."""
    fold = {character: _folded(character) for character in set(said)}
    folded = "".join(map(fold.__getitem__, said))
    origin = [at for at, character in enumerate(said) for _ in fold[character]]
    places: set[tuple[int, int]] = set()
    for run in _WORD.finditer(folded):
        paired = _IS_PAIRED.match(run.group())
        for word, _ in wanted:
            at = run.group().find(word) if paired else 0 if run.group().startswith(word) else -1
            while at >= 0:
                start = run.start() + at
                places.add((origin[start], origin[start + len(word) - 1] + 1))
                at = run.group().find(word, at + 1) if paired else -1
    return _joined(sorted(places))


def _joined(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
