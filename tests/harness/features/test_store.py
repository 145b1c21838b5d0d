from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from deerflow.features.store import DatabaseStore
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now

ALICE, BOB = Principal("alice"), Principal("bob")


class Clock:
    def __init__(self) -> None:
        self.now = utc_now()

    def __call__(self) -> datetime:
        return self.now

    def forward(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


LABELS = st.sampled_from(["a", "b", "A", "a%", "a_", "x-1", "é"])
PATHS = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "K", "l", "k%"])
VALUES = st.fixed_dictionaries({"n": st.integers(0, 3)}, optional={"s": st.sampled_from(["x", "y"])})
STEPS = st.one_of(
    st.tuples(st.just("put"), PATHS, KEYS, VALUES),
    st.tuples(st.just("delete"), PATHS, KEYS),
)
CHECKS = st.lists(st.one_of(LABELS, st.just("*")), max_size=2).map(tuple)


@settings(max_examples=25)
@given(
    steps=st.lists(STEPS, max_size=12),
    prefix=CHECKS,
    suffix=CHECKS,
    depth=st.sampled_from([None, 1, 2]),
    low=st.integers(0, 3),
)
def test_it_behaves_like_the_store_of_langgraph(
    steps: list[Any], prefix: tuple[str, ...], suffix: tuple[str, ...], depth: int | None, low: int
) -> None:
    async def compare() -> None:
        database = Database(":memory:")
        store, model = DatabaseStore(database, ALICE), InMemoryStore()
        for step in steps:
            for each in (store, model):
                if step[0] == "put":
                    await each.aput(*step[1:])
                else:
                    await each.adelete(*step[1:])
        await _check_same(store, model, prefix, suffix, depth, low)
        await database.aclose()

    asyncio.run(compare())


async def _check_same(
    store: Any, model: Any, prefix: tuple[str, ...], suffix: tuple[str, ...], depth: int | None, low: int
) -> None:
    def shown(items: list[Any]) -> list[Any]:
        return sorted((item.namespace, item.key, sorted(item.value.items())) for item in items)

    exact = tuple(label for label in prefix if label != "*")
    for wanted in (None, {"n": low}, {"n": {"$gte": low}}, {"n": {"$lt": low}, "s": "x"}, {"s": {"$ne": "x"}}):
        ours = await store.asearch(exact, filter=wanted, limit=100)
        assert shown(ours) == shown(await model.asearch(exact, filter=wanted, limit=100)), wanted
    ours = await store.alist_namespaces(prefix=prefix, suffix=suffix, max_depth=depth)
    # LangGraph's keeps namespaces that held something once.
    held = {item.namespace for item in await model.asearch((), limit=100)}
    reference = InMemoryStore()
    for path in held:
        await reference.aput(path, "k", {})
    assert ours == await reference.alist_namespaces(prefix=prefix, suffix=suffix, max_depth=depth)
    for item in await model.asearch((), limit=100):
        assert (await store.aget(item.namespace, item.key)).value == item.value


async def test_both_databases_agree_with_langgraph(database: Database) -> None:
    store, model = DatabaseStore(database, ALICE), InMemoryStore()
    for each in (store, model):
        for n, path in enumerate([("a",), ("a", "b"), ("A", "b"), ("a%", "b"), ("ab",), ("a", "b", "c"), ("é", "b")]):
            await each.aput(path, "k", {"n": n, "s": "x" if n % 2 else "y"})
            await each.aput(path, "l", {"n": n})
        await each.aput(("a",), "k", {"n": 3})
        await each.adelete(("a", "b"), "l")
    for prefix, suffix in [((), ()), (("a",), ()), (("*", "b"), ()), ((), ("b",)), (("a",), ("c",)), ((), ("*", "c"))]:
        for depth in (None, 1, 2):
            await _check_same(store, model, prefix, suffix, depth, 3)


async def test_pages_of_a_search_hold_everything_once(database: Database) -> None:
    store = DatabaseStore(database, ALICE)
    for n in range(7):
        await store.aput(("docs",), f"k{n}", {"n": n})
    pages = [await store.asearch(("docs",), limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert {item.key for page in pages for item in page} == {f"k{n}" for n in range(7)}


async def test_what_was_written_last_comes_first_and_a_query_changes_nothing(database: Database) -> None:
    clock = Clock()
    store = DatabaseStore(database, ALICE, clock=clock)
    for key in ("first", "second", "third"):
        await store.aput(("docs",), key, {})
        clock.forward(1)
    await store.aput(("docs",), "first", {"again": True})
    found = await store.asearch(("docs",), query="second")
    assert [item.key for item in found] == ["first", "third", "second"]
    assert found[0].score is None
    assert found[0].created_at < found[2].updated_at < found[0].updated_at


async def test_a_user_never_sees_what_another_one_stored(database: Database) -> None:
    alice, bob = DatabaseStore(database, ALICE), DatabaseStore(database, BOB)
    await alice.aput(("shared",), "k", {"whose": "alice"})
    await bob.aput(("shared",), "k", {"whose": "bob"})
    await bob.adelete(("shared",), "other")
    assert (await alice.aget(("shared",), "k")).value == {"whose": "alice"}  # pyright: ignore
    assert [item.value for item in await bob.asearch(())] == [{"whose": "bob"}]
    await bob.adelete(("shared",), "k")
    assert await bob.alist_namespaces() == []
    assert await alice.aget(("shared",), "k") is not None


async def test_an_item_is_gone_when_its_time_is_over(database: Database) -> None:
    clock = Clock()
    store = DatabaseStore(database, ALICE, clock=clock)
    await store.aput(("n",), "short", {"a": 1}, ttl=10)
    await store.aput(("n",), "long", {"a": 1})
    clock.forward(10.01)
    assert await store.aget(("n",), "short") is None
    assert [item.key for item in await store.asearch(("n",))] == ["long"]
    await store.aput(("n",), "short", {"a": 2}, ttl=10)
    assert (await store.aget(("n",), "short")).created_at == clock.now  # pyright: ignore


async def test_reading_begins_the_time_anew_unless_told_not_to(database: Database) -> None:
    reads: list[tuple[Callable[[DatabaseStore], Any], bool]] = [
        (lambda store: store.aget(("n",), "k"), True),
        (lambda store: store.asearch(("n",)), True),
        (lambda store: store.aget(("n",), "k", refresh_ttl=False), False),
        (lambda store: store.asearch(("n",), refresh_ttl=False), False),
    ]
    for read, kept in reads:
        clock = Clock()
        store = DatabaseStore(database, ALICE, clock=clock)
        await store.aput(("n",), "k", {}, ttl=10)
        clock.forward(6)
        await read(store)
        clock.forward(6)
        assert (await store.aget(("n",), "k") is not None) == kept


async def test_writing_without_a_time_to_live_keeps_an_item_for_ever(database: Database) -> None:
    clock = Clock()
    store = DatabaseStore(database, ALICE, clock=clock)
    await store.aput(("n",), "k", {}, ttl=1)
    await store.aput(("n",), "k", {"kept": True})
    clock.forward(10**6)
    assert await store.aget(("n",), "k") is not None


async def test_expired_rows_leave_with_the_next_write(database: Database) -> None:
    clock = Clock()
    store = DatabaseStore(database, ALICE, clock=clock)
    await store.aput(("n",), "old", {}, ttl=1)
    clock.forward(2)
    await store.aput(("n",), "new", {})
    clock.forward(-2)
    assert await store.aget(("n",), "old") is None


async def test_reads_of_a_batch_see_what_was_before_its_writes(database: Database) -> None:
    store = DatabaseStore(database, ALICE)
    await store.aput(("n",), "k", {"v": 1})
    got, _, found, _ = await store.abatch(
        [
            GetOp(("n",), "k"),
            PutOp(("n",), "k", {"v": 2}),
            SearchOp(("n",)),
            PutOp(("n",), "k", {"v": 3}),
        ]
    )
    assert got.value == {"v": 1}  # pyright: ignore
    assert [item.value for item in found] == [{"v": 1}]  # pyright: ignore
    assert (await store.aget(("n",), "k")).value == {"v": 3}  # pyright: ignore


UNFIT: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    ((), "k", {}),
    (("a.b",), "k", {}),
    (("",), "k", {}),
    (("langgraph",), "k", {}),
    (("a\x1fb",), "k", {}),
    (("x" * 513,), "k", {}),
    (("a",), "k" * 257, {}),
    (("a",), "k\0", {}),
    (("a",), "k", {"v": object()}),
    (("a",), "k", {"v": 2**70}),
    (("a",), "k", {"v": "a\0b"}),
    (("a",), "k", {"v": "\ud800"}),
]


async def test_what_cannot_be_stored_is_refused_and_nothing_is_changed(database: Database) -> None:
    store = DatabaseStore(database, ALICE)
    for namespace, key, value in UNFIT:
        with pytest.raises(ValueError):
            await store.aput(namespace, key, value)
    assert await store.asearch(()) == []


async def test_text_that_only_looks_like_nul_is_stored(database: Database) -> None:
    store = DatabaseStore(database, ALICE)
    value = {"v": "\\u0000", "w": "\\\\u0000", "x": "☃ \U0001f600 'quote\" \\"}
    await store.aput(("n",), "k", value)
    assert (await store.aget(("n",), "k")).value == value  # pyright: ignore


async def test_the_synchronous_methods_work_from_other_threads_and_refuse_the_loop(database: Database) -> None:
    store = DatabaseStore(database, ALICE)
    with pytest.raises(asyncio.InvalidStateError):
        store.put(("n",), "k", {})
    await asyncio.to_thread(store.put, ("n",), "k", {"v": 1})
    found = await asyncio.to_thread(store.get, ("n",), "k")
    assert found is not None and found.value == {"v": 1}


async def test_many_writers_of_the_same_items_do_not_lock_each_other_out(database: Database) -> None:
    store = DatabaseStore(database, ALICE)
    keys = [f"k{n}" for n in range(5)]
    await asyncio.gather(
        *(
            store.abatch([PutOp(("n",), key, {"by": n}) for key in (keys if n % 2 else reversed(keys))])
            for n in range(12)
        )
    )
    assert len(await store.asearch(("n",))) == 5


async def test_an_invalid_namespace_says_what_is_wrong(database: Database) -> None:
    with pytest.raises(InvalidNamespaceError, match="512"):
        await DatabaseStore(database, ALICE).aput(("x" * 600,), "k", {})
