"""What every place where memory is kept promises: the database, files, and a storage of one's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from deerflow.agents.memory import FileMemoryStorage, MemoryStorage, create_empty_memory
from deerflow.config import Paths
from deerflow.config.schema import MemoryConfig
from deerflow.errors import NotFoundError
from deerflow.features.memory.facts import Changes, Recalled, Wish, apply, change, confirm, made, recall, search, undo
from deerflow.features.memory.rows import Fact, Owner
from deerflow.features.memory.store import (
    MAX_UNCONFIRMED,
    DatabaseMemory,
    DocumentMemory,
    MemoryStore,
    document_of,
    fill,
    memory_store,
)
from deerflow.features.memory.summaries import missing
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now

ALICE, BOB, CODER = Owner("alice"), Owner("bob"), Owner("alice", "coder")


class OwnStorage(MemoryStorage):
    """As users write them: it knows nothing of ours."""

    def __init__(self) -> None:
        self._kept: dict[Any, str] = {}

    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        kept = self._kept.get((agent_name, user_id))
        return json.loads(kept) if kept else create_empty_memory()

    reload = load

    def save(self, memory_data: dict[str, Any], agent_name: str | None = None, *, user_id: str | None = None) -> bool:
        self._kept[agent_name, user_id] = json.dumps(memory_data)
        return True


@pytest.fixture(params=["database", "files", "own"])
async def store(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> AsyncIterator[MemoryStore]:
    files = FileMemoryStorage(Paths(tmp_path))
    kinds = {
        "database": lambda: DatabaseMemory(database, files),
        "files": lambda: DocumentMemory(files, database),
        "own": lambda: DocumentMemory(OwnStorage(), database),
    }
    yield kinds[request.param]()


def fact(content: str, category: str = "knowledge", confidence: float = 0.9, **more: Any) -> Fact:
    return made(content, category, confidence, "t1", **more)


async def learn(store: MemoryStore, *facts: Fact, owner: Owner = ALICE, most: int = 100, **more: Any) -> list[Fact]:
    return await store.write(owner, lambda owned: apply(owned, Changes(facts=facts, **more), most))


async def known(store: MemoryStore, owner: Owner = ALICE) -> list[str]:
    return sorted(fact.content for fact in await store.read(owner, lambda owned: owned.live()))


async def recalled(store: MemoryStore, text: str, earlier: Recalled | None = None, most: int = 2000) -> str:
    found = await store.read(ALICE, lambda owned: recall(owned, text, earlier, most))
    return found["text"] if found else ""


async def test_two_people_and_two_agents_never_see_each_others_facts(store: MemoryStore):
    await learn(store, fact("Alice lives in Bremen."))
    await learn(store, fact("Bob lives in Bremen."), owner=BOB)
    await learn(store, fact("The coder prefers tabs."), owner=CODER)
    for owner, content in (ALICE, "Alice lives"), (BOB, "Bob lives"), (CODER, "The coder"):
        (only,) = await known(store, owner)
        assert only.startswith(content)
        assert all(
            each.content == only
            for each in await store.read(owner, lambda owned: search(owned, "Bremen lives tabs", 9))
        )


async def test_a_job_that_raises_changes_nothing(store: MemoryStore):
    await learn(store, fact("Stays."))

    def broken(owned: Any) -> None:
        owned.put(fact("Goes."))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.write(ALICE, broken)
    assert await known(store) == ["Stays."]


async def test_what_is_known_is_not_kept_twice(store: MemoryStore):
    await learn(store, fact("The user prefers dark mode."))
    assert await learn(store, fact("the user prefers  DARK mode")) == []
    (added,) = await learn(store, fact("The user strongly prefers dark mode."))
    assert await known(store) == [added.content]


async def test_a_correction_takes_the_place_of_what_it_corrects_and_can_be_taken_back(store: MemoryStore):
    wrong = fact("The project uses npm.")
    await learn(store, wrong)
    right = fact("Dependencies come with pnpm.", "correction", source_error="npm")
    await learn(store, right, supersedes={right.id: [wrong.id]})
    assert await known(store) == [right.content]
    await store.write(ALICE, lambda owned: undo(owned, right.id))
    assert await known(store) == [wrong.content]
    await store.write(ALICE, lambda owned: undo(owned, right.id))
    assert await known(store) == [right.content, wrong.content]


async def test_what_is_not_confirmed_replaces_nothing_and_is_neither_recalled_nor_found(store: MemoryStore):
    bank = fact("The user banks with Sparkasse.")
    await learn(store, bank)
    lie = fact("The user banks with Sparkasse online.", "correction", untrusted="web_fetch")
    assert await learn(store, lie, supersedes={lie.id: [bank.id]}) == [lie]
    assert await learn(store, fact("the user banks with sparkasse ONLINE", untrusted="bash")) == []
    assert await known(store) == [bank.content]
    assert "online" not in await recalled(store, lie.content)
    assert await store.read(ALICE, lambda owned: search(owned, "Sparkasse online", 9)) == [bank]
    assert await store.read(ALICE, lambda owned: owned.unconfirmed()) == [lie]
    assert [each.content for each in await store.read(ALICE, lambda owned: owned.of_source("t1"))] != [bank.content]


async def test_a_confirmed_fact_is_the_persons_own_and_takes_the_place_of_what_it_repeats(store: MemoryStore):
    await learn(store, fact("The user banks with Sparkasse."))
    doubted = fact("The user banks with Sparkasse online.", untrusted="web_fetch")
    await learn(store, doubted)
    await store.write(ALICE, lambda owned: confirm(owned, doubted.id, 100))
    assert await known(store) == [doubted.content]
    assert "online" in await recalled(store, "Which bank?")
    assert await store.read(ALICE, lambda owned: owned.unconfirmed()) == []
    with pytest.raises(NotFoundError):
        await store.write(BOB, lambda owned: confirm(owned, doubted.id, 100))


async def test_many_unconfirmed_facts_push_out_none_that_is_confirmed(store: MemoryStore):
    await learn(store, fact("Heron runs Debian.", confidence=0.5))
    flood = [fact(f"Heron runs system{n}.", confidence=1, untrusted="web_fetch") for n in range(MAX_UNCONFIRMED + 9)]
    await learn(store, *flood, most=10)
    assert await known(store) == ["Heron runs Debian."]
    assert len(await store.read(ALICE, lambda owned: owned.unconfirmed())) == MAX_UNCONFIRMED
    assert await store.read(ALICE, lambda owned: [each.content for each in owned.find(["heron"], 1)]) == [
        "Heron runs Debian."
    ]


async def test_in_a_thread_with_text_from_outside_only_facts_that_the_sentence_is_about_are_corrected_or_forgotten(
    store: MemoryStore,
):
    heron, bank, colour = fact("Heron runs on PG 14."), fact("Pays with DE12."), fact("The favorite color is teal.")
    waiting = fact("The user's favourite colour is red.", untrusted="uploads")
    await learn(store, heron, bank, colour, waiting)
    new = fact("We upgraded Heron to PG 16.")
    wish = Wish("Forget my favourite colour.", [colour.id, bank.id])
    named = {new.id: [heron.id, bank.id]}
    await learn(store, new, supersedes=named, wishes=[wish], foreign=True)
    assert await known(store) == [bank.content, new.content]
    assert await store.read(ALICE, lambda owned: owned.unconfirmed()) == []


async def test_a_summary_goes_when_a_fact_in_it_changes_and_the_others_stay(store: MemoryStore):
    heron, tea = fact("Heron runs on PG 14."), fact("Drinks tea.")
    told = {"user": {"workContext": "Keeps Heron on PG 14.", "personalContext": "Has a cat."}}
    await learn(store, heron, tea, sections=told)
    ended: tuple[Any, ...] = (
        lambda owned: change(owned, heron.id, content="Heron runs on PG 16."),
        lambda owned: change(owned, heron.id, ended_at=utc_now()),
        lambda owned: undo(owned, heron.id) and undo(owned, heron.id),
        lambda owned: apply(owned, Changes(wishes=[Wish("Forget Heron.", [heron.id])]), 100),
    )
    for job in ended:
        await store.write(ALICE, lambda owned: owned.put(heron))
        await store.write(ALICE, lambda owned: apply(owned, Changes(told), 100))
        await store.write(ALICE, job)
        sections, _ = await store.read(ALICE, lambda owned: owned.sections())
        assert missing(sections) == ["workContext"] and sections["user"]["personalContext"]["summary"] == "Has a cat."
        assert "Keeps Heron" not in await recalled(store, "nothing")


async def test_a_document_of_before_has_digits_and_addresses_from_threads_confirmed_once(store: MemoryStore):
    contents = {"t1": ["Pays to DE12.", "Mail goes to evil.example.", "Likes tea."], "manual": ["Size 44."]}
    facts = [{"content": each, "source": source} for source, some in contents.items() for each in some]
    await store.write(ALICE, lambda owned: fill(owned, {"version": "1.0", "facts": facts}))
    assert await known(store) == ["Likes tea.", "Size 44."]
    one, two = await store.read(ALICE, lambda owned: owned.unconfirmed())
    await store.write(ALICE, lambda owned: confirm(owned, one.id, 100))
    assert len(await known(store)) == 3 and (await store.read(ALICE, lambda owned: owned.unconfirmed())) == [two]


async def test_an_import_keeps_the_surest_facts_up_to_the_limit(store: MemoryStore):
    facts = [{"content": f"Fact {n}.", "confidence": n / 30} for n in range(30)]
    await store.write(ALICE, lambda owned: fill(owned, {"facts": facts}, 10))
    assert await known(store) == sorted(f"Fact {n}." for n in range(20, 30))


async def test_facts_end_at_their_time_and_can_be_forgotten_and_restored(store: MemoryStore):
    over, kept = fact("On holiday.", expires_at=utc_now() - timedelta(days=1)), fact("Works in Kiel.")
    await learn(store, over, kept)
    assert await known(store) == [kept.content]
    await store.write(ALICE, lambda owned: change(owned, kept.id, ended_at=utc_now()))
    assert await known(store) == [] and await recalled(store, "Kiel") == ""
    await store.write(ALICE, lambda owned: undo(owned, kept.id))
    assert await known(store) == [kept.content]
    with pytest.raises(NotFoundError):
        await store.write(ALICE, lambda owned: change(owned, "fact_none", content="x"))


async def test_beyond_the_limit_the_least_sure_go(store: MemoryStore):
    await learn(store, *(fact(f"Number {n} matters to project p{n}.", confidence=n / 100) for n in range(20)), most=10)
    assert len(await known(store)) == 10
    assert not any("Number 9 " in content for content in await known(store))


async def test_corrections_are_told_first_then_what_fits_the_message(store: MemoryStore):
    cat = fact("The cat is called Minka.", confidence=0.7)
    await learn(
        store, cat, fact("The server runs Debian.", confidence=0.7), fact("Answer in German.", "correction", 0.95)
    )
    lines = (await recalled(store, "What does my cat eat?")).splitlines()
    assert "German" in lines[1] and "Minka" in lines[2] and "Debian" in lines[3]


async def test_what_was_told_in_the_thread_is_not_told_again(store: MemoryStore):
    cat = fact("The cat is called Minka.")
    await learn(store, cat, *(fact(f"Server s{n} runs Debian.") for n in range(9)))
    assert "Minka" in await recalled(store, "My cat?", Recalled())
    assert await recalled(store, "My cat?", Recalled([cat.id], 10)) == ""
    assert await recalled(store, "My cat?", Recalled((), 2000)) == ""


async def test_a_fact_that_does_not_fit_holds_back_no_others(store: MemoryStore):
    await learn(store, fact("Long: " + "word " * 150, "correction"), fact("Short."))
    assert await recalled(store, "anything", most=100) == "Facts:\n- [knowledge | 0.90] Short."


async def test_what_was_exported_can_be_imported(store: MemoryStore):
    await learn(
        store, fact("Minka is a cat.", "correction", source_error="dog"), sections={"user": {"workContext": "Vet."}}
    )
    document = await store.read(ALICE, lambda owned: document_of(*owned.sections(), owned.live()))
    await store.write(BOB, lambda owned: fill(owned, document))
    again = await store.read(BOB, lambda owned: document_of(*owned.sections(), owned.live()))
    assert again["facts"] == document["facts"] and again["user"] == document["user"]
    assert again["user"]["workContext"]["summary"] == "Vet." and again["facts"][0]["sourceError"] == "dog"


@pytest.mark.parametrize("odd", [{}, {"facts": 3}, {"facts": [None, {"content": " "}, {"content": 1}]}, {"user": []}])
async def test_a_document_that_makes_no_sense_is_an_empty_memory(store: MemoryStore, odd: dict[str, Any]):
    await store.write(ALICE, lambda owned: fill(owned, odd))
    assert await known(store) == []


async def test_words_of_languages_without_spaces_are_found(store: MemoryStore):
    await learn(store, fact("用户喜欢简洁的回答"), fact("用户住在北京"))
    (best, *_) = await store.read(ALICE, lambda owned: search(owned, "北京", 5))
    assert best.content == "用户住在北京"


# choice and migration ---------------------------------------------------------------------------------------------------


async def test_files_of_earlier_installations_are_taken_over_once(database: Database, tmp_path: Path):
    file = tmp_path / "users/alice/memory.json"
    file.parent.mkdir(parents=True)
    document = {
        "facts": [{"id": "fact_1", "content": "From a file.", "confidence": 2}],
        "user": {"workContext": {"summary": "Vet."}},
    }
    file.write_text(json.dumps(document))
    stores = [memory_store(MemoryConfig(), database, Paths(tmp_path)) for _ in range(2)]
    assert await asyncio.gather(*(known(store) for store in stores)) == [["From a file."]] * 2
    await stores[0].write(ALICE, lambda owned: fill(owned, {}))
    assert await known(memory_store(MemoryConfig(), database, Paths(tmp_path))) == []
    assert file.exists()


async def test_a_shared_file_and_a_class_are_honoured(database: Database, tmp_path: Path):
    shared = MemoryConfig(storage_path=str(tmp_path / "all.json"))
    await learn(memory_store(shared, database, Paths(tmp_path)), fact("For all."))
    assert await known(memory_store(shared, database, Paths(tmp_path)), BOB) == ["For all."]
    files = MemoryConfig(storage_class="deerflow.agents.memory.FileMemoryStorage")
    await learn(memory_store(files, database, Paths(tmp_path)), fact("Mine."))
    assert "Mine." in (tmp_path / "users/alice/memory.json").read_text()
    own = MemoryConfig(storage_class=f"{__name__}:OwnStorage")
    assert isinstance(memory_store(own, database, Paths(tmp_path)), DocumentMemory)
    broken = MemoryConfig(storage_class="no.such.Storage")
    assert isinstance(memory_store(broken, database, Paths(tmp_path)), DatabaseMemory)
