from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.search import Hit, MessageSearch, index
from deerflow.storage.threads import ThreadRepository, begin_deletion

ALICE, BOB = Principal("alice"), Principal("bob")


async def _say(database: Database, *messages: BaseMessage, thread: str = "t1", owner: Principal = ALICE) -> None:
    await ThreadRepository(database).create(owner, thread)
    await database.write(lambda connection: index(connection, thread, owner.user_id, messages))


def _ids(hits: Sequence[Hit]) -> set[str | None]:
    return {hit.message_id for hit in hits}


LANGUAGES = [
    ("请帮我写一份中文报告", "中文"),
    ("请帮我写一份中文报告", "文"),
    ("请帮我写一份中文报告", "告"),
    ("请帮我写一份中文报告", "报告 中文"),
    ("日本語のテキストを検索する", "テキスト"),
    ("한국어 검색을 지원합니다", "검색"),
    ("ค้นหาข้อความ", "ข้อความ"),
    ("用Python写的script很好", "python"),
    ("用Python写的script很好", "scr"),
    ("Die Straße nach Zürich", "zurich strasse"),
    ("The QUARTERLY report", "quarter"),
    ("file_name_here.txt v1.5", "name txt v1.5"),
    ("ｆｕｌｌ ｗｉｄｔｈ", "full width"),
    ("naïve café", "NAIVE cafe\u0301"),
    ("हिन्दी में खोज", "हिन्दी"),
]


async def test_words_of_any_language_are_found(database: Database) -> None:
    for number, (said, _) in enumerate(LANGUAGES):
        await _say(
            database, HumanMessage(said, id=said), HumanMessage("something else 其他", id="m2"), thread=f"t{number}"
        )

    for said, query in LANGUAGES:
        assert said in _ids(await MessageSearch(database).search(ALICE, query)), query
        assert "m2" not in _ids(await MessageSearch(database).search(ALICE, query)), query


async def test_all_words_must_be_there(database: Database) -> None:
    await _say(database, HumanMessage("red apples", id="m1"), AIMessage("green apples", id="m2"))

    assert _ids(await MessageSearch(database).search(ALICE, "apples green")) == {"m2"}
    assert _ids(await MessageSearch(database).search(ALICE, "apples")) == {"m1", "m2"}
    assert await MessageSearch(database).search(ALICE, "apples blue") == []


NASTY = ["", "   ", '"', "'", "a'b", 'a"b', "NEAR(a b)", "a AND", "NOT", "*", "a*", "(", "-a", "a:b", "words:a", "\\", "%", "_", "a & | !", "\x00", "\ud800", "🙂", ";--", ":*", "'a':*", "\u0301", "文\"文"]  # fmt: skip


async def test_no_query_is_an_error(database: Database) -> None:
    await _say(database, HumanMessage("a b", id="m1"))

    for query in [*NASTY, "x " * 5000, "文" * 5000, "x" * 100_000]:
        await MessageSearch(database).search(ALICE, query)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.text(max_size=60))
async def test_everything_can_be_said_and_looked_for(database: Database, said: str) -> None:
    await _say(database, HumanMessage(said, id="m1"))

    for hit in await MessageSearch(database).search(ALICE, said):
        assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.marks)


async def test_nobody_finds_what_others_said(database: Database) -> None:
    await _say(database, HumanMessage("secret plan", id="m1"))

    assert await MessageSearch(database).search(BOB, "secret") == []


async def test_a_hit_tells_where_the_words_stand(database: Database) -> None:
    await ThreadRepository(database).create(ALICE, "t1", title="Fruit")
    await _say(database, AIMessage("word " * 200 + "the  Ärmel\nand the\narm " + "tail " * 200, id="m1"))

    [hit] = await MessageSearch(database).search(ALICE, "arm")

    assert (hit.thread_id, hit.message_id, hit.type, hit.title) == ("t1", "m1", "ai", "Fruit")
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Ärm", "arm"]
    assert hit.snippet.startswith("…") and hit.snippet.endswith("…")
    assert len(hit.snippet) <= 170


async def test_marks_in_text_without_spaces(database: Database) -> None:
    await _say(database, AIMessage("我们需要一份中文报告，中文！", id="m1"))

    [hit] = await MessageSearch(database).search(ALICE, "中文报告")

    assert [hit.snippet[start:end] for start, end in hit.marks] == ["中文报告", "中文"]


@pytest.mark.parametrize("fill", ["word ", "party ", "中", "… ", "ßé "])
async def test_a_word_is_marked_wherever_in_a_long_text_it_stands(database: Database, fill: str) -> None:
    for letters in (0, 500, 639, 640, 641, 800, 1300, 12_000):
        said = (fill * 20_000)[:letters] + " art of Ärt, " + fill * 300
        await _say(database, AIMessage(said, id="m1"))

        [hit] = await MessageSearch(database).search(ALICE, "art")

        assert [hit.snippet[start:end] for start, end in hit.marks] == ["art", "Ärt"], letters


async def test_a_word_and_longer_ones_come_in_one_order_however_many_there_are(database: Database) -> None:
    said = [f"report{number % kinds}" for kinds in (3, 100) for number in range(2 * kinds)]
    search = MessageSearch(database)
    for number, text in enumerate(["repor", "report", *said, "report", "reporu"]):
        await _say(database, HumanMessage(text, id=f"m{number:03}"))
        found = [hit.message_id for hit in await search.search(ALICE, "report", limit=500)] if number % 20 == 7 else []
        assert found == sorted(found, reverse=True) and len(found) in (0, number)
    assert len(await search.search(ALICE, "report", limit=500)) == len(said) + 2
    assert len(await search.search(ALICE, "r", limit=500)) == len(said) + 4
    assert [hit.message_id for hit in await search.search(ALICE, "reporu")] == [f"m{len(said) + 3:03}"]


async def test_a_person_searches_once_at_a_time_and_waits_for_nobody_else(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.migrate()
    asked, goes_on = 0, asyncio.Event()

    async def browse(job: Any) -> Any:
        nonlocal asked
        asked += 1
        await goes_on.wait()
        return [], 0.0

    monkeypatch.setattr(database, "browse", browse)
    search = MessageSearch(database)
    searches = [asyncio.create_task(search.search(person, "word")) for person in (ALICE, ALICE, ALICE, BOB)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert asked == 2
    goes_on.set()
    await asyncio.gather(*searches)
    assert asked == 4


async def test_titles_are_found_and_follow_a_rename(database: Database) -> None:
    repository, search = ThreadRepository(database), MessageSearch(database)
    await repository.create(ALICE, "t1", title="Budget 2026")
    await repository.set_title(ALICE, "t1", "Holiday plans")

    assert await search.search(ALICE, "budget") == []
    [hit] = await search.search(ALICE, "holiday")
    assert (hit.thread_id, hit.message_id, hit.type) == ("t1", None, "title")


async def test_a_message_that_changed_is_found_by_what_it_says_now(database: Database) -> None:
    await _say(database, AIMessage("first draft", id="m1"))
    await _say(database, AIMessage("second version", id="m1"))

    assert await MessageSearch(database).search(ALICE, "draft") == []
    assert len(await MessageSearch(database).search(ALICE, "version")) == 1


async def test_tool_results_errors_and_hidden_messages_are_not_found(database: Database) -> None:
    hidden = HumanMessage("needle", id="m2", additional_kwargs={"hide_from_ui": True})
    failed = AIMessage("needle", id="m4", additional_kwargs={"error": {"kind": "auth", "message": "needle"}})
    await _say(database, ToolMessage("needle", tool_call_id="c", id="m1"), hidden, HumanMessage("", id="m3"), failed)

    assert await MessageSearch(database).search(ALICE, "needle") == []


async def test_the_newest_come_first_in_pages(database: Database) -> None:
    for number in range(5):
        await _say(database, HumanMessage(f"apple {number}", id=f"m{number}"))

    search = MessageSearch(database)
    assert [hit.message_id for hit in await search.search(ALICE, "apple", limit=2)] == ["m4", "m3"]
    assert [hit.message_id for hit in await search.search(ALICE, "apple", limit=2, offset=4)] == ["m0"]


async def test_a_deleted_thread_is_not_found(database: Database) -> None:
    await _say(database, HumanMessage("apple", id="m1"))
    await _say(database, HumanMessage("apple", id="m1"), thread="t2")

    assert await database.write(lambda connection: begin_deletion(connection, "alice", "t1"))

    assert {hit.thread_id for hit in await MessageSearch(database).search(ALICE, "apple")} == {"t2"}
