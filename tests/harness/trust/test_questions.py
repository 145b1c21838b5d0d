"""Forty ordinary tasks, as they were recorded: nothing is approved in advance, and each asks the person at most once.

A click that grants something for longer counts as three questions; none is needed.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.harness.trust.conftest import Thread, World

from deerflow.agents.egress_gate import gate_of
from deerflow.config import AppConfig
from deerflow.config.schema import GuardrailsConfig
from deerflow.storage.provenance import Source
from deerflow.threads.input import record_said

Step = tuple[str, Any]
INDEXES = ["*.index.example"]
"""Of an operator who lets commands install packages."""


def says(text: str) -> Step:
    return "says", text


def calls(*names: str, **args: Any) -> Step:
    return "calls", [(name, args) for name in names]


def searches(topic: str, *sites: str) -> list[Step]:
    """A search, and the pages that it found."""
    pages = [f"https://{site}/{topic}" for site in sites]
    return [("hits", pages), calls("web_search", query=topic), *(calls("web_fetch", url=page) for page in pages)]


def follows(site: str, count: int) -> list[Step]:
    """Links of a page that was read."""
    links = [f"https://{site}/part/{number}" for number in range(count)]
    return [("links", links), *(calls("web_fetch", url=link) for link in links)]


def reaches(*hosts: str) -> Step:
    """A command of which the proxy sees these hosts."""
    return "reaches", hosts


WRITES = calls("write_file", "bash", "read_file", "write_file")
LOOKS = calls("read_file", "bash", "bash", "read_process")

RESEARCH: dict[str, list[Step]] = {
    f"research {topic}": [says(f"What is new about {topic}?"), *steps, WRITES]
    for topic, steps in {
        "solar cells": searches("solar", "news.example", "lab.example", "agency.example"),
        "a company": [*searches("acme", "acme.example", "register.example"), *follows("acme.example", 4)],
        "a law": [*searches("law", "gazette.example", "court.example"), *searches("ruling", "court.example")],
        "a library": [*searches("lib", "docs.example"), *follows("docs.example", 5)],
        "prices": [*searches("price", "a.example", "b.example", "c.example", "d.example"), LOOKS],
        "travel": [*searches("trains", "rail.example"), *searches("hotels", "rooms.example"), WRITES],
        "a person": [*searches("ada", "museum.example", "university.example"), calls("memory_save", text="a")],
        "pictures": [
            ("hits", ["https://photos.example/1.jpg"]),
            calls("web_search"),
            calls("web_fetch", url="https://photos.example/1.jpg"),
        ],
        "my own page": [
            says("Compare it with https://mine.example/page"),
            calls("web_fetch", url="https://mine.example/page"),
        ],
        "two topics at once": [*searches("one", "x.example"), *searches("two", "y.example"), *follows("y.example", 3)],
    }.items()
}
ANALYSIS: dict[str, list[Step]] = {
    f"analysis of {file}": [("upload", file), says("What does it say?"), *steps]
    for file, steps in {
        "sales.csv": [LOOKS, WRITES],
        "letter.pdf": [calls("read_file"), WRITES],
        "minutes.docx": [calls("read_file", "bash"), calls("memory_save", text="a"), WRITES],
        "page.html": [calls("read_file"), WRITES],
        "photo.png": [calls("bash"), WRITES],
        "log.txt": [LOOKS, LOOKS, LOOKS],
        "report.xlsx": [LOOKS, *searches("method", "wiki.example"), WRITES],
        "contract.pdf": [calls("read_file"), *searches("clause", "gazette.example"), WRITES],
        "mail.eml": [calls("read_file"), calls("crm_find", query="customer 5"), WRITES],
        "order.pdf, booked": [calls("read_file"), calls("shop_pay", text="order 5"), WRITES],
    }.items()
}
CODING: dict[str, list[Step]] = {
    f"coding: {what}": [says(what), *steps]
    for what, steps in {
        "a parser": [WRITES, LOOKS, WRITES],
        "with packages": [reaches("pkg.index.example", "files.index.example"), WRITES, LOOKS],
        "a clone": [reaches("code.example"), LOOKS, WRITES, LOOKS],
        "a clone with packages": [reaches("code.example"), reaches("pkg.index.example", "files.index.example"), WRITES],
        "a page": [reaches("pkg.index.example"), WRITES, calls("bash", "read_process"), LOOKS],
        "an API client": [*searches("api", "docs.example"), WRITES, reaches("api.example"), LOOKS],
        "a fix from an issue": [
            says("See https://code.example/i/5"),
            calls("web_fetch", url="https://code.example/i/5"),
            reaches("code.example"),
            WRITES,
        ],
        "cleaning up": [calls("bash", command="rm -rf build ~/.cache && sudo true"), WRITES],
        "a database": [reaches("pkg.index.example"), calls("bash", "bash", "bash"), WRITES],
        "data from a service": [reaches("data.example"), LOOKS, WRITES],
    }.items()
}
SERVERS: dict[str, list[Step]] = {
    f"server: {what}": [says(what), *steps]
    for what, steps in {
        "find a customer": [calls("crm_find", query="5"), WRITES],
        "note a customer": [calls("crm_note", text="metric units")],
        "find and note": [calls("crm_find", query="5"), calls("crm_note", text="5")],
        "look in the shop": [
            calls("shop_find", query="a"),
            calls("shop_find", query="b"),
            calls("shop_find", query="c"),
        ],
        "look and buy": [calls("shop_pay", text="a")],
        "read mail": [calls("read_mail"), WRITES],
        "read mail and answer": [calls("read_mail"), calls("send_mail", to="Ben", text="yes")],
        "compare shops": [calls("shop_find", query="a"), *searches("b", "b.example"), calls("shop_find", query="b")],
        "a report from a CRM": [calls("crm_find", query="a"), calls("crm_find", query="b"), WRITES, LOOKS],
        "mail a report": [calls("crm_find", query="a"), WRITES, calls("send_mail", to="Ben", text="report")],
    }.items()
}
TASKS = RESEARCH | ANALYSIS | CODING | SERVERS
SCHEDULES: dict[str, list[Step]] = {
    f"every morning: {name}": TASKS[name]
    for name in (
        "research prices",
        "research a law",
        "coding: a parser",
        "server: find a customer",
        "server: note a customer",
    )
}


async def question_count(thread: Thread, steps: list[Step]) -> int:
    asked = 0
    for kind, given in steps:
        match kind:
            case "says":
                await record_said(thread.rows, [HumanMessage(given)])
            case "upload":
                await thread.rows.add(Source("upload", given))
            case "hits" | "links":
                await thread.rows.add_addresses(given, "hit" if kind == "hits" else "link")
            case "reaches":
                asked += await _reached(thread, given)
            case _:
                waiting = await thread.reply(*given)
                asked += len(waiting)
                if waiting:
                    await thread.approve()
    return asked


async def _reached(thread: Thread, hosts: tuple[str, ...]) -> int:
    context = thread.context
    gate, approvals = gate_of(context, GuardrailsConfig.model_validate(thread.guardrails)), context.trust.approvals
    assert gate is not None and approvals is not None
    refused = [host for host in hosts if await gate(host) is not None]
    for host in refused:
        await approvals.let_reach("", host)
    return len(refused)


def test_there_are_forty_tasks_and_five_schedules() -> None:
    assert (len(TASKS), len(SCHEDULES)) == (40, 5)


@pytest.mark.parametrize("tasks", [RESEARCH, ANALYSIS, CODING, SERVERS, SCHEDULES])
async def test_each_ordinary_task_asks_at_most_once(world: World, tasks: dict[str, list[Step]]) -> None:
    asked: dict[str, int] = {}
    config = AppConfig.model_validate({"sandbox": {"network": {"mode": "internet"}}})
    for number, (name, steps) in enumerate(tasks.items()):
        thread = await world.thread(f"task-{number}")
        thread.config, thread.guardrails = config, {"open_hosts": INDEXES}
        asked[name] = await question_count(thread, steps)
    assert {name: count for name, count in asked.items() if count > 1} == {}
    assert sum(asked.values()) <= len(tasks) // 2
