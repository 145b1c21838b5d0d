from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text
from sqlalchemy import insert, select, update

from deerflow.config import AppConfig
from deerflow.features.ask import Asker
from deerflow.features.titles.job import TITLE, TitleJob, enqueue_title, tidy_title
from deerflow.identity import Principal
from deerflow.models import ModelCache
from deerflow.storage.database import Database
from deerflow.storage.tables import threads, utc_now
from deerflow.tasks import jobs

ALICE = Principal("alice")
QUESTION = "Which birds winter in Bremen, and where can I see them?"


class World:
    def __init__(self, database: Database, endpoint: ScriptedOpenAI) -> None:
        self.database = database
        self.config = config(endpoint)
        self.announced: list[tuple[str, str, str]] = []
        self.job = TitleJob(database, Asker(database, ModelCache()), self.current, self.announce)

    async def current(self) -> AppConfig:
        return self.config

    async def announce(self, principal: Principal, thread_id: str, title: str) -> None:
        self.announced.append((principal.user_id, thread_id, title))

    async def run(self, user_text: str = QUESTION, assistant_text: str = "Many.") -> str | None:
        await self.database.write(
            lambda c: enqueue_title(c, ALICE, "t1", user_text=user_text, assistant_text=assistant_text)
        )
        now = utc_now()
        (job,) = await self.database.write(lambda c: jobs.lease(c, {TITLE: 1}, now=now, until=now))
        await self.job(job)
        return await self.database.read(lambda c: c.execute(select(threads.c.title)).scalar_one())


def config(endpoint: ScriptedOpenAI, **title: Any) -> AppConfig:
    use = {"use": "langchain_openai:ChatOpenAI", "base_url": endpoint.base_url, "api_key": "k", "max_retries": 0}
    models = [{"name": name, "model": f"{name}-model", **use} for name in ("big", "small")]
    return AppConfig.model_validate({"models": models, "title": title})


@pytest.fixture
async def world(tmp_path: Path) -> Any:
    database = Database(tmp_path / "deerflow.db")
    now = utc_now()
    row = {"thread_id": "t1", "user_id": "alice", "metadata": {}, "created_at": now, "updated_at": now}
    await database.write(lambda c: c.execute(insert(threads), [row]))
    with ScriptedOpenAI() as endpoint:
        made = World(database, endpoint)
        made.endpoint = endpoint
        yield made
    await database.aclose()


async def test_the_model_names_the_thread_and_the_news_is_spread(world: Any) -> None:
    world.endpoint.script(Text('<think>short!</think>\n"Winter birds in Bremen."\n'))
    assert await world.run() == "Winter birds in Bremen"
    assert world.announced == [("alice", "t1", "Winter birds in Bremen")]
    (request,) = world.endpoint.requests
    assert request["model"] == "big-model"
    assert QUESTION in str(request["messages"]) and "Many." in str(request["messages"])


async def test_the_configured_model_and_words_are_used(world: Any) -> None:
    world.config = config(world.endpoint, model_name="small", max_words=3, max_chars=12)
    world.endpoint.script(Text("Birds of the north and the south"))
    assert await world.run() == "Birds of th…"
    (request,) = world.endpoint.requests
    assert request["model"] == "small-model" and "at most 3 words" in str(request["messages"])


async def test_the_model_reads_no_more_than_the_beginning_of_each_message(world: Any) -> None:
    world.endpoint.script(Text("Long"))
    await world.run("u" * 5000, "a" * 5000)
    text = str(world.endpoint.requests[0]["messages"])
    assert "u" * 500 in text and "u" * 501 not in text and "a" * 500 in text and "a" * 501 not in text


async def test_when_the_model_fails_the_beginning_of_the_question_is_the_title(world: Any) -> None:
    world.endpoint.script(HttpError(500), HttpError(500), HttpError(500))
    assert await world.run() == QUESTION
    assert [title for _, _, title in world.announced] == [QUESTION]


async def test_without_models_or_words_there_is_a_title_nevertheless(world: Any) -> None:
    world.config = AppConfig()
    assert await world.run("") == "New Conversation"


async def test_whoever_renames_the_thread_meanwhile_has_the_last_word(world: Any) -> None:
    world.endpoint.script(Text("From the model"))
    await world.database.write(lambda c: c.execute(update(threads).values(title="Mine")))
    assert await world.run() == "Mine"
    assert world.announced == []


async def test_a_thread_of_someone_else_or_a_deleted_one_is_left_alone(world: Any) -> None:
    world.endpoint.script(Text("From the model"))
    await world.database.write(lambda c: c.execute(update(threads).values(user_id="bob")))
    assert await world.run() is None
    assert world.announced == []


async def test_a_second_try_spreads_the_news_that_got_lost(world: Any) -> None:
    world.endpoint.script(Text("Birds"), Text("Birds"))
    await world.run()
    await world.run()
    assert [title for _, _, title in world.announced] == ["Birds", "Birds"]


async def test_titles_can_be_off(world: Any) -> None:
    world.config = config(world.endpoint, enabled=False)
    assert await world.run() is None
    assert world.endpoint.requests == [] and world.announced == []


async def test_what_a_database_cannot_hold_does_no_harm(world: Any) -> None:
    world.endpoint.script(Text("Odd"))
    assert await world.run("a\0b \ud800", "\0") == "Odd"


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("", ""),
        ("  \n\n **Bold plan** \nmore", "Bold plan"),
        ("# Heading", "Heading"),
        ("「冬の鳥」", "冬の鳥"),
        ("A   b\tc.", "A b c"),
        ("x" * 100, "x" * 59 + "…"),
        ('```json\n{"title": "Birds in winter"}\n```', "Birds in winter"),
        ('{"title": "Birds in winter"}', "Birds in winter"),
        ("**Title:** Birds in winter", "Birds in winter"),
        ("标题：冬天的鸟", "冬天的鸟"),
        ("Sure! Here is a concise title:\n\n**Birds in winter**", "Birds in winter"),
        ("<title>Birds in winter</title>", "Birds in winter"),
        ("They want birds.\n</think>\nBirds in winter", "Birds in winter"),
        ("Here: a [draft] story", "Here: a [draft] story"),
    ],
)
def test_a_title_is_one_tidy_line(answer: str, title: str) -> None:
    assert tidy_title(answer, 60) == title
