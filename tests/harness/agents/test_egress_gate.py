"""Hosts that commands of a thread may reach, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from deerflow.agents.egress_gate import EgressGate, gate_of
from deerflow.config import AppConfig
from deerflow.config.schema import GuardrailsConfig
from deerflow.context import RunContext
from deerflow.context.trust import Trust
from deerflow.identity import Principal
from deerflow.sandbox.interface import MOST_REFUSED, Policy
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.storage.approvals import RunApprovals
from deerflow.storage.database import Database
from deerflow.storage.provenance import Source, ThreadProvenance
from deerflow.storage.threads import ThreadRepository

UPLOAD = Source("upload", "letter.txt")


def gate(database: Database, *, alone: bool = False, **guardrails: Any) -> EgressGate:
    """Return that of a new run of the thread."""
    context = RunContext(
        "t",
        config=AppConfig.model_validate({"sandbox": {"network": {"mode": "internet", "allow": ["*.own.test"]}}}),
        trust=Trust(
            RunApprovals(database, run_id="r", thread_id="t", user_id="u"),
            ThreadProvenance(database, "t", "turn"),
            unattended=alone,
        ),
    )
    made = gate_of(context, GuardrailsConfig.model_validate(guardrails))
    assert made is not None
    return made


async def hosts(database: Database) -> list[str]:
    return [source.name for source in await ThreadProvenance(database, "t", "").sources() if source != UPLOAD]


async def test_a_clean_thread_reaches_one_host_and_then_only_what_it_knows(database: Database) -> None:
    assert await gate(database)("first.test") is None
    refused = await gate(database)("second.test")
    assert refused is not None and refused.startswith("second.test is new to this chat, which holds text from outside.")
    for _ in range(2):
        assert await gate(database)("first.test") is None
    assert await hosts(database) == ["first.test"]


@pytest.mark.parametrize(
    ("guardrails", "passes"),
    [
        ({}, False),
        ({"policy": "strict"}, False),
        ({"policy": "off"}, True),
        ({"enabled": False}, True),
        ({"provider": {"use": "deerflow.guardrails.builtin:AllowlistProvider"}}, True),
        ({"open_hosts": ["*.new.test"]}, True),
        ({"open_hosts": ["new.test"]}, False),
    ],
)
async def test_what_passes_in_a_thread_with_foreign_text_is_a_row_too(
    database: Database, guardrails: dict[str, Any], passes: bool
) -> None:
    await ThreadProvenance(database, "t", "").add(UPLOAD)
    judge = gate(database, **guardrails)
    assert (await judge("a.new.test") is None) is passes
    assert await judge("packages.own.test") is None, "what the operator wrote into the allow list"
    assert await hosts(database) == (["a.new.test"] if passes else []) + ["packages.own.test"]


async def test_a_host_that_the_person_lets_the_chat_reach_passes_in_each_later_run(database: Database) -> None:
    await ThreadRepository(database).create(Principal("u"), "t")
    await ThreadProvenance(database, "t", "").add(UPLOAD)
    judge = gate(database)
    assert await judge("new.test") is not None
    await judge.approvals.let_reach("", "new.test")
    assert await judge("new.test") is None and await judge("other.test") is not None
    assert await gate(database)("new.test") is None and await hosts(database) == ["new.test"]


async def test_strict_asks_in_clean_threads_and_runs_without_a_person_name_the_setting(database: Database) -> None:
    strict = await gate(database, policy="strict")("new.test")
    assert strict == "new.test is new to this chat. The user is asked whether this chat may reach it."
    await ThreadProvenance(database, "t", "").add(UPLOAD)
    alone = await gate(database, alone=True)("new.test")
    assert alone is not None and "guardrails.open_hosts" in alone and "The user is asked" not in alone
    waits = await gate(database, alone=True, unattended={"mode": "park"})("new.test")
    assert waits is not None and "The user is asked" in waits


async def test_a_sandbox_keeps_a_few_refused_hosts_once_each() -> None:
    sandbox = await LocalSandboxProvider().acquire("t", user_id="u", policy=Policy())

    async def no(host: str) -> str | None:
        return f"not {host}"

    assert await sandbox.admit("a") is None and sandbox.take_refused() == {}
    sandbox.gate = no
    for number in range(MOST_REFUSED + 3):
        for _ in range(2):
            assert await sandbox.admit(f"h{number}") == f"not h{number}"
    assert list(sandbox.take_refused()) == [f"h{number}" for number in range(MOST_REFUSED)]
    assert sandbox.take_refused() == {}
