"""What the ledger of a run knows of its calls."""

from __future__ import annotations

from deerflow.storage.database import Database
from deerflow.storage.runs import RunLedger


async def test_a_call_begins_once_in_a_run(database: Database) -> None:
    ledger = RunLedger(database, "run")
    assert await ledger.begin("message/call")
    assert not await RunLedger(database, "run").begin("message/call")
    assert await ledger.begin("other message/call")
    assert await RunLedger(database, "other run").begin("message/call")


async def test_a_call_that_did_nothing_may_begin_again(database: Database) -> None:
    ledger = RunLedger(database, "run")
    await ledger.begin("call")
    await ledger.forget("call")
    assert await ledger.begin("call")


async def test_ids_of_any_length_and_content_are_told_apart(database: Database) -> None:
    ledger = RunLedger(database, "run")
    assert await ledger.begin("x" * 10_000)
    assert await ledger.begin("x" * 10_001)
    assert await ledger.begin("\0")
    assert not await ledger.begin("x" * 10_000)
