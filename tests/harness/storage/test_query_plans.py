"""What people search and list reads what it returns and little more: no table that grows is scanned, nothing is sorted."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from deerflow.accounts import TokenRepository, UserRepository
from deerflow.features.assistants.rows import AssistantQuery, AssistantRepository
from deerflow.features.schedules.rows import CronQuery, CronRepository
from deerflow.features.store import DatabaseStore
from deerflow.features.usage.service import UsageService
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.errors import TooSlowError
from deerflow.storage.list_page import ListPage
from deerflow.storage.runs import RunStore
from deerflow.storage.search import MessageSearch, index
from deerflow.storage.threads import ThreadFilter, ThreadRepository
from deerflow.threads.feedback import FeedbackRepository

ME, ADMIN = Principal("me"), Principal("admin", role="admin")
Query = Callable[[Database], Awaitable[Any]]

QUERIES: dict[str, Query] = {
    "messages": lambda db: MessageSearch(db).search(ME, "word"),
    "messages, two words": lambda db: MessageSearch(db).search(ME, "two words"),
    "threads": lambda db: ThreadRepository(db).search(ME),
    "threads, oldest first": lambda db: ThreadRepository(db).search(ME, page=ListPage(descending=False)),
    "threads by age": lambda db: ThreadRepository(db).search(ME, page=ListPage(sort_by="created_at")),
    "threads with a status": lambda db: ThreadRepository(db).search(ME, ThreadFilter(status="busy")),
    "threads with metadata": lambda db: ThreadRepository(db).search(ME, ThreadFilter(metadata={"a": {"b": 1}})),
    "threads that wait": lambda db: ThreadRepository(db).waiting(ME, 100),
    "threads, how many": lambda db: ThreadRepository(db).count(ME),
    "runs": lambda db: RunStore(db).of_thread("t"),
    "runs with a status": lambda db: RunStore(db).of_thread("t", status="success"),
    "store": lambda db: DatabaseStore(db, ME).asearch(("a",)),
    "store with a filter": lambda db: DatabaseStore(db, ME).asearch(("a",), filter={"b": 1}),
    "feedback of a thread": lambda db: FeedbackRepository(db).of_thread(ME, "t"),
    "users": lambda db: UserRepository(db).list(),
    "is there an administrator": lambda db: UserRepository(db).any_admin(),
    "a user by address": lambda db: UserRepository(db).by_email("me@example.com"),
    "a token": lambda db: TokenRepository(db).find("df_x"),
}

SORTED: dict[str, tuple[str, Query]] = {
    "threads by status": (
        "no page asks for it",
        lambda db: ThreadRepository(db).search(ME, page=ListPage(sort_by="status")),
    ),
    "tokens": ("a person has few", lambda db: TokenRepository(db).list(ME)),
    "assistants": (
        "a person has few",
        lambda db: AssistantRepository(db).search(ME, AssistantQuery(name="a")),
    ),
    "usage": ("a year at most", lambda db: UsageService(db).report(ME, by="model")),
    "usage of everyone": ("a year at most", lambda db: UsageService(db).report(ADMIN, everyone=True)),
    "crons": ("a person has few", lambda db: CronRepository(db).search(ME, CronQuery())),
}
"""What sorts all that is the person's own, and why that will do. None of it scans what is others'."""


@pytest.fixture
async def database(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[Database]:
    path = tmp_path / "deerflow.db"
    path.write_bytes(sqlite_template.read_bytes())
    made = Database(path)
    await made.migrate()
    yield made
    await made.aclose()


async def _plan(database: Database, query: Query) -> list[str]:
    """What SQLite does for ``query``, step by step."""
    statements: list[str] = []
    threads = database._sqlite.reader, database._sqlite.browser
    for thread in threads:
        await asyncio.wrap_future(thread.submit(lambda raw: raw.set_trace_callback(statements.append), writes=False))
    await query(database)
    asked = [statement for statement in statements if statement.lstrip().startswith("SELECT")]
    assert asked, "nothing was read"

    def explain(raw: sqlite3.Connection) -> list[str]:
        raw.set_trace_callback(None)
        return [row[3] for statement in asked for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}")]

    return await asyncio.wrap_future(threads[1].submit(explain, writes=False))


def _scanned(plan: list[str]) -> list[str]:
    """JSON and the full-text index are asked for what they find, and all users are a page of all users, in their order."""
    harmless = r"VIRTUAL TABLE|CONSTANT ROW|message_search_index_config|USING INDEX users_by_age"
    return [step for step in plan if step.startswith("SCAN") and not re.search(harmless, step)]


@pytest.mark.parametrize("name", QUERIES)
async def test_nothing_is_scanned_or_sorted(database: Database, name: str) -> None:
    plan = await _plan(database, QUERIES[name])
    assert not _scanned(plan), plan
    assert not [step for step in plan if "TEMP B-TREE" in step], plan


@pytest.mark.parametrize("name", SORTED)
async def test_what_is_sorted_is_the_persons_own(database: Database, name: str) -> None:
    plan = await _plan(database, SORTED[name][1])
    assert not _scanned(plan), plan


async def test_a_word_that_all_messages_have_is_found_without_reading_all(database: Database) -> None:
    await ThreadRepository(database).create(ME, "t")
    said = [HumanMessage(f"word {number}", id=f"m{number}") for number in range(3000)]
    await database.write(lambda connection: index(connection, "t", "me", said))
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    browser = database._sqlite.browser
    await asyncio.wrap_future(browser.submit(lambda raw: raw.set_progress_handler(count, 100), writes=False))
    hits = await MessageSearch(database).search(ME, "word")
    assert [hit.message_id for hit in hits][:2] == ["m2999", "m2998"] and len(hits) == 20
    assert steps < 30, "SQLite went through more than it returned"


async def test_a_run_reads_while_people_search(database: Database) -> None:
    searching = asyncio.Event()
    loop = asyncio.get_running_loop()
    goes_on = asyncio.Event()

    def search(connection: Any) -> None:
        loop.call_soon_threadsafe(searching.set)
        asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result()

    slow = asyncio.create_task(database.browse(search))
    await searching.wait()
    assert await database.read(lambda connection: 1) == 1
    assert await database.write(lambda connection: 2) == 2
    goes_on.set()
    await slow


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


async def test_a_search_without_end_is_stopped_and_says_so(
    migrated_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deerflow.storage.database.BROWSE_SECONDS", 1)
    database = Database(migrated_location)
    with pytest.raises(TooSlowError, match="took too long and was stopped"):
        await database.browse(lambda connection: connection.exec_driver_sql(ENDLESS).all())
    assert await database.browse(lambda connection: connection.exec_driver_sql("SELECT 1").scalar()) == 1
    await database.aclose()
