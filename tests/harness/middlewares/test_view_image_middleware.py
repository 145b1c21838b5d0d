from __future__ import annotations

import asyncio
import base64
import io
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import HttpError, Text, ToolCalls
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from PIL import Image

from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.uploads_middleware import UploadsMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware
from deerflow.agents.transcript import Transcript
from deerflow.agents.turn import human_message
from deerflow.config import AppConfig, ModelConfig
from deerflow.context import RunContext
from deerflow.context.workspace import Workspace
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.converters.pictures import MAX_SENT_BYTES, MAX_SIDE
from deerflow.tools.images import MAX_BYTES, view_image_tool
from deerflow.uploads import list_uploads


@pytest.fixture
def context(context: RunContext, converters: Converters) -> RunContext:
    return replace(context, machine=replace(context.machine, converters=converters))


@tool
def note() -> str:
    """Note."""
    return "noted"


def picture(path: Path, color: str = "red", size: tuple[int, int] = (4, 4), form: str | None = None) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(
        buffer, form or {".jpg": "JPEG", ".jpeg": "JPEG"}.get(path.suffix, path.suffix[1:].upper())
    )
    path.write_bytes(buffer.getvalue())
    return buffer.getvalue()


def opened(start, **settings: Any):
    return start(DanglingToolCallMiddleware(), ViewImageMiddleware(**settings), tools=[view_image_tool, note])


def view(*paths: str) -> ToolCalls:
    return ToolCalls(*(("view_image", {"image_path": path}) for path in paths))


def images(request: list[dict[str, Any]]) -> list[bytes]:
    blocks = [b for m in request if isinstance(m["content"], list) for b in m["content"] if b["type"] == "image_url"]
    return [base64.b64decode(block["image_url"]["url"].partition(",")[2]) for block in blocks]


@pytest.mark.parametrize(
    ("name", "mime"),
    [("a.png", "image/png"), ("a.jpg", "image/jpeg"), ("a.JPEG", "image/jpeg"), ("a.webp", "image/webp")],
)
@pytest.mark.parametrize("root", ["workspace", "uploads", "outputs"])
async def test_an_image_is_shown_behind_the_results_of_its_step(
    start, endpoint, workspace: Workspace, name, mime, root
) -> None:
    data = picture(getattr(workspace, root) / name, form=mime.partition("/")[2].upper())
    endpoint.script(view(f"/mnt/user-data/{root}/{name}"), Text("a red square"))
    talk = opened(start)
    messages = await talk.say("look")
    assert str(messages[2].content).startswith("Successfully read image: 4 x 4 pixels, ")
    shown = talk.request()[-1]
    assert (shown["role"], shown["name"]) == ("user", "viewed_images")
    assert "Here are the images you've viewed" in shown["content"][0]["text"]
    assert f"/mnt/user-data/{root}/{name} ({mime})" in shown["content"][1]["text"]
    assert shown["content"][2]["image_url"]["url"].startswith(f"data:{mime};base64,")
    assert images(talk.request()) == [data]
    assert (await talk.state())["viewed_images"] == {f"/mnt/user-data/{root}/{name}": {"mime_type": mime}}


async def test_the_thread_holds_no_bytes(start, endpoint, workspace) -> None:
    """W-33"""
    data = picture(workspace.workspace / "a.png")
    endpoint.script(view("/mnt/user-data/workspace/a.png"), Text("ok"))
    talk = opened(start)
    await talk.say("look")
    assert base64.b64encode(data)[:40].decode() not in str(await talk.state())
    assert [m.type for m in await talk.messages()] == ["human", "ai", "tool", "ai"]


async def test_images_of_one_step_stand_in_one_message_behind_all_its_results(start, endpoint, workspace) -> None:
    first, second = picture(workspace.workspace / "a.png"), picture(workspace.workspace / "b.png", "blue")
    calls = view("/mnt/user-data/workspace/a.png", "/mnt/user-data/workspace/b.png").calls
    endpoint.script(ToolCalls(calls[0], ("note", {}), calls[1]), Text("ok"))
    talk = opened(start)
    await talk.say("look")
    assert [m["role"] for m in talk.request()] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert images(talk.request()) == [first, second]


async def test_a_file_that_was_overwritten_or_removed_stays_as_it_was_seen(start, endpoint, workspace) -> None:
    path = workspace.workspace / "a.png"
    before = picture(path, "red")
    endpoint.script(
        view("/mnt/user-data/workspace/a.png"),
        Text("ok"),
        view("/mnt/user-data/workspace/a.png"),
        Text("ok"),
        Text("ok"),
    )
    talk = opened(start)
    await talk.say("look")
    after = picture(path, "blue")
    await talk.say("look again")
    assert images(talk.request()) == [before, after]
    path.unlink()
    earlier = talk.request()
    await talk.say("and now?")
    assert talk.request()[: len(earlier)] == earlier, "the prompt's beginning keeps its bytes"


async def test_a_lost_copy_is_told(start, endpoint, workspace) -> None:
    picture(workspace.workspace / "a.png")
    endpoint.script(view("/mnt/user-data/workspace/a.png"), Text("ok"), Text("ok"))
    talk = opened(start)
    await talk.say("look")
    for copy in (workspace.workspace / ".viewed-images").iterdir():
        copy.unlink()
    await talk.say("more")
    assert images(talk.request()) == []
    assert "no longer available" in str(talk.request())


async def test_the_same_image_is_stored_once(start, endpoint, workspace) -> None:
    picture(workspace.workspace / "a.png")
    endpoint.script(view("/mnt/user-data/workspace/a.png", "/mnt/user-data/workspace/a.png"), Text("ok"))
    await opened(start).say("look")
    assert len(list((workspace.workspace / ".viewed-images").iterdir())) == 1


async def refused(start, endpoint, path: str) -> str:
    endpoint.script(view(path), Text("ok"))
    talk = opened(start)
    result = (await talk.say("look"))[2]
    assert result.status == "error"
    assert result.content.startswith("Error: ")
    assert images(talk.request()) == []
    assert "viewed_images" not in await talk.state() or not (await talk.state())["viewed_images"]
    return result.content


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd.png", "can be viewed"),
        ("/mnt/user-data/workspace/../../../etc/x.png", "can be viewed"),
        ("/mnt/user-data/workspace-evil/a.png", "can be viewed"),
        ("/mnt/user-data/workspace", "can be viewed"),
        ("../../a.png", "can be viewed"),
        ("/mnt/user-data/workspace/a.gif", "not found"),
        ("/mnt/user-data/workspace/none.png", "not found"),
        ("/mnt/user-data/workspace/directory.png", "not a file"),
        ("/mnt/user-data/workspace/text.png", "is no picture"),
        ("/mnt/user-data/workspace/report.pdf", "report.pdf#page=1"),
        ("/mnt/user-data/workspace/damaged.png", "cannot be shown"),
        ("/mnt/user-data/workspace/large.png", "too large"),
    ],
)
async def test_what_is_no_image_of_the_thread_is_refused_with_the_reason(
    start, endpoint, workspace, path, reason
) -> None:
    (workspace.workspace / "directory.png").mkdir()
    (workspace.workspace / "text.png").write_text("hello")
    (workspace.workspace / "report.pdf").write_bytes(b"%PDF-1.7")
    (workspace.workspace / "damaged.png").write_bytes(picture(workspace.workspace / "good.png")[:30])
    with (workspace.workspace / "large.png").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    content = await refused(start, endpoint, path)
    assert reason in content
    assert str(workspace.root) not in content


async def test_a_picture_is_what_it_holds_whatever_its_name(start, endpoint, workspace) -> None:
    data = picture(workspace.workspace / "jpeg.txt", form="JPEG")
    endpoint.script(view("/mnt/user-data/workspace/jpeg.txt"), Text("ok"))
    talk = opened(start)
    await talk.say("look")
    assert images(talk.request()) == [data]


async def test_a_picture_is_sent_once(start, endpoint, workspace) -> None:
    data = picture(workspace.workspace / "a.png")
    (workspace.workspace / "b.png").write_bytes(data)
    path = "/mnt/user-data/workspace/a.png"
    endpoint.script(view(path), view(path, "/mnt/user-data/workspace/b.png"), Text("ok"))
    talk = opened(start)
    await talk.say("look")
    assert images(talk.request()) == [data] and str(talk.request()).count("the same picture as shown above") == 2


async def upload(workspace: Workspace, text: str, *names: str) -> HumanMessage:
    def make() -> HumanMessage:
        files = [each for each in list_uploads(workspace.uploads) if each.filename in names]
        return human_message(text, now=datetime.now(UTC), files=files, uploads_dir=workspace.uploads)

    return await asyncio.to_thread(make)


async def test_uploaded_pictures_are_shown_at_once_as_they_were_sent(start, endpoint, workspace) -> None:
    first, second = picture(workspace.uploads / "a.png"), picture(workspace.uploads / "b.JPG", "blue", form="JPEG")
    (workspace.uploads / "list.csv").write_text("a,b")
    (workspace.uploads / "broken.png").write_bytes(first[:40])
    endpoint.script(Text("red"), view("/mnt/user-data/uploads/a.png"), Text("red"), Text("red"))
    talk = start(UploadsMiddleware(), ViewImageMiddleware(), tools=[view_image_tool])
    await talk.say(await upload(workspace, "what is it?", "a.png", "b.JPG", "list.csv", "broken.png"))
    before = talk.request()
    assert [m["role"] for m in before] == ["user", "user"] and images(before) == [first, second]
    said = str(before[1]["content"])
    assert "came with the message above" in said and "uploads/b.JPG" in said and "list.csv" not in said
    assert "the picture cannot be decoded" in said
    picture(workspace.uploads / "a.png", "green")
    await talk.say("again")
    assert talk.request()[:2] == before, "the prompt's beginning keeps its bytes"
    await talk.say("and now?")
    assert len(images(talk.request())) == 3


async def test_an_upload_that_changed_before_it_was_seen_says_so(start, endpoint, workspace) -> None:
    picture(workspace.uploads / "a.png")
    message = await upload(workspace, "what is it?", "a.png")
    picture(workspace.uploads / "a.png", "green")
    endpoint.script(Text("?"))
    talk = start(UploadsMiddleware(), ViewImageMiddleware(), tools=[view_image_tool])
    await talk.say(message)
    assert not images(talk.request()) and "has changed since it was sent" in str(talk.request())


async def test_a_link_that_leads_out_is_refused(start, endpoint, workspace, tmp_path) -> None:
    picture(tmp_path / "secret.png")
    (workspace.workspace / "link.png").symlink_to(tmp_path / "secret.png")
    assert str(tmp_path) not in await refused(start, endpoint, "/mnt/user-data/workspace/link.png")


async def test_a_large_image_is_made_small_enough_for_every_provider(start, endpoint, workspace) -> None:
    Image.frombytes("RGB", (2600, 1300), os.urandom(2600 * 1300 * 3)).save(workspace.workspace / "big.png")
    endpoint.script(view("/mnt/user-data/workspace/big.png"), Text("ok"))
    talk = opened(start)
    said = str((await talk.say("look"))[2].content)
    (data,) = images(talk.request())
    assert len(data) <= MAX_SENT_BYTES == 400_000
    with Image.open(io.BytesIO(data)) as shown:
        assert max(shown.size) <= MAX_SIDE
        assert f"2600 x 1300 pixels, {(workspace.workspace / 'big.png').stat().st_size / 1000:.0f} kB" in said
        assert f"shown to you as JPEG, {shown.width} x {shown.height} pixels" in said


async def test_without_a_sandbox_the_tool_says_so(start, endpoint) -> None:
    endpoint.script(view("/mnt/user-data/workspace/a.png"), Text("ok"))
    talk = start(ViewImageMiddleware(), tools=[view_image_tool], context=RunContext(thread_id="t"))
    assert "without a sandbox" in (await talk.say("look"))[2].content


def viewed(n: int) -> list[Any]:
    image = {"path": f"/p/{n}.png", "mime_type": "image/png", "stored": f"/s/{n}.png"}
    call = {"name": "view_image", "args": {}, "id": str(n)}
    return [
        AIMessage("", tool_calls=[call]),
        ToolMessage("ok", tool_call_id=str(n), additional_kwargs={"image": image}),
    ]


def sent(messages: tuple[Any, ...]) -> list[int]:
    blocks = [
        b
        for m in messages
        if m.type == "human" and isinstance(m.content, list)
        for b in m.content
        if b["type"] == "image_url"
    ]
    return [int(block["image_url"]["url"].rpartition("/")[2].removesuffix(".png")) for block in blocks]


def test_too_many_images_lose_their_older_half_at_once_so_that_the_beginning_seldom_changes() -> None:
    middleware = ViewImageMiddleware(max_images=4)
    history: list[Any] = [HumanMessage("go")]
    kept, changes, before = [], 0, ()
    for n in range(12):
        history += viewed(n)
        messages = middleware.compile(Transcript(tuple(history)), None).messages
        kept.append(sent(messages))
        changes += [m.model_dump() for m in messages[: len(before)]] != [m.model_dump() for m in before]
        before = messages
    assert kept[3] == [0, 1, 2, 3]
    assert kept[4] == [2, 3, 4]
    assert kept[-1] == [8, 9, 10, 11]
    assert all(len(images) <= 4 and images[-1] == n for n, images in enumerate(kept))
    assert changes == 4
    assert "shown earlier" in str(before[3].content)


def test_an_image_leaves_three_to_five_turns_later_and_rarely_changes_the_beginning() -> None:
    middleware, history, kept, changes, before = ViewImageMiddleware(max_images=100), [], [], 0, ()
    for turn in range(12):
        history += [HumanMessage("go", id=str(turn)), *viewed(turn)]
        for _ in range(2):
            history.append(AIMessage("working"))
            messages = middleware.compile(Transcript((*history, HumanMessage("hurry", name="note"))), None).messages[
                :-1
            ]
            changes += [m.model_dump() for m in messages[: len(before)]] != [m.model_dump() for m in before]
            before = messages
        kept.append(sent(messages))
    assert kept[2] == [0, 1, 2] and kept[3] == [1, 2, 3] and kept[6] == [4, 5, 6]
    assert all(set(range(turn - 2, turn + 1)) - {-1, -2} <= set(images) for turn, images in enumerate(kept))
    assert all(turn - images[0] < 5 for turn, images in enumerate(kept))
    assert changes == 3


def test_a_request_without_images_is_the_same_object() -> None:
    transcript = Transcript((HumanMessage("a"), ToolMessage("b", tool_call_id="1")))
    assert ViewImageMiddleware().compile(transcript, None) is transcript


@pytest.mark.parametrize("image", [None, "x", {}, {"path": ""}])
def test_foreign_facts_in_a_result_are_ignored(image: Any) -> None:
    transcript = Transcript((ToolMessage("b", tool_call_id="1", additional_kwargs={"image": image}),))
    assert ViewImageMiddleware().compile(transcript, None) is transcript


async def test_an_old_thread_with_bytes_in_its_messages_is_shown(start, endpoint) -> None:
    message = ToolMessage("ok", tool_call_id="1", additional_kwargs={"image": {"path": "/p.png", "base64": "QUJD"}})
    compiled = ViewImageMiddleware().compile(
        Transcript((AIMessage("", tool_calls=[{"name": "v", "args": {}, "id": "1"}]), message)), None
    )
    assert compiled.messages[-1].content[2] == {"type": "image_url", "image_url": {"url": "data:unknown;base64,QUJD"}}


SIGHTED, BLIND = "scripted-model", "blind"


def seeing(context: RunContext) -> RunContext:
    """Of a run whose configuration knows a model with vision and one without."""
    common: Any = {"use": "langchain_openai:ChatOpenAI"}
    models = [ModelConfig(name=SIGHTED, model=SIGHTED, supports_vision=True, **common)]
    return replace(context, config=AppConfig(models=[*models, ModelConfig(name=BLIND, model=BLIND, **common)]))


async def test_pictures_that_other_programs_left_in_a_thread_are_prepared(start, endpoint, context) -> None:
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (3000, 20)).save(buffer, "TIFF", exif=exif)
    block = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(buffer.getvalue()).decode()}
    endpoint.script(Text("long"), Text("still"))
    talk = opened(start)
    await talk.say(
        HumanMessage([{"type": "text", "text": "what?"}, block, {"type": "image", "url": "http://10.0.0.1/"}])
    )
    (data,) = images(talk.request())
    with Image.open(io.BytesIO(data)) as shown:
        assert shown.height == MAX_SIDE > shown.width and shown.format in ("PNG", "JPEG")
    assert "was not opened" in str(talk.request()) and "10.0.0.1" not in str(talk.request())
    before = talk.request()
    await talk.say("and now?")
    assert talk.request()[: len(before)] == before


async def test_a_model_without_vision_gets_a_sentence_in_the_first_message_and_after_a_switch(
    start, endpoint, workspace, context, chat_model
) -> None:
    first = picture(workspace.uploads / "a.png")
    block = {"type": "image_url", "image_url": f"data:image/png;base64,{base64.b64encode(first).decode()}"}
    endpoint.script(Text("none"), Text("red"), Text("none"), Text("none"))
    chain = (UploadsMiddleware(), ViewImageMiddleware())
    blind = start(*chain, tools=[], context=seeing(context), model=chat_model(BLIND))
    await blind.say(await upload(workspace, "what is it?", "a.png"))
    assert not images(blind.request()) and "blind cannot see pictures" in str(blind.request())
    sighted = start(*chain, tools=[], context=seeing(context))
    await sighted.say(HumanMessage([{"type": "text", "text": "and this?"}, block]))
    assert images(sighted.request())[-1] == first
    again = start(*chain, tools=[], context=seeing(context), model=chat_model(BLIND))
    again.graph.checkpointer = sighted.graph.checkpointer
    await again.say("go on")
    await again.say("and on")
    assert not images(again.request()) and str(again.request()).count("blind cannot see pictures") == 1


async def test_what_a_provider_refused_is_not_sent_again(start, endpoint, workspace) -> None:
    first = picture(workspace.uploads / "a.png")
    endpoint.script(Text("red"), HttpError(400, "Could not process image"), Text("blue?"), Text("ok"))
    talk = start(UploadsMiddleware(), ViewImageMiddleware(), tools=[])
    await talk.say(await upload(workspace, "what is it?", "a.png"))
    picture(workspace.uploads / "b.png", "blue")
    answer = (await talk.say(await upload(workspace, "and this?", "b.png")))[-1]
    assert answer.text == "blue?" and images(talk.request()) == [first]
    assert "refused this picture" in str(talk.request()) and "Could not process image" in str(talk.request())
    before = talk.request()
    await talk.say("go on")
    assert talk.request()[: len(before)] == before and endpoint.unused == 0


async def test_other_refusals_are_not_taken_for_one_of_pictures(start, endpoint, workspace) -> None:
    picture(workspace.uploads / "a.png")
    endpoint.script(HttpError(400, "temperature must be 1"))
    talk = start(UploadsMiddleware(), ViewImageMiddleware(), tools=[])
    with pytest.raises(Exception, match="temperature"):
        await talk.say(await upload(workspace, "what is it?", "a.png"))
    assert len(endpoint.requests) == 1
