"""What a thread's record of pages keeps, on both databases."""

from __future__ import annotations

from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.pages import ThreadPages
from deerflow.storage.threads import ThreadRepository, begin_deletion


async def test_pages_are_recorded_copied_and_gone_with_their_thread(database: Database) -> None:
    threads, owner = ThreadRepository(database), Principal("anna")
    for name in ("t", "copy"):
        await threads.create(owner, name)
    one, other = ThreadPages(database, "t"), ThreadPages(database, "copy")
    for title in ("First", "Later"):
        await one.add("/p/a.md", "https://example.org/a", title, title.encode())
    await one.add("/p/b.md", "https://example.org/b?x=%s", "B", b"b")
    assert [(row.path, row.title) for row in await one.newest(10)] == [("/p/b.md", "B"), ("/p/a.md", "Later")]
    assert len(await one.newest(1)) == 1 and await other.newest(10) == []
    await one.copy_to("copy")
    assert await other.newest(10) == await one.newest(10)
    await database.write(begin_deletion, "anna", "t")
    assert await one.newest(10) == [] and len(await other.newest(10)) == 2
