"""Finding what was said: a full-text index over the messages and titles of each owner's threads.

Both databases get the same words, made here, so they find the same things. Writing systems without spaces are cut into
pairs of characters: neither SQLite's tokenizer nor PostgreSQL's would find 文 or 搜索 in a sentence. Nothing of a query
but its words reaches the database, so no query is malformed.
"""

from __future__ import annotations

import asyncio
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Any, Literal
from weakref import WeakValueDictionary

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import Field
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
)

from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.sql import storable_text
from deerflow.storage.tables import Id, UtcDateTime, threads, utc_now
from deerflow.storage.visibility import readable, values_of

metadata = MetaData()

message_search = Table(
    "message_search",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("thread_id", Id, ForeignKey(threads.c.thread_id, ondelete="CASCADE"), nullable=False),
    Column("message_id", String(256), nullable=False),
    Column("user_id", Id, nullable=False),
    Column("type", String(8), nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("thread_id", "message_id"),
)
"""``type``: human, ai, or title, whose ``message_id`` is empty. Its words are in ``message_search_index`` (SQLite), or in a
column ``words`` (PostgreSQL). Ids grow with time."""

MAX_TEXT = 20_000
"""Characters of a message that can be found."""

MAX_QUERY_WORDS = 16
_MAX_WORD = 64
_SNIPPET = 160
_PART = 4 * _SNIPPET
_MAX_SPELLINGS = 64
_TITLE = ""

SHARE = 0.15
"""Of a processor, what all searches together take of a process that also has runs."""
_LONGEST_PAUSE = 0.2

_MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31-\u0e4e"
_PAIRED = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_PAIRED}]+|(?:(?![{_PAIRED}_])[\w{_MARKS}])+")
_IS_PAIRED = re.compile(rf"[{_PAIRED}]")


_Kind = Literal["human", "ai", "title"]


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found."""

    thread_id: str
    message_id: Annotated[str | None, Field(description="None: the thread's title was found.")]
    type: _Kind
    title: str | None
    snippet: str
    marks: Annotated[
        list[tuple[int, int]], Field(description="Start and end of the words in the snippet, in code points.")
    ]


class MessageSearch:
    """Searches of all people, one at a time for each, with pauses so that together they take :data:`SHARE` of a processor."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._of_person: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._next = 0.0

    async def search(self, principal: Principal, query: str, *, limit: int = 20, offset: int = 0) -> list[Hit]:
        """What holds all words of ``query``, the newest first; a word also finds longer ones that begin with it."""

        def measured(connection: Connection) -> tuple[list[Hit], float]:
            began = time.thread_time()
            return search(connection, principal, query, limit, offset), time.thread_time() - began

        loop = asyncio.get_running_loop()
        async with self._of_person.setdefault(principal.user_id, asyncio.Lock()):
            await asyncio.sleep(max(0.0, self._next - loop.time()))
            found, worked = await self._database.browse(measured)
            self._next = max(self._next, loop.time()) + min(worked / SHARE, _LONGEST_PAUSE)
            return found


# jobs -------------------------------------------------------------------------------------------------------------------


def index(connection: Connection, thread_id: str, user_id: str, messages: Iterable[BaseMessage]) -> None:
    """Make messages findable, or findable by what they say now. Only what people and agents said, nothing hidden."""
    for message in messages:
        if message.id and isinstance(message, (HumanMessage, AIMessage)) and _is_visible(message):
            _put(connection, thread_id, user_id, message.id, message.type, message.text)


def index_title(connection: Connection, thread_id: str, user_id: str, title: str) -> None:
    _put(connection, thread_id, user_id, _TITLE, "title", title)


def forget_thread(connection: Connection, thread_id: str) -> None:
    if connection.dialect.name == "sqlite":
        of_thread = "SELECT id, user_id, text FROM message_search WHERE thread_id = ?"
        for row_id, user_id, said in sql.execute(connection, of_thread, thread_id).fetchall():
            _unindex(connection, row_id, user_id, said)
    sql.execute(connection, "DELETE FROM message_search WHERE thread_id = ?", thread_id)


def search(connection: Connection, principal: Principal, query: str, limit: int, offset: int) -> list[Hit]:
    """See :meth:`MessageSearch.search`."""
    wanted = list(dict.fromkeys(_query_words(query)))[:MAX_QUERY_WORDS]
    if not wanted:
        return []
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        words = (_spellings(connection, word) if begins else f'"{word}"' for word, begins in wanted)
        matching = " AND ".join((f'"{owner_word(principal.user_id)}"', *words))
    else:
        matching = " & ".join(f"'{word}'{':*' if begins else ''}" for word, begins in wanted)
    statement, page = _FIND_SQLITE if is_sqlite else _FIND_POSTGRES, (limit, offset)
    found = sql.execute(connection, statement, matching, *values_of(principal), *page)
    return [_hit(row, wanted) for row in found.fetchall()]


_HIT = "SELECT m.thread_id, m.message_id, m.type, t.title, m.text FROM"
_READABLE = readable(message_search, "m")
_TITLE_OF = "LEFT JOIN threads t ON t.thread_id = m.thread_id"
_FIND_SQLITE = f"""
{_HIT} message_search_index f CROSS JOIN message_search m ON m.id = f.rowid {_TITLE_OF}
WHERE f.message_search_index MATCH ? AND {_READABLE} ORDER BY f.rowid DESC LIMIT ? OFFSET ?
"""
"""The index leads and gives the newest first, so that no more is read than is returned."""
_FIND_POSTGRES = f"""
{_HIT} message_search m {_TITLE_OF}
WHERE m.words @@ CAST(? AS tsquery) AND {_READABLE} ORDER BY m.id DESC LIMIT ? OFFSET ?
"""


def _spellings(connection: Connection, word: str) -> str:
    """What finds ``word`` and longer ones in SQLite's index, which has lists of the newest for words, and for beginnings of
    two and three letters. For others it would read all that is found before it gives the newest."""
    if len(word) in (2, 3):
        return f'"{word}" *'
    terms = f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{_TERMS} USING fts5vocab(main, message_search_index, instance)"
    sql.execute(connection, terms)
    known: list[str] = []
    after = word
    while found := sql.execute(connection, f"SELECT term FROM {_TERMS} WHERE term >= ? LIMIT 1", after).fetchone():
        if not found[0].startswith(word):
            break
        if len(known) == _MAX_SPELLINGS:
            return f'"{word}" *'
        known.append(found[0])
        after = f"{found[0]}\1"
    return "(" + " OR ".join(f'"{term}"' for term in known or [word]) + ")"


_TERMS = "message_search_terms"


def _put(connection: Connection, thread_id: str, user_id: str, message_id: str, type_: str, said: str) -> None:
    said = storable_text(said)[:MAX_TEXT]
    words = list(dict.fromkeys(words_of(said)))
    if not words:
        return
    row: dict[str, Any] = {"thread_id": thread_id, "message_id": message_id, "user_id": user_id, "type": type_}
    row |= {"text": said, "created_at": utc_now()}
    upsert = "ON CONFLICT (thread_id, message_id) DO UPDATE SET text = excluded.text"
    if connection.dialect.name == "postgresql":
        statement = (
            "INSERT INTO message_search (thread_id, message_id, user_id, type, text, created_at, words)"
            f" VALUES (?, ?, ?, ?, ?, ?, array_to_tsvector(CAST(? AS text[]))) {upsert}, words = excluded.words"
        )
        sql.execute(connection, statement, *row.values(), words)
        return
    by_message = "SELECT id, text FROM message_search WHERE thread_id = ? AND message_id = ?"
    known = sql.execute(connection, by_message, thread_id, message_id).fetchone()
    if known is not None and known[1] == said:
        return
    if known is not None:
        _unindex(connection, known[0], user_id, known[1])
    (row_id,) = sql.insert(connection, message_search, row, f"{upsert} RETURNING id").fetchone()
    add_words(connection, row_id, user_id, said)


def put_row(connection: Connection, row: Mapping[str, Any]) -> None:
    """Add a row of another database as it is, unless it is there, and make it findable."""
    if connection.dialect.name == "sqlite":
        if sql.insert(connection, message_search, row, "ON CONFLICT DO NOTHING").rowcount:
            add_words(connection, row["id"], row["user_id"], row["text"])
        return
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    statement = (
        f"INSERT INTO message_search ({names}, words) VALUES ({marks}, array_to_tsvector(CAST(? AS text[])))"
        " ON CONFLICT DO NOTHING"
    )
    sql.execute(connection, statement, *row.values(), list(dict.fromkeys(words_of(row["text"]))))


def add_words(connection: Connection, row_id: int, user_id: str, said: str) -> None:
    """Make a row of SQLite findable."""
    statement = "INSERT INTO message_search_index (rowid, words) VALUES (?, ?)"
    sql.execute(connection, statement, row_id, _indexed(user_id, said))


def _unindex(connection: Connection, row_id: int, user_id: str, said: str) -> None:
    # The index of SQLite keeps no text: it is told again what it was told before.
    statement = "INSERT INTO message_search_index (message_search_index, rowid, words) VALUES ('delete', ?, ?)"
    sql.execute(connection, statement, row_id, _indexed(user_id, said))


def _indexed(user_id: str, said: str) -> str:
    return " ".join([owner_word(user_id), *dict.fromkeys(words_of(said))])


def owner_word(user_id: str) -> str:
    """A word that no text has, in every text of a user: SQLite skips those of others."""
    return "\ue000" + blake2b(user_id.encode(), digest_size=6).hexdigest()


def _is_visible(message: BaseMessage) -> bool:
    error = message.additional_kwargs.get("error")  # a failed run says so in a message, which is no answer
    is_failure = isinstance(error, Mapping) and message.text == error.get("message")
    return not message.additional_kwargs.get("hide_from_ui") and not is_failure and bool(message.text.strip())


# words ------------------------------------------------------------------------------------------------------------------


def _folded(said: str) -> str:
    """Without case and accents, and full-width forms as ordinary ones."""
    decomposed = unicodedata.normalize("NFKD", said.casefold())
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", decomposed))


def words_of(said: str) -> Iterator[str]:
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


def _hit(row: tuple[str, str, _Kind, str | None, str], wanted: Sequence[tuple[str, bool]]) -> Hit:
    thread_id, message_id, type_, title, said = row
    said = " ".join(said.split())
    places = _first_places(said, wanted)
    first = places[0][0] if places else 0
    start = max(0, first - _SNIPPET // 4)
    if start and (space := said.rfind(" ", start - 20, first)) > 0:
        start = space + 1
    end = start + _SNIPPET
    before, after = "…" if start else "", "…" if end < len(said) else ""
    marks = [(max(a, start) - start, min(b, end) - start) for a, b in places if a < end and b > start]
    shift = len(before)
    return Hit(
        thread_id,
        message_id or None,
        type_,
        title,
        before + said[start:end] + after,
        [(a + shift, b + shift) for a, b in marks],
    )


def _first_places(said: str, wanted: Sequence[tuple[str, bool]]) -> list[tuple[int, int]]:
    """Where the words stand in the first part of a text that has one: only there it is looked at letter by letter."""
    for at in range(0, len(said), _PART):
        start = max(0, at - _SNIPPET)
        start = max(start, said.find(" ", start, at))
        part = said[start : at + _PART + 2 * _SNIPPET]
        folded = _folded(part)
        if any(word in folded for word, _ in wanted):
            places = [(start + a, start + b) for a, b in _places(part, wanted)]
            if places and places[0][0] < at + _PART:
                return places
    return []


def _places(said: str, wanted: Sequence[tuple[str, bool]]) -> list[tuple[int, int]]:
    """Where the words stand in a text, in order, those that touch or overlap joined."""
    folded, origin = said.lower(), list(range(len(said)))
    if not said.isascii():
        letters = [_folded_character(character) for character in said]
        folded, origin = "".join(letters), [at for at, letter in enumerate(letters) for _ in letter]
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


@lru_cache(4096)
def _folded_character(character: str) -> str:
    return _folded(character)


def _joined(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
