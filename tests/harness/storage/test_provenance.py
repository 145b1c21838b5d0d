"""Rows of foreign text and of addresses, on both databases."""

from __future__ import annotations

import pytest

from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.provenance import (
    LINKS_A_TURN,
    Source,
    ThreadProvenance,
    addresses_in,
    copy_provenance,
    has_rows,
    host_of,
    normalized,
    trust,
)
from deerflow.storage.threads import ThreadRepository, begin_deletion, end_deletion

PAGE = Source("page", "https://example.com/a")
ANNA = Principal("anna")


def of(database: Database, thread: str = "t", turn: str = "turn 1") -> ThreadProvenance:
    return ThreadProvenance(database, thread, turn)


async def test_rows_only_grow_and_each_reader_sees_them_at_once(database: Database) -> None:
    rows, elsewhere = of(database), of(database)
    assert (await rows.sources(), await rows.is_tainted()) == ([], False)
    for _ in range(2):
        await rows.add(PAGE, Source("server", "shop", "digest"))
    await elsewhere.add(Source("upload", "a.pdf"))
    assert {(one.kind, one.name) for one in await rows.sources()} == {
        ("page", PAGE.name),
        ("server", "shop"),
        ("upload", "a.pdf"),
    }
    assert await elsewhere.is_tainted() and not await of(database, "another").is_tainted()


async def test_what_a_person_trusts_taints_no_more_until_its_content_is_another(database: Database) -> None:
    rows = of(database)
    await rows.add(Source("server", "shop", "1"))
    assert await database.write(trust, "t", "server", "shop")
    assert not await database.write(trust, "t", "server", "unknown")
    assert not await rows.is_tainted()
    await of(database).add(Source("server", "shop", "1"))
    assert not await rows.is_tainted(), "the same content"
    await of(database).add(Source("server", "shop", "2"))
    assert await rows.is_tainted()


async def test_a_copy_has_the_rows_and_a_deleted_thread_leaves_none(database: Database) -> None:
    await ThreadRepository(database).create(ANNA, "t")
    rows = of(database)
    await rows.add(PAGE)
    await rows.add_addresses(["https://example.com/b"], "hit")
    await database.write(copy_provenance, "t", "copy")
    assert await of(database, "copy").sources() == [PAGE]
    assert await of(database, "copy").open_address("https://example.com/b")
    assert await database.write(begin_deletion, "anna", "t")
    await database.write(end_deletion, "t")
    assert not await database.read(has_rows, "t")
    assert not await rows.open_address("https://example.com/b")


async def test_a_shared_mount_carries_foreign_text_from_thread_to_thread(database: Database) -> None:
    first, second, third = (of(database, name) for name in ("first", "second", "third"))
    await second.through_mounts(["/srv/shared"])
    assert not await second.is_tainted()
    await first.add(PAGE)
    await first.through_mounts(["/srv/shared"])
    await second.through_mounts(["/srv/shared"])
    await third.through_mounts(["/srv/other"])
    assert await second.sources() == [Source("mount", "/srv/shared")]
    assert not await third.is_tainted()


@pytest.mark.parametrize("via", ["person", "hit"])
async def test_addresses_of_the_person_and_of_a_search_are_open(database: Database, via: str) -> None:
    rows = of(database)
    await rows.add_addresses(["https://Example.com:443/a?x=1#part", "mailto:a@b"], via)  # type: ignore[arg-type]
    assert await rows.open_address("https://example.com/a?x=1")
    for url in ("https://example.com/a", "https://example.com/a?x=2", "http://example.com/a?x=1", "no address"):
        assert not await rows.open_address(url), url
    assert not await of(database, "another").open_address("https://example.com/a?x=1")


async def test_links_of_pages_are_open_but_few_of_one_host_in_a_turn(database: Database) -> None:
    rows, later = of(database), of(database, turn="turn 2")
    links = [f"https://example.com/{n}" for n in range(LINKS_A_TURN + 2)]
    await rows.add_addresses([*links, "https://other.example/a"], "link")
    assert [await rows.open_address(url) for url in links] == [True] * LINKS_A_TURN + [False, False]
    assert await rows.open_address(links[0]), "one that was opened is opened again"
    assert await rows.open_address("https://other.example/a")
    assert await later.open_address(links[-1])


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://EXAMPLE.com", "https://example.com/"),
        ("https://example.com:443/%7Ea/../b", "https://example.com/b"),
        ("https://example.com/%7Eann", "https://example.com/~ann"),
        ("http://example.com.:8080/a b", "http://example.com:8080/a%20b"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://user:key@example.com/", None),
        ("ftp://example.com/", None),
        ("javascript:alert(1)", None),
        ("", None),
    ],
)
def test_addresses_are_compared_in_one_form(url: str, form: str | None) -> None:
    assert normalized(url) == form


def test_what_a_person_wrote_is_found_as_they_write_it() -> None:
    said = "Read https://example.com/a?b=1, (www.python.org/downloads) and docs.example.org. Not file.txt or a@b."
    found = addresses_in(said)
    assert "https://example.com/a?b=1" in found and "https://www.python.org/downloads" in found
    assert "https://docs.example.org" in found
    assert [host_of(url) for url in found if "evil" in url] == []
