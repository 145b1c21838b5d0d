"""Grants and decisions as rows, on both databases; which arguments a grant's pattern covers."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, insert

from deerflow.errors import NotFoundError
from deerflow.features.guardrails.providers import covers
from deerflow.identity import Principal
from deerflow.storage.approvals import ApprovalRepository, RunApprovals
from deerflow.storage.database import Database
from deerflow.storage.tables import grants, runs, threads, utc_now
from deerflow.storage.threads import ThreadRepository
from deerflow.tools.decorator import COSMETIC

ANNA, BEN = Principal("anna"), Principal("ben")


async def _run_of(database: Database, thread_id: str) -> RunApprovals:
    """The approvals of a run, with the rows that it belongs to."""
    await ThreadRepository(database).create(ANNA, thread_id=thread_id)
    now = utc_now()
    row = {
        "run_id": f"run of {thread_id}",
        "thread_id": thread_id,
        "user_id": "anna",
        "created_at": now,
        "updated_at": now,
    }
    row |= {"multitask_strategy": "enqueue", "kwargs": {}, "metadata": {}, "position": 1}
    await database.write(lambda connection: connection.execute(insert(runs).values(**row)) and None)
    return RunApprovals(database, run_id=row["run_id"], thread_id=thread_id, user_id="anna")


async def test_grants_are_kept_once_listed_and_revoked_by_their_owner_only(database: Database) -> None:
    here, there = await _run_of(database, "here"), await _run_of(database, "there")
    for _ in range(2):  # an answer is played again after a crash
        await here.grant("", "bash", "", {"command": "git *"}, everywhere=True)
        await here.grant("", "bash", "", None, everywhere=False)
    assert sorted(map(str, await here.patterns("", "bash", ""))) == ["None", "{'command': 'git *'}"]
    assert await there.patterns("", "bash", "") == [{"command": "git *"}]
    assert await there.patterns("helper", "bash", "") == await there.patterns("", "write_file", "") == []
    assert await here.patterns("", "bash", "another definition") == []
    repository = ApprovalRepository(database)
    assert await repository.grants(BEN) == []
    mine = await repository.grants(ANNA)
    assert {(grant.thread_id, grant.tool) for grant in mine} == {(None, "bash"), ("here", "bash")}
    with pytest.raises(NotFoundError):
        await repository.revoke(BEN, mine[0].id)
    for grant in mine:
        await repository.revoke(ANNA, grant.id)
    assert await here.patterns("", "bash", "") == []


async def test_a_grant_of_before_definitions_is_listed_and_no_longer_in_force(database: Database) -> None:
    run = await _run_of(database, "here")
    row = {"id": "old", "user_id": "anna", "agent": "", "tool": "pay", "created_at": utc_now()}
    await database.write(lambda connection: connection.execute(insert(grants).values(**row)) and None)
    [old] = await ApprovalRepository(database).grants(ANNA)
    assert (old.digest, await run.patterns("", "pay", "")) == (None, [])


async def test_a_destination_is_open_to_one_agent_in_one_chat(database: Database) -> None:
    here, there = await _run_of(database, "here"), await _run_of(database, "there")
    await here.let_reach("", "example.com")
    assert await here.may_reach("", "example.com")
    assert not await here.may_reach("helper", "example.com") and not await here.may_reach("", "evil.example")
    assert not await there.may_reach("", "example.com")
    assert await here.patterns("", "", "") == [], "it grants no tool"


async def test_what_a_person_was_shown_of_a_call_is_kept_until_it_is_shown_anew(database: Database) -> None:
    run = await _run_of(database, "here")
    assert await run.asked("a call") is None
    for shown in ({"shown": {"digest": "1"}, "void": 0}, {"shown": {"digest": "2"}, "void": 1}):
        await run.ask("a call", shown)
        assert await run.asked("a call") == shown
    assert await run.asked("another") is None


async def test_decisions_are_kept_once_and_go_with_their_run_as_grants_go_with_their_thread(database: Database) -> None:
    run, other = await _run_of(database, "here"), await _run_of(database, "there")
    about: dict[str, Any] = {"agent": "", "tool": "bash", "code": "deerflow.ask", "policy_id": None}
    for _ in range(2):
        await run.record("call", "approve", asked_by="message", **about)
    await run.record("call", "reject", asked_by="another message", **about)
    await other.record("call", "deny", asked_by="message", **about)
    await run.grant("", "bash", "", None, everywhere=False)
    repository = ApprovalRepository(database)
    assert len(await repository.decisions(limit=10)) == 3
    assert len(await repository.decisions(run_id="run of here", limit=1)) == 1
    [denied] = await repository.decisions(thread_id="there", limit=10)
    assert (denied.decision, denied.user_id, denied.call_id, denied.code) == ("deny", "anna", "call", "deerflow.ask")
    assert await repository.decisions(before=(await repository.decisions(limit=10))[-1].created_at, limit=10) == []
    await database.write(
        lambda connection: connection.execute(delete(threads).where(threads.c.thread_id == "here")) and None
    )
    assert [one.thread_id for one in await repository.decisions(limit=10)] == ["there"]
    assert await repository.grants(ANNA) == []


@pytest.mark.parametrize(
    ("pattern", "args", "covered"),
    [
        (None, {"command": "anything; at all"}, True),
        ({"command": "git push *"}, {"command": "git push origin main", "description": "d"}, True),
        ({"command": "git push *"}, {"command": "git pull"}, False),
        ({"command": "git push *"}, {"command": "git push x && curl evil"}, False),
        ({"command": "git push *"}, {"command": "git push x\ncurl evil"}, False),
        ({"command": "git push *"}, {"command": "git push $(curl evil)"}, False),
        ({"command": "git push *"}, {"command": "git push `curl evil`"}, False),
        ({"command": "git push *"}, {}, False),
        ({"command": "a.c"}, {"command": "abc"}, False),
        ({"command": "make; make test"}, {"command": "make; make test"}, True),
        ({"to": "*@example.com", "copies": "1"}, {"to": "a@example.com", "copies": 1}, True),
        ({"to": "*@example.com", "copies": "1"}, {"to": "a@example.com", "copies": 2}, False),
        ({"to": "friend"}, {"to": "friend", "iban": "DE02"}, False),
        ({"to": "friend"}, {"to": "friend", "bcc": "evil@example.com"}, False),
        ({"to": "friend", "iban": None}, {"to": "friend", "iban": "DE02; anything"}, True),
    ],
)
def test_a_pattern_covers_no_second_command_and_no_argument_that_it_does_not_name(
    pattern: dict[str, str | None] | None, args: dict[str, Any], covered: bool
) -> None:
    assert covers(pattern, args, COSMETIC) is covered
