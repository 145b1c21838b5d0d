"""The interface by which the core knows nouns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from deerflow.agents.turn import AS_DATA, render_facts
from deerflow.capability import AskedRun, Capabilities, Capability, EndedRun, NewTurn
from deerflow.config import AppConfig
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now
from deerflow.tasks.jobs import enqueue

TURN = NewTurn(LOCAL_PRINCIPAL, "", "t", "hi", AppConfig(), None)


class Weather(Capability):
    name = "weather"

    async def facts(self, turn: NewTurn) -> Mapping[str, Any] | None:
        return {"text": f"Rain at {turn.text}.", "note": "From the station."}

    def for_run(self, principal: object, thread_id: str, agent: str) -> Station:
        return Station(thread_id)


class Silent(Capability):
    name = "silent"

    async def facts(self, turn: NewTurn) -> Mapping[str, Any] | None:
        return None


class Bare(Capability):
    name = "bare"


class Station:
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id


async def test_a_method_that_a_noun_does_not_have_is_never_called():
    with pytest.raises(NotImplementedError):
        await Bare().facts(TURN)
    all_ = Capabilities(Bare(), Silent(), Weather())
    assert await all_.facts(TURN) == {"weather": {"text": "Rain at hi.", "note": "From the station."}}
    made = all_.for_run(LOCAL_PRINCIPAL, "t", "")
    assert list(made) == [Station]
    await all_.turn_left("t")
    ended = EndedRun(AppConfig(), "", run=None, joined=(), answer="", ends_turn=True)  # type: ignore[arg-type]
    assert all_.run_ended(None, ended) == []  # type: ignore[arg-type]
    assert all_.run_closed(None, ended.run) == []  # type: ignore[arg-type]
    await all_.admit(AskedRun(LOCAL_PRINCIPAL))


class Office(Capability):
    name = "station"
    jobs = {"measure": lambda job: None}  # type: ignore[dict-item]
    needs_server = True


def test_background_tasks_of_servers_are_left_to_them():
    all_ = Capabilities(Bare(), Office())
    assert list(all_.jobs()) == ["measure"]
    assert not all_.jobs(on_server=False)


async def test_what_a_noun_records_stands_before_the_message_in_its_own_tag():
    facts = {"date": "2026-11-26, Thursday", **await Capabilities(Weather()).facts(TURN)}
    assert render_facts(facts) == (
        "<weather>\nFrom the station.\nRain at hi.\n</weather>\n<current_date>2026-11-26, Thursday</current_date>"
    )
    assert AS_DATA in render_facts({"memory": {"text": "- a fact", "ids": []}}), "recorded before there were notes"


class Broken(Capability):
    """Writes, then fails, by a statement that no database takes."""

    name = "broken"

    def run_ended(self, connection: Connection, ended: EndedRun) -> datetime | None:
        enqueue(connection, "broken", "key", {})
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")
        raise AssertionError("it is not reached")


class Diligent(Capability):
    name = "diligent"

    def run_ended(self, connection: Connection, ended: EndedRun) -> datetime | None:
        enqueue(connection, "diligent", "key", {})
        return ended.run.created_at


async def test_a_run_ends_though_a_packaged_noun_fails_and_what_that_wrote_is_undone(database: Database):
    now = utc_now()
    ended = EndedRun(AppConfig(), "", run=SimpleNamespace(created_at=now), joined=(), answer="", ends_turn=True)  # type: ignore[arg-type]
    all_ = Capabilities(Diligent(), packaged=[Broken(), Diligent()])
    assert await database.write(lambda connection: all_.run_ended(connection, ended)) == [now, None, now]
    kinds = "SELECT kind FROM jobs"
    rows = await database.read(lambda connection: connection.exec_driver_sql(kinds).fetchall())
    assert [tuple(row) for row in rows] == [("diligent",)]
    with pytest.raises(DBAPIError):  # one of ours fails loudly
        await database.write(lambda connection: Capabilities(Broken()).run_ended(connection, ended))
