"""Exports of ChatGPT, Claude and Open WebUI become threads that can be found."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.moved_in import Import, hits, look, threads_of

from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.storage.provenance import has_rows
from deerflow_app.moving_in import json_objects
from deerflow_app.moving_in.json_objects import objects
from deerflow_app.moving_in.threads import without

EPOCH = 1_750_000_000


def chatgpt(key: str = "g1", title: Any = "Bees \U0001f41d", **more: Any) -> dict[str, Any]:
    """Two answers to one question, of which the second is the current one, a call of a tool and a hidden note."""

    def node(name: str, parent: str | None, role: str, *parts: Any, **message: Any) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [*parts]}
        said = {"author": {"role": role}, "content": content, "create_time": EPOCH + int(name), "recipient": "all"}
        return {"id": name, "parent": parent, "children": [], "message": said | message}

    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    nodes = [
        {"id": "0", "parent": None, "message": None, "children": ["1"]},
        node("1", "0", "system", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        node("2", "1", "user", picture, 'Do bees dance? \\ "{['),
        node("3", "2", "assistant", "No."),
        node("4", "2", "assistant", "search('bees')", recipient="browser"),
        node("5", "4", "tool", "results"),
        node("6", "5", "assistant", "They waggle.\ue200cite\ue202turn0search1\ue201"),
    ]
    mapping = {each["id"]: each for each in nodes}
    times = {"create_time": EPOCH + 0.5, "update_time": EPOCH + 9}
    return {"title": title, **times, "mapping": mapping, "current_node": "6", "conversation_id": key, **more}


def claude(key: str = "c1") -> dict[str, Any]:
    human = {"uuid": "m1", "sender": "human", "text": "", "content": [{"type": "text", "text": "养蜂 how?"}]}
    human |= {"attachments": [{"file_name": "hive.txt", "extracted_content": "A Langstroth hive."}]}
    answer = {"uuid": "m2", "sender": "assistant", "text": "With smoke.", "created_at": "2026-01-02T03:04:06Z"}
    times = {"created_at": "2026-01-02T03:04:05.678901Z", "updated_at": "2026-01-03T00:00:00Z"}
    return {"uuid": key, "name": "Keeping", **times, "chat_messages": [human, answer]}


def open_webui(key: str = "w1") -> dict[str, Any]:
    messages = {
        "a": {"id": "a", "parentId": None, "role": "user", "content": "Wax?", "timestamp": EPOCH},
        "b": {"id": "b", "parentId": "a", "role": "assistant", "content": "Old answer", "timestamp": EPOCH},
        "c": {
            "id": "c",
            "parentId": "a",
            "role": "assistant",
            "content": '<details type="reasoning" done="true">\n<summary>Thought</summary>hm</details>\nFrom glands.',
        },
    }
    history = {"messages": messages, "currentId": "c"}
    return {"id": key, "title": "Wax", "archived": True, "chat": {"history": history}, "created_at": EPOCH}


def write(path: Path, *items: Any) -> str:
    path.write_text(json.dumps(list(items), ensure_ascii=False))
    return str(path)


def test_each_export_becomes_threads_once(take: Import, tmp_path: Path, clean_environment: Path) -> None:
    files = [write(tmp_path / f"{n}.json", item) for n, item in enumerate((chatgpt(), claude(), open_webui()))]
    assert take("chats", files[0], "--dry-run")["threads"] == (1, 0, 0)
    assert [*clean_environment.rglob("*")] == []
    for expected in ((1, 0, 0), (0, 1, 0)):
        assert [take("chats", file)["threads"] for file in files] == [expected] * 3
    found = threads_of()
    texts = {title: [(each.type, each.text) for each in messages] for title, (_, messages) in found.items()}
    assert texts == {
        "Bees \U0001f41d": [("human", '[image]\n\nDo bees dance? \\ "{['), ("ai", "They waggle.")],
        "Keeping": [("human", "养蜂 how?\n\n[hive.txt]\nA Langstroth hive."), ("ai", "With smoke.")],
        "Wax": [("human", "Wax?"), ("ai", "From glands.")],
    }
    bees, keeping, wax = (found[title][0] for title in ("Bees \U0001f41d", "Keeping", "Wax"))
    assert [each.metadata["imported_from"] for each in (bees, keeping, wax)] == ["chatgpt", "claude", "open-webui"]
    assert bees.created_at == datetime.fromtimestamp(EPOCH + 0.5, UTC)
    assert keeping.updated_at == datetime(2026, 1, 3, tzinfo=UTC) and wax.metadata["archived"] is True
    assert hits("waggle") == {"Bees \U0001f41d"} and hits("养蜂") == {"Keeping"} and hits("glands") == {"Wax"}
    assert hits("Old answer") == set()


def test_what_is_imported_counts_as_text_from_outside(take: Import, tmp_path: Path) -> None:
    take("chats", write(tmp_path / "c.json", claude()))
    ((thread, _),) = threads_of().values()
    assert look(lambda runtime: runtime.database.read(has_rows, thread.thread_id))


def test_broken_chats_are_named_and_the_others_come(take: Import, tmp_path: Path) -> None:
    circle = chatgpt("circle", "Circle")
    circle["mapping"]["2"]["parent"] = "6"
    broken = [
        chatgpt("x1", "No nodes", mapping=None),
        {**claude("x2"), "chat_messages": [{"text": "who?"}]},
        {"mapping": {"n": 7}, "title": "Number"},
        chatgpt("x3", "Silent", mapping={}, current_node=None),
        {"title": "Alien"},
    ]
    file = tmp_path / "conversations.json"
    text = json.dumps([*broken, circle, chatgpt("g2", None, current_node="gone")])
    file.write_text(text.replace('{"title": "Alien"}', '{"title": Alien}'))
    report = take("chats", str(file))
    assert report["threads"] == (2, 0, 5)
    named = "\n".join(report["notes"])
    for name in ("No nodes", "Keeping", "Number", "Silent", "number 5"):
        assert f"threads {name}: " in named
    assert threads_of().keys() == {"Circle", '[image] Do bees dance? \\ "{['}


def test_an_archive_is_read_piece_by_piece(take: Import, tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("user.json", json.dumps({"email": "a@b.example"}))
        made.writestr("data/conversations-000.json", json.dumps([chatgpt("g1"), chatgpt("g2")]))
        made.writestr("data/conversations-001.json", json.dumps([chatgpt("g3")]))
    assert take("chats", str(archive))["threads"] == (3, 0, 0)
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps([chatgpt("g1"), chatgpt("g4"), chatgpt("g5")])[:-300])
    report = take("chats", str(cut))
    assert report["threads"] == (1, 1, 1) and "the file is damaged" in report["notes"][0]
    assert take("chats", str(cut))["threads"] == (0, 2, 1)


@pytest.mark.parametrize("text", ["", "[]", "7", '[{"a": 1}]', "<html>", '[{"title": "a"'])
def test_what_is_no_export_is_refused_with_what_to_give(take: Import, tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    report = take("chats", str(file), fails=True)
    assert "error" not in report or "conversations.json that ChatGPT or Claude export" in report["error"]


class _Endless(io.RawIOBase):
    """A list that never ends."""

    pieces = 0

    def read(self, size: int = -1) -> bytes:
        self.pieces += 1
        return (b"[" if self.pieces == 1 else b",") + json.dumps(chatgpt(str(self.pieces))).encode()


def test_no_more_is_read_than_the_next_chat_takes() -> None:
    file = _Endless()
    found = objects(file)  # type: ignore[arg-type]
    for number in range(1, 50):
        assert json.loads(next(found) or b"")["conversation_id"] == str(number)
        assert file.pieces == number


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
def test_objects_are_found_wherever_pieces_end(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(json_objects, "CHUNK", size)
    dice = random.Random(size)
    texts = ["", "\\", '"', '\\"', "{[}]", "\n\u00e9\U0001f41d", "x" * 40]
    items = [{dice.choice(texts): [dice.choice(texts), {"k": [dice.choice(texts)]}]} for _ in range(40)]
    file = json.dumps([1, "a]", *items, None]).encode()
    assert [json.loads(each or b"") for each in objects(io.BytesIO(file))] == items
    assert [json.loads(each or b"") for each in objects(io.BytesIO(json.dumps(items[0]).encode()))] == items[:1]
    too_long = [{"a": 1}, {"b": "x" * 90}, {"c": 2}]
    found = [*objects(io.BytesIO(json.dumps(too_long).encode()), limit=50)]
    assert [each and json.loads(each) for each in found] == [{"a": 1}, None, {"c": 2}]


def test_parts_are_taken_out_in_linear_time() -> None:
    opening = re.compile("<a")
    assert without("x<a 1>b</a>y<a", opening, "</a>") == "xy<a"
    assert without("<a" * 500_000, opening, "</a>") == "<a" * 500_000


def test_chats_become_those_of_the_person_who_is_named(take: Import, tmp_path: Path) -> None:
    from deerflow.accounts import UserRepository
    from deerflow.identity import Principal

    file = write(tmp_path / "c.json", claude())
    ann = look(lambda runtime: UserRepository(runtime.database).create("ann@example.org", "hash"))
    assert take("chats", file, "--user", "ann@example.org")["threads"] == (1, 0, 0)
    assert take("chats", file)["threads"] == (1, 0, 0)
    assert hits("smoke", Principal(ann.id)) == {"Keeping"} == hits("smoke", LOCAL_PRINCIPAL)
    assert "There is no account" in take("chats", file, "--user", "bob@example.org", fails=True)["error"]
