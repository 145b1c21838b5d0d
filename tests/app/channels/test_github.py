"""GitHub's webhooks, and comments as answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.contracts.channels.receiver import Receiver, StorageDown
from tests.support.channels.double import Fault, Operation
from tests.support.channels.github_double import ME, REPOSITORY, SECRET, TOKEN, GitHubDouble

from deerflow.features.channels.types import (
    Author,
    Event,
    Inbound,
    Later,
    Misconfigured,
    Part,
    Place,
    Refused,
    Signal,
    SignedOut,
    Uncertain,
    Unreachable,
)
from deerflow_app.channels.adapters.github import GitHub, signature


@pytest.fixture
async def github() -> AsyncIterator[GitHubDouble]:
    async with GitHubDouble() as double:
        yield double


@pytest.fixture
async def adapter(github: GitHubDouble) -> AsyncIterator[GitHub]:
    adapter = GitHub(SECRET, TOKEN, base_url=github.http)
    await adapter.identify()
    yield adapter
    await adapter.aclose()


async def received(adapter: GitHub, delivery: tuple[dict[str, str], bytes]) -> tuple[int, Inbound | None]:
    events: list[Event] = []

    async def accept(found: Any, cursor: str | None) -> None:
        events.extend(found)

    status, _ = await adapter.receive(*delivery, accept)
    [event] = events or [None]
    assert event is None or isinstance(event, Inbound)
    return status, event


def test_the_published_vector_passes():
    expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert signature("It's a Secret to Everybody", b"Hello, World!") == expected


async def test_a_comment_that_mentions_us_arrives_under_the_id_of_its_delivery(github: GitHubDouble, adapter: GitHub):
    payload = {
        "action": "created",
        "issue": github.issue(),
        "comment": github.comment("@Deer-Bot fix this\n\n> a quote"),
    }
    delivery = github.delivery("issue_comment", payload)
    status, event = await received(adapter, delivery)

    assert status == 202 and event is not None
    assert event.message_id == delivery[0]["X-GitHub-Delivery"]
    assert event.place == Place(REPOSITORY, "5", name="#5 A crash")
    assert event.author == Author("7", name="ann")
    assert (event.text, event.is_mention) == ("fix this", True)
    assert "It crashes." in event.quoted and "> a quote" in event.quoted


@pytest.mark.parametrize(
    ("event", "action", "said", "reactions"),
    [
        ("issues", "opened", "issue", "issues/5"),
        ("pull_request", "opened", "pull_request", "issues/5"),
        ("pull_request_review", "submitted", "review", ""),
        ("pull_request_review_comment", "created", "comment", "pulls/comments/77"),
        ("issue_comment", "created", "comment", "issues/comments/77"),
    ],
)
async def test_every_event_with_a_text_is_a_message_of_its_issue(
    github: GitHubDouble, adapter: GitHub, event: str, action: str, said: str, reactions: str
):
    text = "please look, @deer-bot!"
    subject = "issue" if event.startswith("issue") else "pull_request"
    payload = {"action": action, subject: github.issue()}
    payload[said] = github.issue(body=text) if said == subject else github.comment(text)
    status, message = await received(adapter, github.delivery(event, payload))

    assert status == 202 and message is not None
    assert (message.place.chat, message.place.topic, message.is_mention) == (REPOSITORY, "5", True)
    assert message.text == (f"A crash\n\n{text}" if said == subject else text)
    json.dumps(dict(message.wake))
    await adapter.signal(message.place, message.message_id, Signal.SEEN, message.wake)
    assert github.reactions == ([(reactions, "eyes")] if reactions else [])


@pytest.mark.parametrize(
    ("text", "is_mention"),
    [
        ("@deer-bot", True),
        ("cc @DEER-BOT, please", True),
        ("(@deer-bot)", True),
        ("@deer-bot-2 hi", False),
        ("mail me@deer-bot", False),
        ("run `@deer-bot`", False),
        ("```\n@deer-bot\n```", False),
        ("> @deer-bot\n\nI agree", False),
        ("@acme/deer-bot", False),
    ],
)
async def test_a_mention_is_our_name_in_what_the_person_wrote(
    github: GitHubDouble, adapter: GitHub, text: str, is_mention: bool
):
    payload = {"action": "created", "issue": github.issue(), "comment": github.comment(text)}
    _, message = await received(adapter, github.delivery("issue_comment", payload))
    assert message is not None and message.is_mention is is_mention


async def test_what_is_no_persons_text_is_ignored(github: GitHubDouble, adapter: GitHub):
    issue, comment = github.issue(), github.comment("x")
    ours = [ME, {"id": 5, "login": "deer-bot[bot]", "type": "Bot"}]
    ignored = [
        ("issue_comment", {"action": "deleted", "issue": issue, "comment": comment}),
        ("issues", {"action": "labeled", "issue": issue}),
        ("push", {"ref": "main"}),
        (
            "pull_request_review",
            {"action": "submitted", "pull_request": issue, "review": github.comment("") | {"body": None}},
        ),
        *(("issue_comment", {"action": "created", "issue": issue, "comment": comment | {"user": one}}) for one in ours),
    ]
    for event, payload in ignored:
        assert await received(adapter, github.delivery(event, payload)) == (202, None)
    assert await received(adapter, github.delivery("ping", {})) == (200, None)
    other = comment | {"user": {"id": 6, "login": "ci[bot]", "type": "Bot"}}
    payload = {"action": "created", "issue": issue, "comment": other}
    _, message = await received(adapter, github.delivery("issue_comment", payload))
    assert message is not None and message.author.is_bot


async def test_a_wrong_signature_or_a_body_of_another_shape_is_refused(github: GitHubDouble, adapter: GitHub):
    payload = {"action": "created", "issue": github.issue(), "comment": github.comment("x")}
    headers, body = github.delivery("issue_comment", payload)
    assert await received(adapter, github.delivery("issue_comment", payload, "wrong")) == (401, None)
    assert await received(adapter, (headers, body + b" ")) == (401, None)
    assert await received(adapter, (headers | {"X-Hub-Signature-256": ""}, body)) == (401, None)
    assert await received(
        adapter, ({**headers, "X-Hub-Signature-256": signature(SECRET, b"payload=x")}, b"payload=x")
    ) == (400, None)
    assert await received(adapter, github.delivery("issues", {"action": "opened", "issue": []})) == (202, None)


async def test_what_could_not_be_stored_is_not_acknowledged(github: GitHubDouble, adapter: GitHub):
    async def fails(events: Any, cursor: str | None) -> None:
        raise StorageDown

    payload = {"action": "opened", "issue": github.issue()}
    with pytest.raises(StorageDown):
        await adapter.receive(*github.delivery("issues", payload), fails)


async def test_an_answer_is_a_comment_that_is_edited(github: GitHubDouble, adapter: GitHub):
    place = Place(REPOSITORY, "5")
    ref = await adapter.post(place, Part("…"), "k", {})
    await adapter.edit(place, ref, Part("done"), 2)
    await adapter.edit(place, ref, Part("done"), 3)

    assert [(one["issue"], one["body"]) for one in github.comments.values()] == [(5, "done")]


async def test_an_adapter_that_only_receives_knows_its_name(github: GitHubDouble):
    adapter = GitHub(SECRET, TOKEN, base_url=github.http)
    payload = {"action": "created", "issue": github.issue(), "comment": github.comment("@deer-bot hi")}
    _, event = await received(adapter, github.delivery("issue_comment", payload))
    await adapter.aclose()

    assert event is not None and (event.text, event.is_mention) == ("hi", True)


async def test_a_comment_whose_reference_was_lost_is_found(github: GitHubDouble, adapter: GitHub):
    place, since = Place(REPOSITORY, "5"), datetime.now(UTC)
    known = [await adapter.post(place, Part("known"), "k-1", {})]
    github.fail(Operation.POST, Fault.CUT_AFTER)
    with pytest.raises(Uncertain):
        await adapter.post(place, Part("…"), "k-2", {})
    found = await adapter.find(place, since, known, {})

    assert found is not None and github.comments[found["id"]]["body"] == "…"
    assert await adapter.find(place, since, [*known, found], {}) is None


@pytest.mark.parametrize(
    ("fault", "on_post", "on_edit"),
    [
        (Fault.LATER, Later, Later),
        (Fault.SERVER_ERROR, Uncertain, Unreachable),
        (Fault.CUT_BEFORE, Uncertain, Unreachable),
        (Fault.CUT_AFTER, Uncertain, Unreachable),
        (Fault.GARBAGE, Uncertain, Unreachable),
        (Fault.REFUSED, Refused, Refused),
        (Fault.SIGNED_OUT, SignedOut, SignedOut),
    ],
)
async def test_a_fault_says_whether_it_may_have_been_done(
    github: GitHubDouble, adapter: GitHub, fault: Fault, on_post: type[Exception], on_edit: type[Exception]
):
    place = Place(REPOSITORY, "5")
    ref = await adapter.post(place, Part("first"), "k", {})
    github.fail(Operation.POST, fault)
    github.fail(Operation.EDIT, fault)
    with pytest.raises(on_post) as caught:
        await adapter.post(place, Part("second"), "k2", {})
    with pytest.raises(on_edit):
        await adapter.edit(place, ref, Part("edited"), 2)

    assert len(github.comments) == (2 if fault is Fault.CUT_AFTER else 1)
    assert TOKEN not in str(caught.value)
    assert not isinstance(caught.value, Later) or (caught.value.after, caught.value.everywhere) == (7.0, True)


async def test_who_we_are_is_asked_or_given(github: GitHubDouble, adapter: GitHub):
    assert (await adapter.identify()).name == "deer-bot"
    app = GitHub(SECRET, TOKEN, login="deer-app[bot]", base_url=github.http)
    assert (await app.identify()).name == "deer-app"
    payload = {"action": "created", "issue": github.issue(), "comment": github.comment("@deer-app hi")}
    _, message = await received(app, github.delivery("issue_comment", payload))
    assert message is not None and (message.is_mention, message.text) == (True, "hi")
    await app.aclose()


async def test_what_is_missing_is_named(github: GitHubDouble):
    for secret, token, named in (("", TOKEN, "GITHUB_WEBHOOK_SECRET"), (SECRET, "", "channels.github.token")):
        adapter = GitHub(secret, token, base_url=github.http)
        with pytest.raises(Misconfigured, match=named):
            await adapter.identify()
        await adapter.aclose()
    unset = GitHub("", TOKEN, login="deer", base_url=github.http)
    assert await received(unset, github.delivery("ping", {}, "")) == (401, None)
    await unset.aclose()


async def test_it_listens_without_a_link(adapter: GitHub):
    async with Receiver(adapter) as receiver:
        assert receiver.connects == 1
