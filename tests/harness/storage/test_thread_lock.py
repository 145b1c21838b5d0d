"""What every lock of threads promises, and what is special about files and about PostgreSQL."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.descriptors import open_below

from deerflow.storage.database import Database
from deerflow.storage.postgres_lock import IS_TAKEN, PostgresThreadLock
from deerflow.storage.thread_lock import FileThreadLock, LockLostError, ThreadBusyError, ThreadLock

Make = Callable[[], ThreadLock]


def _directory(root: Path) -> Callable[[str, str], Path]:
    def directory(user_id: str, thread_id: str) -> Path:
        path = root / user_id / thread_id
        path.mkdir(parents=True, exist_ok=True)
        return path

    return directory


@pytest.fixture(params=["file", "postgres"])
async def make_lock(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Make]:
    """Each lock it makes is that of another process, as far as a lock can tell."""
    made: list[ThreadLock] = []
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def make() -> ThreadLock:
        made.append(PostgresThreadLock(url) if url else FileThreadLock(_directory(tmp_path)))
        return made[-1]

    yield make
    for lock in made:
        await lock.aclose()


async def test_two_processes_never_hold_a_thread_at_the_same_time(make_lock: Make):
    locks, holders, most = [make_lock(), make_lock(), make_lock()], 0, 0

    async def work(lock: ThreadLock) -> None:
        nonlocal holders, most
        async with lock.hold("u", "t"):
            holders += 1
            most = max(most, holders)
            await asyncio.sleep(0.001)
            holders -= 1

    await asyncio.gather(*(work(lock) for lock in locks for _ in range(8)))
    assert most == 1


async def test_tasks_of_a_process_get_their_turn_in_the_order_in_which_they_came(make_lock: Make):
    lock, order = make_lock(), []

    async def work(number: int) -> None:
        async with lock.hold("u", "t"):
            order.append(number)

    await asyncio.gather(*(work(number) for number in range(20)))
    assert order == list(range(20))


async def test_other_threads_do_not_wait(make_lock: Make):
    ours, theirs = make_lock(), make_lock()
    async with AsyncExitStack() as stack:
        for number in range(5):
            await stack.enter_async_context(ours.hold("u", f"ours{number}"))
            await stack.enter_async_context(theirs.hold("u", f"theirs{number}"))


async def test_who_waits_for_one_thread_keeps_nobody_from_getting_another(make_lock: Make):
    ours, theirs = make_lock(), make_lock()
    async with ours.hold("u", "busy"):
        waiting = asyncio.create_task(_hold_once(theirs, "busy"))
        await asyncio.sleep(0)
        await _hold_once(theirs, "free")
        assert not waiting.done()
    await waiting


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_busy_thread_is_told_after_the_time_one_would_wait(make_lock: Make, same_process: bool):
    holder = make_lock()
    asker = holder if same_process else make_lock()
    async with holder.hold("u", "t"):
        for wait in (0, 0.05):
            with pytest.raises(ThreadBusyError, match="Thread t is busy"):
                async with asker.hold("u", "t", wait=wait):
                    raise AssertionError("two holders")
    async with asker.hold("u", "t", wait=60):
        pass


async def test_a_free_thread_is_had_without_any_time_to_wait(make_lock: Make):
    lock = make_lock()
    for _ in range(3):
        async with lock.hold("u", "t", wait=0):
            pass


async def test_cancelled_waiters_neither_hold_a_thread_nor_block_it(make_lock: Make):
    locks, chance = [make_lock(), make_lock()], random.Random(1)

    async def impatient(lock: ThreadLock) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(chance.random() * 0.02), lock.hold("u", "t"):
                await asyncio.sleep(chance.random() * 0.005)

    await asyncio.gather(*(impatient(chance.choice(locks)) for _ in range(200)))
    for lock in locks:
        async with lock.hold("u", "t", wait=60):
            pass


async def test_what_goes_wrong_inside_comes_out_and_frees_the_thread(make_lock: Make):
    ours, theirs = make_lock(), make_lock()
    for error in (ValueError("mine"), TimeoutError("mine")):
        with pytest.raises(type(error), match="mine"):
            async with ours.hold("u", "t"):
                raise error
        async with theirs.hold("u", "t", wait=60):
            pass


_HOLDER = """
import asyncio, sys
from pathlib import Path
from deerflow.storage.{module} import {cls}

async def main():
    lock = {cls}({argument})
    async with lock.hold("u", "t"):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(params=["file", "postgres"])
async def holder(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[asyncio.subprocess.Process, ThreadLock]]:
    """Another process that holds thread t, and a lock of ours."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        lock: ThreadLock = PostgresThreadLock(url)
        code = _HOLDER.format(module="postgres_lock", cls="PostgresThreadLock", argument=repr(url))
    else:
        lock = FileThreadLock(_directory(tmp_path))
        _directory(tmp_path)("u", "t")
        code = _HOLDER.format(
            module="thread_lock",
            cls="FileThreadLock",
            argument=f"lambda user, thread: Path({str(tmp_path)!r}) / user / thread",
        )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None and await process.stdout.readline() == b"held\n"
        yield process, lock
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await lock.aclose()


async def test_a_killed_process_frees_its_threads(holder: tuple[asyncio.subprocess.Process, ThreadLock]):
    process, lock = holder
    with pytest.raises(ThreadBusyError):
        async with lock.hold("u", "t", wait=0):
            raise AssertionError("two holders")
    waiting = asyncio.create_task(_hold_once(lock, "t"))
    process.kill()
    await asyncio.wait_for(waiting, 60)


async def test_a_frozen_process_keeps_its_threads(holder: tuple[asyncio.subprocess.Process, ThreadLock]):
    process, lock = holder
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(ThreadBusyError):
        async with lock.hold("u", "t", wait=1):
            raise AssertionError("two holders")
    process.send_signal(signal.SIGKILL)
    async with lock.hold("u", "t", wait=60):
        pass


# files --------------------------------------------------------------------------------------------------------------


def test_event_loops_of_one_process_take_turns(tmp_path: Path):
    lock, inside, most, ends = FileThreadLock(_directory(tmp_path)), [], [], []

    async def work() -> None:
        for _ in range(10):
            async with lock.hold("u", "t"):
                inside.append(1)
                most.append(len(inside))
                await asyncio.sleep(0.0005)
                inside.pop()

    def serve() -> None:
        asyncio.run(work())
        ends.append(1)

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(ends) == 4
    assert max(most) == 1


def test_a_loop_that_ends_while_it_waits_leaves_its_turn_to_others(tmp_path: Path):
    lock = FileThreadLock(_directory(tmp_path))

    async def main() -> None:
        async with lock.hold("u", "t"):
            other = asyncio.new_event_loop()
            waiter = lock.hold("u", "t")
            waiting = other.create_task(waiter.__aenter__())  # type: ignore[arg-type]
            await asyncio.to_thread(other.run_until_complete, asyncio.sleep(0))
            await asyncio.to_thread(_end, other)
            assert waiting.cancelled()
        async with lock.hold("u", "t", wait=60):
            pass

    asyncio.run(main())


def _end(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


async def test_no_descriptor_stays_open_whenever_the_wait_is_cancelled(tmp_path: Path):
    ours, theirs, chance = FileThreadLock(_directory(tmp_path)), FileThreadLock(_directory(tmp_path)), random.Random(2)
    await _hold_once(ours, "t")
    before = open_below(tmp_path)

    async def impatient(lock: ThreadLock) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(chance.random() * 0.003), lock.hold("u", "t"):
                await asyncio.sleep(0)

    for _ in range(20):
        await asyncio.gather(*(impatient(lock) for lock in (ours, theirs) for _ in range(10)))
    # Attempts of those who were cancelled may still be on their way on other threads.
    async with asyncio.timeout(60):
        while open_below(tmp_path) != before:
            await asyncio.sleep(0.01)


async def test_who_waited_for_a_thread_that_was_deleted_does_not_hold_the_deleted_file(tmp_path: Path):
    directory = _directory(tmp_path)
    ours, theirs, others = FileThreadLock(directory), FileThreadLock(directory), FileThreadLock(directory)
    async with ours.hold("u", "t"):
        entered, leave = asyncio.Event(), asyncio.Event()
        waiting = asyncio.create_task(_hold_until(theirs, entered, leave))
        await asyncio.sleep(0.05)
        shutil.rmtree(directory("u", "t"))
    await asyncio.wait_for(entered.wait(), 60)
    with pytest.raises(ThreadBusyError):
        async with others.hold("u", "t", wait=0):
            raise AssertionError("two holders")
    leave.set()
    await waiting


async def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path):
    directory = _directory(tmp_path)
    (directory("u", "t") / ".turn").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        await _hold_once(FileThreadLock(directory), "t")
    assert not (tmp_path / "elsewhere").exists()


# PostgreSQL ---------------------------------------------------------------------------------------------------------


async def test_who_loses_the_connection_is_stopped_and_told_and_can_go_on_afterwards(postgres_url: str):
    lock = PostgresThreadLock(postgres_url)
    stopped: list[str] = []

    async def work(thread_id: str) -> None:
        async with lock.hold("u", thread_id):
            try:
                entered.release()
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                stopped.append(thread_id)
                raise

    entered = asyncio.Semaphore(0)
    working = [asyncio.create_task(work(thread_id)) for thread_id in ("a", "b")]
    for _ in working:
        await entered.acquire()
    await _cut_connections(postgres_url)
    for result in await asyncio.wait_for(asyncio.gather(*working, return_exceptions=True), 60):
        assert isinstance(result, LockLostError)
    assert sorted(stopped) == ["a", "b"]
    async with lock.hold("u", "a", wait=60):
        pass
    await lock.aclose()


async def test_who_waits_while_the_connection_is_lost_gets_the_thread_afterwards(postgres_url: str):
    ours, theirs = PostgresThreadLock(postgres_url), PostgresThreadLock(postgres_url)
    entered, leave = asyncio.Event(), asyncio.Event()
    holding = asyncio.create_task(_hold_until(ours, entered, leave))
    await entered.wait()
    waiting = asyncio.create_task(_hold_once(theirs, "t"))
    await asyncio.sleep(0.05)
    await _cut_connections(postgres_url)
    await asyncio.wait_for(waiting, 60)
    with pytest.raises(LockLostError):
        await holding
    await ours.aclose()
    await theirs.aclose()


async def test_a_cancellation_from_outside_stays_one(postgres_url: str):
    lock, entered = PostgresThreadLock(postgres_url), asyncio.Event()
    holding = asyncio.create_task(_hold_until(lock, entered, asyncio.Event()))
    await entered.wait()
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    await lock.aclose()


async def test_closing_frees_the_threads(postgres_url: str):
    ours, theirs = PostgresThreadLock(postgres_url), PostgresThreadLock(postgres_url)
    entered = asyncio.Event()
    holding = asyncio.create_task(_hold_until(ours, entered, asyncio.Event()))
    await entered.wait()
    await ours.aclose()
    async with theirs.hold("u", "t", wait=60):
        pass
    with pytest.raises(LockLostError):
        await holding
    await theirs.aclose()


_TAKE = f"""WITH others AS MATERIALIZED (
    SELECT thread_id FROM unnest(%(threads)s::text[]) AS thread_id WHERE thread_id <> ALL (%(ours)s::text[])
) SELECT thread_id, thread_id FROM others WHERE {IS_TAKEN}"""


async def test_a_thread_that_was_taken_belongs_to_who_holds_it_next_and_is_free_afterwards(postgres_url: str):
    ours, theirs = PostgresThreadLock(postgres_url), PostgresThreadLock(postgres_url)
    taken = {"threads": ["a", "b"]}
    assert sorted(await ours.take(_TAKE, taken)) == [("a", "a"), ("b", "b")]
    assert await theirs.take(_TAKE, taken) == await ours.take(_TAKE, taken) == []
    async with ours.hold("u", "a"):
        assert await theirs.take(_TAKE, taken) == await ours.take(_TAKE, taken) == []
        ours.leave("a")
        assert await theirs.take(_TAKE, taken) == []
    ours.leave("b")
    for name in ("a", "b"):
        await _hold_once(theirs, name)
    await ours.aclose()
    await theirs.aclose()


class _Watched(PostgresThreadLock):
    """Does something after each of the next answers of the database, before the lock sees it."""

    meanwhile: Sequence[Callable[[], Awaitable[object]]] = ()

    async def _answer(
        self, connection: psycopg.AsyncConnection[Any], query: str, values: Mapping[str, Any]
    ) -> list[Any]:
        rows = await super()._answer(connection, query, values)
        if self.meanwhile:
            first, *self.meanwhile = self.meanwhile
            await first()
        return rows


async def test_a_thread_that_is_given_back_and_wanted_again_while_the_database_answers_is_free_afterwards(
    postgres_url: str,
):
    ours, theirs, holding, wanting = (
        _Watched(postgres_url),
        PostgresThreadLock(postgres_url),
        AsyncExitStack(),
        set[asyncio.Task[None]](),
    )
    await holding.enter_async_context(ours.hold("u", "b"))

    async def give_back_and_want() -> None:
        await holding.aclose()
        wanting.add(asyncio.create_task(_hold_once(ours, "b")))
        await asyncio.sleep(0)

    async def give_up() -> None:
        for task in wanting:
            task.cancel()
        await asyncio.wait(wanting)

    ours.meanwhile = [give_back_and_want, give_up]
    await ours.take(_TAKE, {"threads": ["a"]})
    async with theirs.hold("u", "b", wait=5):
        pass
    await ours.aclose()
    await theirs.aclose()


async def test_however_taking_holding_and_cancelling_overlap_all_threads_are_free_in_the_end(postgres_url: str):
    locks, chance, names = [PostgresThreadLock(postgres_url) for _ in range(2)], random.Random(4), ["a", "b", "c"]

    async def take(lock: PostgresThreadLock) -> None:
        for _ in range(40):
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 0.01):
                    for _, name in await lock.take(_TAKE, {"threads": names}):
                        if chance.random() < 0.5:
                            with suppress(ThreadBusyError):
                                async with lock.hold("u", name, wait=0):
                                    await asyncio.sleep(0)
                        lock.leave(name)
            for name in names:
                lock.leave(name)

    async def hold(lock: PostgresThreadLock) -> None:
        for _ in range(40):
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 0.01), lock.hold("u", chance.choice(names)):
                    await asyncio.sleep(chance.random() * 0.002)

    await asyncio.gather(*(work(lock) for lock in locks for work in (take, hold, hold)))
    for lock in locks:
        for name in names:
            async with lock.hold("u", name, wait=60):
                pass
        await lock.aclose()


async def test_urls_of_sqlalchemy_are_understood(postgres_url: str):
    database = Database(postgres_url.replace("postgresql://", "postgresql+psycopg://"))
    assert await database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar()) == 1
    lock = PostgresThreadLock(database.location)
    await _hold_once(lock, "t")
    await lock.aclose()
    await database.aclose()


async def _hold_once(lock: ThreadLock, thread_id: str) -> None:
    async with lock.hold("u", thread_id):
        pass


async def _hold_until(lock: ThreadLock, entered: asyncio.Event, leave: asyncio.Event) -> None:
    async with lock.hold("u", "t"):
        entered.set()
        await leave.wait()


async def _cut_connections(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
